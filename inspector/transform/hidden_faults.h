// SPDX-License-Identifier: Apache-2.0
// Faulty nodes and absent weights put out of reach of a rewrite, and brought back after it.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "inspector/model/ir.h"

namespace parallax::transform {

// Nodes with a problem get an unknown operator, so that no rule is applied to them; absent weights of the main graph
// become inputs, so that their zeros are not computed with. A node whose bodies have absent weights is hidden, too.
class HiddenFaults {
 public:
  // A copy of `model`, of the problems that were recorded in it.
  explicit HiddenFaults(const Model& model);

  const std::shared_ptr<Model>& model() const { return model_; }
  // A model that was made of model(), with what is left of the hidden things brought back.
  std::shared_ptr<const Model> restored(const Model& rewritten) const;

 private:
  struct Operator {
    std::string op_type, domain, overload, problem;
  };

  struct Weight {
    StoredTensor stored;
    bool was_input = false;  // with a default
  };

  bool hide(Graph& graph);
  void hide_weights();
  void restore(Graph& graph) const;

  std::shared_ptr<Model> model_;
  std::unordered_map<std::string, Operator> operators_;  // by the name that stands in for them
  std::unordered_map<std::string, Weight> weights_;
};

}  // namespace parallax::transform
