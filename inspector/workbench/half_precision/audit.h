// SPDX-License-Identifier: Apache-2.0
// `audit-fp16`: which nodes of a model cannot compute in half precision, found by watching it on data, and verified.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inspector/model/scope_tree.h"
#include "inspector/workbench/half_precision/converted_outputs.h"
#include "inspector/workbench/inputs/inputs.h"
#include "inspector/workbench/run.h"

namespace parallax {

// The effect of half precision on a node, the worst first.
enum class HalfClass : uint8_t {
  must,       // a value that is finite in float32 leaves the range, or is an integer that the type cannot count
  wide_sum,   // the running sum may leave the range though operands and result do not
  mask,       // nothing but the lowest float32 leaves the range, on its way to a Softmax, Where or Max
  inexact,    // numbers with all their bits in float32 are subnormal or 0
  infinite,   // infinite or NaN in float32 already
  free,       // none of these
  not_float,  // neither reads nor gives float32
};
inline constexpr std::array<std::string_view, 7> kHalfClassNames = {"must",     "wide_sum", "mask",     "inexact",
                                                                    "infinite", "free",     "not_float"};
constexpr std::string_view name_of(HalfClass half_class) { return kHalfClassNames.at(static_cast<size_t>(half_class)); }

// Another model that runs first: its outputs become inputs of the audited one.
struct AuditFeed {
  std::string model;
  std::vector<std::pair<std::string, std::string>> edges;  // output of it, input of the audited model
};
// "OTHER.onnx:OUT=IN,OUT=IN". Errors: usage.
Result<AuditFeed> parse_feed(const std::string& text);

// The next input set, or nothing after the last. `index` counts from 0. Of the request's values those that the audited
// model has no input for go to the models that feed it.
using NextInputs = std::function<Result<std::optional<InputRequest>>(int64_t index)>;

struct AuditRequest {
  std::string model;
  std::shared_ptr<const Model> model_in_memory;  // runs in place of the file
  DType to = DType::float16;
  std::string executor = "cpu";  // that the model is watched on: cpu or reference
  NextInputs next_inputs;
  int64_t until_stable = 0;  // ends after so many sets in a row without another node to keep; 0: at the last set
  std::vector<AuditFeed> feeds;
  double tolerance = 1e-2;  // of the relative error of an output
  bool minimize = false;
  bool half_sums = false;  // for kernels that add in half precision: wide_sum is kept, too
  MessageCallback message;
};

struct NodeAudit {
  std::string path;  // "loop.body[*]//add"
  std::string op;
  HalfClass half_class = HalfClass::not_float;
  std::string why;                         // empty for free and not_float
  std::optional<double> max_abs, min_abs;  // over finite outputs that are not 0; nothing where there are none
  std::optional<double> flushed_share;     // of outputs: normal in float32, subnormal or 0 in half precision
  std::optional<double> accumulated_max;   // no running sum of the node exceeds it
  int64_t first_input = -1;                // the set that gave the class
  SourceLocation source;
  std::string scope;
};

struct HalfAudit {
  DType to = DType::float16;
  int64_t inputs = 0;
  std::vector<NodeAudit> nodes;  // in execution order
  std::vector<std::string> keep;
  bool keep_io = false;  // an input or output leaves the range: verified with both in float32
  double tolerance = 0;
  HalfVerification nothing_kept, kept;
  std::optional<int64_t> stable_after;  // sets after which no further node had to be kept; with until_stable
  double observed_ms = 0;               // spent in runs of the audited model
  std::vector<std::string> notes;

  int64_t count(HalfClass half_class) const;
};

// Errors: usage (an executor that cannot be watched, no input set, names of a feed), and as of import, runs and
// to_half.
Result<HalfAudit> audit_half(const AuditRequest& request, const ExecutorFactory& make_executor);

std::string audit_to_json(const HalfAudit& audit);
std::string audit_to_text(const HalfAudit& audit);
std::string audit_to_csv(const HalfAudit& audit);
// One page that needs nothing next to it: a bar for each node, from its smallest to its largest magnitude, on a
// logarithmic axis against the limits of both types, grouped by module.
std::string audit_to_html(const HalfAudit& audit, const std::string& title);

}  // namespace parallax
