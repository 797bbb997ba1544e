// SPDX-License-Identifier: Apache-2.0
// Reading the sources of inputs, and splitting them into samples.
#include "inspector/workbench/inputs/data_sources.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "inspector/base/input_files.h"
#include "inspector/dump/tensor_files/npy.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKinds = "a test_data_set_N folder, a .npz, a .safetensors or Polygraphy's .json file";
constexpr std::string_view kDataSet = "test_data_set_";

// "12" -> 12; -1 for anything but digits.
int64_t number_of(std::string_view digits) {
  if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string_view::npos)
    return -1;
  return std::stoll(std::string(digits));
}

// "input_12.pb" -> 12 for the prefix "input_"; -1 for other names.
int64_t file_number(const std::string& file, std::string_view prefix) {
  if (!file.starts_with(prefix) || !file.ends_with(".pb")) return -1;
  return number_of(std::string_view(file).substr(prefix.size(), file.size() - prefix.size() - 3));
}

// The files input_N.pb or output_N.pb of a test_data_set, each under the name it carries, or else the name at position
// N.
Result<std::vector<NamedValue>> read_data_set(const Graph& graph, const std::vector<ValueId>& ids,
                                              const std::string& folder, std::string_view prefix) {
  std::vector<NamedValue> values;
  for (const auto& [number, path] : PX_TRY(data_set_files(folder, prefix))) {
    if (number >= static_cast<int64_t>(ids.size()))
      return usage_error(fmt::format("'{}': the model has only {} of these; numbers begin with 0", path, ids.size()));
    const ValueDef& at_position = value_at(graph, ids[static_cast<size_t>(number)]);
    NamedValue value = PX_TRY(read_value_file(path, at_position.type));
    if (!names_one_of(graph, ids, value.name)) value.name = at_position.name;
    values.push_back(std::move(value));
  }
  return values;
}

// The folders test_data_set_N of a folder, by N.
std::map<int64_t, std::string> data_sets_of(const std::string& folder) {
  std::map<int64_t, std::string> sets;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const int64_t number = name.starts_with(kDataSet) ? number_of(std::string_view(name).substr(kDataSet.size())) : -1;
    if (number >= 0 && entry->is_directory(error)) sets[number] = entry->path().string();
  }
  return sets;
}

// How many iterations a file has, and whether it holds any of the model's inputs.
struct FileContents {
  size_t iterations = 1;
  bool is_json = false;
  bool has_inputs = false;
};

Result<FileContents> contents_of(const std::string& path, const Graph* graph) {
  FileContents contents;
  const auto look = [&](const std::vector<NamedValue>& values) {
    contents.has_inputs |= graph == nullptr || std::ranges::any_of(values, [&](const NamedValue& value) {
                             return names_one_of(*graph, graph->inputs, value.name);
                           });
  };
  if (!path.ends_with(".json")) {
    if (graph == nullptr) return FileContents{1, false, true};  // its reader says what is wrong with it
    look(PX_TRY(read_value_file_of(path, -1)));
    return contents;
  }
  const PolygraphyFile file = PX_TRY(read_polygraphy(path));
  contents.is_json = true;
  contents.iterations = file.iterations.size();
  look(file.iterations.front());
  if (file.is_results) contents.has_inputs = false;
  return contents;
}

std::string base_name(const std::string& path) {
  const fs::path plain = fs::path(path).lexically_normal();
  return plain.has_filename() ? plain.filename().string() : plain.parent_path().filename().string();
}

class Samples {
 public:
  Samples(const InputRequest& shared, const Graph* graph) : shared_(shared), graph_(graph) {}

  Status add(const std::string& source) {
    input_files::note(source);
    std::error_code error;
    if (fs::is_directory(source, error)) return add_folder(source);
    if (!is_value_file(source)) return add_one(source, base_name(source), -1);  // its reader says what is wrong
    const FileContents file = PX_TRY(contents_of(source, graph_));
    if (!file.has_inputs) return add_results(source, file);
    first_of_last_ = samples_.size();
    for (size_t iteration = 0; iteration < file.iterations; ++iteration) {
      const std::string index = file.iterations > 1 ? fmt::format("[{}]", iteration) : "";
      push(source, base_name(source) + index, file.is_json ? static_cast<int64_t>(iteration) : -1);
    }
    return {};
  }

  std::vector<Sample> take() { return std::move(samples_); }

 private:
  Status add_folder(const std::string& folder) {
    const auto sets = data_sets_of(folder);
    const bool is_set = !PX_TRY(data_set_files(folder, "input_")).empty();
    if (is_set || sets.empty()) return add_one(folder, base_name(folder), -1);
    first_of_last_ = samples_.size();
    for (const auto& [number, path] : sets) push(path, base_name(path), -1);
    return {};
  }

  Status add_one(const std::string& source, const std::string& name, int64_t sample) {
    first_of_last_ = samples_.size();
    push(source, name, sample);
    return {};
  }

  Status add_results(const std::string& source, const FileContents& file) {
    const size_t count = samples_.size() - first_of_last_;
    if (samples_.empty())
      return usage_error(
          fmt::format("{} '{}' holds results alone: name the inputs that they were computed from before "
                      "it, in an {} of their own",
                      shared_.source_option, source, shared_.source_option));
    if (file.iterations != count)
      return usage_error(fmt::format("{} '{}' holds {} iterations of results, and the inputs before it are {} samples",
                                     shared_.source_option, source, file.iterations, count));
    for (size_t index = first_of_last_; index < samples_.size(); ++index) {
      InputRequest& inputs = samples_[index].inputs;
      inputs.results.push_back(source);
      if (file.is_json && inputs.sample < 0) inputs.sample = static_cast<int64_t>(index - first_of_last_);
    }
    return {};
  }

  void push(const std::string& source, const std::string& name, int64_t sample) {
    std::string unique = name;
    for (int number = 2; !names_.insert(unique).second; ++number) unique = fmt::format("{}#{}", name, number);
    Sample next{std::move(unique), shared_};
    next.inputs.source = source;
    next.inputs.sample = sample;
    samples_.push_back(std::move(next));
  }

  const InputRequest& shared_;
  const Graph* graph_;  // null: there is one source, which must hold inputs
  std::vector<Sample> samples_;
  std::set<std::string> names_;
  size_t first_of_last_ = 0;  // of the samples that the last source made
};

}  // namespace

bool names_one_of(const Graph& graph, const std::vector<ValueId>& ids, const std::string& name) {
  return std::ranges::any_of(ids, [&](ValueId id) { return value_at(graph, id).name == name; });
}

Result<std::map<int64_t, std::string>> data_set_files(const std::string& folder, std::string_view prefix) {
  std::map<int64_t, std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const int64_t number = file_number(entry->path().filename().string(), prefix);
    if (number >= 0) files[number] = entry->path().string();
  }
  if (error) return io_error(fmt::format("cannot read folder '{}': {}", folder, error.message()));
  return files;
}

bool is_value_file(const std::string& path) {
  return path.ends_with(".npz") || path.ends_with(".safetensors") || path.ends_with(".json");
}

Result<std::vector<NamedValue>> read_value_file_of(const std::string& path, int64_t sample) {
  input_files::note(path);
  if (path.ends_with(".npz")) return read_npz(path);
  if (path.ends_with(".safetensors")) return read_safetensors(path);
  PolygraphyFile file = PX_TRY(read_polygraphy(path));
  if (sample < 0 && file.iterations.size() > 1)
    return usage_error(fmt::format("'{}' holds {} iterations; only run takes several", path, file.iterations.size()));
  const auto index = static_cast<size_t>(std::max<int64_t>(sample, 0));
  if (index >= file.iterations.size())
    return usage_error(fmt::format("'{}' has no iteration {}: it holds {}", path, index, file.iterations.size()));
  return std::move(file.iterations[index]);
}

Result<SourceValues> read_source(const Graph& graph, bool is_part, const InputRequest& request) {
  const std::string &source = request.source, &option = request.source_option;
  std::error_code error;
  input_files::note(source);
  SourceValues read;
  if (fs::is_directory(source, error)) {
    read.values = PX_TRY(read_data_set(graph, graph.inputs, source, "input_"));
    if (!is_part) read.outputs = PX_TRY(read_data_set(graph, graph.outputs, source, "output_"));
    if (!read.values.empty() || !read.outputs.empty()) return read;
    if (const auto sets = data_sets_of(source); !sets.empty())
      return usage_error(fmt::format("folder '{}' holds {} data sets, which only run takes together: name one of them",
                                     source, sets.size()));
    return usage_error(fmt::format("folder '{}' holds no input_N.pb: {} takes {}", source, option, kKinds));
  }
  if (is_value_file(source)) {
    read.values = PX_TRY(read_value_file_of(source, request.sample));
    return read;
  }
  if (!fs::exists(source, error)) return io_error(fmt::format("{}: there is no '{}'", option, source));
  return usage_error(fmt::format("{} '{}': expected {}", option, source, kKinds));
}

Result<std::vector<Sample>> samples_of(const InputRequest& request, const std::vector<std::string>& sources,
                                       const std::string& model) {
  if (sources.empty()) return std::vector<Sample>{{"", request}};
  std::shared_ptr<const Model> loaded;
  if (sources.size() > 1) loaded = PX_TRY(import_model(model, {.checks = ModelChecks::recorded}));
  Samples samples(request, loaded == nullptr ? nullptr : &loaded->graph);
  for (const std::string& source : sources) PX_TRY(samples.add(source));
  return samples.take();
}

}  // namespace parallax
