// SPDX-License-Identifier: Apache-2.0
// Options that several verbs share: how the parser knows them, and what ends a verb that has compared.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "inspector/base/result.h"
#include "inspector/cli/command.h"
#include "inspector/diff/comparison.h"
#include "inspector/workbench/request_options.h"
#include "inspector/workbench/run.h"

namespace parallax::cli {

// Checks of an option's text, which say in one sentence what is wrong with it.
CLI::Validator whole_number(int64_t low, uint64_t high);
CLI::Validator number_from_zero();

// --json, --threads
struct CommonOptions {
  bool json = false;
  bool force = false;
  int threads = 0;
  void declare(CLI::App& app, bool computes);
  void apply() const;
  void declare_force(CLI::App& app);  // --force, of verbs that write files
};

// The arguments of workbench/request_options.h, declared on a verb's parser.
struct InputOptions : InputArguments {
  void declare(CLI::App& app);
  void name_files(NamedFiles& named) const;  // adds those that are read
};
struct ModeOptions : ModeArguments {
  void declare(CLI::App& app);
};
struct PolicyOptions : PolicyArguments {
  void declare(CLI::App& app);
};

// --rewrite alone, for verbs without the other modes; --fallback alone.
void declare_rewrite(CLI::App& app, std::string& text);
void declare_fallback(CLI::App& app, std::string& fallback);

inline constexpr int64_t kDefaultTop = 10;  // of --top

// --csv, --junit, --html, --dot, --svg, --netron, --model-explorer and --top
struct ReportOptions {
  std::string csv, junit, html, dot, svg, netron, model_explorer;
  std::optional<int64_t> top;
  void declare(CLI::App& app);
  bool needs_error_pictures() const { return !html.empty(); }
  // Writes the files asked for and prints the text or JSON form, whatever became of the files: as JSON, their error is
  // part of the document. `graph` (may be null) is what pictures are drawn of. The value is the verb's exit code.
  Result<int> write(const Comparison& comparison, const Graph* graph, bool json) const;
  Status write_files(const Comparison& comparison, const Graph* graph) const;
  bool asks_for_files() const;
  void name_files(NamedFiles& named) const;  // adds those that are written
  Status check_distinct() const;             // errors: usage, where two options name one file
};

// Refuses to write a dump under a name that says the file is of another kind: usage.
Status check_dump_name(std::string_view option, const std::string& output);

// The exit code of a comparison: 0 pass, 1 diverged or inconclusive.
int exit_code_of(const Comparison& comparison);
// How a verb ends that has shown a comparison: with the error of what is damaged, which is part of the JSON form, or
// with the verdict's exit code.
Result<int> end_of(const Comparison& comparison, bool json);

ExecutorFactory executor_factory();
// --with of a verb that runs one executor: its name, or the one of default_executors that computes fast.
Result<std::string> one_executor(std::string_view verb, const std::string& text);
// --with: one name or two; the default where `text` is empty.
Result<std::vector<std::string>> executors_of(const std::string& text, bool against);

}  // namespace parallax::cli
