// SPDX-License-Identifier: Apache-2.0
// Building of plans, from the main graph down.
#include "reference/plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "inspector/base/check.h"
#include "inspector/exec/signature.h"
#include "inspector/model/opset/op_schema.h"
#include "reference/ops/sparse.h"

namespace parallax::reference {
namespace {

Result<const OpRow*> row_of(const Node& node) {
  if (node.function != nullptr) return static_cast<const OpRow*>(nullptr);
  if (node.schema == nullptr)
    return unsupported(fmt::format(
        "the operator is unknown at opset {}; import the domain that defines it, or register it", node.opset_version));
  const OpRow* row = find_row(node);
  if (row == nullptr) return unsupported("the reference has no function for this operator at this version");
  PX_TRY(check_node(node));
  return row;
}

class Builder {
 public:
  Builder(const GraphValues& value_infos, bool carries_double)
      : value_infos_(value_infos), graph_(*value_infos.graph), carries_double_(carries_double) {}

  Result<std::unique_ptr<GraphPlan>> build() {
    plan_->graph = &graph_;
    plan_->value_infos = &value_infos_;
    PX_TRY(add_constants());
    for (NodeId id : graph_.order) PX_TRY(add_node(id));
    find_last_readers();
    return std::move(plan_);
  }

 private:
  Status add_constants() {
    plan_->constants.resize(graph_.values.size());
    for (size_t index = 0; index < graph_.initializers.size(); ++index) {
      PX_TRY(add_constant(graph_.initializer_values[index], graph_.initializers[index].tensor));
    }
    for (size_t index = 0; index < graph_.sparse_initializers.size(); ++index) {
      const Tensor dense = PX_TRY(densify(graph_.sparse_initializers[index]));
      PX_TRY(add_constant(graph_.sparse_initializer_values[index], dense));
    }
    return {};
  }

  Status add_constant(ValueId value, const Tensor& tensor) {
    plan_->constants[static_cast<size_t>(value)] = carries_double_ ? PX_TRY(widen(tensor)) : tensor;
    return {};
  }

  Status add_node(NodeId id) {
    const Node& node = graph_.nodes[static_cast<size_t>(id)];
    NodePlan step;
    step.id = id;
    step.value_info = {node.display_name, versioned_op_name(node), &graph_, id};
    auto row = row_of(node);
    if (!row.ok()) return at_location(std::move(row).error(), value_infos_.scope, step.value_info);
    step.function = *row == nullptr ? nullptr : (*row)->function;
    for (const GraphValues::Child& child : value_infos_.children_of(id))
      step.bodies.push_back(PX_TRY(plan_body(child)));
    plan_->nodes.push_back(std::move(step));
    return {};
  }

  Result<BodyPlan> plan_body(const GraphValues::Child& child) {
    BodyPlan body;
    body.attribute = child.attribute;
    body.plan = PX_TRY(GraphPlan::build(*child.value_infos, carries_double_));
    body.outer = PX_TRY(child.value_infos->outer_values());
    return body;
  }

  // Walks backwards: the first node met that reads a value is its last reader. Graph outputs and constants stay.
  void find_last_readers() {
    std::vector<bool> needed(graph_.values.size(), false);
    for (ValueId output : graph_.outputs) needed[static_cast<size_t>(output)] = true;
    for (auto step = plan_->nodes.rbegin(); step != plan_->nodes.rend(); ++step) {
      const auto touch = [&](ValueId value) {
        if (value == kNoValue || needed[static_cast<size_t>(value)]) return;
        needed[static_cast<size_t>(value)] = true;
        step->last_read.push_back(value);
      };
      const Node& node = graph_.nodes[static_cast<size_t>(step->id)];
      for (ValueId value : node.outputs) touch(value);
      for (ValueId value : node.inputs) touch(value);
      for (const BodyPlan& body : step->bodies) {
        for (const auto& [inner, enclosing] : body.outer) touch(enclosing);
      }
    }
  }

  const GraphValues& value_infos_;
  const Graph& graph_;
  bool carries_double_;
  std::unique_ptr<GraphPlan> plan_ = std::make_unique<GraphPlan>();
};

}  // namespace

const BodyPlan* NodePlan::body(std::string_view attribute) const {
  const auto found = std::find_if(bodies.begin(), bodies.end(),
                                  [&](const BodyPlan& candidate) { return candidate.attribute == attribute; });
  return found == bodies.end() ? nullptr : &*found;
}

Result<std::unique_ptr<GraphPlan>> GraphPlan::build(const GraphValues& value_infos, bool carries_double) {
  return Builder(value_infos, carries_double).build();
}

}  // namespace parallax::reference
