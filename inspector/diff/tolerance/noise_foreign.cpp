// SPDX-License-Identifier: Apache-2.0
// Activations rounded to int8, and coordinates in float32.
#include "inspector/diff/tolerance/noise_foreign.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "inspector/diff/tolerance/noise_inputs.h"
#include "inspector/diff/tolerance/noise_model.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/model/stored_int.h"

namespace parallax::diff {

double int8_block_of(const Node& node) {
  constexpr int64_t kInt8Level = 4;
  const bool may_round = node.op_type == "MatMulNBits" && stored_int(node, "accuracy_level", 0) == kInt8Level;
  return may_round ? static_cast<double>(stored_int(node, "block_size", 0)) : 0;
}

bool interpolates(const Node& node) {
  const Attribute* attribute = find_attribute(node, "mode");
  const auto* mode = attribute == nullptr ? nullptr : std::get_if<std::string>(&attribute->value);
  return (node.op_type == "Resize" || node.op_type == "Upsample") && mode != nullptr && *mode != "nearest";
}

void NoiseModel::add_foreign_kernels(const Added& value, const Inputs& inputs, State& state) const {
  if (inputs.first == nullptr || !(inputs.first->rms > 0)) return;
  const Magnitude& first = *inputs.first;
  if (value.int8_block > 0) {
    // A block's step follows from its largest element. One that is longer than those sampled has a larger one: of
    // independent numbers a little, of a few outliers by the square root.
    const double longer = std::sqrt(std::max(1.0, value.int8_block / thresholds::kSampledRun));
    const double peak = std::min(first.peak_rms > 0 ? longer * first.peak_rms : std::numeric_limits<double>::infinity(),
                                 std::sqrt(value.int8_block) * first.rms);
    const double step = peak / std::numeric_limits<int8_t>::max();
    state.error = std::hypot(state.error, step / (std::sqrt(12.0) * first.rms) * state.magnitude.rms);
    state.is_quantized = true;
  }
  const std::vector<int64_t>& dims = state.magnitude.dims;
  if (!value.interpolates || dims.size() != first.dims.size()) return;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == first.dims[axis]) continue;
    const double coordinate = epsilon_of(DType::float32) * static_cast<double>(first.dims[axis]);
    state.error = std::hypot(state.error, thresholds::kCoordinateEpsilons * coordinate * first.rms);
  }
}

}  // namespace parallax::diff
