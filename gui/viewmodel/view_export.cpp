// SPDX-License-Identifier: Apache-2.0
// Both formats from the scene that the canvas draws.
#include "gui/viewmodel/view_export.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "gui/viewmodel/two_models/view_two_models.h"
#include "inspector/base/shown_text.h"
#include "inspector/render/markup.h"

namespace parallax {
namespace {

// Paper is light.
constexpr std::string_view kInk = "#1B1F24", kDim = "#5B636E", kBorder = "#C3C9D1", kBad = "#B5400B", kNode = "#E3E8EE",
                           kFrame = "#F4F6F8", kWire = "#8A94A0";
constexpr float kLegendLine = 18;
constexpr float kLegendWidth = 170;
constexpr float kLetterWidth = 0.6F;           // of DejaVu Sans on average, as a share of its size
constexpr float kTitleHeight = 64, kGap = 40;  // of two models: both names, and a letter above each graph

// True where the item is drawn as one box: groups that are open are frames around theirs.
bool is_leaf(const Scene& scene, int32_t item) {
  const int32_t box = scene.box_of_item[static_cast<size_t>(item)];
  return box >= 0 && !scene.boxes[static_cast<size_t>(box)].is_open;
}

// One of two models: the letter of its side, and each item's counterpart in the other.
struct Side {
  char letter = 'n';
  const std::vector<int32_t>* counterparts = nullptr;
  char other = 'n';
  const Scene* other_scene = nullptr;

  // -1 where it is not drawn.
  int32_t counterpart(int32_t item) const {
    const int32_t found = counterparts == nullptr ? -1 : (*counterparts)[static_cast<size_t>(item)];
    return found >= 0 && is_leaf(*other_scene, found) ? found : -1;
  }
};
Side side_a(const TwoModels& models, const Scene& b) { return {'a', &models.b_of_a, 'b', &b}; }
Side side_b(const TwoModels& models, const Scene& a) { return {'b', &models.a_of_b, 'a', &a}; }

std::string hex(Color color) { return fmt::format("#{:02X}{:02X}{:02X}", color.r, color.g, color.b); }

bool is_pill(const GraphItem& item) {
  return item.kind == GraphItem::Kind::input || item.kind == GraphItem::Kind::output;
}

std::string value_name(const GraphView& graph, const SceneWire& wire) {
  const GraphItem& source = graph.items().item(wire.source);
  return source.graph->values[static_cast<size_t>(wire.value)].name;
}

// ---- SVG ----

class SvgWriter {
 public:
  explicit SvgWriter(GraphView& graph, Side side = {})
      : graph_(graph), scene_(graph.scene()), legend_(graph.legend()), side_(side) {}

  std::string write() {
    begin(scene_.width, scene_.height);
    draw_scene();
    legend(scene_.height + 8);
    return text_ + "</svg>\n";
  }

  std::string write_next_to(GraphView& b, const TwoModels& models) {
    const float left_of_b = scene_.width + kGap, height = std::max(scene_.height, b.scene().height) + kTitleHeight;
    const std::string title_a = "A  " + models.name_a, title_b = "B  " + models.name_b;
    const auto title_width = 24 + 13 * kLetterWidth * static_cast<float>(std::max(title_a.size(), title_b.size()));
    begin(std::max(left_of_b + b.scene().width, title_width), height);
    SvgWriter other(b, side_b(models, scene_));
    other.draw_scene();
    words(12, 18, 13, kInk, title_a);
    words(12, 36, 13, kInk, title_b);
    words(scene_.width / 2, 58, 13, kDim, "A", "middle");
    words(left_of_b + b.scene().width / 2, 58, 13, kDim, "B", "middle");
    text_ += fmt::format("<g transform=\"translate(0 {})\">\n", kTitleHeight);
    draw_scene();
    text_ +=
        fmt::format("</g>\n<g transform=\"translate({:.1f} {})\">\n{}</g>\n", left_of_b, kTitleHeight, other.text_);
    legend(height + 8);
    return text_ + "</svg>\n";
  }

 private:
  void begin(float scene_width, float scene_height) {
    const float legend_height = legend_.empty() ? 0 : kLegendLine * static_cast<float>(legend_.size()) + 16;
    const float width = std::ceil(std::max(scene_width, legend_.empty() ? 0 : kLegendWidth + 24));
    const float height = std::ceil(scene_height + legend_height);
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n<!-- parallax -->\n<rect width=\"100%\" "
        "height=\"100%\" "
        "fill=\"#FFFFFF\"/>\n",
        width, height);
  }

  void draw_scene() {
    for (const SceneBox& box : scene_.boxes) {
      if (box.is_open) frame(box);
    }
    for (const SceneWire& wire : scene_.wires) draw(wire);
    for (size_t wire = 0; graph_.shows_shapes && wire < scene_.wires.size(); ++wire) {
      const std::string shape = graph_.shape_on(wire);
      if (shape.empty()) continue;
      const LayoutPoint begin = scene_.wires[wire].points.front();
      words(begin.x + 4, begin.y + 11, 9, kDim, shape);
    }
    for (const SceneBox& box : scene_.boxes) {
      if (!box.is_open) leaf(box);
    }
  }

  void words(float x, float y, float size, std::string_view color, const std::string& what,
             std::string_view anchor = "start") {
    text_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.0f}\" fill=\"{}\" text-anchor=\"{}\">{}</text>\n",
                    x, y, size, color, anchor, xml_text(what));
  }

  void frame(const SceneBox& box) {
    const GraphItem& item = graph_.items().item(box.item);
    text_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"8\" fill=\"{}\" stroke=\"{}\"/>\n",
        box.x, box.y, box.width, box.height, item.depth % 2 == 0 ? kFrame : "#FFFFFF", kBorder);
    words(box.x + 8, box.y + 16, 12, kDim, item.title + (item.detail.empty() ? "" : "  " + item.detail));
  }

  void draw(const SceneWire& wire) {
    if (wire.kind != EdgeKind::led || wire.points.empty()) return stub(wire);
    std::string way = fmt::format("M{:.1f} {:.1f}", wire.points[0].x, wire.points[0].y);
    for (size_t i = 1; i < wire.points.size(); ++i) {
      const LayoutPoint a = wire.points[i - 1], b = wire.points[i];
      const float middle = (a.y + b.y) / 2;
      way += std::abs(a.x - b.x) < 1
                 ? fmt::format("L{:.1f} {:.1f}", b.x, b.y)
                 : fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", a.x, middle, b.x, middle, b.x, b.y);
    }
    const LayoutPoint end = wire.points.back();
    text_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\"><title>{}</title></path>\n", way, kWire,
                         xml_text(value_name(graph_, wire)));
    text_ += fmt::format("<path d=\"M{0:.1f} {1:.1f}l-3 -6h6z\" fill=\"{2}\"/>\n", end.x, end.y, kWire);
  }

  // A short tail at the reader, named after the value that comes from afar.
  void stub(const SceneWire& wire) {
    const int32_t index = scene_.box_of_item[static_cast<size_t>(wire.to)];
    if (index < 0) return;
    const SceneBox& box = scene_.boxes[static_cast<size_t>(index)];
    const float x = box.x + box.width - 10 - 9 * static_cast<float>((wire.source + wire.value) % 4);
    text_ += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}v9\" stroke=\"{2}\"/><circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"2.6\" "
        "fill=\"{2}\"><title>{3}</title></circle>\n",
        x, box.y - 9, kWire, xml_text(value_name(graph_, wire)));
  }

  void leaf(const SceneBox& box) {
    if (side_.counterparts == nullptr) return draw_leaf(box);
    const int32_t other = side_.counterpart(box.item);
    text_ += other < 0 ? fmt::format("<g id=\"{}{}\">\n", side_.letter, box.item)
                       : fmt::format("<a id=\"{}{}\" href=\"#{}{}\">\n", side_.letter, box.item, side_.other, other);
    draw_leaf(box);
    text_ += other < 0 ? "</g>\n" : "</a>\n";
  }

  void draw_leaf(const SceneBox& box) {
    const GraphItem& item = graph_.items().item(box.item);
    const ItemLook look = graph_.look(box.item);
    const std::string ink = look.is_neutral ? std::string(kInk) : hex(readable_on(look.fill));
    const float rounding = is_pill(item) ? box.height / 2 : 5;
    text_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{:.1f}\" fill=\"{}\" stroke=\"{}\" "
        "stroke-width=\"{}\"{}/>\n",
        box.x, box.y, box.width, box.height, rounding, look.is_neutral ? std::string(kNode) : hex(look.fill),
        look.is_bad ? kBad : kBorder, look.is_bad ? 2 : 1, look.is_hatched ? " stroke-dasharray=\"4 3\"" : "");
    if (is_pill(item)) {
      return words(box.x + box.width / 2, box.y + box.height / 2 + 4, 11, ink, fitting(item.title, box.width - 14, 11),
                   "middle");
    }
    const auto [first, second] = lines_of(item);
    // A short name leaves more room for the badge; one that cannot be read is left out.
    const float room = box.width - 18, left = room - 13 * kLetterWidth * static_cast<float>(first.size());
    const std::string fitted = fitting(look.badge, std::max(room * 0.5F, left), 9),
                      shown_badge = 9 * kLetterWidth * static_cast<float>(fitted.size()) > room * 0.75F ? "" : fitted;
    const float badge = 9 * kLetterWidth * static_cast<float>(shown_badge.size());
    words(box.x + 7, box.y + 16, 13, ink, fitting(first, box.width - 18 - badge, 13));
    words(box.x + 7, box.y + 31, 11, look.is_neutral ? std::string(kDim) : ink, fitting(second, box.width - 14, 11));
    if (!item.constants_text.empty())
      words(box.x + 7, box.y + 45, 11, ink, fitting(item.constants_text, box.width - 14, 11));
    if (!shown_badge.empty()) words(box.x + box.width - 7, box.y + 16, 9, ink, shown_badge, "end");
  }

  static std::string fitting(const std::string& text, float width, float size) {
    const float letters = std::max(4.0F, width / (size * kLetterWidth));
    return shorten(text, static_cast<size_t>(letters));
  }

  void legend(float y) {
    for (const LegendEntry& entry : legend_) {
      text_ +=
          fmt::format("<rect x=\"12\" y=\"{:.1f}\" width=\"12\" height=\"12\" rx=\"3\" fill=\"{}\" stroke=\"{}\"/>\n",
                      y, entry.is_neutral ? std::string(kNode) : hex(entry.fill), kBorder);
      words(32, y + 10, 12, kInk, entry.text);
      y += kLegendLine;
    }
  }

  GraphView& graph_;
  const Scene& scene_;
  std::vector<LegendEntry> legend_;
  Side side_;
  std::string text_;
};

// ---- dot ----

class DotWriter {
 public:
  explicit DotWriter(GraphView& graph, Side side = {}) : graph_(graph), scene_(graph.scene()), side_(side) {}

  std::string write() { return kBegin + draw_scene() + "}\n"; }

  std::string write_next_to(GraphView& b, const TwoModels& models) {
    DotWriter other(b, side_b(models, scene_));
    std::string text = kBegin + in_cluster("A  " + models.name_a) + other.in_cluster("B  " + models.name_b);
    for (size_t i = 1; i < models.b_of_a.size(); ++i) {
      const auto item = static_cast<int32_t>(i);
      const int32_t in_b = side_.counterpart(item);
      if (in_b < 0 || !is_leaf(scene_, item)) continue;
      if (!graph_.look(item).is_bad && !b.look(in_b).is_bad) continue;
      text += fmt::format("  a{} -> b{} [style=dotted, dir=none, constraint=false, color=\"{}\"];\n", item, in_b, kBad);
    }
    return text + "}\n";
  }

 private:
  static constexpr const char* kBegin =
      "digraph parallax {\n  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\"];\n";

  std::string in_cluster(const std::string& title) {
    const std::string scene = draw_scene();
    return fmt::format("  subgraph cluster_{} {{\n  label=\"{}\";\n{}  }}\n", side_.letter, dot_text(title), scene);
  }

  std::string draw_scene() {
    group(0);
    for (const SceneWire& wire : scene_.wires) {
      if (!is_leaf(scene_, wire.from) || !is_leaf(scene_, wire.to)) continue;  // clusters cannot be ends of edges
      text_ += fmt::format("  {0}{1} -> {0}{2} [tooltip=\"{3}\"{4}];\n", side_.letter, wire.from, wire.to,
                           dot_text(value_name(graph_, wire)),
                           wire.kind == EdgeKind::led ? "" : ", style=dashed, constraint=false");
    }
    return std::move(text_);
  }

  void group(int32_t index) {
    for (int32_t child : graph_.items().item(index).children) {
      const int32_t box = scene_.box_of_item[static_cast<size_t>(child)];
      if (box < 0) continue;
      const GraphItem& item = graph_.items().item(child);
      if (scene_.boxes[static_cast<size_t>(box)].is_open) {
        text_ += fmt::format("  subgraph cluster_{}{} {{\n  label=\"{}\";\n", side_.letter, child,
                             dot_text(item.title + (item.detail.empty() ? "" : "  " + item.detail)));
        group(child);
        text_ += "  }\n";
      } else {
        leaf(child);
      }
    }
  }

  void leaf(int32_t index) {
    const GraphItem& item = graph_.items().item(index);
    const ItemLook look = graph_.look(index);
    auto [first, second] = lines_of(item);
    if (!look.badge.empty()) first += "  " + look.badge;
    if (!item.constants_text.empty()) second += "\n" + item.constants_text;
    text_ +=
        fmt::format("  {}{} [label=\"{}{}{}\", fillcolor=\"{}\", fontcolor=\"{}\", color=\"{}\", penwidth={}{}];\n",
                    side_.letter, index, dot_text(first), second.empty() ? "" : "\\n", dot_text(second),
                    look.is_neutral ? std::string(kNode) : hex(look.fill),
                    look.is_neutral ? std::string(kInk) : hex(readable_on(look.fill)), look.is_bad ? kBad : kBorder,
                    look.is_bad ? 2 : 1, look.is_hatched ? ", style=\"rounded,filled,dashed\"" : "");
  }

  GraphView& graph_;
  const Scene& scene_;
  Side side_;
  std::string text_;
};

}  // namespace

std::pair<std::string, std::string> lines_of(const GraphItem& item) {
  if (item.kind == GraphItem::Kind::node) return {item.detail, item.module.empty() ? item.title : item.module};
  if (item.kind != GraphItem::Kind::group) return {item.title, ""};
  return {item.title, (item.detail.empty() ? "" : item.detail + ", ") +
                          fmt::format("{} node{}", item.node_count, item.node_count == 1 ? "" : "s")};
}

namespace {

template <class Writer>
std::string on_paper(GraphView& graph) {
  const bool was_dark = std::exchange(graph.is_dark, false);
  std::string text = Writer(graph).write();
  graph.is_dark = was_dark;
  return text;
}

template <class Writer>
std::string both_on_paper(GraphView& a, GraphView& b, const TwoModels& models) {
  const bool was_dark = std::exchange(a.is_dark, false), was_dark_b = std::exchange(b.is_dark, false);
  std::string text = Writer(a, side_a(models, b.scene())).write_next_to(b, models);
  a.is_dark = was_dark;
  b.is_dark = was_dark_b;
  return text;
}

}  // namespace

std::string scene_to_svg(GraphView& graph) { return on_paper<SvgWriter>(graph); }
std::string scene_to_dot(GraphView& graph) { return on_paper<DotWriter>(graph); }
std::string scenes_to_svg(GraphView& a, GraphView& b, const TwoModels& models) {
  return both_on_paper<SvgWriter>(a, b, models);
}
std::string scenes_to_dot(GraphView& a, GraphView& b, const TwoModels& models) {
  return both_on_paper<DotWriter>(a, b, models);
}

}  // namespace parallax
