// SPDX-License-Identifier: Apache-2.0
// Path checks of external data. A model is untrusted: its `location` must not reach files outside its own folder.
#include "inspector/model/io/external_data.h"

#include <filesystem>
#include <system_error>

namespace parallax {

namespace fs = std::filesystem;

Result<std::string> ExternalData::resolve(const std::string& location) const {
  const std::string what = "external data '" + location + "'";
  if (directory_.empty()) return unsupported(what + ": a model read from memory has no folder to find it in");
  if (location.empty()) return invalid_model("external data without a location; it must name a file next to the model");
  if (location.find('\0') != std::string::npos)
    return invalid_model("external data whose location holds a zero byte; it must be a file name");
  const fs::path relative(location);
  if (relative.is_absolute()) return invalid_model(what + ": the location must be relative to the model's folder");
  for (const fs::path& part : relative) {
    if (part == "..") return invalid_model(what + ": the location must not contain '..'");
  }
  std::error_code error;
  const fs::path folder = fs::canonical(directory_, error);
  if (error) return io_error("cannot open folder '" + directory_ + "': " + error.message());
  const fs::path file = fs::canonical(folder / relative, error);
  if (error) return io_error("cannot open " + what + " next to the model: " + error.message());
  const auto [end_of_folder, end_of_file] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  if (end_of_folder != folder.end() || end_of_file == file.end())
    return invalid_model(what + ": a symbolic link leads out of the model's folder; the file must be within it");
  return file.string();
}

Result<std::shared_ptr<const MappedFile>> ExternalData::open(const std::string& location) {
  if (const auto known = files_.find(location); known != files_.end()) return known->second;
  const std::string path = PX_TRY(resolve(location));
  auto file = PX_TRY(MappedFile::open(path));
  files_.emplace(location, file);
  return file;
}

}  // namespace parallax
