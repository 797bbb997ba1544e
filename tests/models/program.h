// SPDX-License-Identifier: Apache-2.0
// Runs the built `parallax` as a script would, and reads its JSON documents.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace parallax::end_to_end {

struct Answer {
  int exit_code = -1;       // -1: ended by a signal
  nlohmann::json document;  // what --json printed; discarded() when it was none
  std::string messages;     // stderr
  std::string command;      // repeats the run
};

// parallax ARGUMENTS... --json
Answer run_json(const std::vector<std::string>& arguments);

// The entry of `document["values"]` with this path; null when there is none.
nlohmann::json value_at(const nlohmann::json& document, const std::string& path);

std::string sample(const std::string& name);  // absolute path below samples/

// A folder of its own for the current test, removed with the object.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace parallax::end_to_end
