// SPDX-License-Identifier: Apache-2.0
// Writes each report.
#include "inspector/workbench/report_files.h"

#include <fmt/format.h>

#include "inspector/base/mapped_file.h"
#include "inspector/render/dot.h"
#include "inspector/render/graph_svg.h"
#include "inspector/render/graphviz.h"
#include "inspector/render/overview_svg.h"
#include "inspector/render/report_exchange.h"
#include "inspector/render/report_html.h"
#include "inspector/render/report_text.h"
#include "inspector/workbench/open.h"

namespace parallax {
namespace {

constexpr int64_t kMaxGraphvizNodes = 300;  // beyond, its layout takes seconds, soon minutes
constexpr int64_t kMaxPageNodes = 2500;     // beyond, a page with all nodes in it is too heavy to be sent
constexpr size_t kDrawnCauses = 5;

// Pictures of the graph around the first causes, or around the first divergence where no cause is known. A neighborhood
// that cannot be drawn is left out: the report describes its cause in words.
Result<std::vector<std::string>> draw_causes(const Graph& graph, const Comparison& comparison) {
  std::vector<std::string> paths;
  for (const Cause& cause : comparison.causes) paths.push_back(cause.path);
  if (paths.empty() && comparison.first_divergence.has_value()) paths.push_back(comparison.first_divergence->path);
  if (paths.size() > kDrawnCauses) paths.resize(kDrawnCauses);
  std::vector<std::string> pictures;
  for (const std::string& path : paths) {
    DotOptions options;
    options.comparison = &comparison;
    options.focus = path;
    options.focus_steps = 2;
    GraphvizLimits limits;
    limits.seconds = 5;
    const auto dot = graph_to_dot(graph, options);
    pictures.push_back(dot.ok() ? PX_TRY(run_dot(*dot, "svg", limits)).image : std::string());
  }
  return pictures;
}

}  // namespace

Result<std::string> draw_graph(const Graph& graph, const Comparison* comparison) {
  if (count_nodes(graph) <= kMaxGraphvizNodes) {
    DotOptions options;
    options.comparison = comparison;
    GraphvizLimits limits;
    limits.seconds = 10;
    const auto dot = graph_to_dot(graph, options);
    DotPicture drawn = dot.ok() ? PX_TRY(run_dot(*dot, "svg", limits)) : DotPicture();
    if (!drawn.image.empty()) return std::move(drawn.image);
  }
  return graph_to_svg(graph, comparison);
}

Result<MemoryBudget::Reservation> reserve_reports(const Comparison& comparison) {
  constexpr int64_t kBytesOfValue = 1 << 10;  // the text of a JSON document, and as much again while it is made
  constexpr int64_t kSmall = 1 << 20;
  const auto count = static_cast<int64_t>(comparison.values.size() + comparison.expected.size());
  if (count * kBytesOfValue < kSmall) return MemoryBudget::Reservation();
  return MemoryBudget::reserve(count * kBytesOfValue,
                               fmt::format("the report of {} values (--only GLOB reports fewer)", count));
}

Result<std::vector<std::string>> write_reports(const ReportFiles& files, const Comparison& comparison,
                                               const Graph* graph) {
  const bool needs_graph =
      !files.dot.empty() || !files.svg.empty() || !files.netron.empty() || !files.model_explorer.empty();
  if (needs_graph && graph == nullptr)
    return usage_error(fmt::format(
        "--dot, --svg, --netron and --model-explorer need a graph, and neither dump holds one: {}", kWayToGraph));
  std::vector<std::string> written;
  const auto write = [&](const std::string& path, const std::string& text) -> Status {
    PX_TRY(write_file(path, text));
    written.push_back(path);
    return {};
  };
  if (!files.csv.empty()) PX_TRY(write(files.csv, comparison_to_csv(comparison)));
  if (!files.junit.empty()) PX_TRY(write(files.junit, comparison_to_junit(comparison)));
  if (!files.netron.empty()) PX_TRY(write(files.netron, comparison_to_netron(comparison, graph)));
  if (!files.model_explorer.empty())
    PX_TRY(write(files.model_explorer, comparison_to_model_explorer(comparison, graph)));
  if (!files.dot.empty()) {
    DotOptions options;
    options.comparison = &comparison;
    const std::string dot = PX_TRY(graph_to_dot(*graph, options));
    PX_TRY(write(files.dot, dot));
  }
  if (!files.svg.empty()) {
    const std::string svg = PX_TRY(draw_graph(*graph, &comparison));
    PX_TRY(write(files.svg, svg));
  }
  if (!files.html.empty()) {
    ReportPictures pictures{{}, {}, files.command, files.further_html};
    if (graph != nullptr) {
      pictures.causes = PX_TRY(draw_causes(*graph, comparison));
      const bool is_large = count_nodes(*graph) > kMaxPageNodes;
      pictures.graph = is_large ? overview_to_svg(*graph, &comparison) : PX_TRY(draw_graph(*graph, &comparison));
    }
    PX_TRY(write(files.html, comparison_to_html(comparison, pictures)));
  }
  return written;
}

}  // namespace parallax
