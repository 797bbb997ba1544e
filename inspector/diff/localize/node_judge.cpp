// SPDX-License-Identifier: Apache-2.0
// The oracle compared with the capture, and the possible effect of rounding between them.
#include "inspector/diff/localize/node_judge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "inspector/diff/localize/control_flow_copies.h"
#include "inspector/diff/tolerance/judge.h"
#include "inspector/diff/tolerance/noise_model.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/diff/tolerance/value_origin.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/link.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

constexpr double kFloatEpsilon = std::numeric_limits<float>::epsilon();

// The first tensor of a value: of a sequence, its first element speaks for the others.
const Tensor* tensor_of(const Value& value) {
  if (value.is_tensor()) return &value.tensor();
  if (value.is_sequence() && !value.sequence().items.empty()) return tensor_of(value.sequence().items.front());
  if (value.is_optional() && !value.optional().item.empty()) return tensor_of(value.optional().item.front());
  return nullptr;
}

Magnitude magnitude_of_value(const Value& value, const ValueDef& definition) {
  const Tensor* tensor = tensor_of(value);
  if (tensor == nullptr || tensor->dtype() == DType::string) return {};
  Magnitude magnitude = magnitude_of(*tensor);
  const TypeInfo& declared = definition.type;
  const bool is_widened = magnitude.dtype == DType::float64 && declared.kind == TypeInfo::Kind::tensor;
  if (is_widened && is_floating(declared.dtype)) magnitude.dtype = declared.dtype;
  return magnitude;
}

// Rounding the result is always allowed, of operators too that only move elements: a kernel may go through float32.
Limit at_least_rounding(Limit limit, const Magnitude& magnitude) {
  if (!is_floating(magnitude.dtype)) return limit;
  const double epsilon = float_limits(magnitude.dtype).epsilon;
  limit.rtol = std::max(limit.rtol, std::min(thresholds::kAlwaysAllowedUlps * epsilon, thresholds::kLargestRtol));
  limit.atol = std::max(limit.atol, thresholds::kAlwaysAllowedUlps * epsilon * magnitude.rms);
  return limit;
}

bool is_exact(const Value& value) {
  const Tensor* tensor = tensor_of(value);
  return tensor == nullptr || (!is_floating(tensor->dtype()) && !is_complex(tensor->dtype()));
}

uint32_t scrambled(uint32_t x) {  // the finalizer of MurmurHash3
  x ^= x >> 16;
  x *= 0x85EBCA6BU;
  x ^= x >> 13;
  x *= 0xC2B2AE35U;
  return x ^ (x >> 16);
}

// Element i times 1 + ulps_of(i) epsilons of float32.
template <class UlpsOf>
Value moved_value(const Value& value, const UlpsOf& ulps_of) {
  if (!value.is_tensor() || !is_floating(value.tensor().dtype())) return value;
  auto moved = Tensor::allocate(DType::float64, value.tensor().shape());
  if (!moved.ok()) return value;
  const std::span<double> elements = moved->mutable_as<double>();
  load_doubles(value.tensor(), 0, elements);
  for (size_t index = 0; index < elements.size(); ++index) elements[index] *= 1 + ulps_of(index) * kFloatEpsilon;
  return moved.take();
}

// The first input of floats moved one way and the others the other way: so that a quotient by a scale moves by both,
// and every element between two steps goes to the other one.
std::vector<Value> pulled_apart(const std::vector<FoundValue>& inputs, double ulps) {
  std::vector<Value> values;
  bool is_first = true;
  for (const FoundValue& input : inputs) {
    const bool is_moved = input.value.is_tensor() && is_floating(input.value.tensor().dtype());
    values.push_back(moved_value(input.value, [=](size_t) { return is_first ? ulps : -ulps; }));
    is_first = is_first && !is_moved;
  }
  return values;
}

// Each element of the captured value is in the range of the oracle's results for inputs nudged this way and that.
bool is_near_tie(const Value& expected, const Value& actual, const std::vector<Value>& others) {
  if (!expected.is_tensor() || !actual.is_tensor() || expected.tensor().dtype() == DType::string) return false;
  const Tensor& a = expected.tensor();
  const Tensor& b = actual.tensor();
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  for (int64_t index = 0; index < a.element_count(); ++index) {
    double low = element_as_double(a, index), high = low;
    const double found = element_as_double(b, index);
    if (found == low) continue;
    for (const Value& other : others) {
      if (!other.is_tensor() || !(other.tensor().shape() == a.shape())) return false;
      low = std::min(low, element_as_double(other.tensor(), index));
      high = std::max(high, element_as_double(other.tensor(), index));
    }
    if (found < low || found > high) return false;
  }
  return true;
}

// The distance once more, where the table does not suffice: an implementation is as good as can be asked when its
// error is no more than a change of its inputs in the last place makes (Higham, Accuracy and Stability, section 1.5).
void allow_backward_error(const CapturedSide& side, const NodeInstance& instance, NodeJudgement& judgement) {
  constexpr int kRounds = 3;
  if (judgement.computed.inputs.empty()) return;
  std::vector<Value> others;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint32_t seed = 0x9E3779B9U * (round + 1);
    const auto outputs = judgement.group != nullptr
                             ? judgement.group->run_nudged(seed, thresholds::kBackwardUlps)
                             : side.replay(instance, instance.definition(),
                                           nudged(judgement.computed.inputs, seed, thresholds::kBackwardUlps));
    if (!outputs.ok() || judgement.output >= outputs->size()) return;
    others.push_back(rounded_like((*outputs)[judgement.output], judgement.actual));
    if (round > 0 || is_exact(judgement.actual)) continue;
    // One pass shows whether more are relevant: a well-conditioned node's error stays what it is.
    const double moved = distance_between(judgement.expected, others[0], judgement.limit).severity;
    if (std::isfinite(judgement.introduced) &&
        judgement.introduced > thresholds::kBeyondBackward * std::max(1.0, moved))
      return;
  }
  if (is_exact(judgement.actual)) {
    for (const double ulps : {thresholds::kBackwardUlps, -thresholds::kBackwardUlps}) {
      const auto outputs = side.replay(instance, instance.definition(), pulled_apart(judgement.computed.inputs, ulps));
      if (!outputs.ok() || judgement.output >= outputs->size()) return;
      others.push_back((*outputs)[judgement.output]);
    }
    if (is_near_tie(judgement.expected, judgement.actual, others)) judgement.introduced = 0;
    return;
  }
  double rmse = 0;
  for (const Value& other : others) {
    const Distance moved = distance_between(judgement.expected, other, judgement.limit);
    if (moved.metrics.has_value() && std::isfinite(moved.metrics->rmse)) rmse = std::max(rmse, moved.metrics->rmse);
  }
  if (thresholds::kBackwardMargin * rmse <= judgement.limit.atol) return;
  judgement.limit.atol = thresholds::kBackwardMargin * rmse;
  judgement.limit.from = LimitSource::noise;
  judgement.introduced = distance_between(judgement.expected, judgement.actual, judgement.limit).severity;
}

}  // namespace

bool has_body(const Node& node) { return node.function != nullptr || !bodies_of(node).empty(); }

Limit own_rounding_limit(const CapturedSide& side, const NodeInstance& instance, const std::vector<ValueId>& reads,
                         const std::vector<FoundValue>& inputs, ValueId output, const Value& captured) {
  const Graph& graph = *instance.location->graph;
  NoiseModel noise;
  if (has_foreign_values(side.dump())) noise.count_foreign_kernels();
  ValueInfo exact;  // data by its making: without error
  exact.role = ValueInfo::Role::initializer;
  exact.graph = &graph;
  for (size_t index = 0; index < reads.size(); ++index) {
    const ValueDef& definition = value_at(graph, reads[index]);
    const Magnitude magnitude = magnitude_of_value(inputs[index].value, definition);
    if (magnitude.dtype == DType::undefined) continue;
    noise.add(instance.prefix, escape_name(definition.name), inputs[index].computed_by.empty() ? &exact : nullptr,
              magnitude);
  }
  const ValueDef& definition = value_at(graph, output);
  const Magnitude magnitude = magnitude_of_value(captured, definition);
  const std::string name = escape_name(definition.name);
  const ValueInfo* value_info = instance.location->values[static_cast<size_t>(output)];
  const int64_t number = noise.add(instance.prefix, name, value_info, magnitude);
  return at_least_rounding(noise.limit_of(number, instance.prefix + name), magnitude);
}

Value rounded_like(const Value& oracle, const Value& captured) {
  if (!oracle.is_tensor() || !captured.is_tensor()) return oracle;
  const DType wanted = captured.tensor().dtype();
  if (oracle.tensor().dtype() != DType::float64 || wanted == DType::float64 || !is_floating(wanted)) return oracle;
  auto rounded = Tensor::allocate(wanted, oracle.tensor().shape());
  if (!rounded.ok()) return oracle;
  store_doubles(*rounded, 0, oracle.tensor().as<double>());
  return rounded.take();
}

Distance distance_between(const Value& expected, const Value& actual, const Limit& limit) {
  ValueComparison compared;
  if (expected.is_absent() != actual.is_absent()) return {std::numeric_limits<double>::infinity(), std::nullopt};
  if (expected.is_absent()) return {};
  judge_values(expected, actual, {limit, true, true}, compared);
  if (compared.verdict == Verdict::not_compared) return {std::numeric_limits<double>::infinity(), std::nullopt};
  return {compared.severity, compared.metrics};
}

Value nudged_value(const Value& value, uint32_t seed, double ulps) {
  return moved_value(
      value, [=](size_t index) { return (scrambled(seed ^ static_cast<uint32_t>(index)) & 1U) != 0 ? ulps : -ulps; });
}

std::vector<Value> nudged(const std::vector<FoundValue>& inputs, uint32_t seed, double ulps) {
  std::vector<Value> values;
  for (size_t index = 0; index < inputs.size(); ++index) {
    values.push_back(nudged_value(inputs[index].value, seed + static_cast<uint32_t>(index) * 0x632BE5ABU, ulps));
  }
  return values;
}

Result<NodeJudgement> judge_node(const CapturedSide& side, const NodeInstance& instance,
                                 const std::vector<std::optional<Limit>>& carried) {
  NodeJudgement judgement;
  const Node& node = instance.definition();
  const Graph& graph = *instance.location->graph;
  std::vector<Value> captured(node.outputs.size());
  bool any_captured = false;
  for (size_t index = 0; index < captured.size(); ++index) {
    if (node.outputs[index] == kNoValue) continue;
    captured[index] = PX_TRY(side.captured(instance.prefix + escape_name(value_at(graph, node.outputs[index]).name)));
    any_captured = any_captured || !captured[index].is_absent();
  }
  if (!any_captured) {
    judgement.reason = "its outputs were not captured";
    return judgement;
  }
  if (has_body(node)) {
    const CarriedValuesCheck check = PX_TRY(check_carried_values(side, instance));
    judgement.is_judged = check.state == CarriedValues::right;
    if (judgement.is_judged) return judgement;
    judgement.carried_values = check.why;
  }
  auto computed = side.compute(instance);
  if (!computed.ok()) {
    if (computed.error().code == ErrorCode::corrupt_file) return std::move(computed).error();
    judgement.reason = computed.error().message;
    return judgement;
  }
  judgement.computed = computed.take();
  judgement.is_judged = true;
  judgement.group = PX_TRY(NodeGroup::around(side, instance, judgement.computed));
  for (size_t index = 0; index < captured.size(); ++index) {
    if (captured[index].is_absent()) continue;
    Limit limit = own_rounding_limit(side, instance, judgement.computed.reads, judgement.computed.inputs,
                                     node.outputs[index], captured[index]);
    if (index < carried.size() && carried[index].has_value()) {
      limit = {std::max(limit.rtol, carried[index]->rtol), std::max(limit.atol, carried[index]->atol), limit.from};
    }
    Value expected = rounded_like(judgement.computed.outputs[index], captured[index]);
    const double severity = distance_between(expected, captured[index], limit).severity;
    if (!judgement.expected.is_absent() && !(severity > judgement.introduced)) continue;
    judgement.output = index;
    judgement.introduced = severity;
    judgement.limit = limit;
    judgement.expected = std::move(expected);
    judgement.actual = captured[index];
  }
  if (judgement.introduced > 1) allow_backward_error(side, instance, judgement);
  return judgement;
}

}  // namespace parallax::diff
