// Frames without OpenGL: windows are drawn into ImGui's lists, widgets are pressed by name, and the viewer is asked
// what came of it.
#include <filesystem>

#include <gtest/gtest.h>

#include "gui/panels/panels.h"
#include "inspector/executors/make_executor.h"
#include "tests/inspector/workbench/view_fixture.h"

namespace parallax::gui {
namespace {

class Frames : public testing::Test {
 protected:
  Frames() : viewer_(make_executor) {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {1280, 720};
    io.DeltaTime = 1.0F / 60;
    io.MousePos = {-1, -1};
    ui_.viewer = &viewer_;
    ui_.fonts = bake_fonts(1);
    unsigned char* pixels = nullptr;
    int width = 0, height = 0;
    io.Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  }
  ~Frames() override { ImGui::DestroyContext(); }

  void open(const view_test::Dumps& dumps) {
    viewer_.open({dumps.a, dumps.b});
    viewer_.wait_idle();
    frames(3);
  }
  void frames(int count) {
    for (int i = 0; i < count; ++i) {
      ImGui::NewFrame();
      draw_frame(ui_);
      ImGui::Render();
    }
  }
  bool click(const std::string& name, int times = 1) {
    frames(1);
    const auto found = ui_.widgets.find(name);
    if (found == ui_.widgets.end()) return false;
    ImGuiIO& io = ImGui::GetIO();
    io.MousePos = found->second.middle();
    frames(2);
    for (int i = 0; i < times; ++i) {
      io.MouseDown[0] = true;
      frames(2);
      io.MouseDown[0] = false;
      frames(2);
    }
    io.MousePos = {-1, -1};
    frames(2);
    return true;
  }
  bool drag(const std::string& name, float from, float to) {
    frames(1);
    const auto found = ui_.widgets.find(name);
    if (found == ui_.widgets.end()) return false;
    const Widget widget = found->second;
    ImGuiIO& io = ImGui::GetIO();
    const auto at = [&](float share) {
      return ImVec2{widget.least.x + (widget.greatest.x - widget.least.x) * share, widget.middle().y};
    };
    for (const auto& [share, is_down] : {std::pair{from, false}, {from, true}, {to, true}, {to, false}}) {
      io.MousePos = at(share);
      io.MouseDown[0] = is_down;
      frames(2);
    }
    io.MousePos = {-1, -1};
    frames(2);
    return true;
  }
  void press(const std::string& chord) {
    ui_.keys.push_back(chord);
    frames(2);
  }
  std::string path() const {
    return viewer_.row() < 0 ? "" : viewer_.document()->rows[static_cast<size_t>(viewer_.row())].path;
  }

  Viewer viewer_;
  Ui ui_;
};

TEST_F(Frames, NothingOpenOffersToOpenAndToRun) {
  frames(3);
  EXPECT_GT(ImGui::GetDrawData()->TotalVtxCount, 200);
  ASSERT_TRUE(click("welcome.run"));
  EXPECT_TRUE(viewer_.show_run);
  EXPECT_EQ(ui_.widgets.count("run.ok"), 1U);
  press("Escape");
  EXPECT_FALSE(viewer_.show_run);
}

TEST_F(Frames, AlertsAreSelectedByAClick) {
  open(view_test::llama_fault());
  ASSERT_GT(viewer_.alerts().size(), 1U);
  ASSERT_TRUE(click("alert:1"));
  EXPECT_EQ(viewer_.alert_at(), 1);
  ASSERT_TRUE(click("alert:0"));
  EXPECT_EQ(viewer_.alert_at(), 0);
}

TEST_F(Frames, TabsShowTheirLists) {
  open(view_test::llama_fault());
  ASSERT_TRUE(click("tab.table"));
  EXPECT_EQ(viewer_.left_tab, LeftTab::table);
  frames(3);  // until the table has come to rest
  const int32_t selected = viewer_.row();
  EXPECT_EQ(ui_.widgets.count("row:" + std::to_string(selected)), 1U);  // scrolled into sight
  ASSERT_TRUE(click("row:" + std::to_string(selected - 1)));
  EXPECT_EQ(viewer_.row(), selected - 1);
  ASSERT_TRUE(click("tab.causes"));
  EXPECT_EQ(viewer_.left_tab, LeftTab::causes);
}

TEST_F(Frames, KeysReachTheCommandsUnlessATextFieldHasTheKeyboard) {
  open(view_test::llama_fault());
  const std::string first = path();
  press("N");
  const std::string second = path();
  EXPECT_NE(second, first);
  press("Ctrl+F");
  frames(2);
  EXPECT_TRUE(ImGui::GetIO().WantTextInput);
  press("N");
  EXPECT_EQ(path(), second);  // N belongs to the search box
  press("F3");
  EXPECT_EQ(viewer_.preset, Preset::tensor);  // function keys do not
}

TEST_F(Frames, TypingIntoTheSearchBoxFilters) {
  open(view_test::llama_fault());
  const size_t all = viewer_.table_rows().size();
  press("Ctrl+F");
  frames(2);
  ImGui::GetIO().AddInputCharactersUTF8("op:MatMul");
  frames(3);
  EXPECT_EQ(viewer_.search(), "op:MatMul");
  EXPECT_LT(viewer_.table_rows().size(), all);
  EXPECT_GT(viewer_.table_rows().size(), 0U);
}

TEST_F(Frames, ANodeOfTheGraphIsSelectedAndABlockOpened) {
  open(view_test::loop_fault());
  ASSERT_TRUE(viewer_.select_path("first_state"));
  frames(2);
  ASSERT_TRUE(click("item:norm"));
  EXPECT_EQ(viewer_.graph.items().item(viewer_.item()).title, "norm");
  const int32_t loop = viewer_.graph.items().find_node("", "decode");
  viewer_.graph.set_open(loop, false);
  ASSERT_TRUE(viewer_.select_item(loop));
  frames(2);
  press("Enter");
  EXPECT_TRUE(viewer_.graph.is_open(loop));
  press("Enter");
  EXPECT_FALSE(viewer_.graph.is_open(loop));
}

TEST_F(Frames, TheTensorViewerHasAButtonForEachMeasure) {
  open(view_test::llama_fault());
  for (const TensorModeInfo& info : tensor_modes()) {
    ASSERT_TRUE(click("mode." + std::string(info.name))) << info.name;
    EXPECT_EQ(viewer_.tensor().mode, info.mode);
  }
  ASSERT_TRUE(click("heat"));
  EXPECT_GE(viewer_.tensor().element, 0);
  ASSERT_FALSE(ui_.tensor.worst.empty());
  ASSERT_TRUE(click("element:0"));
  EXPECT_EQ(viewer_.tensor().element, ui_.tensor.worst.front());
}

TEST_F(Frames, ADragOverTheHistogramChoosesValuesAndAClickAllOfThem) {
  open(view_test::llama_fault());
  ASSERT_TRUE(click("mode.a"));
  const size_t all = static_cast<size_t>(viewer_.tensor().model->slice_count());
  ASSERT_TRUE(drag("histogram", 0.1F, 0.4F));
  ASSERT_TRUE(viewer_.tensor().filter.brush.has_value());
  const ValueRange chosen = *viewer_.tensor().filter.brush;
  EXPECT_NEAR(chosen.low, ui_.tensor.histogram.at(0.1), (ui_.tensor.histogram.high - ui_.tensor.histogram.low) * 0.02);
  EXPECT_NEAR(chosen.high, ui_.tensor.histogram.at(0.4), (ui_.tensor.histogram.high - ui_.tensor.histogram.low) * 0.02);
  EXPECT_GT(ui_.tensor.passing.size(), 0U);
  EXPECT_LT(ui_.tensor.passing.size(), all);
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
  EXPECT_EQ(ui_.tensor.heats[0].range.low, ui_.tensor.heats[1].range.low);  // equal colours mean equal values
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

TEST_F(Frames, TheIterationIsChosenAboveTheGraph) {
  open(view_test::nan_fault());
  EXPECT_EQ(ui_.widgets.count("iteration"), 0U);  // nothing is repeated
  open(view_test::loop_fault());
  ASSERT_TRUE(click("iteration.next"));
  EXPECT_EQ(viewer_.graph.iteration(), 0);
  ASSERT_TRUE(click("iteration.next"));
  EXPECT_EQ(viewer_.graph.iteration(), 1);
  ASSERT_TRUE(click("iteration.previous"));
  ASSERT_TRUE(click("iteration.previous"));
  EXPECT_EQ(viewer_.graph.iteration(), -1);
}

TEST_F(Frames, MarksHaveATabOfTheirOwn) {
  open(view_test::llama_fault());
  EXPECT_EQ(ui_.widgets.count("tab.marks"), 0U);
  const std::string marked = path();
  press("Ctrl+B");
  press("Home");
  ASSERT_TRUE(click("tab.marks"));
  ASSERT_TRUE(click("mark:0"));
  EXPECT_EQ(path(), marked);
}

TEST_F(Frames, AnIndexIsTypedAndGoneTo) {
  open(view_test::nan_fault());
  ASSERT_TRUE(viewer_.select_path("q"));
  press("Ctrl+G");
  ASSERT_TRUE(viewer_.show_goto);
  frames(2);
  ImGui::GetIO().AddInputCharactersUTF8("9,9");
  frames(3);
  press("Enter");
  EXPECT_TRUE(viewer_.show_goto);  // it is not there, and that is said
  EXPECT_FALSE(ui_.goto_problem.empty());
  press("Escape");
  press("Ctrl+G");
  frames(2);
  ImGui::GetIO().AddInputCharactersUTF8("1,2");
  frames(3);
  press("Enter");
  EXPECT_FALSE(viewer_.show_goto);
  EXPECT_EQ(viewer_.tensor().element, 10);
}

TEST_F(Frames, TheGraphIsExportedFromItsDialog) {
  open(view_test::nan_fault());
  press("Ctrl+E");
  ASSERT_TRUE(viewer_.show_export);
  ui_.export_field = view_test::scratch("exported.svg");
  ASSERT_TRUE(click("export.dot"));
  EXPECT_TRUE(ui_.export_field.ends_with("exported.dot"));
  ASSERT_TRUE(click("export.ok"));
  EXPECT_FALSE(viewer_.show_export);
  EXPECT_TRUE(std::filesystem::exists(view_test::scratch("exported.dot")));
}

TEST_F(Frames, ADragWithControlFillsThePane) {
  open(view_test::llama_fault());
  ImGuiIO& io = ImGui::GetIO();
  const ImVec2 middle = ui_.widgets.at("graph").middle();
  const float before = viewer_.graph.camera.zoom;
  io.KeyCtrl = true;
  io.MousePos = middle;
  frames(2);
  io.MouseDown[0] = true;
  frames(2);
  io.MousePos = {middle.x + 120, middle.y + 80};
  frames(2);
  io.MouseDown[0] = false;
  frames(2);
  io.KeyCtrl = false;
  EXPECT_GT(viewer_.graph.camera.zoom, before * 1.5F);
}

TEST_F(Frames, EnterInTheSearchBoxGoesFromHitToHit) {
  open(view_test::llama_fault());
  press("Ctrl+F");
  frames(2);
  ImGui::GetIO().AddInputCharactersUTF8("op:MatMul");
  frames(3);
  EXPECT_EQ(viewer_.left_tab, LeftTab::table);
  press("Enter");
  const int32_t first = viewer_.row();
  EXPECT_EQ(viewer_.document()->rows[static_cast<size_t>(first)].op, "MatMul");
  press("Enter");
  EXPECT_NE(viewer_.row(), first);
}

TEST_F(Frames, ThePaletteRunsWhatIsChosen) {
  open(view_test::llama_fault());
  press("Ctrl+P");
  ASSERT_TRUE(viewer_.show_palette);
  frames(2);
  ImGui::GetIO().AddInputCharactersUTF8("dark or light");
  frames(3);
  press("Enter");
  EXPECT_FALSE(viewer_.is_dark);
  EXPECT_FALSE(viewer_.show_palette);
}

TEST_F(Frames, HelpListsKeysAndCloses) {
  frames(2);
  press("Shift+Slash");
  ASSERT_TRUE(viewer_.show_help);
  ASSERT_TRUE(click("help.close"));
  EXPECT_FALSE(viewer_.show_help);
}

TEST_F(Frames, MenusHoldTheCommands) {
  open(view_test::nan_fault());
  ASSERT_TRUE(click("menu.View"));
  ASSERT_TRUE(click("view.theme"));
  EXPECT_FALSE(viewer_.is_dark);
}

TEST_F(Frames, PresetsShowAndHidePanes) {
  open(view_test::llama_fault());
  EXPECT_EQ(ui_.widgets.count("heat"), 1U);
  press("F2");
  frames(2);
  EXPECT_EQ(ui_.widgets.count("heat"), 0U);
  EXPECT_EQ(ui_.widgets.count("tab.alerts"), 0U);
  press("F4");
  frames(2);
  EXPECT_EQ(ui_.widgets.count("tab.alerts"), 1U);
  press("F1");
  frames(2);
  EXPECT_EQ(ui_.widgets.count("heat"), 1U);
}

TEST_F(Frames, ASplitterIsDragged) {
  open(view_test::nan_fault());
  const float before = ui_.left;
  ImGuiIO& io = ImGui::GetIO();
  io.MousePos = ui_.widgets.at("splitter.left").middle();
  frames(2);
  io.MouseDown[0] = true;
  frames(2);
  io.MousePos.x += 100;
  frames(2);
  io.MouseDown[0] = false;
  frames(1);
  EXPECT_NEAR(ui_.left, before + 100.0F / 1280, 0.01F);
}

TEST_F(Frames, AMessageIsShownUntilItIsDismissed) {
  open(view_test::nan_fault());
  viewer_.open({view_test::scratch("nothing.plx")});
  viewer_.wait_idle();
  frames(2);
  ASSERT_TRUE(click("dismiss"));
  EXPECT_TRUE(viewer_.messages.empty());
  EXPECT_EQ(ui_.widgets.count("dismiss"), 0U);
}

TEST_F(Frames, TheWheelMovesTheGraphAndWithControlZooms) {
  open(view_test::llama_fault());
  ImGuiIO& io = ImGui::GetIO();
  io.MousePos = ui_.widgets.at("graph").middle();
  frames(2);
  const Camera before = viewer_.graph.camera;
  io.MouseWheel = -1;
  frames(1);
  EXPECT_GT(viewer_.graph.camera.y, before.y);
  EXPECT_EQ(viewer_.graph.camera.zoom, before.zoom);
  io.KeyCtrl = true;
  io.MouseWheel = 1;
  frames(1);
  EXPECT_GT(viewer_.graph.camera.zoom, before.zoom);
}

TEST_F(Frames, SmallWindowsAndLargeOnesAreDrawn) {
  open(view_test::llama_fault());
  for (const ImVec2 size : {ImVec2{320, 240}, ImVec2{3840, 2160}}) {
    ImGui::GetIO().DisplaySize = size;
    frames(3);
    EXPECT_GT(ImGui::GetDrawData()->TotalVtxCount, 100);
  }
}

}  // namespace
}  // namespace parallax::gui
