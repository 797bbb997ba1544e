// SPDX-License-Identifier: Apache-2.0
// Long rows on the emulated device, in pieces, against the host.
#include "tests/runtime/long_rows.h"

#include "runtime/device/gpu/row_pieces.h"
#include "tests/runtime/emulated/emulated_executor.h"
#include "tests/runtime/emulated/emulation.h"

namespace parallax::long_rows {
namespace {

TEST(GpuLongRows, GiveWhatTheHostGives) {
  const auto executor = tests::make_emulated_executor();
  expect_what_the_host_gives(*executor);
  for (const char* kernel : {"fold_pieces", "fold_column_pieces", "merge_pieces", "scan_parts", "scan_pieces",
                             "run_totals", "run_pieces", "held_rows", "scan_rows"})
    EXPECT_TRUE(runtime::emulation::kernels_run().contains(kernel)) << kernel;
}

// All elements are in one piece, no piece is empty, and rows that keep a device busy are not cut.
TEST(GpuLongRows, AreCutByTheirShapeAlone) {
  using namespace runtime::gpu;
  for (const int64_t length : {int64_t{1}, int64_t{8191}, int64_t{8192}, int64_t{8193}, int64_t{1} << 24,
                               (int64_t{1} << 24) + 1, int64_t{1} << 40}) {
    for (const Pieces& pieces : {row_pieces(1, length), column_pieces(3, length)}) {
      EXPECT_LT((pieces.count - 1) * pieces.length, length) << length;
      EXPECT_GE(pieces.count * pieces.length, length) << length;
      EXPECT_LE(pieces.count, kMostPieces) << length;
    }
  }
  EXPECT_EQ(row_pieces(1, 8191).count, 1);
  EXPECT_EQ(row_pieces(1, 8192).count, 2);
  EXPECT_EQ(row_pieces(1, 8193).count, 3);
  EXPECT_EQ(row_pieces(1, int64_t{1} << 20).count, 256);
  EXPECT_EQ(row_pieces(kFewRows, 1 << 20).count, 1);
  EXPECT_EQ(column_pieces(3, 255).count, 1);
  EXPECT_EQ(column_pieces(3, 256).count, 2);
  EXPECT_EQ(column_pieces(kFewColumns, 1 << 20).count, 1);
}

}  // namespace
}  // namespace parallax::long_rows
