// SPDX-License-Identifier: Apache-2.0
// Writes models and data sets into folders.
#include "inspector/transform/part_files.h"

#include <filesystem>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "inspector/base/input_files.h"
#include "inspector/base/output_group.h"
#include "inspector/model/io/export.h"

namespace parallax::transform {
namespace {

namespace fs = std::filesystem;

// The files of an earlier data set.
std::vector<fs::path> old_files(const std::string& folder, std::error_code& error) {
  std::vector<fs::path> old;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if ((name.starts_with("input_") || name.starts_with("output_")) && name.ends_with(".pb"))
      old.push_back(entry->path());
  }
  return old;
}

// More inputs than there are now would be taken for this data set's.
Status replace_old_files(const std::string& folder, OutputGroup& group) {
  std::error_code error;
  const std::vector<fs::path> old = old_files(folder, error);
  if (error) return io_error(fmt::format("cannot clear folder '{}': {}", folder, error.message()));
  for (const fs::path& path : old) {
    PX_TRY(admit_output(path.string()));
    group.replace(path.string());
  }
  return {};
}

// Values of a part's edge, under the names of their files.
using NamedFiles = std::map<std::string, NamedValue>;

void add_files(const std::vector<PartValue>& edges, const std::vector<Value>& values, std::string_view kind,
               NamedFiles& files) {
  for (size_t index = 0; index < std::min(edges.size(), values.size()); ++index) {
    if (!values[index].is_absent()) files[fmt::format("{}_{}.pb", kind, index)] = {edges[index].name, values[index]};
  }
}

}  // namespace

Status admit_part(const std::string& directory, const std::vector<std::string>& files) {
  PX_TRY(admit_output_folder(directory));
  for (const std::string& name : files) {
    const std::string path = directory + "/" + name;
    PX_TRY(name.ends_with(".onnx") ? admit_model(path) : admit_output(path));
  }
  std::error_code none;  // whoever clears the folder says what is wrong with it
  for (const fs::path& path : old_files(directory + "/test_data_set_0", none)) PX_TRY(admit_output(path.string()));
  return {};
}

Result<std::string> write_model(const Model& model, const std::string& directory, const std::string& name) {
  PX_TRY(make_output_folder(directory));
  const std::string path = directory + "/" + name;
  PX_TRY(export_model(model, path));
  return path;
}

Result<std::string> write_data_set(const Part& part, const PartData& data, const std::string& directory) {
  const std::string folder = directory + "/test_data_set_0";
  OutputGroup group;
  PX_TRY(make_output_folder(folder));
  PX_TRY(replace_old_files(folder, group));
  NamedFiles files;
  add_files(part.inputs, data.inputs, "input", files);
  add_files(part.outputs, data.outputs, "output", files);
  for (const auto& [name, value] : files) PX_TRY(write_value_file(folder + "/" + name, value));
  PX_TRY(group.finish());
  return folder;
}

}  // namespace parallax::transform
