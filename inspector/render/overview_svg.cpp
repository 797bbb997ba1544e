// SPDX-License-Identifier: Apache-2.0
// Opens groups from the worst on, lets the scope layout position them, and writes boxes and wires.
#include "inspector/render/overview_svg.h"

#include <iterator>
#include <queue>
#include <vector>

#include <fmt/format.h>

#include "inspector/base/shown_text.h"
#include "inspector/render/graph_labels.h"
#include "inspector/render/markup.h"
#include "inspector/render/node_verdicts.h"
#include "inspector/render/scope_layout.h"
#include "inspector/render/severity_style.h"

namespace parallax {
namespace {

constexpr size_t kMaxOverviewLabel = 28;

using Worst = std::vector<const ValueComparison*>;  // by item; null where nothing is known

// The worst verdict of every item, with its content included.
Worst worst_of_items(const GraphItems& items, const Comparison* comparison) {
  const NodeVerdicts verdicts(comparison);
  Worst worst(items.items().size(), nullptr);
  std::vector<int32_t> order = {0};  // groups before what is in them
  for (size_t next = 0; next < order.size(); ++next) {
    const std::vector<int32_t>& children = items.item(order[next]).children;
    order.insert(order.end(), children.begin(), children.end());
  }
  for (size_t next = order.size(); next-- > 0;) {
    const auto index = static_cast<size_t>(order[next]);
    const GraphItem& item = items.items()[index];
    const auto take = [&](const ValueComparison* other) {
      if (other != nullptr && (worst[index] == nullptr || is_worse(*other, *worst[index]))) worst[index] = other;
    };
    const auto take_node = [&](const GraphItem& node) {
      take(verdicts.find(node.scope, node.graph->nodes[static_cast<size_t>(node.node)]));
    };
    if (item.kind == GraphItem::Kind::node) take_node(item);
    for (const int32_t constant : item.constants) take_node(items.item(constant));
    for (const int32_t child : item.children) take(worst[static_cast<size_t>(child)]);
  }
  return worst;
}

// Which groups are drawn open: the outermost, then those that hold what is worst, the larger first among equals.
std::vector<bool> open_groups(const GraphItems& items, const Worst& worst, size_t most_boxes) {
  const auto is_later = [&](int32_t x, int32_t y) {
    const ValueComparison* const worst_x = worst[static_cast<size_t>(x)];
    const ValueComparison* const worst_y = worst[static_cast<size_t>(y)];
    if ((worst_x == nullptr) != (worst_y == nullptr)) return worst_x == nullptr;
    if (worst_x != nullptr && is_worse(*worst_x, *worst_y)) return false;
    if (worst_x != nullptr && is_worse(*worst_y, *worst_x)) return true;
    const int32_t count_x = items.item(x).node_count, count_y = items.item(y).node_count;
    return count_x != count_y ? count_x < count_y : x > y;
  };
  std::priority_queue<int32_t, std::vector<int32_t>, decltype(is_later)> closed(is_later);
  std::vector<bool> open(items.items().size(), false);
  size_t boxes = 0;
  const auto open_group = [&](int32_t group) {
    open[static_cast<size_t>(group)] = true;
    boxes += items.item(group).children.size();
    for (const int32_t child : items.item(group).children) {
      if (items.item(child).has_children()) closed.push(child);
    }
  };
  open_group(0);
  while (!closed.empty()) {
    const int32_t group = closed.top();
    closed.pop();
    if (boxes + items.item(group).children.size() <= most_boxes) open_group(group);
  }
  return open;
}

void write_wire(const SceneWire& wire, std::string& text) {
  if (wire.points.size() < 2) return;
  text += "<path class=\"e\" d=\"M";
  for (const LayoutPoint& point : wire.points)
    fmt::format_to(std::back_inserter(text), "{:.0f} {:.0f} ", point.x, point.y);
  text += "\"/>\n";
}

void write_box(const SceneBox& box, const GraphItem& item, const ValueComparison* worst, std::string& text) {
  SeverityStyle style{"#F3F3F3", "#000000", "", 1};
  if (worst != nullptr) style = style_of(*worst);
  const bool is_closed_group = item.has_children() && !box.is_open;
  std::string detail = shorten(item.detail, kMaxOverviewLabel);
  if (is_closed_group) detail += fmt::format("{}{} nodes", detail.empty() ? "" : ", ", item.node_count);
  if (!style.badge.empty() && !box.is_open) detail += fmt::format("{}{}", detail.empty() ? "" : ", ", style.badge);
  fmt::format_to(
      std::back_inserter(text),
      "<g><title>{}</title><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"4\" "
      "fill=\"{}\" stroke=\"#333333\" stroke-width=\"{}\"{}/>",
      xml_text(printable(item.title) + (worst == nullptr ? "" : "\n" + printable(worst->path) + ": " + style.badge),
               "\n"),
      box.x, box.y, box.width, box.height, box.is_open ? "#FFFFFF" : style.fill, style.border_width,
      is_closed_group ? " stroke-dasharray=\"6 2\"" : "");
  const float middle = box.x + box.width / 2;
  const std::string& ink = box.is_open ? "#000000" : style.text;
  fmt::format_to(std::back_inserter(text), "<text class=\"o\" x=\"{:.0f}\" y=\"{:.0f}\" fill=\"{}\">{}</text>", middle,
                 box.y + 15, ink, xml_text(shorten(item.title, kMaxOverviewLabel)));
  if (!box.is_open)
    fmt::format_to(std::back_inserter(text), "<text x=\"{:.0f}\" y=\"{:.0f}\" fill=\"{}\">{}</text>", middle,
                   box.y + 30, ink, xml_text(detail));
  text += "</g>\n";
}

constexpr std::string_view kOverviewStyle =
    "<style>text{font:11px Helvetica,Arial,\"DejaVu Sans\",sans-serif;text-anchor:middle}.o{font-weight:bold}"
    ".e{fill:none;stroke:#777}</style>\n";

}  // namespace

std::string overview_to_svg(const Graph& graph, const Comparison* comparison, size_t most_boxes) {
  auto model = std::make_shared<Model>();
  model->graph = graph;
  const auto items = GraphItems::build(model);
  if (!items.ok()) return {};
  const Worst worst = worst_of_items(**items, comparison);
  const Scene scene = SceneMaker(*items).make(open_groups(**items, worst, most_boxes));
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\">\n<!-- parallax -->\n{2}",
      scene.width, scene.height, kOverviewStyle);
  std::string wires;
  for (const SceneWire& wire : scene.wires) write_wire(wire, wires);
  std::string closed;
  for (const SceneBox& box : scene.boxes) {
    if (box.item == 0) continue;
    write_box(box, (*items)->item(box.item), worst[static_cast<size_t>(box.item)], box.is_open ? text : closed);
  }
  return text + wires + closed + "</svg>\n";
}

}  // namespace parallax
