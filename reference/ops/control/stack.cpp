// SPDX-License-Identifier: Apache-2.0
// Stacking and slicing by runs of elements.
#include "reference/ops/control/stack.h"

#include "inspector/model/rule_errors.h"
#include "reference/ops/move.h"

namespace parallax::reference {

Result<Tensor> stack(const OpContext& op, const std::vector<Value>& items, size_t axis) {
  for (const Value& item : items) {
    if (!item.is_tensor()) return wrong_value("a value to be stacked", to_string(type_of(item)), "be a tensor");
    const bool alike =
        item.tensor().shape() == items[0].tensor().shape() && item.tensor().dtype() == items[0].tensor().dtype();
    if (!alike)
      return wrong_value("a value to be stacked", to_string(type_of(item)), "have the type and shape of the first, {}",
                         to_string(type_of(items[0])));
  }
  const Tensor& first = items[0].tensor();
  std::vector<int64_t> dims(first.shape().begin(), first.shape().end());
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), static_cast<int64_t>(items.size()));
  const Shape shape = PX_TRY(Shape::create(dims));
  Tensor output = PX_TRY(op.allocate(first.dtype(), shape));
  const int64_t outer = count_of(shape, 0, axis);
  const int64_t run = count_of(shape, axis + 1, shape.rank());
  const auto count = static_cast<int64_t>(items.size());
  for (int64_t index = 0; index < count; ++index) {
    const Tensor& item = items[static_cast<size_t>(index)].tensor();
    for (int64_t lead = 0; lead < outer; ++lead) copy_run(item, lead * run, output, (lead * count + index) * run, run);
  }
  return output;
}

Result<Tensor> slice_at(const OpContext& op, const Tensor& tensor, size_t axis, int64_t index) {
  const Shape& shape = tensor.shape();
  std::vector<int64_t> dims(shape.begin(), shape.end());
  dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
  const Shape rest = PX_TRY(Shape::create(dims));
  Tensor output = PX_TRY(op.allocate(tensor.dtype(), rest));
  const int64_t outer = count_of(shape, 0, axis);
  const int64_t run = count_of(shape, axis + 1, shape.rank());
  for (int64_t lead = 0; lead < outer; ++lead)
    copy_run(tensor, (lead * shape[axis] + index) * run, output, lead * run, run);
  return output;
}

}  // namespace parallax::reference
