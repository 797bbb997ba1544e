// SPDX-License-Identifier: Apache-2.0
// The values of a graph by name, for code that looks up many: Graph::find_value walks over all of them.
#pragma once

#include <string_view>
#include <unordered_map>

#include "inspector/model/ir.h"

namespace parallax {

// As long as the graph keeps its values and their names.
using ValueNames = std::unordered_map<std::string_view, ValueId>;

// The value of this graph that each name stands for; the first where a name is defined twice.
inline ValueNames values_by_name(const Graph& graph) {
  ValueNames names;
  names.reserve(graph.values.size());
  for (size_t id = 0; id < graph.values.size(); ++id) names.emplace(graph.values[id].name, static_cast<ValueId>(id));
  return names;
}

inline ValueId find_value(const ValueNames& names, std::string_view name) {
  const auto found = names.find(name);
  return found == names.end() ? kNoValue : found->second;
}

}  // namespace parallax
