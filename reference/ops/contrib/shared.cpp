// SPDX-License-Identifier: Apache-2.0
// Broadcasting and channel orders for the operators of com.microsoft.
#include "reference/ops/contrib/shared.h"

#include "inspector/model/rule_errors.h"
#include "reference/ops/map.h"

namespace parallax::reference {

Result<std::vector<double>> broadcast_input(const OpContext& op, size_t index, const Shape& shape) {
  const Tensor& tensor = op.input(index);
  if (!broadcasts_to(tensor.shape(), shape)) return wrong_input(op, index, "broadcast to {}", shape.to_string());
  std::vector<double> values(static_cast<size_t>(shape.element_count()));
  BroadcastInput(tensor, shape).read<double>(0, values);
  return values;
}

Status expect_shape(const OpContext& op, size_t index, const Shape& shape) {
  const Shape& given = op.input(index).shape();
  if (given == shape) return {};
  return wrong_input(op, index, "have shape {}", shape.to_string());
}

std::vector<int64_t> channels_first(size_t rank) {
  std::vector<int64_t> perm{0, static_cast<int64_t>(rank) - 1};
  for (size_t axis = 1; axis + 1 < rank; ++axis) perm.push_back(static_cast<int64_t>(axis));
  return perm;
}

std::vector<int64_t> channels_last(size_t rank) {
  std::vector<int64_t> perm{0};
  for (size_t axis = 2; axis < rank; ++axis) perm.push_back(static_cast<int64_t>(axis));
  perm.push_back(1);
  return perm;
}

}  // namespace parallax::reference
