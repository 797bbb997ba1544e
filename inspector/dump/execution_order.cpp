// SPDX-License-Identifier: Apache-2.0
// Looks paths up among a model's values, whose ids are in execution order.
#include "inspector/dump/execution_order.h"

#include <algorithm>
#include <limits>

namespace parallax::dump {
namespace {

constexpr int64_t kBehind = std::numeric_limits<int64_t>::max();

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
int64_t id_within(const GraphSites& body) {
  const auto own = std::ranges::find_if(body.values, [](const ValueSite* site) { return site != nullptr; });
  return own == body.values.end() ? kBehind : (*own)->id;
}

}  // namespace

Result<ExecutionOrder> ExecutionOrder::of(std::shared_ptr<const Model> model) {
  return ExecutionOrder(PX_TRY(SiteTable::build(std::move(model))));
}

const GraphSites* ExecutionOrder::body_of(const GraphSites& sites, const Frame& frame) {
  const auto [entry, is_new] = bodies_.try_emplace({&sites, frame.kind, frame.node}, nullptr);
  if (!is_new) return entry->second;
  const auto found = std::ranges::find_if(sites.children, [&](const GraphSites::Child& child) {
    const Node& node = sites.graph->nodes[static_cast<size_t>(child.node)];
    return node.display_name == frame.node && is_kind_of(child.attribute, frame.kind);
  });
  if (found != sites.children.end()) entry->second = found->sites.get();
  return entry->second;
}

std::vector<int64_t> ExecutionOrder::place_of(const ValuePath& path) {
  std::vector<int64_t> place = {-1};  // of no step: before all steps
  const GraphSites* sites = &sites_.main();
  for (const Frame& frame : path.frames) {
    if (frame.kind == Frame::Kind::step) {
      place.front() = frame.index;
      continue;
    }
    sites = body_of(*sites, frame);
    place.push_back(sites == nullptr ? kBehind : id_within(*sites));
    if (sites == nullptr) return place;
    place.push_back(frame.index);
  }
  const ValueId value = sites->graph->find_value(path.name);
  const ValueSite* site = value == kNoValue ? nullptr : sites->values[static_cast<size_t>(value)];
  place.push_back(site == nullptr ? kBehind : site->id);
  return place;
}

}  // namespace parallax::dump
