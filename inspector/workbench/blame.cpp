// SPDX-License-Identifier: Apache-2.0
// Dumps, models and executors for blame.
#include "inspector/workbench/blame.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>

#include <fmt/format.h>

#include "inspector/base/memory_budget.h"
#include "inspector/base/signal_cleanup.h"
#include "inspector/diff/compare/apply_diagnosis.h"
#include "inspector/diff/compare/compare.h"
#include "inspector/diff/diagnose/find_causes.h"
#include "inspector/diff/matching/unmatch.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/exec/executor_names.h"
#include "inspector/model/io/import.h"
#include "inspector/workbench/dump_size.h"
#include "inspector/workbench/measured_noise.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;

using Dump = std::shared_ptr<const DumpReader>;

Status capture(RunSide& side, const std::string& path) {
  DumpWriterOptions options;
  options.level = CaptureLevel::all;
  side.dump = PX_TRY(DumpWriter::create(path, options));
  const Status status = side.run(nullptr);
  side.dump.reset();
  if (!status.ok()) return Status(status.error());
  return {};
}

struct DumpPair {
  Dump a, b;
  MemoryBudget::Reservation reserved_a = {}, reserved_b = {};
};

Result<DumpPair> capture_both(RunSide& a, RunSide& b, const TemporaryPath& folder, std::string_view round) {
  const std::string path_a = folder.file(fmt::format("A-{}.plx", round));
  const std::string path_b = folder.file(fmt::format("B-{}.plx", round));
  auto reserved_a = PX_TRY(reserve_capture(folder.path(), a.model->graph, a.inputs));
  auto reserved_b = PX_TRY(reserve_capture(folder.path(), b.model->graph, b.inputs));
  Status status_b;
  std::thread other([&, budget = MemoryBudget::current()] {
    const MemoryBudget::ThreadScope scope(budget);
    status_b = capture(b, path_b);
  });
  const Status status_a = capture(a, path_a);
  other.join();
  if (!status_a.ok()) return Error(status_a.error());
  if (!status_b.ok()) return Error(status_b.error());
  auto dump_a = PX_TRY(DumpReader::open(path_a)), dump_b = PX_TRY(DumpReader::open(path_b));
  return DumpPair{std::move(dump_a), std::move(dump_b), std::move(reserved_a), std::move(reserved_b)};
}

// True where two comparisons of the same two sides found the same differences.
bool is_repeated(const Comparison& first, const Comparison& second) {
  std::unordered_map<std::string_view, const ValueComparison*> by_path;
  for (const ValueComparison& value : second.values) by_path.emplace(value.path, &value);
  for (const ValueComparison& value : first.values) {
    const auto found = by_path.find(value.path);
    if (found == by_path.end() || !value.metrics.has_value() || !found->second->metrics.has_value()) continue;
    const Metrics& x = *value.metrics;
    const Metrics& y = *found->second->metrics;
    if (x.max_abs != y.max_abs || x.rmse != y.rmse || x.nan_b != y.nan_b || x.nan_a != y.nan_a) return false;
  }
  return true;
}

// The first value of a side that two runs of it made differently.
std::optional<Cause> find_variation(const Dump& first, const Dump& second, Side side, std::string_view executor) {
  const auto compared = compare_dumps(*first, *second, Policy{Tolerance{0, 0}, {}}, {});
  if (!compared.ok() || !compared->first_divergence.has_value()) return std::nullopt;
  Cause cause;
  cause.node = compared->first_divergence->node;
  cause.node_b = side == Side::b ? cause.node : "";
  cause.op = compared->first_divergence->op;
  cause.path = compared->first_divergence->path;
  cause.introduced = std::numeric_limits<double>::infinity();
  cause.side = side;
  cause.why = fmt::format(
      "values differ between two runs of the same executor ({}) on the same inputs: uninitialized "
      "memory or a race",
      executor);
  return cause;
}

// Finds the side that does not repeat itself, and from which value on, where the second run found other differences
// than the first.
Result<std::vector<Cause>> find_variations(RunSide& a, RunSide& b, const TemporaryPath& folder, const DumpPair& dumps) {
  const DumpPair again = PX_TRY(capture_both(a, b, folder, "again"));
  std::vector<Cause> causes;
  if (auto cause = find_variation(dumps.a, again.a, Side::a, a.executor->name())) causes.push_back(*cause);
  if (auto cause = find_variation(dumps.b, again.b, Side::b, b.executor->name())) causes.push_back(*cause);
  return causes;
}

Cause unrepeated(const Comparison& comparison) {
  Cause cause;
  if (comparison.first_divergence.has_value()) {
    cause.node = comparison.first_divergence->node;
    cause.op = comparison.first_divergence->op;
    cause.path = comparison.first_divergence->path;
  }
  cause.why = "the difference did not show when both sides ran once more: uninitialized memory or a race";
  return cause;
}

bool has_fused_values(const Dump& dump) {
  return std::ranges::any_of(dump->entries(), [](const DumpEntry& entry) {
    return entry.absence.has_value() && entry.absence->kind == Absence::Kind::fused;
  });
}

// The side once more with nothing fused away; its dump.
Result<Dump> capture_unfused(const RunSide& side, const std::string& path) {
  RunSide plain;
  plain.executor = side.executor;
  plain.model = side.model;
  plain.options = side.options;
  plain.options.observe_all = true;
  plain.inputs = side.inputs;
  plain.session = PX_TRY(plain.executor->prepare(plain.model, plain.options));
  plain.info = describe_run(*plain.executor, plain.options, plain.model);
  PX_TRY(capture(plain, path));
  return DumpReader::open(path);
}

// True where a difference exists without fusion, too, and is about as large: then fusion does not cause it.
bool is_about_the_same(const ValueComparison& fused, const ValueComparison& unfused) {
  constexpr double kAboutAsLarge = 1.5;
  return fused.metrics.has_value() && unfused.metrics.has_value() &&
         fused.metrics->rmse <= kAboutAsLarge * unfused.metrics->rmse &&
         fused.metrics->max_abs <= kAboutAsLarge * unfused.metrics->max_abs;
}

// A value that another look accepted as rounding, or unmatched, is so in `comparison`, too; where that look had nothing
// fused away, only if it saw the same difference.
void carry_over_acceptances(const Comparison& seen, bool is_unfused, const Comparison& comparison,
                            Diagnosis& diagnosis) {
  std::unordered_map<std::string_view, const ValueComparison*> by_path;
  for (const ValueComparison& value : seen.values) {
    if (value.accepted.has_value() || is_unmatched(value)) by_path.emplace(value.path, &value);
  }
  for (const ValueComparison& value : comparison.values) {
    const auto found = by_path.find(value.path);
    if (found == by_path.end() || value.verdict != Verdict::diverged) continue;
    const ValueComparison& other = *found->second;
    if (!other.accepted.has_value()) {
      const auto in_b = std::ranges::find_if(
          seen.values, [&](const ValueComparison& entry) { return entry.a.empty() && entry.b == value.b; });
      diagnosis.unmatched.push_back(
          {value.path, other.note, in_b == seen.values.end() ? counterpart_in_b(value) : *in_b});
    } else if (!is_unfused || is_about_the_same(value, other)) {
      diagnosis.accepted_as_rounding.push_back({value.path, *other.accepted});
    }
  }
}

// The other way: without what was fused and what has another shape in between, little bounds the error that a value may
// carry. Where all was seen, and a node found to be wrong, a difference that exceeds its limit there does so here.
void carry_over_differences(const Comparison& seen, const Comparison& comparison, Diagnosis& diagnosis) {
  std::unordered_map<std::string_view, const ValueComparison*> by_path;
  for (const ValueComparison& value : seen.values) {
    if (value.verdict == Verdict::diverged) by_path.emplace(value.path, &value);
  }
  for (const ValueComparison& value : comparison.values) {
    const auto found = by_path.find(value.path);
    if (found == by_path.end() || value.verdict != Verdict::pass || !(value.severity > 0)) continue;
    const ValueComparison& other = *found->second;
    if (!is_about_the_same(value, other) || !is_about_the_same(other, value)) continue;
    diagnosis.rechecked.push_back({value.path, other.severity, other.limit});
  }
}

// A cause that both looks found keeps the figures of the execution that is compared, with which `diff` of its dumps
// agrees: fusion changes limits. It leaves `judged`.
void take_judged_figures(std::vector<Cause>& judged, std::vector<Cause>& unfused) {
  std::erase_if(judged, [&](const Cause& cause) {
    const auto known = std::ranges::find(unfused, cause.path, &Cause::path);
    if (known == unfused.end()) return false;
    if (cause.introduced > 1) {
      known->introduced = cause.introduced;
      known->inherited = cause.inherited;
    }
    return true;
  });
}

// Nodes that were judged in one piece because their values were fused away are told apart by a run that fuses nothing:
// what is wrong there is a node's own doing, and is put first; what is right there is wrong by being fused, unless the
// same difference is there. `found` is the diagnosis of `first`, and is completed.
Status look_unfused(const BlameRequest& request, const RunSide& a, const RunSide& b, const TemporaryPath& folder,
                    const Comparison& first, Diagnosis& found) {
  BlameRequest unfused = request;
  if (has_fused_values(request.a.dump)) unfused.a.dump = PX_TRY(capture_unfused(a, folder.file("A-unfused.plx")));
  if (has_fused_values(request.b.dump)) unfused.b.dump = PX_TRY(capture_unfused(b, folder.file("B-unfused.plx")));
  CompareOptions compare;
  compare.cancel = request.cancel;
  Comparison seen = PX_TRY(compare_dumps(*unfused.a.dump, *unfused.b.dump, request.policy, compare));
  Diagnosis in_seen = PX_TRY(find_causes(unfused, seen));
  std::erase_if(in_seen.causes, [](const Cause& cause) { return !(cause.introduced > 1); });
  seen = applied(in_seen, std::move(seen));
  const Comparison judged = applied(found, first);
  if (in_seen.causes.empty()) {
    carry_over_acceptances(seen, true, judged, found);
    const Comparison settled = applied(found, first);
    if (settled.summary.diverged == 0) found.causes.clear();
    std::erase_if(found.causes, [&](const Cause& cause) {
      return std::ranges::any_of(settled.values, [&](const ValueComparison& value) {
        return value.path == cause.path && is_unmatched(value);
      });
    });
    for (Cause& cause : found.causes) cause.why += "; with nothing fused away (--observe-all) no node is wrong";
    return {};
  }
  take_judged_figures(found.causes, in_seen.causes);
  std::ranges::move(found.causes, std::back_inserter(in_seen.causes));
  found.causes = std::move(in_seen.causes);
  carry_over_differences(seen, judged, found);
  return {};
}

// Limits depend a little on the order of arrival: what diverged in the run is looked into.
Diagnosis diverged_before(const Comparison& comparison, const Comparison& again) {
  std::unordered_map<std::string_view, const ValueComparison*> by_path;
  for (const ValueComparison& value : comparison.values) by_path.emplace(value.path, &value);
  Diagnosis diagnosis;
  for (const ValueComparison& value : again.values) {
    const auto found = by_path.find(value.path);
    if (found == by_path.end() || found->second->verdict != Verdict::diverged || value.severity == 0) continue;
    if (value.verdict != Verdict::pass) continue;
    diagnosis.rechecked.push_back({value.path, found->second->severity, found->second->limit});
  }
  return diagnosis;
}

// A node that lowering has put in is reported as the one of the user's model that it is a part of.
void restore_origin(const transform::NodeOrigins& origins, Cause& cause) {
  for (std::string& member : cause.group) {
    if (const auto found = origins.find(member); found != origins.end()) member = found->second.name;
  }
  const auto reads_stored = [&](const transform::LoweredNode& origin) {
    return cause.is_of_stored_values && !origin.reader.empty();
  };
  if (const auto in_b = origins.find(cause.node_b); in_b != origins.end())
    cause.node_b = reads_stored(in_b->second) ? in_b->second.reader : in_b->second.name;
  const auto found = origins.find(cause.node);
  if (found == origins.end()) return;
  const transform::LoweredNode& origin = found->second;
  cause.node = reads_stored(origin) ? origin.reader : origin.name;
  cause.op = reads_stored(origin) ? origin.reader_op : origin.op_type;
}

// Several parts of one node are one cause, in the words of the first.
void join_by_node(std::vector<Cause>& causes) {
  std::vector<Cause> joined;
  for (Cause& cause : causes) {
    const auto is_same = [&](const Cause& other) {
      return other.side == cause.side && other.node == cause.node && other.op == cause.op && !cause.node.empty();
    };
    if (std::ranges::none_of(joined, is_same)) joined.push_back(std::move(cause));
  }
  causes = std::move(joined);
}

BlameSide side_of(const RunSide& side, Dump dump) { return {std::move(dump), side.model, side.executor, side.options}; }

// The model that a dump was made with, where it is still there; else null.
std::shared_ptr<const Model> model_of(const DumpReader& dump) {
  if (dump.executions().empty()) return nullptr;
  const DumpExecution& execution = dump.executions().front();
  std::error_code error;
  if (execution.model_path.empty() || !fs::is_regular_file(execution.model_path, error)) return nullptr;
  auto model = import_model(execution.model_path);
  const bool is_same = model.ok() && !execution.model_sha256.empty() && model_sha256(**model) == execution.model_sha256;
  return is_same ? model.take() : nullptr;
}

// The executor that a dump names, where it is at hand and would run with the very settings. A program of somebody's own
// is not started because a file names it.
std::shared_ptr<Executor> executor_of(const DumpReader& dump, const ExecutorFactory& make_executor) {
  if (dump.executions().empty()) return nullptr;
  const DumpExecution& execution = dump.executions().front();
  if (is_foreign_executor(execution.executor)) return nullptr;
  auto executor = make_executor(execution.executor);
  return executor.ok() && (*executor)->settings({}) == execution.settings ? executor.take() : nullptr;
}

}  // namespace

Status blame_sides(const RunRequest& request, const ExecutorFactory& make_executor, RunSide& a, RunSide& b,
                   Comparison& comparison) {
  comparison.causes.clear();
  if (!are_mismatched(comparison)) return {};
  const auto folder = PX_TRY(TemporaryPath::make_folder("parallax-blame"));
  if (request.message) {
    request.message(fmt::format(
        "some values exceed their limits: running both sides again with every tensor captured to find the cause "
        "(temporary dumps in {})",
        folder->path()));
  }
  const DumpPair dumps = PX_TRY(capture_both(a, b, *folder, "first"));
  CompareOptions compare;
  compare.cancel = request.options.cancel;
  Comparison seen = PX_TRY(compare_dumps(*dumps.a, *dumps.b, request.policy, compare));
  std::vector<Cause> variations;
  if (!is_repeated(comparison, seen)) variations = PX_TRY(find_variations(a, b, *folder, dumps));
  const Diagnosis before = variations.empty() ? diverged_before(comparison, seen) : Diagnosis{};
  seen = applied(before, std::move(seen));
  auto judge = PX_TRY(make_executor("reference:double"));
  const BlameRequest blame{side_of(a, dumps.a), side_of(b, dumps.b), std::move(judge), request.policy,
                           request.options.cancel};
  Diagnosis found = PX_TRY(find_causes(blame, seen));
  const bool is_fused = has_fused_values(dumps.a) || has_fused_values(dumps.b);
  // Definitions that differ inside a fused node show only once it is split into its parts.
  const bool may_hide = !found.causes.empty() || a.model != b.model;
  if (is_fused && may_hide) PX_TRY(look_unfused(blame, a, b, *folder, seen, found));
  seen = applied(found, std::move(seen));
  const bool has_vanished = !are_mismatched(seen) && seen.summary.compared > 0;
  Diagnosis diagnosis;
  carry_over_acceptances(seen, false, comparison, diagnosis);
  if (!found.causes.empty()) carry_over_differences(seen, comparison, diagnosis);
  if (has_vanished && variations.empty()) {
    const Comparison left = applied(diagnosis, comparison);
    if (are_mismatched(left)) variations.push_back(unrepeated(left));
  }
  const bool may_be_noise = found.causes.empty() && a.model == b.model;
  diagnosis.causes = std::move(variations);
  std::ranges::move(found.causes, std::back_inserter(diagnosis.causes));
  for (Cause& cause : diagnosis.causes) {
    if (a.model == b.model) cause.node_b = cause.node;
    restore_origin(a.origins, cause);
    restore_origin(b.origins, cause);
  }
  if (!a.origins.empty() || !b.origins.empty()) join_by_node(diagnosis.causes);
  for (size_t index = 0; index < diagnosis.causes.size(); ++index)
    diagnosis.causes[index].rank = static_cast<int32_t>(index) + 1;
  apply(diagnosis, comparison);
  if (comparison.verdict == OverallVerdict::pass) comparison.causes.clear();  // what nothing follows from
  // Measured only where rounding alone exceeded the table: it costs two runs of the reference.
  return may_be_noise ? measure_noise(make_executor, a, comparison) : Status{};
}

Status blame_files(const std::string& a, const std::string& b, const Policy& policy,
                   const ExecutorFactory& make_executor, Comparison& comparison, const CancelToken& cancel) {
  comparison.causes.clear();
  if (comparison.verdict == OverallVerdict::pass) return {};
  BlameRequest request;
  request.a.dump = PX_TRY(DumpReader::open(a));
  request.b.dump = PX_TRY(DumpReader::open(b));
  for (BlameSide* side : {&request.a, &request.b}) {
    side->model = model_of(*side->dump);
    side->executor = executor_of(*side->dump, make_executor);
  }
  for (const DamagedValue& value : comparison.damages) {
    (value.side == Side::a ? request.a : request.b).damaged.insert(value.path);
  }
  request.oracle = PX_TRY(make_executor("reference:double"));
  request.policy = policy;
  request.cancel = cancel;
  apply(PX_TRY(find_causes(request, comparison)), comparison);
  return {};
}

Result<OpenedComparison> compare_and_blame_files(const std::string& a, const std::string& b, const Policy& policy,
                                                 const CompareOptions& options, const ExecutorFactory& make_executor) {
  OpenedComparison opened = PX_TRY(compare_files(a, b, policy, options));
  Status blamed = blame_files(a, b, policy, make_executor, opened.comparison, options.cancel);
  if (blamed.ok()) return opened;
  // A value that no other side has, so that only the search for causes has read it: what was compared is shown.
  if (blamed.error().code != ErrorCode::corrupt_file) return std::move(blamed).error();
  opened.comparison.causes.clear();
  opened.comparison.damages.push_back({Side::unknown, "", "looking for causes: " + blamed.error().message});
  return opened;
}

}  // namespace parallax
