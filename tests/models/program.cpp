// SPDX-License-Identifier: Apache-2.0
// The child process of program.h: its streams go to files of a scratch folder.
#include "tests/models/program.h"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <sys/wait.h>
#include <unistd.h>

namespace parallax::end_to_end {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + "'";
}

std::string contents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace

Answer run_json(const std::vector<std::string>& arguments) {
  const ScratchFolder scratch;
  Answer answer;
  answer.command = quoted(PX_PROGRAM);
  for (const std::string& argument : arguments) answer.command += " " + quoted(argument);
  answer.command += " --json";
  const std::string out = scratch.file("stdout");
  const std::string err = scratch.file("stderr");
  const int status = std::system((answer.command + " >" + quoted(out) + " 2>" + quoted(err)).c_str());
  answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  answer.document = nlohmann::json::parse(contents(out), nullptr, false);
  answer.messages = contents(err);
  return answer;
}

nlohmann::json value_at(const nlohmann::json& document, const std::string& path) {
  for (const nlohmann::json& value : document.at("values")) {
    if (value.at("path") == path) return value;
  }
  return nullptr;
}

std::string sample(const std::string& name) { return PX_SOURCE_DIR "/samples/" + name; }

ScratchFolder::ScratchFolder() {
  static std::atomic<int> count{0};
  path_ = std::filesystem::temp_directory_path() /
          ("parallax-" + std::to_string(getpid()) + "-" + std::to_string(count.fetch_add(1)));
  std::filesystem::create_directories(path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace parallax::end_to_end
