// SPDX-License-Identifier: Apache-2.0
// Verdicts as a person meets them: the worst value, values that are explained, several runs against one baseline.
#include <algorithm>

#include <gtest/gtest.h>

#include "gui/viewmodel/viewer.h"
#include "tests/gui/viewmodel/person.h"

namespace parallax {
namespace {

using view_test::Dumps;
using view_test::Person;

// Live values diverge before the search for causes explains them.
TEST(Viewer, WhatIsExplainedLeavesTheAlertsForAListAndAColorOfItsOwn) {
  Person person(view_test::llama_fault());
  Viewer& viewer = person.viewer;
  const size_t diverged = viewer.alerts().size();
  const int32_t item = viewer.item();
  ASSERT_GE(item, 0);
  const Color of_divergence = viewer.graph.look(item).fill;
  Comparison comparison = *viewer.document()->comparison;
  for (ValueComparison& value : comparison.values) {
    if (value.verdict != Verdict::diverged) continue;
    value.verdict = Verdict::pass;
    value.accepted = {"near tie", "scores differ by 1 ULP"};
  }
  comparison.causes.clear();
  conclude(comparison);
  viewer.show(with_comparison(*viewer.document(), comparison));
  EXPECT_TRUE(viewer.alerts().empty());
  EXPECT_EQ(viewer.explained().size(), diverged);
  EXPECT_EQ(viewer.left_tab, LeftTab::explained);
  EXPECT_EQ(person.shown()["lists"]["explained_count"], diverged);
  const ItemLook look = viewer.graph.look(viewer.item());
  EXPECT_FALSE(look.is_neutral);
  EXPECT_NE(look.fill, of_divergence);
  EXPECT_EQ(look.fill, viewer.graph.look(0).fill);  // a block around it likewise
  EXPECT_EQ(look.badge, "near tie");
  const auto legend = viewer.graph.legend();
  EXPECT_TRUE(std::ranges::any_of(legend, [&](const LegendEntry& entry) {
    return entry.fill == look.fill && entry.text.find("explained") != std::string::npos;
  }));
}

TEST(Viewer, DumpsOfDifferentModelsSaySoInABanner) {
  Person person(std::vector<std::string>{view_test::nan_fault().a, view_test::llama_fault().a});
  const auto& messages = person.viewer.messages;
  EXPECT_TRUE(std::ranges::any_of(messages, [](const std::string& message) {
    return message.starts_with("A and B are of different models: ") &&
           message.find("could be compared") != std::string::npos;
  }));
  Person alike(view_test::llama_fault());  // of two models as well, that share all values
  EXPECT_TRUE(alike.viewer.messages.empty());
}

TEST(Viewer, TheWorstValueHasTheLargestErrorOverLimit) {
  Person person(view_test::llama_fault());
  ASSERT_TRUE(person.press("W"));
  const ValueComparison& worst = *person.viewer.document()->compared(person.viewer.row());
  for (const ValueComparison& value : person.viewer.document()->comparison->values)
    EXPECT_GE(worst.severity, value.severity) << value.path;
}

TEST(Viewer, AValueThatPassesOpensAtTheSliceOfItsWorstElement) {
  Person person(view_test::llama_fault());
  Comparison comparison = *person.viewer.document()->comparison;
  for (ValueComparison& value : comparison.values) {
    value.severity = std::min(value.severity, 0.5);
    if (value.verdict == Verdict::diverged) value.verdict = Verdict::pass;
  }
  conclude(comparison);
  person.viewer.show(with_comparison(*person.viewer.document(), comparison));
  int in_later_slices = 0;
  for (size_t i = 0; i < comparison.values.size(); ++i) {
    const ValueComparison& value = comparison.values[i];
    if (value.shape.size() < 3 || !(value.severity > 0)) continue;
    ASSERT_TRUE(person.viewer.select_row(static_cast<int32_t>(i)));
    const TensorModel& model = *person.viewer.tensor().model;
    EXPECT_EQ(model.worst(TensorMode::absolute, 1).front(), model.element_of(value.metrics->worst_index)) << value.path;
    in_later_slices += model.slice_text().find_first_of("123456789") != std::string::npos;
  }
  EXPECT_GT(in_later_slices, 0);
}

TEST(Viewer, AMistrustedValueIsNeverTheWorst) {
  const auto document = view_test::opened(view_test::plain_values());
  Comparison comparison = *document->comparison;
  for (ValueComparison& value : comparison.values) {
    value.severity = value.path == "off" ? 0.5 : 0;
    if (value.verdict != Verdict::not_compared)
      value.verdict = value.path == "off" ? Verdict::pass : Verdict::mistrusted;
  }
  conclude(comparison);
  Person person(view_test::plain_values());
  person.viewer.close();
  person.viewer.show(with_comparison(*document, comparison));
  person.press("LeftBracket");
  ASSERT_TRUE(person.press("W"));
  EXPECT_EQ(person.path(), "off");
  for (ValueComparison& value : comparison.values) value.severity = 0;
  person.viewer.show(with_comparison(*document, comparison));
  EXPECT_FALSE(person.press("W"));
  EXPECT_EQ(obstacle_to(person.viewer, *find_command("go.worst_value")), "no value differs");
}

TEST(Viewer, OfSeveralRunsKeysChooseTheOneNextToTheBaseline) {
  const Dumps& fault = view_test::llama_fault();
  Person person(std::vector<std::string>{fault.a, fault.b, fault.a, view_test::scratch("nothing.plx")});
  Viewer& viewer = person.viewer;
  ASSERT_EQ(viewer.other_runs().size(), 3U);
  EXPECT_EQ(viewer.shown_run(), 0);
  EXPECT_EQ(viewer.other_runs()[0].document->comparison->verdict, OverallVerdict::diverged);
  EXPECT_FALSE(viewer.other_runs()[0].document->comparison->causes.empty());
  EXPECT_EQ(viewer.other_runs()[1].document->comparison->verdict, OverallVerdict::pass);
  EXPECT_EQ(viewer.other_runs()[2].document, nullptr);
  EXPECT_EQ(viewer.messages.size(), 1U);  // that the last cannot be opened
  const std::string path = person.path();
  const int64_t element = viewer.tensor().element;
  ASSERT_TRUE(person.press("Alt+2"));
  viewer.wait_idle();
  EXPECT_EQ(viewer.document()->files, (std::vector<std::string>{fault.a, fault.a}));
  EXPECT_EQ(person.path(), path);
  EXPECT_EQ(viewer.tensor().element, element);
  EXPECT_TRUE(viewer.alerts().empty());
  ASSERT_TRUE(person.press("Alt+1"));
  EXPECT_EQ(viewer.document()->files, (std::vector<std::string>{fault.a, fault.b}));
  EXPECT_FALSE(viewer.alerts().empty());
  EXPECT_FALSE(person.press("Alt+4"));
  EXPECT_EQ(person.shown()["runs"].size(), 3U);
  EXPECT_EQ(person.shown()["run"], 1);
  viewer.open({fault.a, fault.b});
  viewer.wait_idle();
  EXPECT_TRUE(viewer.other_runs().empty());
}

TEST(Viewer, TheNodesOfDumpsAreTimedByRunningTheirModel) {
  Person person(view_test::llama_fault());
  ASSERT_TRUE(find_command("graph.measure_times")->run(person.viewer));
  person.viewer.wait_idle();
  EXPECT_TRUE(person.viewer.messages.empty()) << person.viewer.messages.front();
  EXPECT_FALSE(person.viewer.document()->ms_of_item.empty());
  EXPECT_EQ(person.viewer.document()->times_of, "reference, mean of 3 runs");
}

}  // namespace
}  // namespace parallax
