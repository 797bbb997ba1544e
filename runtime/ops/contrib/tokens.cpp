// SPDX-License-Identifier: Apache-2.0
// com.microsoft.GatherBlockQuantized on the host: rows of a table whose numbers are quantized in blocks. Definition:
// ContribOperators.md. GPUs' is in nbits_on_gpu.cpp.
#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/inner_op.h"
#include "runtime/ops/pointwise/quantized_table.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

// The element index of a number's scale.
int64_t scale_of(const QuantizedTable& table, int64_t position) {
  int64_t location = 0, stride = 1;
  for (int64_t i = table.dims.size() - 1; i >= 0; --i) {
    const int64_t index = position % table.dims[i];
    position /= table.dims[i];
    if (table.scale_dims[i] > 1) location += (i == table.axis ? index / table.block : index) * stride;
    stride *= table.scale_dims[i];
  }
  return location;
}

// Number `position` of a payload whose last axis holds `row` numbers.
float number_of(const QuantizedTable& table, const Tensor& tensor, int64_t position, int64_t row) {
  if (!table.is_packed) return load_element<float>(tensor.dtype(), tensor.view().data, position);
  const int64_t row_bytes = (row * table.bits + 7) / 8;
  const int64_t bit = position % row * table.bits;
  const auto byte = static_cast<unsigned>(tensor.view().data[position / row * row_bytes + bit / 8]);
  return static_cast<float>((byte >> (bit % 8)) & ((1U << table.bits) - 1));
}

// An index out of range gives zeros, as the page has it; negative ones count from the end.
Status gather_block_quantized(Context& op) {
  const QuantizedTable table = PX_TRY(quantized_table(op));
  const int64_t axis = table.gather_axis, rank = table.dims.size();
  const MutableView y = PX_TRY(op.make_output(0, op.input(2).dtype(), shape_of(table.out)));
  const std::vector<float> scales = floats_of(op.input(2));
  const Ints indices = all_integers(op.input(1));
  const int64_t inner = product(table.dims, axis + 1, rank), length = table.dims[axis];
  const bool is_unsigned = op.input(0).dtype() == DType::uint8;
  const float middle = is_unsigned ? static_cast<float>(1 << (table.bits - 1)) : 0.0F;
  parallel_for(y.element_count(), 30, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      int64_t index = indices[at / inner % indices.size()];
      index += index < 0 ? length : 0;
      float value = 0;
      if (index >= 0 && index < length) {
        const int64_t position = (at / inner / indices.size() * length + index) * inner + at % inner;
        const int64_t scale = scale_of(table, position);
        const float zero = op.has_input(3) ? number_of(table, op.input(3), scale, table.scale_dims.back()) : middle;
        value = (number_of(table, op.input(0), position, table.dims.back()) - zero) * scales.data()[scale];
      }
      store_block<float>(y.dtype, y.data, at, 1, &value);
    }
  });
  return {};
}

constexpr KernelRow<Cpu> kContribTokenRows[] = {
    contributed_row("GatherBlockQuantized", kAnyTensor, gather_block_quantized),
};

}  // namespace

template <>
Rows<Cpu> contrib_token_rows() {
  return kContribTokenRows;
}

}  // namespace parallax::runtime
