// SPDX-License-Identifier: Apache-2.0
// gemm and conv against plain loops: every path (few rows, packed weights, batches, double, integers) and geometry.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/base/thread_pool.h"
#include "inspector/base/thread_team.h"
#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/products/conv.h"
#include "runtime/device/cpu/products/conv_loops.h"
#include "runtime/device/cpu/products/float_panels.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/weight_cache.h"
#include "tests/runtime/device/random_values.h"

namespace parallax::runtime {
namespace {

Queue<Cpu>& products_queue() {
  static Queue<Cpu> made(BufferPool::create({}));
  return made;
}

template <class T>
std::vector<double> plain_product(const GemmProblem& p, const std::vector<T>& a, const std::vector<T>& b,
                                  const std::vector<T>& c) {
  std::vector<double> result(c.begin(), c.end());
  for (int64_t i = 0; i < p.batch(); ++i) {
    for (int64_t row = 0; row < p.m; ++row) {
      for (int64_t column = 0; column < p.n; ++column) {
        double sum = 0;
        for (int64_t k = 0; k < p.k; ++k) {
          const int64_t at_a = p.a_offsets[i] + (p.transpose_a ? k * p.m + row : row * p.k + k);
          const int64_t at_b = p.b_offsets[i] + (p.transpose_b ? column * p.k + k : k * p.n + column);
          sum += static_cast<double>(a[static_cast<size_t>(at_a)]) * static_cast<double>(b[static_cast<size_t>(at_b)]);
        }
        double& out = result[static_cast<size_t>((i * p.m + row) * p.n + column)];
        out = p.alpha * sum + (p.beta == 0 ? 0 : p.beta * out);
      }
    }
  }
  return result;
}

template <class T>
void expect_product(const GemmProblem& p, double tolerance) {
  const auto a = random_values<T>(p.batch() * p.m * p.k, 1, -5, 5);
  const auto b = random_values<T>(p.batch() * p.k * p.n, 2, -5, 5);
  auto c = random_values<T>(p.batch() * p.m * p.n, 3, -5, 5);
  const auto expected = plain_product(p, a, b, c);
  ASSERT_TRUE(gemm(products_queue(), p, a.data(), b.data(), c.data()).ok());
  for (size_t i = 0; i < c.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(c[i]), expected[i], tolerance * (1 + std::sqrt(static_cast<double>(p.k)) * 25))
        << i;
  }
}

TEST(Gemm, FloatInEveryShape) {
  for (int64_t m : {1, 3, 4, 5, 17}) {
    for (int64_t n : {1, 9, 600}) {
      for (int64_t k : {1, 16, 77}) {
        for (int transposes = 0; transposes < 4; ++transposes) {
          GemmProblem p;
          p.m = m;
          p.n = n;
          p.k = k;
          p.transpose_a = (transposes & 1) != 0;
          p.transpose_b = (transposes & 2) != 0;
          expect_product<float>(p, 1e-6);
          p.alpha = 0.5;
          p.beta = 2.0;
          expect_product<float>(p, 1e-6);
        }
      }
    }
  }
}

// oneDNN brings no threads of its own: the pool's run its regions, for several callers at a time, and no bit depends on
// what runs at the same time.
TEST(Gemm, LargeProductsShareThePoolsThreads) {
  set_thread_count(3);
  GemmProblem p;
  p.m = p.n = p.k = 512;
  const auto a = random_values<float>(p.m * p.k, 1);
  const auto b = random_values<float>(p.k * p.n, 2);
  const auto thread_total = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  run_team(3, [](int) {});  // makes the pool's two threads
  const auto before = thread_total();
  std::vector<float> alone(static_cast<size_t>(p.m * p.n));
  ASSERT_TRUE(gemm(products_queue(), p, a.data(), b.data(), alone.data()).ok());
  EXPECT_EQ(thread_total(), before);
  std::vector<std::vector<float>> products(3, alone);
  run_team(3, [&](int index) {
    std::vector<float>& c = products[static_cast<size_t>(index)];
    Queue<Cpu> own(BufferPool::create({}));
    for (int round = 0; round < 5; ++round) EXPECT_TRUE(gemm(own, p, a.data(), b.data(), c.data()).ok());
  });
  for (const std::vector<float>& c : products) EXPECT_EQ(c, alone);
  set_thread_count(0);
}

// Small results of long sums are what a library would part for its threads.
TEST(Gemm, TheNumberOfThreadsDoesNotChangeABit) {
  struct Sides {
    int64_t m, n, k;
  };
  for (const auto [m, n, k] : {Sides{96, 96, 96}, {31, 64, 256}, {100, 200, 512}, {512, 17, 96}, {300, 512, 64}}) {
    GemmProblem p;
    p.m = m;
    p.n = n;
    p.k = k;
    const auto a = random_values<float>(m * k, 1);
    const auto b = random_values<float>(k * n, 2);
    for (const bool is_constant : {false, true}) {
      for (const bool transposed : {false, true}) {
        p.b_is_constant = is_constant;
        p.transpose_b = transposed;
        std::vector<float> alone;
        for (int threads : {1, 2, 3, 5}) {
          set_thread_count(threads);
          Queue<Cpu> queue(BufferPool::create({}));
          std::vector<float> c(static_cast<size_t>(m * n), NAN);
          ASSERT_TRUE(gemm(queue, p, a.data(), b.data(), c.data()).ok());
          if (threads == 1) alone = c;
          EXPECT_EQ(c, alone) << m << "x" << n << "x" << k << ", " << threads << " threads";
        }
      }
    }
  }
  set_thread_count(0);
}

// Wider than a tile and higher, with borders that no tile meets, and rows with a stride of a page.
TEST(Gemm, TilesCoverTheProduct) {
  for (int64_t m : {20, 300, 515}) {
    for (int64_t n : {33, 600, 1024}) {
      for (int transposes = 0; transposes < 4; ++transposes) {
        GemmProblem p;
        p.m = m;
        p.n = n;
        p.k = 65;
        p.transpose_a = (transposes & 1) != 0;
        p.transpose_b = (transposes & 2) != 0;
        p.beta = 0.5;
        expect_product<float>(p, 1e-6);
      }
    }
  }
}

TEST(Gemm, BatchesWithSharedOperands) {
  for (int64_t batch : {2, 7}) {
    GemmProblem p;
    p.m = 6;
    p.n = 5;
    p.k = 33;
    p.a_offsets = Ints(batch);
    p.b_offsets = Ints(batch);
    for (int64_t i = 0; i < batch; ++i) {
      p.a_offsets[i] = i * p.m * p.k;
      p.b_offsets[i] = i / 2 * p.k * p.n;
    }
    expect_product<float>(p, 1e-6);
    expect_product<double>(p, 1e-14);
  }
}

TEST(Gemm, PackedWeightsGiveTheProductAgainAndAgain) {
  GemmProblem p;
  p.k = 80;
  for (const auto& [m, n, transposed] : std::vector<std::tuple<int64_t, int64_t, bool>>{{9, 96, false},
                                                                                        {9, 96, true},
                                                                                        {2, 96, true},
                                                                                        {3, 75, false},
                                                                                        {4, 70, true},
                                                                                        {7, 96, false},
                                                                                        {8, 97, true}}) {
    p.m = m;
    p.n = n;
    p.transpose_b = transposed;
    const auto b = random_values<float>(p.k * p.n, 6);  // outlives the products, as weights do
    p.b_is_constant = true;
    for (uint32_t round = 0; round < 3; ++round) {
      const auto a = random_values<float>(p.m * p.k, 7 + round);
      std::vector<float> c(static_cast<size_t>(p.m * p.n), NAN);
      const auto expected = plain_product(p, a, b, std::vector<float>(c.size(), 0.0F));
      ASSERT_TRUE(gemm(products_queue(), p, a.data(), b.data(), c.data()).ok());
      for (size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(c[i], expected[i], 1e-4);
    }
  }
}

TEST(Gemm, WhereWeightsLieDoesNotChangeABit) {
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{1024, 1050}, {4096, 257}}) {
    GemmProblem p;
    p.m = 1;
    p.n = n;
    p.k = k;
    p.b_is_constant = true;
    const auto a = random_values<float>(k, 1, -5, 5);
    const auto b = random_values<float>(k * n, 2, -5, 5);
    const auto memory = std::make_unique<std::byte[]>(b.size() * sizeof(float) + 128);
    auto* const line = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory.get()) + 63) / 64 * 64);
    std::vector<float> first;
    for (const size_t location : {size_t{0}, size_t{4}, size_t{60}}) {
      std::memcpy(line + location, b.data(), b.size() * sizeof(float));
      Queue<Cpu> queue(BufferPool::create({}));
      for (int run = 0; run < 3; ++run) {
        std::vector<float> c(static_cast<size_t>(n), -1.0F);
        ASSERT_TRUE(gemm(queue, p, a.data(), reinterpret_cast<const float*>(line + location), c.data()).ok());
        EXPECT_EQ(queue.weights().bytes() > 0, has_float_panels() ? run > 0 : location != 0)
            << "with AVX2 copied from the second run on, else where vectors cross lines";
        if (first.empty()) first = c;
        EXPECT_EQ(c, first) << "k " << k << ", n " << n << ", byte offset " << location << ", run " << run;
      }
    }
    const auto expected = plain_product(p, a, b, first);
    for (size_t i = 0; i < first.size(); ++i) ASSERT_NEAR(static_cast<double>(first[i]), expected[i], 5e-3) << i;
  }
}

TEST(Gemm, EmptySumsAreZero) {
  GemmProblem p;
  p.m = 2;
  p.n = 2;
  p.k = 0;
  std::vector<float> c(4, 7.0F);
  const float nothing = 0;
  ASSERT_TRUE(gemm(products_queue(), p, &nothing, &nothing, c.data()).ok());
  EXPECT_EQ(c, std::vector<float>(4, 0.0F));
}

TEST(Gemm, IntegersAreExactModulo64Bits) {
  GemmProblem p;
  p.m = 1;
  p.n = 1;
  p.k = 2;
  const std::vector<int64_t> a{INT64_MAX, 3}, b{2, 5};
  int64_t c = 0;
  ASSERT_TRUE(gemm(products_queue(), p, a.data(), b.data(), &c).ok());
  EXPECT_EQ(c, 13);  // -2 + 15
}

ConvProblem problem_2d(int64_t groups, int64_t stride, int64_t dilation, int64_t pad) {
  ConvProblem p;
  p.batch = 2;
  p.in_channels = 4;
  p.out_channels = 6;
  p.groups = groups;
  p.in_spatial = {11, 13};
  p.kernel = {3, 2};
  p.strides = {stride, stride};
  p.dilations = {dilation, dilation};
  p.pads_begin = {pad, 0};
  p.pads_end = {0, pad};
  p.out_spatial = Ints(2);
  for (int64_t axis = 0; axis < 2; ++axis) {
    const int64_t extent = (p.kernel[axis] - 1) * dilation + 1;
    p.out_spatial[axis] = (p.in_spatial[axis] + p.pads_begin[axis] + p.pads_end[axis] - extent) / stride + 1;
  }
  return p;
}

TEST(Conv, LibraryAgreesWithLoops) {
  for (int64_t groups : {1, 2}) {
    for (int64_t stride : {1, 2}) {
      for (int64_t dilation : {1, 2}) {
        for (bool constant : {false, true}) {
          ConvProblem p = problem_2d(groups, stride, dilation, 1);
          p.filters_are_constant = constant;
          const auto x = random_values<float>(p.batch * p.in_channels * product(p.in_spatial), 1);
          static std::vector<std::vector<float>> kept;  // constant filters outlive the products_queue's cache
          kept.push_back(random_values<float>(p.out_channels * p.in_channels / groups * product(p.kernel), 2));
          const auto bias = random_values<float>(p.out_channels, 3);
          std::vector<float> y(static_cast<size_t>(p.batch * p.out_channels * product(p.out_spatial)), NAN),
              expected(y);
          conv_loops(p, x.data(), kept.back().data(), bias.data(), expected.data());
          for (int round = 0; round < 2; ++round) {
            ASSERT_TRUE(conv(products_queue(), p, x.data(), kept.back().data(), bias.data(), y.data()).ok());
            for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-4);
          }
        }
      }
    }
  }
}

// The transpose of a convolution moves it to the other side of the inner product: <conv(x), y> = <x, transpose(y)>.
TEST(ConvTranspose, IsTheAdjointOfConv) {
  ConvProblem p = problem_2d(2, 2, 1, 1);
  ConvProblem t = p;
  std::swap(t.in_channels, t.out_channels);
  std::swap(t.in_spatial, t.out_spatial);
  const auto x = random_values<float>(p.batch * p.in_channels * product(p.in_spatial), 1);
  const auto filters = random_values<float>(p.out_channels * p.in_channels / p.groups * product(p.kernel), 2);
  const auto y = random_values<float>(p.batch * p.out_channels * product(p.out_spatial), 3);
  std::vector<float> forward(y.size()), backward(x.size()), by_loops(x.size());
  ASSERT_TRUE(
      conv(products_queue(), p, x.data(), filters.data(), static_cast<const float*>(nullptr), forward.data()).ok());
  ASSERT_TRUE(conv_transpose(products_queue(), t, y.data(), filters.data(), nullptr, backward.data()).ok());
  conv_transpose_loops<float>(t, y.data(), filters.data(), nullptr, by_loops.data());
  double left = 0, right = 0;
  for (size_t i = 0; i < y.size(); ++i) left += static_cast<double>(forward[i]) * static_cast<double>(y[i]);
  for (size_t i = 0; i < x.size(); ++i) right += static_cast<double>(backward[i]) * static_cast<double>(x[i]);
  EXPECT_NEAR(left, right, 1e-3);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(backward[i], by_loops[i], 1e-4);
}

}  // namespace
}  // namespace parallax::runtime
