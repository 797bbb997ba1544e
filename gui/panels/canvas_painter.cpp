// SPDX-License-Identifier: Apache-2.0
// Drawing of each box and wire.
#include "gui/panels/canvas_painter.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "gui/viewmodel/view_export.h"

namespace parallax::gui {
namespace {

constexpr float kStraightBelow = 0.35F;  // zoom below which wires are drawn without curves

}  // namespace

CanvasPainter::CanvasPainter(Ui& ui, GraphView& graph, ImDrawList* list, ImVec2 corner, ImVec2 size)
    : ui_(ui),
      graph_(graph),
      is_b_(&graph == &ui.viewer->graph_b),
      selected_(is_b_ ? ui.viewer->item_b() : ui.viewer->item()),
      scene_(graph.scene()),
      list_(list),
      corner_(corner),
      size_(size),
      zoom_(graph.camera.zoom) {}

ImVec2 CanvasPainter::to_screen(float x, float y) const {
  return {corner_.x + (x - graph_.camera.x) * zoom_, corner_.y + (y - graph_.camera.y) * zoom_};
}

bool CanvasPainter::in_sight(ImVec2 least, ImVec2 greatest) const {
  return least.x <= corner_.x + size_.x && greatest.x >= corner_.x && least.y <= corner_.y + size_.y &&
         greatest.y >= corner_.y;
}

void CanvasPainter::name_it(const SceneBox& box, ImVec2 least, ImVec2 greatest) const {
  const float title = box.is_open ? std::min(greatest.y, least.y + 20 * ui_.scale) : greatest.y;
  ui_.mark((is_b_ ? "item_b:" : "item:") + graph_.items().item(box.item).title, least, {greatest.x, title});
}

// At the size of a font that was made: letters stand on whole pixels and stay sharp.
void CanvasPainter::words(float size, float x, float y, ImU32 color, const std::string& text) const {
  const ImFont* font = ui_.fonts.at(size);
  if (font == nullptr || text.empty()) return;
  const float drop = (size - font->FontSize) / 2;
  list_->AddText(font, font->FontSize, {std::floor(x), std::floor(y + drop)}, color, text.c_str());
}

// A folded Constant is shown by its reader.
int32_t CanvasPainter::selected_box() const {
  const int32_t item = selected_;
  return item >= 0 && graph_.items().item(item).is_folded ? graph_.items().item(item).parent : item;
}

bool CanvasPainter::is_emphasized(const SceneWire& wire) const {
  const int32_t selected = selected_box(), hovered = ui_.hovered_item;
  return wire.from == selected || wire.to == selected || (hovered >= 0 && wire.from == hovered);
}

void CanvasPainter::draw_wires() {
  const Theme& theme = ui_.theme();
  const SceneWire* hovered = ui_.hovered_wire >= 0 ? &scene_.wires[static_cast<size_t>(ui_.hovered_wire)] : nullptr;
  for (int pass = 0; pass < 2; ++pass) {
    for (const SceneWire& wire : scene_.wires) {
      const bool same_value = hovered != nullptr && wire.source == hovered->source && wire.value == hovered->value;
      const bool strong = is_emphasized(wire) || same_value;
      if (strong != (pass == 1)) continue;
      const ImU32 color = strong ? theme.accent : faded(theme.wire, 0.75F);
      if (wire.kind == EdgeKind::led) {
        draw_wire(wire, color, strong ? 2.0F * ui_.scale : 1.0F * ui_.scale);
      } else if (zoom_ > kStraightBelow * ui_.scale) {
        draw_stub(wire, color);
      }
    }
  }
}

void CanvasPainter::draw_wire(const SceneWire& wire, ImU32 color, float thickness) const {
  const auto& points = wire.points;
  const ImVec2 begin = to_screen(points.front().x, points.front().y), end = to_screen(points.back().x, points.back().y);
  if (end.y < corner_.y || begin.y > corner_.y + size_.y) return;
  for (size_t i = 1; i < points.size(); ++i) {
    const ImVec2 a = to_screen(points[i - 1].x, points[i - 1].y), b = to_screen(points[i].x, points[i].y);
    if (b.y < corner_.y || a.y > corner_.y + size_.y) continue;
    const bool is_upright = std::abs(a.x - b.x) < 1;
    if (is_upright || zoom_ < kStraightBelow * ui_.scale) {
      list_->AddLine(a, b, color, thickness);
    } else {
      const float bend = (b.y - a.y) * 0.5F;
      list_->AddBezierCubic(a, {a.x, a.y + bend}, {b.x, b.y - bend}, b, color, thickness, zoom_ > 1 ? 0 : 12);
    }
  }
  const float arrow = 4.5F * std::min(zoom_, 1.3F * ui_.scale);
  if (zoom_ > kStraightBelow * ui_.scale)
    list_->AddTriangleFilled(end, {end.x - arrow * 0.6F, end.y - arrow * 1.4F},
                             {end.x + arrow * 0.6F, end.y - arrow * 1.4F}, color);
}

// A value that many read is not led across the picture: a short tail with a dot at each reader.
void CanvasPainter::draw_stub(const SceneWire& wire, ImU32 color) const {
  const int32_t index = scene_.box_of_item[static_cast<size_t>(wire.to)];
  if (index < 0) return;
  const SceneBox& box = scene_.boxes[static_cast<size_t>(index)];
  // Stubs of one box stand side by side from its right upper corner, by the value they bring.
  const float location = box.width - 10 - 9 * static_cast<float>((wire.source + wire.value) % 4);
  const ImVec2 foot = to_screen(box.x + location, box.y), head = to_screen(box.x + location, box.y - 9);
  if (!in_sight({head.x - 60, head.y}, {foot.x + 60, foot.y})) return;
  list_->AddLine(head, foot, color, ui_.scale);
  list_->AddCircleFilled(head, 2.6F * std::min(zoom_, 1.2F * ui_.scale), color, 10);
}

void CanvasPainter::draw_frames() {
  for (const SceneBox& box : scene_.boxes) {
    if (!box.is_open) continue;
    const ImVec2 least = to_screen(box.x, box.y), greatest = to_screen(box.x + box.width, box.y + box.height);
    if (!in_sight(least, greatest)) continue;
    draw_frame(box, least, greatest);
    name_it(box, least, greatest);
  }
}

void CanvasPainter::draw_nodes() {
  for (const SceneBox& box : scene_.boxes) {
    if (box.is_open) continue;
    const ImVec2 least = to_screen(box.x, box.y), greatest = to_screen(box.x + box.width, box.y + box.height);
    if (!in_sight(least, greatest)) continue;
    draw_box(box);
    name_it(box, least, greatest);
  }
}

void CanvasPainter::outline(int32_t item, bool is_bad, ImVec2 least, ImVec2 greatest, float rounding) const {
  const Theme& theme = ui_.theme();
  const bool is_selected = item == selected_box();
  if (ui_.viewer->is_hit(item, is_b_)) {
    const float away = 3 * ui_.scale;
    list_->AddRect({least.x - away, least.y - away}, {greatest.x + away, greatest.y + away},
                   IM_COL32(0x33, 0xBB, 0xEE, 255), rounding + away, 0, 2 * ui_.scale);
  }
  const ImU32 color = is_selected ? theme.accent : is_bad ? theme.bad : theme.border;
  const float width = is_selected ? 3.0F : is_bad ? 2.0F : 1.0F;
  list_->AddRect(least, greatest, color, rounding, 0, width * ui_.scale);
}

void CanvasPainter::draw_frame(const SceneBox& box, ImVec2 least, ImVec2 greatest) const {
  const float rounding = 8 * zoom_;
  list_->AddRectFilled(least, greatest, frame_fill(graph_.items().item(box.item)), rounding);
  outline(box.item, false, least, greatest, rounding);
}

ImU32 CanvasPainter::frame_fill(const GraphItem& item) const {
  const Theme& theme = ui_.theme();
  return item.depth % 2 == 0 ? theme.frame : faded(theme.raised, 0.45F);
}

// Over the wires, which are drawn below the text.
void CanvasPainter::draw_titles() const {
  for (const SceneBox& box : scene_.boxes) {
    if (!box.is_open) continue;
    const ImVec2 least = to_screen(box.x, box.y), greatest = to_screen(box.x + box.width, box.y + box.height);
    if (in_sight(least, greatest)) draw_title(graph_.items().item(box.item), least, greatest);
  }
}

// Next to the beginning of each wire, in the gap below the box that makes the value.
void CanvasPainter::draw_shapes() const {
  const float size = 10 * zoom_;
  const ImFont* font = ui_.fonts.at(size);
  if (font == nullptr) return;
  for (size_t wire = 0; wire < scene_.wires.size(); ++wire) {
    if (scene_.wires[wire].kind != EdgeKind::led) continue;
    const LayoutPoint begin = scene_.wires[wire].points.front();
    const ImVec2 least = to_screen(begin.x + 4, begin.y + 2);
    if (!in_sight(least, {least.x + 240 * zoom_, least.y + size})) continue;
    const std::string text = graph_.shape_on(wire);
    const float wide = font->CalcTextSizeA(font->FontSize, FLT_MAX, 0, text.c_str()).x;
    if (text.empty()) continue;
    list_->AddRectFilled({least.x - zoom_, least.y}, {least.x + wide + zoom_, least.y + size}, ui_.theme().canvas,
                         2 * zoom_);
    words(size, least.x, least.y, ui_.theme().dim, text);
  }
}

void CanvasPainter::draw_title(const GraphItem& item, ImVec2 least, ImVec2 greatest) const {
  const float size = 12 * zoom_;
  const ImFont* font = ui_.fonts.at(size);
  if (font == nullptr) return;
  const std::string title = item.title + (item.detail.empty() ? "" : "  " + item.detail);
  // The title stays in sight while any of the frame is.
  const float x = std::max(least.x, corner_.x) + 8 * zoom_;
  const std::string text = cut_text(font, font->FontSize, title, greatest.x - x - 8 * zoom_);
  if (text == "...") return;
  const float wide = font->CalcTextSizeA(font->FontSize, FLT_MAX, 0, text.c_str()).x;
  list_->AddRectFilled({x - 2 * zoom_, least.y + 5 * zoom_}, {x + wide + 2 * zoom_, least.y + 19 * zoom_},
                       faded(ui_.theme().frame, 0.85F), 3 * zoom_);
  words(size, x, least.y + 5 * zoom_, ui_.theme().dim, text);
}

void CanvasPainter::draw_box(const SceneBox& box) {
  const Theme& theme = ui_.theme();
  const GraphItem& item = graph_.items().item(box.item);
  const ItemLook look = graph_.look(box.item);
  const ImVec2 least = to_screen(box.x, box.y), greatest = to_screen(box.x + box.width, box.y + box.height);
  const bool is_pill = item.kind == GraphItem::Kind::input || item.kind == GraphItem::Kind::output;
  const float rounding = (is_pill ? box.height / 2 : 5.0F) * zoom_;
  if (greatest.y - least.y < 3) {
    list_->AddRectFilled(least, greatest, look.is_neutral ? theme.dim : to_imgui(look.fill));
    return;
  }
  if (item.has_children()) {  // a closed block: a second sheet below the first
    const float shift = 4 * zoom_;
    list_->AddRectFilled({least.x + shift, least.y + shift}, {greatest.x + shift, greatest.y + shift}, theme.raised,
                         rounding);
    list_->AddRect({least.x + shift, least.y + shift}, {greatest.x + shift, greatest.y + shift}, theme.border,
                   rounding);
  }
  const bool neutral = look.is_neutral;
  list_->AddRectFilled(least, greatest, neutral ? theme.node : to_imgui(look.fill), rounding);
  if (look.is_hatched) {
    list_->PushClipRect(least, greatest, true);
    for (float x = least.x - (greatest.y - least.y); x < greatest.x; x += 7 * ui_.scale) {
      list_->AddLine({x, greatest.y}, {x + (greatest.y - least.y), least.y}, faded(theme.dim, 0.35F));
    }
    list_->PopClipRect();
  }
  if (item.has_children()) draw_shares(box.item, least, greatest, rounding);
  outline(box.item, look.is_bad, least, greatest, rounding);
  const ImU32 text = neutral ? theme.text : to_imgui(readable_on(look.fill));
  draw_text(item, look, least, greatest, text, neutral ? theme.dim : text);
}

void CanvasPainter::draw_text(const GraphItem& item, const ItemLook& look, ImVec2 least, ImVec2 greatest, ImU32 text,
                              ImU32 dim) const {
  const float size = 13 * zoom_, small = 11 * zoom_;
  const ImFont *font = ui_.fonts.at(size), *small_font = ui_.fonts.at(small);
  if (font == nullptr) return;
  const float pad = 7 * zoom_, width = greatest.x - least.x - 2 * pad;
  const auto width_of = [](const ImFont* face, const std::string& words) {
    return face->CalcTextSizeA(face->FontSize, FLT_MAX, 0, words.c_str()).x;
  };
  const bool is_pill = item.kind == GraphItem::Kind::input || item.kind == GraphItem::Kind::output;
  if (is_pill || small_font == nullptr) {  // one line
    const ImFont* face = small_font == nullptr ? font : small_font;
    const std::string line = cut_text(face, face->FontSize, is_pill ? item.title : lines_of(item).first, width);
    const float x = is_pill ? (least.x + greatest.x - width_of(face, line)) / 2 : least.x + pad;
    return words(face->FontSize, x, (least.y + greatest.y - face->FontSize) / 2, text, line);
  }
  const auto [first, second] = lines_of(item);
  // The operator has what it needs up to three fifths, the badge the rest.
  const float gap = look.badge.empty() ? 0 : 6 * zoom_;
  const float badge_needs = look.badge.empty() ? 0 : width_of(small_font, look.badge) + gap;
  const std::string line = cut_text(font, font->FontSize, first, std::max(width - badge_needs, width * 0.6F));
  words(size, least.x + pad, least.y + 4 * zoom_, text, line);
  const float room = width - width_of(font, line) - gap;
  const std::string badge = cut_text(small_font, small_font->FontSize, look.badge, room);
  if (badge != "...") words(small, greatest.x - pad - width_of(small_font, badge), least.y + 5.5F * zoom_, text, badge);
  words(small, least.x + pad, least.y + 21 * zoom_, dim, cut_text(small_font, small_font->FontSize, second, width));
  if (!item.constants_text.empty())
    words(small, least.x + pad, least.y + 35 * zoom_, text,
          cut_text(small_font, small_font->FontSize, item.constants_text, width));
}

// Along the foot of a closed block: how many of its values diverged, are mistrusted, passed, were not compared.
void CanvasPainter::draw_shares(int32_t item, ImVec2 least, ImVec2 greatest, float inset) const {
  const ItemSummary& all = graph_.summary(item);
  const int32_t counts[] = {all.diverged, all.mistrusted, all.passed, all.not_compared};
  const ImU32 colors[] = {ui_.theme().bad, IM_COL32(0xBB, 0xCC, 0xEE, 255), ui_.theme().good,
                          faded(ui_.theme().dim, 0.5F)};
  const auto total = static_cast<float>(counts[0] + counts[1] + counts[2] + counts[3]);
  const float width = greatest.x - least.x - 2 * inset, height = 3 * std::min(zoom_, 1.5F);
  if (total == 0 || width < 8 || zoom_ < kStraightBelow) return;
  float x = least.x + inset;
  for (size_t i = 0; i < std::size(counts); ++i) {
    const float end = x + width * static_cast<float>(counts[i]) / total;
    if (counts[i] > 0)
      list_->AddRectFilled({x, greatest.y - height - 1}, {std::max(end, x + 1), greatest.y - 1}, colors[i]);
    x = end;
  }
}

int32_t CanvasPainter::wire_at(ImVec2 screen) const {
  const float reach = 5 * ui_.scale;
  int32_t best = -1;
  float nearest = reach;
  for (size_t w = 0; w < scene_.wires.size(); ++w) {
    const auto& points = scene_.wires[w].points;
    for (size_t i = 1; i < points.size(); ++i) {
      const ImVec2 a = to_screen(points[i - 1].x, points[i - 1].y), b = to_screen(points[i].x, points[i].y);
      if (screen.y < a.y - reach || screen.y > b.y + reach) continue;
      const float t = b.y > a.y ? std::clamp((screen.y - a.y) / (b.y - a.y), 0.0F, 1.0F) : 0;
      const float away =
          std::abs(screen.x - (a.x + (b.x - a.x) * (t * t * (3 - 2 * t))));  // as the curve runs, closely
      if (away >= nearest) continue;
      nearest = away;
      best = static_cast<int32_t>(w);
    }
  }
  return best;
}

}  // namespace parallax::gui
