// The table of kernels of a device: which function runs a node.
#pragma once

#include <span>
#include <string>

#include "runtime/ops/op_context.h"

namespace parallax::runtime {

// Every row, family by family.
template <class Device>
std::span<const KernelRow<Device>> kernel_table();
template <>
std::span<const KernelRow<Cpu>> kernel_table<Cpu>();

// The first row that fits the node's operator, version and attributes and, where the types are known (not undefined),
// its element types. Error: unsupported, saying which of them has no kernel.
template <class Device>
Result<const KernelRow<Device>*> find_kernel(const Node& node, std::span<const DType> input_dtypes);
template <>
Result<const KernelRow<Cpu>*> find_kernel<Cpu>(const Node& node, std::span<const DType> input_dtypes);

}  // namespace parallax::runtime
