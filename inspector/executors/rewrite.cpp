// The choice of patterns by their names.
#include "inspector/executors/rewrite.h"

#include <set>
#include <sstream>

#include <fmt/format.h>

#include "runtime/plan/evaluate.h"
#include "runtime/rewrite/apply.h"

namespace parallax {

std::vector<RewritePattern> list_rewrite_patterns() {
  std::vector<RewritePattern> patterns;
  for (const runtime::Pattern& pattern : runtime::rewrite_patterns())
    patterns.push_back({pattern.name, pattern.on_by_default, pattern.description});
  return patterns;
}

Result<std::shared_ptr<const Model>> rewrite_model(const Model& model, const std::string& patterns) {
  std::set<std::string> names;
  std::istringstream list(patterns);
  for (std::string name; std::getline(list, name, ',');) {
    if (name != "default" && name != "all" && runtime::find_pattern(name) == nullptr)
      return usage_error(fmt::format("there is no rewrite pattern '{}'; `parallax rewrite --list` names them", name));
    names.insert(name);
  }
  if (names.empty()) return usage_error("--patterns names no pattern");
  std::vector<const runtime::Pattern*> chosen;
  for (const runtime::Pattern& pattern : runtime::rewrite_patterns()) {
    const bool is_on = names.contains("all") || (names.contains("default") && pattern.on_by_default) ||
                       names.contains(std::string(pattern.name));
    if (is_on) chosen.push_back(&pattern);
  }
  return runtime::apply_rewrite(model, chosen, {runtime::host_evaluation()});
}

}  // namespace parallax
