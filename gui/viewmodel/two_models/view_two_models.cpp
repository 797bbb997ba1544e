// SPDX-License-Identifier: Apache-2.0
// Joins the items and values of two models along their matched nodes.
#include "gui/viewmodel/two_models/view_two_models.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "inspector/exec/value_path.h"
#include "inspector/render/structure_report.h"

namespace parallax {
namespace {

using ItemKind = ItemDifference::Kind;

ItemKind item_kind_of(NodeDifference::Kind kind) {
  constexpr ItemKind kKinds[] = {ItemKind::changed, ItemKind::only_a, ItemKind::only_b};
  return kKinds[static_cast<size_t>(kind)];
}

// The item of an input or output of the main graph; -1 where it is not drawn.
int32_t end_of_graph(const Document& document, bool is_input, const std::string& name) {
  return is_input ? document.items->find_input("", name) : document.items->find_output("", name);
}

class PairMaker {
 public:
  PairMaker(const Document& a, const Document& b, TwoModels& pair) : a_(a), b_(b), pair_(pair) {}

  void make() {
    pair_.b_of_a.assign(a_.items->items().size(), -1);
    pair_.a_of_b.assign(b_.items->items().size(), -1);
    pair_.difference_of_a.assign(pair_.b_of_a.size(), -1);
    pair_.difference_of_b.assign(pair_.a_of_b.size(), -1);
    for (const NodePair& nodes : pair_.structure.pairs) {
      join(a_.items->find_node(nodes.scope_a, nodes.node_a->display_name),
           b_.items->find_node(nodes.scope_b, nodes.node_b->display_name));
    }
    for (const bool is_input : {true, false}) {
      for (const auto& [name_a, name_b] : is_input ? pair_.structure.inputs : pair_.structure.outputs)
        join(end_of_graph(a_, is_input, name_a), end_of_graph(b_, is_input, name_b));
    }
    join_groups();
    list_differences();
  }

  // A's rows with their counterparts, then those that B alone has.
  void join_rows(Document& document) const {
    std::vector<bool> is_known(b_.rows.size());
    const auto b_of_path = paths();
    for (ValueRow& row : document.rows) {
      const auto found = b_of_path.find(row.path);
      row.row_b = found == b_of_path.end() ? -1 : b_.find_row(found->second);
      if (row.row_b >= 0) is_known[static_cast<size_t>(row.row_b)] = true;
    }
    for (size_t i = 0; i < b_.rows.size(); ++i) {
      if (is_known[i]) continue;
      ValueRow row = b_.rows[i];
      row.item = row.weight = -1;
      row.row_b = static_cast<int32_t>(i);
      row.is_only_b = true;
      const auto index = static_cast<int32_t>(document.rows.size());
      row.family = static_cast<int32_t>(document.rows_of_family.size());
      document.rows_of_family.push_back({index});
      document.row_of_path.emplace(row.path, index);
      document.rows.push_back(std::move(row));
    }
  }

  // The difference of each item, and of each group those within.
  static std::vector<ItemDifference> item_differences(const Document& document, const std::vector<int32_t>& indices,
                                                      const std::vector<int32_t>& counterparts, const TwoModels& pair,
                                                      ItemKind only) {
    const auto& items = document.items->items();
    std::vector<ItemDifference> result(items.size());
    std::vector<bool> has_counterpart(items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      const bool is_pair = items[i].kind == GraphItem::Kind::node && counterparts[i] >= 0;
      if (indices[i] >= 0) {
        result[i].kind = item_kind_of(pair.differences[static_cast<size_t>(indices[i])].kind);
        for (int32_t at = static_cast<int32_t>(i); at >= 0; at = document.items->item(at).parent)
          ++result[static_cast<size_t>(at)].count;
      }
      for (int32_t at = is_pair ? static_cast<int32_t>(i) : -1; at >= 0; at = document.items->item(at).parent)
        has_counterpart[static_cast<size_t>(at)] = true;
    }
    for (size_t i = 0; i < items.size(); ++i) {
      if (result[i].count == 0 || result[i].kind != ItemKind::same) continue;
      result[i].kind = has_counterpart[i] ? ItemKind::changed : only;
    }
    return result;
  }

 private:
  void join(int32_t a, int32_t b) {
    if (a < 0 || b < 0 || pair_.b_of_a[static_cast<size_t>(a)] >= 0 || pair_.a_of_b[static_cast<size_t>(b)] >= 0)
      return;
    pair_.b_of_a[static_cast<size_t>(a)] = b;
    pair_.a_of_b[static_cast<size_t>(b)] = a;
  }

  // Groups and bodies are counterparts where most of their nodes are, seen from the same height above them.
  void join_groups() {
    std::map<std::pair<int32_t, int32_t>, int32_t> votes;
    for (size_t i = 0; i < pair_.b_of_a.size(); ++i) {
      int32_t b = pair_.b_of_a[i];
      if (b < 0) continue;
      int32_t a = a_.items->item(static_cast<int32_t>(i)).parent;
      b = b_.items->item(b).parent;
      for (; a > 0 && b > 0; a = a_.items->item(a).parent, b = b_.items->item(b).parent) {
        if (a_.items->item(a).kind == b_.items->item(b).kind) ++votes[{a, b}];
      }
    }
    std::vector<std::pair<int32_t, std::pair<int32_t, int32_t>>> ranked;
    for (const auto& [groups, count] : votes) ranked.push_back({count, groups});
    std::ranges::stable_sort(ranked, std::greater<>(), [](const auto& vote) { return vote.first; });
    join(0, 0);
    for (const auto& [count, groups] : ranked) join(groups.first, groups.second);
  }

  void list_differences() {
    for (const SignatureDifference& difference : pair_.structure.signature) {
      const NodeDifference::Kind kind = difference.name_a.empty()   ? NodeDifference::Kind::only_b
                                        : difference.name_b.empty() ? NodeDifference::Kind::only_a
                                                                    : NodeDifference::Kind::changed;
      const std::string& name = difference.name_a.empty() ? difference.name_b : difference.name_a;
      add({kind,
           fmt::format("{} '{}'", difference.is_input ? "input" : "output", name),
           {signature_text(difference)},
           nullptr,
           end_of_graph(a_, difference.is_input, difference.name_a),
           end_of_graph(b_, difference.is_input, difference.name_b)});
    }
    for (const NodeDifference& difference : pair_.structure.nodes) {
      ModelDifference entry{difference.kind, node_text(difference), {}, &difference};
      for (const NodeChange& change : difference.changes) entry.sentences.push_back(change_text(change));
      if (difference.node_a != nullptr)
        entry.item_a = a_.items->find_node(difference.scope_a, difference.node_a->display_name);
      if (difference.node_b != nullptr)
        entry.item_b = b_.items->find_node(difference.scope_b, difference.node_b->display_name);
      add(std::move(entry));
    }
  }

  void add(ModelDifference difference) {
    const auto index = static_cast<int32_t>(pair_.differences.size());
    if (difference.item_a >= 0) pair_.difference_of_a[static_cast<size_t>(difference.item_a)] = index;
    if (difference.item_b >= 0) pair_.difference_of_b[static_cast<size_t>(difference.item_b)] = index;
    pair_.differences.push_back(std::move(difference));
  }

  // B's path by A's, of the values that are counterparts.
  std::unordered_map<std::string, std::string> paths() const {
    std::unordered_map<std::string, std::string> b_of_a;
    for (const auto& [name_a, name_b] : pair_.structure.inputs)
      b_of_a.emplace(escape_name(name_a), escape_name(name_b));
    for (const auto& [a, b] : pair_.structure.constants)
      b_of_a.emplace(a->scope + a->escaped_name, b->scope + b->escaped_name);
    for (const NodePair& nodes : pair_.structure.pairs) {
      const int32_t item_a = a_.items->find_node(nodes.scope_a, nodes.node_a->display_name),
                    item_b = b_.items->find_node(nodes.scope_b, nodes.node_b->display_name);
      if (item_a < 0 || item_b < 0) continue;
      const Graph &graph_a = *a_.items->item(item_a).graph, &graph_b = *b_.items->item(item_b).graph;
      const auto &made_a = nodes.node_a->outputs, &made_b = nodes.node_b->outputs;
      for (size_t slot = 0; slot < std::min(made_a.size(), made_b.size()); ++slot) {
        if (made_a[slot] == kNoValue || made_b[slot] == kNoValue) continue;
        b_of_a.emplace(nodes.scope_a + escape_name(value_at(graph_a, made_a[slot]).name),
                       nodes.scope_b + escape_name(value_at(graph_b, made_b[slot]).name));
      }
    }
    return b_of_a;
  }

  const Document& a_;
  const Document& b_;
  TwoModels& pair_;
};

}  // namespace

std::string TwoModels::verdict_text() const {
  return structure.is_same() ? "The two models are the same." : summary_text(structure);
}

Result<std::shared_ptr<const Document>> open_models(const std::string& a, const std::string& b) {
  auto result = std::make_shared<Document>(*PX_TRY(open_document({a})));
  auto other = std::make_shared<Document>(*PX_TRY(open_document({b})));
  auto pair = std::make_shared<TwoModels>();
  pair->structure = PX_TRY(compare_structure(result->model, other->model));
  PairMaker maker(*result, *other, *pair);
  maker.make();
  result->differences_of_item =
      PairMaker::item_differences(*result, pair->difference_of_a, pair->b_of_a, *pair, ItemKind::only_a);
  other->differences_of_item =
      PairMaker::item_differences(*other, pair->difference_of_b, pair->a_of_b, *pair, ItemKind::only_b);
  maker.join_rows(*result);
  result->files = {a, b};
  pair->b = std::move(other);
  result->models = std::move(pair);
  return std::shared_ptr<const Document>(std::move(result));
}

// ---- colors

ItemLook look_of_difference(const Document& document, int32_t item) {
  ItemLook look;
  if (document.differences_of_item.empty()) return look;
  const ItemDifference& difference = document.differences_of_item[static_cast<size_t>(item)];
  if (difference.kind == ItemKind::same) return look;
  const auto kind = static_cast<NodeDifference::Kind>(static_cast<int>(difference.kind) - 1);
  look.fill = color_from_hex(colors_of(kind).first);
  look.is_neutral = false;
  look.is_bad = true;
  const bool is_group = document.items->item(item).has_children();
  look.badge =
      is_group && difference.kind == ItemKind::changed ? fmt::format("{} differ", difference.count) : text_of(kind);
  return look;
}

std::vector<LegendEntry> legend_of_differences(const Document& document) {
  std::vector<LegendEntry> legend{{{}, true, false, "same"}};
  if (document.models == nullptr) return legend;
  for (const auto kind : {NodeDifference::Kind::changed, NodeDifference::Kind::only_a, NodeDifference::Kind::only_b}) {
    const auto count = std::ranges::count(document.models->differences, kind, &ModelDifference::kind);
    legend.push_back(
        {color_from_hex(colors_of(kind).first), false, false, fmt::format("{} ({})", text_of(kind), count)});
  }
  return legend;
}

}  // namespace parallax
