// SPDX-License-Identifier: Apache-2.0
// export_dump: picks the values of a dump that a kind of file can hold, and writes them.
#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "inspector/base/input_files.h"
#include "inspector/base/output_group.h"
#include "inspector/dump/convert/captured_objects.h"
#include "inspector/dump/convert/convert.h"
#include "inspector/dump/convert/origin.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/dump/tensor_files/npy.h"
#include "inspector/model/io/export.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;

struct Chosen {
  int32_t entry = -1;
  NamedValue named;  // under its path
};
using Write = Status (*)(const std::string& destination, const DumpReader& reader, std::vector<Chosen>& values);
using Refusal = std::string (*)(const Value& value);

std::string refuse_nested(const Value& value) {
  return value.is_tensor() ? "" : "only test_data_set holds sequences, optionals and maps";
}
std::string refuse_npy(const Value& value) {
  return value.is_tensor() ? refusal_of_npy(value.tensor()) : refuse_nested(value);
}
std::string refuse_safetensors(const Value& value) {
  return value.is_tensor() ? refusal_of_safetensors(value.tensor()) : refuse_nested(value);
}
std::string refuse_nothing(const Value&) { return ""; }

std::vector<NamedValue> names_of(const std::vector<Chosen>& values) {
  std::vector<NamedValue> named;
  for (const Chosen& value : values) named.push_back(value.named);
  return named;
}

Status write_as_npz(const std::string& destination, const DumpReader&, std::vector<Chosen>& values) {
  return write_npz(destination, names_of(values));
}

Status write_as_safetensors(const std::string& destination, const DumpReader&, std::vector<Chosen>& values) {
  return write_safetensors(destination, names_of(values));
}

// Judges the names of all its files before it is made and the first of them is written.
Status make_folder(const std::string& path, const std::vector<std::string>& files) {
  PX_TRY(admit_output_folder(path));
  for (const std::string& file : files) PX_TRY(admit_output(file));
  return make_output_folder(path);
}

Status write_as_folder(const std::string& destination, const DumpReader&, std::vector<Chosen>& values) {
  std::vector<std::string> files;
  for (const Chosen& value : values)
    files.push_back(fmt::format("{}/{}.npy", destination, dump::file_name_of(value.named.name)));
  PX_TRY(make_folder(destination, files));
  for (size_t index = 0; index < values.size(); ++index)
    PX_TRY(write_npy(files[index], values[index].named.value.tensor()));
  return {};
}

// A model whose initializers are the values.
Status write_as_model(const std::string& destination, const DumpReader&, std::vector<Chosen>& values) {
  Model model;
  model.ir_version = 10;
  model.opset_imports = {{"", 21}};
  model.producer_name = "parallax";
  model.graph.name = "constants";
  for (const Chosen& value : values) {
    StoredTensor stored;
    stored.name = value.named.name;
    stored.tensor = value.named.value.tensor();
    ValueDef def;
    def.name = stored.name;
    def.type = type_of(value.named.value);
    def.initializer_index = static_cast<int32_t>(model.graph.initializers.size());
    model.graph.initializer_values.push_back(static_cast<ValueId>(model.graph.values.size()));
    model.graph.values.push_back(std::move(def));
    model.graph.initializers.push_back(std::move(stored));
  }
  return export_model(model, destination);
}

// Inputs and outputs, numbered as they were observed: an executor shows them in the order of its graph.
Status write_as_data_set(const std::string& destination, const DumpReader& reader, std::vector<Chosen>& values) {
  const auto entry_of = [&](const Chosen& value) -> const DumpEntry& {
    return reader.entries()[static_cast<size_t>(value.entry)];
  };
  std::vector<std::string> files;
  int input_count = 0, output_count = 0;
  for (const Chosen& value : values) {
    const bool is_input = entry_of(value).role == ValueInfo::Role::input;
    files.push_back(is_input ? fmt::format("{}/input_{}.pb", destination, input_count++)
                             : fmt::format("{}/output_{}.pb", destination, output_count++));
  }
  PX_TRY(make_folder(destination, files));
  for (size_t index = 0; index < values.size(); ++index)
    PX_TRY(write_value_file(files[index], {entry_of(values[index]).name, values[index].named.value}));
  return {};
}

struct FileKind {
  std::string_view ending;
  Write write;
  Refusal refusal;
};
constexpr std::array<FileKind, 6> kKinds = {{
    {".npz", write_as_npz, refuse_npy},
    {".safetensors", write_as_safetensors, refuse_safetensors},
    {".onnx", write_as_model, refuse_nested},
    {".textproto", write_as_model, refuse_nested},
    {".pbtxt", write_as_model, refuse_nested},
    {".txt", write_as_model, refuse_nested},
}};
constexpr FileKind kFolder = {"", write_as_folder, refuse_npy};
constexpr FileKind kDataSet = {"", write_as_data_set, refuse_nothing};

Result<FileKind> kind_of(std::string destination) {
  while (destination.size() > 1 && destination.ends_with('/')) destination.pop_back();
  for (const FileKind& kind : kKinds) {
    if (destination.ends_with(kind.ending)) return kind;
  }
  const fs::path path(destination);
  if (path.filename().string().starts_with("test_data_set")) return kDataSet;
  std::error_code error;
  if (!path.has_extension() || fs::is_directory(path, error)) return kFolder;
  return usage_error("'" + destination +
                     "' has no ending to export to: .npz, .safetensors, .onnx, a folder named test_data_set..., or "
                     "another folder for .npy files");
}

// The order of a test_data_set's files is that of the graph's inputs and outputs, where the dump has the graph.
void order_by_graph(const DumpReader& reader, std::vector<Chosen>& values) {
  if (reader.graphs().empty()) return;
  const auto model = reader.model(0);
  if (!model.ok()) return;
  const Graph& graph = (*model)->graph;
  const auto location_of = [&](const Chosen& value) {
    const DumpEntry& entry = reader.entries()[static_cast<size_t>(value.entry)];
    const auto& list = entry.role == ValueInfo::Role::input ? graph.inputs : graph.outputs;
    const auto found = std::ranges::find(list, graph.find_value(entry.name));
    return std::pair(entry.role != ValueInfo::Role::input, found - list.begin());
  };
  std::ranges::stable_sort(values, {}, location_of);
}

// True for a path of a main graph, not of a body: bodies have inputs of their own.
bool is_of_main_graph(const std::string& path) {
  const auto parsed = parse_value_path(path);
  const auto is_outer = [](const Frame& frame) {
    return frame.kind == Frame::Kind::step || frame.kind == Frame::Kind::graph;
  };
  return parsed.ok() && std::ranges::all_of(parsed->frames, is_outer);
}

// The last value of each path whose elements are in the dump.
Result<std::vector<Chosen>> choose(const DumpReader& reader, const FileKind& kind, ExportReport& report) {
  std::vector<Chosen> values;
  std::set<std::string> paths;
  const auto entries = reader.entries();
  int64_t without_elements = 0;
  for (size_t index = entries.size(); index-- > 0;) {
    const DumpEntry& entry = entries[index];
    const bool is_input = entry.role == ValueInfo::Role::input && is_of_main_graph(entry.path);
    const bool is_interface = is_input || entry.is_graph_output;
    if (entry.absence.has_value() || (kind.write == kDataSet.write && !is_interface)) continue;
    if (entry.level != CaptureLevel::all || entry.type.kind == TypeInfo::Kind::unknown) {
      ++without_elements;
      continue;
    }
    if (!paths.insert(entry.path).second) {
      report.notes.push_back(fmt::format("'{}' was captured several times: the last one is exported", entry.path));
      continue;
    }
    Value value = PX_TRY(reader.load(static_cast<int32_t>(index)));
    const std::string refusal = kind.refusal(value);
    if (refusal.empty()) {
      values.push_back({static_cast<int32_t>(index), {entry.path, std::move(value)}});
    } else {
      report.notes.push_back(fmt::format("'{}' is left out: {}", entry.path, refusal));
    }
  }
  if (without_elements > 0)
    report.notes.push_back(
        fmt::format("{} values are left out: the dump does not hold all of their elements", without_elements));
  std::ranges::reverse(values);
  return values;
}

std::string explain_nothing(const DumpReader& reader, const FileKind& kind, const ExportReport& report) {
  if (!report.notes.empty()) return ": " + report.notes.front();
  if (kind.write != kDataSet.write || reader.entries().empty()) return "";
  return reader.graphs().empty()
             ? ": a test_data_set is made of a graph's inputs and outputs, and this dump has no graph that says which "
               "values are these (import --model gives it one)"
             : ": a test_data_set is made of a graph's inputs and outputs, and none of them was captured";
}

// A dump of captured modules as the model of constants that keeps their containers.
Result<ExportReport> export_objects(const std::string& dump, const DumpReader& reader, const std::string& destination) {
  const CapturedObjects objects = PX_TRY(read_captured_objects(dump));
  PX_TRY(write_captured_objects(objects, destination));
  ExportReport report;
  report.values = static_cast<int64_t>(objects.values.size());
  report.notes = objects.notes;
  const auto other = static_cast<int64_t>(reader.entries().size() - objects.values.size() - objects.notes.size());
  if (other > 0) report.notes.push_back(fmt::format("{} values that belong to no captured object are left out", other));
  return report;
}

}  // namespace

Result<ExportReport> export_dump(const std::string& dump, const std::string& destination) {
  const FileKind kind = PX_TRY(kind_of(destination));
  const auto reader = PX_TRY(DumpReader::open(dump));
  if (kind.write == write_as_model && !reader->structures().empty()) return export_objects(dump, *reader, destination);
  ExportReport report;
  std::vector<Chosen> values = PX_TRY(choose(*reader, kind, report));
  if (values.empty() && !reader->is_complete() && reader->entries().empty())
    return corrupt_file("'" + dump + "' breaks off before its first value; it must hold one to be exported");
  if (values.empty())
    return usage_error("'" + dump + "' holds no value that '" + destination + "' could hold" +
                       explain_nothing(*reader, kind, report));
  if (kind.write == kDataSet.write) order_by_graph(*reader, values);
  OutputGroup group;
  PX_TRY(kind.write(destination, *reader, values));
  PX_TRY(group.finish());
  report.values = static_cast<int64_t>(values.size());
  return report;
}

}  // namespace parallax
