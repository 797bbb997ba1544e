// A row of the table of kernels for an operator outside ai.onnx, on the host.
#pragma once

#include "runtime/ops/op_context.h"

namespace parallax::runtime {

constexpr KernelRow<Cpu> contributed_row(std::string_view op, uint32_t dtypes, Kernel<Cpu> run, int64_t dtype_input = 0,
                                         std::string_view domain = "com.microsoft") {
  KernelRow<Cpu> row{op, dtypes, run};
  row.dtype_input = dtype_input;
  row.domain = domain;
  return row;
}

}  // namespace parallax::runtime
