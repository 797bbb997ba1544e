// SPDX-License-Identifier: Apache-2.0
// The embedded faces: DejaVu Sans and DejaVu Sans Mono, taken from Debian's fonts-dejavu-core when this is built, so
// that the program looks the same everywhere and has the symbols it uses. Their licence: assets/README.md.
#include "gui/panels/ui.h"

// The assembler reads the files; a table of numbers in C++ would take the compiler longer than all the rest.
#define PX_EMBED(name, file)                                                             \
  __asm__(".section .rodata\n.balign 16\n.global " #name "\n" #name ":\n.incbin \"" file \
          "\"\n"                                                                         \
          ".global " #name "_end\n" #name "_end:\n.byte 0\n.previous\n")

PX_EMBED(parallax_font_sans, PARALLAX_FONT_FOLDER "/DejaVuSans.ttf");
PX_EMBED(parallax_font_mono, PARALLAX_FONT_FOLDER "/DejaVuSansMono.ttf");

extern "C" {
extern const unsigned char parallax_font_sans[], parallax_font_sans_end[];
extern const unsigned char parallax_font_mono[], parallax_font_mono_end[];
}

namespace parallax::gui {
namespace {

// Latin, Greek, Cyrillic, arrows, mathematical operators, blocks and shapes; on the canvas, what names are made of.
constexpr ImWchar kAllGlyphs[] = {0x20,   0x17F,  0x386,  0x3CE,  0x400,  0x45F,  0x2010, 0x2026, 0x2190,
                                  0x21FF, 0x2200, 0x22FF, 0x25A0, 0x25FF, 0x2713, 0x2717, 0};
constexpr ImWchar kNameGlyphs[] = {0x20, 0x17F, 0x386, 0x3CE, 0x400, 0x45F, 0};
constexpr ImWchar kTitleGlyphs[] = {0x20, 0x7E, 0};
constexpr float kCanvasSizes[] = {8, 9, 10, 11, 12, 13, 14, 16, 18, 21, 24, 28, 34, 40};

ImFont* add(const unsigned char* begin, const unsigned char* end, float pixels, const ImWchar* glyphs) {
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;
  config.OversampleH = 1;
  config.OversampleV = 1;
  config.PixelSnapH = true;
  void* data = const_cast<unsigned char*>(begin);
  return ImGui::GetIO().Fonts->AddFontFromMemoryTTF(data, static_cast<int>(end - begin), pixels, &config, glyphs);
}

}  // namespace

ImFont* Fonts::at(float pixels) const {
  ImFont* best = nullptr;
  for (ImFont* font : canvas) {
    if (font->FontSize <= pixels + 0.2F) best = font;
  }
  return best;
}

Fonts bake_fonts(float scale) {
  const auto sans = [&](float pixels, const ImWchar* glyphs) {
    return add(parallax_font_sans, parallax_font_sans_end, pixels, glyphs);
  };
  Fonts fonts;
  fonts.base = sans(14 * scale, kAllGlyphs);  // ImGui's default is the first of the atlas
  fonts.small = sans(11 * scale, kAllGlyphs);
  fonts.title = sans(18 * scale, kNameGlyphs);
  fonts.huge = sans(30 * scale, kTitleGlyphs);
  fonts.mono = add(parallax_font_mono, parallax_font_mono_end, 13 * scale, kNameGlyphs);
  for (float size : kCanvasSizes) fonts.canvas.push_back(sans(size, kNameGlyphs));
  ImGui::GetIO().Fonts->Build();
  return fonts;
}

bool size_fonts(Ui& ui) {
  const float scale = ui.screen_scale * ui.viewer->text_size;
  if (scale == ui.scale) return false;
  ui.scale = scale;
  ImGui::GetIO().Fonts->Clear();
  ui.fonts = bake_fonts(scale);
  return true;
}

}  // namespace parallax::gui
