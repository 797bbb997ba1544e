// SPDX-License-Identifier: Apache-2.0
// Looks paths up among a model's values, whose ids are in execution order.
#include "inspector/dump/convert/execution_order.h"

#include <algorithm>
#include <limits>

namespace parallax::dump {
namespace {

constexpr int64_t kAfter = std::numeric_limits<int64_t>::max();

bool is_kind_of(const std::string& attribute, Frame::Kind kind) {
  switch (kind) {
    case Frame::Kind::call:
      return attribute.empty();
    case Frame::Kind::then_branch:
      return attribute == "then_branch";
    case Frame::Kind::else_branch:
      return attribute == "else_branch";
    case Frame::Kind::body:
      return !attribute.empty() && attribute != "then_branch" && attribute != "else_branch";
    default:
      return false;
  }
}

// Any of a body's ids: all of them stand together, before the outputs of the node whose body it is.
int64_t id_within(const GraphValues& body) {
  const auto own = std::ranges::find_if(body.values, [](const ValueInfo* value_info) { return value_info != nullptr; });
  return own == body.values.end() ? kAfter : (*own)->id;
}

}  // namespace

Result<ExecutionOrder> ExecutionOrder::of(std::shared_ptr<const Model> model) {
  return ExecutionOrder(PX_TRY(ValueTable::build(std::move(model))));
}

const GraphValues* ExecutionOrder::body_of(const GraphValues& value_infos, const Frame& frame) {
  const auto [entry, is_new] = bodies_.try_emplace({&value_infos, frame.kind, frame.node}, nullptr);
  if (!is_new) return entry->second;
  const auto found = std::ranges::find_if(value_infos.children, [&](const GraphValues::Child& child) {
    const Node& node = value_infos.graph->nodes[static_cast<size_t>(child.node)];
    return node.display_name == frame.node && is_kind_of(child.attribute, frame.kind);
  });
  if (found != value_infos.children.end()) entry->second = found->value_infos.get();
  return entry->second;
}

std::vector<int64_t> ExecutionOrder::location_of(const ValuePath& path) {
  std::vector<int64_t> location = {-1};  // of no step: before all steps
  const GraphValues* value_infos = &value_infos_.main();
  for (const Frame& frame : path.frames) {
    if (frame.kind == Frame::Kind::step) {
      location.front() = frame.index;
      continue;
    }
    value_infos = body_of(*value_infos, frame);
    location.push_back(value_infos == nullptr ? kAfter : id_within(*value_infos));
    if (value_infos == nullptr) return location;
    location.push_back(frame.index);
  }
  const ValueId value = value_infos->find_value(path.name);
  const ValueInfo* value_info = value == kNoValue ? nullptr : value_infos->values[static_cast<size_t>(value)];
  location.push_back(value_info == nullptr ? kAfter : value_info->id);
  return location;
}

}  // namespace parallax::dump
