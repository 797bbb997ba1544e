// The fast executor's rewriting as a verb: the patterns by name, and a model after them.
#pragma once

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
  std::string_view description;
};
std::vector<RewritePattern> list_rewrite_patterns();  // in the order they are applied

// `patterns`: "default", "all", or names separated by commas. Errors: usage, naming an unknown pattern.
Result<std::shared_ptr<const Model>> rewrite_model(const Model& model, const std::string& patterns);

}  // namespace parallax
