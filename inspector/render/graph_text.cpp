// SPDX-License-Identifier: Apache-2.0
// `show` as text: header, inputs, weights, nodes, outputs, then functions.
#include "inspector/render/graph_text.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "inspector/base/shown_text.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/scope_tree.h"
#include "inspector/render/graph_labels.h"

namespace parallax {
namespace {

class Printer {
 public:
  explicit Printer(const GraphTextOptions& options) : options_(options) {}

  std::string print(const Model& model) {
    print_header(model);
    print_problems(model);
    print_graph(model.graph, 0);
    for (const auto& function : model.functions) print_function(*function);
    return std::move(text_);
  }

 private:
  void line(int indent, std::string_view content) {
    text_.append(static_cast<size_t>(indent) * 2, ' ');
    text_ += printable(content);
    text_ += '\n';
  }

  void print_header(const Model& model) {
    std::string opsets;
    for (const OpsetImport& import : model.opset_imports) {
      opsets += fmt::format("{}{} {}", opsets.empty() ? "" : ", ", import.domain.empty() ? "ai.onnx" : import.domain,
                            import.version);
    }
    line(0, fmt::format("model {}", model.path));
    line(0, fmt::format("ir {}, opset {}{}", model.ir_version, opsets,
                        model.producer_name.empty()
                            ? ""
                            : fmt::format(", made by {} {}", model.producer_name, model.producer_version)));
  }

  // Those of nodes are printed with the nodes.
  void print_problems(const Model& model) {
    if (model.problems.empty()) return;
    line(0,
         fmt::format("cannot be executed: {} problem{}", model.problems.size(), model.problems.size() == 1 ? "" : "s"));
    for (const ModelProblem& problem : model.problems) {
      if (problem.node.empty()) line(1, fmt::format("problem {}: {}", problem.where, problem.message));
    }
  }

  void print_values(const Graph& graph, const std::vector<ValueId>& ids, std::string_view word, int indent) {
    for (ValueId id : ids)
      line(indent,
           fmt::format("{} {}: {}", word, escape_name(value_at(graph, id).name), to_string(value_at(graph, id).type)));
  }

  void print_initializers(const Graph& graph, int indent) {
    for (size_t index = 0; index < graph.initializers.size(); ++index) {
      const StoredTensor& stored = graph.initializers[index];
      const std::string name = escape_name(stored.name);
      if (!stored.absence.empty()) {
        const std::string type = to_string(value_at(graph, graph.initializer_values[index]).type);
        line(indent, fmt::format("weight {}: {}  ! not here: {}", name, type, stored.absence));
        continue;
      }
      const std::string content = small_tensor_text(stored.tensor);
      line(indent, fmt::format("weight {}: {}{}{}{}", name, name_of(stored.tensor.dtype()),
                               stored.tensor.shape().to_string(), content.empty() ? "" : " = ", content));
    }
    for (ValueId id : graph.sparse_initializer_values) {
      line(indent,
           fmt::format("weight {}: {}", escape_name(value_at(graph, id).name), to_string(value_at(graph, id).type)));
    }
  }

  void print_graph(const Graph& graph, int indent) {
    line(indent,
         fmt::format("graph {} ({} nodes)", graph.name.empty() ? "without name" : graph.name, graph.nodes.size()));
    print_values(graph, graph.inputs, "input ", indent + 1);
    print_initializers(graph, indent + 1);
    if (options_.depth >= 0) {
      print_folded(graph, indent + 1);
    } else {
      for (NodeId id : graph.order) print_node(graph, id, indent + 1);
    }
    print_values(graph, graph.outputs, "output", indent + 1);
  }

  std::string outputs_text(const Graph& graph, const Node& node) const {
    std::string text;
    for (ValueId output : node.outputs) {
      text += text.empty() ? "" : ", ";
      text += output == kNoValue ? "_" : name_text(value_at(graph, output).name);
      if (options_.shapes && output != kNoValue) text += ": " + to_string(value_at(graph, output).type);
    }
    return text;
  }

  void print_node(const Graph& graph, NodeId id, int indent) {
    const Node& node = graph.nodes[static_cast<size_t>(id)];
    std::string inputs;
    for (ValueId input : node.inputs) inputs += (inputs.empty() ? "" : ", ") + operand_text(graph, input);
    std::string attributes;
    for (const Attribute& attribute : node.attributes) {
      if (std::holds_alternative<std::shared_ptr<Graph>>(attribute.value)) continue;  // printed below
      attributes += (attributes.empty() ? " {" : ", ") + attribute_text(attribute);
    }
    if (!attributes.empty()) attributes += "}";
    line(indent, fmt::format("{} = {}({}){}  # {}{}{}", outputs_text(graph, node), qualified_op(node), inputs,
                             attributes, node.display_name, node.problem.empty() ? "" : "  ! ", node.problem));
    for (const Attribute& attribute : node.attributes) {
      const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
      if (body == nullptr || *body == nullptr) continue;
      line(indent + 1, attribute.name + ":");
      print_graph(**body, indent + 2);
    }
  }

  // Nodes of scopes down to the depth are printed, deeper scopes are one line each where their first node stands.
  void print_folded(const Graph& graph, int indent) {
    const ScopeTree tree = build_scope_tree(graph);
    std::vector<int> depths(tree.scopes.size(), 0);
    for (size_t index = 1; index < tree.scopes.size(); ++index) {
      depths[index] = depths[static_cast<size_t>(tree.scopes[index].parent)] + 1;
    }
    std::vector<bool> printed(tree.scopes.size(), false);
    for (NodeId id : graph.order) {
      auto scope = static_cast<size_t>(tree.scope_of_node[static_cast<size_t>(id)]);
      if (depths[scope] <= options_.depth) {
        print_node(graph, id, indent);
        continue;
      }
      while (depths[scope] > options_.depth + 1) scope = static_cast<size_t>(tree.scopes[scope].parent);
      if (!printed[scope]) line(indent, folded_text(graph, tree, scope));
      printed[scope] = true;
    }
  }

  static void count_operators(const Graph& graph, const ScopeTree& tree, size_t scope,
                              std::map<std::string, int64_t>& counts) {
    std::vector<size_t> pending = {scope};
    while (!pending.empty()) {
      const Scope& current = tree.scopes[pending.back()];
      pending.pop_back();
      for (NodeId id : current.nodes) ++counts[qualified_op(graph.nodes[static_cast<size_t>(id)])];
      for (int32_t child : current.children) pending.push_back(static_cast<size_t>(child));
    }
  }

  static std::string folded_text(const Graph& graph, const ScopeTree& tree, size_t scope) {
    std::map<std::string, int64_t> counts;
    count_operators(graph, tree, scope, counts);
    std::vector<std::pair<int64_t, std::string>> sorted;
    int64_t total = 0;
    for (const auto& [op, count] : counts) {
      sorted.emplace_back(-count, op);
      total += count;
    }
    std::sort(sorted.begin(), sorted.end());
    std::string operators;
    for (size_t index = 0; index < std::min<size_t>(5, sorted.size()); ++index) {
      operators += fmt::format("{}{} {}", operators.empty() ? "" : ", ", -sorted[index].first, sorted[index].second);
    }
    if (sorted.size() > 5) operators += ", ...";
    const Scope& location = tree.scopes[scope];
    return fmt::format("[{}]{} ({} nodes: {})", location.path,
                       location.class_name.empty() ? "" : " " + location.class_name, total, operators);
  }

  void print_function(const Function& function) {
    line(0, fmt::format("function {}.{}{}", function.domain, function.name,
                        function.overload.empty() ? "" : ":" + function.overload));
    for (const std::string& name : function.attribute_names) line(1, "attribute " + name);
    for (const Attribute& attribute : function.attribute_defaults) line(1, "attribute " + attribute_text(attribute));
    print_graph(function.body, 1);
  }

  GraphTextOptions options_;
  std::string text_;
};

}  // namespace

std::string graph_to_text(const Model& model, const GraphTextOptions& options) { return Printer(options).print(model); }

}  // namespace parallax
