// SPDX-License-Identifier: Apache-2.0
// The baseline's values in its execution order are the rows that all runs share.
#include "inspector/render/runs/runs_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <set>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/shown_text.h"
#include "inspector/render/compact_numbers.h"
#include "inspector/render/markup.h"
#include "inspector/render/report_json.h"
#include "inspector/render/report_text.h"
#include "inspector/render/runs/different_models.h"
#include "inspector/render/severity_style.h"

namespace parallax {
namespace {

// One value of the baseline with what became of it in every run; null where that run has no such entry.
struct SharedValue {
  std::string path, op;
  std::vector<const ValueComparison*> in_runs;
  double worst = -1;  // the largest judged severity; below 0: compared in no run
};

// Runs keep the baseline's order of values, but each may lack some: a value comes after the one before it.
std::vector<SharedValue> shared_values(const ComparedRuns& compared) {
  std::vector<SharedValue> values;
  std::unordered_map<std::string_view, size_t> known;
  for (size_t run = 0; run < compared.runs.size(); ++run) {
    for (const ValueComparison& value : compared.runs[run].comparison.values) {
      if (value.a.empty()) continue;
      const auto [at, is_new] = known.emplace(value.a, values.size());
      if (is_new) values.push_back({value.a, value.op, std::vector<const ValueComparison*>(compared.runs.size())});
      SharedValue& shared = values[at->second];
      shared.in_runs[run] = &value;
      if (value.verdict != Verdict::not_compared) shared.worst = std::max(shared.worst, judged_severity(value));
    }
  }
  return values;
}

// File names where they differ, else with their folders.
std::vector<std::string> short_names(const ComparedRuns& compared) {
  std::vector<std::string> names;
  for (const ComparedRun& run : compared.runs) names.push_back(std::filesystem::path(run.file).filename().string());
  if (std::set<std::string>(names.begin(), names.end()).size() == names.size()) return names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = compared.runs[i].file;
  return names;
}

std::string program_of(const Comparison& comparison, Side side) {
  for (const ComparedExecution& execution : comparison.executions) {
    if (execution.side == side) return execution_text(execution);
  }
  return {};
}

// The largest error / limit that no node is cleared of.
double worst_severity(const Comparison& comparison) {
  double worst = 0;
  for (const ValueComparison& value : comparison.values) {
    if (value.verdict != Verdict::not_compared) worst = std::max(worst, judged_severity(value));
  }
  return worst;
}

std::string runs_line(const ComparedRuns& compared) {
  std::string text = fmt::format("{} runs against {}:", compared.runs.size(), compared.baseline);
  for (const auto& [verdict, word] :
       {std::pair(OverallVerdict::pass, "passed"), std::pair(OverallVerdict::diverged, "diverged"),
        std::pair(OverallVerdict::inconclusive, "inconclusive")}) {
    const auto count = std::ranges::count_if(
        compared.runs, [&, wanted = verdict](const ComparedRun& run) { return run.comparison.verdict == wanted; });
    if (count > 0) text += fmt::format("{} {} {}", text.ends_with(':') ? "" : ",", count, word);
  }
  return text;
}

std::string first_cause(const Comparison& comparison) {
  if (comparison.causes.empty()) return {};
  std::string text = cause_text(comparison.causes.front());
  if (comparison.causes.size() > 1) text += fmt::format("; {} more", comparison.causes.size() - 1);
  return text;
}

// Sentences on a run below its line: the reason for its verdict, what is damaged, its first cause.
std::vector<std::string> sentences_on(const Comparison& comparison) {
  std::vector<std::string> notes;
  for (std::string note : {different_models(comparison), reason_of(comparison)}) {
    if (!note.empty()) notes.push_back(std::move(note));
  }
  for (std::string& sentence : damage_sentences(comparison)) notes.push_back(std::move(sentence));
  if (std::string cause = first_cause(comparison); !cause.empty()) notes.push_back("cause: " + std::move(cause));
  return notes;
}

std::string severity_cell(const ValueComparison* value) {
  if (value == nullptr) return "absent";
  if (value->verdict == Verdict::not_compared) return "-";
  return short_number(value->severity) + (is_explained(*value) ? "*" : "");
}

std::vector<const SharedValue*> listed(const std::vector<SharedValue>& values, int64_t top) {
  std::vector<const SharedValue*> rows;
  for (const SharedValue& value : values) {
    if (top < 0 || value.worst > 0) rows.push_back(&value);
  }
  if (top < 0) return rows;
  std::ranges::stable_sort(rows, std::greater(), &SharedValue::worst);
  if (static_cast<int64_t>(rows.size()) > top) rows.resize(static_cast<size_t>(top));
  return rows;
}

std::string values_text(const ComparedRuns& compared, int64_t top) {
  constexpr size_t kPathWidth = 48;
  const std::vector<SharedValue> values = shared_values(compared);
  const auto rows = listed(values, top);
  if (rows.empty()) return {};
  size_t width = std::string_view("severity of").size();
  for (const SharedValue* row : rows) width = std::max(width, std::min(kPathWidth, printable(row->path).size()));
  std::string text = fmt::format("\n{:<{}}  {:<14}", top < 0 ? "severity of" : "worst first", width, "op");
  for (size_t run = 0; run < compared.runs.size(); ++run) text += fmt::format(" {:>9}", fmt::format("run {}", run + 1));
  text += "\n";
  bool is_any_explained = false;
  for (const SharedValue* row : rows) {
    text += fmt::format("{:<{}}  {:<14}", shorten(printable(row->path), kPathWidth), width,
                        shorten(printable(row->op), 14));
    for (const ValueComparison* value : row->in_runs) {
      text += fmt::format(" {:>9}", severity_cell(value));
      is_any_explained |= value != nullptr && is_explained(*value);
    }
    text += "\n";
  }
  return is_any_explained ? text + "* beyond its limit, and passes: its difference is explained\n" : text;
}

// ---- the page

// Paul Tol's bright scheme (https://personal.sron.nl/~pault/); more runs than colors are dashed.
constexpr std::array<const char*, 7> kRunColors = {"#4477AA", "#EE6677", "#228833", "#CCBB44",
                                                   "#66CCEE", "#AA3377", "#999999"};

std::string stroke_of(size_t run) {
  std::string style = fmt::format("stroke=\"{}\"", kRunColors[run % kRunColors.size()]);
  if (run >= kRunColors.size()) style += fmt::format(" stroke-dasharray=\"{} 3\"", 2 + 3 * (run / kRunColors.size()));
  return style;
}

// Severities span many powers of ten: the axis is logarithmic, what is below it stands at its foot, infinities at its
// head.
struct Axis {
  static constexpr double kWidth = 1180, kHeight = 260, kLeft = 62, kTop = 12;
  double low = -3, high = 1;  // powers of ten
  size_t count = 1;
  double x(size_t at) const {
    return kLeft + (kWidth - kLeft) * (count > 1 ? static_cast<double>(at) / static_cast<double>(count - 1) : 0.5);
  }
  double y(double severity) const {
    const double power = severity > 0 ? std::clamp(std::log10(severity), low, high) : low;
    return kTop + kHeight * (high - power) / (high - low);
  }
};

// Values that nodes make; weights only where they differ.
std::vector<SharedValue> along_the_graph(std::vector<SharedValue> values) {
  std::erase_if(values, [](const SharedValue& value) {
    return !(value.worst > 0) && std::ranges::all_of(value.in_runs, [](const ValueComparison* in_run) {
      return in_run == nullptr || in_run->node_reads_it;
    });
  });
  return values;
}

Axis axis_over(const std::vector<SharedValue>& values) {
  Axis axis;
  axis.count = values.size();
  for (const SharedValue& value : values) {
    if (std::isfinite(value.worst) && value.worst > 0)
      axis.high = std::max(axis.high, std::ceil(std::log10(value.worst)));
  }
  axis.high = std::min(axis.high + 1, 40.0);
  return axis;
}

std::string plot_line(const std::vector<SharedValue>& values, const Axis& axis, size_t run, const std::string& name) {
  std::string points, marks;
  for (size_t at = 0; at < values.size(); ++at) {
    const ValueComparison* value = values[at].in_runs[run];
    if (value == nullptr || value->verdict == Verdict::not_compared) continue;
    const double x = axis.x(at), y = axis.y(judged_severity(*value));
    points += fmt::format("{:.1f},{:.1f} ", x, y);
    if (value->verdict != Verdict::diverged) continue;
    marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: {} {}</title></circle>\n",
                         x, y, kRunColors[run % kRunColors.size()], xml_text(name), xml_text(values[at].path),
                         short_number(value->severity));
  }
  return fmt::format("<polyline fill=\"none\" stroke-width=\"1.5\" {} points=\"{}\"/>\n{}", stroke_of(run), points,
                     marks);
}

std::string plot(const std::vector<SharedValue>& values, const std::vector<std::string>& names) {
  if (values.empty()) return {};
  const Axis axis = axis_over(values);
  std::string svg = fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"error / limit along the graph\">\n",
      Axis::kWidth + 12, Axis::kTop + Axis::kHeight + 34);
  const double step = std::max(1.0, std::ceil((axis.high - axis.low) / 8));
  for (double power = axis.low; power <= axis.high; power += step) {
    const double y = axis.y(std::pow(10, power));
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        Axis::kLeft, Axis::kWidth, y, Axis::kLeft - 8, y + 4, short_number(std::pow(10, power)));
  }
  svg += fmt::format("<line class=\"limit\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n", Axis::kLeft,
                     Axis::kWidth, axis.y(1));
  svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\">{}</text><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                     Axis::kLeft, Axis::kTop + Axis::kHeight + 18, xml_text(shorten(values.front().path, 40)),
                     Axis::kWidth, Axis::kTop + Axis::kHeight + 18, xml_text(shorten(values.back().path, 40)));
  for (size_t run = 0; run < names.size(); ++run) svg += plot_line(values, axis, run, names[run]);
  svg += "</svg>\n<p class=\"legend\">";
  for (size_t run = 0; run < names.size(); ++run) {
    svg += fmt::format(
        "<span><svg class=\"key\" viewBox=\"0 0 26 8\"><line x1=\"0\" x2=\"26\" y1=\"4\" y2=\"4\" "
        "stroke-width=\"3\" {}/></svg>{} {}</span>\n",
        stroke_of(run), run + 1, xml_text(names[run]));
  }
  return svg + "</p>\n";
}

std::string run_rows(const ComparedRuns& compared) {
  std::string rows;
  for (size_t i = 0; i < compared.runs.size(); ++i) {
    const Comparison& comparison = compared.runs[i].comparison;
    const ComparisonSummary& counts = comparison.summary;
    std::string notes;
    for (const std::string& note : sentences_on(comparison)) notes += fmt::format("<div>{}</div>", xml_text(note));
    const std::string first =
        comparison.first_divergence.has_value() ? comparison.first_divergence->path : std::string();
    rows += fmt::format(
        "<tr><td>{}</td><td><b>{}</b><div class=\"dim\">{}</div></td><td class=\"{}\">{}</td><td class=\"n\">{} of "
        "{}</td>"
        "<td class=\"n\">{}</td><td class=\"n\">{}</td><td><code>{}</code>{}</td></tr>\n",
        i + 1, xml_text(compared.runs[i].file), xml_text(program_of(comparison, Side::b)), name_of(comparison.verdict),
        name_of(comparison.verdict), counts.compared, counts.values, counts.diverged,
        short_number(worst_severity(comparison)), xml_text(first), notes);
  }
  return rows;
}

std::string value_rows(const std::vector<const SharedValue*>& rows) {
  std::string text;
  for (const SharedValue* row : rows) {
    text += fmt::format("<tr><td><code>{}</code></td><td>{}</td>", xml_text(row->path), xml_text(row->op));
    for (const ValueComparison* value : row->in_runs) {
      if (value == nullptr) {
        text += "<td class=\"n dim\">absent</td>";
        continue;
      }
      const SeverityStyle style = style_of(*value);
      text +=
          fmt::format("<td class=\"n\" style=\"background:{};color:{}\" title=\"{}\">{}</td>", style.fill, style.text,
                      xml_text(value->reason.empty() ? std::string(words_of(value->verdict)) : reason_text(*value)),
                      severity_cell(value));
    }
    text += "</tr>\n";
  }
  return text;
}

constexpr const char* kPageStyle =
    ":root{--ground:#fbfbfa;--raised:#fff;--ink:#1d1f23;--dim:#63676e;--line:#dfe1e4;--pass:#1b7f5c;--diverged:#b2182b;"
    "--inconclusive:#8a6a00}@media (prefers-color-scheme:dark){:root{--ground:#16181b;--raised:#1e2125;--ink:#e7e8ea;"
    "--dim:#9aa0a8;--line:#33373d;--pass:#5fd3a6;--diverged:#f4a582;--inconclusive:#e6c84f}}*{box-sizing:border-box}"
    "body{margin:0;background:var(--ground);color:var(--ink);font:14px/1.45 system-ui,\"DejaVu Sans\",sans-serif}"
    "main{max-width:1500px;margin:0 auto;padding:24px 20px 60px}h1{font-size:26px;margin:0 0 4px}"
    "h2{margin:28px 0 10px;font-size:16px}.dim{color:var(--dim)}code,td.n{font-family:ui-monospace,\"DejaVu Sans "
    "Mono\","
    "monospace;font-size:12.5px}table{border-collapse:collapse;width:100%;background:var(--raised)}th,td{border-bottom:"
    "1px "
    "solid var(--line);padding:5px "
    "10px;vertical-align:top;text-align:left}td.n,th.n{text-align:right;white-space:nowrap}"
    ".pass{color:var(--pass)}.diverged{color:var(--diverged)}.inconclusive{color:var(--inconclusive)}"
    ".plot{width:100%;background:var(--raised);border:1px solid var(--line);border-radius:8px}.plot text{font:11px "
    "system-ui,\"DejaVu Sans\",sans-serif;fill:var(--dim)}.plot .grid{stroke:var(--line)}.plot "
    ".limit{stroke:var(--diverged);"
    "stroke-dasharray:6 4}.legend "
    "span{margin-right:22px;white-space:nowrap}.key{width:26px;height:8px;margin-right:7px}"
    ".frame{overflow:auto;max-height:75vh;border:1px solid var(--line);border-radius:8px}.frame "
    "th{position:sticky;top:0;"
    "background:var(--raised)}pre{background:var(--raised);border:1px solid var(--line);border-radius:8px;padding:10px "
    "14px;white-space:pre-wrap;overflow-wrap:anywhere}";

}  // namespace

OverallVerdict verdict_of(const ComparedRuns& compared) {
  OverallVerdict worst = OverallVerdict::pass;
  for (const ComparedRun& run : compared.runs) {
    if (run.comparison.verdict == OverallVerdict::diverged) return OverallVerdict::diverged;
    if (run.comparison.verdict == OverallVerdict::inconclusive) worst = OverallVerdict::inconclusive;
  }
  return worst;
}

std::string runs_to_text(const ComparedRuns& compared, int64_t top) {
  const std::vector<std::string> names = short_names(compared);
  std::string text = fmt::format("{}  {}\n", name_of(verdict_of(compared)), printable(runs_line(compared)));
  if (!compared.runs.empty())
    text += fmt::format("  baseline = {}\n", printable(program_of(compared.runs.front().comparison, Side::a)));
  size_t width = 4;
  for (const std::string& name : names) width = std::max(width, std::min<size_t>(48, printable(name).size()));
  text += fmt::format("\nrun  {:<{}}  {:<12} {:>12} {:>9} {:>9}  first divergence\n", "file", width, "verdict",
                      "compared", "diverged", "severity");
  for (size_t i = 0; i < compared.runs.size(); ++i) {
    const Comparison& comparison = compared.runs[i].comparison;
    const ComparisonSummary& counts = comparison.summary;
    const std::string first =
        comparison.first_divergence.has_value()
            ? fmt::format("{} ({})", printable(comparison.first_divergence->path), origin_of_divergence(comparison))
            : "";
    std::string line =
        fmt::format("{:>3}  {:<{}}  {:<12} {:>12} {:>9} {:>9}  {}", i + 1, shorten(printable(names[i]), 48), width,
                    name_of(comparison.verdict), fmt::format("{} of {}", counts.compared, counts.values),
                    counts.diverged, short_number(worst_severity(comparison)), first);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    for (const std::string& note : sentences_on(comparison)) text += fmt::format("     {}\n", printable(note));
  }
  return top == 0 ? text : text + values_text(compared, top);
}

std::string runs_to_json(const ComparedRuns& compared) {
  nlohmann::ordered_json json{{"parallax", PARALLAX_VERSION},
                              {"verdict", name_of(verdict_of(compared))},
                              {"baseline", compared.baseline},
                              {"runs", nlohmann::ordered_json::array()}};
  for (const ComparedRun& run : compared.runs)
    json["runs"].push_back({{"file", run.file}, {"comparison", comparison_json(run.comparison)}});
  return json_text(json);
}

std::string runs_to_html(const ComparedRuns& compared, const std::string& command) {
  constexpr int64_t kListed = 300;
  const std::vector<SharedValue> values = shared_values(compared);
  const std::vector<std::string> names = short_names(compared);
  const auto rows = listed(values, kListed);
  std::string heads;
  for (size_t run = 0; run < names.size(); ++run)
    heads += fmt::format("<th class=\"n\" title=\"{}\">run {}</th>", xml_text(names[run]), run + 1);
  const std::string_view verdict = name_of(verdict_of(compared));
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><!-- parallax -->"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Parallax: {0}</title>"
      "<style>{1}</style></head><body><main>\n<h1>Verdict: <span class=\"{0}\">{0}</span></h1>\n<p>{2}</p>\n",
      verdict, kPageStyle, xml_text(runs_line(compared)));
  if (!compared.runs.empty())
    page += fmt::format("<p class=\"dim\">baseline = {}</p>\n",
                        xml_text(program_of(compared.runs.front().comparison, Side::a)));
  page += fmt::format(
      "<table><tr><th>run</th><th>file</th><th>verdict</th><th class=\"n\">compared</th><th class=\"n\">diverged</th>"
      "<th class=\"n\">severity</th><th>first divergence, cause</th></tr>\n{}</table>\n",
      run_rows(compared));
  page += "<h2>Error / limit along the graph, in execution order</h2>\n" + plot(along_the_graph(values), names);
  page += fmt::format(
      "<h2>Values</h2>\n<p class=\"dim\">{} of {} values of the baseline: those that differ in a run, largest error / "
      "limit "
      "first. * beyond its limit, and explained.</p>\n<div "
      "class=\"frame\"><table><thead><tr><th>value</th><th>op</th>{}"
      "</tr></thead><tbody>\n{}</tbody></table></div>\n",
      rows.size(), values.size(), heads, value_rows(rows));
  page += fmt::format("<h2>To repeat this</h2>\n<pre>{}</pre>\n", xml_text(command, "\n"));
  return page + fmt::format(
                    "<p class=\"dim\">Parallax {}. Severity is the largest |a-b| / (atol + rtol |a|) of a value; 1 is "
                    "the limit.</p>\n</main></body></html>\n",
                    PARALLAX_VERSION);
}

}  // namespace parallax
