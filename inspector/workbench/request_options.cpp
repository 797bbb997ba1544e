// SPDX-License-Identifier: Apache-2.0
// Reading the arguments of jobs.
#include "inspector/workbench/request_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "inspector/base/shell.h"
#include "inspector/base/text.h"
#include "inspector/exec/executor_names.h"
#include "inspector/exec/rewrite_choice.h"
#include "inspector/workbench/open.h"

namespace parallax {
namespace {

// "name=value" split at the last '=' (names may hold one; these values never do).
Result<std::pair<std::string, std::string>> split_pair(std::string_view option, const std::string& text,
                                                       std::string_view form) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0) return usage_error(fmt::format("{} '{}': expected {}", option, text, form));
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

Result<double> parse_number(std::string_view option, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return usage_error(fmt::format("{}: '{}' is not a number", option, text));
  }
  return value;
}

Result<std::vector<int64_t>> parse_shape(const std::string& text) {
  std::vector<int64_t> dims;
  if (text.empty()) return dims;  // a scalar
  for (const std::string_view part : split(text, 'x')) {
    dims.push_back(PX_TRY(parse_integer("--shape", part)));
    if (dims.back() < 0) return usage_error(fmt::format("--shape: '{}' has a negative dimension", text));
  }
  return dims;
}

// Keeps the value that an option gives to a name; a repetition must be equal.
template <class Value>
Status keep_once(std::map<std::string, Value>& known, std::string_view option, const std::string& name, Value value) {
  const auto [first, is_new] = known.emplace(name, value);
  if (is_new || first->second == value) return {};
  return usage_error(fmt::format("{} gives two values of '{}': leave one of them out", option, name));
}

Result<bool> parse_switch(std::string_view option, const std::string& text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return usage_error(fmt::format("{}: expected on or off, got '{}'", option, text));
}

// Options as they stand after `parallax run` in a script.
class ScriptWords {
 public:
  void add(std::string_view option, const std::string& value, std::string_view default_value = "") {
    if (value != default_value) text_ += fmt::format(" {} {}", option, shell_quoted(value));
  }
  void add_file(std::string_view option, const std::string& path) {
    if (!path.empty()) add(option, std::filesystem::absolute(path).string());
  }
  void add_flag(std::string_view option, bool is_set) {
    if (is_set) text_ += fmt::format(" {}", option);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

bool InputArguments::is_given() const {
  return !sources.empty() || !files.empty() || !stubs.empty() || !shapes.empty() || !dims.empty() || !ranges.empty() ||
         seed != 0;
}

Result<InputRequest> InputArguments::request() const {
  if (sources.size() > 1) return usage_error("--inputs is given twice, and only run takes several samples: name one");
  InputRequest request = PX_TRY(without_source());
  if (!sources.empty()) request.source = sources.front();
  return request;
}

Result<InputRequest> InputArguments::without_source() const {
  InputRequest request;
  std::map<std::string, std::string> file_of;
  request.seed = seed;
  for (const std::string& text : files) {
    const size_t at = text.find('=');
    if (at == std::string::npos || at == 0) return usage_error(fmt::format("--input '{}': expected NAME=F.npy", text));
    const std::string name = text.substr(0, at), file = text.substr(at + 1);
    PX_TRY(keep_once(file_of, "--input", name, file));
    request.files.emplace_back(name, file);
  }
  for (const std::string& text : stubs) {
    const size_t at = text.find('=');
    if (at == std::string::npos || at == 0)
      return usage_error(fmt::format("--stub '{}': expected DOMAIN::OP=F.json|F.npz", text));
    request.stubs.emplace_back(text.substr(0, at), text.substr(at + 1));
  }
  for (const std::string& text : shapes) {
    auto [name, value] = PX_TRY(split_pair("--shape", text, "NAME=1x3x224x224"));
    const std::vector<int64_t> shape = PX_TRY(parse_shape(value));
    PX_TRY(keep_once(request.shapes, "--shape", name, shape));
  }
  for (const std::string& text : dims) {
    auto [name, value] = PX_TRY(split_pair("--dim", text, "NAME=N"));
    const int64_t size = PX_TRY(parse_integer("--dim", value));
    PX_TRY(keep_once(request.dims, "--dim", name, size));
    if (size < 0) return usage_error(fmt::format("--dim '{}': a dimension cannot be negative", text));
  }
  for (const std::string& text : ranges) {
    auto [name, value] = PX_TRY(split_pair("--range", text, "NAME=LO..HI"));
    const size_t dots = value.find("..");
    if (dots == std::string::npos) return usage_error(fmt::format("--range '{}': expected NAME=LO..HI", text));
    const double low = PX_TRY(parse_number("--range", value.substr(0, dots)));
    const double high = PX_TRY(parse_number("--range", value.substr(dots + 2)));
    if (low > high) return usage_error(fmt::format("--range '{}': the lower end is above the upper one", text));
    PX_TRY(keep_once(request.ranges, "--range", name, {low, high}));
  }
  return request;
}

bool ModeArguments::is_given() const {
  const ModeArguments defaults;
  return std::tie(tf32, accumulate, rewrite, fallback, memory_limit, time_limit, observe_all, keep_casts) !=
         std::tie(defaults.tf32, defaults.accumulate, defaults.rewrite, defaults.fallback, defaults.memory_limit,
                  defaults.time_limit, defaults.observe_all, defaults.keep_casts);
}

Status ModeArguments::apply(RunRequest& request) const {
  request.options.tf32 = PX_TRY(parse_switch("--tf32", tf32));
  if (accumulate != "default" && accumulate != "fp32")
    return usage_error(fmt::format("--accumulate: expected default or fp32, got '{}'", accumulate));
  request.options.accumulate = accumulate == "fp32" ? Accumulate::fp32 : Accumulate::default_;
  request.options.rewrite = PX_TRY(parse_rewrite(rewrite));
  request.options.observe_all = observe_all;
  request.options.keep_casts = keep_casts;
  if (!memory_limit.empty()) {
    request.options.memory_limit_bytes = PX_TRY(parse_bytes("--memory-limit", memory_limit));
    if (request.options.memory_limit_bytes == 0)
      return usage_error("--memory-limit: nothing runs in 0 bytes; without the option there is no limit");
  }
  if (!time_limit.empty()) {
    request.options.time_limit_s = PX_TRY(parse_number("--time-limit", time_limit));
    if (!(request.options.time_limit_s > 0))
      return usage_error(fmt::format("--time-limit is '{}'; it must be a number of seconds above 0", time_limit));
  }
  PX_TRY(check_fallback(fallback));
  request.fallback = fallback;
  return {};
}

Result<Policy> PolicyArguments::make() const {
  if (!policy.empty() && policy != "auto")
    return usage_error(fmt::format("--policy: only 'auto' is known, got '{}'", policy));
  const bool has_tolerance = !rtol.empty() || !atol.empty();
  if (!policy.empty() && has_tolerance) return usage_error("--policy auto excludes --rtol and --atol");
  Policy made;
  if (!file.empty()) made = PX_TRY(read_policy_file(file));
  if (has_tolerance) {
    made.tolerance = Tolerance{};
    if (!rtol.empty()) made.tolerance->rtol = PX_TRY(parse_tolerance(rtol, "--rtol"));
    if (!atol.empty()) made.tolerance->atol = PX_TRY(parse_tolerance(atol, "--atol"));
  }
  for (const std::string& rule : per) made.rules.push_back(PX_TRY(parse_policy_rule(rule)));
  return made;
}

Result<RewriteChoice> parse_rewrite(const std::string& text) { return parse_rewrite_choice("--rewrite", text); }

Result<CaptureLevel> parse_capture(const std::string& text) {
  constexpr std::pair<std::string_view, CaptureLevel> kLevels[] = {{"none", CaptureLevel::none},
                                                                   {"shape", CaptureLevel::shape},
                                                                   {"stats", CaptureLevel::stats},
                                                                   {"sample", CaptureLevel::sample},
                                                                   {"all", CaptureLevel::all}};
  for (const auto& [name, level] : kLevels) {
    if (name == text) return level;
  }
  return usage_error(fmt::format("--capture: '{}' is none of none, shape, stats, sample, all", text));
}

Result<int64_t> parse_integer(std::string_view option, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return usage_error(fmt::format("{}: '{}' is not a whole number", option, text));
  }
  return value;
}

Result<int64_t> parse_bytes(std::string_view option, const std::string& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string unit = text.substr(digits);
  constexpr std::pair<std::string_view, int> kUnits[] = {{"", 0},     {"B", 0},   {"K", 10},  {"KB", 10},
                                                         {"KiB", 10}, {"M", 20},  {"MB", 20}, {"MiB", 20},
                                                         {"G", 30},   {"GB", 30}, {"GiB", 30}};
  for (const auto& [name, shift] : kUnits) {
    if (unit != name) continue;
    const int64_t number = PX_TRY(parse_integer(option, text.substr(0, digits)));
    if (number > (INT64_MAX >> shift)) break;
    return number << shift;
  }
  return usage_error(fmt::format("{}: '{}' is no number of bytes (1000000, 512M, 2GiB)", option, text));
}

Status check_fallback(const std::string& fallback) {
  if (fallback.empty() || fallback == "reference") return {};
  return usage_error(fmt::format("--fallback: only 'reference' can be asked for, got '{}'", fallback));
}

std::string script_options(uint64_t seed, const ModeArguments& mode, const PolicyArguments& policy) {
  ScriptWords options;
  options.add("--seed", std::to_string(seed), "0");
  options.add("--tf32", mode.tf32, "off");
  options.add("--accumulate", mode.accumulate, "default");
  options.add("--rewrite", mode.rewrite, "default");
  options.add("--fallback", mode.fallback);
  options.add("--memory-limit", mode.memory_limit);
  options.add("--time-limit", mode.time_limit);
  options.add_flag("--observe-all", mode.observe_all);
  options.add_flag("--keep-casts", mode.keep_casts);
  options.add("--policy", policy.policy);
  options.add("--rtol", policy.rtol);
  options.add("--atol", policy.atol);
  for (const std::string& rule : policy.per) options.add("--per", rule);
  options.add_file("--policy-file", policy.file);
  return options.text();
}

Status apply_arguments(const InputArguments& inputs, const ModeArguments& mode, const PolicyArguments& policy,
                       RunRequest& request) {
  request.inputs = PX_TRY(inputs.request());
  request.options.seed = inputs.seed;
  PX_TRY(mode.apply(request));
  request.policy = PX_TRY(policy.make());
  return {};
}

Result<std::vector<std::string>> parse_executors(const std::string& text) {
  std::vector<std::string> names = split_executors(text);
  if (names.size() > 2) return usage_error(fmt::format("--with '{}': one or two executors", text));
  return names;
}

Result<std::string> parse_executor(std::string_view verb, const std::string& text) {
  if (split_executors(text).size() > 1)
    return usage_error(fmt::format("--with '{}': {} runs one executor, so name one", text, verb));
  return text;
}

Status check_effects(const RunRequest& request) {
  const bool keeps_values =
      !request.dump_directory.empty() || !request.save_baseline.empty() || !request.baseline.empty();
  if (request.capture_limit_bytes > 0 && request.dump_directory.empty() && request.baseline.empty())
    return usage_error("--capture-limit says what a dump keeps: give --dump, too");
  if (has_two_sides(request) || request.only.empty() || keeps_values) return {};
  return usage_error("--only chooses what is captured and compared, and here is one side: give --dump, too");
}

Status refuse_dump(const std::string& model) {
  const auto is_dump = is_dump_file(model);
  if (!is_dump.ok() || !*is_dump) return {};  // what cannot be read is said by whoever reads the model
  return usage_error(fmt::format(
      "'{}' is a dump, not a model: diff and blame compare two dumps, show and tensor look into one", model));
}

std::string default_folder(const std::string& model, std::string_view kind) {
  return fmt::format("{}-{}", std::filesystem::path(model).stem().string(), kind);
}

}  // namespace parallax
