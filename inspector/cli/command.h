// SPDX-License-Identifier: Apache-2.0
// Command: one verb of the program. Verbs are listed in commands.cpp; each file *_command.cpp holds one or a few of
// them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"

namespace CLI {
class App;
}

namespace parallax::cli {

// The files and folders that a command line names, which are checked before the verb does any work; empty texts are
// none.
struct NamedFiles {
  std::vector<std::string> read;
  std::vector<std::string> written;
  std::vector<std::string> written_folders;
  bool may_replace = false;  // --force
};

class Command {
 public:
  virtual ~Command() = default;
  // Declares positional arguments and options on the verb's parser.
  virtual void declare(CLI::App& app) = 0;
  // After parsing.
  virtual NamedFiles files() const { return {}; }
  // Runs after parsing. The value is the process's exit code; results are on stdout by then.
  virtual Result<int> execute() = 0;
};

struct Verb {
  std::string_view name;
  std::string_view summary;  // one line, for the list of verbs
  std::string_view example;  // a runnable line
  std::unique_ptr<Command> (*make)();
};

std::span<const Verb> verbs();  // in the order of the help

std::unique_ptr<Command> make_run_command();
std::unique_ptr<Command> make_test_command();
std::unique_ptr<Command> make_bench_command();
std::unique_ptr<Command> make_profile_command();
std::unique_ptr<Command> make_generate_command();
std::unique_ptr<Command> make_doctor_command();
std::unique_ptr<Command> make_blame_command();
std::unique_ptr<Command> make_diff_command();
std::unique_ptr<Command> make_show_command();
std::unique_ptr<Command> make_dot_command();
std::unique_ptr<Command> make_tensor_command();
std::unique_ptr<Command> make_extract_command();
std::unique_ptr<Command> make_reduce_command();
std::unique_ptr<Command> make_import_command();
std::unique_ptr<Command> make_export_command();
std::unique_ptr<Command> make_check_command();
std::unique_ptr<Command> make_repair_command();
std::unique_ptr<Command> make_rewrite_command();
std::unique_ptr<Command> make_convert_command();
std::unique_ptr<Command> make_audit_command();
std::unique_ptr<Command> make_merge_decoders_command();
std::unique_ptr<Command> make_sweep_command();

// Becomes `python3 -m parallax.sweep` with these words, so that a signal reaches it. Errors: usage, where there is no
// Python, or it has no such package; io.
Result<int> run_sweep(std::span<const std::string> words);

}  // namespace parallax::cli
