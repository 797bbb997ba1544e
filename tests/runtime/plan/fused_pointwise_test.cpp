// SPDX-License-Identifier: Apache-2.0
// The fused form of pointwise nodes gives the same bits as the nodes themselves, with and without broadcasting.
#include "tests/runtime/plan/pointwise_graphs.h"

namespace parallax::fused_pointwise_test {
namespace {

using pointwise_graphs::node;
using pointwise_graphs::value;

std::unique_ptr<Executor> make_host() { return make_cpu_executor({.poison_buffers = true}); }

TEST(FusedPointwise, Rotary) {
  pointwise_graphs::expect_same_bits_in_all_types(pointwise_graphs::rotations(), make_host);
}

TEST(FusedPointwise, GatedActivation) {
  const std::vector<int64_t> dims{3, 700};
  const std::string ends = value("input", "g", dims) + value("input", "u", dims) + value("output", "y", dims);
  const std::string swish =
      node("Sigmoid", {"g"}, "s") + node("Mul", {"g", "s"}, "a") + node("Mul", {"u", "a"}, "y") + ends;
  const std::string tanh = node("Tanh", {"g"}, "a") + node("Mul", {"u", "a"}, "y") + ends;
  pointwise_graphs::expect_same_bits({"swish", swish, "swiglu", 2, {dims, dims}}, DType::float32, make_host);
  pointwise_graphs::expect_same_bits({"tanh", tanh, "swiglu", 1, {dims, dims}}, DType::float32, make_host);
}

TEST(FusedPointwise, Chain) { pointwise_graphs::expect_same_bits_in_all_types(pointwise_graphs::chains(), make_host); }

}  // namespace
}  // namespace parallax::fused_pointwise_test
