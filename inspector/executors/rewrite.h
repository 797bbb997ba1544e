// SPDX-License-Identifier: Apache-2.0
// The fast executor's rewriting as a verb: the patterns by name, a model after them, and what they did.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax {

struct RewritePattern {
  std::string_view name;
  bool on_by_default = false;
  std::string_view target;  // "standard", "microsoft" or "own": the first set that has it
  std::string_view description;
};
std::vector<RewritePattern> list_rewrite_patterns();  // in the order they are applied

struct AppliedPattern {
  std::string_view name;
  int64_t count = 0;  // changes: nodes replaced, dropped or folded
};

struct RewrittenModel {
  std::shared_ptr<const Model> model;
  int64_t nodes_before = 0, nodes_after = 0;  // nodes of bodies included, of functions not
  std::map<std::string, int64_t> custom_ops;  // by domain, other than ai.onnx: how many nodes
  std::vector<AppliedPattern> applied;        // patterns that changed something, in the order they are applied
  // Outputs that were declared with another shape than the rewritten graph is seen to compute, which it declares now.
  std::vector<std::string> corrected_outputs;
};

// `patterns`: a set ("standard", "standard+microsoft", "standard+microsoft+own", "default", "all"), names of patterns,
// or a set with "-NAME" and "+NAME", separated by commas. Errors: usage, naming an unknown pattern.
Result<RewrittenModel> rewrite_model(const Model& model, const std::string& patterns);

}  // namespace parallax
