// SPDX-License-Identifier: Apache-2.0
// Walking back from two values to the node that makes both; fingerprints of bodies.
#include "inspector/diff/localize_models/blame_models_swaps.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "inspector/diff/matching/matching_attributes.h"
#include "inspector/diff/matching/matching_graph.h"

namespace parallax::diff {
namespace {

constexpr int kLongestSwap = 8;

DType dtype_of(const ModelSide& side, int32_t id) {
  const ValueInfo& value_info = side.value_info(id);
  return value_info.graph->values[static_cast<size_t>(value_info.value)].type.dtype;
}

// The value and what it is made of, as long as that is one value.
std::vector<int32_t> chain_of(const ModelSide& side, int32_t id) {
  std::vector<int32_t> chain = {id};
  while (chain.size() < kLongestSwap) {
    const LocatedNode node = side.producer(chain.back());
    if (node.id == kNoNode || node.node().outputs.size() != 1) break;
    std::vector<int32_t> reads;
    for (const ValueId input : node.node().inputs) {
      const int32_t read = ModelSide::value_info_read(*node.location, input);
      if (read >= 0 && !side.follows_from_constants(read) && std::ranges::find(reads, read) == reads.end())
        reads.push_back(read);
    }
    if (reads.size() > 1) std::erase_if(reads, [&](int32_t read) { return !is_floating(dtype_of(side, read)); });
    if (reads.size() != 1) break;  // next to values, shapes do not count
    chain.push_back(reads.front());
  }
  return chain;
}

// The fingerprint of a body's nodes and the constants they read, independent of their order.
HashKey fingerprint(const ModelSide& side, const GraphValues& body) {
  HashKey sum = 0;
  for (const NodeId id : body.graph->order) {
    const Node& node = body.graph->nodes[static_cast<size_t>(id)];
    if (node.op_type == "Constant" || node.op_type == "Identity") continue;
    HashKey key = mix(hash_operator(node), hash_attributes(*body.graph, node));
    for (const ValueId input : node.inputs) {
      const int32_t read = ModelSide::value_info_read(body, input);
      const Value stored = read >= 0 && side.is_constant(read) ? side.stored(read) : Value();
      if (stored.is_tensor()) key += hash_tensor({"", stored.tensor(), "", {}, "", false, ""});
    }
    sum += mix(key, 1);
  }
  for (const GraphValues::Child& child : body.children) sum += mix(fingerprint(side, *child.value_infos), 2);
  return sum;
}

struct Branches {
  LocatedNode node;
  HashKey then_branch = 0, else_branch = 0;
};

void collect_branches(const ModelSide& side, const GraphValues& location, std::vector<Branches>& found) {
  for (const NodeId id : location.graph->order) {
    const GraphValues* then_branch = location.child(id, "then_branch");
    const GraphValues* else_branch = location.child(id, "else_branch");
    if (then_branch == nullptr || else_branch == nullptr) continue;
    found.push_back({{&location, id}, fingerprint(side, *then_branch), fingerprint(side, *else_branch)});
  }
  for (const GraphValues::Child& child : location.children) collect_branches(side, *child.value_infos, found);
}

}  // namespace

std::vector<LocatedNode> find_swapped_branches(const ModelSide& a, const ModelSide& b) {
  std::vector<Branches> in_a, in_b;
  collect_branches(a, a.value_infos().main(), in_a);
  collect_branches(b, b.value_infos().main(), in_b);
  std::vector<LocatedNode> swapped;
  for (const Branches& x : in_a) {
    const auto is_swapped = [&](const Branches& y) {
      return x.then_branch == y.else_branch && x.else_branch == y.then_branch;
    };
    const auto is_same = [&](const Branches& y) {
      return x.then_branch == y.then_branch && x.else_branch == y.else_branch;
    };
    if (x.then_branch == x.else_branch || std::ranges::any_of(in_b, is_same)) continue;
    if (std::ranges::count_if(in_b, is_swapped) == 1) swapped.push_back(x.node);
  }
  return swapped;
}

std::optional<CommonOrigin> common_origin(const ModelSide& side, int32_t first, int32_t second) {
  if (first < 0 || second < 0 || first == second) return std::nullopt;
  const auto output_of = [&](int32_t id) { return static_cast<size_t>(side.value_info(id).output_index); };
  const std::vector<int32_t> from_first = chain_of(side, first), from_second = chain_of(side, second);
  for (const int32_t x : from_first) {
    for (const int32_t y : from_second) {
      const LocatedNode node = side.producer(x);
      if (x == y || node.id == kNoNode || !(node == side.producer(y))) continue;
      return CommonOrigin{node, output_of(x), output_of(y)};
    }
  }
  return std::nullopt;
}

// Two nodes, each reading what the other should: it is the node before both that hands out its results the other way
// round.
void join_swapped_outputs(const ModelSide& a, bool names_agree, std::vector<ModelRoot>& roots) {
  for (size_t first = 0; first < roots.size(); ++first) {
    const auto origin = common_origin(a, roots[first].wanted, roots[first].instead);
    if (!origin.has_value()) continue;
    const auto is_other_half = [&](const ModelRoot& root) {
      const auto other = common_origin(a, root.wanted, root.instead);
      return other.has_value() && other->node == origin->node && other->first_output == origin->second_output &&
             other->second_output == origin->first_output;
    };
    const auto second =
        std::ranges::find_if(roots.begin() + static_cast<std::ptrdiff_t>(first) + 1, roots.end(), is_other_half);
    ModelRoot& root = roots[first];
    // By name, the reader reads what it should.
    const bool is_named_right = names_agree && root.b_reads == a.value_info(root.wanted).name;
    if (second == roots.end() && !is_named_right) continue;
    root.why = fmt::format("its outputs {} and {} are swapped in B: '{}' gets the other's", origin->first_output,
                           origin->second_output, root.node.node().display_name);
    root.node = origin->node;
    root.node_b = {};
    root.wanted = root.instead = -1;
    if (second == roots.end()) continue;
    root.introduced = std::max(root.introduced, second->introduced);
    roots.erase(second);
  }
  std::vector<ModelRoot> joined;
  for (ModelRoot& root : roots) {
    const auto known = std::ranges::find(joined, root.node, &ModelRoot::node);
    if (known == joined.end()) {
      joined.push_back(std::move(root));
    } else {
      known->introduced = std::max(known->introduced, root.introduced);
      known->also_seen_at.push_back(std::move(root.path));
    }
  }
  roots = std::move(joined);
}

}  // namespace parallax::diff
