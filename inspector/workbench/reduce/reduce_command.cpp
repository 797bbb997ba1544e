// SPDX-License-Identifier: Apache-2.0
// The criterion of --check: a command of the user's.
#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <regex.h>

#include "inspector/base/shell.h"
#include "inspector/base/text.h"
#include "inspector/transform/part_files.h"
#include "inspector/workbench/reduce/reduce_criteria.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;
using transform::Part;
using transform::PartData;

// The exit codes of sh for a command that it cannot run, and for one that it cannot find.
constexpr int kCannotRun = 126, kCannotFind = 127;

std::string absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == ';'; }

// A shell's quotes around a part of a command; 0 where there are none.
using Quote = char;

// `word`, which is quoted for the shell, as it must be written within quotes that are open around it.
std::string quoted_within(Quote quote, const std::string& word) {
  std::string written;
  for (const char c : word) {
    if (quote == '\'' && c == '\'') {
      written += "'\\''";
      continue;
    }
    if (quote == '"' && std::string_view("\\\"$`").find(c) != std::string_view::npos) written += '\\';
    written += c;
  }
  return written;
}

// A name in braces, and the word, quoted for the shell, that stands for it.
using Words = std::vector<std::pair<std::string_view, std::string>>;

// The command with a word in place of each name. A name in quotes of its own, "{model}", is the word itself; within a
// longer quoted text, which a second shell may read, the word stays one word there. Comments stay as they are.
std::string filled_in(std::string_view command, const Words& words) {
  std::string filled;
  Quote quote = 0;
  size_t quoted_from = 0;
  for (size_t at = 0; at < command.size(); ++at) {
    const char c = command[at];
    const std::string_view rest = command.substr(at);
    const auto found = std::ranges::find_if(words, [&](const auto& word) { return rest.starts_with(word.first); });
    if (found != words.end()) {
      const size_t end = at + found->first.size();
      const bool is_all = quote != 0 && quoted_from == at && command.substr(end).starts_with(quote);
      if (is_all) filled.pop_back();
      filled += quoted_within(is_all ? 0 : quote, found->second);
      if (is_all) quote = 0;
      at = is_all ? end : end - 1;
      continue;
    }
    const bool is_comment = quote == 0 && c == '#' && (at == 0 || is_blank(command[at - 1]));
    const size_t copied = is_comment ? std::min(rest.find('\n'), rest.size()) : c == '\\' && quote != '\'' ? 2 : 1;
    filled += rest.substr(0, copied);
    if (copied == 1 && (quote == 0 ? c == '\'' || c == '"' : c == quote)) {
      quote = quote == 0 ? c : 0;
      quoted_from = at + 1;
    }
    at += copied - 1;
  }
  return filled;
}

class Pattern {
 public:
  static Result<std::unique_ptr<Pattern>> compile(const std::string& text) {
    std::unique_ptr<Pattern> pattern(new Pattern);
    const int problem = ::regcomp(&pattern->regex_, text.c_str(), REG_EXTENDED | REG_NOSUB);
    if (problem == 0) {
      pattern->is_compiled_ = true;
      return pattern;
    }
    char message[200];
    ::regerror(problem, &pattern->regex_, message, sizeof message);
    return usage_error(fmt::format("--fail-regex '{}': {}", text, message));
  }
  ~Pattern() {
    if (is_compiled_) ::regfree(&regex_);
  }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  bool matches(const std::string& text) const {
    for (const std::string_view line : split(text, '\n')) {
      if (::regexec(&regex_, std::string(line).c_str(), 0, nullptr, 0) == 0) return true;
    }
    return false;
  }

 private:
  Pattern() = default;
  regex_t regex_{};
  bool is_compiled_ = false;
};

Result<bool> means_failure(const CheckCommand& check, const ShellOutcome& outcome) {
  if (outcome.timed_out) return false;
  const auto& codes = check.fail_codes;
  const bool has_code =
      codes.empty() ? outcome.exit_code != 0 : std::find(codes.begin(), codes.end(), outcome.exit_code) != codes.end();
  if (check.fail_regex.empty()) return has_code;
  const auto pattern = PX_TRY(Pattern::compile(check.fail_regex));
  return pattern->matches(outcome.output) && (codes.empty() || has_code);
}

class CommandFails final : public FailureCriterion {
 public:
  explicit CommandFails(const ReduceContext& context)
      : context_(context), folder_(context.scratch->file("candidate")) {}

  Result<bool> fails(const Part& part) override {
    const auto data = load_part_data(part, *context_.values);
    if (!data.ok()) return false;
    const auto model = transform::extract_model(part, *data);
    if (!model.ok()) return false;
    const std::string path = PX_TRY(transform::write_model(**model, folder_, "model.onnx"));
    PX_TRY(transform::write_data_set(part, *data, folder_));
    return means_failure(check(), PX_TRY(run(path)));
  }

  // On the model as it is.
  Result<bool> fails_at_first(const Part& whole) {
    const PartData data = PX_TRY(load_part_data(whole, *context_.values));
    PX_TRY(transform::write_data_set(whole, data, folder_));
    std::string model = context_.request.run.model;
    if (context_.request.run.model_in_memory != nullptr)
      model = PX_TRY(transform::write_model(*context_.request.run.model_in_memory, folder_, "whole.onnx"));
    const ShellOutcome outcome = PX_TRY(run(model));
    const bool is_asked = std::ranges::find(check().fail_codes, outcome.exit_code) != check().fail_codes.end();
    if ((outcome.exit_code == kCannotRun || outcome.exit_code == kCannotFind) && !is_asked) {
      return usage_error(fmt::format("--check: the command cannot be run (exit code {}): {}", outcome.exit_code,
                                     outcome.output.substr(0, 300)));
    }
    return means_failure(check(), outcome);
  }

  Result<std::vector<std::string>> write(const Part& part) override {
    const std::string& directory = context_.request.directory;
    const PartData data = PX_TRY(load_part_data(part, *context_.values));
    const auto model = PX_TRY(transform::extract_model(part, data));
    std::vector<std::string> written = {PX_TRY(transform::write_model(*model, directory, "model.onnx"))};
    written.push_back(PX_TRY(transform::write_data_set(part, data, directory)));
    const std::string command =
        filled_in(check().text, {{"{model}", "\"$PWD/model.onnx\""}, {"{inputs}", "\"$PWD/test_data_set_0\""}});
    written.push_back(directory + "/repeat.sh");
    PX_TRY(write_program(written.back(), repeat_script("(" + command + ")", {"model.onnx"})));
    return written;
  }

 private:
  const CheckCommand& check() const { return context_.request.check; }

  Result<ShellOutcome> run(const std::string& model) const {
    const std::string command =
        filled_in(check().text, {{"{model}", shell_quoted(absolute(model))},
                                 {"{inputs}", shell_quoted(absolute(folder_ + "/test_data_set_0"))}});
    return run_shell(command, check().timeout_s, folder_ + "/output.txt", context_.request.run.options.cancel);
  }

  const ReduceContext& context_;
  std::string folder_;
};

}  // namespace

std::unique_ptr<FailureCriterion> command_fails(const ReduceContext& context) {
  return std::make_unique<CommandFails>(context);
}

Status check_fail_regex(const std::string& text) {
  if (!text.empty()) PX_TRY(Pattern::compile(text));
  return {};
}

Result<bool> command_fails_on_model(const ReduceContext& context, const Part& part) {
  return CommandFails(context).fails_at_first(part);
}

}  // namespace parallax
