// SPDX-License-Identifier: Apache-2.0
// The inspector of a model alone: links, sections that open, copying at the right button.
#include "tests/gui/panels/frames.h"

namespace parallax::gui {
namespace {

class InspectorFrames : public Frames {
 protected:
  void open_model() {
    ImGui::GetIO().DisplaySize = {1280, 1400};
    viewer_.open({view_test::sample("cnn/model.onnx")});
    viewer_.wait_idle();
    frames(3);
  }
  // The first convolution, and its slot of weights.
  void select_convolution() {
    for (const ValueRow& row : viewer_.document()->rows) {
      if (row.op != "Conv") continue;
      ASSERT_TRUE(viewer_.select_path(row.path));
      frames(2);
      return;
    }
    FAIL() << "no convolution";
  }
};

TEST_F(InspectorFrames, AClickOnAWeightOpensItWithItsElements) {
  open_model();
  select_convolution();
  const int32_t node = viewer_.item();
  ASSERT_TRUE(click("link:Inputs:1"));
  ASSERT_GE(viewer_.row(), 0);
  EXPECT_GE(viewer_.document()->rows[static_cast<size_t>(viewer_.row())].weight, 0);
  EXPECT_TRUE(viewer_.tensor().model.has_value());
  EXPECT_EQ(viewer_.item(), node);
  press("Ctrl+C");
  EXPECT_EQ(viewer_.clipboard, path());
  press("Ctrl+Alt+C");
  EXPECT_NE(viewer_.clipboard.find(path()), std::string::npos);
  EXPECT_TRUE(ui_.widgets.contains("line:Statistics:min"));
  EXPECT_TRUE(ui_.widgets.contains("histogram"));  // of the tensor viewer, which a model alone shows for its weights
}

TEST_F(InspectorFrames, TheOperatorsHelpOpensByAClick) {
  open_model();
  select_convolution();
  EXPECT_TRUE(ui_.widgets.contains("section:Operator help"));
  EXPECT_FALSE(ui_.widgets.contains("line:Operator help:"));
  ASSERT_TRUE(click("section:Operator help"));
  EXPECT_TRUE(ui_.widgets.contains("line:Operator help:"));
}

TEST_F(InspectorFrames, TheModelsPropertiesAreShownAtFirstAndByAButton) {
  open_model();
  EXPECT_TRUE(ui_.widgets.contains("line:Model:parameters"));
  EXPECT_FALSE(ui_.widgets.contains("show_model"));
  select_convolution();
  EXPECT_FALSE(ui_.widgets.contains("line:Model:parameters"));
  ASSERT_TRUE(click("show_model"));
  EXPECT_TRUE(ui_.widgets.contains("line:Model:parameters"));
  ASSERT_TRUE(find_command("edit.copy_inspector")->run(viewer_));
  EXPECT_NE(viewer_.clipboard.find("IR version\t"), std::string::npos);
}

}  // namespace
}  // namespace parallax::gui
