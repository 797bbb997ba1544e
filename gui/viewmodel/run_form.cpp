// SPDX-License-Identifier: Apache-2.0
// A run's dialog as a request and as a command.
#include "gui/viewmodel/run_form.h"

#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gui/viewmodel/file_chooser.h"
#include "gui/viewmodel/inspect/view_inspector.h"
#include "inspector/workbench/request_options.h"

namespace parallax {
namespace {

// The repeated options and their words.
struct Words {
  std::string_view option;
  const std::string* text;
};
std::vector<Words> repeated_options(const RunForm& form) {
  return {{"--dim", &form.dims}, {"--shape", &form.shapes}, {"--range", &form.ranges}, {"--only", &form.only}};
}

Result<std::vector<std::string>> words_of(const Words& words) {
  auto found = quoted_words(*words.text);
  if (!found.has_value()) return usage_error(fmt::format("{}: a quote is left open in {}", words.option, *words.text));
  return *std::move(found);
}

Result<uint64_t> parse_seed(const std::string& text) {
  uint64_t seed = 0;
  if (text.empty()) return seed;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc() && end == text.data() + text.size()) return seed;
  return usage_error(fmt::format("--seed: '{}' is not a whole number of 0 or more", text));
}

}  // namespace

Result<RunRequest> request_of(const RunForm& form) {
  RunRequest request;
  InputArguments inputs;
  if (!form.inputs.empty()) inputs.sources = {form.inputs};
  inputs.seed = PX_TRY(parse_seed(form.seed));
  std::vector<std::string>* const lists[] = {&inputs.dims, &inputs.shapes, &inputs.ranges, &request.only};
  const auto repeated = repeated_options(form);
  for (size_t i = 0; i < repeated.size(); ++i) *lists[i] = PX_TRY(words_of(repeated[i]));
  ModeArguments mode;
  mode.observe_all = form.observe_all;
  if (form.falls_back) mode.fallback = "reference";
  PolicyArguments policy;
  policy.rtol = form.rtol;
  policy.atol = form.atol;
  PX_TRY(apply_arguments(inputs, mode, policy, request));
  request.model = form.model;
  request.against = form.against;
  request.executors = {form.executor_a, form.executor_b};
  request.dump_directory = form.dumps;
  if (!form.dumps.empty() && !form.keep_values) request.capture = CaptureLevel::stats;
  PX_TRY(check_effects(request));
  return request;
}

std::string more_options(const RunForm& form) {
  std::string text;
  const auto add = [&text](std::string_view option, const std::string& value) {
    if (!value.empty()) text += fmt::format(" {} {}", option, shell_word(value));
  };
  add("--seed", form.seed);
  for (const Words& words : repeated_options(form)) {
    const auto found = quoted_words(*words.text);
    for (const std::string& word : found.value_or(std::vector<std::string>{})) add(words.option, word);
  }
  add("--rtol", form.rtol);
  add("--atol", form.atol);
  if (!form.dumps.empty() && !form.keep_values) text += " --capture stats";
  add("--dump", form.dumps);
  return text;
}

}  // namespace parallax
