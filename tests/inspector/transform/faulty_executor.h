// SPDX-License-Identifier: Apache-2.0
// An executor that makes one deliberate mistake: the reference on a model that was changed without anybody's knowledge.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "inspector/model/link.h"
#include "tests/inspector/transform/models.h"

namespace parallax::testing {

// Changes the nodes of one graph; called for the main graph, every body and every function.
using Mistake = std::function<void(Graph&)>;

inline void change_graphs(Graph& graph, const Mistake& mistake) {
  mistake(graph);
  for (const Node& node : graph.nodes) {
    for (const Graph* body : bodies_of(node)) change_graphs(const_cast<Graph&>(*body), mistake);
  }
}

inline std::shared_ptr<Model> changed_copy(const Model& model, const Mistake& mistake) {
  auto copy = copy_model(model);
  change_graphs(copy->graph, mistake);
  for (const auto& function : copy->functions) change_graphs(function->body, mistake);
  resolve_operators(*copy);
  return copy;
}

// Every node of one operator computes another.
inline Mistake swapped(std::string op, std::string other) {
  return [op = std::move(op), other = std::move(other)](Graph& graph) {
    for (Node& node : graph.nodes) {
      if (node.op_type == op) node.op_type = other;
    }
  };
}

class FaultyExecutor final : public Executor {
 public:
  explicit FaultyExecutor(Mistake mistake) : inner_(make_executor("reference").take()), mistake_(std::move(mistake)) {}
  std::string name() const override { return "faulty"; }
  std::string device() const override { return inner_->device(); }
  std::map<std::string, std::string> settings(const RunOptions& options) const override {
    return inner_->settings(options);
  }
  Result<std::unique_ptr<Session>> prepare(std::shared_ptr<const Model> model, const RunOptions& options) override {
    return inner_->prepare(changed_copy(*model, mistake_), options);
  }

 private:
  std::shared_ptr<Executor> inner_;
  Mistake mistake_;
};

// Knows "faulty" besides all others.
inline ExecutorFactory executors_with(const Mistake& mistake) {
  return [mistake](const std::string& name) -> Result<std::shared_ptr<Executor>> {
    if (name == "faulty") return std::shared_ptr<Executor>(std::make_shared<FaultyExecutor>(mistake));
    return make_executor(name);
  };
}

}  // namespace parallax::testing
