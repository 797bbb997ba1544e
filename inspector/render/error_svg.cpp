// SPDX-License-Identifier: Apache-2.0
// Small pictures drawn by hand: rectangles for cells and bars, a line of text below.
#include "inspector/render/error_svg.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace parallax {
namespace {

constexpr int kWidth = 384;
constexpr int kMapHeight = 192;
constexpr int kBarHeight = 110;

struct Step {
  double from;  // in units of the limit
  const char* fill;
};
// Paul Tol's YlOrBr (https://personal.sron.nl/~pault/) as in severity_style.h; below the limit grays.
constexpr Step kSteps[] = {{0, "#F4F4F4"},  {1e-3, "#E4E6E8"}, {1e-1, "#D3D6DA"}, {1, "#FEE391"},
                           {10, "#FB9A29"}, {100, "#CC4C02"},  {1e4, "#662506"}};
constexpr const char* kBeyondNumbers = "#8E0152";  // NaN or infinity on one side alone

const char* fill_of(double error, double limit) {
  if (error == 0) return "#FFFFFF";
  if (std::isinf(error)) return kBeyondNumbers;
  const double ratio = limit > 0 ? error / limit : 1;
  const char* fill = kSteps[0].fill;
  for (const Step& step : kSteps) {
    if (ratio >= step.from) fill = step.fill;
  }
  return fill;
}

std::string text_at(int x, int y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>", x, y, anchor, text);
}

std::string begin_svg(int height, const char* title) {
  return fmt::format(
      "<svg class=\"small\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"{2}\">"
      "<title>{2}</title>",
      kWidth, height, title);
}

// Neighbors of one color in a row are one rectangle: most of a map is of one color.
std::string row_of_cells(const ErrorPicture& picture, int64_t row, double limit) {
  const double width = static_cast<double>(kWidth) / static_cast<double>(picture.columns);
  const double height = static_cast<double>(kMapHeight) / static_cast<double>(picture.rows);
  std::string text;
  for (int64_t begin = 0; begin < picture.columns;) {
    const auto fill_at = [&](int64_t column) {
      return fill_of(picture.errors[static_cast<size_t>(row * picture.columns + column)], limit);
    };
    int64_t end = begin + 1;
    while (end < picture.columns && fill_at(end) == fill_at(begin)) ++end;
    text += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>",
                        width * static_cast<double>(begin), height * static_cast<double>(row),
                        width * static_cast<double>(end - begin), height, fill_at(begin));
    begin = end;
  }
  return text;
}

std::string bars(const std::vector<int64_t>& counts, int64_t most, const char* fill, bool is_left) {
  const double width = static_cast<double>(kWidth) / static_cast<double>(counts.size());
  std::string text;
  for (size_t bin = 0; bin < counts.size(); ++bin) {
    if (counts[bin] == 0) continue;
    // By the logarithm: one far element must be seen next to a million near zero.
    const double height =
        kBarHeight * std::log1p(static_cast<double>(counts[bin])) / std::log1p(static_cast<double>(most));
    text += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>",
                        width * (static_cast<double>(bin) + (is_left ? 0.05 : 0.5)), kBarHeight - height, width * 0.42,
                        height, fill);
  }
  return text;
}

}  // namespace

std::string error_map_svg(const ErrorPicture& picture, double limit) {
  std::string svg = begin_svg(kMapHeight + 18, "Map of the errors");
  for (int64_t row = 0; row < picture.rows; ++row) svg += row_of_cells(picture, row, limit);
  svg +=
      fmt::format("<rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" class=\"edge\"/>", kWidth - 1, kMapHeight - 1);
  svg += text_at(0, kMapHeight + 14, "start",
                 fmt::format("|a-b|, {} rows by {} columns", picture.matrix_rows, picture.matrix_columns));
  const double worst = *std::ranges::max_element(picture.errors);
  return svg + text_at(kWidth, kMapHeight + 14, "end", fmt::format("largest {:.3g}", worst)) + "</svg>";
}

std::string histograms_svg(const ErrorPicture& picture) {
  int64_t most = 1;
  for (const auto* histogram : {&picture.histogram_a, &picture.histogram_b})
    most = std::max(most, *std::ranges::max_element(*histogram));
  std::string svg = begin_svg(kBarHeight + 18, "Histograms of both sides");
  svg += bars(picture.histogram_a, most, "#2166AC", true) + bars(picture.histogram_b, most, "#B2182B", false);
  svg += fmt::format("<line x1=\"0\" y1=\"{0}\" x2=\"{1}\" y2=\"{0}\" class=\"edge\"/>", kBarHeight, kWidth);
  svg += text_at(0, kBarHeight + 14, "start", fmt::format("{:.3g}", picture.low));
  svg += text_at(kWidth / 2, kBarHeight + 14, "middle", "A blue, B red; height by the logarithm of the count");
  return svg + text_at(kWidth, kBarHeight + 14, "end", fmt::format("{:.3g}", picture.high)) + "</svg>";
}

}  // namespace parallax
