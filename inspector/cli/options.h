// Options that several verbs share, and the reading of their little languages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "inspector/base/result.h"
#include "inspector/diff/comparison.h"
#include "inspector/diff/policy.h"
#include "inspector/workbench/run.h"

namespace parallax::cli {

// Checks of an option's text, which say in one sentence what is wrong with it.
CLI::Validator whole_number(int64_t low, uint64_t high);
CLI::Validator number_from_zero();

// --json, --threads
struct CommonOptions {
  bool json = false;
  int threads = 0;
  void declare(CLI::App& app, bool computes);
  void apply() const;
};

// --inputs, --input, --seed, --shape, --dim, --range
struct InputOptions {
  std::string source;
  std::vector<std::string> files, shapes, dims, ranges;
  uint64_t seed = 0;
  void declare(CLI::App& app);
  bool is_given() const;
  Result<InputRequest> request() const;
};

// --tf32, --accumulate, --rewrite, --observe-all, --fallback, --memory-limit, --keep-casts
struct ModeOptions {
  std::string tf32 = "off", accumulate = "default", rewrite = "default", fallback;
  std::string memory_limit;
  bool observe_all = false, keep_casts = false;
  void declare(CLI::App& app);
  bool is_given() const;
  Status apply(RunRequest& request) const;
};

// --rewrite alone, for verbs without the other modes.
void declare_rewrite(CLI::App& app, std::string& text);
Result<RewriteChoice> parse_rewrite(const std::string& text);

// --fallback alone. Errors: usage.
void declare_fallback(CLI::App& app, std::string& fallback);
Status check_fallback(const std::string& fallback);

// --policy, --rtol, --atol, --per, --policy-file
struct PolicyOptions {
  std::string policy, file, rtol, atol;
  std::vector<std::string> per;
  void declare(CLI::App& app);
  bool is_given() const { return !policy.empty() || !file.empty() || !rtol.empty() || !atol.empty() || !per.empty(); }
  Result<Policy> make() const;
};

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
  Status keep_inputs(const std::vector<std::string>& inputs) const;  // as below, for all of the files
};

// What a verb writes must not be what it reads. Error: usage, naming both, where they are the same file; an empty
// `output` is none.
Status keep_inputs(const std::string& output, const std::vector<std::string>& inputs);

// Where a dump is written, a name that says the file is of another kind is refused: usage.
Status check_dump_name(std::string_view option, const std::string& output);

// A dump where a model is wanted: a usage error that names the verbs that read dumps.
Status refuse_dump(const std::string& model);

Result<int64_t> parse_bytes(std::string_view option, const std::string& text);  // "512M", "2GiB", "1000"
Result<int64_t> parse_integer(std::string_view option, std::string_view text);

// The exit code of a comparison: 0 pass, 1 diverged or inconclusive.
int exit_code_of(const Comparison& comparison);
// How a verb ends that has shown a comparison: with the error of what is damaged, which is part of the JSON form, or
// with the verdict's exit code.
Result<int> end_of(const Comparison& comparison, bool json);

ExecutorFactory executor_factory();
std::vector<std::string> default_executors(bool against);
// --with of a verb that runs one executor: its name, or the one of default_executors that computes fast.
Result<std::string> parse_executor(std::string_view verb, const std::string& text);
// --with: one name or two; the default where `text` is empty.
Result<std::vector<std::string>> parse_executors(const std::string& text, bool against);

}  // namespace parallax::cli
