// SPDX-License-Identifier: Apache-2.0
// Builds the value table: one walk over the main graph, its bodies and the bodies of the functions it calls.
#include "inspector/exec/sites.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspector/base/check.h"
#include "inspector/exec/images.h"
#include "inspector/model/link.h"
#include "inspector/model/random_operators.h"

namespace parallax {
namespace {

constexpr int kMaxDepth = 256;
constexpr size_t kMaxSites = 4'000'000;
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

const GraphSites* GraphSites::child(NodeId node, std::string_view attribute) const {
  for (const Child& candidate : children) {
    if (candidate.node == node && candidate.attribute == attribute) return candidate.sites.get();
  }
  return nullptr;
}

Result<std::vector<std::pair<ValueId, ValueId>>> GraphSites::outer_values(const Graph& enclosing) const {
  std::vector<std::pair<ValueId, ValueId>> pairs;
  for (ValueId value : graph->outer_values) {
    const std::string& name = graph->values[static_cast<size_t>(value)].name;
    const ValueId source = enclosing.find_value(name);
    if (source == kNoValue) {
      return invalid_model(fmt::format("a body reads '{}', which graph '{}' does not have", name, enclosing.name));
    }
    pairs.emplace_back(value, source);
  }
  return pairs;
}

Error at_site(Error error, std::string_view prefix, const NodeSite& site, std::string_view executor) {
  std::string place = fmt::format("node '{}{}' ({})", prefix, site.node, site.op);
  std::vector<std::string> sources;
  for (const NodeId id : site.sources) {
    const Node& source = site.graph->nodes[static_cast<size_t>(id)];
    sources.push_back(fmt::format("{} '{}'", source.op_type, source.display_name));
  }
  if (!sources.empty()) place += fmt::format(", which stands for {}", fmt::join(sources, ", "));
  if (!executor.empty()) place += fmt::format(", {}", executor);
  return std::move(error).with_context(place).at_node(site.node, site.op);
}

class SiteTable::Builder {
 public:
  explicit Builder(SiteTable& table) : table_(table) {}

  Result<std::unique_ptr<GraphSites>> build(const Graph& graph, std::string scope, const GraphSites* parent,
                                            int depth) {
    node_count_ += graph.nodes.size();
    if (depth > kMaxDepth) return invalid_model("graphs and function calls nest deeper than 256");
    if (node_count_ > kMaxNodes || table_.sites_.size() > kMaxSites) {
      return invalid_model("the model's functions expand to more than 1,000,000 nodes");
    }
    auto sites = std::make_unique<GraphSites>();
    sites->graph = &graph;
    sites->scope = std::move(scope);
    sites->parent = parent;
    sites->values.resize(graph.values.size());
    add_sources(*sites);
    for (size_t position = 0; position < graph.order.size(); ++position) {
      PX_TRY(add_node(*sites, graph.order[position], static_cast<int32_t>(position), depth));
    }
    link_outer(*sites);
    return sites;
  }

 private:
  ValueSite& add_site(GraphSites& sites, ValueId value, ValueSite::Role role) {
    ValueSite& site = table_.sites_.emplace_back();
    const ValueDef& definition = sites.graph->values[static_cast<size_t>(value)];
    site.id = static_cast<int32_t>(table_.sites_.size()) - 1;
    site.role = role;
    site.name = definition.name;
    site.escaped_name = escape_name(definition.name);
    site.scope = sites.scope;
    site.graph = sites.graph;
    site.value = value;
    site.is_graph_output = definition.is_graph_output && sites.parent == nullptr;
    sites.values[static_cast<size_t>(value)] = &site;
    return site;
  }

  void add_sources(GraphSites& sites) {
    for (ValueId value : sites.graph->inputs) add_site(sites, value, ValueSite::Role::input);
    const auto add_initializers = [&](const std::vector<ValueId>& values) {
      for (ValueId value : values) {
        if (sites.values[static_cast<size_t>(value)] != nullptr) continue;  // also an input: its default
        ValueSite& site = add_site(sites, value, ValueSite::Role::initializer);
        site.is_constant_like = true;
        site.follows_from_constants = true;
      }
    };
    add_initializers(sites.graph->initializer_values);
    add_initializers(sites.graph->sparse_initializer_values);
  }

  // The entry that a value of this graph names: its own, or one of an enclosing graph.
  static const ValueSite* site_read(const GraphSites& sites, ValueId value) {
    const ValueSite* site = sites.values[static_cast<size_t>(value)];
    const std::string& name = sites.graph->values[static_cast<size_t>(value)].name;
    for (const GraphSites* place = sites.parent; site == nullptr && place != nullptr; place = place->parent) {
      const ValueId found = place->graph->find_value(name);
      if (found != kNoValue) site = place->values[static_cast<size_t>(found)];
    }
    return site;
  }

  bool reads_only_constants(const GraphSites& sites, const Node& node) const {
    const auto is_constant = [&](ValueId input) {
      const ValueSite* site = input == kNoValue ? nullptr : site_read(sites, input);
      return input == kNoValue || (site != nullptr && site->is_constant_like);
    };
    // Only the first input of these operators has elements; the others (a shape, axes) are irrelevant.
    if (contains(kShapingOps, node.op_type)) return !node.inputs.empty() && is_constant(node.inputs.front());
    return std::all_of(node.inputs.begin(), node.inputs.end(), is_constant);
  }

  // Whatever computes it. Of bodies and functions nothing is claimed; shapes count as constants.
  bool follows_from_constants(const GraphSites& sites, const Node& node) const {
    if (is_standard(node) && (node.op_type == "Constant" || node.op_type == "Shape" || node.op_type == "Size"))
      return true;
    const bool is_plain = node.function == nullptr && bodies_of(node).empty() && !draws_at_random(node.op_type);
    return is_plain && !node.inputs.empty() && std::ranges::all_of(node.inputs, [&](ValueId input) {
             const ValueSite* site = input == kNoValue ? nullptr : site_read(sites, input);
             return input == kNoValue || (site != nullptr && site->follows_from_constants);
           });
  }

  // An output of If is what one of its branches gives: data by its making where it is in both.
  static bool gives_constants(const GraphSites& sites, NodeId id, size_t output) {
    return std::ranges::all_of(std::array{"then_branch", "else_branch"}, [&](std::string_view attribute) {
      const GraphSites* branch = sites.child(id, attribute);
      if (branch == nullptr || output >= branch->graph->outputs.size()) return false;
      const ValueSite* site = site_read(*branch, branch->graph->outputs[output]);
      return site != nullptr && site->is_constant_like;
    });
  }

  Status add_node(GraphSites& sites, NodeId id, int32_t position, int depth) {
    const Node& node = sites.graph->nodes[static_cast<size_t>(id)];
    PX_TRY(add_children(sites, id, depth));  // bodies run before the node's own outputs exist
    const bool from_constants = follows_from_constants(sites, node);
    const bool constant_like =
        from_constants ||
        (is_standard(node) && (contains(kConstantLikeOps, node.op_type) ||
                               (contains(kMovingOps, node.op_type) && reads_only_constants(sites, node))));
    const bool is_image = gives_images(node, [&](ValueId input) {
      const ValueSite* site = site_read(sites, input);
      return site != nullptr && site->is_image;
    });
    for (size_t index = 0; index < node.outputs.size(); ++index) {
      if (node.outputs[index] == kNoValue) continue;
      ValueSite& site = add_site(sites, node.outputs[index], ValueSite::Role::node_output);
      site.node = node.display_name;
      site.op = node.op_type;
      site.domain = is_standard(node) ? "" : node.domain;
      site.output_index = static_cast<int32_t>(index);
      site.node_index = position;
      const bool is_if = is_standard(node) && node.op_type == "If";
      site.is_constant_like = constant_like || (is_if && gives_constants(sites, id, index));
      site.follows_from_constants = from_constants;
      site.is_image = is_image;
    }
    return {};
  }

  Status add_child(GraphSites& sites, NodeId id, const std::string& attribute, const Graph& body, int depth) {
    const Node& node = sites.graph->nodes[static_cast<size_t>(id)];
    auto child = PX_TRY(build(body, sites.scope + frame_of(node, attribute), &sites, depth + 1));
    sites.children.push_back({id, attribute, std::move(child)});
    return {};
  }

  Status add_children(GraphSites& sites, NodeId id, int depth) {
    const Node& node = sites.graph->nodes[static_cast<size_t>(id)];
    if (node.function != nullptr) {
      table_.bound_functions_.push_back(bind_function(*node.function, node));
      const Graph& body = *table_.bound_functions_.back();
      return add_child(sites, id, "", body, depth);
    }
    for (const Attribute& attribute : node.attributes) {
      const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
      if (body != nullptr && *body != nullptr) PX_TRY(add_child(sites, id, attribute.name, **body, depth));
    }
    return {};
  }

  // Runs once the enclosing entries are complete as far as this body can see: bodies are built after what they read.
  void link_outer(GraphSites& sites) {
    for (ValueId value : sites.graph->outer_values) {
      const std::string& name = sites.graph->values[static_cast<size_t>(value)].name;
      for (const GraphSites* place = sites.parent; place != nullptr; place = place->parent) {
        const ValueId found = place->graph->find_value(name);
        if (found == kNoValue || place->values[static_cast<size_t>(found)] == nullptr) continue;
        sites.outer[value] = place->values[static_cast<size_t>(found)];
        break;
      }
    }
  }

  SiteTable& table_;
  size_t node_count_ = 0;
};

Result<SiteTable> SiteTable::build(std::shared_ptr<const Model> model) {
  SiteTable table;
  table.model_ = std::move(model);
  Builder builder(table);
  table.main_ = PX_TRY(builder.build(table.model_->graph, "", nullptr, 0));
  return table;
}

}  // namespace parallax
