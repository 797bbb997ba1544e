// SPDX-License-Identifier: Apache-2.0
// Declaring the shared options, and writing reports.
#include "inspector/cli/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/base/thread_pool.h"
#include "inspector/cli/console.h"
#include "inspector/executors/default_executors.h"
#include "inspector/executors/make_executor.h"
#include "inspector/render/report_json.h"
#include "inspector/render/report_text.h"
#include "inspector/workbench/report_files.h"

namespace parallax::cli {

void declare_rewrite(CLI::App& app, std::string& text) {
  app.add_option(
         "--rewrite", text,
         "graph rewrites (fusions) to apply: the default set, none, all, or the default set without (-NAME) or with "
         "(+NAME) one")
      ->type_name("default|none|all|-NAME,+NAME");
}

CLI::Validator whole_number(int64_t low, uint64_t high) {
  const auto check = [low, high](const std::string& text) -> std::string {
    const std::string_view digits = std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
      return fmt::format("'{}' is not a whole number", text);
    // The parser after this check would read an octal number.
    if (digits.size() > 1 && digits.front() == '0') return fmt::format("'{}' begins with a 0: leave it out", text);
    uint64_t size = 0;
    const bool fits = std::from_chars(digits.data(), digits.data() + digits.size(), size).ec == std::errc();
    const bool is_negative = digits.size() < text.size() && size > 0;
    const bool is_inside = is_negative ? low < 0 && size <= static_cast<uint64_t>(-low)
                                       : size <= high && (low < 0 || size >= static_cast<uint64_t>(low));
    return fits && is_inside ? "" : fmt::format("{} is not in the range {} to {}", text, low, high);
  };
  return CLI::Validator(check, high < UINT32_MAX ? fmt::format("{}..{}", low, high) : "");
}

CLI::Validator number_from_zero() {
  const auto check = [](const std::string& text) -> std::string {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
    return is_number && value >= 0 ? "" : fmt::format("'{}' is no number of 0 or more", text);
  };
  return CLI::Validator(check, "");
}

void CommonOptions::declare(CLI::App& app, bool computes) {
  app.add_flag("--json", json, "print one JSON document on stdout, and nothing else there");
  if (computes)
    app.add_option("--threads", threads, "threads to compute with (default: all cores)")
        ->type_name("N")
        ->check(whole_number(1, 256));
}

void CommonOptions::declare_force(CLI::App& app) {
  app.add_flag("--force", force, "replace files that Parallax did not write; one that is read is never replaced");
}

void CommonOptions::apply() const { set_thread_count(threads); }

void InputOptions::declare(CLI::App& app) {
  app.add_option(
         "--inputs", sources,
         "a test_data_set_N folder, a .npz, .safetensors or Polygraphy's .json file; a run compares the outputs "
         "that it holds, too; run takes several, or a folder of data sets, as samples")
      ->type_name("PATH")
      ->allow_extra_args(false);
  app.add_option("--input", files, "one input from a .npy file; may be repeated")
      ->type_name("NAME=F.npy")
      ->allow_extra_args(false);
  app.add_option("--stub", stubs,
                 "outputs that stand in for the nodes of an operator that cannot be executed; may be repeated")
      ->type_name("DOMAIN::OP=F.json|F.npz")
      ->allow_extra_args(false);
  app.add_option("--seed", seed, "of generated inputs and random operators (default 0)")
      ->type_name("N")
      ->check(whole_number(0, UINT64_MAX));
  app.add_option("--shape", shapes, "shape of a generated input; may be repeated")
      ->type_name("NAME=1x3x224x224")
      ->allow_extra_args(false);
  app.add_option("--dim", dims, "size of a named dimension; may be repeated")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
  app.add_option("--range", ranges, "range of a generated input; may be repeated")
      ->type_name("NAME=LO..HI")
      ->allow_extra_args(false);
}

void InputOptions::name_files(NamedFiles& named) const {
  named.read.insert(named.read.end(), sources.begin(), sources.end());
  for (const auto* pairs : {&files, &stubs}) {
    for (const std::string& file : *pairs) named.read.push_back(file.substr(file.find('=') + 1));
  }
}

void declare_fallback(CLI::App& app, std::string& fallback) {
  app.add_option("--fallback", fallback, "executor for nodes that cpu or cuda have no kernel for")
      ->type_name("reference");
}

void ModeOptions::declare(CLI::App& app) {
  app.add_option("--tf32", tf32, "let matrix products of float32 use TF32 on cuda (default off)")->type_name("on|off");
  app.add_option("--accumulate", accumulate,
                 "accumulator type of matrix products and reductions: the kernel's default, or float32")
      ->type_name("default|fp32");
  declare_rewrite(app, rewrite);
  app.add_flag("--observe-all", observe_all,
               "no fusion and no constant folding, so that every intermediate tensor can be captured");
  declare_fallback(app, fallback);
  app.add_option("--memory-limit", memory_limit,
                 "maximum memory for inputs, weights and intermediate tensors, of all sides together")
      ->type_name("BYTES");
  app.add_option("--time-limit", time_limit,
                 "of an executor that is a program of its own: seconds that one request may take")
      ->type_name("SECONDS");
  app.add_flag("--keep-casts", keep_casts,
               "in reference:double, execute Cast to narrower types as written (by default they are skipped)");
}

void PolicyOptions::declare(CLI::App& app) {
  app.add_option("--policy", policy, "auto (the default): limits by operator, type and length of its sums")
      ->type_name("auto");
  app.add_option("--rtol", rtol, "relative tolerance of every value")->type_name("X");
  app.add_option("--atol", atol, "absolute tolerance of every value")->type_name("Y");
  app.add_option("--per", per, "tolerance of the values that match; the last that matches counts; may be repeated")
      ->type_name("GLOB@rtol=X,atol=Y")
      ->allow_extra_args(false);
  app.add_option("--policy-file", file,
                 "tolerances from a JSON file: {\"default\": {\"rtol\": X, \"atol\": Y}, \"per\": [{\"glob\": G, "
                 "\"rtol\": X, \"atol\": Y}, ...]}")
      ->type_name("F.json");
}

void ReportOptions::declare(CLI::App& app) {
  app.add_option("--top", top, "worst values listed (default 10; -1: all, in execution order)")
      ->type_name("N")
      ->check(whole_number(-1, 1'000'000'000));
  app.add_option("--csv", csv, "write a table of all values")->type_name("F");
  app.add_option("--junit", junit, "write the verdict and every value as test cases for a CI server")->type_name("F");
  app.add_option("--html", html, "write a report for a browser")->type_name("F");
  app.add_option("--dot", dot, "write the graph, colored by severity, as dot")->type_name("F");
  app.add_option("--svg", svg, "write the graph, colored by severity, as a picture")->type_name("F");
  app.add_option("--netron", netron,
                 "write severities for Netron: start it without a file, drop the model on its page, then this file")
      ->type_name("F");
  app.add_option(
         "--model-explorer", model_explorer,
         "write severities for Model Explorer, whose ONNX adapter is --extensions=model-explorer-onnx: load this "
         "file as custom node data")
      ->type_name("F");
}

Result<int> ReportOptions::write(const Comparison& comparison, const Graph* graph, bool json) const {
  const auto reserved = PX_TRY(reserve_reports(comparison));
  if (!json) print_colored(comparison_to_text(comparison, {top.value_or(kDefaultTop), stdout_takes_color()}));
  const Status written = write_files(comparison, graph);
  if (json) print(comparison_to_json(comparison, written.ok() ? nullptr : &written.error()) + "\n");
  if (written.ok()) return end_of(comparison, json);
  if (json) return exit_code(written.error().code);
  return written.error();
}

Status ReportOptions::write_files(const Comparison& comparison, const Graph* graph) const {
  const std::vector<std::string> written =
      PX_TRY(write_reports({csv, junit, html, dot, svg, netron, model_explorer, kept_command()}, comparison, graph));
  for (const std::string& file : written) log_info(fmt::format("wrote {}", file));
  return {};
}

namespace {

using NamedFile = std::pair<std::string_view, const std::string*>;

std::array<NamedFile, 7> files_of(const ReportOptions& reports) {
  return {{{"--csv", &reports.csv},
           {"--junit", &reports.junit},
           {"--html", &reports.html},
           {"--dot", &reports.dot},
           {"--svg", &reports.svg},
           {"--netron", &reports.netron},
           {"--model-explorer", &reports.model_explorer}}};
}

}  // namespace

void ReportOptions::name_files(NamedFiles& named) const {
  for (const auto& [option, file] : files_of(*this)) named.written.push_back(*file);
}

Status ReportOptions::check_distinct() const {
  std::map<std::filesystem::path, std::string_view> options;
  for (const auto& [option, file] : files_of(*this)) {
    if (file->empty()) continue;
    std::error_code unknown;  // what cannot be resolved is compared as it is written
    const std::filesystem::path path =
        std::filesystem::weakly_canonical(std::filesystem::absolute(*file, unknown), unknown);
    const bool is_stream = std::filesystem::is_character_file(path, unknown) || std::filesystem::is_fifo(path, unknown);
    const auto [first, is_new] = options.emplace(path.empty() ? std::filesystem::path(*file) : path, option);
    if (!is_new && !is_stream)
      return usage_error(fmt::format("{} and {} both write '{}': name two files", first->second, option, *file));
  }
  return {};
}

Status check_dump_name(std::string_view option, const std::string& output) {
  constexpr std::string_view kOthers[] = {".npz", ".npy", ".safetensors", ".onnx", ".textproto", ".pbtxt", ".pb"};
  for (const std::string_view ending : kOthers) {
    if (!output.ends_with(ending)) continue;
    return usage_error(fmt::format(
        "{} '{}': what is written is a dump, which is no {} file: name it *.plx (parallax export makes other kinds)",
        option, output, ending));
  }
  return {};
}

bool ReportOptions::asks_for_files() const {
  return std::ranges::any_of(files_of(*this), [](const NamedFile& file) { return !file.second->empty(); });
}

ExecutorFactory executor_factory() { return executor_source(); }

int exit_code_of(const Comparison& comparison) { return comparison.verdict == OverallVerdict::pass ? 0 : 1; }

Result<int> end_of(const Comparison& comparison, bool json) {
  auto damage = damage_of(comparison);
  if (!damage.has_value()) return exit_code_of(comparison);
  if (json) return exit_code(damage->code);
  return *std::move(damage);
}

Result<std::string> one_executor(std::string_view verb, const std::string& text) {
  std::string name = PX_TRY(parse_executor(verb, text));
  return name.empty() ? default_executors(false).back() : name;
}

Result<std::vector<std::string>> executors_of(const std::string& text, bool against) {
  if (text.empty()) return default_executors(against);
  return parse_executors(text);
}

}  // namespace parallax::cli
