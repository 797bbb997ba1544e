// SPDX-License-Identifier: Apache-2.0
// The table of kernels of a device: which function runs a node.
#pragma once

#include <span>
#include <string>

#include "runtime/ops/op_context.h"

namespace parallax::runtime {

// Every row, family by family.
template <class Device>
std::span<const KernelRow<Device>> kernel_table();

// The first row that fits the node's operator, version and attributes and, where the types are known (not undefined),
// its element types. Error: unsupported, saying which of them has no kernel.
template <class Device>
Result<const KernelRow<Device>*> find_kernel(const Node& node, std::span<const DType> input_dtypes);

// Each device's table is compiled from table.cpp on its own.
#define PX_DECLARE_TABLE(Device)                             \
  template <>                                                \
  std::span<const KernelRow<Device>> kernel_table<Device>(); \
  template <>                                                \
  Result<const KernelRow<Device>*> find_kernel<Device>(const Node& node, std::span<const DType> input_dtypes);
PX_DECLARE_TABLE(Cpu)
PX_DECLARE_TABLE(Cuda)
PX_DECLARE_TABLE(Emulated)
#undef PX_DECLARE_TABLE

}  // namespace parallax::runtime
