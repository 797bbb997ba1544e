// SPDX-License-Identifier: Apache-2.0
// Measures boxes by their lines of text, lets the layout position them, and writes rectangles, lines and words.
#include "inspector/render/graph_svg.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "inspector/base/shown_text.h"
#include "inspector/exec/value_path.h"
#include "inspector/render/graph_labels.h"
#include "inspector/render/layout/layout.h"
#include "inspector/render/markup.h"
#include "inspector/render/node_verdicts.h"
#include "inspector/render/severity_style.h"

namespace parallax {
namespace {

constexpr size_t kMaxLabel = 40;
constexpr int kMaxBodyDepth = 64;
constexpr float kLetter = 6.3F;  // width of a letter of the font below, on the safe side
constexpr float kLine = 14;
constexpr float kPadding = 8;
constexpr float kBodyGap = 12;

struct Drawing;

// A box: a node, an input, an output.
struct Box {
  std::vector<std::string> lines;
  std::string title;  // shown on hovering; its line breaks are ours
  std::string fill = "#F3F3F3";
  std::string ink = "#000000";
  std::string border = "#333333";
  double border_width = 1;
  bool is_round = false;
  bool is_faulty = false;  // cannot be executed
  struct Body {
    std::string name;
    std::unique_ptr<Drawing> drawing;
  };
  std::vector<Body> bodies;
};

// A graph with its boxes placed.
struct Drawing {
  std::vector<Box> boxes;
  LayoutGraph graph;
  std::vector<std::string> wires;  // by edge: the value's name
  Layout layout;
};

float text_height(const Box& box) { return kLine * static_cast<float>(box.lines.size()); }

LayoutBox size_of(const Box& box) {
  size_t letters = 1;
  for (const std::string& line : box.lines) letters = std::max(letters, line.size());
  float width = kLetter * static_cast<float>(letters) + 2 * kPadding;
  float height = text_height(box) + 2 * kPadding;
  float bodies_width = kBodyGap;
  float bodies_height = 0;
  for (const Box::Body& body : box.bodies) {
    bodies_width += std::max(body.drawing->layout.width, kLetter * static_cast<float>(body.name.size())) + kBodyGap;
    bodies_height = std::max(bodies_height, body.drawing->layout.height);
  }
  if (!box.bodies.empty()) {
    width = std::max(width, bodies_width);
    height += bodies_height + kLine + 2 * kBodyGap;
  }
  return {width, height, LayoutBox::Pin::none};
}

class Drawer {
 public:
  Drawer(const Comparison* comparison, const NodeMarks& marks) : verdicts_(comparison), marks_(marks) {}

  std::unique_ptr<Drawing> draw(const Graph& graph, const std::string& scope, int depth) {
    auto drawing = std::make_unique<Drawing>();
    std::vector<int32_t> box_of_node(graph.nodes.size(), -1);
    for (const NodeId id : graph.order) {
      box_of_node[static_cast<size_t>(id)] = static_cast<int32_t>(drawing->boxes.size());
      drawing->boxes.push_back(box_of(graph, graph.nodes[static_cast<size_t>(id)], scope, depth));
    }
    for (const ValueId input : graph.inputs) add_input(graph, input, box_of_node, *drawing);
    for (const Node& node : graph.nodes) {
      for (size_t output = 0; output < node.outputs.size(); ++output) {
        const ValueId value = node.outputs[output];
        if (value == kNoValue) continue;
        const NodeId producer = graph.values[static_cast<size_t>(value)].producer;
        if (producer == kNoNode) continue;
        connect(graph, value, box_of_node[static_cast<size_t>(producer)], static_cast<int32_t>(output), box_of_node,
                *drawing);
      }
    }
    for (const ValueId output : graph.outputs) add_output(graph, output, box_of_node, *drawing);
    for (const Box& box : drawing->boxes) drawing->graph.boxes.push_back(size_of(box));
    drawing->layout = layered_layout(drawing->graph);
    return drawing;
  }

 private:
  Box box_of(const Graph& graph, const Node& node, const std::string& scope, int depth) {
    Box box;
    box.lines = {qualified_op(node), shorten(node.display_name, kMaxLabel)};
    box.title = printable(node.display_name);
    for (const ValueId input : node.inputs) add_constant(graph, input, box);
    if (const ValueComparison* worst = verdicts_.find(scope, node)) {
      const SeverityStyle style = style_of(*worst);
      box.lines.push_back(style.badge);
      box.title += "\n" + printable(worst->path) + ": " + style.badge;
      box.fill = style.fill;
      box.ink = style.text;
      box.border_width = style.border_width;
    }
    if (const auto mark = marks_.find(scope + escape_name(node.display_name)); mark != marks_.end()) {
      box.lines.push_back(mark->second.note);
      box.fill = mark->second.fill;
      box.border = mark->second.border;
      box.border_width = 2;
    }
    if (!node.problem.empty()) {
      box.title += "\n" + printable(node.problem);
      box.fill = kProblemFill;
      box.is_faulty = true;
    }
    if (depth >= kMaxBodyDepth) return box;
    for (const Attribute& attribute : node.attributes) {
      const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
      if (body == nullptr || *body == nullptr) continue;
      box.bodies.push_back({attribute.name, draw(**body, scope_of_body(scope, node, attribute.name), depth + 1)});
    }
    if (node.function != nullptr) {
      const auto bound = bind_function(*node.function, node);
      box.bodies.push_back({node.function->name, draw(*bound, scope_of_body(scope, node, ""), depth + 1)});
    }
    return box;
  }

  // Initializers stand inside the node that reads them.
  static void add_constant(const Graph& graph, ValueId id, Box& box) {
    if (id == kNoValue) return;
    const ValueDef& value = graph.values[static_cast<size_t>(id)];
    if (value.initializer_index < 0 || value.input_index >= 0) return;
    const StoredTensor& stored = graph.initializers[static_cast<size_t>(value.initializer_index)];
    box.lines.push_back(shorten(value.name, kMaxLabel) + ": " + shorten(constant_text(stored, 6), kMaxLabel));
  }

  static void connect(const Graph& graph, ValueId id, int32_t from, int32_t wire,
                      const std::vector<int32_t>& box_of_node, Drawing& drawing) {
    const ValueDef& value = graph.values[static_cast<size_t>(id)];
    for (const NodeId reader : value.readers) {
      const int32_t to = box_of_node[static_cast<size_t>(reader)];
      if (to < 0 || to == from) continue;
      drawing.graph.edges.push_back({from, to, wire});
      drawing.wires.push_back(value.name);
    }
  }

  static Box end_box(const ValueDef& value, const char* fill) {
    Box box;
    box.lines = {shorten(value.name, kMaxLabel), shorten(to_string(value.type), kMaxLabel)};
    box.title = printable(value.name + ": " + to_string(value.type));
    box.fill = fill;
    box.is_round = true;
    return box;
  }

  static void add_input(const Graph& graph, ValueId id, const std::vector<int32_t>& box_of_node, Drawing& drawing) {
    const ValueDef& value = graph.values[static_cast<size_t>(id)];
    if (value.readers.empty()) return;
    const auto box = static_cast<int32_t>(drawing.boxes.size());
    drawing.boxes.push_back(end_box(value, "#CCDDAA"));
    connect(graph, id, box, 0, box_of_node, drawing);
  }

  static void add_output(const Graph& graph, ValueId id, const std::vector<int32_t>& box_of_node, Drawing& drawing) {
    const ValueDef& value = graph.values[static_cast<size_t>(id)];
    if (value.producer == kNoNode) return;
    const auto box = static_cast<int32_t>(drawing.boxes.size());
    drawing.boxes.push_back(end_box(value, "#BBCCEE"));
    drawing.graph.edges.push_back({box_of_node[static_cast<size_t>(value.producer)], box, value.output_index});
    drawing.wires.push_back(value.name);
  }

  NodeVerdicts verdicts_;
  const NodeMarks& marks_;
};

// ---- Writing -------------------------------------------------------------------------------------------------------

class Writer {
 public:
  void write(const Drawing& drawing, float left, float top) {
    for (size_t edge = 0; edge < drawing.layout.edges.size(); ++edge) write_edge(drawing, edge, left, top);
    for (size_t index = 0; index < drawing.boxes.size(); ++index) {
      const LayoutPoint location = drawing.layout.boxes[index];
      write_box(drawing.boxes[index], drawing.graph.boxes[index], left + location.x, top + location.y);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void write_edge(const Drawing& drawing, size_t edge, float left, float top) {
    const EdgeRoute& route = drawing.layout.edges[edge];
    if (route.kind != EdgeKind::led || route.points.size() < 2) return write_stub(drawing, edge, left, top);
    text_ += "<path class=\"e\" d=\"M";
    for (const LayoutPoint& point : route.points) {
      fmt::format_to(std::back_inserter(text_), "{:.1f} {:.1f} ", left + point.x, top + point.y);
    }
    text_ += "\"/>\n";
  }

  // An edge that is not led: its value's name above the reader.
  void write_stub(const Drawing& drawing, size_t edge, float left, float top) {
    const auto reader = static_cast<size_t>(drawing.graph.edges[edge].to);
    const LayoutPoint location = drawing.layout.boxes[reader];
    const float x = left + location.x + 4;
    const float y = top + location.y;
    fmt::format_to(std::back_inserter(text_),
                   "<path class=\"e s\" d=\"M{0:.1f} {1:.1f} {0:.1f} {2:.1f}\"/><text class=\"s\" x=\"{3:.1f}\" "
                   "y=\"{4:.1f}\">{5}</text>\n",
                   x, y - 8, y, x + 3, y - 3, xml_text(shorten(drawing.wires[edge], 18)));
  }

  void write_box(const Box& box, const LayoutBox& size, float x, float y) {
    fmt::format_to(std::back_inserter(text_),
                   "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{}\" "
                   "fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
                   xml_text(box.title, "\n"), x, y, size.width, size.height, box.is_round ? 12 : 4, box.fill,
                   box.is_faulty ? kProblemBorder : box.border, box.is_faulty ? 2 : box.border_width,
                   box.is_faulty ? " stroke-dasharray=\"5 3\"" : "");
    float baseline = y + kPadding + 11;
    for (size_t line = 0; line < box.lines.size(); ++line, baseline += kLine) {
      fmt::format_to(std::back_inserter(text_), "<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n",
                     line == 0 ? "o" : "n", x + size.width / 2, baseline, box.ink, xml_text(box.lines[line]));
    }
    write_bodies(box, x, y + kPadding + text_height(box) + kBodyGap);
    text_ += "</g>\n";
  }

  void write_bodies(const Box& box, float left, float top) {
    float x = left + kBodyGap;
    for (const Box::Body& body : box.bodies) {
      const Layout& layout = body.drawing->layout;
      fmt::format_to(std::back_inserter(text_),
                     "<rect class=\"b\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"6\"/>"
                     "<text class=\"b\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                     x - 4, top - 4, layout.width + 8, layout.height + kLine + 8, x + 2, top + 9, xml_text(body.name));
      write(*body.drawing, x, top + kLine);
      x += std::max(layout.width, kLetter * static_cast<float>(body.name.size())) + kBodyGap;
    }
  }

  std::string text_;
};

constexpr std::string_view kStyle =
    "<style>text{font:11px Helvetica,Arial,\"DejaVu Sans\",sans-serif;text-anchor:middle}.o{font-weight:bold}"
    "text.s,text.b{font-size:9px;text-anchor:start;fill:#557}.e{fill:none;stroke:#777}.e.s{stroke-dasharray:2 2}"
    "rect.b{fill:#FFFFFF;fill-opacity:.75;stroke:#4477AA;stroke-dasharray:4 3}</style>\n";

}  // namespace

std::string graph_to_svg(const Graph& graph, const Comparison* comparison, const NodeMarks& marks) {
  constexpr float kMargin = 16;
  const auto drawing = Drawer(comparison, marks).draw(graph, "", 0);
  const float width = drawing->layout.width + 2 * kMargin;
  const float height = drawing->layout.height + 2 * kMargin;
  Writer writer;
  writer.write(*drawing, kMargin, kMargin);
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
             "{1:.0f}\">\n<!-- parallax -->\n<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>\n",
             width, height) +
         std::string(kStyle) + writer.take() + "</svg>\n";
}

}  // namespace parallax
