// SPDX-License-Identifier: Apache-2.0
// Chooses the search by the evidence: statistics alone, one model, or two; runs that broke off are added.
#include "inspector/diff/diagnose/find_causes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "inspector/diff/compare/apply_diagnosis.h"
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

// Adds the failure of one side's run where the other's did not fail, last: its cause may have been found before.
void add_failures(const DumpReader& failed, Side side, const DumpReader& other, std::vector<Cause>& causes) {
  for (const NodeFailure& failure : failed.failures()) {
    if (has_failure(other, failure)) continue;
    Cause cause;
    cause.rank = static_cast<int32_t>(causes.size()) + 1;
    cause.node = failure.node;
    cause.op = failure.op;
    cause.path = failure.path;
    cause.introduced = std::numeric_limits<double>::infinity();
    cause.side = side;
    cause.why = fmt::format("{}'s run broke off here: {}", side == Side::a ? "A" : "B", failure.message);
    set_failed_source(failed, cause);
    causes.push_back(std::move(cause));
  }
}

// Nothing before it could be judged, as in dumps that kept few values.
Cause first_that_differs(const ValueComparison& value) {
  Cause cause =
      cause_at(value, "the first value that differs; no node could be judged: what it is made of was not captured");
  cause.introduced = value.severity;
  return cause;
}

Result<Diagnosis> find_all(const BlameRequest& request, const Comparison& comparison) {
  Diagnosis diagnosis;
  if (comparison.verdict == OverallVerdict::pass || request.oracle == nullptr) return diagnosis;
  if (auto cause = diff::first_by_statistics(request, comparison); cause.has_value()) {
    diagnosis.causes.push_back(std::move(*cause));
    return diagnosis;
  }
  if (run_one_model(request)) {
    PX_TRY(blame_executions(request, comparison, diagnosis));
  } else {
    PX_TRY(blame_models(request, comparison, diagnosis));
  }
  add_failures(*request.a.dump, Side::a, *request.b.dump, diagnosis.causes);
  add_failures(*request.b.dump, Side::b, *request.a.dump, diagnosis.causes);
  if (!diagnosis.causes.empty()) return diagnosis;
  const Comparison judged = applied(diagnosis, comparison);
  const ValueComparison* const first = first_diverged(judged);
  if (first != nullptr) diagnosis.causes.push_back(first_that_differs(*first));
  return diagnosis;
}

// Both sides run one model, and a node of A is B's, too.
void name_nodes_in_b(std::vector<Cause>& causes) {
  for (Cause& cause : causes) cause.node_b = cause.node;
}

}  // namespace

Result<Diagnosis> find_causes(const BlameRequest& request, const Comparison& comparison) {
  Diagnosis diagnosis = PX_TRY(find_all(request, comparison));
  if (run_one_model(request)) name_nodes_in_b(diagnosis.causes);
  return diagnosis;
}

}  // namespace parallax
