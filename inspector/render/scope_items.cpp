// SPDX-License-Identifier: Apache-2.0
// Builds the tree of items from scopes and values.
#include "inspector/render/scope_items.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include <fmt/format.h>

#include "inspector/diff/tolerance/paths.h"
#include "inspector/model/scope_tree.h"
#include "inspector/render/graph_labels.h"
#include "inspector/render/scope_sections.h"

namespace parallax {
namespace {

constexpr int64_t kMostShown = 6;  // elements of a constant in a node's box

uint64_t mix(uint64_t a, uint64_t b) {
  return (a ^ (b + 0x9E3779B97F4A7C15ULL + (a << 6) + (a >> 2))) * 0xFF51AFD7ED558CCDULL;
}

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash;
}

}  // namespace

class ItemBuilder {
 public:
  ItemBuilder(GraphItems& target, int32_t section) : target_(target), section_(section) {}

  void build(const GraphValues& value_infos) {
    GraphItem root;
    root.kind = GraphItem::Kind::group;
    root.title = value_infos.graph->name;
    root.graph = value_infos.graph;
    items().push_back(std::move(root));
    add_graph(value_infos, 0, nullptr);
    fold_constants();
    merge_scopes();
    cut_long_groups();
    finish();
  }

 private:
  using Producers = std::vector<int32_t>;  // item that makes each value of a graph, -1 for none

  std::vector<GraphItem>& items() { return target_.items_; }
  GraphItem& item(int32_t index) { return target_.items_[static_cast<size_t>(index)]; }

  int32_t add(GraphItem::Kind kind, int32_t parent, std::string title, std::string detail,
              const GraphValues& value_infos) {
    GraphItem added;
    added.kind = kind;
    added.parent = parent;
    added.depth = item(parent).depth + 1;
    added.title = std::move(title);
    added.detail = std::move(detail);
    added.scope = value_infos.scope;
    added.graph = value_infos.graph;
    const auto index = static_cast<int32_t>(items().size());
    items().push_back(std::move(added));
    item(parent).children.push_back(index);
    return index;
  }

  // Values of the enclosing graph that a body reads have their producers there.
  void add_graph(const GraphValues& value_infos, int32_t parent, const Producers* enclosing) {
    const Graph& graph = *value_infos.graph;
    Producers producers(graph.values.size(), -1);
    if (enclosing != nullptr && value_infos.parent != nullptr) {
      if (const auto outer = value_infos.outer_values(); outer.ok()) {
        for (const auto& [inside, outside] : *outer) {
          producers[static_cast<size_t>(inside)] = (*enclosing)[static_cast<size_t>(outside)];
        }
      }
    }
    for (ValueId input : graph.inputs) {
      const ValueDef& value = graph.values[static_cast<size_t>(input)];
      if (value.initializer_index >= 0) continue;
      const int32_t leaf = add(GraphItem::Kind::input, parent, value.name, to_string(value.type), value_infos);
      item(leaf).value = input;
      producers[static_cast<size_t>(input)] = leaf;
      target_.inputs_.emplace(value_infos.scope + value.name, leaf);
    }
    const ScopeTree tree = build_scope_tree(graph);
    std::vector<int32_t> group_of_scope(tree.scopes.size(), -1);
    group_of_scope[0] = parent;
    for (NodeId id : graph.order) add_node(value_infos, id, tree, group_of_scope, producers);
    for (ValueId output : graph.outputs) {
      const ValueDef& value = graph.values[static_cast<size_t>(output)];
      const int32_t leaf = add(GraphItem::Kind::output, parent, value.name, to_string(value.type), value_infos);
      item(leaf).value = output;
      target_.outputs_.emplace(value_infos.scope + value.name, leaf);
      add_wire(producers, output, leaf);
    }
  }

  void add_wire(const Producers& producers, ValueId value, int32_t reader) {
    if (value == kNoValue) return;
    const int32_t from = producers[static_cast<size_t>(value)];
    if (from >= 0) target_.wires_.push_back({from, reader, value});
  }

  int32_t group_of(const GraphValues& value_infos, const ScopeTree& tree, int32_t scope, std::vector<int32_t>& groups) {
    int32_t& group = groups[static_cast<size_t>(scope)];
    if (group >= 0) return group;
    const Scope& location = tree.scopes[static_cast<size_t>(scope)];
    const int32_t parent = group_of(value_infos, tree, location.parent, groups);
    group = add(GraphItem::Kind::group, parent, location.name, location.class_name, value_infos);
    return group;
  }

  void add_node(const GraphValues& value_infos, NodeId id, const ScopeTree& tree, std::vector<int32_t>& groups,
                Producers& producers) {
    const Node& node = value_infos.graph->nodes[static_cast<size_t>(id)];
    const int32_t group = group_of(value_infos, tree, tree.scope_of_node[static_cast<size_t>(id)], groups);
    const int32_t leaf = add(GraphItem::Kind::node, group, node.display_name, qualified_op(node), value_infos);
    item(leaf).node = id;
    target_.nodes_.emplace(value_infos.scope + node.display_name, leaf);
    std::unordered_set<ValueId> read;
    for (const ValueId input : node.inputs) {
      if (!read.insert(input).second) continue;
      add_wire(producers, input, leaf);
      add_initializer(*value_infos.graph, input, item(leaf));
    }
    for (ValueId output : node.outputs) {
      if (output != kNoValue) producers[static_cast<size_t>(output)] = leaf;
    }
    for (const GraphValues::Child& child : value_infos.children_of(id)) {
      if (child.value_infos == nullptr) continue;
      const std::string title = child.attribute.empty() ? std::string("call") : child.attribute;
      const int32_t body = add(GraphItem::Kind::body, leaf, title, "", *child.value_infos);
      item(body).node = id;
      add_graph(*child.value_infos, body, &producers);
    }
  }

  // ---- constants ----

  static void add_text(GraphItem& reader, const std::string& text) {
    if (!text.empty()) reader.constants_text += (reader.constants_text.empty() ? "" : ", ") + text;
  }

  // A small one: weights are the business of the inspector.
  static void add_initializer(const Graph& graph, ValueId id, GraphItem& reader) {
    if (id == kNoValue) return;
    const ValueDef& value = graph.values[static_cast<size_t>(id)];
    if (value.initializer_index < 0 || value.input_index >= 0) return;
    const StoredTensor& stored = graph.initializers[static_cast<size_t>(value.initializer_index)];
    if (stored.absence.empty()) add_text(reader, small_tensor_text(stored.tensor, kMostShown));
  }

  bool is_constant(const GraphItem& node) const {
    if (node.kind != GraphItem::Kind::node) return false;
    const Node& definition = node.graph->nodes[static_cast<size_t>(node.node)];
    return qualified_op(definition) == "Constant" && definition.problem.empty();
  }

  // Constants go into their readers, unless an output of the graph is one of these.
  void fold_constants() {
    std::vector<bool> folds(items().size(), false);
    for (const GraphWire& wire : target_.wires_) {
      if (is_constant(item(wire.from))) folds[static_cast<size_t>(wire.from)] = true;
    }
    for (const GraphWire& wire : target_.wires_) {
      if (item(wire.to).kind != GraphItem::Kind::node) folds[static_cast<size_t>(wire.from)] = false;
    }
    std::vector<GraphWire> kept;
    for (const GraphWire& wire : target_.wires_) {
      if (!folds[static_cast<size_t>(wire.from)]) {
        kept.push_back(wire);
        continue;
      }
      GraphItem &constant = item(wire.from), &reader = item(wire.to);
      add_text(reader, constant_node_text(constant.graph->nodes[static_cast<size_t>(constant.node)], kMostShown));
      if (constant.is_folded) continue;
      constant.is_folded = true;
      std::erase(item(constant.parent).children, wire.from);
      constant.parent = wire.to;
      reader.constants.push_back(wire.from);
    }
    target_.wires_ = std::move(kept);
  }

  // ---- scopes that add nothing ----

  static std::string joined(const std::string& outer, const std::string& inner) {
    return outer.empty() || inner.starts_with(outer + ".") ? inner : inner.empty() ? outer : outer + "." + inner;
  }

  // From the inside out: a group without members goes, one around a single node becomes its module, one around a single
  // group becomes one with it.
  void merge_scopes() {
    std::vector<bool> is_gone(items().size(), false);
    for (size_t at = items().size(); at-- > 1;) {
      const auto index = static_cast<int32_t>(at);
      if (item(index).kind != GraphItem::Kind::group || item(index).children.size() > 1) continue;
      auto& siblings = item(item(index).parent).children;
      const auto own = std::ranges::find(siblings, index);
      is_gone[at] = true;
      if (item(index).children.empty()) {
        siblings.erase(own);
        continue;
      }
      const int32_t only = item(index).children.front();
      GraphItem& member = item(only);
      if (member.kind == GraphItem::Kind::node) {
        member.module = joined(item(index).title, member.module);
      } else {
        member.title = joined(item(index).title, member.title);
      }
      member.parent = item(index).parent;
      *own = only;
    }
    remove(is_gone);
  }

  void remove(const std::vector<bool>& is_gone) {
    std::vector<int32_t> moved(items().size(), -1);
    std::vector<GraphItem> kept;
    for (size_t at = 0; at < items().size(); ++at) {
      if (is_gone[at]) continue;
      moved[at] = static_cast<int32_t>(kept.size());
      kept.push_back(std::move(items()[at]));
    }
    const auto move = [&](int32_t& index) { index = index < 0 ? index : moved[static_cast<size_t>(index)]; };
    for (GraphItem& kept_item : kept) {
      move(kept_item.parent);
      for (int32_t& child : kept_item.children) move(child);
      for (int32_t& constant : kept_item.constants) move(constant);
    }
    for (GraphWire& wire : target_.wires_) {
      move(wire.from);
      move(wire.to);
    }
    for (auto* known : {&target_.nodes_, &target_.inputs_, &target_.outputs_}) {
      for (auto& [name, index] : *known) move(index);
    }
    items() = std::move(kept);
  }

  // ---- long groups ----

  uint64_t structure_of(int32_t index) {
    GraphItem& it = item(index);
    if (it.structure != 0) return it.structure;
    uint64_t hash = mix(hash_of(it.kind == GraphItem::Kind::node ? it.detail : ""), static_cast<uint64_t>(it.kind));
    for (int32_t child : std::vector<int32_t>(it.children)) hash = mix(hash, structure_of(child));
    return item(index).structure = hash | 1;
  }

  void cut_long_groups() {
    const auto count = static_cast<int32_t>(items().size());
    for (int32_t index = 0; index < count; ++index) {
      if (static_cast<int32_t>(item(index).children.size()) > section_) cut(index);
    }
  }

  void cut(int32_t index) {
    std::vector<int32_t> members, first, last;
    for (int32_t child : std::vector<int32_t>(item(index).children)) {
      const auto kind = item(child).kind;
      (kind == GraphItem::Kind::input ? first : kind == GraphItem::Kind::output ? last : members).push_back(child);
    }
    std::vector<uint64_t> structure;
    for (int32_t member : members) structure.push_back(structure_of(member));
    const auto sections = find_sections(structure, static_cast<size_t>(section_));
    if (sections.size() < 2) return;
    item(index).children = first;
    int blocks = 0, parts = 0;
    for (const Section& section : sections) {
      const bool stays = section.count == 1 && item(members[section.begin]).kind == GraphItem::Kind::group;
      if (stays) {
        item(index).children.push_back(members[section.begin]);
        continue;
      }
      GraphItem group;
      group.kind = GraphItem::Kind::group;
      group.parent = index;
      group.title = section.is_repeat ? fmt::format("block {}", blocks++) : fmt::format("part {}", ++parts);
      group.scope = item(members[section.begin]).scope;
      group.graph = item(members[section.begin]).graph;
      group.children.assign(members.begin() + static_cast<std::ptrdiff_t>(section.begin),
                            members.begin() + static_cast<std::ptrdiff_t>(section.begin + section.count));
      const auto added = static_cast<int32_t>(items().size());
      for (int32_t member : group.children) item(member).parent = added;
      items().push_back(std::move(group));
      item(index).children.push_back(added);
    }
    auto& children = item(index).children;
    children.insert(children.end(), last.begin(), last.end());
  }

  // ---- what is known when all stand ----

  void finish() {
    count_below(0, 0);
    for (GraphItem& group : items()) {
      std::map<uint64_t, int32_t> like;
      for (int32_t child : group.children) ++like[item(child).structure];
      for (int32_t child : group.children) item(child).like = like[item(child).structure];
    }
  }

  int32_t count_below(int32_t index, int32_t depth) {
    item(index).depth = depth;
    item(index).structure = 0;
    int32_t count = item(index).kind == GraphItem::Kind::node ? 1 : 0;
    for (int32_t child : std::vector<int32_t>(item(index).children)) count += count_below(child, depth + 1);
    for (int32_t constant : std::vector<int32_t>(item(index).constants)) count += count_below(constant, depth + 1);
    structure_of(index);
    return item(index).node_count = count;
  }

  GraphItems& target_;
  int32_t section_;
};

Result<std::shared_ptr<const GraphItems>> GraphItems::build(std::shared_ptr<const Model> model, int32_t section) {
  auto result = std::shared_ptr<GraphItems>(new GraphItems());
  result->model_ = model;
  result->value_infos_ = std::make_unique<ValueTable>(PX_TRY(ValueTable::build(std::move(model))));
  ItemBuilder(*result, section).build(result->value_infos_->main());
  return std::shared_ptr<const GraphItems>(std::move(result));
}

namespace {

int32_t find_in(const std::unordered_map<std::string, int32_t>& known, std::string_view scope, std::string_view name) {
  const auto found = known.find(std::string(scope) + std::string(name));
  return found == known.end() ? -1 : found->second;
}

}  // namespace

int32_t GraphItems::find_node(std::string_view scope, std::string_view node) const {
  return find_in(nodes_, scope, node);
}
int32_t GraphItems::find_input(std::string_view scope, std::string_view value) const {
  return find_in(inputs_, scope, value);
}
int32_t GraphItems::find_output(std::string_view scope, std::string_view value) const {
  return find_in(outputs_, scope, value);
}

bool GraphItems::is_inside(int32_t index, int32_t group) const {
  while (index >= 0 && index != group) index = item(index).parent;
  return index == group;
}

std::string static_scope_of(std::string_view path) { return diff::static_path(diff::prefix_of(path)); }

}  // namespace parallax
