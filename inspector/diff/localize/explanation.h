// SPDX-License-Identifier: Apache-2.0
// Why: one plain sentence for a node whose result is wrong, from a list of rules that each look at the evidence.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/diff/localize/node_judge.h"

namespace parallax::diff {

// The result of a side's executor for the node alone, on the inputs of the run: the right result, the same wrong one,
// another wrong one, or one that changes from run to run.
enum class Alone : uint8_t { unknown, right, same, differs, varies };

// The evidence about a node on the side where it went wrong. It refers to its sources.
class ExplanationEvidence {
 public:
  ExplanationEvidence(const CapturedSide& side, const NodeInstance& instance, const NodeJudgement& judgement,
                      std::string_view letter, std::span<const std::string> earlier, Alone alone);
  // The evidence of a member of the group that was judged: `node` and `inputs` are the member's, and `rerun` passes the
  // member's results on through the rest of the group.
  ExplanationEvidence(const ExplanationEvidence& whole, size_t member, double budget_ms);

  const NodeInstance& instance() const { return *instance_; }
  const Node& node() const { return instance_->definition(); }
  const NodeJudgement& judgement() const { return judgement_; }
  const Value& expected() const { return judgement_.expected; }
  const Value& actual() const { return judgement_.actual; }
  std::string_view letter() const { return letter_; }  // "A" or "B"
  Alone alone() const { return alone_; }

  // True where another framework computed the values, so that the graph, and no kernel of ours, may be wrong.
  bool is_foreign() const;
  bool is_member() const { return member_.has_value(); }
  const DumpReader& dump() const { return side_.dump(); }
  const NodeGroup* group() const { return judgement_.group.get(); }

  const std::vector<FoundValue>& inputs() const { return *inputs_; }
  std::vector<Value> input_values() const;
  std::string input_name(size_t read) const;

  // Paths of values captured before the node's outputs, latest last, and the values.
  std::span<const std::string> earlier() const { return earlier_; }
  Value captured(const std::string& path) const;

  // Both as float64, where they are tensors of numbers of one shape; empty otherwise.
  const std::vector<double>& expected_doubles() const { return expected_doubles_; }
  const std::vector<double>& actual_doubles() const { return actual_doubles_; }

  // True where a candidate equals the captured value: as near to it as rounding allows, where the right result is far.
  bool is_reproduced_by(const Value& candidate) const;
  // Their distance, in units of what rounding may do; infinite for an absent candidate.
  double distance_to(const Value& candidate) const;
  bool is_reproduced_by(std::span<const double> elements) const;  // of the judged output
  // The oracle's answer for the judged output, of a changed node or changed inputs. Nothing once the time for
  // trying is spent or where the oracle refuses.
  std::optional<Value> rerun(const Node& node, std::span<const Value> inputs) const;
  // The result with another value of one input; in a group every member that reads it gets the other value.
  std::optional<Value> rerun_with(size_t read, const Value& value) const;
  // The result where the member of a group yields `result` as its only output.
  std::optional<Value> result_of(const Value& result) const;
  double spent_ms() const { return spent_ms_; }

 private:
  template <class Run>
  std::optional<Value> timed(Run&& run) const;

  const CapturedSide& side_;
  const NodeInstance* instance_;
  const NodeJudgement& judgement_;
  const std::vector<ValueId>* reads_;
  const std::vector<FoundValue>* inputs_;
  std::optional<size_t> member_;
  std::string_view letter_;
  std::span<const std::string> earlier_;
  Alone alone_;
  std::vector<double> expected_doubles_, actual_doubles_;
  mutable double spent_ms_ = 0;
  double budget_ms_ = 0;
};

// The subject of a rule's answer: how the result was computed, or the node's definition in the graph.
enum class RuleKind : uint8_t { computation, definition };

struct ExplanationRule {
  std::string_view name;
  std::optional<std::string> (*explain)(const ExplanationEvidence& evidence);
  RuleKind kind = RuleKind::computation;
};

// In the order in which they are asked; the first that answers speaks. Of values of another framework those that look
// at the definition are asked before those that look at the computation. Where a group was judged, each of its other
// nodes is asked about its definition, too.
std::span<const ExplanationRule> explain_rules();

// The sentence: what the rules say, or that none of them does; and whether the node alone is right. `sentence_of`: the
// node that the sentence is about, which may be another one of the group.
struct NodeExplanation {
  std::string sentence;
  const Node* sentence_of = nullptr;
};
NodeExplanation explain(const ExplanationEvidence& evidence);

// ---- the rules, by what they look at ----

// Values alone (explain_values.cpp).
std::optional<std::string> explain_handed_on(const ExplanationEvidence& evidence);
std::optional<std::string> explain_shape(const ExplanationEvidence& evidence);
std::optional<std::string> explain_overflow(const ExplanationEvidence& evidence);
std::optional<std::string> explain_not_finite(const ExplanationEvidence& evidence);
std::optional<std::string> explain_flushed(const ExplanationEvidence& evidence);
std::optional<std::string> explain_unwritten(const ExplanationEvidence& evidence);
std::optional<std::string> explain_is_an_input(const ExplanationEvidence& evidence);
std::optional<std::string> explain_stale_output(const ExplanationEvidence& evidence);
std::optional<std::string> explain_scaled(const ExplanationEvidence& evidence);
std::optional<std::string> explain_offset(const ExplanationEvidence& evidence);
std::optional<std::string> explain_moved(const ExplanationEvidence& evidence);
std::optional<std::string> explain_region(const ExplanationEvidence& evidence);
// An ArgMax, ArgMin or TopK that takes another of equal elements.
std::optional<std::string> explain_order_among_equals(const ExplanationEvidence& evidence);

// Precision (explain_precision.cpp).
std::optional<std::string> explain_stored_narrow(const ExplanationEvidence& evidence);
std::optional<std::string> explain_computed_narrow(const ExplanationEvidence& evidence);
std::optional<std::string> explain_accumulation(const ExplanationEvidence& evidence);
// A product with quantized weights whose kernel rounds the floats that it reads to int8, block by block.
std::optional<std::string> explain_quantized_activations(const ExplanationEvidence& evidence);

// The oracle run again with one thing changed (explain_reruns.cpp, explain_operands.cpp).
std::optional<std::string> explain_attribute(const ExplanationEvidence& evidence);
std::optional<std::string> explain_operator(const ExplanationEvidence& evidence);
std::optional<std::string> explain_unbiased_variance(const ExplanationEvidence& evidence);
std::optional<std::string> explain_operands(const ExplanationEvidence& evidence);
std::optional<std::string> explain_inputs_flushed(const ExplanationEvidence& evidence);
std::optional<std::string> explain_stale_input(const ExplanationEvidence& evidence);

// The oracle run again with another number in place of a constant (explain_constants.cpp).
std::optional<std::string> explain_by_number(const ExplanationEvidence& evidence);
std::optional<std::string> explain_by_integers(const ExplanationEvidence& evidence);
// A term or a factor that the graph has elsewhere.
std::optional<std::string> explain_by_missing_operand(const ExplanationEvidence& evidence);

// `tensor` with its axes in another order, as float64.
std::optional<Tensor> transposed(const Tensor& tensor, std::span<const int64_t> permutation);
// Element i along the axis moves to i + 1; the last becomes the first.
std::optional<Tensor> rolled(const Tensor& tensor, size_t axis, int64_t by);

}  // namespace parallax::diff
