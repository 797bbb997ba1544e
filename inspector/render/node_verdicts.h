// SPDX-License-Identifier: Apache-2.0
// The worst comparison of each node: what pictures of a comparison color nodes by.
#pragma once

#include <string>
#include <unordered_map>

#include "inspector/diff/comparison.h"
#include "inspector/model/ir.h"

namespace parallax {

class NodeVerdicts {
 public:
  explicit NodeVerdicts(const Comparison* comparison);  // may be null
  // `scope`: the static path of the graph the node stands in, "loop.body[*]//"; "" is the main graph. Null: the node
  // made nothing that the comparison knows.
  const ValueComparison* find(const std::string& scope, const Node& node) const;

 private:
  std::unordered_map<std::string, const ValueComparison*> worst_;  // by scope and display name
};

// The static path of the graph that is `attribute` of a node (empty: the function it calls) which stands in `scope`.
std::string scope_of_body(const std::string& scope, const Node& node, const std::string& attribute);

}  // namespace parallax
