// Writes each report, folding large graphs until Graphviz can draw them.
#include "inspector/workbench/report_files.h"

#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/base/mapped_file.h"
#include "inspector/render/dot.h"
#include "inspector/render/graphviz.h"
#include "inspector/render/report_exchange.h"
#include "inspector/render/report_html.h"
#include "inspector/render/report_text.h"

namespace parallax {
namespace {

constexpr int64_t kMaxOpenNodes = 400;  // beyond, dot's layout takes minutes and the picture is no longer read
constexpr int kDeepestFold = 3;
constexpr size_t kDrawnCauses = 5;

// The whole graph, or the deepest view of it with folded scopes that Graphviz draws in time.
Result<std::string> draw(const Graph& graph, const Comparison& comparison) {
  DotOptions options;
  options.comparison = &comparison;
  const bool is_large = count_nodes(graph) > kMaxOpenNodes;
  GraphvizLimits limits;
  limits.seconds = 20;
  for (options.depth = is_large ? kDeepestFold : -1; options.depth >= -1; --options.depth) {
    auto picture = draw_dot(PX_TRY(graph_to_dot(graph, options)), "svg", limits);
    if (picture.ok()) {
      if (options.depth >= 0)
        log_warning(fmt::format("the graph is large: its picture has the scopes below depth {} folded", options.depth));
      return picture;
    }
    if (options.depth <= 0) return picture;
  }
  return unsupported("the graph could not be drawn");
}

// What is around the first causes, or around the first divergence where no cause is known. A neighbourhood that cannot
// be drawn is left out: the report says its cause in words.
std::vector<std::string> draw_causes(const Graph& graph, const Comparison& comparison) {
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
    auto picture = dot.ok() ? draw_dot(*dot, "svg", limits) : Result<std::string>(std::string());
    pictures.push_back(picture.ok() ? std::move(picture).take() : std::string());
  }
  return pictures;
}

}  // namespace

Result<std::vector<std::string>> write_reports(const ReportFiles& files, const Comparison& comparison,
                                               const Graph* graph) {
  const bool needs_graph = !files.dot.empty() || !files.svg.empty();
  if (needs_graph && graph == nullptr) return usage_error("--dot and --svg need a graph, and neither dump holds one");
  std::vector<std::string> written;
  const auto write = [&](const std::string& path, const std::string& text) -> Status {
    PX_TRY(write_file(path, text));
    written.push_back(path);
    return {};
  };
  if (!files.csv.empty()) PX_TRY(write(files.csv, comparison_to_csv(comparison)));
  if (!files.junit.empty()) PX_TRY(write(files.junit, comparison_to_junit(comparison)));
  if (!files.netron.empty()) PX_TRY(write(files.netron, comparison_to_netron(comparison)));
  if (!files.model_explorer.empty()) PX_TRY(write(files.model_explorer, comparison_to_model_explorer(comparison)));
  if (!files.dot.empty()) {
    DotOptions options;
    options.comparison = &comparison;
    const std::string dot = PX_TRY(graph_to_dot(*graph, options));
    PX_TRY(write(files.dot, dot));
  }
  std::string picture;
  if (!files.svg.empty() || (!files.html.empty() && graph != nullptr)) {
    auto drawn = draw(*graph, comparison);
    if (drawn.ok()) {
      picture = std::move(drawn).take();
    } else if (!files.svg.empty()) {
      return std::move(drawn).error();
    } else {
      log_warning(fmt::format("{} has no picture: {}", files.html, drawn.error().message));
    }
  }
  if (!files.svg.empty()) PX_TRY(write(files.svg, picture));
  if (!files.html.empty()) {
    const auto causes = graph == nullptr ? std::vector<std::string>() : draw_causes(*graph, comparison);
    PX_TRY(write(files.html, comparison_to_html(comparison, {picture, causes, files.command})));
  }
  return written;
}

}  // namespace parallax
