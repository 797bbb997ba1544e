// com.microsoft's helpers of language models that the host alone has: NGramRepeatBlock, GatherBlockQuantized.
// Definitions: ContribOperators.md.
#include <limits>

#include <fmt/format.h>

#include "runtime/device/blocks.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/indices.h"
#include "runtime/ops/inner_op.h"
#include "runtime/ops/microsoft_families.h"

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

// Of uint8 each byte holds 8 / bits numbers, low bits first, along the last axis.
struct QuantisedTable {
  Ints dims, scale_dims;  // in numbers
  int64_t axis = 0, block = 1;
  int bits = 8;
  bool is_packed = false;

  // Where the scale of a number stands; an axis of the scales that is 1 is repeated.
  int64_t scale_of(int64_t position) const {
    int64_t place = 0, stride = 1;
    for (int64_t i = dims.size() - 1; i >= 0; --i) {
      const int64_t index = position % dims[i];
      position /= dims[i];
      if (scale_dims[i] > 1) place += (i == axis ? index / block : index) * stride;
      stride *= scale_dims[i];
    }
    return place;
  }
  // Number `position` of a payload whose last axis holds `row` numbers.
  float number(const Tensor& tensor, int64_t position, int64_t row) const {
    if (!is_packed) return load_element<float>(tensor.dtype(), tensor.view().data, position);
    const int64_t row_bytes = (row * bits + 7) / 8;
    const int64_t bit = position % row * bits;
    const auto byte = static_cast<unsigned>(tensor.view().data[position / row * row_bytes + bit / 8]);
    return static_cast<float>((byte >> (bit % 8)) & ((1U << bits) - 1));
  }
};

Result<QuantisedTable> quantised_table(const OpCall& op) {
  QuantisedTable table;
  const Tensor& data = op.input(0);
  const int64_t bits = op.integer("bits");
  const bool is_bytes = data.dtype() == DType::uint8;
  if (is_bytes && bits != 2 && bits != 4 && bits != 8) return execution_error(fmt::format("bits is {}", bits));
  table.bits = is_bytes ? static_cast<int>(bits) : bits_of(data.dtype());
  table.is_packed = is_bytes && bits < 8;
  table.dims = Ints(data.shape());
  table.scale_dims = Ints(op.input(2).shape());
  const int64_t rank = table.dims.size();
  if (rank == 0 || table.scale_dims.size() != rank) return execution_error("scales must have the rank of data");
  if (table.is_packed) table.dims[rank - 1] *= 8 / bits;
  table.axis = PX_TRY(OpCall::resolve_axis(op.integer("quantize_axis"), rank));
  const int64_t asked = op.integer("block_size"), length = table.dims[table.axis];
  if (asked < 0 || (asked == 0 && !is_floating(data.dtype())))
    return execution_error(fmt::format("block_size {}", asked));
  table.block = asked == 0 ? std::max<int64_t>(1, length) : asked;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const bool own = axis == table.axis;
    const int64_t wanted = own ? (length + table.block - 1) / table.block : table.dims[axis];
    const bool repeated = !own && is_floating(data.dtype()) && table.scale_dims[axis] == 1;
    if (table.scale_dims[axis] != wanted && !repeated)
      return execution_error("scales " + op.input(2).shape().to_string() + " do not fit the blocks of data");
  }
  if (!op.has_input(3)) return table;
  const int64_t blocks = table.scale_dims.back();
  Ints zero_dims = table.scale_dims;
  zero_dims[rank - 1] = table.is_packed ? (blocks * bits + 7) / 8 : blocks;
  if (is_floating(data.dtype()) || !(Ints(op.input(3).shape()) == zero_dims))
    return execution_error("zero_points " + op.input(3).shape().to_string() + " do not fit the scales");
  return table;
}

// An index out of range gives zeros, as the page has it; negative ones count from behind.
Status gather_block_quantised(Context& op) {
  const QuantisedTable table = PX_TRY(quantised_table(op));
  const int64_t rank = table.dims.size();
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("gather_axis"), rank));
  if (table.is_packed && axis == rank - 1)
    return execution_error("packed numbers cannot be gathered along the axis they are packed along");
  Ints dims;
  for (int64_t i = 0; i < axis; ++i) dims.push_back(table.dims[i]);
  for (int64_t dim : op.input(1).shape()) dims.push_back(dim);
  for (int64_t i = axis + 1; i < rank; ++i) dims.push_back(table.dims[i]);
  const MutableView y = PX_TRY(op.make_output(0, op.input(2).dtype(), shape_of(dims)));
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
        const int64_t scale = table.scale_of(position);
        const float zero = op.has_input(3) ? table.number(op.input(3), scale, table.scale_dims.back()) : middle;
        value = (table.number(op.input(0), position, table.dims.back()) - zero) * scales.data()[scale];
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
