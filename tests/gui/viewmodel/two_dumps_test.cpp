// SPDX-License-Identifier: Apache-2.0
// Dumps of two models next to each other: values are paired as the comparison of the dumps pairs them, errors color
// both graphs, and dumps that are not of their models are refused.
#include <algorithm>
#include <atomic>
#include <future>

#include <gtest/gtest.h>

#include "inspector/base/mapped_file.h"
#include "inspector/workbench/open.h"
#include "tests/gui/viewmodel/person.h"

namespace parallax {
namespace {

using view_test::item_in;
using view_test::Person;
using view_test::scratch;
using view_test::two_graphs;

std::vector<std::string> models_and_dumps() {
  const auto& [models, dumps] = two_graphs();
  return {models.a, models.b, dumps.a, dumps.b};
}

void expect_values_of_both(Person& person) {
  const Viewer& viewer = person.viewer;
  ASSERT_NE(viewer.models(), nullptr);
  ASSERT_NE(viewer.document()->comparison, nullptr);
  const Comparison& shown = *viewer.document()->comparison;
  const Comparison diff = compare_files(two_graphs().dumps.a, two_graphs().dumps.b, {})->comparison;
  EXPECT_EQ(shown.verdict, OverallVerdict::diverged);
  EXPECT_EQ(shown.summary.diverged, diff.summary.diverged);
  EXPECT_EQ(shown.first_divergence->path, diff.first_divergence->path);
  EXPECT_EQ(person.path(), "q");
  EXPECT_EQ(viewer.item(), item_in(*viewer.document(), "soft"));
  EXPECT_EQ(viewer.item_b(), item_in(*viewer.models()->b, "soft"));
  EXPECT_EQ(viewer.graph.color_by(), ColorBy::severity);
  EXPECT_EQ(viewer.graph_b.color_by(), ColorBy::severity);
  EXPECT_EQ(viewer.left_tab, LeftTab::alerts);
  const ItemLook a = viewer.graph.look(viewer.item()), b = viewer.graph_b.look(viewer.item_b());
  EXPECT_TRUE(a.is_bad);
  EXPECT_EQ(a.badge, b.badge);
  EXPECT_EQ(a.fill, b.fill);
  EXPECT_TRUE(viewer.graph_b.look(item_in(*viewer.models()->b, "scale")).is_neutral);
  const TensorPane& pane = viewer.tensor();
  ASSERT_TRUE(pane.model.has_value()) << pane.problem;
  ASSERT_TRUE(pane.model->has_b());
  EXPECT_EQ(pane.model->number(TensorMode::difference, 1),
            pane.model->number(TensorMode::a, 1) - pane.model->number(TensorMode::b, 1));
}

TEST(TwoDumps, OfModelsWhoseGraphsDifferAreShownNextToEachOther) {
  Person person(two_graphs().dumps);
  expect_values_of_both(person);
  EXPECT_EQ(person.viewer.inspector().command, "parallax diff " + two_graphs().dumps.a + " " + two_graphs().dumps.b);
}

TEST(TwoDumps, WithTheirModelsAreTheSameView) {
  Person person(models_and_dumps());
  expect_values_of_both(person);
  EXPECT_EQ(person.viewer.run_form.against, two_graphs().models.b);
  EXPECT_EQ(person.viewer.document()->title(), "A: fork_a.textproto    B: fork_b.textproto");
  person.viewer.reload();
  person.viewer.wait_idle();
  expect_values_of_both(person);
}

TEST(TwoDumps, ARunOfTwoModelsKeepsBothGraphs) {
  Person person(std::vector<std::string>{two_graphs().models.a, two_graphs().models.b});
  ASSERT_EQ(person.viewer.graph.color_by(), ColorBy::structure);
  RunForm form = person.viewer.run_form;
  form.executor_a = form.executor_b = "reference";
  ASSERT_TRUE(person.viewer.run(form).ok());
  person.viewer.wait_idle();
  expect_values_of_both(person);
}

// The run begins when its executors are made.
TEST(TwoDumps, TheProgressOfARunIsNotThatOfTheComparisonOfItsModels) {
  RunRequest request;
  request.model = two_graphs().models.a;
  request.against = two_graphs().models.b;
  request.executors = {"reference", "reference"};
  std::promise<const DocumentJob*> started;
  std::shared_future<const DocumentJob*> job = started.get_future().share();
  std::atomic<int64_t> total{-1};
  const auto make = [&](const std::string& name) {
    int64_t unknown = -1;
    total.compare_exchange_strong(unknown, job.get()->total());  // the search for causes makes executors again
    return make_executor(name);
  };
  const auto running = DocumentJob::run(request, "", make);
  started.set_value(running.get());
  running->wait();
  EXPECT_EQ(total, 0);
  EXPECT_GT(running->total(), 0);
}

TEST(TwoDumps, ValuesAreCounterpartsUnderTheirOwnNames) {
  Person person(two_graphs().dumps);
  ASSERT_TRUE(person.viewer.select_path("p"));
  const ValueRow& row = person.viewer.document()->rows[static_cast<size_t>(person.viewer.row())];
  ASSERT_GE(row.row_b, 0);
  EXPECT_EQ(person.viewer.models()->b->rows[static_cast<size_t>(row.row_b)].path, "p_in_b");
  const InspectorView& view = person.viewer.inspector();
  const auto value = std::ranges::find(view.sections, "Value", &InspectorSection::title);
  ASSERT_NE(value, view.sections.end());
  const auto path = std::ranges::find(value->lines, "path", &InspectorLine::key);
  ASSERT_NE(path, value->lines.end());
  EXPECT_EQ(path->a, "p");
  EXPECT_EQ(path->b, "p_in_b");
  const auto verdict = std::ranges::find(view.sections, "Verdict", &InspectorSection::title);
  ASSERT_NE(verdict, view.sections.end());
  EXPECT_TRUE(std::ranges::all_of(verdict->lines, [](const InspectorLine& line) { return line.b.empty(); }));
  EXPECT_EQ(std::ranges::count(view.sections, "Statistics", &InspectorSection::title), 1);
}

TEST(TwoDumps, AValueThatBAloneHasIsShownOnItsSide) {
  Person person(two_graphs().dumps);
  const Document& b = *person.viewer.models()->b;
  ASSERT_TRUE(person.viewer.select_item_b(item_in(b, "late")));
  EXPECT_EQ(person.path(), "z");
  EXPECT_EQ(person.viewer.item(), -1);
  EXPECT_EQ(person.viewer.tensor().mode, TensorMode::b);
  ASSERT_TRUE(person.viewer.tensor().model.has_value()) << person.viewer.tensor().problem;
  EXPECT_EQ(person.viewer.tensor().axis_names, (std::vector<std::string>{"rows", ""}));
  ASSERT_TRUE(person.viewer.select_path("q"));
  ASSERT_TRUE(person.viewer.select_path_in_b("z"));
  EXPECT_EQ(person.viewer.item_b(), item_in(b, "late"));
}

TEST(TwoDumps, NWalksDivergencesAndInTheListOfDifferencesThose) {
  Person person(two_graphs().dumps);
  ASSERT_TRUE(person.press("N"));
  EXPECT_EQ(person.viewer.document()->compared(person.viewer.row())->verdict, Verdict::diverged);
  EXPECT_NE(person.path(), "q");
  person.viewer.left_tab = LeftTab::differences;
  ASSERT_TRUE(person.press("Home"));
  EXPECT_EQ(person.viewer.difference_at(), 0);
  ASSERT_TRUE(person.press("N"));
  EXPECT_EQ(person.viewer.difference_at(), 1);
}

TEST(TwoDumps, OfModelsThatDifferInConstantsAloneShareOneDrawing) {
  Person person(view_test::llama_fault());
  EXPECT_EQ(person.viewer.models(), nullptr);
  EXPECT_EQ(person.viewer.document()->comparison->verdict, OverallVerdict::diverged);
}

TEST(TwoDumps, OfOtherModelsAreRefusedWithOneSentence) {
  const auto& [models, dumps] = two_graphs();
  const auto problem_of = [](const std::vector<std::string>& files) {
    const auto opened = open_document(files);
    return opened.ok() ? std::string() : opened.error().message;
  };
  EXPECT_NE(problem_of({models.a, models.b, dumps.b, dumps.a}).find("in the order of their models"), std::string::npos);
  const std::string other = problem_of({models.a, models.b, dumps.a, view_test::nan_fault().b});
  EXPECT_NE(other.find("is a dump of"), std::string::npos) << other;
  EXPECT_NE(other.find("'" + models.b + "'"), std::string::npos) << other;
  const std::string foreign = problem_of({models.a, models.b, view_test::plain_values().a, dumps.b});
  EXPECT_NE(foreign.find("holds no value of '" + models.a + "'"), std::string::npos) << foreign;
  EXPECT_NE(problem_of({models.a, models.b, dumps.a}).find("2 of the 3 files are models"), std::string::npos);
  EXPECT_EQ(problem_of({models.a, dumps.a, models.b, dumps.b}), "");  // in any order of the kinds
}

TEST(TwoDumps, TheComparisonOfTwoModelsTellsItsProgressAndIsCancelled) {
  const auto& models = two_graphs().models;
  StructureOptions options;
  int64_t last = 0, whole = 0;
  options.progress = [&](int64_t done, int64_t total) {
    EXPECT_EQ(done, last + 1);
    last = done;
    whole = total;
  };
  ASSERT_TRUE(open_document({models.a, models.b}, options).ok());
  EXPECT_EQ(last, whole);
  EXPECT_GT(whole, 0);
  for (const int64_t at : {int64_t{1}, whole / 2, whole - 1}) {
    CancelToken cancel;
    options.cancel = cancel;
    options.progress = [&](int64_t done, int64_t) {
      if (done == at) cancel.cancel();
    };
    const auto opened = open_document({models.a, models.b}, options);
    ASSERT_FALSE(opened.ok()) << at;
    EXPECT_EQ(opened.error().code, ErrorCode::cancelled);
    EXPECT_EQ(opened.error().message, "the comparison of the two models was cancelled");
  }
}

TEST(TwoDumps, AKeptViewHoldsBothCameras) {
  Person person(models_and_dumps());
  ASSERT_TRUE(person.viewer.select_path_in_b("z"));
  person.viewer.graph_b.zoom_at(100, 100, 1.5F);
  person.viewer.graph.move(40, 0);
  const std::string kept = session_to_json(person.viewer);
  ASSERT_EQ(files_of_view(kept).size(), 4U);
  Person other(files_of_view(kept));
  ASSERT_NE(other.viewer.models(), nullptr);
  const Status applied = apply_view(other.viewer, kept);
  ASSERT_TRUE(applied.ok()) << applied.error().message;
  EXPECT_EQ(other.path(), "z");
  EXPECT_EQ(other.viewer.item_b(), person.viewer.item_b());
  EXPECT_EQ(other.viewer.graph_b.camera.zoom, person.viewer.graph_b.camera.zoom);
  EXPECT_EQ(other.viewer.graph_b.camera.x, person.viewer.graph_b.camera.x);
  EXPECT_EQ(other.viewer.graph.camera.x, person.viewer.graph.camera.x);
  EXPECT_EQ(session_to_json(other.viewer), kept);
}

TEST(TwoDumps, BothGraphsAreExported) {
  Person person(two_graphs().dumps);
  const std::string svg = scratch("fork.svg"), dot = scratch("fork.dot");
  ASSERT_TRUE(person.viewer.export_to(svg, ExportSubject::graph).ok());
  ASSERT_TRUE(person.viewer.export_to(dot, ExportSubject::graph).ok());
  const std::string drawn = *read_file(svg), text = *read_file(dot);
  const int32_t soft = person.viewer.item(), soft_b = person.viewer.item_b(),
                late = item_in(*person.viewer.models()->b, "late");
  const auto holds = [](const std::string& whole, const std::string& part) {
    return whole.find(part) != std::string::npos;
  };
  const std::string a = std::to_string(soft), b = std::to_string(soft_b), alone = std::to_string(late);
  EXPECT_TRUE(holds(drawn, "<a id=\"a" + a + "\" href=\"#b" + b + "\">"));
  EXPECT_TRUE(holds(drawn, "<a id=\"b" + b + "\" href=\"#a" + a + "\">"));
  EXPECT_TRUE(holds(drawn, "<g id=\"b" + alone + "\">"));
  EXPECT_TRUE(holds(drawn, "B-reference.plx of " + two_graphs().models.b));
  EXPECT_TRUE(holds(text, "subgraph cluster_a"));
  EXPECT_TRUE(holds(text, "a" + a + " -> b" + b + " [style=dotted"));
  EXPECT_TRUE(holds(text, "b" + alone + " [label=\"Neg"));
}

TEST(TwoDumps, ObstaclesSayThatValuesAreStillCompared) {
  Person person(two_graphs().dumps);
  person.viewer.show(*open_document({two_graphs().dumps.a, two_graphs().dumps.b}));
  const Command& worst = *find_command("go.worst_value");
  EXPECT_EQ(obstacle_to(person.viewer, worst), "the values were not compared; reload (F5)");
  person.viewer.reload();
  EXPECT_EQ(obstacle_to(person.viewer, worst), "the values are still being compared");
  person.viewer.wait_idle();
  EXPECT_EQ(obstacle_to(person.viewer, worst), "");
}

}  // namespace
}  // namespace parallax
