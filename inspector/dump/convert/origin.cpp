// SPDX-License-Identifier: Apache-2.0
// One reader for each kind of origin, chosen by what the path is.
#include "inspector/dump/convert/origin.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "inspector/dump/dump_reader.h"
#include "inspector/dump/model_weights.h"
#include "inspector/dump/tensor_files/npy.h"
#include "inspector/exec/value_path.h"

namespace parallax::dump {
namespace {

namespace fs = std::filesystem;
using Values = std::vector<OriginValue>;

constexpr size_t kMaxFiles = 1000000;

Values with_role(std::vector<NamedValue> values, ValueInfo::Role role) {
  Values result;
  for (NamedValue& value : values) result.push_back({std::move(value), role, false});
  return result;
}

Result<Values> read_npz_values(const std::string& path) {
  return with_role(PX_TRY(read_npz(path)), ValueInfo::Role::node_output);
}
Result<Values> read_safetensors_values(const std::string& path) {
  return with_role(PX_TRY(read_safetensors(path)), ValueInfo::Role::node_output);
}
Result<Values> read_polygraphy_values(const std::string& path) {
  PolygraphyFile file = PX_TRY(read_polygraphy(path));
  if (file.iterations.size() > 1)
    return usage_error(fmt::format("'{}' holds {} iterations, and a dump holds the values of one: save one by itself",
                                   path, file.iterations.size()));
  Values values = with_role(std::move(file.iterations.front()),
                            file.is_results ? ValueInfo::Role::node_output : ValueInfo::Role::input);
  for (OriginValue& value : values) value.is_graph_output = file.is_results;
  return values;
}
Result<Values> read_npy_value(const std::string& path) {
  Tensor tensor = PX_TRY(read_npy(path));
  return Values{
      {{value_name_of(fs::path(path).stem().string()), Value(std::move(tensor))}, ValueInfo::Role::node_output, false}};
}

// Initializers, and the tensors of Constant nodes under the paths of their outputs; those of bodies, too.
Result<Values> read_constants(const std::string& path) {
  const auto model = PX_TRY(import_model(path));
  const auto weights = PX_TRY(weights_of(model));
  Values values;
  const auto entries = weights->entries();
  for (size_t index = 0; index < entries.size(); ++index) {
    const DumpEntry& entry = entries[index];
    // A name of the main graph may be the path of a value that was exported so.
    const bool is_in_main_graph = entry.path == escape_name(entry.name);
    Value value = PX_TRY(weights->load(static_cast<int32_t>(index)));
    values.push_back(
        {{is_in_main_graph ? entry.name : entry.path, std::move(value)}, entry.role, entry.is_graph_output});
  }
  return values;
}

// The values of a dump's first execution that were captured in full, under their paths.
Result<Values> read_dump_values(const std::string& path) {
  const auto dump = PX_TRY(DumpReader::open(path));
  Values values;
  const auto entries = dump->entries();
  for (size_t index = 0; index < entries.size(); ++index) {
    const DumpEntry& entry = entries[index];
    if (entry.execution > 0 || entry.absence.has_value() || entry.level != CaptureLevel::all) continue;
    Value value = PX_TRY(dump->load(static_cast<int32_t>(index)));
    values.push_back({{entry.path, std::move(value)}, entry.role, entry.is_graph_output});
  }
  return values;
}

struct FileReader {
  std::string_view ending;
  Result<Values> (*read)(const std::string&);
};
constexpr std::array<FileReader, 9> kFileReaders = {{
    {".plx", read_dump_values},
    {".npz", read_npz_values},
    {".safetensors", read_safetensors_values},
    {".npy", read_npy_value},
    {".json", read_polygraphy_values},
    {".onnx", read_constants},
    {".textproto", read_constants},
    {".pbtxt", read_constants},
    {".txt", read_constants},
}};

// Number of "input_12.pb" for the prefix "input_"; -1 for another name.
int number_of(const std::string& file, std::string_view prefix) {
  constexpr std::string_view kEnding = ".pb";
  if (!file.starts_with(prefix) || !file.ends_with(kEnding)) return -1;
  const std::string digits = file.substr(prefix.size(), file.size() - prefix.size() - kEnding.size());
  if (digits.empty() || digits.size() > 6 || digits.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::stoi(digits);
}

Result<OriginValue> read_data_set_file(const std::string& folder, bool is_output, int number, const Graph* graph) {
  const std::string name = fmt::format("{}_{}", is_output ? "output" : "input", number);
  const ValueDef* declared = nullptr;
  if (graph != nullptr) {
    const auto& list = is_output ? graph->outputs : graph->inputs;
    if (static_cast<size_t>(number) < list.size())
      declared = &graph->values[static_cast<size_t>(list[static_cast<size_t>(number)])];
  }
  auto read = read_value_file(fmt::format("{}/{}.pb", folder, name), declared == nullptr ? TypeInfo{} : declared->type);
  if (!read.ok() && graph == nullptr && is_nested_value_file(fmt::format("{}/{}.pb", folder, name))) {
    return usage_error(fmt::format(
        "'{}/{}.pb' holds a sequence, an optional or a map; which of them, only --model can say so", folder, name));
  }
  if (!read.ok() && graph == nullptr) {
    Error error = std::move(read).error();
    error.message += "; it was read as a tensor: where it is anything else, only --model can say so";
    return error;
  }
  NamedValue value = PX_TRY(std::move(read));
  // The file's number says which input or output it is; the name in the file is often empty, and need not be the
  // model's.
  if (declared != nullptr && graph->find_value(value.name) == kNoValue) value.name = declared->name;
  if (value.name.empty()) value.name = name;
  return OriginValue{std::move(value), is_output ? ValueInfo::Role::node_output : ValueInfo::Role::input, is_output};
}

Result<Values> read_data_set(const std::string& folder, std::vector<int> inputs, std::vector<int> outputs,
                             const Graph* graph) {
  Values values;
  for (auto* numbers : {&inputs, &outputs}) {
    std::ranges::sort(*numbers);
    for (const int number : *numbers)
      values.push_back(PX_TRY(read_data_set_file(folder, numbers == &outputs, number, graph)));
  }
  return values;
}

Result<Values> read_folder(const std::string& folder, const Graph* graph) {
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::vector<std::string> arrays;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (number_of(name, "input_") >= 0) inputs.push_back(number_of(name, "input_"));
    if (number_of(name, "output_") >= 0) outputs.push_back(number_of(name, "output_"));
    if (name.ends_with(".npy")) arrays.push_back(entry->path().string());
    if (arrays.size() > kMaxFiles || inputs.size() > kMaxFiles)
      return usage_error(fmt::format("folder '{}' holds more than {} files of tensors; it must hold at most so many",
                                     folder, kMaxFiles));
  }
  if (error) return io_error("cannot read folder '" + folder + "': " + error.message());
  if (!inputs.empty() || !outputs.empty()) return read_data_set(folder, std::move(inputs), std::move(outputs), graph);
  if (arrays.empty())
    return usage_error("folder '" + folder + "' holds neither input_N.pb or output_N.pb nor .npy files");
  std::ranges::sort(arrays);
  Values values;
  for (const std::string& path : arrays) values.push_back(std::move(PX_TRY(read_npy_value(path)).front()));
  return values;
}

}  // namespace

Result<std::vector<OriginValue>> read_origin(const std::string& origin, const Graph* graph) {
  std::error_code error;
  if (fs::is_directory(origin, error)) return read_folder(origin, graph);
  for (const FileReader& reader : kFileReaders) {
    if (origin.ends_with(reader.ending)) return reader.read(origin);
  }
  if (!fs::exists(origin, error)) return io_error("there is no '" + origin + "'");
  return usage_error("'" + origin +
                     "' is of no kind that can be imported: a test_data_set folder, a folder of .npy, a .npy, .npz, "
                     ".safetensors, .plx or .onnx file, or Polygraphy's .json");
}

std::string file_name_of(std::string_view value_name) {
  std::string name;
  for (const char character : value_name) {
    if (character == '/') {
      name += "%2F";
    } else if (character == '%') {
      name += "%25";
    } else {
      name += character;
    }
  }
  return name;
}

std::string value_name_of(std::string_view file_stem) {
  std::string name;
  for (size_t position = 0; position < file_stem.size(); ++position) {
    const std::string_view code = file_stem.substr(position, 3);
    const bool is_code = code == "%2F" || code == "%25";
    name += code == "%2F" ? '/' : file_stem[position];
    if (is_code) position += 2;
  }
  return name;
}

}  // namespace parallax::dump
