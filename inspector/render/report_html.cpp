// Fills the template of assets/report with a comparison.
#include "inspector/render/report_html.h"

#include <map>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/render/report_json.h"
#include "inspector/render/report_template.h"
#include "inspector/render/severity_style.h"

namespace parallax {
namespace {

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
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
  return fmt::format(
      "<tr><th>{}</th><td><b>{}</b></td><td class=\"mono\">{}</td><td>{}</td><td class=\"time\">{:.1f} ms</td>"
      "<td class=\"dim mono\">{}</td></tr>\n",
      name_of(execution.side), escaped(execution.name), escaped(execution.model), escaped(execution.device),
      execution.wall_ms, escaped(settings));
}

std::string first_divergence(const Comparison& comparison) {
  if (!comparison.first_divergence.has_value()) return {};
  const FirstDivergence& first = *comparison.first_divergence;
  const std::string node =
      first.node.empty() ? "" : fmt::format(" at node <code>{}</code> ({})", escaped(first.node), escaped(first.op));
  return fmt::format("<div class=\"first\">First divergence: <code>{}</code>{}</div>\n", escaped(first.path), node);
}

std::string causes(const Comparison& comparison) {
  if (comparison.causes.empty()) return {};
  std::string text = "<h2>Causes</h2>\n<ol>\n";
  for (const Cause& cause : comparison.causes) {
    text += fmt::format("<li><code>{}</code> ({}), introduced {:.3g}, inherited {:.3g}: {}</li>\n", escaped(cause.node),
                        escaped(cause.op), cause.introduced, cause.inherited, escaped(cause.why));
  }
  return text + "</ol>\n";
}

std::string summary(const Comparison& comparison) {
  const ComparisonSummary& counts = comparison.summary;
  std::string text = "<div class=\"cards\">\n" + card("values", counts.values) + card("compared", counts.compared) +
                     card("passed", counts.passed, "pass") + card("diverged", counts.diverged, "diverged") +
                     card("mistrusted", counts.mistrusted, "mistrusted") +
                     card("not compared", counts.not_compared, "not_compared") + "</div>\n";
  text += first_divergence(comparison) + causes(comparison) + "<h2>Executions</h2>\n<table class=\"sides\">\n";
  for (const ComparedExecution& execution : comparison.executions) text += execution_row(execution);
  return text + "</table>\n";
}

// The document and, for each value, how it looks. "</" would end the script element that holds it.
std::string data(const Comparison& comparison) {
  nlohmann::json styles = nlohmann::json::array();
  for (const auto* values : {&comparison.values, &comparison.expected}) {
    for (const ValueComparison& value : *values) {
      const SeverityStyle style = style_of(value);
      styles.push_back({style.fill, style.text, style.badge});
    }
  }
  const std::string text = "{\"report\": " + comparison_to_json(comparison) +
                           ", \"styles\": " + styles.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
                           "}";
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) c == '<' ? safe.append("\\u003c") : safe.append(1, c);
  return safe;
}

// Graphviz writes an XML prologue that has no place inside HTML.
std::string picture(const std::string& svg) {
  const size_t begin = svg.find("<svg");
  if (begin == std::string::npos) return {};
  return "<h2>Graph</h2>\n<div class=\"picture\">" + svg.substr(begin) + "</div>\n";
}

}  // namespace

std::string comparison_to_html(const Comparison& comparison, const std::string& svg) {
  const std::map<std::string_view, std::string> parts = {{"verdict", std::string(name_of(comparison.verdict))},
                                                         {"summary", summary(comparison)},
                                                         {"picture", picture(svg)},
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
