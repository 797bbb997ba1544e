// com.microsoft's helpers of language models that the host alone has: NGramRepeatBlock, GatherBlockQuantized.
// Definitions: ContribOperators.md.
#include <limits>

#include <fmt/format.h>

#include "runtime/device/blocks.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/indices.h"
#include "runtime/ops/inner_op.h"
#include "runtime/ops/microsoft_families.h"
#include "runtime/ops/quantised_table.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

// ---- NGramRepeatBlock: a token that would complete an n-gram the sequence already holds gets -inf ----

Status ngram_repeat_block(Context& op) {
  const Ints ids(op.input(0).shape()), scores(op.input(1).shape());
  const int64_t n = op.integer("ngram_size");
  if (n < 1 || ids.size() != 2 || scores.size() != 2 || ids[0] != scores[0])
    return execution_error(fmt::format("input_ids, scores and an ngram_size of {} do not fit", n));
  std::vector<float> results = floats_of(op.input(1));
  const Ints tokens = all_integers(op.input(0));
  for (int64_t batch = 0; batch < ids[0]; ++batch) {
    const int64_t* row = tokens.data() + batch * ids[1];
    for (int64_t begin = 0; begin + n - 1 < ids[1]; ++begin) {
      if (!std::equal(row + ids[1] - (n - 1), row + ids[1], row + begin)) continue;
      const int64_t token = row[begin + n - 1];
      if (token < 0 || token >= scores[1]) return index_outside(token, scores[1]);
      results.data()[batch * scores[1] + token] = -std::numeric_limits<float>::infinity();
    }
  }
  const MutableView y = PX_TRY(op.make_output(0, op.input(1).dtype(), op.input(1).shape()));
  store_block<float>(y.dtype, y.data, 0, y.element_count(), results.data());
  return {};
}

// ---- GatherBlockQuantized: rows of a table whose numbers are quantised in blocks ----

// Where the scale of a number stands.
int64_t scale_of(const QuantisedTable& table, int64_t position) {
  int64_t place = 0, stride = 1;
  for (int64_t i = table.dims.size() - 1; i >= 0; --i) {
    const int64_t index = position % table.dims[i];
    position /= table.dims[i];
    if (table.scale_dims[i] > 1) place += (i == table.axis ? index / table.block : index) * stride;
    stride *= table.scale_dims[i];
  }
  return place;
}

// Number `position` of a payload whose last axis holds `row` numbers.
float number_of(const QuantisedTable& table, const Tensor& tensor, int64_t position, int64_t row) {
  if (!table.is_packed) return load_element<float>(tensor.dtype(), tensor.view().data, position);
  const int64_t row_bytes = (row * table.bits + 7) / 8;
  const int64_t bit = position % row * table.bits;
  const auto byte = static_cast<unsigned>(tensor.view().data[position / row * row_bytes + bit / 8]);
  return static_cast<float>((byte >> (bit % 8)) & ((1U << table.bits) - 1));
}

// An index out of range gives zeros, as the page has it; negative ones count from behind.
Status gather_block_quantised(Context& op) {
  const QuantisedTable table = PX_TRY(quantised_table(op));
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

constexpr KernelRow<Cpu> kMsTokenRows[] = {
    contributed_row("GatherBlockQuantized", kAnyTensor, gather_block_quantised),
    contributed_row("NGramRepeatBlock", dtype_bit(DType::int64), ngram_repeat_block),
};

}  // namespace

template <>
Rows<Cpu> ms_token_rows() {
  return kMsTokenRows;
}

}  // namespace parallax::runtime
