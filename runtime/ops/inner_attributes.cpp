// SPDX-License-Identifier: Apache-2.0
// Attributes passed on to the nodes of inner_op.h, and integers of tensors.
#include "runtime/device/cpu/blocks.h"
#include "runtime/ops/inner_op.h"

namespace parallax::runtime {
std::vector<Attribute> passed_on(const OpCall& op, std::initializer_list<std::string_view> names) {
  std::vector<Attribute> attributes;
  for (std::string_view name : names) {
    if (const Attribute* found = find_attribute(op.node(), name)) attributes.push_back(*found);
  }
  return attributes;
}

Ints all_integers(const Tensor& tensor) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.element_count()));
  load_block<int64_t>(tensor.dtype(), tensor.view().data, 0, 1, tensor.element_count(), values.data());
  return values;
}

}  // namespace parallax::runtime
