// SPDX-License-Identifier: Apache-2.0
// Frames of the tensor viewer, without OpenGL.
#include <cmath>

#include "tests/gui/panels/frames.h"

namespace parallax::gui {
namespace {

TEST_F(Frames, TheTensorViewerHasAButtonForEachMeasure) {
  open(view_test::llama_fault());
  for (const TensorModeInfo& info : tensor_modes()) {
    ASSERT_TRUE(click("mode." + std::string(info.name))) << info.name;
    EXPECT_EQ(viewer_.tensor().mode, info.mode);
  }
  ASSERT_TRUE(click("heat"));
  EXPECT_GE(viewer_.tensor().element, 0);
  ASSERT_FALSE(ui_.tensor.figures.worst.empty());
  ASSERT_TRUE(click("element:0"));
  EXPECT_EQ(viewer_.tensor().element, ui_.tensor.figures.worst.front());
}

TEST_F(Frames, ADragOverTheHistogramChoosesValuesAndAClickAllOfThem) {
  open(view_test::llama_fault());
  ASSERT_TRUE(click("mode.a"));
  const size_t all = static_cast<size_t>(viewer_.tensor().model->slice_count());
  ASSERT_TRUE(drag("histogram", 0.1F, 0.4F));
  ASSERT_TRUE(viewer_.tensor().filter.brush.has_value());
  const ValueRange chosen = *viewer_.tensor().filter.brush;
  EXPECT_NEAR(chosen.low, ui_.tensor.figures.histogram.at(0.1),
              (ui_.tensor.figures.histogram.high - ui_.tensor.figures.histogram.low) * 0.02);
  EXPECT_NEAR(chosen.high, ui_.tensor.figures.histogram.at(0.4),
              (ui_.tensor.figures.histogram.high - ui_.tensor.figures.histogram.low) * 0.02);
  EXPECT_GT(ui_.tensor.figures.passing.size(), 0U);
  EXPECT_LT(ui_.tensor.figures.passing.size(), all);
  ASSERT_TRUE(click("histogram"));
  EXPECT_FALSE(viewer_.tensor().filter.brush.has_value());
}

TEST_F(Frames, TheEndsOfTheRangeAreDragged) {
  open(view_test::llama_fault());
  ASSERT_TRUE(click("mode.a"));
  const ValueRange before = viewer_.tensor().range;
  ASSERT_TRUE(drag("range", 0.02F, 0.3F));
  EXPECT_GT(viewer_.tensor().range.low, before.low);
  EXPECT_EQ(viewer_.tensor().range.high, before.high);
  EXPECT_FALSE(viewer_.tensor().is_auto_range);
  ASSERT_TRUE(click("range.fit"));
  EXPECT_EQ(viewer_.tensor().range.low, before.low);
}

// The wheel moved in the frame in which another value is fitted.
TEST_F(Frames, TheWheelZoomsWhatIsFittedFirst) {
  open(view_test::llama_fault());
  frames(2);
  ImGuiIO& io = ImGui::GetIO();
  io.MousePos = ui_.widgets.at("heat").middle();
  frames(2);
  ui_.tensor.zoom = 0;
  io.MouseWheel = 1;
  frames(2);
  EXPECT_GT(ui_.tensor.zoom, 0);
  EXPECT_TRUE(std::isfinite(ui_.tensor.origin.x) && std::isfinite(ui_.tensor.origin.y));
}

TEST_F(Frames, BothSidesAreZoomedTogether) {
  open(view_test::llama_fault());
  EXPECT_EQ(ui_.widgets.count("heat.a"), 0U);
  ASSERT_TRUE(click("split"));
  ASSERT_EQ(ui_.widgets.count("heat.a"), 1U);
  ASSERT_EQ(ui_.widgets.count("heat.b"), 1U);
  const Widget a = ui_.widgets.at("heat.a"), b = ui_.widgets.at("heat.b");
  EXPECT_TRUE(a.greatest.x <= b.least.x || a.greatest.y <= b.least.y);
  const float before = ui_.tensor.zoom;
  ImGuiIO& io = ImGui::GetIO();
  io.MousePos = a.middle();
  frames(2);
  io.MouseWheel = 2;
  frames(1);
  EXPECT_GT(ui_.tensor.zoom, before);
  EXPECT_EQ(ui_.tensor.heats[0].mode, TensorMode::a);
  EXPECT_EQ(ui_.tensor.heats[1].mode, TensorMode::b);
  EXPECT_EQ(ui_.tensor.heats[0].shown.range.low,
            ui_.tensor.heats[1].shown.range.low);  // equal colors mean equal values
}

TEST_F(Frames, ALongAndThinSliceIsStretchedUntilItIsZoomed) {
  viewer_.open({view_test::llama_fault().a});
  viewer_.wait_idle();
  ASSERT_TRUE(viewer_.select_path("view_3"));  // [2,7,48]: 7 rows
  viewer_.tensor().model->set_axes(0, 2);      // 2 rows
  viewer_.refresh_range();
  frames(3);
  EXPECT_GT(ui_.tensor.cell().y, 1.5F * ui_.tensor.cell().x);
  EXPECT_EQ(ui_.tensor.stretch.x, 1);
  ImGuiIO& io = ImGui::GetIO();
  io.MousePos = ui_.widgets.at("heat").middle();
  frames(2);
  for (int i = 0; i < 12; ++i) {
    io.MouseWheel = 1;
    frames(1);
  }
  EXPECT_EQ(ui_.tensor.cell().y, ui_.tensor.cell().x);
  // The element under the mouse is the picked one.
  io.MouseDown[0] = true;
  frames(2);
  io.MouseDown[0] = false;
  frames(2);
  EXPECT_GE(viewer_.tensor().element, 0);
}

TEST_F(Frames, CountsOfTheHistogramMayBeLinear) {
  open(view_test::llama_fault());
  EXPECT_FALSE(viewer_.tensor().linear_counts);
  press("H");
  EXPECT_TRUE(viewer_.tensor().linear_counts);
  frames(2);
  press("H");
  EXPECT_FALSE(viewer_.tensor().linear_counts);
}

TEST_F(Frames, ValuesOfTheHistogramMayBeLogarithmic) {
  open(view_test::llama_fault());
  ASSERT_TRUE(click("mode.a"));
  EXPECT_FALSE(ui_.tensor.figures.histogram.is_logarithmic);
  press("Alt+H");
  frames(2);
  EXPECT_TRUE(ui_.tensor.figures.histogram.is_logarithmic);
  ASSERT_TRUE(drag("histogram", 0.1F, 0.4F));
  ASSERT_TRUE(viewer_.tensor().filter.brush.has_value());
  const SliceHistogram& histogram = ui_.tensor.figures.histogram;
  const double low = histogram.location(histogram.low), span = histogram.location(histogram.high) - low;
  EXPECT_NEAR((histogram.location(viewer_.tensor().filter.brush->low) - low) / span, 0.1, 0.02);
  EXPECT_NEAR((histogram.location(viewer_.tensor().filter.brush->high) - low) / span, 0.4, 0.02);
}

TEST_F(Frames, SplitPanesHaveABarForEachOfTheirScales) {
  open(view_test::llama_fault());
  EXPECT_EQ(ui_.widgets.count("range.other"), 0U);
  ASSERT_TRUE(click("split"));
  frames(2);
  EXPECT_EQ(ui_.widgets.count("range.other"), 1U);  // of A and B, next to that of the difference
  ASSERT_TRUE(click("mode.a"));
  frames(2);
  EXPECT_EQ(ui_.widgets.count("range.other"), 1U);  // of the difference
}

TEST_F(Frames, AxesAreCalledByTheModelsSizes) {
  open(view_test::llama_fault());
  ASSERT_TRUE(viewer_.select_path("last_hidden_state"));
  EXPECT_EQ(viewer_.tensor().axis_names, (std::vector<std::string>{"batch", "sequence", ""}));
}

TEST_F(Frames, InANarrowWindowNoButtonOfTheListsIsCutOff) {
  ImGui::GetIO().DisplaySize = {640, 480};
  open(view_test::llama_fault());
  const float end = ui_.widgets.at("splitter.right").least.x;
  for (const char* name : {"list.worst", "list.values", "list.channels", "list.around", "list.hex"}) {
    ASSERT_EQ(ui_.widgets.count(name), 1U) << name;
    EXPECT_LE(ui_.widgets.at(name).greatest.x, end) << name;
  }
  ASSERT_TRUE(click("list.hex"));
  EXPECT_TRUE(viewer_.tensor().hex);
}

TEST_F(Frames, AHeldKeyShowsTheOtherSide) {
  open(view_test::llama_fault());
  ImGuiIO& io = ImGui::GetIO();
  io.MousePos = ui_.widgets.at("heat").middle();
  frames(2);
  EXPECT_LT(ui_.tensor.heats[0].version, 0);
  io.KeyShift = true;
  frames(1);
  EXPECT_EQ(ui_.tensor.heats[0].version, viewer_.tensor().version);
  EXPECT_EQ(viewer_.tensor().mode, TensorMode::absolute);
}

TEST_F(Frames, ALargeSliceIsLookedAtWhileFramesGoOn) {
  open(view_test::large_fault());
  ASSERT_TRUE(viewer_.select_path("y"));
  ASSERT_GT(viewer_.tensor().model->slice_count(), 1 << 18);
  EXPECT_TRUE(viewer_.tensor().is_range_due);
  EXPECT_EQ(ui_.widgets.count("heat"), 0U);  // there is nothing to show yet, and frames are drawn all the same
  while (ui_.tensor.wait()) frames(2);
  EXPECT_FALSE(viewer_.tensor().is_range_due);
  ASSERT_EQ(ui_.widgets.count("heat"), 1U);
  EXPECT_EQ(viewer_.tensor().range.high, ui_.tensor.figures.whole.high);
  EXPECT_EQ(ui_.tensor.figures.worst, viewer_.tensor().model->worst(viewer_.tensor().mode, 1000));
  const HeatImage expected =
      viewer_.tensor().model->image(viewer_.tensor().mode, viewer_.tensor().range, {}, kMostPixels, viewer_.is_dark);
  EXPECT_EQ(ui_.tensor.heats[2].shown.image.pixels, expected.pixels);
  ASSERT_TRUE(click("list.channels"));
  while (ui_.tensor.wait()) frames(2);
  EXPECT_EQ(ui_.tensor.channels.size(), 700U);
}

TEST_F(Frames, AChangeWhileALargeSliceIsLookedAtDropsTheWork) {
  open(view_test::large_fault());
  ASSERT_TRUE(viewer_.select_path("y"));
  for (const char* key : {"1", "3", "7", "2", "4"}) press(key);
  while (ui_.tensor.wait()) frames(2);
  EXPECT_EQ(ui_.tensor.figures_version, viewer_.tensor().version);
  EXPECT_EQ(ui_.tensor.heats[2].mode, TensorMode::absolute);
  EXPECT_EQ(viewer_.tensor().range.high, viewer_.tensor().model->autofit(TensorMode::absolute).high);
}

TEST_F(Frames, FiguresOfAllSlicesAreKeptWhenTheSliceChanges) {
  open(view_test::llama_fault());
  ASSERT_TRUE(viewer_.select_path("view_3"));
  frames(2);
  const int64_t last = viewer_.tensor().model->shape().element_count() - 1;
  ui_.tensor.figures.worst = {last};  // those that are computed again are others
  viewer_.select_element(last);
  frames(2);
  EXPECT_NE(ui_.tensor.figures.worst, std::vector<int64_t>{last});
  press("Shift+H");
  ui_.tensor.figures.worst = {last};
  viewer_.select_element(0);
  frames(2);
  EXPECT_EQ(ui_.tensor.figures.worst, std::vector<int64_t>{last});
  EXPECT_EQ(ui_.tensor.figures.whole, viewer_.tensor().model->autofit(viewer_.tensor().mode));
  press("1");
  EXPECT_NE(ui_.tensor.figures.worst, std::vector<int64_t>{last});
}

TEST_F(Frames, ListsOfElementsAreChosenAndLeadToTheirElements) {
  open(view_test::llama_fault());
  ASSERT_TRUE(click("list.values"));
  ASSERT_TRUE(click("element:2"));
  EXPECT_EQ(viewer_.tensor().element, viewer_.tensor().model->element_in_slice(2));
  ASSERT_TRUE(click("list.channels"));
  ASSERT_TRUE(click("channel:1"));
  EXPECT_EQ(viewer_.tensor().model->index().back(), 1);
  ASSERT_TRUE(click("list.around"));
  const int64_t before = viewer_.tensor().element;
  const Widget around = ui_.widgets.at("around");
  ImGuiIO& io = ImGui::GetIO();
  io.MousePos = {around.middle().x + (around.greatest.x - around.least.x) / 9, around.middle().y};
  frames(2);
  io.MouseDown[0] = true;
  frames(2);
  io.MouseDown[0] = false;
  frames(1);
  EXPECT_EQ(viewer_.tensor().element, before + 1);
}

TEST_F(Frames, AnIndexIsTypedAndGoneTo) {
  open(view_test::nan_fault());
  ASSERT_TRUE(viewer_.select_path("q"));
  press("Ctrl+G");
  ASSERT_TRUE(viewer_.show_goto);
  type("9,9");
  press("Enter");
  EXPECT_TRUE(viewer_.show_goto);  // it is not there, and that is said
  EXPECT_FALSE(ui_.goto_problem.empty());
  press("Escape");
  press("Ctrl+G");
  type("1,2");
  press("Enter");
  EXPECT_FALSE(viewer_.show_goto);
  EXPECT_EQ(viewer_.tensor().element, 10);
}

}  // namespace
}  // namespace parallax::gui
