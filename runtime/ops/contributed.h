// SPDX-License-Identifier: Apache-2.0
// Parts that operators outside ai.onnx share: a row of the table of kernels and, on the host, their small inputs as
// floats.
#pragma once

#include <vector>

#include "runtime/device/cpu/blocks.h"
#include "runtime/ops/op_context.h"

namespace parallax::runtime {

constexpr KernelRow<CompiledDevice> contributed_row(std::string_view op, uint32_t dtypes, Kernel<CompiledDevice> run,
                                                    int64_t dtype_input = 0,
                                                    std::string_view domain = "com.microsoft") {
  KernelRow<CompiledDevice> row{op, dtypes, run};
  row.dtype_input = dtype_input;
  row.domain = domain;
  return row;
}

// The row of those nodes alone that the predicate holds for.
template <bool (*kPredicate)(const Node&)>
constexpr KernelRow<CompiledDevice> where(KernelRow<CompiledDevice> row) {
  row.supports = kPredicate;
  return row;
}

inline std::vector<float> floats_of(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.element_count()));
  load_block<float>(tensor.dtype(), tensor.view().data, 0, 1, tensor.element_count(), values.data());
  return values;
}

}  // namespace parallax::runtime
