// SPDX-License-Identifier: Apache-2.0
// Telling files apart and opening them.
#include "inspector/workbench/open.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "inspector/base/mapped_file.h"
#include "inspector/diff/compare/compare.h"
#include "inspector/dump/format.h"
#include "inspector/dump/model_weights.h"
#include "inspector/dump/record_scan.h"
#include "inspector/model/io/import.h"

namespace parallax {
namespace {

// Only the index of a finished dump is read: damage of a record before it does not show in the comparison.
Status add_damage(const DumpReader& dump, std::string_view side, std::vector<std::string>& remarks) {
  const auto file = PX_TRY(dump::open_dump_file(dump.path()));
  std::string problem;
  const auto indexed = dump::read_index(*file, problem);
  if (!indexed.has_value()) return {};
  const size_t intact = dump::walk_records(*file, false).records.size();
  if (intact >= indexed->records.size()) return {};
  const dump::Record& damaged = indexed->records[intact];
  remarks.push_back(
      fmt::format("{}: its {} record at offset {} is damaged, and was read from the index, which repeats "
                  "it: parallax check '{}' lists all that is wrong",
                  title_of(dump, side), dump::kind_name(damaged.header), damaged.offset, dump.path()));
  return {};
}

}  // namespace

Result<std::shared_ptr<const Model>> graph_of(const DumpReader& dump) {
  if (dump.graphs().empty()) return std::shared_ptr<const Model>();
  return dump.model(0);
}

Result<bool> is_dump_file(const std::string& path) {
  const auto file = PX_TRY(MappedFile::open(path));
  const auto bytes = file->bytes();
  if (path.ends_with(".plx")) return true;  // one that lost its first bytes is a damaged dump, not a bad model
  return bytes.size() >= sizeof dump::kFileMagic &&
         std::memcmp(bytes.data(), dump::kFileMagic, sizeof dump::kFileMagic) == 0;
}

Result<std::shared_ptr<const DumpReader>> open_values(const std::string& path) {
  if (PX_TRY(is_dump_file(path))) return DumpReader::open(path);
  return weights_of(PX_TRY(open_graph(path)));
}

Result<std::shared_ptr<const Model>> open_graph(const std::string& path) {
  if (!PX_TRY(is_dump_file(path))) return import_model(path, {.checks = ModelChecks::recorded});
  const auto dump = PX_TRY(DumpReader::open(path));
  auto model = PX_TRY(graph_of(*dump));
  if (model != nullptr) return model;
  if (!dump->is_complete()) return corrupt_file(fmt::format("dump '{}' breaks off before its graph", path));
  return usage_error(fmt::format("dump '{}' holds no graph: {}", path, kWayToGraph));
}

std::string title_of(const DumpReader& dump, std::string_view side) {
  const std::string name = std::filesystem::path(dump.path()).filename().string();
  return side.empty() ? name : fmt::format("{} ({})", side, name);
}

bool runs_ended(const DumpReader& dump) {
  return dump.is_complete() && std::ranges::all_of(dump.executions(), &DumpExecution::completed);
}

std::vector<std::string> run_remarks(const DumpReader& dump, std::string_view side) {
  std::vector<std::string> remarks;
  const std::string which = title_of(dump, side);
  if (!dump.is_complete()) {
    remarks.push_back(fmt::format("{} is unfinished: its run was cut off, {} values had been captured", which,
                                  dump.entries().size()));
  }
  if (dump.is_complete() && !runs_ended(dump) && dump.failures().empty()) {
    remarks.push_back(
        fmt::format("{} holds a run that did not end (cancelled, or cut off and repaired): {} values had been captured",
                    which, dump.entries().size()));
  }
  for (const NodeFailure& failure : dump.failures()) {
    remarks.push_back(
        fmt::format("{}: node '{}{}' ({}) failed: {}", which, failure.path, failure.node, failure.op, failure.message));
  }
  return remarks;
}

Status check_graphs(const DumpReader& dump) {
  for (size_t graph = 0; graph < dump.graphs().size(); ++graph)
    PX_TRY_CONTEXT("its graph cannot be read", dump.model(static_cast<int32_t>(graph)));
  return {};
}

Result<OpenedComparison> compare_files(const std::string& a, const std::string& b, const Policy& policy,
                                       const CompareOptions& options) {
  const auto dump_a = PX_TRY(DumpReader::open(a));
  const auto dump_b = PX_TRY(DumpReader::open(b));
  for (const DumpReader* dump : {dump_a.get(), dump_b.get()}) PX_TRY(check_graphs(*dump));
  OpenedComparison opened;
  opened.comparison = PX_TRY(compare_dumps(*dump_a, *dump_b, policy, options));
  for (const auto& [dump, side] : {std::pair(dump_a.get(), "A"), std::pair(dump_b.get(), "B")}) {
    for (std::string& remark : run_remarks(*dump, side)) opened.remarks.push_back(std::move(remark));
    PX_TRY(add_damage(*dump, side, opened.remarks));
  }
  opened.model = PX_TRY(graph_of(*dump_a));
  if (opened.model == nullptr) opened.model = PX_TRY(graph_of(*dump_b));
  return opened;
}

}  // namespace parallax
