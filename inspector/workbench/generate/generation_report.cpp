// SPDX-License-Identifier: Apache-2.0
// Rendering of generations: JSON, text, HTML.
#include "inspector/workbench/generate/generation_report.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/shown_text.h"
#include "inspector/render/markup.h"
#include "inspector/render/report_html.h"
#include "inspector/render/report_json.h"

namespace parallax {
namespace {

using nlohmann::ordered_json;

ordered_json settings_json(const UsedSettings& used) {
  ordered_json json{{"max_new_tokens", used.max_new_tokens},
                    {"min_new_tokens", used.min_new_tokens},
                    {"eos", used.eos},
                    {"pad", used.pad},
                    {"start_ids", used.start_ids},
                    {"beams", used.beams},
                    {"length_penalty", number_json(used.length_penalty)},
                    {"early_stopping", name_of(used.early_stopping)},
                    {"return", used.returned},
                    {"no_repeat_ngram", used.no_repeat_ngram},
                    {"repetition_penalty", number_json(used.repetition_penalty)},
                    {"sample", used.sample}};
  if (used.sample) {
    json["temperature"] = number_json(used.temperature);
    json["top_k"] = used.top_k;
    json["top_p"] = number_json(used.top_p);
    json["min_p"] = number_json(used.min_p);
    json["seed"] = used.seed;
  }
  json["cache"] = name_of(used.cache);
  return json;
}

ordered_json numbers_json(const std::vector<double>& numbers) {
  ordered_json json = ordered_json::array();
  for (const double number : numbers) json.push_back(number_json(number));
  return json;
}

ordered_json step_json(const GenerationStep& step, bool has_two_sides) {
  ordered_json json{{"step", step.step},
                    {"tokens", step.tokens},
                    {"ms", number_json(step.ms)},
                    {"logprob", numbers_json(step.logprob)},
                    {"margin", numbers_json(step.margin)}};
  if (!has_two_sides) return json;
  json["severity"] = number_json(step.severity);
  json["worst"] = step.worst;
  json["near_tie"] = step.near_tie;
  return json;
}

ordered_json token_divergence_json(const std::optional<TokenDivergence>& divergence) {
  if (!divergence.has_value()) return nullptr;
  return {{"step", divergence->step},
          {"row", divergence->row},
          {"a", divergence->a},
          {"b", divergence->b},
          {"margin", number_json(divergence->margin)},
          {"near_tie", divergence->near_tie}};
}

std::string ids_text(const std::vector<int64_t>& ids) {
  constexpr size_t kMost = 32;
  if (ids.size() <= kMost) return fmt::format("{}", fmt::join(ids, " "));
  return fmt::format("{} ...", fmt::join(ids.begin(), ids.begin() + kMost, " "));
}

std::string plural(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string margins_text(const GenerationStep& step) {
  const auto least = std::ranges::min_element(step.margin);
  return least == step.margin.end() ? "-" : fmt::format("{:.4f}", *least);
}

std::string remark_of(const GenerationStep& step) {
  if (step.diverged) return "diverged";
  return step.near_tie ? "near tie" : "";
}

// With two sides, the steps that say something, and the worst one.
std::vector<const GenerationStep*> reported_steps(const Generation& generation) {
  constexpr size_t kMost = 12;
  std::set<const GenerationStep*> reported;
  const auto worst = std::ranges::max_element(generation.steps, {}, &GenerationStep::severity);
  for (const GenerationStep& step : generation.steps) {
    if ((step.diverged || step.near_tie) && reported.size() < kMost) reported.insert(&step);
  }
  if (worst != generation.steps.end()) reported.insert(&*worst);
  return {reported.begin(), reported.end()};
}

std::string steps_text(const Generation& generation) {
  size_t width = 24;
  const auto steps = reported_steps(generation);
  const auto worst = [](const GenerationStep& step) {
    return fmt::format("{} ({:.2f})", printable(step.worst), step.severity);
  };
  for (const GenerationStep* step : steps) width = std::max(width, worst(*step).size());
  std::string text =
      fmt::format("{:<5} {:>7}  {:>7}   {:<{}}\n", "step", "token", "margin", "worst value (severity)", width);
  for (const GenerationStep* step : steps) {
    const std::string line =
        fmt::format("{:>4}  {:>7}  {:>7}   {:<{}}  {}", step->step, step->tokens.empty() ? -1 : step->tokens.front(),
                    margins_text(*step), worst(*step), width, remark_of(*step));
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string token_divergence_text(const Generation& generation) {
  if (!generation.first_token_apart.has_value()) return "no token apart";
  const TokenDivergence& divergence = *generation.first_token_apart;
  const std::string row = generation.sequences.size() > 1 ? fmt::format(", row {}", divergence.row) : "";
  const auto name = [](int64_t token) { return token < 0 ? std::string("none") : std::to_string(token); };
  return fmt::format("{} apart at step {}{}: {} in A, {} in B, margin {:.4g}",
                     divergence.near_tie ? "near tie," : "token", divergence.step, row, name(divergence.a),
                     name(divergence.b), divergence.margin);
}

std::string causes_text(const Comparison& comparison) {
  std::string text;
  for (const Cause& cause : comparison.causes) {
    const std::string line =
        fmt::format("{}. {} {}{} at '{}': {}", cause.rank, cause.op, cause.node,
                    cause.is_renamed_in_b() ? fmt::format(" (in B '{}')", cause.node_b) : "", cause.path, cause.why);
    text += printable(line) + "\n";
  }
  return text;
}

std::string expectation_text(const Generation& generation) {
  if (!generation.is_expectation_missed)
    return fmt::format("as expected: {}\n", plural(generation.expected.size(), "sequence"));
  const auto& divergence = generation.first_token_apart;
  if (!divergence.has_value()) return "not as expected\n";
  const auto name = [](int64_t token) { return token < 0 ? std::string("no token") : fmt::format("token {}", token); };
  return fmt::format("not as expected at step {} of row {}: {} and not {} (margin {:.4g})\n", divergence->step,
                     divergence->row, name(divergence->b), name(divergence->a), divergence->margin);
}

std::string speed_text(const Generation& generation) {
  return fmt::format("first step {:.2f} ms, later ones {:.2f} ms (median), {:.2f} ms (95 %)\n", generation.prefill_ms,
                     generation.decode_median_ms, generation.decode_p95_ms);
}

}  // namespace

bool Generation::passed() const {
  if (is_expectation_missed) return false;
  if (comparison.has_value() && comparison->verdict != OverallVerdict::pass) return false;
  return !first_token_apart.has_value() || first_token_apart->near_tie;
}

std::string_view name_of(CacheMode mode) {
  constexpr std::string_view kNames[] = {"automatic", "in-place", "copy", "none"};
  return kNames[static_cast<size_t>(mode)];
}

std::string_view name_of(EarlyStopping stopping) {
  constexpr std::string_view kNames[] = {"false", "true", "never"};
  return kNames[static_cast<size_t>(stopping)];
}

std::string generation_to_json(const Generation& generation, const Error* failure) {
  const GenerationModel& model = generation.model;
  ordered_json json{{"parallax", PARALLAX_VERSION}};
  json["model"] = {{"kind", model.kind},
                   {"files", model.files},
                   {"roles", model.roles},
                   {"layers", model.layers},
                   {"caches_per_layer", model.caches_per_layer},
                   {"cache_bytes_per_token", model.cache_bytes_per_token}};
  json["executions"] = ordered_json::array();
  for (const ComparedExecution& execution : generation.executions)
    json["executions"].push_back(execution_json(execution));
  json["settings"] = settings_json(generation.settings);
  json["sequences"] = generation.sequences;
  json["scores"] = generation.scores.empty() ? ordered_json(nullptr) : numbers_json(generation.scores);
  json["stopped"] = generation.stopped;
  json["tokens_per_second"] = number_json(generation.tokens_per_second);
  json["prefill_ms"] = number_json(generation.prefill_ms);
  json["decode_ms"] = {{"min", number_json(generation.decode_min_ms)},
                       {"median", number_json(generation.decode_median_ms)},
                       {"p95", number_json(generation.decode_p95_ms)}};
  json["peak_bytes"] = generation.peak_bytes;
  json["steps"] = ordered_json::array();
  for (const GenerationStep& step : generation.steps)
    json["steps"].push_back(step_json(step, generation.comparison.has_value()));
  if (!generation.expected.empty()) json["expected"] = generation.expected;
  const bool compares = generation.comparison.has_value() || !generation.expected.empty();
  if (compares) json["first_token_apart"] = token_divergence_json(generation.first_token_apart);
  if (generation.comparison.has_value()) {
    ordered_json comparison = comparison_json(*generation.comparison);
    for (const char* key : {"verdict", "reason", "summary", "first_divergence", "causes", "values", "error"}) {
      if (comparison.contains(key)) json[key] = std::move(comparison[key]);
    }
    if (!generation.passed() && generation.comparison->verdict == OverallVerdict::pass) json["verdict"] = "diverged";
  } else if (!generation.expected.empty()) {
    json["verdict"] = generation.passed() ? "pass" : "diverged";
  }
  if (failure != nullptr) json["error"] = error_json(*failure);
  return json_text(json);
}

std::string generation_to_text(const Generation& generation) {
  std::string text;
  for (size_t index = 0; index < generation.sequences.size(); ++index) {
    const auto& ids = generation.sequences[index];
    std::string facts = plural(ids.size(), "token");
    if (generation.settings.beams > 1) facts += fmt::format(", {} beams", generation.settings.beams);
    if (index < generation.scores.size()) facts += fmt::format(", score {:.3f}", generation.scores[index]);
    if (index == 0) facts += fmt::format(", {:.0f} tokens/s", generation.tokens_per_second);
    if (index < generation.stopped.size() && generation.stopped[index] == "eos") facts += ", ended by eos";
    text += fmt::format("tokens  {:<58}  {}\n", ids_text(ids), facts);
  }
  if (!generation.comparison.has_value()) {
    text += speed_text(generation);
    if (!generation.expected.empty()) text += expectation_text(generation);
    return text;
  }
  const Comparison& comparison = *generation.comparison;
  text += steps_text(generation) + causes_text(comparison);
  if (!generation.expected.empty()) text += expectation_text(generation);
  const bool diverged = comparison.verdict == OverallVerdict::pass && !generation.passed();
  text += fmt::format("{}: {} values in {}; {}\n", diverged ? "diverged" : name_of(comparison.verdict),
                      fmt::group_digits(comparison.summary.compared), plural(generation.steps.size(), "step"),
                      token_divergence_text(generation));
  if (comparison.first_divergence.has_value()) {
    const FirstDivergence& first = *comparison.first_divergence;
    text += printable(fmt::format("first divergence: {} ({} {})", first.path, first.op, first.node)) + "\n";
  }
  return text;
}

std::string generation_steps_html(const Generation& generation) {
  const bool has_two_sides = generation.comparison.has_value();
  std::string text =
      "<h2>Steps</h2>\n<table class=\"steps\">\n<tr><th class=\"n\">step</th><th>tokens</th><th class=\"n\">ms</th><th "
      "class=\"n\">margin</th>";
  text += has_two_sides ? "<th>worst value</th><th class=\"n\">severity</th><th></th></tr>\n" : "</tr>\n";
  for (const GenerationStep& step : generation.steps) {
    text += fmt::format(
        "<tr><td class=\"n\">{}</td><td class=\"mono\">{}</td><td class=\"n\">{:.2f}</td><td class=\"n\">{}</td>",
        step.step, fmt::join(step.tokens, " "), step.ms, margins_text(step));
    if (has_two_sides)
      text += fmt::format("<td class=\"mono\">{}</td><td class=\"n\">{:.3g}</td><td>{}</td>", xml_text(step.worst),
                          step.severity, remark_of(step));
    text += "</tr>\n";
  }
  return text + "</table>\n";
}

std::string generation_to_html(const Generation& generation, const std::string& command) {
  if (generation.comparison.has_value()) {
    ReportPictures pictures;
    pictures.command = command;
    pictures.further = generation_steps_html(generation);
    return comparison_to_html(*generation.comparison, pictures);
  }
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
      "charset=\"utf-8\"><title>Parallax: generation</title>\n<style>:root{color-scheme:light dark}body{font:14px "
      "system-ui,sans-serif;margin:2em;max-width:70em}td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid "
      "#8884}.n{text-align:right}.mono{font-family:monospace}pre{white-space:pre-wrap;overflow-wrap:anywhere}</style></"
      "head><body>\n<h1>Generation</h1>\n";
  page += fmt::format("<pre class=\"mono\">{}</pre>\n", xml_text(generation_to_text(generation), "\n"));
  page += generation_steps_html(generation);
  if (!command.empty())
    page += fmt::format("<h2>To repeat this</h2>\n<pre class=\"mono\">{}</pre>\n", xml_text(command, "\n"));
  return page + "</body></html>\n";
}

}  // namespace parallax
