// Follows the frames of a path through the site table.
#include "reference/override_paths.h"

#include <fmt/format.h>

namespace parallax::reference {
namespace {

bool leads_to(const Frame& frame, const GraphSites::Child& child, const Graph& graph) {
  if (graph.nodes[static_cast<size_t>(child.node)].display_name != frame.node) return false;
  switch (frame.kind) {
    case Frame::Kind::call:
      return child.attribute.empty();
    case Frame::Kind::then_branch:
      return child.attribute == "then_branch";
    case Frame::Kind::else_branch:
      return child.attribute == "else_branch";
    default:
      return child.attribute == "body";
  }
}

const GraphSites* enter(const GraphSites& place, const Frame& frame) {
  if (frame.kind == Frame::Kind::graph || frame.kind == Frame::Kind::step) return &place;
  for (const GraphSites::Child& child : place.children) {
    if (leads_to(frame, child, *place.graph)) return child.sites.get();
  }
  return nullptr;
}

}  // namespace

Status check_override_paths(const SiteTable& sites, const std::map<std::string, Value>& overrides) {
  for (const auto& [text, value] : overrides) {
    const ValuePath path = PX_TRY(parse_value_path(text));
    const GraphSites* place = &sites.main();
    for (const Frame& frame : path.frames) {
      place = place == nullptr ? nullptr : enter(*place, frame);
    }
    const ValueId id = place == nullptr ? kNoValue : place->graph->find_value(path.name);
    if (id == kNoValue || place->values[static_cast<size_t>(id)] == nullptr) {
      return usage_error(fmt::format("the override '{}' names no value of the model", text));
    }
  }
  return {};
}

}  // namespace parallax::reference
