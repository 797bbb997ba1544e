// SPDX-License-Identifier: Apache-2.0
// Walks from the indices of a node back to graph inputs, out of bodies and through what computes with integers.
#include "inspector/workbench/inputs/index_hint.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspector/model/link.h"
#include "inspector/model/value_names.h"
#include "inspector/tensor/elements.h"
#include "inspector/workbench/inputs/input_use.h"

namespace parallax {
namespace {

// Their results are indices into what they read, whatever it holds.
constexpr std::array<std::string_view, 6> kEnds = {"Shape", "Size", "ArgMax", "ArgMin", "NonZero", "TopK"};

struct Holder {
  const Graph* graph = nullptr;
  const Node* node = nullptr;
};

// The node that holds each body.
void find_holders(const Graph& graph, std::map<const Graph*, Holder>& holders) {
  for (const Node& node : graph.nodes) {
    for (const Graph* body : bodies_of(node)) {
      holders[body] = {&graph, &node};
      find_holders(*body, holders);
    }
  }
}

class Walk {
 public:
  explicit Walk(const Graph& main) : main_(main) { find_holders(main, holders_); }

  bool knows(const Graph& graph) const { return &graph == &main_ || holders_.contains(&graph); }

  // Inputs of the main graph that the value follows from, each with whether its elements are the value's own.
  void follow_all(const Graph& graph, ValueId id) {
    follow(graph, id, true);
    while (!waiting_.empty()) {
      const Waiting next = waiting_.back();
      waiting_.pop_back();
      look_at(*next.graph, value_at(*next.graph, next.id), next.is_same);
    }
  }

  const std::map<size_t, bool>& inputs() const { return inputs_; }

 private:
  struct Waiting {
    const Graph* graph = nullptr;
    ValueId id = kNoValue;
    bool is_same = false;
  };

  void follow(const Graph& graph, ValueId id, bool is_same) {
    if (id != kNoValue && seen_.emplace(&graph, id).second) waiting_.push_back({&graph, id, is_same});
  }

  void look_at(const Graph& graph, const ValueDef& value, bool is_same) {
    if (value.is_outer) return follow_outwards(graph, value, is_same);
    if (value.input_index >= 0) return follow_input(graph, value, is_same);
    if (value.producer == kNoNode) return;
    const Node& node = graph.nodes[static_cast<size_t>(value.producer)];
    if (std::ranges::find(kEnds, node.op_type) != kEnds.end()) return;
    const bool keeps = is_same && keeps_elements(graph, node);
    for (const ValueId input : node.inputs) {
      if (may_hold_indices(graph, input, node)) follow(graph, input, keeps);
    }
    for (const Graph* body : bodies_of(node)) follow_outputs(*body, value.output_index, node);
  }

  void follow_outwards(const Graph& graph, const ValueDef& value, bool is_same) {
    const auto holder = holders_.find(&graph);
    if (holder == holders_.end()) return;
    const auto [names, is_new] = names_.try_emplace(holder->second.graph);
    if (is_new) names->second = values_by_name(*holder->second.graph);
    follow(*holder->second.graph, find_value(names->second, value.name), is_same);
  }

  // Loop and Scan hand their inputs to the body's in order, and carried values from one iteration to the next.
  void follow_input(const Graph& graph, const ValueDef& value, bool is_same) {
    const auto index = static_cast<size_t>(value.input_index);
    if (&graph == &main_) {
      const auto [known, is_new] = inputs_.emplace(index, is_same);
      if (!is_new) known->second = known->second && is_same;
      return;
    }
    const auto holder = holders_.find(&graph);
    if (holder == holders_.end()) return;
    const Node& node = *holder->second.node;
    if (index < node.inputs.size()) follow(*holder->second.graph, node.inputs[index], false);
    const size_t carried = node.op_type == "Loop" ? index - 1 : index;
    if ((node.op_type != "Loop" || index > 0) && carried < graph.outputs.size())
      follow(graph, graph.outputs[carried], false);
  }

  // Follows the outputs of a branch or a loop.
  void follow_outputs(const Graph& body, int32_t output, const Node& node) {
    const size_t index = static_cast<size_t>(output) + (node.op_type == "Loop" ? 1 : 0);
    if (index < body.outputs.size()) follow(body, body.outputs[index], false);
  }

  static bool keeps_elements(const Graph& graph, const Node& node) {
    if (node.op_type != "Cast") return is_transparent(node) && node.op_type != "Clip";
    return !node.inputs.empty() && node.inputs[0] != kNoValue && is_integer(value_at(graph, node.inputs[0]).type.dtype);
  }

  // Floats are no indices, unless an input is cast to some.
  static bool may_hold_indices(const Graph& graph, ValueId id, const Node& reader) {
    if (id == kNoValue) return false;
    const ValueDef& value = value_at(graph, id);
    return !is_floating(value.type.dtype) || (reader.op_type == "Cast" && value.input_index >= 0);
  }

  const Graph& main_;
  std::map<const Graph*, Holder> holders_;
  std::map<const Graph*, ValueNames> names_;  // of graphs that a body reads
  std::set<std::pair<const Graph*, ValueId>> seen_;
  std::vector<Waiting> waiting_;
  std::map<size_t, bool> inputs_;
};

bool is_index(const InputUse& use) {
  return use.kind == InputUse::Kind::indices || use.kind == InputUse::Kind::locations ||
         use.kind == InputUse::Kind::tuples;
}

// All within a table of so many rows, from its end too.
bool are_within(const Value& value, int64_t rows) {
  if (!value.is_tensor() || !is_integer(value.tensor().dtype())) return false;
  const TensorView& view = value.tensor().view();
  for (int64_t index = 0; index < view.element_count(); ++index) {
    const int64_t element = element_as_int64(view, index);
    if (element < -rows || element >= rows) return false;
  }
  return true;
}

std::string name_of_input(const Graph& graph, size_t index) { return value_at(graph, graph.inputs[index]).name; }

std::string hint_for(const Graph& graph, const Node& node, const InputUse& use, const Walk& walk,
                     const std::vector<std::string>& generated, const std::vector<Value>& inputs) {
  std::vector<std::string> names, options;
  for (const auto& [index, is_same] : walk.inputs()) {
    const std::string name = name_of_input(graph, index);
    if (std::ranges::find(generated, name) == generated.end()) continue;
    if (is_same && use.is_limit_known && are_within(inputs[index], use.limit)) continue;
    names.push_back(name);
    options.push_back(is_same && use.is_limit_known ? fmt::format("--range {}=0..{}", name, use.limit - 1)
                                                    : fmt::format("--range {}=LO..HI", name));
  }
  if (names.empty()) return {};
  return fmt::format("; node '{}' takes {}, which follow from generated input{} '{}': choose {} by {}",
                     node.display_name, use.reason, names.size() == 1 ? "" : "s", fmt::join(names, "', '"),
                     names.size() == 1 ? "its integers" : "their integers", fmt::join(options, " "));
}

}  // namespace

std::string range_hint(const Graph& graph, const FailureWatcher& failure, const std::vector<std::string>& generated,
                       const std::vector<Value>& inputs) {
  if (failure.graph() == nullptr || generated.empty() || !Walk(graph).knows(*failure.graph())) return {};
  for (const NodeId id : failure.nodes()) {
    const Node& node = failure.graph()->nodes[static_cast<size_t>(id)];
    for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
      const auto use = meaning_at(*failure.graph(), node, slot);
      if (!use.has_value() || !is_index(*use)) continue;
      Walk walk(graph);
      walk.follow_all(*failure.graph(), node.inputs[slot]);
      std::string hint = hint_for(graph, node, *use, walk, generated, inputs);
      if (!hint.empty()) return hint;
    }
  }
  return {};
}

}  // namespace parallax
