// SPDX-License-Identifier: Apache-2.0
// Reading the two descriptions of a forest, and walking its trees.
#include "reference/ops/ml/forest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "reference/kernels/numbers.h"

namespace parallax::reference {
namespace {

constexpr std::array<std::string_view, 6> kModeNames = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                                        "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};

bool takes_true_branch(const TreeNode& node, double x) {
  if (std::isnan(x) && node.missing_is_true) return true;
  switch (node.mode) {
    case BranchMode::leq:
      return x <= node.threshold;
    case BranchMode::lt:
      return x < node.threshold;
    case BranchMode::gte:
      return x >= node.threshold;
    case BranchMode::gt:
      return x > node.threshold;
    case BranchMode::eq:
      return x == node.threshold;
    case BranchMode::neq:
      return x != node.threshold && !std::isnan(x);  // a missing value takes the false branch
    case BranchMode::member:
      return !std::isnan(x) && node.members.contains(x);
  }
  return false;
}

using NodeIndex = std::map<std::pair<int64_t, int64_t>, size_t>;  // (tree id, node id) -> position

// Which list of attributes is as long as the nodes; `optional` ones may be empty.
Status expect_lengths(std::initializer_list<std::pair<const char*, size_t>> lists, size_t count) {
  for (const auto& [name, length] : lists) PX_TRY(expect_count(name, length, static_cast<int64_t>(count)));
  return {};
}

// The node without a parent in each tree, in the order of the nodes. Node ids need not begin at 0 (the page of the
// classifier), so that no id tells the root.
Status find_roots(Forest& forest, const std::vector<int64_t>& trees) {
  std::vector<bool> is_child(forest.nodes.size(), false);
  for (const TreeNode& node : forest.nodes) {
    if (node.is_leaf) continue;
    is_child[node.true_node] = true;
    is_child[node.false_node] = true;
  }
  std::set<int64_t> seen;
  for (size_t index = 0; index < forest.nodes.size(); ++index) {
    if (is_child[index]) continue;
    if (!seen.insert(trees[index]).second)
      return invalid_model(fmt::format("tree {} has two roots; it must have one", trees[index]));
    forest.roots.push_back(index);
  }
  for (int64_t tree : trees) {
    if (!seen.contains(tree)) return invalid_model(fmt::format("tree {} has no root; it must have one", tree));
  }
  return {};
}

Status read_votes(const OpContext& op, const std::string& kind, const NodeIndex& locations, Forest& forest) {
  const auto ids = ints_or_empty(op, kind + "_ids");
  const auto nodes = ints_or_empty(op, kind + "_nodeids");
  const auto trees = ints_or_empty(op, kind + "_treeids");
  const auto weights = PX_TRY(numbers_attribute(op, kind + "_weights"));
  const auto count = static_cast<int64_t>(ids.size());
  PX_TRY(expect_count(kind + "_nodeids", nodes.size(), count));
  PX_TRY(expect_count(kind + "_treeids", trees.size(), count));
  PX_TRY(expect_count(kind + "_weights", weights.size(), count));
  for (size_t index = 0; index < ids.size(); ++index) {
    const auto location = locations.find({trees[index], nodes[index]});
    if (location == locations.end())
      return invalid_model(fmt::format("a vote is for node {} of tree {}; it must be for a node that is there",
                                       nodes[index], trees[index]));
    if (ids[index] < 0 || ids[index] >= forest.targets)
      return invalid_model(fmt::format("an entry of attribute '{}_ids' is {}; it must be in [0, {}), the targets", kind,
                                       ids[index], forest.targets));
    forest.nodes[location->second].votes.push_back({ids[index], weights[index]});
  }
  return {};
}

Result<std::vector<double>> tensor_attribute(const OpContext& op, std::string_view name) {
  const Tensor* tensor = op.find_tensor(name);
  if (tensor == nullptr || tensor->dtype() == DType::string)
    return invalid_model(fmt::format("attribute '{}' is {}; it must be a tensor of numbers", name,
                                     tensor == nullptr ? "missing" : "text"));
  const Numbers<double> numbers(*tensor);
  return std::vector<double>(numbers.span().begin(), numbers.span().end());
}

// The sets of members, each ended by a NaN, in the order of the nodes of mode BRANCH_MEMBER.
Status read_members(const OpContext& op, std::span<TreeNode> nodes) {
  std::vector<double> values;
  if (op.find_tensor("membership_values") != nullptr) values = PX_TRY(tensor_attribute(op, "membership_values"));
  auto next = values.begin();
  for (TreeNode& node : nodes) {
    if (node.mode != BranchMode::member) continue;
    if (next == values.end())
      return invalid_model("attribute 'membership_values' has too few sets; it must have one for each BRANCH_MEMBER");
    const auto end = std::find_if(next, values.end(), [](double value) { return std::isnan(value); });
    node.members.insert(next, end);
    next = end == values.end() ? end : end + 1;
  }
  if (next != values.end())
    return invalid_model("attribute 'membership_values' has too many sets; it must have one for each BRANCH_MEMBER");
  return {};
}

}  // namespace

Result<Forest> Forest::from_tuples(const OpContext& op, const std::string& votes, int64_t targets) {
  const auto features = ints_or_empty(op, "nodes_featureids");
  const auto modes = strings_or_empty(op, "nodes_modes");
  const auto thresholds = PX_TRY(numbers_attribute(op, "nodes_values"));
  const auto trees = ints_or_empty(op, "nodes_treeids");
  const auto ids = ints_or_empty(op, "nodes_nodeids");
  const auto true_ids = ints_or_empty(op, "nodes_truenodeids");
  const auto false_ids = ints_or_empty(op, "nodes_falsenodeids");
  auto missing = ints_or_empty(op, "nodes_missing_value_tracks_true");
  if (missing.empty()) missing.assign(ids.size(), 0);
  PX_TRY(expect_lengths({{"nodes_featureids", features.size()},
                         {"nodes_modes", modes.size()},
                         {"nodes_values", thresholds.size()},
                         {"nodes_treeids", trees.size()},
                         {"nodes_truenodeids", true_ids.size()},
                         {"nodes_falsenodeids", false_ids.size()},
                         {"nodes_missing_value_tracks_true", missing.size()}},
                        ids.size()));
  Forest forest;
  forest.targets = targets;
  NodeIndex locations;
  for (size_t index = 0; index < ids.size(); ++index) {
    if (locations.try_emplace({trees[index], ids[index]}, index).second) continue;
    return invalid_model(
        fmt::format("node {} of tree {} is given twice; it must be given once", ids[index], trees[index]));
  }
  for (size_t index = 0; index < ids.size(); ++index) {
    TreeNode node;
    node.is_leaf = modes[index] == "LEAF";
    if (!node.is_leaf) {
      const auto* mode = std::find(kModeNames.begin(), kModeNames.end(), modes[index]);
      const auto when_true = locations.find({trees[index], true_ids[index]});
      const auto when_false = locations.find({trees[index], false_ids[index]});
      if (mode == kModeNames.end())
        return invalid_model(fmt::format(
            "an entry of attribute 'nodes_modes' is '{}'; it must be LEAF or one of BRANCH_*", modes[index]));
      if (when_true == locations.end() || when_false == locations.end())
        return invalid_model(fmt::format("a child of node {} of tree {} is missing; it must be a node of the tree",
                                         ids[index], trees[index]));
      node.mode = static_cast<BranchMode>(mode - kModeNames.begin());
      node.feature = features[index];
      node.threshold = thresholds[index];
      node.missing_is_true = missing[index] != 0;
      node.true_node = when_true->second;
      node.false_node = when_false->second;
    }
    forest.nodes.push_back(std::move(node));
  }
  PX_TRY(find_roots(forest, trees));
  PX_TRY(read_votes(op, votes, locations, forest));
  return forest;
}

Result<Forest> Forest::from_positions(const OpContext& op) {
  const auto features = ints_or_empty(op, "nodes_featureids");
  const auto modes = PX_TRY(tensor_attribute(op, "nodes_modes"));
  const auto thresholds = PX_TRY(tensor_attribute(op, "nodes_splits"));
  const auto true_ids = ints_or_empty(op, "nodes_truenodeids");
  const auto false_ids = ints_or_empty(op, "nodes_falsenodeids");
  const auto true_leafs = ints_or_empty(op, "nodes_trueleafs");
  const auto false_leafs = ints_or_empty(op, "nodes_falseleafs");
  const auto leaf_targets = ints_or_empty(op, "leaf_targetids");
  const auto leaf_weights = PX_TRY(tensor_attribute(op, "leaf_weights"));
  auto missing = ints_or_empty(op, "nodes_missing_value_tracks_true");
  const size_t count = features.size();
  if (missing.empty()) missing.assign(count, 0);
  PX_TRY(expect_lengths({{"nodes_modes", modes.size()},
                         {"nodes_splits", thresholds.size()},
                         {"nodes_truenodeids", true_ids.size()},
                         {"nodes_falsenodeids", false_ids.size()},
                         {"nodes_trueleafs", true_leafs.size()},
                         {"nodes_falseleafs", false_leafs.size()},
                         {"nodes_missing_value_tracks_true", missing.size()}},
                        count));
  PX_TRY(expect_count("leaf_weights", leaf_weights.size(), static_cast<int64_t>(leaf_targets.size())));
  if (!op.find_int("n_targets").has_value()) return invalid_model("attribute 'n_targets' is missing; it must be given");
  Forest forest;
  forest.targets = *op.find_int("n_targets");
  // The leaves follow the branches.
  const auto position = [&](int64_t id, int64_t is_leaf) -> Result<size_t> {
    const size_t limit = is_leaf != 0 ? leaf_targets.size() : count;
    if (id >= 0 && static_cast<size_t>(id) < limit) return static_cast<size_t>(id) + (is_leaf != 0 ? count : 0);
    return invalid_model(
        fmt::format("a branch leads to {} {}; it must be in [0, {})", is_leaf != 0 ? "leaf" : "node", id, limit));
  };
  for (size_t index = 0; index < count; ++index) {
    if (!(modes[index] >= 0 && modes[index] <= static_cast<double>(BranchMode::member)))
      return invalid_model(fmt::format("an entry of attribute 'nodes_modes' is {}; it must be in [0, {}]", modes[index],
                                       static_cast<int>(BranchMode::member)));
    TreeNode node;
    node.mode = static_cast<BranchMode>(static_cast<int>(modes[index]));
    node.feature = features[index];
    node.threshold = thresholds[index];
    node.missing_is_true = missing[index] != 0;
    node.true_node = PX_TRY(position(true_ids[index], true_leafs[index]));
    node.false_node = PX_TRY(position(false_ids[index], false_leafs[index]));
    forest.nodes.push_back(std::move(node));
  }
  PX_TRY(read_members(op, forest.nodes));
  for (size_t index = 0; index < leaf_targets.size(); ++index) {
    if (leaf_targets[index] < 0 || leaf_targets[index] >= forest.targets)
      return invalid_model(
          fmt::format("an entry of attribute 'leaf_targetids' is {}; it must be in [0, {}), the targets",
                      leaf_targets[index], forest.targets));
    TreeNode leaf;
    leaf.is_leaf = true;
    leaf.votes.push_back({leaf_targets[index], leaf_weights[index]});
    forest.nodes.push_back(std::move(leaf));
  }
  for (int64_t root : ints_or_empty(op, "tree_roots")) forest.roots.push_back(PX_TRY(position(root, 0)));
  return forest;
}

Result<const TreeNode*> Forest::leaf_of(size_t root, std::span<const double> x) const {
  const TreeNode* node = &nodes[root];
  for (size_t depth = 0; !node->is_leaf; ++depth) {
    if (depth > nodes.size()) return invalid_model("a tree has a cycle; each branch must lead away from the root");
    if (node->feature < 0 || node->feature >= static_cast<int64_t>(x.size()))
      return wrong_value("the feature that a tree asks for", node->feature, "be in [0, {}), the columns of the input",
                         x.size());
    const bool taken = takes_true_branch(*node, x[static_cast<size_t>(node->feature)]);
    node = &nodes[taken ? node->true_node : node->false_node];
  }
  return node;
}

Result<std::vector<double>> Forest::evaluate(std::span<const double> x, Aggregate aggregate) const {
  std::vector<double> results(static_cast<size_t>(targets), 0.0);
  std::vector<bool> voted(results.size(), false);
  for (size_t root : roots) {
    const TreeNode* leaf = PX_TRY(leaf_of(root, x));
    for (const Vote& vote : leaf->votes) {
      const auto target = static_cast<size_t>(vote.target);
      double& result = results[target];
      if (!voted[target] || aggregate == Aggregate::sum || aggregate == Aggregate::average) {
        result += vote.weight;
      } else {
        result = aggregate == Aggregate::min ? std::min(result, vote.weight) : std::max(result, vote.weight);
      }
      voted[target] = true;
    }
  }
  if (aggregate == Aggregate::average && !roots.empty()) {
    for (double& result : results) result /= static_cast<double>(roots.size());
  }
  return results;
}

}  // namespace parallax::reference
