// SPDX-License-Identifier: Apache-2.0
// Growable inputs of a node (device/cpu/growable.h): a Concat appends to an open one, some kernels read them by their
// strides, and all others are given row-major copies.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/device/cpu/growable.h"
#include "runtime/ops/op_context.h"

namespace parallax::runtime {

bool has_growable(std::span<const OpInput> inputs);
// It is a Concat of an open tensor and another one of its type and dimensions, but for that of the axis.
bool appends_to_first(std::string_view op, std::span<const OpInput> inputs);
// The kernels of that operator, on the host or on GPUs, read input `index` of that type by its strides.
bool takes_growable(std::string_view domain, std::string_view op, size_t index, DType dtype, bool on_gpu);

// Output 0 of such a Concat; `more`: the second input, row-major.
template <class Device>
Status append_to_first(const Node& node, std::span<const OpInput> inputs, const Tensor& more, uint64_t seed,
                       Queue<Device>& queue, CallResult& result) {
  const Tensor& past = inputs[0].value->tensor();
  OpCall op(node, inputs, seed, &result);
  op.set_output(0, PX_TRY(append(queue, past, dim_of(more.shape(), growing_axis(past)),
                                 {more.view().data, row_major_strides(more.shape()), 0})));
  return {};
}

// Row-major copies, in `copied`, of the operands that the row does not take.
template <class Device>
Status copy_growable(const KernelRow<Device>& row, Queue<Device>& queue, std::vector<OpInput>& operands,
                     std::vector<Value>& copied) {
  for (size_t index = 0; index < operands.size(); ++index) {
    if (!has_growable({&operands[index], 1})) continue;
    const Tensor& growable = operands[index].value->tensor();
    if (takes_growable(row.domain, row.op, index, growable.dtype(), GpuDevice<Device>)) continue;
    copied[index] = PX_TRY(without_room(queue, growable));
    operands[index].value = &copied[index];
  }
  return {};
}

}  // namespace parallax::runtime
