// The embedded faces: DejaVu Sans and DejaVu Sans Mono, taken from Debian's fonts-dejavu-core when this is built, so
// that the program looks the same everywhere and has the symbols it uses. Their licence: assets/README.md.
#include <algorithm>

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

// Latin, Greek, arrows, mathematical operators, blocks and shapes.
constexpr ImWchar kGlyphs[] = {0x20,   0x17F,  0x391,  0x3C9,  0x2010, 0x2026, 0x2190, 0x21FF,
                               0x2200, 0x22FF, 0x25A0, 0x25FF, 0x2713, 0x2717, 0};

ImFont* add(const unsigned char* begin, const unsigned char* end, float pixels) {
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;
  config.OversampleH = 2;
  config.OversampleV = 1;
  config.PixelSnapH = true;
  void* data = const_cast<unsigned char*>(begin);
  return ImGui::GetIO().Fonts->AddFontFromMemoryTTF(data, static_cast<int>(end - begin), pixels, &config, kGlyphs);
}

}  // namespace

Fonts bake_fonts(float scale) {
  Fonts fonts;
  for (float size : {14.0F, 9.0F, 11.0F, 18.0F, 26.0F}) {
    fonts.sans.push_back(add(parallax_font_sans, parallax_font_sans_end, size * scale));
  }
  fonts.base = fonts.sans.front();  // ImGui's default is the first of the atlas
  std::sort(fonts.sans.begin(), fonts.sans.end(),
            [](const ImFont* a, const ImFont* b) { return a->FontSize < b->FontSize; });
  fonts.mono = add(parallax_font_mono, parallax_font_mono_end, 13.0F * scale);
  ImGui::GetIO().Fonts->Build();
  return fonts;
}

}  // namespace parallax::gui
