// Runs the nodes between matched values on A's values.
#include "inspector/diff/blame_models_regions.h"

#include <algorithm>

#include <fmt/format.h>

namespace parallax::diff {
namespace {

constexpr int kLongestChain = 96;

// The element type a graph declares, undefined where it does not.
DType declared_dtype(const ValueSite& site) { return site.graph->values[static_cast<size_t>(site.value)].type.dtype; }

}  // namespace

Result<Region> RegionRunner::run(int32_t target_a, int32_t target_b, const Instance& instance) const {
  Region region;
  Walk in_b{instance, false, target_b, {}, {}, 0};
  region.found = PX_TRY(compute(target_b, in_b));
  region.nodes_b = std::move(in_b.nodes);
  Walk in_a{instance, true, target_a, {}, {}, 0};
  region.expected = PX_TRY(compute(target_a, in_a));
  region.nodes_a = std::move(in_a.nodes);
  return region;
}

Result<Value> RegionRunner::known(int32_t id, const Walk& walk) const {
  const ModelSide& side = walk.in_a ? a_ : b_;
  if (side.is_constant(id)) {
    if (Value stored = side.stored(id); !stored.is_absent()) return stored;
    return side.captured(path_in(walk.instance, side.static_path(id)));
  }
  if (side.follows_from_constants(id)) return Value();  // part of the side's own definition
  const int32_t other = (walk.in_a ? matching_.b_of_a : matching_.a_of_b)[static_cast<size_t>(id)];
  const bool is_source = side.site(id).role != ValueSite::Role::node_output;
  if (other < 0 && !is_source) return Value();
  if (other >= 0 && id != walk.target) {
    const int32_t in_a = walk.in_a ? id : other;
    const DType mine = declared_dtype(side.site(id)), theirs = declared_dtype(a_.site(in_a));
    if (mine == theirs || mine == DType::undefined || theirs == DType::undefined || is_source)
      return a_.captured(path_in(walk.instance, a_.static_path(in_a)));
  }
  return is_source ? side.captured(path_in(walk.instance, side.static_path(id))) : Result<Value>(Value());
}

Result<Value> RegionRunner::value_of(int32_t id, Walk& walk) const {
  const auto before = walk.values.find(id);
  if (before != walk.values.end()) return before->second;
  Value value = PX_TRY(known(id, walk));
  if (value.is_absent()) value = PX_TRY(compute(id, walk));
  walk.values[id] = value;
  return value;
}

Result<Value> RegionRunner::compute(int32_t id, Walk& walk) const {
  const ModelSide& side = walk.in_a ? a_ : b_;
  const PlacedNode placed = side.producer(id);
  if (placed.id == kNoNode) return usage_error(fmt::format("value '{}' was not captured", side.site(id).name));
  if (++walk.depth > kLongestChain) return usage_error("too many nodes lie between two values that match");
  auto outputs = side.replay(placed, [&](int32_t read) { return value_of(read, walk); });
  --walk.depth;
  if (!outputs.ok()) return std::move(outputs).error();
  if (!side.follows_from_constants(id) && std::ranges::find(walk.nodes, placed) == walk.nodes.end())
    walk.nodes.push_back(placed);
  const Node& node = placed.node();
  for (size_t index = 0; index < node.outputs.size(); ++index) {
    const ValueSite* site =
        node.outputs[index] == kNoValue ? nullptr : placed.place->values[static_cast<size_t>(node.outputs[index])];
    if (site != nullptr) walk.values[site->id] = (*outputs)[index];
  }
  return walk.values[id];
}

}  // namespace parallax::diff
