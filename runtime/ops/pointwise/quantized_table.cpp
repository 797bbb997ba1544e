// SPDX-License-Identifier: Apache-2.0
// The constraints on the shapes of GatherBlockQuantized. Definition: ContribOperators.md.
#include "runtime/ops/pointwise/quantized_table.h"

#include "inspector/model/rule_errors.h"

namespace parallax::runtime {
namespace {

Status check_zero_points(const OpCall& op, const QuantizedTable& table) {
  if (!op.has_input(3)) return {};
  const int64_t blocks = table.scale_dims.back();
  Ints zero_dims = table.scale_dims;
  zero_dims[zero_dims.size() - 1] = table.is_packed ? (blocks * table.bits + 7) / 8 : blocks;
  if (is_floating(op.input(0).dtype()) || !(Ints(op.input(3).shape()) == zero_dims))
    return wrong_input(op, 3, "have shape {}, that of the scales, for integer data only", dims_text(zero_dims));
  return {};
}

// The result's axes: those of the indices in place of the one gathered along.
Status set_result(const OpCall& op, QuantizedTable& table) {
  const int64_t rank = table.dims.size();
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("gather_axis"), rank));
  if (table.is_packed && axis == rank - 1)
    return wrong_attribute("gather_axis", axis,
                           "not be the last axis, along which values of fewer than 8 bits are packed");
  table.gather_axis = axis;
  for (int64_t i = 0; i < axis; ++i) table.out.push_back(table.dims[i]);
  for (int64_t dim : op.input(1).shape()) table.out.push_back(dim);
  for (int64_t i = axis + 1; i < rank; ++i) table.out.push_back(table.dims[i]);
  return {};
}

}  // namespace

Result<QuantizedTable> quantized_table(const OpCall& op) {
  QuantizedTable table;
  const Tensor& data = op.input(0);
  const int64_t bits = op.integer("bits");
  const bool is_bytes = data.dtype() == DType::uint8;
  if (is_bytes && bits != 2 && bits != 4 && bits != 8)
    return wrong_attribute("bits", bits, "be 2, 4 or 8 for uint8 data");
  table.bits = is_bytes ? static_cast<int>(bits) : bits_of(data.dtype());
  table.is_packed = is_bytes && bits < 8;
  table.dims = Ints(data.shape());
  table.scale_dims = Ints(op.input(2).shape());
  const int64_t rank = table.dims.size();
  if (rank == 0 || table.scale_dims.size() != rank)
    return wrong_input(op, 2, "have the rank of data, {}, which must be 1 or more", rank);
  if (table.is_packed) table.dims[rank - 1] *= 8 / bits;
  table.axis = PX_TRY(OpCall::resolve_axis(op.integer("quantize_axis"), rank));
  const int64_t asked = op.integer("block_size"), length = table.dims[table.axis];
  if (asked < 0 || (asked == 0 && !is_floating(data.dtype())))
    return wrong_attribute("block_size", asked, "be 1 or more, or 0 for floating data");
  table.block = asked == 0 ? std::max<int64_t>(1, length) : asked;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const bool own = axis == table.axis;
    const int64_t wanted = own ? length / table.block + (length % table.block == 0 ? 0 : 1) : table.dims[axis];
    const bool repeated = !own && is_floating(data.dtype()) && table.scale_dims[axis] == 1;
    if (table.scale_dims[axis] != wanted && !repeated)
      return wrong_input(op, 2, "have size {} along axis {}, to fit the blocks of data", wanted, axis);
  }
  PX_TRY(check_zero_points(op, table));
  PX_TRY(set_result(op, table));
  return table;
}

}  // namespace parallax::runtime
