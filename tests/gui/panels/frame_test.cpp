// SPDX-License-Identifier: Apache-2.0
// Frames without OpenGL: windows are drawn into ImGui's lists, widgets are pressed by name, and the viewer is asked
// what came of it.
#include <filesystem>
#include <fstream>

#include "inspector/base/mapped_file.h"
#include "inspector/dump/dump_reader.h"
#include "tests/gui/panels/frames.h"

namespace parallax::gui {
namespace {

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
  type("op:MatMul");
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

// Long enough that no frame waits for it.
// What is asked for last is what is shown, whatever was being computed.
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

TEST_F(Frames, TheGraphIsExportedFromItsDialog) {
  open(view_test::nan_fault());
  ui_.export_field = view_test::scratch("exported.svg");
  press("Ctrl+E");
  ASSERT_TRUE(viewer_.show_export);
  ASSERT_TRUE(click("export.dot"));
  EXPECT_TRUE(ui_.export_field.ends_with("exported.dot"));
  ASSERT_TRUE(click("export.ok"));
  EXPECT_FALSE(viewer_.show_export);
  EXPECT_TRUE(std::filesystem::exists(view_test::scratch("exported.dot")));
}

TEST_F(Frames, AForeignFileIsReplacedWhenThePersonSaysSo) {
  open(view_test::nan_fault());
  ui_.export_field = view_test::scratch("foreign.svg");
  std::ofstream(ui_.export_field) << "a letter";
  const auto export_it = [&] {
    press("Ctrl+E");
    ASSERT_TRUE(click("export.ok"));
  };
  export_it();
  ASSERT_TRUE(viewer_.show_replace);
  EXPECT_TRUE(viewer_.messages.empty());
  ASSERT_TRUE(click("replace.cancel"));
  EXPECT_FALSE(viewer_.show_replace);
  export_it();
  press("Enter");  // is no answer
  ASSERT_TRUE(viewer_.show_replace);
  press("Escape");
  EXPECT_FALSE(viewer_.show_replace);
  EXPECT_EQ(*read_file(ui_.export_field), "a letter");
  export_it();
  ASSERT_TRUE(click("replace.ok"));
  EXPECT_FALSE(viewer_.show_replace);
  EXPECT_TRUE(read_file(ui_.export_field)->starts_with("<svg"));
  export_it();  // it is Parallax's own now
  EXPECT_FALSE(viewer_.show_replace);
}

TEST_F(Frames, AFileThatIsShownIsNeverReplaced) {
  const std::string shown = view_test::scratch("shown.dot");
  std::filesystem::remove(shown);
  std::filesystem::copy_file(view_test::sample("cnn/model.onnx"), shown);
  viewer_.open({shown});
  viewer_.wait_idle();
  ASSERT_NE(viewer_.document(), nullptr);
  viewer_.export_or_ask(shown, ExportSubject::graph);
  EXPECT_FALSE(viewer_.show_replace);
  ASSERT_FALSE(viewer_.messages.empty());
  EXPECT_NE(viewer_.messages.back().find("which is read"), std::string::npos);
  EXPECT_FALSE(viewer_.export_to(shown, ExportSubject::graph, true).ok());
  viewer_.may_replace = true;
  EXPECT_FALSE(viewer_.export_to(shown, ExportSubject::graph).ok());
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

// As a person types: nothing waits for the text field to be there.
TEST_F(Frames, LettersThatFollowAKeyAtOnceReachTheFieldItOpens) {
  open(view_test::llama_fault());
  const std::string before = path();
  ui_.input.push_back({"Ctrl+F", ""});
  for (const char* character : {"n", "o", "r", "m"})
    ui_.input.push_back({std::string(1, character[0] - 32), character});
  frames(3);
  EXPECT_EQ(viewer_.search(), "norm");
  EXPECT_EQ(path(), before);  // N was no command
  ui_.input.push_back({"Escape", ""});
  ui_.input.push_back({"T", "t"});  // again a command
  frames(3);
  EXPECT_FALSE(viewer_.is_dark);
  ui_.input.push_back({"Slash", "/"});
  ui_.input.push_back({"", "op:Mul"});
  frames(3);
  EXPECT_EQ(ui_.search_field.substr(ui_.search_field.size() - 6), "op:Mul");
  EXPECT_EQ(ui_.search_field.find('/'), std::string::npos);  // the key that opened the field is no letter of it
}

TEST_F(Frames, APathWithABlankIsOpened) {
  const std::string spaced = view_test::scratch("two words.plx");
  std::filesystem::copy_file(view_test::nan_fault().a, spaced, std::filesystem::copy_options::overwrite_existing);
  press("Ctrl+O");
  type(spaced + " " + view_test::nan_fault().b);
  press("Enter");
  viewer_.wait_idle();
  ASSERT_NE(viewer_.document(), nullptr);
  EXPECT_EQ(viewer_.document()->files, (std::vector<std::string>{spaced, view_test::nan_fault().b}));
}

TEST_F(Frames, AnUnfinishedDumpSaysSoAndOnceRepairedStillDoes) {
  const auto whole = read_file(view_test::llama_fault().b);
  ASSERT_TRUE(whole.ok());
  const std::string cut = view_test::scratch("cut.plx"), repaired = view_test::scratch("repaired.plx");
  ASSERT_TRUE(write_file(cut, whole->substr(0, whole->size() * 2 / 3)).ok());
  ASSERT_TRUE(repair_dump(cut, repaired).ok());
  for (const auto& [file, says] : {std::pair{cut, "is unfinished"}, {repaired, "did not end"}}) {
    viewer_.messages.clear();
    open({view_test::llama_fault().a, file});
    ASSERT_EQ(viewer_.messages.size(), 1U);
    EXPECT_NE(viewer_.messages[0].find(says), std::string::npos) << viewer_.messages[0];
    EXPECT_EQ(ui_.widgets.count("dismiss"), 1U);
  }
}

TEST_F(Frames, TheLegendStandsBelowTheGraphAndIsHidden) {
  open(view_test::llama_fault());
  ASSERT_EQ(ui_.widgets.count("legend"), 1U);
  EXPECT_LE(ui_.widgets.at("graph").greatest.y, ui_.widgets.at("legend").least.y);
  press("K");
  EXPECT_EQ(ui_.widgets.count("legend"), 0U);
}

TEST_F(Frames, EnterInTheSearchBoxGoesFromHitToHit) {
  open(view_test::llama_fault());
  press("Ctrl+F");
  type("op:MatMul");
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
  type("dark or light");
  press("Enter");
  EXPECT_FALSE(viewer_.is_dark);
  EXPECT_FALSE(viewer_.show_palette);
}

TEST_F(Frames, RecentPairsAreOpenedTogether) {
  const view_test::Dumps& dumps = view_test::llama_fault();
  viewer_.recent = {dumps.a + kRecentSeparator + dumps.b};
  EXPECT_EQ(title_of_recent("/runs/A.plx\t/runs/B.plx"), "/runs/A.plx  and  B.plx");
  EXPECT_EQ(title_of_recent("/runs/A.plx\t/old/A.plx"), "/runs/A.plx  and  /old/A.plx");
  EXPECT_EQ(title_of_recent("/runs/model.onnx"), "/runs/model.onnx");
  ASSERT_TRUE(click("recent:0"));
  viewer_.wait_idle();
  ASSERT_NE(viewer_.document(), nullptr);
  EXPECT_TRUE(viewer_.document()->is_pair());
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

TEST_F(Frames, AMenuStandsBelowItsButtonTakesTheKeysAndClosesByEscape) {
  open(view_test::nan_fault());
  viewer_.set_search("op:Log");
  ASSERT_TRUE(click("menu.View"));
  frames(1);
  ASSERT_TRUE(ui_.widgets.contains("view.theme"));
  EXPECT_GT(ui_.widgets.at("view.search").least.y, ui_.widgets.at("menu.View").greatest.y);
  press("T");
  EXPECT_TRUE(viewer_.is_dark);
  press("Escape");
  frames(1);
  EXPECT_FALSE(ui_.widgets.contains("view.theme"));
  EXPECT_EQ(viewer_.search(), "op:Log");  // Escape was the menu's alone
  press("T");
  EXPECT_FALSE(viewer_.is_dark);
}

TEST_F(Frames, ADialogThatOpensAgainReplacesItsOldText) {
  press("Ctrl+O");
  type("/no/such/file.plx");
  press("Enter");
  viewer_.wait_idle();
  press("Ctrl+O");
  type(view_test::nan_fault().a);
  EXPECT_EQ(ui_.path_field, view_test::nan_fault().a);
}

TEST_F(Frames, WhatTheFontLacksIsWrittenByNumber) {
  const ImFont* font = ui_.fonts.base;
  EXPECT_EQ(drawable_text(font, "/layer.0/q_proj"), "/layer.0/q_proj");
  EXPECT_EQ(drawable_text(font, "\xCE\xB1\xD0\x96"), "\xCE\xB1\xD0\x96");  // Greek, Cyrillic
  EXPECT_EQ(drawable_text(font, "\xE4\xB8\xAD\n\xF0\x9F\x98\x80"), "\\u4E2D\\n\\u1F600");
  EXPECT_EQ(drawable_text(font, "a\xFF\x01"), "a\\xFF\\x01");
  EXPECT_EQ(drawable_text(font, "\xE4\xB8"), "\\xE4\\xB8");  // cut short
  EXPECT_EQ(cut_text(font, font->FontSize, "\xE4\xB8\xAD", 500), "\\u4E2D");
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
