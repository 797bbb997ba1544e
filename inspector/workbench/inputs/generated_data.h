// SPDX-License-Identifier: Apache-2.0
// Data for one generated input: reproducible from the seed and the input's name alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "inspector/base/result.h"
#include "inspector/tensor/tensor.h"
#include "inspector/workbench/inputs/input_use.h"

namespace parallax {

struct GeneratedData {
  Tensor tensor;
  std::string how;  // "normal(0, 1)", "integers 0..319", "ones, then zeros"
};

// Normal values, integers in a range, masks, positions, ... as `use` says; `range` overrides it with uniform values.
Result<GeneratedData> generate_data(const std::string& name, DType dtype, const Shape& shape, const InputUse& use,
                                    std::optional<std::pair<double, double>> range, uint64_t seed);

}  // namespace parallax
