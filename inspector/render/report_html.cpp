// SPDX-License-Identifier: Apache-2.0
// Fills the template of assets/report with a comparison.
#include "inspector/render/report_html.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/render/error_svg.h"
#include "inspector/render/markup.h"
#include "inspector/render/report_json.h"
#include "inspector/render/report_template.h"
#include "inspector/render/report_text.h"
#include "inspector/render/runs/different_models.h"
#include "inspector/render/severity_style.h"

namespace parallax {
namespace {

// Graphviz writes an XML prologue that is not allowed inside HTML.
std::string svg_of(const std::string& drawn) {
  const size_t begin = drawn.find("<svg");
  return begin == std::string::npos ? std::string() : drawn.substr(begin);
}

// A card with a verdict shows the values of that verdict when it is clicked.
std::string card(std::string_view title, int64_t count, std::string_view verdict = {}) {
  if (verdict.empty() || count == 0)
    return fmt::format("<div class=\"card\"><b>{}</b><span class=\"dim\">{}</span></div>\n", count, title);
  return fmt::format("<button class=\"card\" data-verdict=\"{}\"><b>{}</b><span class=\"dim\">{}</span></button>\n",
                     verdict, count, title);
}

std::string execution_row(const ComparedExecution& execution) {
  std::string settings;
  for (const auto& [key, value] : execution.settings) settings += fmt::format("{}={} ", key, value);
  // Nothing of a side that did not run, or did not end.
  const std::string time = execution.wall_ms > 0 ? fmt::format("{:.1f} ms", execution.wall_ms) : "";
  return fmt::format(
      "<tr><th>{}</th><td><b>{}</b></td><td class=\"mono\">{}</td><td>{}</td><td class=\"time\">{}</td>"
      "<td class=\"dim mono\">{}</td></tr>\n",
      name_of(execution.side), xml_text(execution.name), xml_text(execution.model), xml_text(execution.device), time,
      xml_text(settings));
}

const ValueComparison* find_value(const Comparison& comparison, std::string_view path) {
  for (const ValueComparison& value : comparison.values) {
    if (value.path == path) return &value;
  }
  return nullptr;
}

// One card for each finding: the causes, or the first divergence where no cause is known.
struct Finding {
  std::string title;  // HTML
  std::string text;   // HTML
  std::string path;
};

std::vector<Finding> findings(const Comparison& comparison) {
  std::vector<Finding> list;
  for (const Cause& cause : comparison.causes) {
    Finding& finding = list.emplace_back();
    finding.title = fmt::format("{}. <code>{}</code> <span class=\"dim\">{}</span>", cause.rank,
                                xml_text(cause.node.empty() ? cause.path : cause.node), xml_text(cause.op));
    if (cause.is_renamed_in_b())
      finding.title += fmt::format(" <span class=\"dim\">in B</span> <code>{}</code>", xml_text(cause.node_b));
    finding.text = fmt::format(
        "<p>{}</p><p class=\"dim\">introduced {:.3g}, inherited {:.3g} (1 is the limit); side {}; value "
        "<code>{}</code>",
        xml_text(cause.why), cause.introduced, cause.inherited, name_of(cause.side), xml_text(cause.path));
    if (cause.has_source()) {
      finding.text +=
          fmt::format("; from <code>{}</code> {}", xml_text(cause.source_module), xml_text(cause.source_line));
      if (!cause.source_operator.empty())
        finding.text += fmt::format(" <code>{}</code>", xml_text(cause.source_operator));
    }
    finding.text += "</p>";
    finding.path = cause.path;
  }
  if (list.empty() && comparison.first_divergence.has_value()) {
    const FirstDivergence& first = *comparison.first_divergence;
    list.push_back({fmt::format("First divergence: <code>{}</code> <span class=\"dim\">{}</span>", xml_text(first.node),
                                xml_text(first.op)),
                    fmt::format("<p class=\"dim\">value <code>{}</code></p>", xml_text(first.path)), first.path});
  }
  return list;
}

std::string finding_card(const Comparison& comparison, const Finding& finding, const std::string& neighborhood) {
  std::string text = fmt::format("<div class=\"finding\"><h3>{}</h3>\n{}\n", finding.title, finding.text);
  std::string pictures;
  const ValueComparison* value = find_value(comparison, finding.path);
  if (value != nullptr && value->picture != nullptr) {
    const double largest = std::max(std::abs(value->picture->low), std::abs(value->picture->high));
    pictures += "<div class=\"column\">" +
                error_map_svg(*value->picture, value->limit.atol + value->limit.rtol * largest) +
                histograms_svg(*value->picture) + "</div>";
  }
  if (!neighborhood.empty()) pictures += svg_of(neighborhood);
  if (!pictures.empty()) text += "<div class=\"evidence\">" + pictures + "</div>\n";
  return text + "</div>\n";
}

std::string causes(const Comparison& comparison, const ReportPictures& pictures) {
  const std::vector<Finding> list = findings(comparison);
  if (list.empty()) return {};
  std::string text = comparison.causes.empty() ? "" : "<h2>Causes</h2>\n";
  for (size_t index = 0; index < list.size(); ++index) {
    text +=
        finding_card(comparison, list[index], index < pictures.causes.size() ? pictures.causes[index] : std::string());
  }
  return text;
}

// The reasons for which the verdict is not a plain one.
std::string doubts(const Comparison& comparison) {
  const std::string reason = reason_of(comparison);
  const std::string models = different_models(comparison);
  std::string text = models.empty() ? "" : fmt::format("<p class=\"damage\">{}.</p>\n", xml_text(models));
  if (!reason.empty()) text += fmt::format("<p>{}</p>\n", xml_text(reason));
  for (const std::string& sentence : damage_sentences(comparison))
    text += fmt::format("<p class=\"damage\">{}</p>\n", xml_text(sentence));
  return text;
}

std::string repetition(const std::string& command) {
  return command.empty()
             ? std::string()
             : fmt::format("<h2>To repeat this</h2>\n<pre class=\"mono\">{}</pre>\n", xml_text(command, "\n"));
}

std::string summary(const Comparison& comparison, const ReportPictures& pictures) {
  const ComparisonSummary& counts = comparison.summary;
  std::string text = doubts(comparison) + "<div class=\"cards\">\n" + card("values", counts.values) +
                     card("compared", counts.compared) + card("passed", counts.passed, "pass") +
                     card("diverged", counts.diverged, "diverged") +
                     card("mistrusted", counts.mistrusted, "mistrusted") +
                     card("not compared", counts.not_compared, "not_compared") + "</div>\n";
  text += causes(comparison, pictures) + "<h2>Executions</h2>\n<table class=\"sides\">\n";
  for (const ComparedExecution& execution : comparison.executions) text += execution_row(execution);
  return text + "</table>\n" + pictures.further + repetition(pictures.command);
}

// A browser reads numbers as doubles: integers that these would round are texts in the page.
void keep_digits(nlohmann::ordered_json& values) {
  constexpr int64_t kExact = int64_t{1} << 53;
  for (nlohmann::ordered_json& value : values) {
    for (const char* key : {"worst_a", "worst_b"}) {
      if (value["metrics"].is_null()) break;
      nlohmann::ordered_json& number = value["metrics"][key];
      const bool is_exact = number.is_number_float() || !number.is_number() ||
                            (number.is_number_unsigned() ? number.get<uint64_t>() <= uint64_t{kExact}
                                                         : std::abs(number.get<int64_t>() / 2) < kExact / 2);
      if (!is_exact) number = number.dump();
    }
  }
}

// The document and, for each value, how it looks. "</" would end the script element that holds it.
std::string data(const Comparison& comparison) {
  nlohmann::ordered_json styles = nlohmann::ordered_json::array();
  for (const auto* values : {&comparison.values, &comparison.expected}) {
    for (const ValueComparison& value : *values) {
      const SeverityStyle style = style_of(value);
      styles.push_back({style.fill, style.text, style.badge});
    }
  }
  nlohmann::ordered_json report = comparison_json(comparison);
  keep_digits(report["values"]);
  if (report.contains("expected")) keep_digits(report["expected"]);
  const nlohmann::ordered_json document{{"report", std::move(report)}, {"styles", std::move(styles)}};
  const std::string text = json_text(document, -1);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) c == '<' ? safe.append("\\u003c") : safe.append(1, c);
  return safe;
}

std::string graph(const std::string& drawn) {
  const std::string svg = svg_of(drawn);
  return svg.empty() ? std::string() : "<h2>Graph</h2>\n<div class=\"picture\">" + svg + "</div>\n";
}

}  // namespace

std::string comparison_to_html(const Comparison& comparison, const ReportPictures& pictures) {
  const std::map<std::string_view, std::string> parts = {{"verdict", std::string(name_of(comparison.verdict))},
                                                         {"summary", summary(comparison, pictures)},
                                                         {"picture", graph(pictures.graph)},
                                                         {"version", PARALLAX_VERSION},
                                                         {"data", data(comparison)}};
  std::string page;
  std::string_view rest = report_template();
  for (size_t begin = rest.find("{{"); begin != std::string_view::npos; begin = rest.find("{{")) {
    const size_t end = rest.find("}}", begin);
    page.append(rest.substr(0, begin)).append(parts.at(rest.substr(begin + 2, end - begin - 2)));
    rest.remove_prefix(end + 2);
  }
  return page.append(rest);
}

}  // namespace parallax
