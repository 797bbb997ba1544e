// Which kind of blame a pair of dumps asks for.
#include "inspector/diff/blame.h"

#include "inspector/diff/blame_models.h"
#include "inspector/diff/blame_statistics.h"

namespace parallax {
namespace {

std::string model_hash(const BlameSide& side) {
  const auto executions = side.dump->executions();
  return executions.empty() ? "" : executions.front().model_sha256;
}

}  // namespace

// Dumps that name no model (imported tensors) are taken to be of one.
bool run_one_model(const BlameRequest& request) {
  if (request.a.model != nullptr && request.a.model == request.b.model) return true;
  const std::string a = model_hash(request.a), b = model_hash(request.b);
  return a.empty() || b.empty() || a == b;
}

Status find_causes(const BlameRequest& request, Comparison& comparison) {
  comparison.causes.clear();
  if (comparison.verdict == OverallVerdict::pass || request.oracle == nullptr) return {};
  if (auto cause = diff::first_by_statistics(request, comparison); cause.has_value()) {
    comparison.causes.push_back(std::move(*cause));
    return {};
  }
  comparison.causes = run_one_model(request) ? PX_TRY(blame_executions(request, comparison))
                                             : PX_TRY(blame_models(request, comparison));
  return {};
}

}  // namespace parallax
