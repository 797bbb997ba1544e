// SPDX-License-Identifier: Apache-2.0
// Golden pictures: a few views as they are meant to look. Small differences pass, for the letters' edges depend on the
// software renderer's version; a box of another color, a text that is cut off or a pane that has moved do not.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "gui/app/png_file.h"
#include "tests/gui/app/screen.h"

namespace parallax::gui {
namespace {

constexpr double kMostShare = 0.002;  // of pixels that differ
constexpr int kLeastDistance = 24;    // of 255, in one channel: less is no difference
constexpr const char* kRenew = "PARALLAX_RENEW_GOLDEN=1 build/ci/bin/gui_app_test --gtest_filter='*Golden*'";

struct View {
  const char* name;
  const view_test::Dumps& (*dumps)();
  const char* state;
};

constexpr View kViews[] = {
    {"fault", view_test::llama_fault, "{}"},
    {"values_light", view_test::llama_fault,
     R"({"theme": "light", "preset": "table", "tab": "table", "search": "diverged"})"},
    {"nan_light", view_test::nan_fault, R"({"theme": "light", "preset": "tensor", "select": "y", "split": true})"},
    {"loop", view_test::loop_fault, R"({"preset": "graph", "select": "decode.body[1]//scores"})"},
};

struct Difference {
  double share = 1;
  Picture picture;  // white where pixels differ
};

Difference compare(const Picture& a, const Picture& b) {
  Difference difference;
  if (a.width != b.width || a.height != b.height) return difference;
  difference.picture = {a.width, a.height, std::vector<uint8_t>(a.rgba.size(), 255)};
  int64_t count = 0;
  for (size_t i = 0; i < a.rgba.size(); i += 4) {
    int distance = 0;
    for (size_t c = 0; c < 3; ++c) distance = std::max(distance, std::abs(a.rgba[i + c] - b.rgba[i + c]));
    count += distance >= kLeastDistance;
    for (size_t c = 0; c < 3; ++c) difference.picture.rgba[i + c] = distance >= kLeastDistance ? 255 : 0;
  }
  difference.share = static_cast<double>(count) / (static_cast<double>(a.rgba.size()) / 4);
  return difference;
}

std::string golden_path(const std::string& name) {
  return std::string(PX_SOURCE_DIR) + "/tests/gui/app/golden/" + name + ".png";
}

class Golden : public testing::TestWithParam<View> {};

TEST_P(Golden, MatchesItsPicture) {
  const View& view = GetParam();
  Screen screen(view.dumps(), {960, 600, 1});
  PX_NEEDS_EGL(screen);
  ASSERT_TRUE(apply_view(screen.viewer, view.state).ok());
  const Picture now = screen.shot();
  if (std::getenv("PARALLAX_RENEW_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_png(golden_path(view.name), now).ok());
    return;
  }
  const auto golden = read_png(golden_path(view.name));
  ASSERT_TRUE(golden.ok()) << golden.error().message;
  const Difference difference = compare(now, *golden);
  if (difference.share <= kMostShare) return;
  const std::string shown = std::filesystem::absolute(fmt::format("golden_{}.png", view.name)).string(),
                    difference_path =
                        std::filesystem::absolute(fmt::format("golden_{}_difference.png", view.name)).string();
  ASSERT_TRUE(write_png(shown, now).ok());
  if (!difference.picture.rgba.empty()) {
    ASSERT_TRUE(write_png(difference_path, difference.picture).ok());
  }
  ADD_FAILURE() << fmt::format(
      "{:.2f} % of the pixels differ from {}, at most {:.2f} % may.\nThe view now: {}\nWhere it differs: {}\n"
      "If it is meant to look so: {}",
      difference.share * 100, golden_path(view.name), kMostShare * 100, shown, difference_path, kRenew);
}

INSTANTIATE_TEST_SUITE_P(Views, Golden, testing::ValuesIn(kViews),
                         [](const auto& tested) { return std::string(tested.param.name); });

// The limits detect the differences that the pictures are there for.
TEST(GoldenLimits, ANodeOfAnotherColorOrAHiddenLegendIsSeen) {
  Screen screen(view_test::llama_fault(), {960, 600, 1});
  PX_NEEDS_EGL(screen);
  const Picture before = screen.shot();
  EXPECT_EQ(compare(before, before).share, 0);
  Picture painted = before;
  const Widget box = screen.ui.widgets.at("item:" + view_test::llama_culprit_node());
  for (float y = box.least.y; y < box.greatest.y; ++y) {
    for (float x = box.least.x; x < box.greatest.x; ++x) {
      const size_t pixel = static_cast<size_t>(y) * static_cast<size_t>(before.width) + static_cast<size_t>(x);
      painted.rgba.at(pixel * 4) = static_cast<uint8_t>(painted.rgba.at(pixel * 4) ^ 64U);
    }
  }
  EXPECT_GT(compare(before, painted).share, kMostShare);
  screen.viewer.show_legend = false;
  EXPECT_GT(compare(before, screen.shot()).share, kMostShare);
}

}  // namespace
}  // namespace parallax::gui
