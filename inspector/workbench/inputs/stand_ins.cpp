// SPDX-License-Identifier: Apache-2.0
// Reads arrays by name, and finds the outputs that they are meant for.
#include "inspector/workbench/inputs/stand_ins.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/input_files.h"
#include "inspector/base/mapped_file.h"
#include "inspector/dump/tensor_files/npy.h"
#include "inspector/model/opset/opset_registry.h"
#include "inspector/tensor/elements.h"
#include "inspector/workbench/inputs/data_sources.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Values under the names that they carry.
Result<std::vector<NamedValue>> read_named(const std::string& source, int64_t sample) {
  std::error_code error;
  if (is_value_file(source)) return read_value_file_of(source, sample);
  std::vector<NamedValue> values;
  if (!fs::is_directory(source, error)) return values;
  for (const auto& [number, path] : PX_TRY(data_set_files(source, "input_")))
    values.push_back(PX_TRY(read_value_file(path)));
  return values;
}

// Numbers in row-major order, however they are nested.
bool append_numbers(const json& values, std::vector<double>& numbers) {
  if (values.is_array())
    return std::ranges::all_of(values, [&](const json& item) { return append_numbers(item, numbers); });
  if (values.is_boolean()) return numbers.push_back(values.get<bool>() ? 1 : 0), true;
  if (values.is_number()) return numbers.push_back(values.get<double>()), true;
  if (!values.is_string()) return false;
  const auto text = values.get<std::string>();
  if (text != "nan" && text != "inf" && text != "-inf") return false;
  const double infinity = std::numeric_limits<double>::infinity();
  numbers.push_back(text == "nan" ? std::numeric_limits<double>::quiet_NaN() : text == "inf" ? infinity : -infinity);
  return true;
}

Result<Tensor> tensor_of(const json& described) {
  constexpr const char* kForm = R"(expected {"dtype": "float32", "shape": [1, 5], "values": [...]})";
  if (!described.is_object() || !described.contains("values")) return usage_error(kForm);
  const std::string type =
      described.contains("dtype") && described["dtype"].is_string() ? described["dtype"].get<std::string>() : "float32";
  const auto dtype = dtype_from_name(type);
  if (!dtype || *dtype == DType::string || is_complex(*dtype))
    return usage_error(fmt::format("dtype '{}' cannot be given so", type));
  std::vector<double> numbers;
  if (!append_numbers(described["values"], numbers)) return usage_error(kForm);
  std::vector<int64_t> dims;
  if (described.contains("shape")) {
    if (!described["shape"].is_array() ||
        !std::ranges::all_of(described["shape"], [](const json& dim) { return dim.is_number_integer(); }))
      return usage_error(kForm);
    dims = described["shape"].get<std::vector<int64_t>>();
  } else if (described["values"].is_array()) {
    dims = {static_cast<int64_t>(numbers.size())};
  }
  const Shape shape = PX_TRY(Shape::create(dims));
  if (numbers.size() == 1) numbers.resize(static_cast<size_t>(shape.element_count()), numbers.front());
  if (static_cast<int64_t>(numbers.size()) != shape.element_count())
    return usage_error(
        fmt::format("{} values, and shape {} has {}", numbers.size(), shape.to_string(), shape.element_count()));
  if (!is_floating(*dtype)) {
    const auto is_whole = [](double number) { return number == std::trunc(number) && std::abs(number) < 9.0e15; };
    if (!std::ranges::all_of(numbers, is_whole)) return usage_error(fmt::format("a value is no {}", type));
  }
  Tensor tensor = PX_TRY(Tensor::allocate(*dtype, shape));
  store_doubles(tensor, 0, numbers);
  return tensor;
}

Result<std::map<std::string, Value>> read_stub_file(const std::string& file) {
  std::map<std::string, Value> values;
  input_files::note(file);
  if (file.ends_with(".npz")) {
    for (NamedValue& named : PX_TRY(read_npz(file))) values[named.name] = std::move(named.value);
    return values;
  }
  if (!file.ends_with(".json")) return usage_error(fmt::format("--stub '{}': expected a .npz or a .json file", file));
  const auto mapped = PX_TRY(MappedFile::open(file));
  const auto bytes = mapped->bytes();
  const auto* begin = reinterpret_cast<const char*>(bytes.data());
  const json document = json::parse(begin, begin + bytes.size(), nullptr, false);
  if (!document.is_object())
    return corrupt_file(fmt::format("'{}' is no JSON object of outputs by name or number", file));
  for (const auto& [name, described] : document.items())
    values[name] = Value(PX_TRY_CONTEXT(fmt::format("'{}', output '{}'", file, name), tensor_of(described)));
  return values;
}

}  // namespace

Result<std::map<std::string, Value>> given_values(const InputRequest& request) {
  std::map<std::string, Value> values;
  if (!request.source.empty()) {
    for (NamedValue& named : PX_TRY(read_named(request.source, request.sample)))
      values[named.name] = std::move(named.value);
  }
  for (const auto& [name, file] : request.files) values[name] = Value(PX_TRY(read_npy(file)));
  for (const auto& [name, value] : request.values) values[name] = value;
  return values;
}

Result<std::map<std::string, Value>> stub_values(const Model& model, const std::string& op, const std::string& file) {
  const size_t colons = op.find("::");
  const std::string domain = colons == std::string::npos ? "" : op.substr(0, colons);
  const std::string type = colons == std::string::npos ? op : op.substr(colons + 2);
  const auto in_file = PX_TRY(read_stub_file(file));
  std::map<std::string, Value> values;
  bool is_found = false;
  for (const Node& node : model.graph.nodes) {
    if (node.op_type != type || canonical_domain(node.domain) != canonical_domain(domain)) continue;
    is_found = true;
    for (size_t output = 0; output < node.outputs.size(); ++output) {
      if (node.outputs[output] == kNoValue) continue;
      const ValueDef& value = value_at(model.graph, node.outputs[output]);
      const std::string names[] = {value.name, std::to_string(output), fmt::format("arr_{}", output)};
      const auto name = std::ranges::find_if(names, [&](const std::string& key) { return in_file.contains(key); });
      if (name != std::end(names)) {
        values[value.name] = in_file.at(*name);
      } else if (!value.readers.empty() || value.is_graph_output) {
        return usage_error(fmt::format("--stub {}: '{}' holds neither '{}' nor '{}', output {} of node '{}'", op, file,
                                       value.name, output, output, node.display_name));
      }
    }
  }
  if (!is_found)
    return usage_error(fmt::format("--stub {}: the main graph of '{}' has no node of that operator", op, model.path));
  return values;
}

}  // namespace parallax
