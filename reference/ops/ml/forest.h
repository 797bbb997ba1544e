// SPDX-License-Identifier: Apache-2.0
// A forest of decision trees, whichever attributes described it: what the tree ensembles of ai.onnx.ml evaluate.
#pragma once

#include <set>
#include <vector>

#include "reference/ops/ml/shared.h"

namespace parallax::reference {

enum class BranchMode { leq, lt, gte, gt, eq, neq, member };
enum class Aggregate { average, sum, min, max };

struct Vote {
  int64_t target = 0;
  double weight = 0;
};

struct TreeNode {
  bool is_leaf = false;
  // Members of a branch:
  BranchMode mode = BranchMode::leq;
  int64_t feature = 0;
  double threshold = 0;
  std::set<double> members;
  bool missing_is_true = false;
  size_t true_node = 0;
  size_t false_node = 0;
  // Members of a leaf:
  std::vector<Vote> votes;
};

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<size_t> roots;
  int64_t targets = 0;

  // From the attributes nodes_* of TreeEnsembleClassifier and TreeEnsembleRegressor, with the votes of `votes`_treeids,
  // _nodeids, _ids and _weights ("class" or "target").
  static Result<Forest> from_tuples(const OpContext& op, const std::string& votes, int64_t targets);
  // From the attributes of TreeEnsemble.
  static Result<Forest> from_positions(const OpContext& op);

  // The aggregated votes of each target, without base values; 0 for a target nobody voted for. Errors: a feature beyond
  // those of x, or a cycle.
  Result<std::vector<double>> evaluate(std::span<const double> x, Aggregate aggregate) const;

 private:
  Result<const TreeNode*> leaf_of(size_t root, std::span<const double> x) const;
};

}  // namespace parallax::reference
