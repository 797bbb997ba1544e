// SPDX-License-Identifier: Apache-2.0
// How batches of products are joined and split for libraries.
#include "runtime/device/gpu/product_batches.h"

#include <gtest/gtest.h>

namespace parallax::runtime {
namespace {

GemmProblem batch_of(const Ints& a_offsets, const Ints& b_offsets) {
  GemmProblem problem;
  problem.m = 2;
  problem.n = 3;
  problem.k = 5;
  problem.a_offsets = a_offsets;
  problem.b_offsets = b_offsets;
  return problem;
}

TEST(ProductBatches, RowsThatShareTheirFactorAreJoined) {
  GemmProblem problem = batch_of({0, 10, 20, 30}, {0, 0, 15, 15});
  const GemmProblem joined = with_joined_rows(problem);
  EXPECT_EQ(joined.m, 4);
  EXPECT_EQ(joined.a_offsets, (Ints{0, 20}));
  EXPECT_EQ(joined.b_offsets, (Ints{0, 15}));
  problem.transpose_a = true;
  EXPECT_EQ(with_joined_rows(problem).m, 2) << "rows of a transposed matrix are columns in memory";
  for (const auto& [a, b] : {std::pair{Ints{0, 10, 20, 31}, Ints{0, 0, 15, 15}},
                             {Ints{0, 10, 20}, Ints{0, 0, 15}},
                             {Ints{0, 10, 20, 30}, Ints{0, 0, 15, 30}},
                             {Ints{0, 10}, Ints{0, 15}}}) {
    EXPECT_EQ(with_joined_rows(batch_of(a, b)).m, 2);
  }
}

TEST(ProductBatches, AreCutWhereTheirDistanceChanges) {
  const auto found = even_batches(batch_of({0, 10, 20, 25, 5, 5}, {0, 15, 30, 30, 0, 0}));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].count, 3);
  EXPECT_EQ(found[0].a_distance, 10);
  EXPECT_EQ(found[0].b_distance, 15);
  EXPECT_EQ(found[1].first, 3);
  EXPECT_EQ(found[1].count, 1);
  EXPECT_EQ(found[2].first, 4);
  EXPECT_EQ(found[2].count, 2);
  EXPECT_EQ(found[2].a_distance, 0);
  EXPECT_EQ(even_batches(batch_of({0}, {0})).size(), 1U);
}

}  // namespace
}  // namespace parallax::runtime
