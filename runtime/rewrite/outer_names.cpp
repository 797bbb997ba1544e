// SPDX-License-Identifier: Apache-2.0
// Walks into the bodies that nodes hold.
#include "runtime/rewrite/outer_names.h"

#include "inspector/model/link.h"

namespace parallax::runtime {
namespace {

template <class Visit>
void visit_bodies(Node& node, const Visit& visit) {
  for (Attribute& attribute : node.attributes) {
    if (auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) visit(**body);
    if (auto* bodies = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
      for (auto& body : *bodies) visit(*body);
    }
  }
}

void rename(Graph& body, const Renames& names) {
  for (ValueId outer : body.outer_values) {
    std::string& name = body.values[static_cast<size_t>(outer)].name;
    if (const auto found = names.find(name); found != names.end()) name = found->second;
  }
  for (Node& node : body.nodes) visit_bodies(node, [&](Graph& inner) { rename(inner, names); });
}

}  // namespace

Renames renames_of(const GraphEdit& edit) {
  Renames names;
  for (const ValueAbsence& absence : edit.absences) {
    if (absence.kind == ValueAbsence::Kind::aliased)
      names.emplace(edit.name_of(absence.value), edit.name_of(edit.resolve(absence.value)));
  }
  return names;
}

void rename_outer_values(Node& node, const Renames& names) {
  visit_bodies(node, [&](Graph& body) { rename(body, names); });
}

std::set<std::string> names_read_by_bodies(const Graph& graph) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes) {
    for (const Graph* body : bodies_of(node)) {
      for (ValueId outer : body->outer_values) names.insert(body->values[static_cast<size_t>(outer)].name);
    }
  }
  return names;
}

}  // namespace parallax::runtime
