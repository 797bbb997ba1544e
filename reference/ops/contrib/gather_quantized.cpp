// SPDX-License-Identifier: Apache-2.0
// com.microsoft.GatherBlockQuantized: rows of a table whose numbers are quantized in blocks.
#include "inspector/model/rule_errors.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// The table as its numbers mean it: of uint8 each byte holds 8 / bits of them, low bits first, along the last axis.
struct QuantizedTable {
  Shape shape;  // in numbers
  Shape scales;
  size_t quantize_axis = 0;
  int64_t block = 1;
  int bits = 8;
  bool packed = false;  // uint8 with fewer than 8 bits a number
  std::vector<double> numbers, scale_numbers, zeros;

  double at(int64_t position) const;
};

// (number - zero point) * scale; scales and zero points have one entry for each block along the axis, and where an axis
// of the scales is 1 it is repeated.
double QuantizedTable::at(int64_t position) const {
  int64_t scale = 0;
  int64_t rest = position;
  int64_t stride = 1;
  for (size_t axis = shape.rank(); axis-- > 0;) {
    const int64_t index = rest % shape[axis];
    rest /= shape[axis];
    const int64_t location = axis == quantize_axis ? index / block : index;
    if (scales[axis] > 1) scale += location * stride;
    stride *= scales[axis];
  }
  const auto which = static_cast<size_t>(scale);
  return (numbers[static_cast<size_t>(position)] - zeros[which]) * scale_numbers[which];
}

// All numbers of `tensor`, `per_row` of them in each run of its last axis.
std::vector<double> read_numbers(const Tensor& tensor, int bits, int64_t per_row) {
  if (tensor.dtype() != DType::uint8 || bits == 8) {
    const Numbers<double> numbers(tensor);
    return {numbers.span().begin(), numbers.span().end()};
  }
  std::vector<double> numbers;
  const auto bytes = tensor.as<uint8_t>();
  const int64_t row_bytes = tensor.shape()[tensor.shape().rank() - 1];
  for (int64_t row = 0; row_bytes > 0 && row < tensor.element_count() / row_bytes; ++row) {
    for (int64_t at = 0; at < per_row; ++at) {
      const unsigned byte = bytes[static_cast<size_t>(row * row_bytes + at * bits / 8)];
      numbers.push_back(static_cast<double>((byte >> (at * bits % 8)) & ((1U << bits) - 1)));
    }
  }
  return numbers;
}

Status read_zeros(const OpContext& op, QuantizedTable& table) {
  const DType dtype = op.input(0).dtype();
  const double middle = dtype == DType::uint8 ? static_cast<double>(1 << (table.bits - 1)) : 0.0;
  table.zeros.assign(static_cast<size_t>(table.scales.element_count()), middle);
  if (!op.has_input(3)) return {};
  if (is_floating(dtype)) return wrong_input(op, 3, "not be given for a table of floats");
  const Shape& shape = op.input(3).shape();
  const int64_t blocks = table.scales[table.scales.rank() - 1];
  const int64_t row = table.packed ? (blocks * table.bits + 7) / 8 : blocks;
  if (blocks == 0 || shape.rank() != table.scales.rank() || shape[shape.rank() - 1] != row ||
      shape.element_count() / row != table.scales.element_count() / blocks)
    return wrong_input(op, 3, "have the shape of scales, {}, with a last axis of {}", table.scales.to_string(), row);
  table.zeros = read_numbers(op.input(3), table.bits, blocks);
  return {};
}

Result<QuantizedTable> read_table(const OpContext& op) {
  QuantizedTable table;
  const Tensor& data = op.input(0);
  const int64_t bits = op.int_attribute("bits");
  const bool bytes = data.dtype() == DType::uint8;
  if (bytes && bits != 2 && bits != 4 && bits != 8)
    return as_invalid_model(wrong_attribute("bits", bits, "be 2, 4 or 8 for uint8 data"));
  table.bits = bytes ? static_cast<int>(bits) : bits_of(data.dtype());
  table.packed = bytes && bits < 8;
  table.scales = op.input(2).shape();
  const size_t rank = data.shape().rank();
  if (rank == 0 || table.scales.rank() != rank)
    return wrong_input(op, 2, "have the rank of data, {}, which must be 1 or more", rank);
  const int64_t last = data.shape()[rank - 1] * (table.packed ? 8 / bits : 1);
  table.shape = PX_TRY(with_dim(data.shape(), rank - 1, last));
  table.quantize_axis = PX_TRY(normalize_axis(op.int_attribute("quantize_axis"), rank));
  const int64_t asked = op.int_attribute("block_size");
  const int64_t length = table.shape[table.quantize_axis];
  if (asked < 0 || (asked == 0 && !is_floating(data.dtype())))
    return as_invalid_model(wrong_attribute("block_size", asked, "be 1 or more, or 0 for floating data"));
  table.block = asked == 0 ? std::max<int64_t>(1, length) : asked;
  for (size_t axis = 0; axis < rank; ++axis) {
    const bool quantized = axis == table.quantize_axis;
    const int64_t blocks = length / table.block + (length % table.block != 0 ? 1 : 0);
    const int64_t wanted = quantized ? blocks : table.shape[axis];
    const bool repeated = !quantized && is_floating(data.dtype()) && table.scales[axis] == 1;
    if (table.scales[axis] != wanted && !repeated)
      return wrong_input(op, 2, "have size {} along axis {}, to fit data {} in blocks of {}", wanted, axis,
                         table.shape.to_string(), table.block);
  }
  table.numbers = read_numbers(data, table.bits, last);
  table.scale_numbers = read_numbers(op.input(2), 8, 0);
  PX_TRY(read_zeros(op, table));
  return table;
}

// ContribOperators.md, com.microsoft.GatherBlockQuantized: Gather, then (number - zero point) * scale of its block. An
// index out of range gives zeros, as the page has it; negative ones count from the end.
Status op_contrib_gather_block_quantized(OpContext& op) {
  const QuantizedTable table = PX_TRY(read_table(op));
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("gather_axis"), table.shape.rank()));
  if (table.packed && axis + 1 == table.shape.rank())
    return wrong_attribute("gather_axis", op.int_attribute("gather_axis"),
                           "not be the last axis, along which values of fewer than 8 bits are packed");
  const Shape& asked = op.input(1).shape();
  std::vector<int64_t> dims(table.shape.begin(), table.shape.end());
  dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), asked.begin(), asked.end());
  const Shape shape = PX_TRY(Shape::create(dims));
  const int64_t inner = count_of(table.shape, axis + 1, table.shape.rank());
  const int64_t length = table.shape[axis];
  const std::vector<int64_t> indices = to_int64s(op.input(1));
  std::vector<double> results(static_cast<size_t>(shape.element_count()), 0.0);
  for (size_t at = 0; at < results.size(); ++at) {
    const auto position = static_cast<int64_t>(at);
    const auto count = static_cast<int64_t>(indices.size());
    int64_t index = indices[static_cast<size_t>(position / inner % count)];
    if (index < -length || index >= length) continue;
    index += index < 0 ? length : 0;
    const int64_t outer = position / inner / count;
    results[at] = table.at((outer * length + index) * inner + position % inner);
  }
  return op.set_output(0, op.input(2).dtype(), shape, std::span<const double>(results));
}

constexpr OpRow kContribGatherQuantizedRows[] = {
    {"GatherBlockQuantized", kMicrosoft, 1, 1, op_contrib_gather_block_quantized},
};

}  // namespace

OpRows contrib_gather_quantized_rows() { return kContribGatherQuantizedRows; }

}  // namespace parallax::reference
