// SPDX-License-Identifier: Apache-2.0
// Operating on copies of models, and watching without the traces.
#include "tests/diagnosis/executor_faults/faulty_executor.h"

#include <atomic>
#include <limits>

#include "inspector/model/link.h"

namespace parallax::diagnosis {
namespace {

constexpr std::string_view kHidden = "fault__";

Attribute& attribute_of(Node& node, const std::string& name, AttributeType type) {
  for (Attribute& attribute : node.attributes) {
    if (attribute.name == name) return attribute;
  }
  Attribute& attribute = node.attributes.emplace_back();
  attribute.name = name;
  attribute.type = type;
  return attribute;
}

Attribute made(const std::string& name, int64_t value) {
  Attribute attribute;
  attribute.name = name;
  attribute.type = AttributeType::int_;
  attribute.value = value;
  return attribute;
}

// Every node of a graph and of its bodies, graphs before the bodies of their nodes.
template <class GraphT, class Visit>
void visit_graphs(GraphT& graph, const Visit& visit) {
  visit(graph);
  for (auto& node : graph.nodes) {
    for (auto& attribute : node.attributes) {
      if (auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) visit_graphs(**body, visit);
    }
  }
}

void link_all(Graph& graph) {
  for (Node& node : graph.nodes) {
    for (Attribute& attribute : node.attributes) {
      if (auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) link_all(**body);
    }
  }
  link_graph(graph);
}

class HidingObserver final : public Observer {
 public:
  explicit HidingObserver(Observer& inner) : inner_(inner) {}

  CaptureLevel wants(const ValueInfo& value_info) override {
    return is_hidden(value_info) ? CaptureLevel::none : inner_.wants(value_info);
  }
  bool wants_node_times() const override { return false; }
  Status begin_call(const CallInfo& call, std::span<const Value> inputs) override {
    return inner_.begin_call(call, inputs);
  }
  Status absent(const ValueInfo& value_info, const Absence& absence) override {
    return is_hidden(value_info) ? Status{} : inner_.absent(value_info, absence);
  }
  Status enter_body(const NodeLocation& node, const Frame& frame) override { return inner_.enter_body(node, frame); }
  Status leave_body(const NodeLocation& node, const Frame& frame) override { return inner_.leave_body(node, frame); }
  Status observe(const Observation& seen) override {
    return inner_.observe({seen.value_info, seen.frames, seen.value, nullptr, seen.stream});
  }
  Status node_failed(const NodeLocation& node, const FrameStack& frames, const Error& error) override {
    return inner_.node_failed(node, frames, error);
  }
  Status end_call(const CallInfo& call) override { return inner_.end_call(call); }

 private:
  static bool is_hidden(const ValueInfo& value_info) { return value_info.name.starts_with(kHidden); }
  Observer& inner_;
};

class FaultySession final : public Session {
 public:
  explicit FaultySession(std::unique_ptr<Session> inner) : inner_(std::move(inner)) {}
  Result<std::vector<Value>> run(std::span<const Value> inputs, Observer& observer, const CallInfo& call) override {
    HidingObserver hiding(observer);
    return inner_->run(inputs, hiding, call);
  }
  SessionStatistics statistics() const override { return inner_->statistics(); }

 private:
  std::unique_ptr<Session> inner_;
};

class FaultyExecutor final : public Executor {
 public:
  FaultyExecutor(Fault fault, std::shared_ptr<Executor> base, std::set<std::string> struck)
      : fault_(std::move(fault)), base_(std::move(base)), struck_(std::move(struck)) {}

  std::string name() const override { return "faulty"; }
  std::string device() const override { return base_->device(); }
  std::map<std::string, std::string> settings(const RunOptions& options) const override {
    return base_->settings(options);
  }
  Result<std::unique_ptr<Session>> prepare(std::shared_ptr<const Model> model, const RunOptions& options) override {
    const bool is_alone = model->graph.nodes.size() == 1;
    if (is_alone && fault_.in_context && struck_.contains(model->graph.nodes.front().display_name))
      return base_->prepare(std::move(model), options);
    auto spoilt = copy_model(*model);
    std::vector<Graph*> graphs;
    visit_graphs(spoilt->graph, [&](Graph& graph) { graphs.push_back(&graph); });
    for (Graph* graph : graphs) strike(*graph);
    link_all(spoilt->graph);
    resolve_operators(*spoilt);
    return std::unique_ptr<Session>(
        std::make_unique<FaultySession>(PX_TRY(base_->prepare(std::move(spoilt), options))));
  }

 private:
  void strike(Graph& graph) {
    for (Node& node : graph.nodes) node.name = node.display_name;  // added nodes must not rename the others
    const size_t count = graph.nodes.size();
    for (size_t index = 0; index < count; ++index) {
      const Node& node = graph.nodes[index];
      if (node.op_type != fault_.op || !struck_.contains(node.display_name)) continue;
      Surgeon surgeon(graph, index, ++variation_);
      fault_.strike(surgeon);
    }
  }

  Fault fault_;
  std::shared_ptr<Executor> base_;
  std::set<std::string> struck_;
  std::atomic<int64_t> variation_ = 0;
};

}  // namespace

ValueId Surgeon::add_value() {
  const auto id = static_cast<ValueId>(graph_.values.size());
  graph_.values.emplace_back().name = std::string(kHidden) + std::to_string(id);
  return id;
}

void Surgeon::set(const std::string& name, int64_t value) {
  attribute_of(node(), name, AttributeType::int_).value = value;
}
void Surgeon::set(const std::string& name, float value) {
  attribute_of(node(), name, AttributeType::float_).value = value;
}
void Surgeon::set(const std::string& name, std::string value) {
  attribute_of(node(), name, AttributeType::string).value = std::move(value);
}
void Surgeon::set(const std::string& name, std::vector<int64_t> value) {
  attribute_of(node(), name, AttributeType::ints).value = std::move(value);
}
void Surgeon::set(const std::string& name, std::vector<std::string> value) {
  attribute_of(node(), name, AttributeType::strings).value = std::move(value);
}

void Surgeon::rename_operator(const std::string& op) {
  node().op_type = op;
  node().schema = nullptr;
}

void Surgeon::swap_inputs(size_t first, size_t second) { std::swap(node().inputs[first], node().inputs[second]); }
void Surgeon::drop_input(size_t index) { node().inputs[index] = kNoValue; }
void Surgeon::read_instead(size_t index, const std::string& value) { replace_input(index, graph_.find_value(value)); }

ValueId Surgeon::take_output(size_t index) {
  given_ = node().outputs[index];
  const ValueId hidden = add_value();
  node().outputs[index] = hidden;
  return hidden;
}

// The node that made `value` writes to the output's old name.
void Surgeon::give_output(ValueId value) {
  for (Node& candidate : graph_.nodes) {
    for (ValueId& output : candidate.outputs) {
      if (output == value) output = given_;
    }
  }
}

ValueId Surgeon::emit(const std::string& op, const std::vector<ValueId>& inputs, const Attributes& attributes) {
  const ValueId output = add_value();
  Node& made_node = graph_.nodes.emplace_back();
  made_node.op_type = op;
  made_node.name = std::string(kHidden) + op + std::to_string(output);
  made_node.inputs = inputs;
  made_node.outputs = {output};
  made_node.attributes = attributes;
  return output;
}

ValueId Surgeon::constant(Tensor tensor) {
  const ValueId id = add_value();
  ValueDef& definition = graph_.values[static_cast<size_t>(id)];
  definition.type = TypeInfo::tensor(tensor.dtype());
  StoredTensor& stored = graph_.initializers.emplace_back();
  stored.name = definition.name;
  stored.tensor = std::move(tensor);
  graph_.initializer_values.push_back(id);
  return id;
}

ValueId Surgeon::numbers(const std::vector<int64_t>& values) { return constant(Tensor::vector<int64_t>(values)); }
ValueId Surgeon::number(float value) { return constant(Tensor::scalar(value)); }

ValueId Surgeon::through(DType narrow, ValueId value) {
  const ValueId there = emit("Cast", {value}, {made("to", static_cast<int64_t>(narrow))});
  return emit("Cast", {there}, {made("to", static_cast<int64_t>(DType::float32))});
}

ValueId Surgeon::sliced(ValueId value, int64_t axis, int64_t from, int64_t to) {
  return emit("Slice", {value, numbers({from}), numbers({to}), numbers({axis})});
}

ValueId Surgeon::rolled(ValueId value, int64_t axis) {
  constexpr int64_t kAfterAll = std::numeric_limits<int64_t>::max();
  return emit("Concat", {sliced(value, axis, 1, kAfterAll), sliced(value, axis, 0, 1)}, {made("axis", axis)});
}

ValueId Surgeon::transposed(ValueId value, std::vector<int64_t> order) {
  Attribute permutation;
  permutation.name = "perm";
  permutation.type = AttributeType::ints;
  permutation.value = std::move(order);
  return emit("Transpose", {value}, {permutation});
}

std::set<std::string> struck_nodes(const Fault& fault, const Model& model) {
  std::set<std::string> struck;
  int position = 0;
  visit_graphs(model.graph, [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      if (node.op_type != fault.op) continue;
      if (fault.nth < 0 || fault.nth == position) struck.insert(node.display_name);
      ++position;
    }
  });
  return struck;
}

std::shared_ptr<Executor> make_faulty_executor(const Fault& fault, std::shared_ptr<Executor> base,
                                               std::set<std::string> struck) {
  return std::make_shared<FaultyExecutor>(fault, std::move(base), std::move(struck));
}

}  // namespace parallax::diagnosis
