// SPDX-License-Identifier: Apache-2.0
// Walks the value table along the frames of a path.
#include "inspector/exec/overrides.h"

#include <fmt/format.h>

namespace parallax {
namespace {

// The attribute that holds the body a frame leads into; empty for a function call, as in GraphValues::Child.
std::string_view attribute_of(Frame::Kind kind) {
  switch (kind) {
    case Frame::Kind::then_branch:
      return "then_branch";
    case Frame::Kind::else_branch:
      return "else_branch";
    case Frame::Kind::body:
      return "body";
    default:
      return "";
  }
}

bool names_value(const ValueTable& value_infos, const ValuePath& path) {
  const GraphValues* location = &value_infos.main();
  for (const Frame& frame : path.frames) {
    if (frame.kind == Frame::Kind::graph || frame.kind == Frame::Kind::step) continue;
    if (frame.kind == Frame::Kind::module) return false;
    location = location->child(location->graph->find_node(frame.node), attribute_of(frame.kind));
    if (location == nullptr) return false;
  }
  const ValueId id = location->graph->find_value(path.name);
  return id != kNoValue && location->values[static_cast<size_t>(id)] != nullptr;
}

}  // namespace

Status check_override_paths(const ValueTable& value_infos, const std::map<std::string, Value>& overrides) {
  for (const auto& [text, value] : overrides) {
    const ValuePath path = PX_TRY(parse_value_path(text));
    if (!names_value(value_infos, path))
      return usage_error(
          fmt::format("the override '{}' names no value of the model; `parallax show` lists them", text));
  }
  return {};
}

}  // namespace parallax
