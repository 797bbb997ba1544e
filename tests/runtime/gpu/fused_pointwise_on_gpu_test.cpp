// SPDX-License-Identifier: Apache-2.0
// Fused pointwise nodes of GPU devices, on the emulated one: the bits of the nodes themselves, in all narrow types,
// with broadcasting, odd counts, rows that fill no group, and replays.
#include "tests/runtime/emulated/emulated_executor.h"
#include "tests/runtime/plan/pointwise_graphs.h"

namespace parallax::fused_pointwise_on_gpu_test {
namespace {

std::unique_ptr<Executor> make_emulated() { return tests::make_emulated_executor(); }

TEST(FusedPointwiseOnGpu, Rotary) {
  pointwise_graphs::expect_same_bits_in_all_types(pointwise_graphs::rotations(), make_emulated);
}
TEST(FusedPointwiseOnGpu, Chain) {
  pointwise_graphs::expect_same_bits_in_all_types(pointwise_graphs::chains(), make_emulated);
}

}  // namespace
}  // namespace parallax::fused_pointwise_on_gpu_test
