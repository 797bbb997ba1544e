// SPDX-License-Identifier: Apache-2.0
// Changes of a comparison by a diagnosis: verdicts and the conclusion, and no limit of what it accepts.
#include "inspector/diff/compare/apply_diagnosis.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "inspector/diff/matching/unmatch.h"

namespace parallax {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ValueComparison compared(const std::string& path, Verdict verdict, double severity) {
  ValueComparison value;
  value.path = value.a = path;
  value.b = path + "_in_b";
  value.dtype = "float32";
  value.shape = {2};
  value.node = "node_" + path;
  value.verdict = verdict;
  value.severity = severity;
  value.limit = {1e-6, 1e-7, LimitSource::table};
  value.metrics.emplace();
  value.metrics->max_abs = 0.5;
  return value;
}

Comparison of_two(double severity) {
  Comparison comparison;
  comparison.values = {compared("x", Verdict::pass, 0.25), compared("y", Verdict::diverged, severity)};
  conclude(comparison);
  return comparison;
}

TEST(ApplyDiagnosis, AcceptedValueKeepsLimitAndSeverity) {
  for (const double severity : {8.0, kInfinity}) {
    Diagnosis diagnosis;
    diagnosis.accepted_as_rounding = {{"y", {"near tie", "scores differ by 1 ULP"}}};
    const Comparison comparison = applied(diagnosis, of_two(severity));
    EXPECT_EQ(comparison.verdict, OverallVerdict::pass);
    EXPECT_FALSE(comparison.first_divergence.has_value());
    const ValueComparison& value = comparison.values[1];
    EXPECT_EQ(value.verdict, Verdict::pass);
    ASSERT_TRUE(value.accepted.has_value());
    EXPECT_EQ(value.accepted->reason, "near tie");
    EXPECT_EQ(value.reason, "near tie: scores differ by 1 ULP");
    EXPECT_EQ(reason_text(value), "accepted as near tie: scores differ by 1 ULP");
    EXPECT_EQ(value.severity, severity);
    EXPECT_EQ(judged_severity(value), 1);
    EXPECT_EQ(value.limit.from, LimitSource::table);
    EXPECT_EQ(value.limit.rtol, 1e-6);
    EXPECT_EQ(value.limit.atol, 1e-7);
  }
}

// A rule of the user for one value leaves the others to be judged as before.
TEST(ApplyDiagnosis, RoundingExcusesNoLimitOfTheUser) {
  for (const size_t of_user : {size_t{0}, size_t{1}}) {
    Comparison comparison = of_two(8);
    comparison.values[of_user].limit.from = LimitSource::user;
    EXPECT_EQ(may_accept(comparison), of_user == 0);
  }
}

TEST(ApplyDiagnosis, OnlyWhatDivergedIsAccepted) {
  Diagnosis diagnosis;
  diagnosis.accepted_as_rounding = {{"x", {"near tie", "scores differ by 1 ULP"}}};
  const Comparison comparison = applied(diagnosis, of_two(8));
  EXPECT_FALSE(comparison.values[0].accepted.has_value());
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
}

TEST(ApplyDiagnosis, UnmatchedValuesStandForThemselves) {
  Comparison comparison = of_two(8);
  Diagnosis diagnosis;
  diagnosis.unmatched = {{"y", std::string(kPairedWrongly)}};
  const Comparison unsplit = applied(diagnosis, comparison);
  EXPECT_EQ(unsplit.verdict, OverallVerdict::pass);
  EXPECT_EQ(unsplit.values.size(), 2U);
  ValueComparison in_b = counterpart_in_b(comparison.values[1]);
  in_b.node = "node_in_b";
  diagnosis.unmatched.front().in_b = in_b;
  apply(diagnosis, comparison);
  ASSERT_EQ(comparison.values.size(), 3U);
  EXPECT_EQ(comparison.values[1].verdict, Verdict::not_compared);
  EXPECT_EQ(comparison.values[1].b, "");
  EXPECT_EQ(comparison.values[1].note, kPairedWrongly);
  EXPECT_EQ(comparison.values[2].path, "y_in_b");
  EXPECT_EQ(comparison.values[2].node, "node_in_b");
  EXPECT_EQ(comparison.values[2].reason, "absent in A");
  EXPECT_EQ(comparison.summary.not_compared, 2);
}

TEST(ApplyDiagnosis, RecheckedValueDivergesEvenWhereItWasAccepted) {
  Diagnosis diagnosis;
  diagnosis.accepted_as_rounding = {{"y", {"accumulated rounding", "every node is right on its own inputs"}}};
  diagnosis.rechecked = {{"x", 3, {1e-8, 0, LimitSource::table}}, {"y", 5, {1e-9, 0, LimitSource::table}}};
  const Comparison comparison = applied(diagnosis, of_two(8));
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
  EXPECT_EQ(comparison.summary.diverged, 2);
  EXPECT_EQ(comparison.first_divergence->path, "x");
  EXPECT_EQ(comparison.values[0].severity, 3);
  EXPECT_EQ(comparison.values[0].limit.rtol, 1e-8);
  EXPECT_FALSE(comparison.values[1].accepted.has_value());
  EXPECT_EQ(comparison.values[1].reason, "");
  EXPECT_EQ(comparison.values[1].limit.rtol, 1e-9);
}

TEST(ConcludeSum, FirstDivergenceThenReasonThenCounts) {
  Comparison sum;
  conclude_sum(sum);
  EXPECT_EQ(sum.verdict, OverallVerdict::inconclusive);
  EXPECT_EQ(sum.reason, "nothing was compared");
  sum.reason.clear();
  sum.summary.compared = 1;
  conclude_sum(sum);
  EXPECT_EQ(sum.verdict, OverallVerdict::pass);
  sum.reason = "graph output 'y' was not compared";
  conclude_sum(sum);
  EXPECT_EQ(sum.verdict, OverallVerdict::inconclusive);
  sum.first_divergence = {"step[1]//y", "node_y", "Add"};
  conclude_sum(sum);
  EXPECT_EQ(sum.verdict, OverallVerdict::diverged);
}

}  // namespace
}  // namespace parallax
