// SPDX-License-Identifier: Apache-2.0
// The embedded faces: DejaVu Sans and DejaVu Sans Mono, taken from Debian's fonts-dejavu-core when this is built, so
// that the program looks the same everywhere and has the symbols it uses. Their licence: assets/README.md.
#include <algorithm>
#include <utility>

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

constexpr int kMostFiles = 8;  // fonts of the system that are asked for letters

ImFontConfig plain_config() {
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;
  config.OversampleH = 1;
  config.OversampleV = 1;
  config.PixelSnapH = true;
  return config;
}

// The letters as ranges of one each.
void set_ranges(ExtraLetters& extra) {
  extra.ranges.clear();
  for (const ImWchar letter : extra.letters) extra.ranges.insert(extra.ranges.end(), {letter, letter});
  extra.ranges.push_back(0);
}

class Baker {
 public:
  explicit Baker(const ExtraLetters* extra) : extra_(extra) {}

  ImFont* add(const unsigned char* begin, const unsigned char* end, float pixels, const ImWchar* glyphs) const {
    ImFontConfig config = plain_config();
    ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
    void* data = const_cast<unsigned char*>(begin);
    const auto count = static_cast<int>(end - begin);
    ImFont* font = atlas.AddFontFromMemoryTTF(data, count, pixels, &config, glyphs);
    if (extra_ == nullptr || extra_->letters.empty()) return font;
    config.MergeMode = true;
    atlas.AddFontFromMemoryTTF(data, count, pixels, &config, extra_->ranges.data());
    for (const FontFile& file : extra_->files) {
      config.FontNo = file.face;
      atlas.AddFontFromMemoryTTF(const_cast<char*>(file.bytes->data()), static_cast<int>(file.bytes->size()), pixels,
                                 &config, extra_->ranges.data());
    }
    return font;
  }

 private:
  const ExtraLetters* extra_;
};

// False where a font of the system cannot be read.
bool bake(float scale, const ExtraLetters* extra, Fonts& fonts) {
  const Baker baker(extra);
  const auto sans = [&](float pixels, const ImWchar* glyphs) {
    return baker.add(parallax_font_sans, parallax_font_sans_end, pixels, glyphs);
  };
  fonts = {};
  fonts.base = sans(14 * scale, kAllGlyphs);  // ImGui's default is the first of the atlas
  fonts.small = sans(11 * scale, kAllGlyphs);
  fonts.title = sans(18 * scale, kNameGlyphs);
  fonts.huge = sans(30 * scale, kTitleGlyphs);
  fonts.mono = baker.add(parallax_font_mono, parallax_font_mono_end, 13 * scale, kNameGlyphs);
  for (float size : kCanvasSizes) fonts.canvas.push_back(sans(size, kNameGlyphs));
  return ImGui::GetIO().Fonts->Build();
}

bool has_letter(const unsigned char* begin, const unsigned char* end, int face, ImWchar letter) {
  ImFontAtlas atlas;
  ImFontConfig config = plain_config();
  config.FontNo = face;
  const ImWchar range[] = {letter, letter, 0};
  ImFont* font =
      atlas.AddFontFromMemoryTTF(const_cast<unsigned char*>(begin), static_cast<int>(end - begin), 8, &config, range);
  return atlas.Build() && font->FindGlyphNoFallback(letter) != nullptr;
}

bool has_letter(const FontFile& file, ImWchar letter) {
  const auto* begin = reinterpret_cast<const unsigned char*>(file.bytes->data());
  return has_letter(begin, begin + file.bytes->size(), file.face, letter);
}

// Files for the letters that neither the embedded face nor a file so far has.
void find_files(ExtraLetters& extra, const std::set<ImWchar>& letters) {
  for (const ImWchar letter : letters) {
    if (!extra.find || extra.files.size() >= kMostFiles) return;
    if (has_letter(parallax_font_sans, parallax_font_sans_end, 0, letter)) continue;
    const auto has_it = [&](const FontFile& file) { return has_letter(file, letter); };
    if (std::ranges::any_of(extra.files, has_it)) continue;
    if (std::optional<FontFile> file = extra.find(letter); file.has_value() && has_it(*file))
      extra.files.push_back(*std::move(file));
  }
}

}  // namespace

ImFont* Fonts::at(float pixels) const {
  ImFont* best = nullptr;
  for (ImFont* font : canvas) {
    if (font->FontSize <= pixels + 0.2F) best = font;
  }
  return best;
}

Fonts bake_fonts(float scale, ExtraLetters* extra) {
  Fonts fonts;
  if (extra != nullptr) set_ranges(*extra);
  if (bake(scale, extra, fonts) || extra == nullptr) return fonts;
  ImGui::GetIO().Fonts->Clear();
  extra->files.clear();
  extra->find = {};
  bake(scale, extra, fonts);
  return fonts;
}

bool size_fonts(Ui& ui) {
  const float scale = ui.screen_scale * ui.viewer->text_size;
  std::set<ImWchar> missed = std::exchange(missed_letters(), {});
  for (const ImWchar letter : ui.extra_letters.letters) missed.erase(letter);  // asked for before
  if (scale == ui.scale && missed.empty()) return false;
  find_files(ui.extra_letters, missed);
  ui.extra_letters.letters.merge(missed);
  ui.scale = scale;
  ImGui::GetIO().Fonts->Clear();
  ui.fonts = bake_fonts(scale, &ui.extra_letters);
  return true;
}

}  // namespace parallax::gui
