// SPDX-License-Identifier: Apache-2.0
// Documents, search, table and alerts: which values are listed, in which order, with what text.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gui/viewmodel/inspect/view_inspector.h"
#include "gui/viewmodel/view_search.h"
#include "gui/viewmodel/view_table.h"
#include "tests/gui/viewmodel/view_fixture.h"

namespace parallax {
namespace {

using view_test::opened;

std::vector<int32_t> found(const Document& document, std::string_view text) {
  return find_rows(document, SearchQuery::parse(text).take());
}

TEST(ViewDocument, AModelListsWhatItsNodesMake) {
  const auto document = open_document({view_test::sample("llama_layer/model.onnx")}).take();
  EXPECT_FALSE(document->is_pair());
  ASSERT_NE(document->items, nullptr);
  const size_t nodes = document->model->graph.nodes.size();
  EXPECT_GE(document->rows.size(), nodes);
  for (const ValueRow& row : document->rows) EXPECT_GE(row.item, 0) << row.path;
}

TEST(ViewDocument, TwoDumpsJoinRowsEntriesAndItems) {
  const auto document = opened(view_test::llama_fault());
  EXPECT_EQ(document->rows.size(), document->comparison->values.size());
  for (size_t i = 0; i < document->rows.size(); ++i) {
    const ValueRow& row = document->rows[i];
    EXPECT_EQ(document->find_row(row.path), static_cast<int32_t>(i));
    EXPECT_GE(row.entry_a, 0) << row.path;
    EXPECT_EQ(document->a->entries()[static_cast<size_t>(row.entry_a)].path, row.path);
    EXPECT_GE(row.item, 0) << row.path;
  }
}

TEST(ViewDocument, IterationsOfALoopAreOneFamily) {
  const auto document = opened(view_test::loop_fault());
  const int32_t row = document->find_row("decode.body[1]//scores");
  ASSERT_GE(row, 0);
  const auto& family = document->rows_of_family[static_cast<size_t>(document->rows[static_cast<size_t>(row)].family)];
  ASSERT_GT(family.size(), 1U);
  EXPECT_EQ(document->rows[static_cast<size_t>(family[0])].path, "decode.body[0]//scores");
  EXPECT_EQ(family[1], row);
}

TEST(ViewDocument, RefusesWhatCannotBeLaidSideBySide) {
  const std::string model = view_test::sample("llama_layer/model.onnx");
  EXPECT_EQ(open_document({model, view_test::plain_values().a}).error().code, ErrorCode::usage);
  EXPECT_EQ(open_document({}).error().code, ErrorCode::usage);
  EXPECT_EQ(open_document({view_test::scratch("nothing.plx")}).error().code, ErrorCode::io);
}

TEST(ViewSearch, WordsAndConditionsMustAllHold) {
  const auto document = opened(view_test::llama_fault());
  const auto all = found(*document, "");
  EXPECT_EQ(all.size(), document->rows.size());
  const auto products = found(*document, "op:MatMul");
  ASSERT_FALSE(products.empty());
  for (int32_t row : products) EXPECT_EQ(document->rows[static_cast<size_t>(row)].op, "MatMul");
  const auto diverged = found(*document, "diverged");
  EXPECT_EQ(static_cast<int64_t>(diverged.size()), document->comparison->summary.diverged);
  const auto both = found(*document, "op:MatMul diverged");
  EXPECT_LT(both.size(), std::min(products.size(), diverged.size() + 1));
  EXPECT_FALSE(both.empty());
  EXPECT_TRUE(found(*document, "op:MatMul op:Conv").empty());
}

TEST(ViewSearch, FindsWhatIsExplainedByItsReason) {
  const auto document = opened(view_test::llama_fault());
  EXPECT_TRUE(found(*document, "is:explained").empty());
  const auto diverged = found(*document, "is:diverged");
  ASSERT_GT(diverged.size(), 1U);
  Comparison comparison = *document->comparison;
  for (const int32_t row : diverged) {
    ValueComparison& value = comparison.values[static_cast<size_t>(row)];
    value.verdict = Verdict::pass;
    value.accepted = {row == diverged.front() ? "near tie" : "accumulated rounding", "seen"};
  }
  const auto accepted = with_comparison(*document, comparison);
  EXPECT_EQ(found(*accepted, "explained"), diverged);
  EXPECT_EQ(explained_rows(*accepted), diverged);
  EXPECT_EQ(found(*accepted, "is:near-tie"), std::vector<int32_t>{diverged.front()});
  EXPECT_EQ(found(*accepted, "is:rounding").size(), diverged.size() - 1);
  EXPECT_EQ(explained_text(*accepted->comparison),
            fmt::format("{} explained: {} accumulated rounding, 1 near tie", diverged.size(), diverged.size() - 1));
  EXPECT_EQ(SearchQuery::parse("is:wrong").error().code, ErrorCode::usage);
}

TEST(ViewSearch, NumbersCompareWithTheMetrics) {
  const auto document = opened(view_test::llama_fault());
  for (int32_t row : found(*document, "err>1e-3")) EXPECT_GT(document->compared(row)->metrics->max_abs, 1e-3);
  for (int32_t row : found(*document, "sev>1")) EXPECT_EQ(document->compared(row)->verdict, Verdict::diverged);
  EXPECT_FALSE(found(*document, "err>1e-3").empty());
  EXPECT_TRUE(found(*document, "err>1e30").empty());
  EXPECT_EQ(found(*document, "sev<1").size() + found(*document, "sev>1").size() + found(*document, "missing").size(),
            document->rows.size());
}

TEST(ViewSearch, AnEqualSignTakesTheNumberItself) {
  const auto document = opened(view_test::plain_values());
  EXPECT_TRUE(found(*document, "err>1").empty());
  EXPECT_EQ(found(*document, "err>=1").size(), 1U);
  EXPECT_EQ(found(*document, "err<=1").size(), found(*document, "err<1").size() + 1);
}

TEST(ViewSearch, FindsNaNByTheSideThatHasIt) {
  const auto document = opened(view_test::nan_fault());
  const auto rows = found(*document, "nan");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(document->rows[static_cast<size_t>(rows[0])].path, "y");
  EXPECT_TRUE(found(*opened(view_test::llama_fault()), "nan").empty());
}

TEST(ViewSearch, ShapesMatchWholeDimensions) {
  const auto document = opened(view_test::nan_fault());
  EXPECT_FALSE(found(*document, "shape:6x8").empty());
  EXPECT_FALSE(found(*document, "shape:6").empty());
  EXPECT_TRUE(found(*document, "shape:6x").empty());
  EXPECT_TRUE(found(*document, "shape:8").empty());
}

TEST(ViewSearch, ReportsAMalformedNumberAndNamesMayHoldSigns) {
  EXPECT_EQ(SearchQuery::parse("err>much").error().code, ErrorCode::usage);
  EXPECT_TRUE(SearchQuery::parse("a<b").ok());
}

TEST(ViewTable, SortsByNumbersWithEmptyCellsLast) {
  const auto document = opened(view_test::llama_fault());
  const auto rows = sorted_rows(*document, found(*document, ""), {TableColumn::severity, true});
  ASSERT_EQ(rows.size(), document->rows.size());
  bool ended = false;
  double last = INFINITY;
  for (int32_t row : rows) {
    const std::string cell = table_cell(*document, row, TableColumn::severity);
    EXPECT_FALSE(ended && !cell.empty());
    ended = cell.empty();
    if (ended) continue;
    EXPECT_LE(document->compared(row)->severity, last);
    last = document->compared(row)->severity;
  }
}

TEST(ViewTable, SortsByTextAndKeepsExecutionOrderAmongEquals) {
  const auto document = opened(view_test::llama_fault());
  const auto rows = sorted_rows(*document, found(*document, ""), {TableColumn::op, false});
  for (size_t i = 1; i < rows.size(); ++i) {
    const std::string& before = document->rows[static_cast<size_t>(rows[i - 1])].op;
    const std::string& after = document->rows[static_cast<size_t>(rows[i])].op;
    EXPECT_TRUE(before != after || rows[i - 1] < rows[i]);
    EXPECT_TRUE(after.empty() || before <= after) << before << " " << after;
  }
}

TEST(ViewAlerts, BeginWithTheFirstDivergenceInExecutionOrder) {
  const auto document = opened(view_test::llama_fault());
  const auto alerts = make_alerts(*document);
  ASSERT_FALSE(alerts.empty());
  EXPECT_EQ(alerts[0].kind, Alert::Kind::first_divergence);
  EXPECT_EQ(document->rows[static_cast<size_t>(alerts[0].row)].path, document->comparison->first_divergence->path);
  EXPECT_EQ(document->rows[static_cast<size_t>(alerts[0].row)].node, view_test::llama_culprit_node());
  EXPECT_TRUE(std::is_sorted(alerts.begin(), alerts.end(), [](auto& a, auto& b) { return a.row < b.row; }));
  EXPECT_EQ(static_cast<int64_t>(alerts.size()), document->comparison->summary.diverged);
}

TEST(ViewAlerts, SayHowManyNaNEachSideHas) {
  const auto document = opened(view_test::nan_fault());
  const auto alerts = make_alerts(*document);
  const auto y = std::ranges::find_if(
      alerts, [&](const Alert& alert) { return document->rows[static_cast<size_t>(alert.row)].path == "y"; });
  ASSERT_NE(y, alerts.end());
  EXPECT_NE(y->text.find("NaN 0 | "), std::string::npos) << y->text;
}

TEST(ViewInspector, ShowsVerdictLimitStatisticsAndTheCommand) {
  const auto document = opened(view_test::llama_fault());
  const int32_t row = document->find_row(document->comparison->first_divergence->path);
  const InspectorView view = inspect(*document, document->rows[static_cast<size_t>(row)].item, row);
  EXPECT_EQ(view.title, view_test::llama_culprit_node());
  EXPECT_TRUE(view.subtitle.starts_with("MatMul-")) << view.subtitle;
  const auto section = [&](const std::string& title) {
    const auto at = std::ranges::find(view.sections, title, &InspectorSection::title);
    return at == view.sections.end() ? InspectorSection{} : *at;
  };
  EXPECT_EQ(section("Verdict").lines.at(0).a, "diverged");
  EXPECT_EQ(section("Verdict").lines.at(0).kind, InspectorLine::Kind::bad);
  EXPECT_EQ(section("Inputs").lines.size(), 2U);
  EXPECT_EQ(section("Inputs").lines[0].kind, InspectorLine::Kind::link);
  EXPECT_GE(document->find_row(section("Inputs").lines[0].link), 0);
  const auto statistics = section("Statistics");
  ASSERT_GT(statistics.lines.size(), 3U);
  EXPECT_FALSE(statistics.lines[1].a.empty());
  EXPECT_EQ(statistics.lines[1].a, statistics.lines[1].b);  // count
  EXPECT_NE(view.command.find("parallax diff "), std::string::npos);
  EXPECT_NE(view.command.find(document->b->path()), std::string::npos);
}

}  // namespace
}  // namespace parallax
