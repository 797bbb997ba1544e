// SPDX-License-Identifier: Apache-2.0
// A value that is an input of a later call carries the difference that was found where it was computed.
#include "inspector/diff/compare/carried_errors.h"

#include <gtest/gtest.h>

namespace parallax {
namespace {

DumpEntry entry_of(ValueInfo::Role role, double projection) {
  DumpEntry entry;
  entry.role = role;
  entry.is_graph_output = role == ValueInfo::Role::node_output;
  entry.type = TypeInfo::tensor(DType::float32);
  entry.statistics = TensorStatistics{};
  entry.statistics->count = 6;
  entry.statistics->l2 = 4;
  entry.statistics->projections[0] = projection;
  return entry;
}

ValueComparison compared(Verdict verdict, double rmse, double max_abs) {
  ValueComparison value;
  value.verdict = verdict;
  value.metrics = Metrics{};
  value.metrics->rmse = rmse;
  value.metrics->max_abs = max_abs;
  return value;
}

TEST(CarriedErrors, AnInputThatIsAnEarlierValueCarriesItsDifference) {
  diff::CarriedErrors carried;
  carried.remember(entry_of(ValueInfo::Role::node_output, 0.5), compared(Verdict::pass, 1e-6, 2e-6));
  EXPECT_DOUBLE_EQ(carried.error_of(entry_of(ValueInfo::Role::input, 0.5)), 2e-6);
  EXPECT_EQ(carried.error_of(entry_of(ValueInfo::Role::input, 0.25)), 0) << "another value of the same norm";
  EXPECT_EQ(carried.error_of(entry_of(ValueInfo::Role::node_output, 0.5)), 0) << "no input";
}

TEST(CarriedErrors, TheLargestElementCountsWhereFewDiffer) {
  diff::CarriedErrors carried;
  carried.remember(entry_of(ValueInfo::Role::node_output, 0.5), compared(Verdict::pass, 1e-6, 4e-5));
  EXPECT_DOUBLE_EQ(carried.error_of(entry_of(ValueInfo::Role::input, 0.5)), 1e-5);
}

TEST(CarriedErrors, AValueThatDivergedExcusesNothing) {
  diff::CarriedErrors carried;
  carried.remember(entry_of(ValueInfo::Role::node_output, 0.5), compared(Verdict::diverged, 1, 1));
  EXPECT_EQ(carried.error_of(entry_of(ValueInfo::Role::input, 0.5)), 0);
}

}  // namespace
}  // namespace parallax
