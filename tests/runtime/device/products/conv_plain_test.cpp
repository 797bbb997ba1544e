// SPDX-License-Identifier: Apache-2.0
// Convolutions on row-major planes against the plain loops, in double, over sizes that leave ragged edges.
#include "runtime/device/cpu/products/conv_plain.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/products/conv_loops.h"

namespace parallax::runtime {
namespace {

std::vector<float> numbers(int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> draw(-1.0F, 1.0F);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = draw(engine);
  return values;
}

ConvProblem problem_of(int64_t channels, int64_t height, int64_t width, int64_t size, int64_t step, int64_t pad) {
  ConvProblem problem;
  problem.batch = 2;
  problem.in_channels = problem.out_channels = problem.groups = channels;
  problem.in_spatial = {height, width};
  problem.kernel = {size, size};
  problem.strides = {step, step};
  problem.dilations = {1, 1};
  problem.pads_begin = {pad, pad};
  problem.pads_end = {pad, pad};
  problem.out_spatial = {(height + 2 * pad - size) / step + 1, (width + 2 * pad - size) / step + 1};
  return problem;
}

int64_t elements(const Ints& spatial, int64_t planes) { return product(spatial) * planes; }

// The largest difference from the loops in double.
double worst_difference(const ConvProblem& problem, const std::vector<float>& y, const std::vector<float>& x,
                        const std::vector<float>& filters, const std::vector<float>& bias) {
  const std::vector<double> wide_x(x.begin(), x.end()), wide_filters(filters.begin(), filters.end()),
      wide_bias(bias.begin(), bias.end());
  std::vector<double> expected(y.size());
  conv_loops(problem, wide_x.data(), wide_filters.data(), wide_bias.data(), expected.data());
  double worst = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    double value = expected[i];
    if (problem.activation.kind == Activation::Kind::relu && value < 0) value = 0;
    worst = std::fmax(worst, std::fabs(value - static_cast<double>(y[i])));
  }
  return worst;
}

TEST(ConvWithSigmoid, KeepsTheTail) {
  Queue<Cpu> queue(BufferPool::create({}));
  ConvProblem problem = problem_of(16, 5, 6, 1, 1, 0);
  problem.groups = 1;
  problem.filters_are_constant = problem.y_channels_last = true;
  problem.activation.kind = Activation::Kind::sigmoid;
  const std::vector<float> x(static_cast<size_t>(2 * 16 * 30), 1.0F), filters(16 * 16, -95.0F / 16);
  const auto ready = make_ready(queue, problem, filters.data(), nullptr);
  ASSERT_TRUE(ready.ok()) << ready.error().message;
  std::vector<float> y(x.size());
  ASSERT_TRUE(conv(queue, **ready, x.data(), {}, y.data()).ok());
  const double expected = std::exp(-95.0);
  for (const float value : y) ASSERT_NEAR(static_cast<double>(value), expected, 0.01 * expected);
}

TEST(ConvPlain, DepthwiseOfBothSizesAndSteps) {
  for (const int64_t size : {3, 5}) {
    for (const int64_t step : {1, 2}) {
      for (const int64_t pad : {0, 1, 2}) {
        ConvProblem problem = problem_of(3, 11, 21, size, step, pad);
        problem.activation.kind = Activation::Kind::relu;
        const auto x = numbers(elements(problem.in_spatial, 6), 1);
        const auto filters = numbers(3 * size * size, 2);
        const auto bias = numbers(3, 3);
        ASSERT_TRUE(is_depthwise_conv(problem, filters.data()));
        std::vector<float> y(static_cast<size_t>(elements(problem.out_spatial, 6)));
        depthwise_conv(problem, x.data(), filters.data(), bias.data(), y.data());
        EXPECT_LT(worst_difference(problem, y, x, filters, bias), 1e-5) << size << " " << step << " " << pad;
      }
    }
  }
}

TEST(ConvPlain, PointwiseOfPlanesAndOfSinglePixels) {
  const auto queue_pool = BufferPool::create({});
  Queue<Cpu> queue(queue_pool);
  for (const int64_t side : {1, 7}) {
    ConvProblem problem = problem_of(5, side, side, 1, 1, 0);
    problem.groups = 1;
    problem.out_channels = 9;
    ASSERT_TRUE(is_pointwise_conv(problem));
    const auto x = numbers(elements(problem.in_spatial, 10), 4);
    const auto filters = numbers(45, 5);
    const auto bias = numbers(9, 6);
    std::vector<float> y(static_cast<size_t>(elements(problem.out_spatial, 18)));
    ASSERT_TRUE(pointwise_conv(queue, problem, x.data(), filters.data(), bias.data(), y.data()).ok());
    EXPECT_LT(worst_difference(problem, y, x, filters, bias), 1e-5) << side;
  }
}

// A library's Relu may turn NaN into 0: a debugger must not.
TEST(ConvActivation, KeepsNaN) {
  const auto queue_pool = BufferPool::create({});
  Queue<Cpu> queue(queue_pool);
  using Kind = Activation::Kind;
  for (const Kind kind : {Kind::relu, Kind::clip, Kind::leaky_relu, Kind::sigmoid, Kind::hard_swish, Kind::tanh}) {
    ConvProblem problem = problem_of(4, 8, 8, 3, 1, 1);
    problem.groups = 1;
    problem.activation = {kind, 0.0F, 6.0F};
    auto x = numbers(elements(problem.in_spatial, 8), 7);
    x[9] = std::numeric_limits<float>::quiet_NaN();  // row 1, column 1 of the first plane
    const auto filters = numbers(4 * 4 * 9, 8);
    std::vector<float> y(x.size());
    ASSERT_TRUE(conv(queue, problem, x.data(), filters.data(), nullptr, y.data()).ok());
    int64_t count = 0;
    for (float value : y) count += std::isnan(value) ? 1 : 0;
    EXPECT_EQ(count, 4 * 9) << static_cast<int>(kind);
  }
}

TEST(ConvPlain, LeavesOtherProblemsAlone) {
  ConvProblem problem = problem_of(3, 8, 8, 3, 1, 1);
  std::vector<float> filters(27, 1.0F);
  EXPECT_FALSE(is_pointwise_conv(problem));
  filters[13] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(is_depthwise_conv(problem, filters.data()));
  filters[13] = 1.0F;
  problem.pads_begin = {-1, 0};
  EXPECT_FALSE(is_depthwise_conv(problem, filters.data()));
}

}  // namespace
}  // namespace parallax::runtime
