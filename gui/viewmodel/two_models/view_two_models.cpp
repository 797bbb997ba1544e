// SPDX-License-Identifier: Apache-2.0
// Joins the items and values of two models along their matched nodes.
#include "gui/viewmodel/two_models/view_two_models.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "gui/viewmodel/rows/document_rows.h"
#include "inspector/diff/compare/captured_weights.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/io/import.h"
#include "inspector/render/structure_report.h"
#include "inspector/workbench/open.h"

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
    for (const NodePair& nodes : pair_.structure->pairs) {
      join(a_.items->find_node(nodes.scope_a, nodes.node_a->display_name),
           b_.items->find_node(nodes.scope_b, nodes.node_b->display_name));
    }
    for (const bool is_input : {true, false}) {
      for (const auto& [name_a, name_b] : is_input ? pair_.structure->inputs : pair_.structure->outputs)
        join(end_of_graph(a_, is_input, name_a), end_of_graph(b_, is_input, name_b));
    }
    join_groups();
    list_differences();
  }

  // A's rows with their counterparts.
  void join_rows(Document& document) const {
    const auto b_of_path = paths();
    for (ValueRow& row : document.rows) {
      const auto found = b_of_path.find(row.path);
      row.row_b = found == b_of_path.end() ? -1 : b_.find_row(found->second);
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
    for (const SignatureDifference& difference : pair_.structure->signature) {
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
    for (const NodeDifference& difference : pair_.structure->nodes) {
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
    for (const auto& [name_a, name_b] : pair_.structure->inputs)
      b_of_a.emplace(escape_name(name_a), escape_name(name_b));
    for (const auto& [a, b] : pair_.structure->constants)
      b_of_a.emplace(a->scope + a->escaped_name, b->scope + b->escaped_name);
    for (const NodePair& nodes : pair_.structure->pairs) {
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
  return structure->is_same() ? "The two models are the same." : summary_text(*structure);
}

namespace {

// Rows that B alone has follow A's.
void add_rows_of_b_alone(const Document& b, Document& document) {
  std::vector<bool> is_known(b.rows.size());
  for (const ValueRow& row : document.rows) {
    if (row.row_b >= 0) is_known[static_cast<size_t>(row.row_b)] = true;
  }
  for (size_t i = 0; i < b.rows.size(); ++i) {
    if (is_known[i]) continue;
    ValueRow row = b.rows[i];
    row.weight = row.comparison = row.entry_a = row.entry_b = -1;
    row.row_b = static_cast<int32_t>(i);
    row.is_only_b = true;
    document.rows.push_back(std::move(row));
  }
}

// The model's file; of a dump alone, its file and the model that was run.
std::string name_of_side(const Document& side) {
  const std::string& file = side.files.front();
  if (side.a == nullptr || side.weights != nullptr || side.a->executions().empty()) return file;
  const std::string& model = side.a->executions().front().model_path;
  return model.empty() ? file : fmt::format("{} of {}", std::filesystem::path(file).filename().string(), model);
}

// Without a comparison the counterparts of values in loops are not known: rows of B alone follow with it.
Result<std::shared_ptr<const Document>> join_documents(Document a, Document b, StructureComparison structure) {
  auto pair = std::make_shared<TwoModels>();
  pair->structure = std::make_shared<const StructureComparison>(std::move(structure));
  PairMaker maker(a, b, *pair);
  maker.make();
  a.differences_of_item = PairMaker::item_differences(a, pair->difference_of_a, pair->b_of_a, *pair, ItemKind::only_a);
  b.differences_of_item = PairMaker::item_differences(b, pair->difference_of_b, pair->a_of_b, *pair, ItemKind::only_b);
  maker.join_rows(a);
  if (a.a == nullptr) add_rows_of_b_alone(b, a);
  index_rows(a);
  pair->name_a = name_of_side(a);
  pair->name_b = name_of_side(b);
  a.files.insert(a.files.end(), b.files.begin(), b.files.end());
  a.b = b.a;
  a.remarks.insert(a.remarks.end(), b.remarks.begin(), b.remarks.end());
  pair->b = std::make_shared<const Document>(std::move(b));
  a.models = std::move(pair);
  return std::make_shared<const Document>(std::move(a));
}

// Replaces the rows of a model by the values of its dump.
Result<Document> take_dump(std::shared_ptr<const DumpReader> dump, std::string_view side, const Document& model) {
  PX_TRY(check_graphs(*dump));
  Document result = without_rows(model);
  result.remarks = remarks_on(*dump, side);
  result.a = std::move(dump);
  add_dump_rows(result);
  keep_weight_rows(model, result);
  index_rows(result);
  return result;
}

// One of two dumps alone; its model and items are those of `parts`.
Document document_of_dump(const DocumentParts& parts, const std::string& file, std::shared_ptr<const DumpReader> dump) {
  Document result = without_rows(parts);
  result.files = {file};
  result.a = std::move(dump);
  result.b = nullptr;
  add_dump_rows(result);
  index_rows(result);
  return result;
}

std::string model_of(const DumpReader& dump) {
  const std::string path = dump.executions().empty() ? "" : dump.executions().front().model_path;
  return path.empty() ? "another model" : fmt::format("'{}'", path);
}

// A dump knows the hash of its model. One that other tools wrote may not; then a value of the model must be in it.
Status check_owner(const DumpReader& dump, const Document& own, const Document& other) {
  const std::string sha256 = dump.executions().empty() ? "" : dump.executions().front().model_sha256;
  if (sha256.empty()) {
    const bool is_any_known =
        std::ranges::any_of(dump.entries(), [&](const DumpEntry& entry) { return own.find_any_row(entry.path) >= 0; });
    if (is_any_known) return {};
    return usage_error(fmt::format("'{}' holds no value of '{}'; name a dump of that model, or open the dumps alone",
                                   dump.path(), own.files.front()));
  }
  if (sha256 == model_sha256(*own.model)) return {};
  if (sha256 == model_sha256(*other.model)) {
    return usage_error(
        fmt::format("'{}' is a dump of '{}', and stands where that of '{}' is expected; dumps must be in "
                    "the order of their models: A.onnx B.onnx A.plx B.plx",
                    dump.path(), other.files.front(), own.files.front()));
  }
  return usage_error(fmt::format(
      "'{}' is a dump of {}, whose SHA-256 is not that of '{}'; name the dump of a run of '{}', or open the "
      "dumps alone",
      dump.path(), model_of(dump), own.files.front(), own.files.front()));
}

}  // namespace

Result<std::shared_ptr<const Document>> open_models(const std::vector<std::string>& files,
                                                    const StructureOptions& options) {
  Document a = *PX_TRY(open_document({files[0]})), b = *PX_TRY(open_document({files[1]}));
  if (files.size() == 4) {
    auto dump_a = PX_TRY(DumpReader::open(files[2])), dump_b = PX_TRY(DumpReader::open(files[3]));
    PX_TRY(check_owner(*dump_a, a, b));
    PX_TRY(check_owner(*dump_b, b, a));
    a = PX_TRY(take_dump(std::move(dump_a), "A", a));
    b = PX_TRY(take_dump(std::move(dump_b), "B", b));
  }
  auto structure = PX_TRY(compare_structure(a.model, b.model, options));
  Document result = *PX_TRY(join_documents(std::move(a), std::move(b), std::move(structure)));
  result.files = files;
  return std::make_shared<const Document>(std::move(result));
}

Result<std::shared_ptr<const Document>> with_models_of_dumps(std::shared_ptr<const Document> document,
                                                             const StructureOptions& options) {
  const auto sha256 = [](const DumpReader& dump) {
    return dump.executions().empty() ? std::string() : dump.executions().front().model_sha256;
  };
  const std::string sha256_a = sha256(*document->a), sha256_b = sha256(*document->b);
  if (sha256_a.empty() || sha256_b.empty() || sha256_a == sha256_b) return document;
  if (document->a->graphs().empty() || document->b->graphs().empty()) return document;
  DocumentParts b;
  b.model = PX_TRY(graph_of(*document->b));
  auto structure = PX_TRY(compare_structure(diff::with_captured_weights(*document->a, document->model),
                                            diff::with_captured_weights(*document->b, b.model), options));
  if (structure.is_same_graph()) return document;
  b.items = PX_TRY(GraphItems::build(b.model));
  return join_documents(document_of_dump(*document, document->files.front(), document->a),
                        document_of_dump(b, document->files.back(), document->b), std::move(structure));
}

Result<std::shared_ptr<const Document>> with_dumps(const Document& models, const std::string& a, const std::string& b) {
  auto pair = std::make_shared<TwoModels>(*models.models);
  auto dump_a = PX_TRY(DumpReader::open(a)), dump_b = PX_TRY(DumpReader::open(b));
  Document result = PX_TRY(take_dump(std::move(dump_a), "A", models));
  Document side_b = PX_TRY(take_dump(std::move(dump_b), "B", *pair->b));
  for (ValueRow& row : result.rows) {
    if (row.row_b >= 0) row.row_b = side_b.find_row(pair->b->rows[static_cast<size_t>(row.row_b)].path);
  }
  result.b = side_b.a;
  result.remarks.insert(result.remarks.end(), side_b.remarks.begin(), side_b.remarks.end());
  pair->b = std::make_shared<const Document>(std::move(side_b));
  result.models = std::move(pair);
  return std::make_shared<const Document>(std::move(result));
}

void join_comparison(const Document& before, Document& result) {
  auto pair = std::make_shared<TwoModels>(*before.models);
  const Document& b_before = *before.models->b;
  auto b = std::make_shared<Document>(without_rows(b_before));
  b->comparison = result.comparison;
  add_comparison_rows_of_b(b_before, *b);
  keep_weight_rows(b_before, *b);
  index_rows(*b);
  keep_weight_rows(before, result);
  std::vector<int32_t> b_of_compared(result.comparison->values.size(), -1);
  for (size_t i = 0; i < b->rows.size(); ++i) {
    if (b->rows[i].comparison >= 0) b_of_compared[static_cast<size_t>(b->rows[i].comparison)] = static_cast<int32_t>(i);
  }
  for (ValueRow& row : result.rows) {
    if (row.comparison >= 0) {
      row.row_b = b_of_compared[static_cast<size_t>(row.comparison)];
    } else if (row.row_b >= 0) {
      row.row_b = b->find_row(b_before.rows[static_cast<size_t>(row.row_b)].path);
    }
  }
  add_rows_of_b_alone(*b, result);
  pair->b = std::move(b);
  result.models = std::move(pair);
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
