// SPDX-License-Identifier: Apache-2.0
// The descriptors of a convolution for cuDNN: a stand-in computes it from them alone, and the host gives the same.
#ifdef PX_WITH_CUDNN

#include "runtime/device/cuda/conv_graph.h"

#include <array>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/storage.h"
#include "tests/runtime/device/cuda/fake_cudnn.h"
#include "tests/runtime/device/products/conv_cases.h"
#include "tests/runtime/device/random_values.h"

namespace parallax::runtime {
namespace {

int handle_memory = 0;
const cudnnHandle_t kHandle = reinterpret_cast<cudnnHandle_t>(&handle_memory);

Tensor filled(DType dtype, const Shape& shape, uint32_t seed) {
  Tensor tensor = Tensor::allocate(dtype, shape).take();
  const auto values = random_values<float>(shape.element_count(), seed);
  for (size_t i = 0; i < values.size(); ++i) {
    storage::visit_storage(dtype, [&](auto* type) {
      using S = std::remove_pointer_t<decltype(type)>;
      reinterpret_cast<S*>(tensor.mutable_data())[i] = storage::to_storage<S>(values[i]);
    });
  }
  return tensor;
}

std::vector<float> floats(const TensorView& view) {
  std::vector<float> values(static_cast<size_t>(view.shape.element_count()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = load_element<float>(view.dtype, view.data, static_cast<int64_t>(i));
  }
  return values;
}

// A convolution and its memory.
struct Made {
  Tensor x, filters, bias, y;
  LibraryConv conv;
};

Made made(const ConvCase& given, DType dtype) {
  Made all;
  all.conv.problem = problem_of(given);
  all.conv.is_transposed = given.is_transposed;
  const ConvShapes shapes = shapes_of(given);
  all.x = filled(dtype, shapes.x, 1);
  all.filters = filled(dtype, shapes.filters, 2);
  all.y = filled(dtype, shapes.y, 3);  // whatever lay there is to go
  all.conv.x = all.x.view();
  all.conv.filters = all.filters.view();
  if (given.has_bias && !given.is_transposed) {
    all.bias = filled(dtype, Shape{given.out_channels}, 4);
    all.conv.bias = all.bias.view();
  }
  all.conv.y = {dtype, shapes.y, all.y.mutable_data()};
  return all;
}

std::vector<float> by_host(const Made& all) {
  Queue<Cpu> queue(BufferPool::create({}));
  const auto x = floats(all.x.view()), filters = floats(all.filters.view());
  const auto bias = all.conv.bias.data == nullptr ? std::vector<float>() : floats(all.bias.view());
  std::vector<float> y(static_cast<size_t>(all.y.element_count()));
  const float* added = bias.empty() ? nullptr : bias.data();
  const Status ran = all.conv.is_transposed
                         ? conv_transpose(queue, all.conv.problem, x.data(), filters.data(), added, y.data())
                         : conv(queue, all.conv.problem, x.data(), filters.data(), added, y.data());
  EXPECT_TRUE(ran.ok());
  return y;
}

class ConvGraph : public testing::TestWithParam<ConvCase> {};

TEST_P(ConvGraph, DescribesWhatTheHostComputes) {
  FakeCudnn::propose({{.notes = {}, .workspace_bytes = 64}});
  std::array<int64_t, 8> workspace{};
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    Made all = made(GetParam(), dtype);
    ASSERT_TRUE(suits_cudnn(all.conv));
    const CudnnChoice choice = choose_conv_plan(FakeCudnn::functions(), {.handle = kHandle}, all.conv, false);
    ASSERT_NE(choice.plan, nullptr) << choice.refusal;
    ASSERT_EQ(choice.plan->workspace_bytes(), 64);
    const Status ran = run_conv_plan(*choice.plan, kHandle, all.conv, workspace.data());
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    const std::vector<float> expected = by_host(all), found = floats(all.y.view());
    const float step = dtype == DType::float32 ? 1e-5F : dtype == DType::float16 ? 1e-3F : 8e-3F;
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], step * (1 + std::abs(expected[i]))) << "element " << i;
    }
  }
  EXPECT_EQ(FakeCudnn::live_descriptors(), 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, ConvGraph, testing::ValuesIn(kConvCases),
                         [](const auto& given) { return std::string(given.param.name); });

const ConvCase& plain_case() { return kConvCases[0]; }

TEST(ConvGraphRules, TheFirstEngineThatKeepsThemComputes) {
  using Notes = std::vector<cudnnBackendNumericalNote_t>;
  const Notes kRefused = {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
                          CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
                          CUDNN_NUMERICAL_NOTE_FFT,
                          CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
                          CUDNN_NUMERICAL_NOTE_WINOGRAD,
                          CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13};
  const auto engine_of = [&](DType dtype, bool tf32) {
    Made all = made(plain_case(), dtype);
    const CudnnChoice choice = choose_conv_plan(FakeCudnn::functions(), {.handle = kHandle}, all.conv, tf32);
    if (choice.plan == nullptr) return -1;
    EXPECT_TRUE(run_conv_plan(*choice.plan, kHandle, all.conv, nullptr).ok());
    return FakeCudnn::last_engine();
  };
  for (const auto note : kRefused) {
    FakeCudnn::propose({{.notes = {note}}, {.notes = {kCudnnStrictNan}}});
    EXPECT_EQ(engine_of(DType::float32, true), 1) << note;
    EXPECT_EQ(engine_of(DType::float16, true), 1) << note;
  }
  FakeCudnn::propose({{.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}}, {.notes = {}}, {.notes = {}}});
  EXPECT_EQ(engine_of(DType::float32, false), 1);
  EXPECT_EQ(engine_of(DType::float32, true), 0);
  EXPECT_EQ(engine_of(DType::float16, false), 0);
  FakeCudnn::propose({{.notes = {}, .can_be_planned = false}, {.notes = {}, .workspace_bytes = int64_t{1} << 40}, {}});
  EXPECT_EQ(engine_of(DType::float32, false), 2);
  FakeCudnn::propose({{.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}}});
  EXPECT_EQ(engine_of(DType::float32, false), -1);
  FakeCudnn::propose({});
  EXPECT_EQ(engine_of(DType::float32, false), -1);
  EXPECT_EQ(FakeCudnn::live_descriptors(), 0);
}

TEST(ConvGraphRules, WhatCudnnCannotCountOrReadIsNotAsked) {
  const Made all = made(plain_case(), DType::float32);
  LibraryConv conv = all.conv;
  EXPECT_TRUE(suits_cudnn(conv));
  conv.x.data += 4;
  EXPECT_FALSE(suits_cudnn(conv));
  conv = all.conv;
  conv.x.dtype = conv.y.dtype = conv.filters.dtype = DType::float64;
  EXPECT_FALSE(suits_cudnn(conv));
  conv = all.conv;
  conv.bias.dtype = DType::float16;
  EXPECT_FALSE(suits_cudnn(conv));
  conv.bias.dtype = DType::float32;
  EXPECT_TRUE(suits_cudnn(conv));
  conv.is_transposed = true;
  EXPECT_FALSE(suits_cudnn(conv));
  conv = all.conv;
  conv.problem.pads_end[0] += 2 * conv.problem.strides[0];
  EXPECT_FALSE(suits_cudnn(conv));
  conv = all.conv;
  conv.x.shape = Shape{1, 1, int64_t{1} << 16, int64_t{1} << 16};
  EXPECT_FALSE(suits_cudnn(conv));
}

TEST(ConvGraphRules, ThePlansKeyHoldsAllThatIsDescribed) {
  std::set<CudnnKey> keys;
  size_t count = 0;
  for (const ConvCase& given : kConvCases) {
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
      for (const bool tf32 : {false, true}) {
        keys.insert(key_of(made(given, dtype).conv, tf32));
        ++count;
      }
    }
  }
  EXPECT_EQ(keys.size(), count);

  const LibraryConv conv = made(plain_case(), DType::float32).conv;
  constexpr Ints ConvProblem::*kLists[] = {
      &ConvProblem::in_spatial, &ConvProblem::out_spatial, &ConvProblem::kernel,  &ConvProblem::strides,
      &ConvProblem::dilations,  &ConvProblem::pads_begin,  &ConvProblem::pads_end};
  for (const auto list : kLists) {
    for (int64_t axis = 0; axis < conv.problem.spatial_rank(); ++axis) {
      LibraryConv other = conv;
      ++(other.problem.*list)[axis];
      EXPECT_NE(key_of(other, false), key_of(conv, false)) << "axis " << axis;
    }
  }
  constexpr int64_t ConvProblem::*kNumbers[] = {&ConvProblem::batch, &ConvProblem::in_channels,
                                                &ConvProblem::out_channels, &ConvProblem::groups};
  for (const auto number : kNumbers) {
    LibraryConv other = conv;
    ++(other.problem.*number);
    EXPECT_NE(key_of(other, false), key_of(conv, false));
  }
}

TEST(CudnnPlans, TheOldestGoesUnlessItIsRecorded) {
  CudnnPlans plans(2);
  plans.keep({1}, {nullptr, "first"});
  plans.keep({2}, {nullptr, "second"});
  EXPECT_EQ(plans.find({1}, true)->refusal, "first");
  plans.keep({3}, {nullptr, "third"});
  EXPECT_EQ(plans.size(), 2U);
  EXPECT_NE(plans.find({1}, false), nullptr);
  EXPECT_EQ(plans.find({2}, false), nullptr);
  EXPECT_EQ(plans.find({3}, true)->refusal, "third");
  plans.keep({4}, {nullptr, "fourth"});
  EXPECT_EQ(plans.size(), 3U);
}

}  // namespace
}  // namespace parallax::runtime

#endif
