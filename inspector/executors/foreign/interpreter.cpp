// SPDX-License-Identifier: Apache-2.0
// Looks for python3.
#include "inspector/executors/foreign/interpreter.h"

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include <fmt/format.h>

#include "inspector/base/shell.h"
#include "inspector/base/signal_cleanup.h"
#include "inspector/base/text.h"

namespace parallax::foreign {
namespace {

namespace fs = std::filesystem;

std::mutex mutex;
struct Python {
  std::string executable, package_folder;
};
Python& running_python() {
  static auto* const python = new Python;
  return *python;
}

}  // namespace

void set_python(std::string executable, std::string package_folder) {
  const std::lock_guard lock(mutex);
  running_python() = {std::move(executable), std::move(package_folder)};
}

Result<std::string> find_python() {
  {
    const std::lock_guard lock(mutex);
    if (!running_python().executable.empty()) return running_python().executable;
  }
  if (const char* const named = std::getenv("PARALLAX_PYTHON"); named != nullptr && *named != '\0') {
    if (std::string found = find_program(named); !found.empty()) return found;
    return usage_error(
        fmt::format("PARALLAX_PYTHON is '{}', which is no program that can be run; set it to a python3", named));
  }
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  // A wheel's program: ENVIRONMENT/lib/python3.N/site-packages/parallax_onnx.scripts/parallax, started by
  // ENVIRONMENT/bin/parallax.
  const fs::path packages = folder.parent_path();
  const bool is_of_wheel = packages.filename() == "site-packages";
  const fs::path environment = packages.parent_path().parent_path().parent_path();
  const std::string next_to_it = error ? "" : (folder / "python3").string();
  const std::string of_wheel = error || !is_of_wheel ? "" : (environment / "bin" / "python3").string();
  for (const std::string& python : {next_to_it, of_wheel, std::string("python3")}) {
    if (std::string found = find_program(python); !found.empty()) return found;
  }
  return usage_error("no python3 is found next to this program or on the PATH; set PARALLAX_PYTHON to one");
}

Result<std::vector<std::string>> python_module(std::string_view module, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {PX_TRY(find_python()), "-m", std::string(module)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

std::string python_command(const std::vector<std::string>& words) {
  std::string folder;
  {
    const std::lock_guard lock(mutex);
    folder = running_python().package_folder;
  }
  std::string command;
  if (!folder.empty())
    command = fmt::format("export PYTHONPATH={}\"${{PYTHONPATH:+:$PYTHONPATH}}\"; ", shell_quoted(folder));
  command += "exec";
  for (const std::string& word : words) command += ' ' + shell_quoted(word);
  return command;
}

std::vector<std::string> packages_of(const std::string& python) {
  constexpr std::string_view kProgram =
      "import importlib.util as u, os\n"
      "found = u.find_spec('parallax')\n"
      "for folder in (found.submodule_search_locations or []) if found else []:\n"
      "  for name in ('runners', 'sweep'):\n"
      "    if any(os.path.exists(os.path.join(folder, name + end)) for end in ('.py', '/__init__.py')):\n"
      "      print('parallax.' + name)\n"
      "for name in ('onnxruntime', 'torch', 'openvino', 'tensorrt'):\n"
      "  if u.find_spec(name): print(name)\n";
  constexpr double kLimitS = 20;
  const auto folder = TemporaryPath::make_folder("parallax-python");
  if (!folder.ok()) return {};
  const std::string command = python_command({python, "-c", std::string(kProgram)}) + " 2>/dev/null";
  const auto outcome = run_shell(command, kLimitS, (*folder)->file("packages"));
  if (!outcome.ok()) return {};
  std::vector<std::string> packages;
  for (const std::string_view line : split(outcome->output, '\n')) packages.emplace_back(line);
  return packages;
}

std::string install_advice(const std::string& python, std::string_view package) {
  return fmt::format("install it there with {} -m pip install {}, or name another Python in PARALLAX_PYTHON",
                     shell_quoted(python), package);
}

}  // namespace parallax::foreign
