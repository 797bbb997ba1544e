// SPDX-License-Identifier: Apache-2.0
// Unpacks weights of 2, 4 and 8 bits.
#include "inspector/transform/blocked_table.h"

#include <utility>

#include "inspector/diff/tolerance/quantization.h"
#include "inspector/model/opset/opset_registry.h"
#include "inspector/model/stored_int.h"
#include "inspector/tensor/elements.h"

namespace parallax::transform {
namespace {

const Tensor* held_input(const Graph& graph, const Node& node, size_t port) {
  return port < node.inputs.size() ? diff::constant_tensor(graph, node.inputs[port]) : nullptr;
}

bool is_given(const Node& node, size_t port) { return port < node.inputs.size() && node.inputs[port] != kNoValue; }

struct Packing {
  int bits = 8;
  int64_t rows = 0, per_row = 0;  // numbers
};

// The numbers of rows, each of which begins with a byte of its own, low bits first; rows are filled up to `width`.
// Undefined where the tensor has another size.
Tensor unpacked(const Tensor& packed, const Packing& packing, int64_t width) {
  const bool is_signed = packed.dtype() == DType::int8 || packed.dtype() == DType::int4;
  const bool is_packed = packed.dtype() == DType::uint8 && packing.bits < 8;
  const int64_t row_bytes = (packing.per_row * packing.bits + 7) / 8;
  if (packed.element_count() != packing.rows * (is_packed ? row_bytes : packing.per_row)) return {};
  auto numbers = Tensor::allocate(is_signed ? DType::int8 : DType::uint8, Shape{packing.rows * width});
  if (!numbers.ok()) return {};
  std::byte* bytes = numbers->mutable_data();
  for (int64_t row = 0; row < packing.rows; ++row) {
    for (int64_t at = 0; at < width; ++at) {
      int64_t number = 0;
      if (at < packing.per_row && is_packed) {
        const int64_t bit = at * packing.bits;
        const auto byte = static_cast<unsigned>(packed.as<uint8_t>()[static_cast<size_t>(row * row_bytes + bit / 8)]);
        number = (byte >> (bit % 8)) & ((1U << packing.bits) - 1);
      } else if (at < packing.per_row) {
        number = element_as_int64(packed, row * packing.per_row + at);
      }
      bytes[row * width + at] = static_cast<std::byte>(number);
    }
  }
  return numbers.take();
}

Tensor filled(DType dtype, int64_t count, int64_t number) {
  auto tensor = Tensor::allocate(dtype, Shape{count});
  if (!tensor.ok()) return {};
  for (int64_t index = 0; index < count; ++index) tensor->mutable_data()[index] = static_cast<std::byte>(number);
  return tensor.take();
}

// The shape of a table by the attributes and inputs of its node; no rows where it is not one of this kind.
BlockedTable shape_of(const Node& node, const Tensor& data, int bits) {
  BlockedTable table;
  table.block = stored_int(node, "block_size", 128);
  if (table.block <= 0) return table;
  if (node.op_type == "MatMulNBits") {
    table.rows = stored_int(node, "N", 0);
    table.columns = stored_int(node, "K", 0);
  } else if (data.shape().rank() == 2 && stored_int(node, "gather_axis", 0) == 0 &&
             stored_int(node, "quantize_axis", 1) == 1) {
    table.rows = data.shape()[0];
    table.columns = data.shape()[1] * (data.dtype() == DType::uint8 ? 8 / bits : 1);
  }
  table.blocks = (table.columns + table.block - 1) / table.block;
  return table;
}

}  // namespace

bool reads_blocked_table(const Node& node) {
  return canonical_domain(node.domain) == "com.microsoft" && node.function == nullptr &&
         (node.op_type == "MatMulNBits" || node.op_type == "GatherBlockQuantized");
}

std::optional<BlockedTable> blocked_table_of(const Graph& graph, const Node& node) {
  if (!reads_blocked_table(node)) return std::nullopt;
  const bool is_product = node.op_type == "MatMulNBits";
  const Tensor* data = held_input(graph, node, is_product ? 1 : 0);
  const Tensor* scales = held_input(graph, node, 2);
  const Tensor* zero_points = held_input(graph, node, 3);
  const auto bits = static_cast<int>(stored_int(node, "bits", 4));
  if (data == nullptr || scales == nullptr || scales->dtype() != DType::float32 || is_floating(data->dtype()) ||
      (bits != 2 && bits != 4 && bits != 8) ||
      (is_given(node, 3) && (zero_points == nullptr || is_floating(zero_points->dtype()))) ||
      (is_product && (is_given(node, 4) || stored_int(node, "weight_prepacked", 0) != 0)))
    return std::nullopt;
  BlockedTable table = shape_of(node, *data, bits);
  const int64_t count = table.rows * table.blocks;
  if (count <= 0 || scales->element_count() != count) return std::nullopt;
  // Rows of MatMulNBits are stored in whole blocks.
  const int64_t width = table.blocks * table.block;
  const Tensor numbers = unpacked(*data, {bits, table.rows, is_product ? width : table.columns}, width);
  if (!numbers.defined()) return std::nullopt;
  const int64_t middle = data->dtype() == DType::uint8 ? int64_t{1} << (bits - 1) : 0;
  const Tensor zeros = zero_points == nullptr ? filled(numbers.dtype(), count, middle)
                                              : unpacked(*zero_points, {bits, table.rows, table.blocks}, table.blocks);
  if (!zeros.defined() || zeros.dtype() != numbers.dtype()) return std::nullopt;
  table.numbers = numbers.reshaped(Shape{count, table.block});
  table.scales = scales->reshaped(Shape{count});
  table.zero_points = zeros;
  return table;
}

}  // namespace parallax::transform
