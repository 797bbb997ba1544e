// SPDX-License-Identifier: Apache-2.0
// Comparison: the document that `run` with two sides, `diff` and `blame` make. Reports are renderings of it; the field
// names and meanings are those of the command line's JSON contract.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/diff/metrics/metrics.h"
#include "inspector/exec/capture_traffic.h"
#include "inspector/tensor/shape.h"
#include "inspector/tensor/type_info.h"

namespace parallax {

enum class Verdict : uint8_t { pass, diverged, mistrusted, not_compared };
enum class OverallVerdict : uint8_t { pass, diverged, inconclusive };
enum class MatchedBy : uint8_t { path, name, structure, content };
enum class LimitSource : uint8_t { table, noise, user };
enum class Side : uint8_t { a, b, both, unknown };
// An input of the model; what follows from initializers, constants and shapes alone; what is computed from inputs.
enum class Origin : uint8_t { input, constant, computed };

struct Limit {
  double rtol = 0;
  double atol = 0;
  LimitSource from = LimitSource::table;
};

// Why a value beyond its limit passes nevertheless: no node is to blame for the difference.
struct Acceptance {
  std::string reason;    // "accumulated rounding", "near tie"
  std::string evidence;  // a sentence that says what was seen
};

struct ErrorPicture;  // error_picture.h

struct ValueComparison {
  std::string path;  // in A; in B where A has none
  std::string a;     // path in A, empty when absent there
  std::string b;
  MatchedBy matched_by = MatchedBy::path;
  std::string node;  // display name of the producer in A (in B where A has none)
  std::string op;
  bool node_reads_it = false;     // the value is an initializer, and `node` the first that reads it
  std::string reader, reader_op;  // of a Constant node's output: the first node that reads it
  std::string dtype;              // of A; "float32", or a type string for what is no tensor
  std::vector<int64_t> shape;
  Verdict verdict = Verdict::not_compared;
  double severity = 0;  // measured; above 1 also of a value that passes because it was accepted
  Limit limit;          // the policy's
  std::optional<Acceptance> accepted;
  bool is_same_count = false;    // of tensors whose shapes differ: both have as many elements
  std::string reason;            // of not_compared and mistrusted; of others what is to be known of them, mostly empty
  std::string note;              // shown instead, where the contract's words for not_compared say less
  std::string shape_a, shape_b;  // "[2,3]", where the reason is that they differ
  std::optional<Metrics> metrics;  // when compared
  std::optional<double> noise_rel_l2;
  bool is_graph_output = false;
  Origin origin = Origin::computed;
  std::shared_ptr<const ErrorPicture> picture;  // of some diverged values; null otherwise
  Side held = Side::unknown;                    // of an entry of `expected`: the side held against it
};

// The cost of the last run besides its time.
struct RunCosts {
  double prepare_ms = 0;
  int64_t peak_bytes = 0;  // most of weights and values at once
};

struct ComparedExecution {
  std::string name;  // executor
  Side side = Side::a;
  std::string device;
  std::map<std::string, std::string> settings;
  std::string model_sha256;
  double wall_ms = 0;
  std::string model;                                    // the model's file, as it was named; empty where none is known
  std::optional<CaptureCounts> capture = std::nullopt;  // of a run on a device that has just been
  std::optional<RunCosts> costs = std::nullopt;
};

struct Cause {
  int32_t rank = 1;
  std::string node;    // in A's model; in B's for a node that only B has
  std::string node_b;  // in B's model; empty where B has none
  std::string op;
  std::string path;
  double introduced = 0;
  double inherited = 0;
  Side side = Side::unknown;
  std::string why;
  std::string source_module;  // all three are empty when the exporter wrote none
  std::string source_line;
  std::string source_operator;  // of the exported program: "aten.softmax.int"
  // The nodes that were judged as one because values between them were not captured, in execution order; `node` is the
  // one that explains the result, or the last. Empty for a node that was judged on captured inputs.
  std::vector<std::string> group;
  bool is_of_stored_values = false;  // quantized ones are wrong that the node reads, and not their scale

  // B's node has another name, so that a report has to tell both.
  bool is_renamed_in_b() const { return !node_b.empty() && node_b != node; }
  bool has_source() const { return !source_module.empty() || !source_line.empty() || !source_operator.empty(); }
};

struct ComparisonSummary {
  int64_t values = 0, compared = 0, passed = 0, diverged = 0, mistrusted = 0, not_compared = 0;
};

// A value that could not be compared, because its payload in a dump is damaged.
struct DamagedValue {
  Side side = Side::a;  // unknown: found by the search for causes
  std::string path;     // in that side's dump
  std::string message;  // the reader's sentence, which names value and file
};

struct FirstDivergence {
  std::string path;
  std::string node;
  std::string op;
  bool is_from_expected = false;  // the sides agree, and an output is not what a data set expects
};

struct Comparison {
  OverallVerdict verdict = OverallVerdict::inconclusive;
  std::string reason;  // why it is inconclusive; empty otherwise
  std::vector<ComparedExecution> executions;
  ComparisonSummary summary;
  std::optional<FirstDivergence> first_divergence;
  std::vector<Cause> causes;
  std::vector<ValueComparison> values;    // in execution order of A; values only in B where B's order puts them
  std::vector<ValueComparison> expected;  // outputs against a test_data_set's, when there was one
  bool has_expected = false;
  std::vector<DamagedValue> damages;  // in the order of `values`
};

// Fills verdict, reason, summary and first_divergence from `values`, `expected` and `damages`: pass, diverged, or
// inconclusive when nothing was compared (of tensors without elements there is nothing), some graph output was not, or
// a value is damaged. The value that diverged first is named with the same node in `values` as in first_divergence;
// where none has, it is the first output that is not as expected.
void conclude(Comparison& comparison);

// The verdict of a document that sums up several comparisons, from its first divergence, its reason and its summary.
void conclude_sum(Comparison& sum);

// The error that ends a program after this comparison where values are damaged: the first one's sentence, and the
// number of others.
std::optional<Error> damage_of(const Comparison& comparison);

// The first value that diverged, in order; null: none.
const ValueComparison* first_diverged(const Comparison& comparison);

// The first input that the two sides were given in different shapes; null: none.
const ValueComparison* input_of_other_shape(const Comparison& comparison);

// A cause at the value's position, with its node and operator, that says `why`.
Cause cause_at(const ValueComparison& value, std::string why);

// How the reason ends of a value of which a side kept a sample.
inline constexpr std::string_view kBySample = "compared by a sample of elements";

// Diverged, or of another shape or element type, so that there is nothing to compare.
bool are_mismatched(const ValueComparison& value);
bool are_mismatched(const Comparison& comparison);  // any value of it

// True where any output of the graph did not pass.
bool is_any_output_diverged(const Comparison& comparison);

// The severity by which a report colors a value: a value that was accepted counts as one at its limit.
double judged_severity(const ValueComparison& value);

// The reason as a report tells it: with both shapes, where it is that they differ; the note, where there is one; the
// acceptance of a value beyond its limit.
std::string reason_text(const ValueComparison& value);
// An average of a report: NaN where there is no finite pair to be averaged, which is no perfect agreement.
double shown_average(const Metrics& metrics, double average);
// "NaN: 0 in A, 4628 in B; averages are over 4588 of 9216 pairs"; empty where all elements are finite.
std::string non_finite_text(const Metrics& metrics);

// Not compared, because a dump's payload is damaged.
bool is_damaged(const ValueComparison& value);

std::string_view name_of(Verdict verdict);
std::string_view name_of(OverallVerdict verdict);
std::string_view name_of(MatchedBy matched_by);
std::string_view name_of(LimitSource source);
std::string_view name_of(Side side);

}  // namespace parallax
