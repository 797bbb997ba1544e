// SPDX-License-Identifier: Apache-2.0
// Chooses the search by the evidence: statistics alone, one model, or two; runs that broke off are added.
#include "inspector/diff/diagnose/find_causes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "inspector/diff/localize/blame_statistics.h"
#include "inspector/diff/localize_models/blame_models.h"
#include "inspector/model/scope_tree.h"

namespace parallax {
namespace {

bool has_failure(const DumpReader& dump, const NodeFailure& failure) {
  return std::ranges::any_of(dump.failures(), [&](const NodeFailure& other) {
    return other.node == failure.node && other.message == failure.message;
  });
}

// The origin of a node of the main graph that the dump's run failed at.
void set_failed_source(const DumpReader& failed, Cause& cause) {
  if (failed.graphs().empty()) return;
  const auto model = failed.model(0);
  const NodeId node = model.ok() ? (*model)->graph.find_node(cause.node) : kNoNode;
  if (node != kNoNode) set_source((*model)->graph.nodes[static_cast<size_t>(node)], cause);
}

// Where one side's run broke off and the other's did not, last: what made it break may have been found before.
void add_failures(const DumpReader& failed, Side side, const DumpReader& other, Comparison& comparison) {
  for (const NodeFailure& failure : failed.failures()) {
    if (has_failure(other, failure)) continue;
    Cause cause;
    cause.rank = static_cast<int32_t>(comparison.causes.size()) + 1;
    cause.node = failure.node;
    cause.op = failure.op;
    cause.path = failure.path;
    cause.introduced = std::numeric_limits<double>::infinity();
    cause.side = side;
    cause.why = fmt::format("{}'s run broke off here: {}", side == Side::a ? "A" : "B", failure.message);
    set_failed_source(failed, cause);
    comparison.causes.push_back(std::move(cause));
  }
}

// Nothing before it could be judged, as in dumps that kept few values.
Cause first_that_differs(const ValueComparison& value) {
  Cause cause =
      cause_at(value, "the first value that differs; no node could be judged: what it is made of was not captured");
  cause.introduced = value.severity;
  return cause;
}

}  // namespace

Status find_causes(const BlameRequest& request, Comparison& comparison) {
  comparison.causes.clear();
  if (comparison.verdict == OverallVerdict::pass || request.oracle == nullptr) return {};
  if (auto cause = diff::first_by_statistics(request, comparison); cause.has_value()) {
    comparison.causes.push_back(std::move(*cause));
    return {};
  }
  comparison.causes = run_one_model(request) ? PX_TRY(blame_executions(request, comparison))
                                             : PX_TRY(blame_models(request, comparison));
  add_failures(*request.a.dump, Side::a, *request.b.dump, comparison);
  add_failures(*request.b.dump, Side::b, *request.a.dump, comparison);
  const ValueComparison* const first = first_diverged(comparison);
  const bool is_diverged = comparison.verdict == OverallVerdict::diverged && first != nullptr;
  if (comparison.causes.empty() && is_diverged) comparison.causes.push_back(first_that_differs(*first));
  return {};
}

}  // namespace parallax
