// SPDX-License-Identifier: Apache-2.0
// The selected value as a person looks at it: slices, the range of colors, settings of the histogram.
#include <gtest/gtest.h>

#include "tests/gui/viewmodel/person.h"

namespace parallax {
namespace {

using view_test::Person;

// A value of several slices, in mode a.
class ViewerTensor : public testing::Test {
 protected:
  ViewerTensor() : person_(view_test::llama_fault()) {
    EXPECT_TRUE(viewer_.select_path("view_3"));
    viewer_.set_tensor_mode(TensorMode::a);
    EXPECT_TRUE(pane_.model.has_value());
    viewer_.select_element(0);
  }
  int64_t last_element() const { return pane_.model->shape().element_count() - 1; }
  void expect_fitted() const {
    const ValueRange fitted = pane_.model->autofit(pane_.mode);
    EXPECT_EQ(pane_.range.low, fitted.low);
    EXPECT_EQ(pane_.range.high, fitted.high);
  }

  Person person_;
  Viewer& viewer_ = person_.viewer;
  TensorPane& pane_ = viewer_.tensor();
};

TEST_F(ViewerTensor, AnElementOfAnotherSliceFitsTheRangeToItsSlice) {
  const std::string slice = pane_.model->slice_text();
  const ValueRange before = pane_.range;
  viewer_.select_element(last_element());
  EXPECT_NE(pane_.model->slice_text(), slice);
  EXPECT_NE(pane_.range.high, before.high);
  expect_fitted();
  viewer_.set_range({-7, 7});
  viewer_.select_element(0);
  EXPECT_EQ(pane_.range.high, 7);  // a range that was chosen stays
}

TEST_F(ViewerTensor, AnElementOfTheSameSliceChangesNoFigures) {
  const int64_t version = pane_.version;
  viewer_.select_element(1);
  EXPECT_EQ(pane_.version, version);
  ASSERT_TRUE(viewer_.go_to_index("0,0,2").ok());
  EXPECT_EQ(pane_.element, 2);
  EXPECT_EQ(pane_.version, version);
}

TEST_F(ViewerTensor, AnElementThatIsChosenLaterReplacesTheWorst) {
  pane_.wants_worst = true;
  viewer_.select_element(1);
  EXPECT_FALSE(pane_.wants_worst);
}

TEST_F(ViewerTensor, AViewSetsWhatTheHistogramCounts) {
  const std::string state = R"({"whole": true, "flips_axis": true, "linear_counts": true})";
  ASSERT_TRUE(apply_view(viewer_, state).ok());
  EXPECT_TRUE(pane_.counts_whole());
  const auto shown = person_.shown()["tensor"];
  for (const char* key : {"whole", "flips_axis", "linear_counts"}) EXPECT_EQ(shown[key], true) << key;
  EXPECT_NE(view_command(viewer_).find(R"("whole":true)"), std::string::npos);
  EXPECT_FALSE(apply_view(viewer_, R"({"whole": 1})").ok());
}

TEST_F(ViewerTensor, KeysChangeNoSettingWhereNoValueIsShown) {
  Viewer empty(make_executor);
  for (const std::string_view key : {"M", "H", "Shift+H", "Alt+H", "X", "9"})
    EXPECT_FALSE(command_for_key(key)->run(empty)) << key;
  const TensorPane& pane = empty.tensor();
  EXPECT_FALSE(pane.filter.specials_only || pane.linear_counts || pane.flips_axis || pane.hex || pane.is_montage);
  EXPECT_FALSE(pane.chosen_whole.has_value());
  for (const std::string_view key : {"M", "H", "Shift+H", "Alt+H", "X"}) EXPECT_TRUE(person_.press(key)) << key;
  EXPECT_TRUE(pane_.filter.specials_only && pane_.linear_counts && pane_.flips_axis && pane_.hex);
  EXPECT_TRUE(pane_.counts_whole());
}

}  // namespace
}  // namespace parallax
