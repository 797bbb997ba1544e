// SPDX-License-Identifier: Apache-2.0
// Opening, and joining rows with items, entries and verdicts.
#include "gui/viewmodel/view_document.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gui/viewmodel/inspect/view_inspector.h"
#include "gui/viewmodel/two_models/view_two_models.h"
#include "inspector/dump/model_weights.h"
#include "inspector/exec/path_parts.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/io/import.h"
#include "inspector/render/compact_numbers.h"
#include "inspector/render/report_text.h"
#include "inspector/render/runs/different_models.h"
#include "inspector/workbench/open.h"

namespace parallax {

namespace {

void set_dims(ValueRow& row, std::vector<std::string> dims) {
  row.shape = fmt::format("{}", fmt::join(dims, "x"));
  row.dims = std::move(dims);
}

std::vector<std::string> dims_of(const TypeInfo& type) {
  std::vector<std::string> dims;
  for (const Dim& dim : type.dims.value_or(std::vector<Dim>()))
    dims.push_back(dim.is_known() ? std::to_string(dim.value) : dim.name.empty() ? "?" : dim.name);
  return dims;
}

}  // namespace

std::string dims_text(const TypeInfo& type) { return fmt::format("{}", fmt::join(dims_of(type), "x")); }

namespace {

void set_type(ValueRow& row, const TypeInfo& type) {
  row.dtype = dtype_text(type);
  set_dims(row, dims_of(type));
}

// The name at the end of a path, as it stands in the model.
std::string name_in(const std::string& path) { return unescape_name(std::string_view(path).substr(name_begin(path))); }

int32_t item_of(const GraphItems* items, const ValueRow& row) {
  if (items == nullptr) return -1;
  const std::string scope = static_scope_of(row.path);
  const int32_t input = items->find_input(scope, name_in(row.path));
  return input >= 0 ? input : items->find_node(scope, row.node);
}

// "step[7]//x" and "loop.body[3]//x": 7 and 3; -1 where nothing is repeated.
int64_t iteration_of(std::string_view path) {
  for (std::string_view mark : {"step[", ".body["}) {
    const size_t at = path.find(mark);
    if (at == std::string_view::npos || (mark[0] == 's' && at != 0 && path[at - 1] != '/')) continue;
    int64_t number = -1;
    const char* begin = path.data() + at + mark.size();
    std::from_chars(begin, path.data() + path.size(), number);
    return number;
  }
  return -1;
}

// The path without its iterations and steps.
std::string family_of(const std::string& path) { return static_scope_of(path) + name_in(path); }

void index_rows(Document& document) {
  document.rows_of_item.assign(document.items == nullptr ? 0 : document.items->items().size(), {});
  document.rows_of_family.clear();
  document.row_of_path.clear();
  document.family_of_path.clear();
  document.iterations = 0;
  for (size_t i = 0; i < document.rows.size(); ++i) {
    ValueRow& row = document.rows[i];
    const auto index = static_cast<int32_t>(i);
    row.item = item_of(document.items.get(), row);
    row.iteration = iteration_of(row.path);
    document.iterations = std::max(document.iterations, row.iteration + 1);
    if (row.item >= 0) document.rows_of_item[static_cast<size_t>(row.item)].push_back(index);
    const auto [named, is_first] = document.row_of_path.emplace(row.path, index);
    // A value that B alone has may be called as another one of A is.
    const ValueComparison* known = document.compared(named->second);
    if (!is_first && known != nullptr && known->a.empty()) named->second = index;
    const auto next = static_cast<int32_t>(document.rows_of_family.size());
    const auto [family, is_new] = document.family_of_path.emplace(family_of(row.path), next);
    if (is_new) document.rows_of_family.emplace_back();
    row.family = family->second;
    document.rows_of_family[static_cast<size_t>(row.family)].push_back(index);
  }
}

ValueRow row_of_entry(const DumpEntry& entry) {
  ValueRow row;
  row.path = entry.path;
  row.node = entry.node;
  row.op = entry.op;
  set_type(row, entry.type);
  return row;
}

void add_dump_rows(Document& document) {
  const auto entries = document.a->entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    ValueRow row = row_of_entry(entries[i]);
    row.entry_a = static_cast<int32_t>(i);
    if (document.b != nullptr) row.entry_b = document.b->find(row.path);
    document.rows.push_back(std::move(row));
  }
}

void add_model_rows(Document& document) {
  const GraphItems& items = *document.items;
  for (size_t i = 0; i < items.items().size(); ++i) {
    const GraphItem& item = items.items()[i];
    const auto add = [&](ValueId id, const std::string& node, const std::string& op) {
      if (id == kNoValue) return;
      const ValueDef& value = item.graph->values[static_cast<size_t>(id)];
      ValueRow row;
      row.path = item.scope + escape_name(value.name);
      row.node = node;
      row.op = op;
      set_type(row, value.type);
      document.rows.push_back(std::move(row));
    };
    if (item.kind == GraphItem::Kind::input) add(item.value, "", "");
    if (item.kind != GraphItem::Kind::node) continue;
    const Node& node = item.graph->nodes[static_cast<size_t>(item.node)];
    for (ValueId output : node.outputs) add(output, node.display_name, node.op_type);
  }
}

// Weights follow the values that nodes make; each stands at the first node that reads it.
void add_weight_rows(Document& document) {
  std::unordered_map<std::string, int32_t> entries;
  const auto weights = document.weights->entries();
  for (size_t i = 0; i < weights.size(); ++i) entries.emplace(family_of(weights[i].path), static_cast<int32_t>(i));
  const auto join = [&](ValueRow& row) {
    const auto found = entries.find(row.path);
    if (found == entries.end()) return false;
    row.weight = found->second;
    set_type(row, weights[static_cast<size_t>(row.weight)].type);
    return true;
  };
  for (ValueRow& row : document.rows) join(row);  // of Constant nodes
  const auto& items = document.items->items();
  for (const GraphItem& item : items) {
    if (&item != &items.front() && item.kind != GraphItem::Kind::body) continue;
    for (const auto* ids : {&item.graph->initializer_values, &item.graph->sparse_initializer_values}) {
      for (const ValueId id : *ids) {
        const ValueDef& value = value_at(*item.graph, id);
        ValueRow row;
        row.path = item.scope + escape_name(value.name);
        if (!value.readers.empty())
          row.node = item.graph->nodes[static_cast<size_t>(value.readers.front())].display_name;
        if (join(row)) document.rows.push_back(std::move(row));
      }
    }
  }
}

void add_comparison_rows(Document& document) {
  const auto& values = document.comparison->values;
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueComparison& value = values[i];
    ValueRow row;
    row.path = value.path;
    row.node = value.node;
    row.op = value.op;
    row.dtype = value.dtype;
    std::vector<std::string> dims;
    for (const int64_t dim : value.shape) dims.push_back(std::to_string(dim));
    set_dims(row, std::move(dims));
    row.comparison = static_cast<int32_t>(i);
    if (document.a != nullptr && !value.a.empty()) row.entry_a = document.a->find(value.a);
    if (document.b != nullptr && !value.b.empty()) row.entry_b = document.b->find(value.b);
    document.rows.push_back(std::move(row));
  }
}

void remark_on(const DumpReader& dump, std::string_view side, std::vector<std::string>& remarks) {
  for (std::string& remark : run_remarks(dump, side)) remarks.push_back(std::move(remark));
  const bool lacks = std::ranges::any_of(dump.entries(), [](const DumpEntry& entry) {
    return !entry.absence.has_value() && entry.level < CaptureLevel::all && entry.role == ValueInfo::Role::node_output;
  });
  if (lacks) remarks.push_back(fmt::format("{} does not hold all elements of all values", title_of(dump, side)));
}

const TensorStatistics* statistics_of(const DumpReader* dump, int32_t entry) {
  if (dump == nullptr || entry < 0) return nullptr;
  const auto& statistics = dump->entries()[static_cast<size_t>(entry)].statistics;
  return statistics.has_value() ? &*statistics : nullptr;
}

}  // namespace

std::string Document::title() const {
  if (files.empty()) return "";
  const std::filesystem::path first = files.front(), second = files.back();
  // Every exporter calls its result model.onnx.
  const bool needs_folder =
      files.size() == 1 ? first.stem() == "model" : first.filename() == second.filename() || first.stem() == "model";
  const auto name = [&](const std::filesystem::path& path) {
    std::error_code error;
    const std::string folder = std::filesystem::absolute(path, error).parent_path().filename().string();
    return needs_folder && !folder.empty() ? folder + "/" + path.filename().string() : path.filename().string();
  };
  const std::string executor_a = run.has_value() ? run->executors.front() : "",
                    executor_b = run.has_value() ? run->executors.back() : "";
  if (files.size() == 1)
    return run.has_value() ? fmt::format("{}    {} | {}", name(first), executor_a, executor_b) : name(first);
  const auto side = [&](const std::filesystem::path& path, const std::string& executor) {
    return executor.empty() ? name(path) : fmt::format("{} ({})", name(path), executor);
  };
  return fmt::format("A: {}    B: {}", side(first, executor_a), side(second, executor_b));
}

const ValueComparison* Document::compared(int32_t row) const {
  if (comparison == nullptr || row < 0) return nullptr;
  const int32_t index = rows[static_cast<size_t>(row)].comparison;
  return index < 0 ? nullptr : &comparison->values[static_cast<size_t>(index)];
}

int32_t Document::row_of_expected(const ValueComparison& expected) const {
  return find_row(expected.path);  // outputs are of the main graph, and named as in the model
}

const TensorStatistics* Document::statistics_a(const ValueRow& row) const {
  return statistics_of(a.get(), row.entry_a);
}

const TensorStatistics* Document::statistics_b(const ValueRow& row) const {
  return statistics_of(b.get(), row.entry_b);
}

int32_t Document::find_row(const std::string& path) const {
  const auto found = row_of_path.find(path);
  return found == row_of_path.end() ? -1 : found->second;
}

int32_t Document::find_any_row(const std::string& path, int64_t iteration) const {
  const int32_t exact = find_row(path);
  if (exact >= 0 || (weights == nullptr && path.find("[*]") == std::string::npos)) return exact;
  const auto found = family_of_path.find(family_of(path));
  if (found == family_of_path.end()) return -1;
  const auto& family = rows_of_family[static_cast<size_t>(found->second)];
  const auto at =
      std::ranges::find_if(family, [&](int32_t row) { return rows[static_cast<size_t>(row)].iteration == iteration; });
  return at == family.end() ? family.front() : *at;
}

Result<std::shared_ptr<const Document>> open_document(const std::vector<std::string>& files) {
  if (files.empty() || files.size() > 2) return usage_error("open a model, two models, a dump, or two dumps");
  auto document = std::make_shared<Document>();
  document->files = files;
  const bool first_is_dump = PX_TRY(is_dump_file(files.front()));
  if (files.size() == 2 && first_is_dump != PX_TRY(is_dump_file(files.back()))) {
    return usage_error(fmt::format(
        "'{}' is a dump and '{}' is a model; two files must be two dumps or two models. Open the dump alone: it holds "
        "the graph of its model",
        files[first_is_dump ? 0 : 1], files[first_is_dump ? 1 : 0]));
  }
  if (files.size() == 2 && !first_is_dump) return open_models(files.front(), files.back());
  if (!first_is_dump) {
    document->model = PX_TRY(import_model(files.front(), {.checks = ModelChecks::recorded}));
  } else {
    document->a = PX_TRY(DumpReader::open(files.front()));
    document->model = PX_TRY(graph_of(*document->a));
    if (files.size() == 2) document->b = PX_TRY(DumpReader::open(files.back()));
    if (document->b != nullptr) PX_TRY(check_graphs(*document->b));
    if (document->model == nullptr && document->b != nullptr) document->model = PX_TRY(graph_of(*document->b));
    remark_on(*document->a, document->b == nullptr ? "" : "A", document->remarks);
    if (document->b != nullptr) remark_on(*document->b, "B", document->remarks);
    if (document->model == nullptr) document->remarks.push_back("no graph is stored here: values are listed only");
  }
  if (document->model != nullptr) document->items = PX_TRY(GraphItems::build(document->model));
  if (document->a != nullptr) {
    add_dump_rows(*document);
  } else {
    document->weights = PX_TRY(weights_of(document->model));
    add_model_rows(*document);
    add_weight_rows(*document);
  }
  index_rows(*document);
  return std::shared_ptr<const Document>(std::move(document));
}

std::shared_ptr<const Document> with_comparison(const Document& document, Comparison comparison) {
  auto result = std::make_shared<Document>(document);
  if (const auto damage = damage_of(comparison); damage.has_value()) result->remarks.push_back(damage->message);
  if (std::string models = different_models(comparison); !models.empty()) result->remarks.push_back(std::move(models));
  result->comparison = std::make_shared<const Comparison>(std::move(comparison));
  result->rows.clear();
  add_comparison_rows(*result);
  index_rows(*result);
  return result;
}

std::shared_ptr<const Document> with_times(const Document& document, const ProfileResult& profile) {
  auto result = std::make_shared<Document>(document);
  if (result->items == nullptr) return result;
  result->ms_of_item.assign(result->items->items().size(), -1);
  for (const NodeProfile& node : profile.nodes) {
    const int32_t item = result->items->find_node(node.scope, node.node);
    if (item >= 0) result->ms_of_item[static_cast<size_t>(item)] = node.ms;
  }
  result->times_of = fmt::format("{}, mean of {} runs", profile.executor, profile.iterations);
  return result;
}

std::string command_of(const RunOrigin& run) {
  std::string command = "parallax run " + shell_word(run.model);
  if (!run.against.empty()) command += " --against " + shell_word(run.against);
  command += fmt::format(" --with {}", fmt::join(run.executors, ","));
  if (!run.inputs.empty()) command += " --inputs " + shell_word(run.inputs);
  if (!run.fallback.empty()) command += " --fallback=" + run.fallback;
  if (run.observe_all) command += " --observe-all";
  return command + run.more_options;
}

namespace {

std::vector<std::string> models_of(const RunOrigin& run) {
  return run.against.empty() ? std::vector{run.model} : std::vector{run.model, run.against};
}

}  // namespace

Result<std::shared_ptr<const Document>> document_of_run(std::shared_ptr<const Model> model,
                                                        std::shared_ptr<const GraphItems> items, Comparison comparison,
                                                        std::optional<RunOrigin> run) {
  Document document;
  document.files = run.has_value() ? models_of(*run) : std::vector{model->path};
  document.run = std::move(run);
  document.items = items != nullptr ? std::move(items) : PX_TRY(GraphItems::build(model));
  document.model = std::move(model);
  return with_comparison(document, std::move(comparison));
}

Result<std::shared_ptr<const Document>> document_of_dumps(const Document& start, const std::string& a,
                                                          const std::string& b, Comparison comparison, RunOrigin run) {
  Document document = *PX_TRY(open_document({a, b}));
  document.model = start.model;  // with its weights, and the items that are on the screen already
  document.items = start.items;
  document.files = models_of(run);
  document.run = std::move(run);
  return with_comparison(document, std::move(comparison));
}

}  // namespace parallax
