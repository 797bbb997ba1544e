// SPDX-License-Identifier: Apache-2.0
// An integer attribute as a node holds it, without the schema's default.
#pragma once

#include <string_view>

#include "inspector/model/ir.h"

namespace parallax {

// `otherwise` where the node has no integer of that name.
inline int64_t stored_int(const Node& node, std::string_view name, int64_t otherwise) {
  const Attribute* attribute = find_attribute(node, name);
  const auto* number = attribute == nullptr ? nullptr : std::get_if<int64_t>(&attribute->value);
  return number == nullptr ? otherwise : *number;
}

}  // namespace parallax
