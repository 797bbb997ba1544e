// SPDX-License-Identifier: Apache-2.0
// Letters that the embedded faces are not baked with: loaded when a text needs them, from the embedded face or from a
// font of the system.
#include <gtest/gtest.h>

#include "gui/app/system_fonts.h"
#include "inspector/executors/make_executor.h"

namespace parallax::gui {
namespace {

constexpr const char *kArmenian = "\xD4\xB1", *kIBeam = "\xE2\x8C\xB6",
                     *kChinese = "\xE4\xB8\xAD";  // U+0531, 2336, 4E2D

class Letters : public testing::Test {
 protected:
  Letters() : viewer_(make_executor) {
    ImGui::CreateContext();
    missed_letters().clear();
    ui_.viewer = &viewer_;
    ui_.fonts = bake_fonts(1);
  }
  ~Letters() override { ImGui::DestroyContext(); }
  std::string drawn(const char* text) const { return drawable_text(ui_.fonts.base, text); }

  Viewer viewer_;
  Ui ui_;
};

TEST_F(Letters, OfTheEmbeddedFaceAreBakedWhenATextNeedsThem) {
  EXPECT_FALSE(size_fonts(ui_));
  EXPECT_EQ(drawn(kArmenian), "\\u0531");
  EXPECT_TRUE(size_fonts(ui_));
  EXPECT_EQ(drawn(kArmenian), kArmenian);
  for (const ImFont* font : ui_.fonts.canvas) EXPECT_EQ(drawable_text(font, kArmenian), kArmenian);
  EXPECT_FALSE(size_fonts(ui_));
  EXPECT_TRUE(ui_.extra_letters.files.empty());
}

TEST_F(Letters, OfTheSystemAreAskedForOnceAndWrittenByNumberWhereThereAreNone) {
  int asked = 0;
  ui_.extra_letters.find = [&](uint32_t letter) -> std::optional<FontFile> {
    EXPECT_EQ(letter, 0x4E2DU);
    ++asked;
    return std::nullopt;
  };
  for (int frame = 0; frame < 3; ++frame) {
    EXPECT_EQ(drawn(kChinese), "\\u4E2D");
    EXPECT_EQ(size_fonts(ui_), frame == 0);
  }
  EXPECT_EQ(asked, 1);
}

TEST_F(Letters, OfTheSystemAreDrawnInAllSizes) {
  const auto font = system_font_for(0x2336);
  if (!font.has_value()) GTEST_SKIP() << "fontconfig's fc-match, or any font, is not here";
  ui_.extra_letters.find = system_font_for;
  EXPECT_EQ(drawn(kIBeam), "\\u2336");
  EXPECT_TRUE(size_fonts(ui_));
  EXPECT_EQ(ui_.extra_letters.files.size(), 1U);
  EXPECT_EQ(drawn(kIBeam), kIBeam);
  EXPECT_EQ(drawable_text(ui_.fonts.canvas.back(), kIBeam), kIBeam);
  viewer_.text_size = 1.5F;  // they stay
  EXPECT_TRUE(size_fonts(ui_));
  EXPECT_EQ(drawn(kIBeam), kIBeam);
}

TEST_F(Letters, AFontThatCannotBeReadIsLeftOut) {
  ui_.extra_letters.find = [](uint32_t) -> std::optional<FontFile> {
    return FontFile{std::make_shared<const std::string>(std::string("\0\1\0\0", 4) + std::string(64, '\0')), 0};
  };
  EXPECT_EQ(drawn(kChinese), "\\u4E2D");
  EXPECT_TRUE(size_fonts(ui_));
  EXPECT_TRUE(ui_.extra_letters.files.empty());
  EXPECT_EQ(drawn("plain"), "plain");
  EXPECT_EQ(drawn(kChinese), "\\u4E2D");
}

}  // namespace
}  // namespace parallax::gui
