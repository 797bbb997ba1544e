// SPDX-License-Identifier: Apache-2.0
// FallbackNode: a node that this executor has no kernel for, run by another one as a model of its own. Only where the
// user asked for it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "inspector/exec/executor.h"

namespace parallax::runtime {

class FallbackNode {
 public:
  // Errors: unsupported, where the node cannot stand alone (it has a body) or the other executor refuses it.
  static Result<std::unique_ptr<FallbackNode>> create(const Node& node, std::shared_ptr<Executor> executor,
                                                      const RunOptions& options);

  Result<std::vector<Value>> run(std::span<const Value> inputs);

 private:
  FallbackNode(const Node& node, std::shared_ptr<Executor> executor, const RunOptions& options);
  Status prepare(std::span<const Value> inputs);

  const Node& node_;
  std::shared_ptr<Executor> executor_;
  RunOptions options_;
  std::vector<TypeInfo> types_;  // of the inputs the session was made for
  std::unique_ptr<Session> session_;
};

}  // namespace parallax::runtime
