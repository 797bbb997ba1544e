// SPDX-License-Identifier: Apache-2.0
// Convolutions between channels-last tensors against the plain loops in double, and the way between the two orders.
#include "runtime/device/cpu/channels_last.h"

#include <cmath>
#include <limits>
#include <list>
#include <memory>

#include <gtest/gtest.h>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/products/conv_loops.h"
#include "tests/runtime/device/random_values.h"

namespace parallax::runtime {
namespace {

Queue<Cpu>& queue() {
  static Queue<Cpu> made(BufferPool::create({}));
  return made;
}

template <class T>
std::vector<T> content(const Tensor& tensor) {
  const T* data = reinterpret_cast<const T*>(tensor.view().data);
  return {data, data + tensor.element_count()};
}

std::vector<float> reordered(const Shape& shape, const std::vector<float>& values, bool to_last) {
  Tensor tensor = Tensor::from<float>(shape, values);
  if (!to_last) tensor = Tensor::wrap(DType::float32, shape, tensor.storage(), kChannelsLast);
  return content<float>(to_last ? to_channels_last(queue(), tensor).take() : to_row_major(queue(), tensor).take());
}

TEST(ChannelsLast, OrderIsThatOfATransposition) {
  const Shape shape{2, 3, 2, 5};
  const auto values = random_values<float>(60, 1);
  const auto last = reordered(shape, values, true);
  for (size_t n = 0; n < 2; ++n) {
    for (size_t c = 0; c < 3; ++c) {
      for (size_t location = 0; location < 10; ++location)
        ASSERT_EQ(last[(n * 10 + location) * 3 + c], values[(n * 3 + c) * 10 + location]);
    }
  }
  EXPECT_EQ(reordered(shape, last, false), values);
}

TEST(ChannelsLast, OtherTypesMoveLikewise) {
  const Tensor tensor = Tensor::from<int16_t>(Shape{1, 2, 3}, std::vector<int16_t>{0, 1, 2, 3, 4, 5});
  const Tensor last = to_channels_last(queue(), tensor).take();
  EXPECT_EQ(content<int16_t>(last), (std::vector<int16_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(content<int16_t>(to_row_major(queue(), last).take()), (std::vector<int16_t>{0, 1, 2, 3, 4, 5}));
}

TEST(ChannelsLast, NobodyTakesOneForRowMajor) {
  const Tensor last = to_channels_last(queue(), Tensor::from<float>(Shape{1, 2, 2}, std::vector<float>(4))).take();
  EXPECT_TRUE(is_channels_last(last));
  EXPECT_FALSE(last.device().is_host());
  EXPECT_DEATH(static_cast<void>(last.as<float>()), "is_host");
}

ConvProblem problem_of(const Ints& spatial, int64_t in, int64_t out, int64_t groups, int64_t size, int64_t step,
                       int64_t dilation) {
  ConvProblem problem;
  problem.batch = 2;
  problem.in_channels = in;
  problem.out_channels = out;
  problem.groups = groups;
  problem.in_spatial = spatial;
  for (int64_t dim : spatial) {
    problem.kernel.push_back(size);
    problem.strides.push_back(step);
    problem.dilations.push_back(dilation);
    problem.pads_begin.push_back(size / 2);
    problem.pads_end.push_back(size / 3);
    problem.out_spatial.push_back((dim + size / 2 + size / 3 - (size - 1) * dilation - 1) / step + 1);
  }
  problem.filters_are_constant = false;
  problem.y_channels_last = true;
  return problem;
}

Shape shape_with(int64_t batch, int64_t channels, const Ints& spatial) {
  Ints dims{batch, channels};
  for (int64_t dim : spatial) dims.push_back(dim);
  return shape_of(dims).take();
}

struct Operands {
  std::vector<float> x, filters, bias;
};

Operands operands_of(const ConvProblem& p) {
  return {random_values<float>(p.batch * p.in_channels * product(p.in_spatial), 1),
          random_values<float>(p.out_channels * (p.in_channels / p.groups) * product(p.kernel), 2),
          random_values<float>(p.out_channels, 3)};
}

std::vector<double> by_loops(const ConvProblem& p, const Operands& given) {
  const std::vector<double> x(given.x.begin(), given.x.end()), filters(given.filters.begin(), given.filters.end()),
      bias(given.bias.begin(), given.bias.end());
  std::vector<double> y(static_cast<size_t>(p.batch * p.out_channels * product(p.out_spatial)));
  conv_loops(p, x.data(), filters.data(), bias.data(), y.data());
  return y;
}

std::vector<float> by_conv(ConvProblem p, const Operands& given, bool x_channels_last) {
  p.x_channels_last = x_channels_last;
  const Shape x_shape = shape_with(p.batch, p.in_channels, p.in_spatial);
  const auto x = x_channels_last ? reordered(x_shape, given.x, true) : given.x;
  std::vector<float> y(static_cast<size_t>(p.batch * p.out_channels * product(p.out_spatial)), NAN);
  EXPECT_TRUE(conv(queue(), p, x.data(), given.filters.data(), given.bias.data(), y.data()).ok());
  return reordered(shape_with(p.batch, p.out_channels, p.out_spatial), y, false);
}

void expect_like_loops(const ConvProblem& p) {
  ASSERT_TRUE(suits_channels_last(p));
  const Operands given = operands_of(p);
  const auto expected = by_loops(p, given);
  for (const bool x_channels_last : {false, true}) {
    const auto y = by_conv(p, given, x_channels_last);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(static_cast<double>(y[i]), expected[i], 2e-4) << i;
  }
}

TEST(ChannelsLast, ConvolutionsAreThoseOfTheLoops) {
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{3, 16}, {16, 20}, {33, 7}, {1, 5}}) {
    for (const int64_t size : {1, 3, 5}) {
      for (const int64_t step : {1, 2}) expect_like_loops(problem_of({9, 14}, in, out, 1, size, step, 1));
    }
  }
  expect_like_loops(problem_of({12, 11}, 8, 24, 1, 3, 1, 2));
}

TEST(ChannelsLast, DepthwiseConvolutionsToo) {
  for (const int64_t channels : {3, 16, 40}) {
    for (const int64_t size : {3, 5}) {
      for (const int64_t step : {1, 2})
        expect_like_loops(problem_of({9, 14}, channels, channels, channels, size, step, 1));
    }
  }
}

TEST(ChannelsLast, ConvolutionsOfLinesAndVolumes) {
  expect_like_loops(problem_of({37}, 6, 18, 1, 3, 1, 1));
  expect_like_loops(problem_of({4, 5, 6}, 6, 18, 1, 3, 1, 1));
}

TEST(ChannelsLast, GroupsOfSeveralChannelsKeepTheirLayout) {
  EXPECT_FALSE(suits_channels_last(problem_of({9, 9}, 8, 8, 2, 3, 1, 1)));
}

// Numbers that are not finite must reach exactly the outputs that the loops' taps carry them to.
TEST(ChannelsLast, WhatIsNotFiniteGoesWhereTheTapsCarryIt) {
  using Kind = Activation::Kind;
  for (const Kind kind : {Kind::none, Kind::relu, Kind::clip, Kind::leaky_relu, Kind::sigmoid, Kind::hard_swish}) {
    for (const int64_t groups : {1, 6}) {
      ConvProblem p = problem_of({7, 8}, 6, 6, groups, 3, 1, 1);
      p.activation = {kind, 0.0F, 6.0F};
      Operands given = operands_of(p);
      given.x[9] = std::numeric_limits<float>::quiet_NaN();
      given.x[20] = std::numeric_limits<float>::infinity();
      const auto expected = by_loops(p, given);
      const auto y = by_conv(p, given, true);
      for (size_t i = 0; i < y.size(); ++i) {
        double wanted = expected[i];
        visit_activation(p.activation, [&](auto apply) { wanted = apply(wanted); });
        ASSERT_EQ(std::isnan(y[i]), std::isnan(wanted)) << i << " activation " << static_cast<int>(kind);
        ASSERT_EQ(std::isinf(y[i]), std::isinf(wanted)) << i << " activation " << static_cast<int>(kind);
      }
    }
  }
}

// ---- Filters that never change ----

struct Activated {
  ConvProblem problem;
  Operands given;
};

// Kept for as long as the queue, which finds prepared filters by their address.
const Activated& activated(const ConvProblem& problem, Activation::Kind kind) {
  static std::list<Activated> all;
  Activated made{problem, operands_of(problem)};
  made.problem.filters_are_constant = made.problem.x_channels_last = true;
  made.problem.activation = {kind, kind == Activation::Kind::clip ? -0.5F : 0.25F, 0.75F};
  return all.emplace_back(std::move(made));
}

std::shared_ptr<ReadyConv> ready_for(const Activated& of) {
  auto ready = make_ready(queue(), of.problem, of.given.filters.data(), of.given.bias.data());
  EXPECT_TRUE(ready.ok());
  return ready.take();
}

void expect_like_loops(ReadyConv& ready, const Activated& activated, const std::vector<float>& x) {
  const ConvProblem& p = activated.problem;
  Operands given = activated.given;
  given.x = x;
  const auto sums = by_loops(p, given);
  const auto x_last = reordered(shape_with(p.batch, p.in_channels, p.in_spatial), x, true);
  std::vector<float> y_last(sums.size(), -77.0F);
  ASSERT_TRUE(conv(queue(), ready, x_last.data(), {}, y_last.data()).ok());
  const auto y = reordered(shape_with(p.batch, p.out_channels, p.out_spatial), y_last, false);
  for (size_t i = 0; i < y.size(); ++i) {
    double wanted = sums[i];
    visit_activation(p.activation, [&](auto apply) { wanted = apply(wanted); });
    ASSERT_EQ(std::isnan(y[i]), std::isnan(wanted)) << i;
    ASSERT_EQ(std::isinf(y[i]), std::isinf(wanted)) << i;
    if (std::isfinite(wanted)) {
      ASSERT_NEAR(static_cast<double>(y[i]), wanted, 3e-4) << i;
    }
  }
}

// NaN that comes in and NaN that is made of infinities, anywhere in x: each reaches the result through Relu and Clip,
// and having met one changes nothing for what comes later.
TEST(ChannelsLast, ActivationsOfReadyConvolutionsKeepNan) {
  using Kind = Activation::Kind;
  const ConvProblem shapes[] = {problem_of({7, 9}, 6, 17, 1, 3, 1, 1), problem_of({24, 23}, 64, 80, 1, 1, 1, 1),
                                problem_of({23, 24}, 32, 48, 1, 3, 2, 1), problem_of({15, 9}, 24, 24, 24, 3, 1, 1)};
  for (const ConvProblem& shape : shapes) {
    for (const Kind kind : {Kind::none, Kind::relu, Kind::clip, Kind::leaky_relu, Kind::hard_swish, Kind::gelu}) {
      SCOPED_TRACE(testing::Message() << "activation " << static_cast<int>(kind) << " of " << shape.out_channels);
      const Activated& operands = activated(shape, kind);
      const auto& x = operands.given.x;
      auto with_nan = x, with_infinities = x;
      with_nan[x.size() / 2 - 7] = std::numeric_limits<float>::quiet_NaN();
      for (size_t i = x.size() - 60; i < x.size(); ++i)
        with_infinities[i] = i % 2 == 0 ? std::numeric_limits<float>::infinity() : -with_infinities[i - 1];
      const auto ready = ready_for(operands);
      expect_like_loops(*ready, operands, x);
      expect_like_loops(*ready, operands, with_nan);
      expect_like_loops(*ready, operands, x);
      expect_like_loops(*ready_for(operands), operands, with_infinities);
    }
  }
}

// Every way of a convolution whose filters never change: one tap, taps of few channels, groups, single channels, rests
// of tiles, and single rows.
TEST(ChannelsLast, ReadyConvolutionsAreThoseOfTheLoops) {
  using Kind = Activation::Kind;
  const ConvProblem shapes[] = {problem_of({7, 9}, 32, 33, 1, 1, 1, 1),   problem_of({8, 9}, 24, 40, 1, 1, 2, 1),
                                problem_of({1, 1}, 40, 50, 1, 1, 1, 1),   problem_of({13, 10}, 3, 16, 1, 7, 2, 1),
                                problem_of({9, 9}, 3, 17, 1, 3, 1, 1),    problem_of({9, 14}, 16, 24, 4, 3, 1, 1),
                                problem_of({9, 14}, 24, 48, 3, 3, 2, 1),  problem_of({9, 14}, 32, 32, 2, 1, 1, 1),
                                problem_of({9, 13}, 37, 37, 37, 3, 1, 1), problem_of({9, 15}, 40, 40, 40, 5, 2, 1),
                                problem_of({6, 3}, 16, 16, 16, 3, 1, 2),  problem_of({31}, 16, 16, 16, 3, 1, 1),
                                problem_of({4, 5, 6}, 8, 8, 8, 3, 1, 1),  problem_of({12, 9}, 30, 20, 1, 3, 1, 3),
                                problem_of({2, 9}, 5, 8, 1, 3, 1, 1),     problem_of({9, 14}, 4, 3, 1, 3, 1, 1)};
  for (const ConvProblem& shape : shapes) {
    for (const Kind kind : {Kind::none, Kind::relu, Kind::swish}) {
      if (!suits_channels_last(shape) && !gains_from_channels_last_copy(activated(shape, kind).problem)) continue;
      const Activated& operands = activated(shape, kind);
      SCOPED_TRACE(testing::Message() << shape.in_channels << " to " << shape.out_channels << " in " << shape.groups);
      expect_like_loops(*ready_for(operands), operands, operands.given.x);
    }
  }
}

// A row-major feature map of few channels.
TEST(ChannelsLast, ReadyConvolutionsTakeRowMajorActivations) {
  for (const int64_t size : {3, 7}) {
    Activated& operands = const_cast<Activated&>(activated(problem_of({13, 10}, 3, 20, 1, size, 2, 1), {}));
    ConvProblem& p = operands.problem;
    p.activation = {};
    p.x_channels_last = false;
    const auto expected = by_loops(p, operands.given);
    std::vector<float> y_last(expected.size(), -77.0F);
    ASSERT_TRUE(conv(queue(), *ready_for(operands), operands.given.x.data(), {}, y_last.data()).ok());
    const auto y = reordered(shape_with(p.batch, p.out_channels, p.out_spatial), y_last, false);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(static_cast<double>(y[i]), expected[i], 3e-4) << i;
  }
}

TEST(ChannelsLast, ThreadsChangeNoBitOfReadyConvolutions) {
  for (const int64_t groups : {1, 4, 64}) {
    const Activated& operands = activated(problem_of({29, 31}, 64, 64, groups, 3, 1, 1), Activation::Kind::swish);
    const auto ready = ready_for(operands);
    std::vector<float> alone(static_cast<size_t>(2 * 64 * product(operands.problem.out_spatial)), NAN);
    for (const int threads : {1, 2, 5}) {
      set_thread_count(threads);
      std::vector<float> y(alone.size(), NAN);
      ASSERT_TRUE(conv(queue(), *ready, operands.given.x.data(), {}, y.data()).ok());
      if (threads == 1) alone = y;
      EXPECT_EQ(y, alone) << groups << " groups, " << threads << " threads";
    }
    set_thread_count(0);
  }
}

TEST(ChannelsLast, WhatIsAddedComesBeforeTheActivation) {
  for (const auto& [groups, size] : {std::pair<int64_t, int64_t>{1, 1}, {1, 3}, {40, 3}, {5, 3}}) {
    const int64_t in = groups == 1 ? 32 : 40;
    const Activated& operands = activated(problem_of({13, 14}, in, 40, groups, size, 1, 1), Activation::Kind::none);
    const ConvProblem& p = operands.problem;
    const Shape shape = shape_with(p.batch, p.out_channels, p.out_spatial);
    auto expected = by_loops(p, operands.given);
    const auto added = random_values<float>(static_cast<int64_t>(expected.size()), 4);
    const auto added_last = reordered(shape, added, true);
    const auto x_last = reordered(shape_with(p.batch, p.in_channels, p.in_spatial), operands.given.x, true);
    std::vector<float> y_last(expected.size(), -77.0F);
    const Addend addend{added_last.data(), {Activation::Kind::relu, 0, 0}};
    ASSERT_TRUE(conv(queue(), *ready_for(operands), x_last.data(), addend, y_last.data()).ok());
    const auto y = reordered(shape, y_last, false);
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(static_cast<double>(y[i]), std::max(0.0, expected[i] + static_cast<double>(added[i])), 3e-4) << i;
  }
}

// Padding is not multiplied: a weight that is infinite makes no NaN at the border.
TEST(ChannelsLast, WeightsThatAreNotFiniteAreNotMultipliedByPadding) {
  static Activated operands{problem_of({9, 8}, 16, 24, 1, 3, 1, 1), {}};  // found by the address of its filters
  ConvProblem& p = operands.problem;
  p.filters_are_constant = p.x_channels_last = true;
  operands.given = operands_of(p);
  for (float& value : operands.given.x) value = 1.0F + std::abs(value);
  operands.given.filters[0] = std::numeric_limits<float>::infinity();
  expect_like_loops(*ready_for(operands), operands, operands.given.x);
}

}  // namespace
}  // namespace parallax::runtime
