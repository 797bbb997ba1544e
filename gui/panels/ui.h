// Ui: what all windows share besides the Viewer: theme, fonts, textures, the register of named widgets, and the keys
// that have come in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

#include "inspector/workbench/viewer.h"

namespace parallax::gui {

struct Theme {
  ImU32 background, panel, raised, border, text, dim, accent, good, bad, node, frame, canvas, wire;
};
const Theme& theme_of(bool is_dark);

struct Fonts {
  // The same face at rising sizes; the canvas picks the nearest to what zooming asks for.
  std::vector<ImFont*> sans;
  ImFont* mono = nullptr;
  ImFont* base = nullptr;
};
// Bakes the embedded faces into the current context's atlas. `scale` is 1 on ordinary screens.
Fonts bake_fonts(float scale);

// Where a widget was drawn in this frame; scripts and tests click it by name.
struct Widget {
  ImVec2 least, greatest;
  ImVec2 middle() const { return {(least.x + greatest.x) / 2, (least.y + greatest.y) / 2}; }
};

// Makes (or replaces, when `old` is not null) a texture of RGBA pixels. Without one, pictures are left out.
using MakeTexture = std::function<ImTextureID(ImTextureID old, int width, int height, const uint32_t* pixels)>;

struct Ui {
  Viewer* viewer = nullptr;
  Fonts fonts;
  float scale = 1;
  MakeTexture make_texture;
  std::vector<std::string> keys;  // chords since the last frame, oldest first
  std::map<std::string, Widget, std::less<>> widgets;

  // Shares of the window that the splitters set.
  float left = 0.24F, right = 0.25F, bottom = 0.38F;

  // State of single windows.
  std::string path_field, search_field, palette_field;
  int palette_at = 0;
  int32_t hovered_item = -1;
  int32_t hovered_wire = -1;
  ImTextureID heat = nullptr;
  int64_t heat_version = -1;
  HeatImage heat_image;
  SliceHistogram histogram;
  std::vector<int64_t> worst;
  float heat_zoom = 0;         // pixels an element; 0: to be fitted
  bool heat_is_fitted = true;  // nobody has zoomed or dragged
  ImVec2 heat_size{0, 0};      // of the pane it was fitted to
  ImVec2 heat_origin{0, 0};
  LeftTab scrolled_tab = LeftTab::alerts;
  int32_t scrolled_row = -1;  // the table has been scrolled to it

  const Theme& theme() const { return theme_of(viewer->is_dark); }
  void mark(std::string name);  // the widget just drawn
  void mark(std::string name, ImVec2 least, ImVec2 greatest);
};

// Colours of ImGui's own widgets.
void apply_theme(const Theme& theme, float scale);
ImU32 to_imgui(Colour colour);
// The theme's colour with another opacity.
ImU32 faded(ImU32 colour, float opacity);

// A button that names itself in the register; highlighted when `is_on`.
bool small_button(Ui& ui, const char* label, const char* name, bool is_on = false);
void tooltip(const char* text);
// "Ctrl+Up" as people write it: with an arrow.
std::string readable_keys(std::string_view chord);
// Cuts a text to a width, "..." at its end.
std::string cut_text(const ImFont* font, float size, std::string_view text, float width);

}  // namespace parallax::gui
