// SPDX-License-Identifier: Apache-2.0
// TopK, Unique, ScatterElements, NonZero and CumSum on the emulated device against the host, in rows of every length
// that is treated in a way of its own.
#include "tests/runtime/emulated/emulated_executor.h"
#include "tests/runtime/sorting_cases.h"

namespace parallax {
namespace {

TEST(GpuSorting, HasTheHostsBits) {
  const auto emulated = tests::make_emulated_executor();
  for (const auto& each : sorting_cases::sorting_cases(6500, 150)) {
    sorting_cases::expect_same_as_host(*emulated, each);
  }
}

}  // namespace
}  // namespace parallax
