// SPDX-License-Identifier: Apache-2.0
// `parallax sweep`: the Python package's, which this process becomes.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/executors/foreign/interpreter.h"

namespace parallax::cli {
namespace {

constexpr const char* kModule = "parallax.sweep";

// Without words of its own; run_sweep takes those.
class SweepCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("ARGUMENTS", words_, "what python3 -m parallax.sweep takes; with --help after it, its own help")
        ->type_name("FILES");
    app.add_flag("--json", json_, "print one JSON document on stdout, and nothing else there");
  }
  Result<int> execute() override {
    return usage_error("sweep takes the arguments of python3 -m parallax.sweep, and gets none (parallax sweep --help)");
  }

 private:
  std::vector<std::string> words_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_sweep_command() { return std::make_unique<SweepCommand>(); }

Result<int> run_sweep(std::span<const std::string> words) {
  const std::string python = PX_TRY(foreign::find_python());
  const std::vector<std::string> packages = foreign::packages_of(python);
  if (std::ranges::find(packages, kModule) == packages.end())
    return usage_error(fmt::format("'{}' has no module {}, or does not start; {}", python, kModule,
                                   foreign::install_advice(python, foreign::kPackage)));
  std::vector<std::string> command = {python, "-m", kModule};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  static_cast<void>(flush_output());
  ::execv(python.c_str(), arguments.data());
  return io_error(fmt::format("'{}' cannot be run: {}", python, std::strerror(errno)));
}

}  // namespace parallax::cli
