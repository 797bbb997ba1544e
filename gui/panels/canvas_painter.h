// SPDX-License-Identifier: Apache-2.0
// CanvasPainter: draws a scene's boxes and wires as far as they are in sight and large enough to be seen.
#pragma once

#include "gui/panels/ui.h"

namespace parallax::gui {

class CanvasPainter {
 public:
  // `graph` is one of the viewer's.
  CanvasPainter(Ui& ui, GraphView& graph, ImDrawList* list, ImVec2 corner, ImVec2 size);
  void draw_frames();
  void draw_wires();
  void draw_titles() const;  // of frames
  void draw_shapes() const;  // on wires
  void draw_nodes();
  // The wire nearest to a point of the screen, within a few pixels; -1 when there is none.
  int32_t wire_at(ImVec2 screen) const;

 private:
  ImVec2 to_screen(float x, float y) const;
  bool in_sight(ImVec2 least, ImVec2 greatest) const;
  // For the register of widgets: only what can be seen can be clicked.
  void name_it(const SceneBox& box, ImVec2 least, ImVec2 greatest) const;
  void draw_wire(const SceneWire& wire, ImU32 color, float thickness) const;
  void draw_stub(const SceneWire& wire, ImU32 color) const;
  void draw_box(const SceneBox& box);
  void draw_frame(const SceneBox& box, ImVec2 least, ImVec2 greatest) const;
  ImU32 frame_fill(const GraphItem& item) const;
  void draw_title(const GraphItem& item, ImVec2 least, ImVec2 greatest) const;
  void draw_text(const GraphItem& item, const ItemLook& look, ImVec2 least, ImVec2 greatest, ImU32 text,
                 ImU32 dim) const;
  void draw_shares(int32_t item, ImVec2 least, ImVec2 greatest, float inset) const;
  void outline(int32_t item, bool is_bad, ImVec2 least, ImVec2 greatest, float rounding) const;
  void words(float size, float x, float y, ImU32 color, const std::string& text) const;
  int32_t selected_box() const;
  bool is_emphasized(const SceneWire& wire) const;

  Ui& ui_;
  GraphView& graph_;
  bool is_b_;         // of two models
  int32_t selected_;  // item
  const Scene& scene_;
  ImDrawList* list_;
  ImVec2 corner_, size_;
  float zoom_;
};

}  // namespace parallax::gui
