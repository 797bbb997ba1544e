// SPDX-License-Identifier: Apache-2.0
// Builds the value table: one walk over the main graph, its bodies and the bodies of the functions it calls.
#include "inspector/exec/value_table.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspector/base/check.h"
#include "inspector/exec/feature_maps.h"
#include "inspector/model/link.h"
#include "inspector/model/random_operators.h"

namespace parallax {
namespace {

constexpr int kMaxDepth = 256;
constexpr size_t kMaxValueInfos = 4'000'000;
constexpr size_t kMaxNodes = 1'000'000;

// Operators whose output is data by its making, so that all elements being equal proves nothing wrong: constants, fills
// and masks.
constexpr std::array<std::string_view, 19> kConstantLikeOps = {
    "Constant", "ConstantOfShape", "EyeLike", "Range", "Shape",          "Size",        "OneHot", "Trilu", "IsNaN",
    "IsInf",    "Equal",           "Greater", "Less",  "GreaterOrEqual", "LessOrEqual", "Not",    "And",   "Or",
    "Xor"};
// Operators that only move or select elements: constant-like when all they read is.
constexpr std::array<std::string_view, 16> kMovingOps = {
    "Identity", "Cast",   "CastLike", "Reshape", "Transpose", "Unsqueeze", "Squeeze", "Expand",
    "Slice",    "Gather", "Concat",   "Where",   "Tile",      "Flatten",   "Pad",     "Split"};

constexpr std::array<std::string_view, 5> kShapingOps = {"Reshape", "Expand", "Tile", "Squeeze", "Unsqueeze"};

template <size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_standard(const Node& node) { return node.domain.empty() || node.domain == "ai.onnx"; }

// The frame text of a graph attribute, as it stands in static scopes.
std::string frame_of(const Node& node, std::string_view attribute) {
  const std::string name = escape_name(node.display_name);
  if (attribute.empty()) return name + ".call//";
  if (attribute == "then_branch") return name + ".then//";
  if (attribute == "else_branch") return name + ".else//";
  return name + ".body[*]//";
}

}  // namespace

const GraphValues* GraphValues::child(NodeId node, std::string_view attribute) const {
  for (const Child& candidate : children_of(node)) {
    if (candidate.attribute == attribute) return candidate.value_infos.get();
  }
  return nullptr;
}

std::span<const GraphValues::Child> GraphValues::children_of(NodeId node) const {
  const auto first = first_child_.find(node);
  if (first == first_child_.end()) return {};
  size_t end = first->second;
  while (end < children.size() && children[end].node == node) ++end;
  return std::span(children).subspan(first->second, end - first->second);
}

void GraphValues::add_child(Child child) {
  first_child_.emplace(child.node, children.size());
  children.push_back(std::move(child));
}

ValueId GraphValues::find_value(std::string_view name) const {
  std::call_once(is_indexed_, [&] { by_name_ = values_by_name(*graph); });
  return parallax::find_value(by_name_, name);
}

Result<std::vector<std::pair<ValueId, ValueId>>> GraphValues::outer_values() const {
  std::vector<std::pair<ValueId, ValueId>> pairs;
  for (ValueId value : graph->outer_values) {
    const std::string& name = graph->values[static_cast<size_t>(value)].name;
    const ValueId source = parent->find_value(name);
    if (source == kNoValue)
      return invalid_model(
          fmt::format("a body reads '{}', which graph '{}' does not have; it must be a value of an enclosing graph",
                      name, parent->graph->name));
    pairs.emplace_back(value, source);
  }
  return pairs;
}

Error at_location(Error error, std::string_view prefix, const NodeLocation& value_info, std::string_view executor) {
  std::string location = fmt::format("node '{}{}' ({})", prefix, value_info.node, value_info.op);
  std::vector<std::string> sources;
  for (const NodeId id : value_info.sources) {
    const Node& source = value_info.graph->nodes[static_cast<size_t>(id)];
    sources.push_back(fmt::format("{} '{}'", source.op_type, source.display_name));
  }
  if (!sources.empty()) location += fmt::format(", which stands for {}", fmt::join(sources, ", "));
  if (!executor.empty()) location += fmt::format(", {}", executor);
  return std::move(error).with_context(location).at_node(value_info.node, value_info.op);
}

class ValueTable::Builder {
 public:
  explicit Builder(ValueTable& table) : table_(table) {}

  Result<std::unique_ptr<GraphValues>> build(const Graph& graph, std::string scope, const GraphValues* parent,
                                             int depth) {
    node_count_ += graph.nodes.size();
    if (depth > kMaxDepth) return invalid_model("graphs and function calls nest deeper than 256");
    if (node_count_ > kMaxNodes || table_.value_infos_.size() > kMaxValueInfos) {
      return invalid_model("the model's functions expand to more than 1,000,000 nodes");
    }
    auto value_infos = std::make_unique<GraphValues>();
    value_infos->graph = &graph;
    value_infos->scope = std::move(scope);
    value_infos->parent = parent;
    value_infos->values.resize(graph.values.size());
    add_sources(*value_infos);
    for (size_t position = 0; position < graph.order.size(); ++position) {
      PX_TRY(add_node(*value_infos, graph.order[position], static_cast<int32_t>(position), depth));
    }
    link_outer(*value_infos);
    return value_infos;
  }

 private:
  ValueInfo& add_value_info(GraphValues& value_infos, ValueId value, ValueInfo::Role role) {
    ValueInfo& value_info = table_.value_infos_.emplace_back();
    const ValueDef& definition = value_infos.graph->values[static_cast<size_t>(value)];
    value_info.id = static_cast<int32_t>(table_.value_infos_.size()) - 1;
    value_info.role = role;
    value_info.name = definition.name;
    value_info.escaped_name = escape_name(definition.name);
    value_info.scope = value_infos.scope;
    value_info.graph = value_infos.graph;
    value_info.value = value;
    value_info.is_graph_output = definition.is_graph_output && value_infos.parent == nullptr;
    value_infos.values[static_cast<size_t>(value)] = &value_info;
    return value_info;
  }

  void add_sources(GraphValues& value_infos) {
    for (ValueId value : value_infos.graph->inputs) add_value_info(value_infos, value, ValueInfo::Role::input);
    const auto add_initializers = [&](const std::vector<ValueId>& values) {
      for (ValueId value : values) {
        if (value_infos.values[static_cast<size_t>(value)] != nullptr) continue;  // also an input: its default
        ValueInfo& value_info = add_value_info(value_infos, value, ValueInfo::Role::initializer);
        value_info.is_constant_like = true;
        value_info.follows_from_constants = true;
      }
    };
    add_initializers(value_infos.graph->initializer_values);
    add_initializers(value_infos.graph->sparse_initializer_values);
  }

  // The entry that a value of this graph names: its own, or one of an enclosing graph.
  static const ValueInfo* value_info_read(const GraphValues& value_infos, ValueId value) {
    const ValueInfo* value_info = value_infos.values[static_cast<size_t>(value)];
    const std::string& name = value_infos.graph->values[static_cast<size_t>(value)].name;
    for (const GraphValues* location = value_infos.parent; value_info == nullptr && location != nullptr;
         location = location->parent) {
      const ValueId found = location->find_value(name);
      if (found != kNoValue) value_info = location->values[static_cast<size_t>(found)];
    }
    return value_info;
  }

  bool reads_only_constants(const GraphValues& value_infos, const Node& node) const {
    const auto is_constant = [&](ValueId input) {
      const ValueInfo* value_info = input == kNoValue ? nullptr : value_info_read(value_infos, input);
      return input == kNoValue || (value_info != nullptr && value_info->is_constant_like);
    };
    // Only the first input of these operators has elements; the others (a shape, axes) are irrelevant.
    if (contains(kShapingOps, node.op_type)) return !node.inputs.empty() && is_constant(node.inputs.front());
    return std::all_of(node.inputs.begin(), node.inputs.end(), is_constant);
  }

  // Whatever computes it. Of bodies and functions nothing is claimed; shapes count as constants.
  bool follows_from_constants(const GraphValues& value_infos, const Node& node) const {
    if (is_standard(node) && (node.op_type == "Constant" || node.op_type == "Shape" || node.op_type == "Size"))
      return true;
    const bool is_plain = node.function == nullptr && bodies_of(node).empty() && !draws_at_random(node.op_type);
    return is_plain && !node.inputs.empty() && std::ranges::all_of(node.inputs, [&](ValueId input) {
             const ValueInfo* value_info = input == kNoValue ? nullptr : value_info_read(value_infos, input);
             return input == kNoValue || (value_info != nullptr && value_info->follows_from_constants);
           });
  }

  // An output of If is what one of its branches gives: data by its making where it is in both.
  static bool gives_constants(const GraphValues& value_infos, NodeId id, size_t output) {
    return std::ranges::all_of(std::array{"then_branch", "else_branch"}, [&](std::string_view attribute) {
      const GraphValues* branch = value_infos.child(id, attribute);
      if (branch == nullptr || output >= branch->graph->outputs.size()) return false;
      const ValueInfo* value_info = value_info_read(*branch, branch->graph->outputs[output]);
      return value_info != nullptr && value_info->is_constant_like;
    });
  }

  Status add_node(GraphValues& value_infos, NodeId id, int32_t position, int depth) {
    const Node& node = value_infos.graph->nodes[static_cast<size_t>(id)];
    PX_TRY(add_children(value_infos, id, depth));  // bodies run before the node's own outputs exist
    const bool from_constants = follows_from_constants(value_infos, node);
    const bool constant_like =
        from_constants ||
        (is_standard(node) && (contains(kConstantLikeOps, node.op_type) ||
                               (contains(kMovingOps, node.op_type) && reads_only_constants(value_infos, node))));
    const bool is_feature_map = gives_feature_maps(node, [&](ValueId input) {
      const ValueInfo* value_info = value_info_read(value_infos, input);
      return value_info != nullptr && value_info->is_feature_map;
    });
    for (size_t index = 0; index < node.outputs.size(); ++index) {
      if (node.outputs[index] == kNoValue) continue;
      ValueInfo& value_info = add_value_info(value_infos, node.outputs[index], ValueInfo::Role::node_output);
      value_info.node = node.display_name;
      value_info.op = node.op_type;
      value_info.domain = is_standard(node) ? "" : node.domain;
      value_info.output_index = static_cast<int32_t>(index);
      value_info.node_index = position;
      const bool is_if = is_standard(node) && node.op_type == "If";
      value_info.is_constant_like = constant_like || (is_if && gives_constants(value_infos, id, index));
      value_info.follows_from_constants = from_constants;
      value_info.is_feature_map = is_feature_map;
    }
    return {};
  }

  Status add_child(GraphValues& value_infos, NodeId id, const std::string& attribute, const Graph& body, int depth) {
    const Node& node = value_infos.graph->nodes[static_cast<size_t>(id)];
    auto child = PX_TRY(build(body, value_infos.scope + frame_of(node, attribute), &value_infos, depth + 1));
    value_infos.add_child({id, attribute, std::move(child)});
    return {};
  }

  Status add_children(GraphValues& value_infos, NodeId id, int depth) {
    const Node& node = value_infos.graph->nodes[static_cast<size_t>(id)];
    if (node.function != nullptr) {
      table_.bound_functions_.push_back(bind_function(*node.function, node));
      const Graph& body = *table_.bound_functions_.back();
      return add_child(value_infos, id, "", body, depth);
    }
    for (const Attribute& attribute : node.attributes) {
      const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
      if (body != nullptr && *body != nullptr) PX_TRY(add_child(value_infos, id, attribute.name, **body, depth));
    }
    return {};
  }

  // Runs once the enclosing entries are complete as far as this body can see: bodies are built after what they read.
  void link_outer(GraphValues& value_infos) {
    for (ValueId value : value_infos.graph->outer_values) {
      const std::string& name = value_infos.graph->values[static_cast<size_t>(value)].name;
      for (const GraphValues* location = value_infos.parent; location != nullptr; location = location->parent) {
        const ValueId found = location->find_value(name);
        if (found == kNoValue || location->values[static_cast<size_t>(found)] == nullptr) continue;
        value_infos.outer[value] = location->values[static_cast<size_t>(found)];
        break;
      }
    }
  }

  ValueTable& table_;
  size_t node_count_ = 0;
};

Result<ValueTable> ValueTable::build(std::shared_ptr<const Model> model) {
  ValueTable table;
  table.model_ = std::move(model);
  Builder builder(table);
  table.main_ = PX_TRY(builder.build(table.model_->graph, "", nullptr, 0));
  return table;
}

}  // namespace parallax
