// SPDX-License-Identifier: Apache-2.0
// Movement of elements of 4 and 2 bits: each is given a byte of its own, the operator moves the bytes, and they are
// packed again.
#include "inspector/tensor/elements.h"
#include "runtime/ops/host_families.h"
#include "runtime/ops/inner_op.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

Result<Tensor> as_bytes(Context& op, const Tensor& packed) {
  Tensor bytes = PX_TRY(op.queue().allocate(DType::uint8, packed.shape()));
  auto* elements = reinterpret_cast<uint8_t*>(writable(bytes).data);
  for (int64_t i = 0; i < packed.element_count(); ++i)
    elements[i] = load_packed(packed.view().data, bits_of(packed.dtype()), i);
  return bytes;
}

Status moved_as_bytes(Context& op) {
  const DType dtype = op.input(0).dtype();
  std::vector<Value> inputs;
  for (int64_t input = 0; input < op.input_count(); ++input) {
    const bool is_packed = op.has_input(input) && op.input(input).dtype() == dtype;
    inputs.push_back(is_packed             ? Value(PX_TRY(as_bytes(op, op.input(input))))
                     : op.has_input(input) ? op.value(input)
                                           : Value());
  }
  const InnerOp inner{op.node().op_type, op.since_version(), op.node().attributes};
  const Tensor bytes = PX_TRY(run_inner(op, inner, inputs));
  const MutableView y = PX_TRY(op.make_output(0, dtype, bytes.shape()));
  std::fill_n(y.data, y.size_bytes(), std::byte{0});
  const auto* elements = reinterpret_cast<const uint8_t*>(bytes.view().data);
  for (int64_t i = 0; i < bytes.element_count(); ++i) store_packed(y.data, bits_of(dtype), i, elements[i]);
  return {};
}

constexpr KernelRow<Cpu> kPackedElementRows[] = {
    {"Concat", kSubByte, moved_as_bytes},    {"Expand", kSubByte, moved_as_bytes}, {"Gather", kSubByte, moved_as_bytes},
    {"Pad", kSubByte, moved_as_bytes},       {"Slice", kSubByte, moved_as_bytes},  {"Tile", kSubByte, moved_as_bytes},
    {"Transpose", kSubByte, moved_as_bytes},
};

}  // namespace

template <>
Rows<Cpu> packed_element_rows() {
  return kPackedElementRows;
}

}  // namespace parallax::runtime
