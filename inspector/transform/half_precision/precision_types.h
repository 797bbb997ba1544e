// SPDX-License-Identifier: Apache-2.0
// Small questions about types and calls that the walk over a model asks everywhere.
#pragma once

#include <algorithm>
#include <set>

#include "inspector/model/ir.h"
#include "inspector/model/link.h"

namespace parallax::transform {

inline bool is_float32_tensor(const TypeInfo& type) {
  return type.kind == TypeInfo::Kind::tensor && type.dtype == DType::float32;
}
inline bool is_known(const TypeInfo& type) {
  return type.kind != TypeInfo::Kind::unknown &&
         (type.kind != TypeInfo::Kind::tensor || type.dtype != DType::undefined);
}
// A sequence, optional or map with float32 somewhere in it.
inline bool holds_float32(const TypeInfo& type) {
  if (type.kind == TypeInfo::Kind::tensor || type.kind == TypeInfo::Kind::unknown) return false;
  if (type.kind == TypeInfo::Kind::sparse_tensor) return type.dtype == DType::float32;
  return std::ranges::any_of(type.inner,
                             [](const TypeInfo& inner) { return is_float32_tensor(inner) || holds_float32(inner); });
}

// Functions that an unchanged function calls are unchanged, too.
inline void add_with_calls(const Graph& body, std::set<const Function*>& functions) {
  for (const Node& node : body.nodes) {
    if (node.function != nullptr && functions.insert(node.function).second)
      add_with_calls(node.function->body, functions);
    for (const Graph* inner : bodies_of(node)) add_with_calls(*inner, functions);
  }
}

}  // namespace parallax::transform
