// SPDX-License-Identifier: Apache-2.0
// Static scopes of paths, and the worst value under each.
#include "inspector/render/node_verdicts.h"

#include "inspector/exec/value_path.h"
#include "inspector/render/scope_items.h"
#include "inspector/render/severity_style.h"

namespace parallax {
NodeVerdicts::NodeVerdicts(const Comparison* comparison) {
  if (comparison == nullptr) return;
  for (const ValueComparison& value : comparison->values) {
    if (value.node.empty()) continue;
    const ValueComparison*& worst = worst_[static_scope_of(value.path) + value.node];
    if (worst == nullptr || is_worse(value, *worst)) worst = &value;
  }
}

const ValueComparison* NodeVerdicts::find(const std::string& scope, const Node& node) const {
  const auto found = worst_.find(scope + node.display_name);
  return found == worst_.end() ? nullptr : found->second;
}

std::string scope_of_body(const std::string& scope, const Node& node, const std::string& attribute) {
  const char* frame = attribute.empty()            ? ".call//"
                      : attribute == "then_branch" ? ".then//"
                      : attribute == "else_branch" ? ".else//"
                                                   : ".body[*]//";
  return scope + escape_name(node.display_name) + frame;
}

}  // namespace parallax
