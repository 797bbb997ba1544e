// SPDX-License-Identifier: Apache-2.0
// Checks that two dumps are of one model, and the origin of a node.
#include "inspector/diff/localize/blame.h"

#include <utility>

#include "inspector/model/scope_tree.h"

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

void set_source(const Node& node, Cause& cause) {
  SourceLocation source = source_of(node);
  cause.source_module = std::move(source.module);
  cause.source_line = std::move(source.line);
  cause.source_operator = std::move(source.operator_name);
}

}  // namespace parallax
