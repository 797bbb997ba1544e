// SPDX-License-Identifier: Apache-2.0
// Reads cases, runs them and compares.
#include "tests/ops/op_case.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/model/io/import.h"
#include "inspector/tensor/elements.h"
#include "tests/ops/case_model.h"

namespace parallax::tests {
namespace {

// An executor that carries floats wider is judged after one rounding to the type the model declares.
Tensor as_declared(const Tensor& declared, const Tensor& actual) {
  const DType dtype = declared.dtype();
  if (!is_floating(dtype) || actual.dtype() != DType::float64) return actual;
  Tensor rounded = Tensor::allocate(dtype, actual.shape()).take();
  store_doubles(rounded, 0, actual.as<double>());
  return rounded;
}

std::vector<Value> items_of(const Value& value) {
  if (value.is_sequence()) return value.sequence().items;
  return value.is_optional() ? value.optional().item : std::vector<Value>();
}

Value as_declared(const Value& declared, const Value& actual) {
  if (declared.is_tensor() && actual.is_tensor()) return as_declared(declared.tensor(), actual.tensor());
  std::vector<Value> items = items_of(actual);
  const std::vector<Value> model = items_of(declared);
  for (size_t index = 0; index < std::min(items.size(), model.size()); ++index)
    items[index] = as_declared(model[index], items[index]);
  if (actual.is_sequence()) return SequenceValue{actual.sequence().element_type, std::move(items)};
  if (actual.is_optional()) return OptionalValue{actual.optional().element_type, std::move(items)};
  return actual;
}

// Every element as text, that of nested values included.
void list_elements(const Value& value, std::vector<std::string>& elements) {
  if (value.is_tensor()) {
    for (int64_t index = 0; index < value.tensor().element_count(); ++index)
      elements.push_back(element_to_string(value.tensor(), index));
  } else if (value.is_sequence()) {
    for (const Value& item : value.sequence().items) list_elements(item, elements);
  } else if (value.is_optional()) {
    for (const Value& item : value.optional().item) list_elements(item, elements);
  } else if (value.is_map()) {
    list_elements(value.map().keys, elements);
    for (const Value& item : value.map().values) list_elements(item, elements);
  }
}

Result<std::vector<Value>> given_values(const Json& list) {
  std::vector<Value> values;
  for (const Json& item : list) {
    if (!item.is_null()) values.push_back(PX_TRY(value_from_json(item)));
  }
  return values;
}

Result<OpCase> case_from_json(const Json& json, const std::string& family) {
  OpCase op_case;
  op_case.name = json.at("name").get<std::string>();
  op_case.family = family;
  op_case.from = json.at("from").get<std::string>();
  op_case.constant = json.value("constant", "");
  op_case.not_double = json.value("not_double", "");
  op_case.inputs = PX_TRY_CONTEXT(op_case.name, given_values(json.at("inputs")));
  op_case.expected = PX_TRY_CONTEXT(op_case.name, given_values(json.at("outputs")));
  const std::string text = PX_TRY_CONTEXT(op_case.name, model_text(json));
  op_case.model = PX_TRY(import_model(std::as_bytes(std::span(text)), "", "case " + op_case.name));
  return op_case;
}

}  // namespace

Result<std::vector<OpCase>> read_op_cases() {
  const char* given = std::getenv("PX_OP_CASES");  // NOLINT(concurrency-mt-unsafe): read once, never written
  const std::filesystem::path folder = given != nullptr ? given : PX_OP_CASES;
  std::error_code problem;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) paths.push_back(entry.path());
  if (problem) return io_error(fmt::format("'{}' cannot be read: {}", folder.string(), problem.message()));
  std::sort(paths.begin(), paths.end());
  std::vector<OpCase> cases;
  for (const auto& path : paths) {
    if (path.extension() != ".json") continue;
    std::ifstream file(path);
    const Json document = Json::parse(file, nullptr, false);
    if (!document.is_array()) return io_error(fmt::format("'{}' is no list of cases", path.string()));
    for (const Json& json : document)
      cases.push_back(PX_TRY_CONTEXT(path.filename().string(), case_from_json(json, path.stem().string())));
  }
  return cases;
}

bool is_constant(const OpCase& op_case) {
  std::vector<std::string> elements;
  for (const Value& value : op_case.expected) list_elements(value, elements);
  const auto is_zero = [](const std::string& element) {
    return element == "0" || element == "-0" || element == "false" || element == "\"\"";
  };
  if (elements.size() == 1) return is_zero(elements[0]);
  return elements.empty() || std::all_of(elements.begin(), elements.end(),
                                         [&](const std::string& element) { return element == elements[0]; });
}

Result<std::string> problem_with(const OpCase& op_case, Executor& executor, const RunOptions& options) {
  auto session = PX_TRY(executor.prepare(op_case.model, options));
  NullObserver observer;
  const std::vector<Value> outputs = PX_TRY(session->run(op_case.inputs, observer));
  std::vector<NamedValue> expected;
  std::vector<NamedValue> actual;
  for (size_t index = 0; index < outputs.size(); ++index) {
    expected.push_back({fmt::format("out{}", index), op_case.expected[index]});
    actual.push_back({expected.back().name, as_declared(op_case.expected[index], outputs[index])});
  }
  for (const ValueComparison& value : compare_expected(expected, actual, executor.name(), {})) {
    if (value.verdict == Verdict::pass) continue;
    return fmt::format("{}: {} {} severity {}", value.path, name_of(value.verdict), value.reason, value.severity);
  }
  return std::string();
}

}  // namespace parallax::tests
