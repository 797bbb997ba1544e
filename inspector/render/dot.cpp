// SPDX-License-Identifier: Apache-2.0
// Writes dot: one pass that decides what is drawn, one that writes clusters and nodes, one that writes edges.
#include "inspector/render/dot.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include <fmt/format.h>

#include "inspector/base/shown_text.h"
#include "inspector/base/text.h"
#include "inspector/exec/path_parts.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/scope_tree.h"
#include "inspector/render/graph_labels.h"
#include "inspector/render/markup.h"
#include "inspector/render/node_verdicts.h"
#include "inspector/render/scope_items.h"
#include "inspector/render/severity_style.h"

namespace parallax {
namespace {

constexpr size_t kMaxDotLabel = 48;

std::string quoted(std::string_view text) { return "\"" + dot_text(text) + "\""; }

// Not computed from anything: what else reads it is no neighbor.
bool is_constant(const Graph& graph, const ValueDef& value) {
  if (value.producer != kNoNode) return graph.nodes[static_cast<size_t>(value.producer)].inputs.empty();
  return value.initializer_index >= 0 || value.sparse_initializer_index >= 0;
}

std::vector<std::string> names_in(const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueDef& value : graph.values) names.push_back(value.name);
  for (const Node& node : graph.nodes) names.push_back(node.display_name);
  return names;
}

// Nodes of the main graph within `steps` edges of the value's producer and readers.
Result<std::set<NodeId>> nodes_near(const Graph& graph, const DotOptions& options) {
  const ValuePath path = PX_TRY(parse_value_path(options.focus));
  NodeId start = kNoNode;
  std::deque<std::pair<NodeId, int>> pending;
  if (!path.frames.empty()) {
    start = graph.find_node(path.frames.front().node);
  } else if (const ValueId value = graph.find_value(path.name); value != kNoValue) {
    start = graph.values[static_cast<size_t>(value)].producer;
    for (NodeId reader : graph.values[static_cast<size_t>(value)].readers) pending.emplace_back(reader, 1);
  } else {
    start = graph.find_node(path.name);
  }
  if (start == kNoNode && pending.empty())
    return usage_error(fmt::format("--focus: there is no value or node '{}' in the graph{}", options.focus,
                                   did_you_mean(options.focus, names_in(graph))));
  if (start != kNoNode) pending.emplace_front(start, 0);
  std::set<NodeId> near;
  while (!pending.empty()) {
    const auto [id, distance] = pending.front();
    pending.pop_front();
    if (!near.insert(id).second || distance >= options.focus_steps) continue;
    const Node& node = graph.nodes[static_cast<size_t>(id)];
    const auto visit = [&, next = distance + 1](ValueId value) {
      if (value == kNoValue) return;
      const ValueDef& definition = graph.values[static_cast<size_t>(value)];
      if (definition.producer != kNoNode) pending.emplace_back(definition.producer, next);
      const bool is_focus = start != kNoNode && definition.producer == start;
      if (is_constant(graph, definition) && !is_focus) return;
      if (definition.readers.size() > 32) return;  // a mask that everyone reads is no neighborhood
      for (NodeId reader : definition.readers) pending.emplace_back(reader, next);
    };
    for (ValueId input : node.inputs) visit(input);
    for (ValueId output : node.outputs) visit(output);
  }
  return near;
}

class DotWriter {
 public:
  explicit DotWriter(const DotOptions& options) : options_(options), verdicts_(options.comparison) {}

  std::string write(const Graph& graph, const std::set<NodeId>* only) {
    text_ =
        "digraph parallax {\n  rankdir=TB; compound=true; fontname=\"Helvetica\";\n"
        "  node [shape=box, style=\"filled,rounded\", fillcolor=\"#F3F3F3\", fontname=\"Helvetica\", fontsize=11];\n"
        "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#666666\"];\n";
    write_graph(graph, "", "g", 1, only);
    return text_ + edges_ + "}\n";
  }

 private:
  void line(int indent, const std::string& content) {
    text_.append(static_cast<size_t>(indent) * 2, ' ');
    text_ += content;
    text_ += '\n';
  }

  // `prefix` makes ids unique across graphs, `scope` finds the verdicts.
  void write_graph(const Graph& graph, const std::string& scope, const std::string& prefix, int indent,
                   const std::set<NodeId>* only) {
    const ScopeTree tree = build_scope_tree(graph);
    std::map<NodeId, std::string> drawn;  // node -> id of its box
    write_scope(graph, tree, 0, 0, scope, prefix, indent, only, drawn);
    for (ValueId input : graph.inputs) write_source(graph, input, prefix, indent, drawn);
    write_edges(graph, prefix, drawn);
    write_outputs(graph, prefix, indent, drawn);
  }

  void write_scope(const Graph& graph, const ScopeTree& tree, size_t index, int depth, const std::string& scope,
                   const std::string& prefix, int indent, const std::set<NodeId>* only,
                   std::map<NodeId, std::string>& drawn) {
    const Scope& location = tree.scopes[index];
    const bool is_folded = options_.depth >= 0 && depth > options_.depth;
    if (is_folded) return write_folded(graph, tree, index, scope, prefix, indent, only, drawn);
    const bool is_cluster = index != 0;
    if (is_cluster) {
      line(indent, fmt::format("subgraph cluster_{}_{} {{", prefix, index));
      const std::string title =
          location.class_name.empty() ? location.name : location.name + " : " + location.class_name;
      line(indent + 1, fmt::format("label={}; style=rounded; color=\"#AAAAAA\"; fontsize=11;", quoted(title)));
    }
    for (NodeId id : location.nodes) {
      if (only == nullptr || only->contains(id)) write_node(graph, id, scope, prefix, indent + 1, drawn);
    }
    for (int32_t child : location.children) {
      if (only == nullptr || any_below(tree, static_cast<size_t>(child), *only)) {
        write_scope(graph, tree, static_cast<size_t>(child), depth + 1, scope, prefix, indent + 1, only, drawn);
      }
    }
    if (is_cluster) line(indent, "}");
  }

  static void nodes_below(const ScopeTree& tree, size_t index, std::vector<NodeId>& nodes) {
    nodes.insert(nodes.end(), tree.scopes[index].nodes.begin(), tree.scopes[index].nodes.end());
    for (int32_t child : tree.scopes[index].children) nodes_below(tree, static_cast<size_t>(child), nodes);
  }

  static bool any_below(const ScopeTree& tree, size_t index, const std::set<NodeId>& only) {
    std::vector<NodeId> nodes;
    nodes_below(tree, index, nodes);
    return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) { return only.contains(id); });
  }

  void write_folded(const Graph& graph, const ScopeTree& tree, size_t index, const std::string& scope,
                    const std::string& prefix, int indent, const std::set<NodeId>* only,
                    std::map<NodeId, std::string>& drawn) {
    std::vector<NodeId> nodes;
    nodes_below(tree, index, nodes);
    const std::string box = fmt::format("{}_s{}", prefix, index);
    const ValueComparison* worst = nullptr;
    for (NodeId id : nodes) {
      if (only != nullptr && !only->contains(id)) continue;
      drawn[id] = box;
      const ValueComparison* verdict = verdict_of(graph, id, scope);
      if (verdict != nullptr && (worst == nullptr || is_worse(*verdict, *worst))) worst = verdict;
    }
    const Scope& location = tree.scopes[index];
    const std::string title = fmt::format("{}{}\n{} nodes", location.name,
                                          location.class_name.empty() ? "" : " : " + location.class_name, nodes.size());
    line(indent,
         fmt::format("{} [shape=box3d, label={}{}];", box, quoted(with_badge(title, worst)), style_text(worst)));
  }

  const ValueComparison* verdict_of(const Graph& graph, NodeId id, const std::string& scope) const {
    return verdicts_.find(scope, graph.nodes[static_cast<size_t>(id)]);
  }

  static std::string with_badge(const std::string& label, const ValueComparison* worst) {
    return worst == nullptr ? label : label + "\n" + style_of(*worst).badge;
  }

  static std::string style_text(const ValueComparison* worst) {
    if (worst == nullptr) return "";
    const SeverityStyle style = style_of(*worst);
    return fmt::format(", fillcolor=\"{}\", fontcolor=\"{}\", penwidth={}", style.fill, style.text, style.border_width);
  }

  void write_node(const Graph& graph, NodeId id, const std::string& scope, const std::string& prefix, int indent,
                  std::map<NodeId, std::string>& drawn) {
    const Node& node = graph.nodes[static_cast<size_t>(id)];
    const std::string box = fmt::format("{}_n{}", prefix, id);
    drawn[id] = box;
    std::string label = qualified_op(node) + "\n" + shorten(node.display_name, kMaxDotLabel);
    for (size_t slot = 0; slot < node.inputs.size(); ++slot) label += constant_line(graph, node, slot);
    const ValueComparison* verdict = verdict_of(graph, id, scope);
    const std::string style = node.problem.empty() ? style_text(verdict) : problem_style(node.problem);
    line(indent, fmt::format("{} [label={}{}{}];", box, quoted(with_badge(label, verdict)), style,
                             is_focus(graph, node, scope) ? ", class=\"culprit\"" : ""));
    for (size_t index = 0; index < node.attributes.size(); ++index) {
      const auto* body = std::get_if<std::shared_ptr<Graph>>(&node.attributes[index].value);
      if (body == nullptr || *body == nullptr) continue;
      write_body(node, node.attributes[index].name, **body, scope, fmt::format("{}b{}", box, index), box, indent);
    }
    if (node.function != nullptr && options_.depth != 0) {
      const auto bound = bind_function(*node.function, node);
      write_body(node, "", *bound, scope, box + "f", box, indent);
    }
  }

  // The node that the picture is about: it makes the value in focus, or reads it where no node makes it. A page that
  // shows a part of the picture finds it by its class.
  bool is_focus(const Graph& graph, const Node& node, const std::string& scope) const {
    if (options_.focus.empty() || static_scope_of(options_.focus) != scope) return false;
    const std::string name = unescape_name(std::string_view(options_.focus).substr(name_begin(options_.focus)));
    const auto is_named = [&](ValueId id) {
      return id != kNoValue && graph.values[static_cast<size_t>(id)].name == name;
    };
    const auto is_source = [&](ValueId id) {
      return is_named(id) && graph.values[static_cast<size_t>(id)].producer == kNoNode;
    };
    return node.display_name == name || std::ranges::any_of(node.outputs, is_named) ||
           std::ranges::any_of(node.inputs, is_source);
  }

  // A node that cannot be executed: the same look as in SVG.
  static std::string problem_style(const std::string& problem) {
    return fmt::format(", style=\"filled,rounded,dashed\", fillcolor=\"{}\", color=\"{}\", penwidth=2, tooltip={}",
                       kProblemFill, kProblemBorder, quoted(problem));
  }

  void write_body(const Node& node, const std::string& attribute, const Graph& body, const std::string& scope,
                  const std::string& prefix, const std::string& owner, int indent) {
    if (++body_depth_ <= kMaxBodyDepth) {
      line(indent, fmt::format("subgraph cluster_{} {{", prefix));
      line(indent + 1,
           fmt::format("label={}; style=\"rounded,dashed\"; color=\"#4477AA\";",
                       quoted(shorten(node.display_name, kMaxDotLabel) + (attribute.empty() ? "" : " " + attribute))));
      write_graph(body, scope_of_body(scope, node, attribute), prefix, indent + 1, nullptr);
      line(indent, "}");
      if (!body.order.empty()) {
        edges_ +=
            fmt::format("  {} -> {}_n{} [style=dashed, color=\"#4477AA\", lhead=\"cluster_{}\", arrowhead=none];\n",
                        owner, prefix, body.order.front(), prefix);
      }
    }
    --body_depth_;
  }

  // Small initializers and constants stand inside the node that reads them.
  std::string constant_line(const Graph& graph, const Node& node, size_t slot) const {
    const ValueId id = node.inputs[slot];
    if (id == kNoValue) return {};
    const ValueDef& value = graph.values[static_cast<size_t>(id)];
    if (value.initializer_index < 0 || value.input_index >= 0) return {};
    const StoredTensor& stored = graph.initializers[static_cast<size_t>(value.initializer_index)];
    return fmt::format("\n{}: {}", shorten(value.name, kMaxDotLabel), shorten(constant_text(stored, 6), kMaxDotLabel));
  }

  void write_source(const Graph& graph, ValueId id, const std::string& prefix, int indent,
                    const std::map<NodeId, std::string>& drawn) {
    const ValueDef& value = graph.values[static_cast<size_t>(id)];
    const bool is_read =
        std::any_of(value.readers.begin(), value.readers.end(), [&](NodeId reader) { return drawn.contains(reader); });
    if (!is_read) return;
    line(indent, fmt::format("{}_v{} [shape=ellipse, fillcolor=\"#CCDDAA\", label={}];", prefix, id,
                             quoted(shorten(value.name, kMaxDotLabel) + "\n" + to_string(value.type))));
  }

  std::string edge_label(const ValueDef& value) const {
    const bool is_known = value.type.kind != TypeInfo::Kind::unknown;
    return options_.shapes && is_known
               ? fmt::format(" [label={}]", quoted(shorten(to_string(value.type), kMaxDotLabel)))
               : "";
  }

  void write_edges(const Graph& graph, const std::string& prefix, const std::map<NodeId, std::string>& drawn) {
    std::set<std::pair<std::string, std::string>> seen;  // between two boxes one edge says enough
    for (const auto& [id, box] : drawn) {
      for (ValueId input : graph.nodes[static_cast<size_t>(id)].inputs) {
        if (input == kNoValue) continue;
        const ValueDef& value = graph.values[static_cast<size_t>(input)];
        std::string source;
        if (value.producer != kNoNode) {
          const auto producer = drawn.find(value.producer);
          if (producer != drawn.end()) source = producer->second;
        } else if (value.input_index >= 0) {
          source = fmt::format("{}_v{}", prefix, input);
        }
        if (source.empty() || source == box || !seen.emplace(source, box).second) continue;
        edges_ += fmt::format("  {} -> {}{};\n", source, box, edge_label(value));
      }
    }
  }

  void write_outputs(const Graph& graph, const std::string& prefix, int indent,
                     const std::map<NodeId, std::string>& drawn) {
    for (size_t index = 0; index < graph.outputs.size(); ++index) {
      const ValueDef& value = graph.values[static_cast<size_t>(graph.outputs[index])];
      const auto producer = drawn.find(value.producer);
      if (producer == drawn.end()) continue;
      const std::string box = fmt::format("{}_o{}", prefix, index);
      line(indent, fmt::format("{} [shape=ellipse, fillcolor=\"#BBCCEE\", label={}];", box,
                               quoted(shorten(value.name, kMaxDotLabel) + "\n" + to_string(value.type))));
      edges_ += fmt::format("  {} -> {};\n", producer->second, box);
    }
  }

  static constexpr int kMaxBodyDepth = 64;
  const DotOptions& options_;
  NodeVerdicts verdicts_;
  std::string text_;
  std::string edges_;
  int body_depth_ = 0;
};

}  // namespace

Result<std::string> graph_to_dot(const Graph& graph, const DotOptions& options) {
  DotWriter writer(options);
  if (options.focus.empty()) return writer.write(graph, nullptr);
  const std::set<NodeId> near = PX_TRY(nodes_near(graph, options));
  return writer.write(graph, &near);
}

int64_t count_nodes(const Graph& graph) {
  int64_t count = static_cast<int64_t>(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    for (const Attribute& attribute : node.attributes) {
      const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
      if (body != nullptr && *body != nullptr) count += count_nodes(**body);
    }
  }
  return count;
}

}  // namespace parallax
