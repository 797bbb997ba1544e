// What operators outside ai.onnx share, on the host: a row of the table of kernels, and their small inputs as floats.
#pragma once

#include <vector>

#include "runtime/device/blocks.h"
#include "runtime/ops/op_context.h"

namespace parallax::runtime {

constexpr KernelRow<Cpu> contributed_row(std::string_view op, uint32_t dtypes, Kernel<Cpu> run, int64_t dtype_input = 0,
                                         std::string_view domain = "com.microsoft") {
  KernelRow<Cpu> row{op, dtypes, run};
  row.dtype_input = dtype_input;
  row.domain = domain;
  return row;
}

inline std::vector<float> floats_of(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.element_count()));
  load_block<float>(tensor.dtype(), tensor.view().data, 0, 1, tensor.element_count(), values.data());
  return values;
}

}  // namespace parallax::runtime
