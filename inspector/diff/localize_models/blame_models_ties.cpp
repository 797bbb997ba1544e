// SPDX-License-Identifier: Apache-2.0
// Steps of quantized values, and the numbers they stand for.
#include "inspector/diff/localize_models/blame_models_ties.h"

#include <cmath>
#include <optional>

#include "inspector/diff/localize_models/blame_models_constants.h"
#include "inspector/diff/localize_models/blame_models_explain.h"
#include "inspector/diff/matching/same_quantized_values.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

// The number of steps from zero, before rounding, of an element that a QuantizeLinear with one scale made.
std::optional<double> unrounded(const LocatedNode& made, const std::vector<Value>& given, int64_t index) {
  const bool fits = made.id != kNoNode && made.node().op_type == "QuantizeLinear" && given.size() >= 2 &&
                    given[0].is_tensor() && given[1].is_tensor() && given[1].tensor().element_count() == 1 &&
                    index < given[0].tensor().element_count();
  if (!fits) return std::nullopt;
  return element_as_double(given[0].tensor(), index) / element_as_double(given[1].tensor(), 0);
}

}  // namespace

bool quantize_alike(const Region& region, const LocatedNode& made_a, const LocatedNode& made_b) {
  if (!region.expected.is_tensor() || !region.found.is_tensor()) return false;
  const Tensor &a = region.expected.tensor(), &b = region.found.tensor();
  if (!is_byte(a.dtype()) || !is_byte(b.dtype()) || !(a.shape() == b.shape())) return false;
  for (int64_t index = 0; index < a.element_count(); ++index) {
    const int64_t distance = std::abs(step_of(a, index) - step_of(b, index));
    if (distance == 0) continue;
    auto number = unrounded(made_a, region.given_a, index);
    if (!number.has_value()) number = unrounded(made_b, region.given_b, index);
    if (distance > 1 || !number.has_value()) return false;
    const double from_middle = std::abs(*number - std::floor(*number) - 0.5);
    if (!(from_middle < thresholds::kNearTie)) return false;
  }
  return true;
}

bool differ_by_step(const ModelSide& a, const LocatedNode& node_a, const ModelSide& b, const LocatedNode& node_b) {
  const std::vector<ValueId>&in_a = node_a.node().inputs, &in_b = node_b.node().inputs;
  if (!is_same_operation(node_a, node_b) || in_a.size() != in_b.size()) return false;
  bool is_any_stored_differently = false;
  for (size_t port = 0; port < in_a.size(); ++port) {
    const int32_t x = ModelSide::value_info_read(*node_a.location, in_a[port]);
    const int32_t y = ModelSide::value_info_read(*node_b.location, in_b[port]);
    if (x < 0 || y < 0 || !a.follows_from_constants(x)) continue;
    const Value held = a.constant(x), other = b.constant(y);
    if (!held.is_tensor() || !other.is_tensor()) return false;
    const Tensor &one = held.tensor(), &another = other.tensor();
    const bool is_same = one.dtype() == another.dtype() && difference_of_constants(one, another).empty();
    if (!is_same && !are_same_quantized(one, another)) return false;
    is_any_stored_differently = is_any_stored_differently || !is_same;
  }
  return is_any_stored_differently;
}

bool holds_steps(const ModelSide& side, int32_t id) {
  const LocatedNode made_by = side.producer(before_moves(side, id));
  return made_by.id != kNoNode && made_by.node().op_type == "DequantizeLinear";
}

}  // namespace parallax::diff
