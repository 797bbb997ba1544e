// SPDX-License-Identifier: Apache-2.0
// The viewer as a person uses it: keys lead to the fault, through a loop's iterations, to NaN; the shown state is
// reported.
#include "gui/viewmodel/viewer.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "inspector/base/mapped_file.h"
#include "inspector/executors/make_executor.h"
#include "tests/gui/viewmodel/person.h"

namespace parallax {
namespace {

using view_test::Dumps;
using view_test::Person;

TEST(Viewer, OpeningTwoDumpsSelectsTheFaultWithoutAKey) {
  Person person(view_test::llama_fault());
  EXPECT_EQ(person.node(), view_test::llama_culprit_node());
  ASSERT_FALSE(person.viewer.document()->comparison->causes.empty());
  EXPECT_EQ(person.viewer.document()->comparison->causes[0].node, view_test::llama_culprit_node());
  ASSERT_TRUE(person.viewer.tensor().model.has_value());
  // Its worst element is picked, and differs beyond its limit.
  const int64_t element = person.viewer.tensor().element;
  ASSERT_GE(element, 0);
  EXPECT_GT(person.viewer.tensor().model->number(TensorMode::severity, element), 1);
}

TEST(Viewer, KeysStepThroughTheDivergencesAndBack) {
  Person person(view_test::llama_fault());
  ASSERT_TRUE(person.press("Home"));
  const std::string first = person.path();
  ASSERT_GT(person.viewer.alerts().size(), 1U);
  ASSERT_TRUE(person.press("N"));
  const std::string second = person.path();
  EXPECT_NE(second, first);
  EXPECT_EQ(person.viewer.alert_at(), 1);
  EXPECT_TRUE(person.press("Shift+N"));
  EXPECT_EQ(person.path(), first);
  EXPECT_FALSE(person.press("Shift+N"));
  EXPECT_TRUE(person.press("Alt+Right") || person.press("Alt+Left"));
  while (person.press("N")) {
  }
  EXPECT_EQ(person.viewer.alert_at(), static_cast<int>(person.viewer.alerts().size()) - 1);
  EXPECT_TRUE(person.press("Home"));
  EXPECT_EQ(person.path(), first);
}

TEST(Viewer, KeysStepThroughTheIterationsOfALoop) {
  Person person(view_test::loop_fault());
  ASSERT_TRUE(person.viewer.select_path("decode.body[0]//scores"));
  person.viewer.select_element(1);
  ASSERT_TRUE(person.press("Period"));
  EXPECT_EQ(person.path(), "decode.body[1]//scores");
  EXPECT_EQ(person.viewer.tensor().element, 1);  // the selected value stays selected
  EXPECT_TRUE(person.press("Comma"));
  EXPECT_EQ(person.path(), "decode.body[0]//scores");
  EXPECT_FALSE(person.press("Comma"));
}

TEST(Viewer, HistoryGoesBackAndForward) {
  Person person(view_test::llama_fault());
  const std::string first = person.path();
  ASSERT_TRUE(person.press("RightBracket"));
  const std::string second = person.path();
  ASSERT_TRUE(person.press("RightBracket"));
  ASSERT_TRUE(person.press("Alt+Left"));
  EXPECT_EQ(person.path(), second);
  ASSERT_TRUE(person.press("Alt+Left"));
  EXPECT_EQ(person.path(), first);
  EXPECT_FALSE(person.press("Alt+Left"));
  ASSERT_TRUE(person.press("Alt+Right"));
  EXPECT_EQ(person.path(), second);
}

TEST(Viewer, BookmarksAreSetClearedAndVisited) {
  Person person(view_test::llama_fault());
  const std::string marked = person.path();
  ASSERT_TRUE(person.press("Ctrl+B"));
  ASSERT_TRUE(person.press("N"));
  ASSERT_TRUE(person.press("Ctrl+1"));
  EXPECT_EQ(person.path(), marked);
  EXPECT_FALSE(person.press("Ctrl+2"));
  ASSERT_TRUE(person.press("Ctrl+B"));
  EXPECT_TRUE(person.viewer.bookmarks().empty());
}

TEST(Viewer, ProducersAndReadersAreAKeyAway) {
  Person person(view_test::nan_fault());
  ASSERT_TRUE(person.viewer.select_path("y"));
  ASSERT_TRUE(person.press("Ctrl+Up"));
  EXPECT_EQ(person.node(), "shift");
  EXPECT_EQ(person.path(), "c");  // its constant is what differs most there
  ASSERT_TRUE(person.press("Ctrl+Down"));
  EXPECT_EQ(person.path(), "y");
}

TEST(Viewer, ANodeIsSelectedWithWhatItMakesNotWithItsWeight) {
  Person person(view_test::llama_fault());
  const Document& document = *person.viewer.document();
  int weights = 0;
  for (size_t i = 0; i < document.rows.size(); ++i) {
    const ValueComparison* value = document.compared(static_cast<int32_t>(i));
    if (!value->node_reads_it || value->verdict == Verdict::diverged) continue;
    ++weights;
    ASSERT_TRUE(person.viewer.select_item(document.rows[i].item));
    EXPECT_FALSE(document.compared(person.viewer.row())->node_reads_it) << person.path();
  }
  EXPECT_GT(weights, 3);
}

TEST(Viewer, NaNIsFoundAndShownAlone) {
  Person person(view_test::nan_fault());
  person.viewer.set_search("nan");
  ASSERT_EQ(person.viewer.table_rows().size(), 1U);
  ASSERT_TRUE(person.viewer.select_row(person.viewer.table_rows()[0]));
  EXPECT_TRUE(person.viewer.is_hit(person.viewer.item()));
  ASSERT_TRUE(person.press("2"));
  ASSERT_TRUE(person.press("M"));
  EXPECT_TRUE(person.viewer.tensor().filter.specials_only);
  ASSERT_TRUE(person.press("E"));
  EXPECT_EQ(person.shown()["tensor"]["element"]["b"], "nan");
}

TEST(Viewer, TensorKeysMoveTheElementAndChangeTheMeasure) {
  Person person(view_test::nan_fault());
  ASSERT_TRUE(person.viewer.select_path("q"));
  person.viewer.select_element(9);
  EXPECT_TRUE(person.press("Left"));
  EXPECT_EQ(person.viewer.tensor().element, 8);
  EXPECT_FALSE(person.press("Left"));  // the edge
  EXPECT_TRUE(person.press("Down"));
  EXPECT_EQ(person.viewer.tensor().element, 16);
  EXPECT_TRUE(person.press("3"));
  EXPECT_EQ(person.viewer.tensor().mode, TensorMode::difference);
  EXPECT_EQ(person.viewer.tensor().range.low, -person.viewer.tensor().range.high);
  EXPECT_TRUE(person.press("1"));
  person.viewer.tensor().range = {-7, 7};
  person.viewer.tensor().is_auto_range = false;
  EXPECT_TRUE(person.press("A"));
  EXPECT_NE(person.viewer.tensor().range.low, -7);
}

TEST(Viewer, AModelAloneSaysThatItHasNoValues) {
  Person person(std::vector<std::string>{view_test::sample("llama_layer/model.onnx")});
  ASSERT_NE(person.viewer.document(), nullptr);
  ASSERT_TRUE(person.viewer.select_row(3));
  EXPECT_FALSE(person.viewer.tensor().model.has_value());
  EXPECT_NE(person.viewer.tensor().problem.find("run the model"), std::string::npos);
  EXPECT_FALSE(person.press("N"));
  EXPECT_FALSE(person.press("4"));
}

TEST(Viewer, OneDumpShowsItsValuesAndNoComparison) {
  Person person(std::vector<std::string>{view_test::nan_fault().b});
  ASSERT_TRUE(person.viewer.select_path("y"));
  ASSERT_TRUE(person.viewer.tensor().model.has_value());
  EXPECT_FALSE(person.viewer.tensor().model->has_b());
  EXPECT_FALSE(person.press("4"));
  EXPECT_TRUE(person.viewer.alerts().empty());
  EXPECT_NE(person.viewer.inspector().command.find("parallax tensor "), std::string::npos);
}

TEST(Viewer, AValueOfBAloneIsShownAsB) {
  Person person(view_test::plain_values());
  ASSERT_TRUE(person.viewer.select_path("lone"));
  EXPECT_EQ(person.shown()["tensor"]["mode"], "b");
  person.viewer.select_element(2);
  EXPECT_EQ(person.shown()["tensor"]["element"]["b"], "7");
  EXPECT_EQ(person.shown()["tensor"]["element"]["a"], "");
  EXPECT_FALSE(person.press("1"));  // there is no A
}

TEST(Viewer, ACauseWithoutANodeStandsAtItsValueAlone) {
  Person person(view_test::plain_values());
  const Document& document = *person.viewer.document();
  ASSERT_EQ(document.comparison->causes.size(), 1U);
  for (size_t row = 0; row < document.rows.size(); ++row) {
    ASSERT_TRUE(person.viewer.select_row(static_cast<int32_t>(row)));
    bool has_cause = false;
    for (const InspectorSection& section : person.viewer.inspector().sections) {
      for (const InspectorLine& line : section.lines) has_cause = has_cause || line.key == "cause 1";
    }
    EXPECT_EQ(has_cause, document.rows[row].path == "off") << document.rows[row].path;
  }
}

TEST(Viewer, SidesOfTwoShapesAreShownOneByOne) {
  Person person(view_test::plain_values());
  ASSERT_TRUE(person.viewer.select_path("shapes"));
  EXPECT_EQ(person.viewer.tensor().model->rows(), 4);
  ASSERT_TRUE(person.press("2"));
  EXPECT_EQ(person.viewer.tensor().model->rows(), 3);
  EXPECT_FALSE(person.viewer.tensor().problem.empty());  // why there is no difference
  EXPECT_FALSE(person.press("4"));
  ASSERT_TRUE(person.press("1"));
  EXPECT_EQ(person.viewer.tensor().model->rows(), 4);
}

TEST(Viewer, OneDumpAfterTwoHasNoAlertsToShow) {
  Person person(view_test::llama_fault());
  EXPECT_EQ(person.viewer.left_tab, LeftTab::alerts);
  person.viewer.open({view_test::llama_fault().a});
  person.viewer.wait_idle();
  EXPECT_EQ(person.viewer.left_tab, LeftTab::table);
}

TEST(Viewer, SpaceShowsAllAndThenWhatIsSelected) {
  Person person(view_test::llama_fault());
  const float before = person.viewer.graph.camera.zoom;
  ASSERT_TRUE(person.press("Space"));
  EXPECT_LT(person.viewer.graph.camera.zoom, before);
  ASSERT_TRUE(person.press("Space"));
  EXPECT_GE(person.viewer.graph.camera.zoom, before);
}

TEST(Viewer, WhatCannotBeOpenedIsAMessageThatCanBeDismissed) {
  Person person(view_test::nan_fault());
  const std::string before = person.path();
  person.viewer.open({view_test::scratch("nothing.plx")});
  person.viewer.wait_idle();
  ASSERT_EQ(person.viewer.messages.size(), 1U);
  EXPECT_NE(person.viewer.messages[0].find("nothing.plx"), std::string::npos);
  EXPECT_EQ(person.path(), before);  // what was open stays
  EXPECT_TRUE(person.press("Escape"));
  EXPECT_TRUE(person.viewer.messages.empty());
}

TEST(Viewer, AMessageGoesWithWhatIsOpenedAfterIt) {
  Person person(view_test::nan_fault());
  person.viewer.open({view_test::scratch("nothing.plx")});
  person.viewer.wait_idle();
  ASSERT_EQ(person.viewer.messages.size(), 1U);
  person.viewer.open({view_test::llama_fault().a});
  person.viewer.wait_idle();
  EXPECT_TRUE(person.viewer.messages.empty()) << person.viewer.messages.front();
}

TEST(Viewer, ARunFillsTheSameViewAndKeepsItsElements) {
  Viewer viewer(make_executor);
  RunForm form;
  form.model = view_test::sample("llama_layer/model.onnx");
  form.observe_all = true;
  ASSERT_TRUE(viewer.run(form).ok());
  EXPECT_TRUE(viewer.is_busy());
  viewer.wait_idle();
  EXPECT_TRUE(viewer.messages.empty()) << viewer.messages.front();
  ASSERT_NE(viewer.document(), nullptr);
  ASSERT_NE(viewer.document()->comparison, nullptr);
  EXPECT_EQ(viewer.document()->comparison->verdict, OverallVerdict::pass);
  ASSERT_TRUE(viewer.select_row(static_cast<int32_t>(viewer.document()->rows.size()) - 1));
  ASSERT_TRUE(viewer.tensor().model.has_value()) << viewer.tensor().problem;
  EXPECT_TRUE(viewer.tensor().model->has_b());
}

TEST(Viewer, ARunThatCannotBeMadeSaysWhy) {
  Viewer viewer(make_executor);
  RunForm form;
  form.model = view_test::sample("llama_layer/model.onnx");
  form.executor_b = "abacus";
  ASSERT_TRUE(viewer.run(form).ok());
  viewer.wait_idle();
  ASSERT_EQ(viewer.messages.size(), 1U);
  EXPECT_NE(viewer.messages[0].find("abacus"), std::string::npos);
  EXPECT_NE(viewer.document(), nullptr);  // the graph is there all the same
}

TEST(Viewer, WhatWasOpenIsNoPartOfARunThatCannotBegin) {
  Person person(view_test::llama_fault());
  RunForm form;
  form.model = view_test::scratch("nothing.onnx");
  ASSERT_TRUE(person.viewer.run(form).ok());
  person.viewer.wait_idle();
  EXPECT_FALSE(person.viewer.messages.empty());
  ASSERT_NE(person.viewer.document()->comparison, nullptr);  // still there
  EXPECT_FALSE(person.viewer.was_cut_short());
}

TEST(Viewer, AppliesAViewFromItsJsonAndWritesItAgain) {
  Person person(view_test::llama_fault());
  const std::string state =
      R"({"colour_by": "ulp", "search": "op:MatMul", "preset": "tensor", "theme": "light", "mode": "difference", "tab": "table"})";
  ASSERT_TRUE(apply_view(person.viewer, state).ok());
  const auto shown = person.shown();
  EXPECT_EQ(shown["graph"]["colour_by"], "ulp");
  EXPECT_EQ(shown["search"], "op:MatMul");
  EXPECT_EQ(shown["preset"], "tensor");
  EXPECT_EQ(shown["theme"], "light");
  EXPECT_EQ(shown["tensor"]["mode"], "difference");
  EXPECT_EQ(shown["lists"]["row_count"], person.viewer.table_rows().size());
  EXPECT_EQ(shown["selection"]["verdict"], "diverged");
  EXPECT_FALSE(apply_view(person.viewer, R"({"colour_by": "taste"})").ok());
  EXPECT_FALSE(apply_view(person.viewer, R"({"shade": "ulp"})").ok());
  EXPECT_FALSE(apply_view(person.viewer, "no json").ok());
  EXPECT_TRUE(expect_view(person.viewer, "/selection/verdict", "diverged").ok());
  EXPECT_FALSE(expect_view(person.viewer, "/selection/verdict", "pass").ok());
}

TEST(Viewer, TheCommandOfAViewShowsItAgain) {
  Person person(view_test::llama_fault());
  person.viewer.set_tensor_mode(TensorMode::ulp);
  ASSERT_TRUE(person.press("E"));
  ASSERT_TRUE(person.press("Ctrl+Shift+C"));
  const std::string command = person.viewer.clipboard;
  EXPECT_TRUE(command.starts_with("parallax-gui "));
  const size_t state = command.find('{');
  ASSERT_NE(state, std::string::npos);
  Person other(view_test::llama_fault());
  ASSERT_TRUE(other.press("Home"));
  ASSERT_TRUE(apply_view(other.viewer, command.substr(state, command.rfind('}') + 1 - state)).ok());
  EXPECT_EQ(other.path(), person.path());
  EXPECT_EQ(other.viewer.tensor().mode, TensorMode::ulp);
  EXPECT_EQ(other.viewer.tensor().element, person.viewer.tensor().element);
}

TEST(Viewer, IterationsAreChosenForTheWholeGraph) {
  Person person(view_test::loop_fault());
  ASSERT_GT(person.viewer.document()->iterations, 2);
  ASSERT_TRUE(person.viewer.select_path("decode.body[0]//scores"));
  EXPECT_TRUE(person.press("Shift+Period"));
  EXPECT_EQ(person.viewer.graph.iteration(), 0);
  EXPECT_TRUE(person.press("Shift+Period"));
  EXPECT_EQ(person.path(), "decode.body[1]//scores");  // what is selected follows
  EXPECT_TRUE(person.press("Period"));
  EXPECT_EQ(person.viewer.graph.iteration(), 2);  // and the other way round
  EXPECT_TRUE(apply_view(person.viewer, R"({"iteration": -1})").ok());
  EXPECT_FALSE(person.press("Shift+Comma"));
  EXPECT_EQ(person.shown()["graph"]["iteration"], -1);
}

TEST(Viewer, ColoringByTimeMeasuresIt) {
  Person person(std::vector<std::string>{view_test::sample("llama_layer/model.onnx")});
  EXPECT_EQ(person.viewer.graph.color_by(), ColorBy::op);  // errors say nothing of a model alone
  person.viewer.set_color_by(ColorBy::time);
  EXPECT_TRUE(person.viewer.is_busy());
  person.viewer.wait_idle();
  EXPECT_TRUE(person.viewer.messages.empty()) << person.viewer.messages.front();
  EXPECT_GT(person.viewer.graph.summary(0).number, 0);
  EXPECT_NE(person.viewer.document()->times_of.find("cpu"), std::string::npos);
}

TEST(Viewer, SearchHitsAreStepped) {
  Person person(view_test::llama_fault());
  person.viewer.set_search("op:MatMul");
  const auto& hits = person.viewer.table_rows();
  ASSERT_GT(hits.size(), 2U);
  ASSERT_TRUE(person.viewer.select_row(hits.back()));
  EXPECT_TRUE(person.press("Ctrl+J"));
  EXPECT_EQ(person.viewer.row(), hits.front());  // around the end
  EXPECT_TRUE(person.press("Ctrl+J"));
  EXPECT_EQ(person.viewer.row(), hits[1]);
  EXPECT_TRUE(person.press("Ctrl+Shift+J"));
  EXPECT_EQ(person.viewer.row(), hits.front());
  person.viewer.set_search("");
  EXPECT_FALSE(person.press("Ctrl+J"));
}

TEST(Viewer, AnIndexIsGoneTo) {
  Person person(view_test::nan_fault());
  ASSERT_TRUE(person.viewer.select_path("q"));
  EXPECT_TRUE(person.viewer.go_to_index(" [2, 3]").ok());
  EXPECT_EQ(person.viewer.tensor().element, 19);
  EXPECT_FALSE(person.viewer.go_to_index("6,0").ok());
  EXPECT_FALSE(person.viewer.go_to_index("1").ok());
  EXPECT_FALSE(person.viewer.go_to_index("a,b").ok());
  EXPECT_EQ(person.viewer.tensor().element, 19);
}

TEST(Viewer, BookmarksOutliveAReload) {
  Person person(view_test::llama_fault());
  ASSERT_TRUE(person.press("Home"));
  const std::string first = person.path();
  ASSERT_TRUE(person.press("Ctrl+B"));
  ASSERT_TRUE(person.press("N"));
  ASSERT_TRUE(person.press("F5"));
  person.viewer.wait_idle();
  ASSERT_EQ(person.viewer.bookmarks().size(), 1U);
  EXPECT_TRUE(person.press("Ctrl+1"));
  EXPECT_EQ(person.path(), first);
  EXPECT_TRUE(person.press("Ctrl+B"));
  EXPECT_TRUE(person.viewer.bookmarks().empty());
}

TEST(Viewer, EnterOpensTheBlockThatHidesWhatIsSelected) {
  Person person(view_test::loop_fault());
  const int32_t inside = person.viewer.graph.items().find_node("decode.body[*]//", "score_state");
  ASSERT_TRUE(person.viewer.select_item(inside));
  person.viewer.graph.close_all(inside);
  const auto is_drawn = [&] { return person.viewer.graph.scene().box_of_item[static_cast<size_t>(inside)] >= 0; };
  ASSERT_FALSE(is_drawn());
  EXPECT_TRUE(person.press("Enter"));
  EXPECT_TRUE(is_drawn());
}

TEST(Viewer, TheGraphIsExportedAsItIsShown) {
  Person person(view_test::loop_fault());
  const std::string svg = view_test::scratch("graph.svg"), dot = view_test::scratch("graph.dot");
  person.viewer.graph.close_all(-1);
  ASSERT_TRUE(person.viewer.export_to(svg, ExportSubject::graph).ok());
  const std::string closed = *read_file(svg);
  EXPECT_TRUE(closed.starts_with("<svg"));
  EXPECT_NE(closed.find(">decode<"), std::string::npos);
  EXPECT_EQ(closed.find("score_state"), std::string::npos);
  person.viewer.graph.open_all(-1);
  ASSERT_TRUE(person.viewer.export_to(svg, ExportSubject::graph).ok());
  ASSERT_TRUE(person.viewer.export_to(dot, ExportSubject::graph).ok());
  EXPECT_NE((*read_file(svg)).find("score_state"), std::string::npos);
  const std::string text = *read_file(dot);
  EXPECT_NE(text.find("subgraph cluster_"), std::string::npos);
  EXPECT_NE(text.find("score_state"), std::string::npos);
  EXPECT_EQ(std::ranges::count(text, '{'), std::ranges::count(text, '}'));
  EXPECT_FALSE(person.viewer.export_to("graph.bmp", ExportSubject::graph).ok());
  EXPECT_FALSE(person.viewer.export_to(view_test::scratch("no/folder/graph.svg"), ExportSubject::graph).ok());
  Viewer empty;
  EXPECT_FALSE(empty.export_to(svg, ExportSubject::graph).ok());
}

TEST(Commands, HaveUniqueNamesAndKeys) {
  std::set<std::string_view> ids, keys;
  for (const Command& command : commands()) {
    EXPECT_TRUE(ids.insert(command.id).second) << command.id;
    EXPECT_EQ(find_command(command.id), &command);
    std::string_view rest = command.keys;
    while (!rest.empty()) {
      const std::string_view key = rest.substr(0, rest.find(' '));
      EXPECT_TRUE(keys.insert(key).second) << key;
      EXPECT_EQ(command_for_key(key), &command);
      rest.remove_prefix(std::min(rest.size(), key.size() + 1));
    }
  }
  EXPECT_EQ(command_for_key("Ctrl+Alt+Q"), nullptr);
  EXPECT_EQ(command_for_key(""), nullptr);
}

TEST(Commands, AreFoundByTheirWords) {
  const auto found = find_commands("next diverg");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]->id, "go.next_divergence");
  EXPECT_EQ(find_commands("").size(), commands().size());
  EXPECT_TRUE(find_commands("no such thing").empty());
}

// Pressed in any order, with nothing open and with something open, no key does harm.
TEST(Commands, NoneDoesHarmWithoutADocument) {
  Viewer viewer;
  for (const Command& command : commands()) command.run(viewer);
  Person person(view_test::nan_fault());
  for (const Command& command : commands()) {
    if (command.id != "file.close") command.run(person.viewer);
  }
  person.viewer.wait_idle();
  EXPECT_NE(person.viewer.document(), nullptr);
  for (const bool again : {false, true}) {
    person.viewer.close();
    EXPECT_EQ(person.viewer.document(), nullptr);
    for (const Command& command : commands()) command.run(person.viewer);
    EXPECT_EQ(person.viewer.document(), nullptr) << again;
  }
}

}  // namespace
}  // namespace parallax
