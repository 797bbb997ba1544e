// SPDX-License-Identifier: Apache-2.0
// Finds the cases, runs each on the executor, compares its outputs with the expected ones.
#include "inspector/workbench/backend_test.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/random_operators.h"
#include "inspector/render/report_text.h"
#include "inspector/workbench/run_side.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;

// ONNX backend test runner's defaults; since 1.23 it allows two units in the last place of a bfloat16 result.
constexpr Tolerance kBackendTolerance = {1e-3, 1e-7};
constexpr Tolerance kBackendToleranceBFloat16 = {0x1p-6, 1e-7};

struct Case {
  std::string name;
  std::string model;
  std::vector<std::string> data_sets;
};

constexpr std::string_view kModelNames[] = {"model.onnx", "model.textproto"};

std::vector<std::string> data_sets_in(const fs::path& folder) {
  std::vector<std::string> sets;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().starts_with("test_data_set_") && entry->is_directory(error))
      sets.push_back(entry->path().string());
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

void add_case(const fs::path& folder, const fs::path& root, std::vector<Case>& cases) {
  std::error_code error;
  for (std::string_view name : kModelNames) {
    if (!fs::is_regular_file(folder / name, error)) continue;
    std::string label = fs::relative(folder, root, error).string();
    if (label == "." || label.empty()) label = fs::weakly_canonical(folder, error).filename().string();
    cases.push_back({label, (folder / name).string(), data_sets_in(folder)});
    return;
  }
}

Result<std::vector<Case>> find_cases(const std::string& root) {
  std::error_code error;
  if (!fs::is_directory(root, error))
    return io_error(fmt::format("'{}' is not a folder; name one that holds backend tests", root));
  std::vector<Case> cases;
  add_case(root, root, cases);
  for (fs::recursive_directory_iterator entry(root, fs::directory_options::skip_permission_denied, error), end;
       !error && entry != end; entry.increment(error)) {
    if (entry->is_directory(error)) add_case(entry->path(), root, cases);
  }
  if (error) return io_error(fmt::format("cannot search '{}': {}", root, error.message()));
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.name < b.name; });
  return cases;
}

CaseResult failed(CaseStatus status, std::string reason) { return {{}, status, std::move(reason), {}}; }

CaseResult from_error(const Error& error) {
  const bool is_unsupported = error.code == ErrorCode::unsupported;
  return failed(is_unsupported ? CaseStatus::unsupported : CaseStatus::error, error.message);
}

std::string describe_mismatch(const ValueComparison& value) {
  if (value.verdict == Verdict::not_compared) return fmt::format("output '{}': {}", value.path, reason_text(value));
  const Metrics& metrics = *value.metrics;
  const WorstElements worst = worst_elements(metrics, 0);
  return fmt::format("output '{}': {} of {} elements differ, worst {} against {} (expected)", value.path,
                     metrics.mismatches, metrics.count, worst.b, worst.a);
}

bool is_uint16_for_bfloat16(const TypeInfo& declared, const Value& value) {
  return declared.dtype == DType::bfloat16 && value.is_tensor() && value.tensor().dtype() == DType::uint16;
}

// Suites older than onnx 1.13 wrote bfloat16 data as UINT16, and rounded it towards zero: such files contradict their
// model, and whoever passes them computes wrongly. Yields the sentence that says so, or "".
std::string find_contradiction(const Graph& graph, const InputSet& set) {
  const auto sentence = [](const std::string& name) {
    return fmt::format("the data of '{}' is uint16 where the model declares bfloat16, as old suites wrote it", name);
  };
  for (size_t index = 0; index < graph.inputs.size(); ++index) {
    const ValueDef& input = graph.values[static_cast<size_t>(graph.inputs[index])];
    if (is_uint16_for_bfloat16(input.type, set.values[index])) return sentence(input.name);
  }
  for (const NamedValue& expected : set.expected) {
    const ValueId output = graph.find_value(expected.name);
    if (output == kNoValue) continue;
    if (is_uint16_for_bfloat16(graph.values[static_cast<size_t>(output)].type, expected.value))
      return sentence(expected.name);
  }
  return {};
}

// A node above the output of this path that draws at random; null where there is none in this graph.
const Node* random_source_of(const Graph& graph, const std::string& path) {
  std::vector<ValueId> open;
  std::ranges::copy_if(graph.outputs, std::back_inserter(open),
                       [&](ValueId id) { return escape_name(value_at(graph, id).name) == path; });
  std::set<ValueId> seen = {kNoValue};
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    if (!seen.insert(value).second) continue;
    const NodeId producer = graph.values[static_cast<size_t>(value)].producer;
    if (producer == kNoNode) continue;
    const Node& node = graph.nodes[static_cast<size_t>(producer)];
    if (node.domain.empty() && draws_at_random(node.op_type)) return &node;
    open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
  return nullptr;
}

// Type and shape of what is drawn at random are asked for; its numbers are those of whatever generator wrote the case.
CaseResult result_of_mismatch(const Graph& graph, const ValueComparison& value) {
  const Node* source = value.metrics.has_value() ? random_source_of(graph, value.path) : nullptr;
  if (source == nullptr) return failed(CaseStatus::failed, describe_mismatch(value));
  return failed(
      CaseStatus::unsupported,
      fmt::format("output '{}' follows from numbers that {} '{}' draws at random, the expected one from another "
                  "generator's: type and shape agree, more cannot be compared",
                  value.path, source->op_type, source->display_name));
}

// The runner's limits of each expected output.
Policy backend_limits(const std::vector<NamedValue>& expected) {
  Policy limits{kBackendTolerance, {}};
  for (const NamedValue& value : expected) {
    if (value.value.is_tensor() && value.value.tensor().dtype() == DType::bfloat16)
      limits.rules.push_back({escape_name(value.name), kBackendToleranceBFloat16});
  }
  return limits;
}

std::string type_in(const std::vector<NamedValue>& values, const std::string& path) {
  for (const NamedValue& value : values) {
    if (escape_name(value.name) == path) return to_string(type_of(value.value));
  }
  return "nothing";
}

// The outputs of one data set against what the session answers; passed when every expected output is within limits.
Result<CaseResult> run_data_set(const Model& model, Executor& executor, Session& session, const std::string& folder,
                                bool strict) {
  InputRequest inputs;
  inputs.source = folder;
  const InputSet set = PX_TRY(make_inputs(model, inputs));
  const std::string contradiction = find_contradiction(model.graph, set);
  if (!contradiction.empty()) return failed(CaseStatus::unsupported, contradiction);
  if (set.expected.empty() && !model.graph.outputs.empty()) {
    return failed(CaseStatus::error, "'" + folder + "' holds no output_N.pb: there is nothing to compare with");
  }
  NullObserver observer;
  const std::vector<Value> outputs = PX_TRY(session.run(set.values, observer));
  const auto named = named_outputs(model.graph, outputs, carries_doubles(executor));
  const Policy policy = strict ? Policy{} : backend_limits(set.expected);
  for (const ValueComparison& value : compare_expected(set.expected, named, "", policy)) {
    const bool good = value.verdict == Verdict::pass || value.verdict == Verdict::mistrusted;
    if (good) continue;
    CaseResult result = result_of_mismatch(model.graph, value);
    if (!value.metrics.has_value())
      result.reason +=
          fmt::format(": expected is {}, computed {}", type_in(set.expected, value.path), type_in(named, value.path));
    return result;
  }
  return CaseResult{};
}

CaseResult run_case(const Case& test, const BackendTestRequest& request, const ExecutorFactory& make_executor) {
  auto executor = make_executor(request.executor);
  if (!executor.ok()) return from_error(executor.error());
  auto model = import_model(test.model);
  if (!model.ok()) return from_error(model.error());
  CaseResult result;
  std::set<std::string> operators;
  for (const Node& node : (*model)->graph.nodes) operators.insert(node.op_type);
  RunOptions options;
  options.rewrite = request.rewrite;
  options.cancel = request.cancel;
  if (!request.fallback.empty()) {
    auto fallback = make_executor(request.fallback);
    if (!fallback.ok()) return from_error(fallback.error());
    options.fallback = fallback.take();
  }
  auto session = (*executor)->prepare(*model, options);
  if (!session.ok()) {
    result = from_error(session.error());
  } else if (test.data_sets.empty()) {
    result = failed(CaseStatus::error, "no test_data_set_N next to the model");
  } else {
    for (const std::string& data_set : test.data_sets) {
      auto outcome = run_data_set(**model, **executor, **session, data_set, request.strict);
      result = outcome.ok() ? std::move(outcome).take() : from_error(outcome.error());
      if (result.status == CaseStatus::passed) continue;
      if (test.data_sets.size() > 1)
        result.reason = std::filesystem::path(data_set).filename().string() + ": " + result.reason;
      break;
    }
  }
  result.operators.assign(operators.begin(), operators.end());
  return result;
}

}  // namespace

std::string_view name_of(CaseStatus status) {
  switch (status) {
    case CaseStatus::passed:
      return "passed";
    case CaseStatus::failed:
      return "failed";
    case CaseStatus::unsupported:
      return "unsupported";
    case CaseStatus::error:
      return "error";
  }
  return "error";
}

int64_t BackendTestResult::count(CaseStatus status) const {
  return std::count_if(cases.begin(), cases.end(), [&](const CaseResult& result) { return result.status == status; });
}

Result<BackendTestResult> run_backend_tests(const BackendTestRequest& request, const ExecutorFactory& make_executor) {
  RunRequest checked;
  checked.executors = {request.executor};
  checked.options.rewrite = request.rewrite;
  checked.fallback = request.fallback;
  PX_TRY(check_options(checked, make_executor));  // errors of their own, not of each case
  std::vector<Case> cases;
  for (const std::string& folder : request.folders) {
    auto found = PX_TRY(find_cases(folder));
    if (found.empty())
      return usage_error(
          fmt::format("'{}' holds no backend test (a folder with model.onnx and test_data_set_0)", folder));
    std::move(found.begin(), found.end(), std::back_inserter(cases));
  }
  if (!request.glob.empty())
    std::erase_if(cases, [&](const Case& test) { return !glob_matches(request.glob, test.name); });
  if (cases.empty())
    return usage_error(
        fmt::format("no case matches '{}'; names are those of the folders with model.onnx", request.glob));
  BackendTestResult result;
  for (const Case& test : cases) {
    if (request.cancel.is_cancelled()) return make_error(ErrorCode::cancelled, "the tests were cancelled");
    result.cases.push_back(run_case(test, request, make_executor));
    result.cases.back().name = test.name;
    if (request.on_case)
      request.on_case(result.cases.back(), static_cast<int64_t>(result.cases.size()),
                      static_cast<int64_t>(cases.size()));
  }
  return result;
}

}  // namespace parallax
