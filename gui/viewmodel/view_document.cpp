// SPDX-License-Identifier: Apache-2.0
// Opening, and what a run or a comparison adds.
#include "gui/viewmodel/view_document.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gui/viewmodel/inspect/view_inspector.h"
#include "gui/viewmodel/rows/document_rows.h"
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

const TensorStatistics* statistics_of(const DumpReader* dump, int32_t entry) {
  if (dump == nullptr || entry < 0) return nullptr;
  const auto& statistics = dump->entries()[static_cast<size_t>(entry)].statistics;
  return statistics.has_value() ? &*statistics : nullptr;
}

}  // namespace

std::string Document::title() const {
  if (files.empty()) return "";
  const std::filesystem::path first = files.front(), second = files[files.size() == 1 ? 0 : 1];
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

namespace {

// Two models, and a dump of each after them or none.
Result<std::shared_ptr<const Document>> open_with_models(const std::vector<std::string>& files,
                                                         const std::vector<bool>& are_dumps,
                                                         const StructureOptions& options) {
  const auto dumps = std::ranges::count(are_dumps, true);
  if (files.size() == 2 && dumps == 1) {
    return usage_error(fmt::format(
        "'{}' is a dump and '{}' is a model; two files must be two dumps or two models. Open the dump alone: it holds "
        "the graph of its model",
        files[are_dumps[0] ? 0 : 1], files[are_dumps[0] ? 1 : 0]));
  }
  if (files.size() == 3 || (files.size() == 4 && dumps != 2)) {
    return usage_error(fmt::format(
        "{} of the {} files are models; with models there must be two, and a dump of each or none: A.onnx B.onnx A.plx "
        "B.plx",
        static_cast<std::ptrdiff_t>(files.size()) - dumps, files.size()));
  }
  std::vector<std::string> ordered;
  for (const bool is_dump : {false, true}) {
    for (size_t i = 0; i < files.size(); ++i) {
      if (are_dumps[i] == is_dump) ordered.push_back(files[i]);
    }
  }
  return open_models(ordered, options);
}

}  // namespace

Result<std::shared_ptr<const Document>> open_document(const std::vector<std::string>& files,
                                                      const StructureOptions& options) {
  std::vector<bool> are_dumps;
  for (const std::string& file : files) are_dumps.push_back(PX_TRY(is_dump_file(file)));
  const bool is_any_model = std::ranges::find(are_dumps, false) != are_dumps.end();
  if (files.empty() || files.size() > 4 || (files.size() > 2 && !is_any_model))
    return usage_error("open a model, two models, a dump, two dumps, or two models with a dump of each");
  if (files.size() > 1 && is_any_model) return open_with_models(files, are_dumps, options);
  auto document = std::make_shared<Document>();
  document->files = files;
  if (is_any_model) {
    document->model = PX_TRY(import_model(files.front(), {.checks = ModelChecks::recorded}));
  } else {
    document->a = PX_TRY(DumpReader::open(files.front()));
    document->model = PX_TRY(graph_of(*document->a));
    if (files.size() == 2) document->b = PX_TRY(DumpReader::open(files.back()));
    if (document->b != nullptr) PX_TRY(check_graphs(*document->b));
    if (document->model == nullptr && document->b != nullptr) document->model = PX_TRY(graph_of(*document->b));
    document->remarks = remarks_on(*document->a, document->b == nullptr ? "" : "A");
    if (document->b != nullptr) std::ranges::move(remarks_on(*document->b, "B"), std::back_inserter(document->remarks));
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
  if (document->b != nullptr) return with_models_of_dumps(std::move(document), options);
  return std::shared_ptr<const Document>(std::move(document));
}

Document without_rows(const DocumentParts& parts) {
  Document result;
  static_cast<DocumentParts&>(result) = parts;
  return result;
}

std::shared_ptr<const Document> with_comparison(const Document& document, Comparison comparison,
                                                std::optional<RunOrigin> run) {
  auto result = std::make_shared<Document>(without_rows(document));
  if (run.has_value()) result->run = std::move(run);
  if (const auto damage = damage_of(comparison); damage.has_value()) result->remarks.push_back(damage->message);
  if (std::string models = different_models(comparison); !models.empty()) result->remarks.push_back(std::move(models));
  result->comparison = std::make_shared<const Comparison>(std::move(comparison));
  add_comparison_rows(*result);
  if (result->models != nullptr) join_comparison(document, *result);
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

Result<std::shared_ptr<const Document>> document_of_run(const Document& start, Comparison comparison, RunOrigin run) {
  if (start.models == nullptr) return document_of_run(start.model, start.items, std::move(comparison), std::move(run));
  return with_comparison(start, std::move(comparison), std::move(run));
}

Result<std::shared_ptr<const Document>> document_of_dumps(const Document& start, const std::string& a,
                                                          const std::string& b, Comparison comparison, RunOrigin run) {
  if (start.models != nullptr)
    return with_comparison(*PX_TRY(with_dumps(start, a, b)), std::move(comparison), std::move(run));
  Document document = without_rows(*PX_TRY(open_document({a, b})));
  document.model = start.model;  // with its weights, and the items that are on the screen already
  document.items = start.items;
  document.files = models_of(run);
  return with_comparison(document, std::move(comparison), std::move(run));
}

}  // namespace parallax
