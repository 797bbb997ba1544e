// SPDX-License-Identifier: Apache-2.0
// The descriptors of attention for cuDNN: a stand-in computes it from them alone, and loops over the problem's elements
// give the same.
#ifdef PX_WITH_CUDNN

#include "runtime/device/cuda/attention_graph.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "runtime/device/cpu/blocks.h"
#include "runtime/device/storage.h"
#include "tests/runtime/device/cuda/fake_cudnn.h"
#include "tests/runtime/device/products/attention_cases.h"
#include "tests/runtime/device/random_values.h"

namespace parallax::runtime {
namespace {

int attention_handle_memory = 0;
constexpr size_t kVersion = 91900;
const cudnnHandle_t kAttentionHandle = reinterpret_cast<cudnnHandle_t>(&attention_handle_memory);

Tensor random_tensor(DType dtype, int64_t count, uint32_t seed) {
  Tensor tensor = Tensor::allocate(dtype, Shape{count}).take();
  const auto values = random_values<float>(count, seed);
  storage::visit_storage(dtype, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    for (size_t i = 0; i < values.size(); ++i) {
      reinterpret_cast<S*>(tensor.mutable_data())[i] = storage::to_storage<S>(values[i]);
    }
  });
  return tensor;
}

struct Located {
  Tensor q, k, v, y, added;
  LibraryAttention attention;
};

Located placed(const AttentionCase& given, DType dtype) {
  Located all;
  const int64_t samples = given.samples;
  all.attention = attention_of(given, dtype);
  all.q = random_tensor(dtype, samples * given.heads * given.queries * given.size, 1);
  all.k = random_tensor(dtype, samples * given.key_heads * given.keys * given.size, 2);
  all.v = random_tensor(dtype, samples * given.key_heads * given.keys * given.value_size, 3);
  all.y = random_tensor(dtype, samples * given.heads * given.queries * given.value_size, 4);  // is to go
  all.attention.q = all.q.view().data;
  all.attention.k = all.k.view().data;
  all.attention.v = all.v.view().data;
  all.attention.y = all.y.mutable_data();
  if (given.added != AttentionCase::Added::nothing) {
    all.added = random_tensor(all.attention.added_dtype, samples * given.heads * given.queries * given.keys, 5);
    all.attention.added = all.added.view().data;
  }
  return all;
}

double at(const Tensor& tensor, const MatrixOffsets& locations, int64_t matrix, int64_t row, int64_t column) {
  return load_element<float>(tensor.dtype(), tensor.view().data,
                             locations.offsets[matrix] + row * locations.row + column * locations.column);
}

// A row of the result.
std::vector<double> attended(const Located& all, int64_t matrix, int64_t query) {
  const AttentionProblem& problem = all.attention.problem;
  std::vector<double> weights(static_cast<size_t>(problem.keys)), row(static_cast<size_t>(problem.value_size));
  double sum = 0;
  for (int64_t key = 0; key < problem.keys; ++key) {
    double score = 0;
    for (int64_t i = 0; i < problem.size; ++i) {
      score += at(all.q, problem.q, matrix, query, i) * at(all.k, problem.k, matrix, i, key);
    }
    score *= problem.scale;
    if (all.attention.added != nullptr) score += at(all.added, all.attention.added_locations, matrix, query, key);
    sum += weights[static_cast<size_t>(key)] = std::exp(score);
  }
  for (int64_t i = 0; i < problem.keys * problem.value_size; ++i) {
    const int64_t key = i / problem.value_size, column = i % problem.value_size;
    row[static_cast<size_t>(column)] +=
        weights[static_cast<size_t>(key)] / sum * at(all.v, problem.v, matrix, key, column);
  }
  return row;
}

class AttentionGraph : public testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionGraph, DescribesWhatIsAsked) {
  FakeCudnn::propose({{.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, .workspace_bytes = 0}});
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const Located all = placed(GetParam(), dtype);
    const auto locations = suits_cudnn(all.attention, kVersion);
    ASSERT_TRUE(locations.has_value());
    const CudnnChoice choice =
        choose_attention_plan(FakeCudnn::functions(), {.handle = kAttentionHandle}, all.attention, *locations);
    ASSERT_NE(choice.plan, nullptr) << choice.refusal;
    const AttentionProblem& problem = all.attention.problem;
    std::vector<float> log_sums(static_cast<size_t>(problem.batch() * problem.queries));
    const Status ran =
        run_attention_plan(*choice.plan, kAttentionHandle, all.attention, *locations, {log_sums.data(), nullptr});
    ASSERT_TRUE(ran.ok()) << ran.error().message << FakeCudnn::last_error();
    const double step = dtype == DType::float16 ? 2e-3 : 1.6e-2;
    for (int64_t i = 0; i < problem.batch() * problem.queries; ++i) {
      const int64_t matrix = i / problem.queries, query = i % problem.queries;
      const std::vector<double> expected = attended(all, matrix, query);
      for (int64_t column = 0; column < problem.value_size; ++column) {
        ASSERT_NEAR(at(all.y, problem.y, matrix, query, column), expected[static_cast<size_t>(column)], step)
            << "matrix " << matrix << ", query " << query << ", column " << column;
      }
    }
  }
  EXPECT_EQ(FakeCudnn::live_descriptors(), 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, AttentionGraph, testing::ValuesIn(kAttentionCases),
                         [](const auto& given) { return std::string(given.param.name); });

TEST(AttentionGraphRules, WhatCudnnDoesNotKnowIsNotAsked) {
  const Located all = placed(kAttentionCases[8], DType::float16);
  ASSERT_NE(all.attention.added, nullptr);
  const auto is_asked = [](const LibraryAttention& attention) { return suits_cudnn(attention, kVersion).has_value(); };
  EXPECT_TRUE(is_asked(all.attention));
  EXPECT_TRUE(suits_cudnn(all.attention, 91002).has_value());
  EXPECT_FALSE(suits_cudnn(all.attention, 91001).has_value()) << "NVIDIA knows of errors in it";
  const std::vector<void (*)(LibraryAttention&)> changes{
      [](LibraryAttention& a) { a.dtype = DType::float32; },
      [](LibraryAttention& a) { a.problem.no_number_is_zero = true; },
      [](LibraryAttention& a) { a.problem.keys = 0; },
      [](LibraryAttention& a) { a.q += 2; },
      [](LibraryAttention& a) { a.y += 8; },
      [](LibraryAttention& a) { a.added += 2; },
      [](LibraryAttention& a) { a.added_dtype = DType::float64; },
      [](LibraryAttention& a) { a.problem.size = 4; },
      [](LibraryAttention& a) { a.problem.value_size = 4; },
      [](LibraryAttention& a) { a.problem.q.row += 4; },
      [](LibraryAttention& a) { a.problem.y.offsets = Ints(a.problem.batch(), 0); },
      [](LibraryAttention& a) { std::swap(a.problem.k.row, a.problem.k.column); },
      [](LibraryAttention& a) { std::swap(a.problem.v.row, a.problem.v.column); },
      [](LibraryAttention& a) { ++a.problem.q.offsets[4]; },
      [](LibraryAttention& a) { a.problem.v.offsets[5] = a.problem.v.offsets[0]; },
      [](LibraryAttention& a) { a.problem.q.offsets = Ints(a.problem.batch(), 0); },
      [](LibraryAttention& a) { a.added_locations.column = 0; },
      [](LibraryAttention& a) { a.heads = 2; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    LibraryAttention changed = all.attention;
    changes[i](changed);
    EXPECT_FALSE(is_asked(changed)) << "change " << i;
  }
}

// As a queue does it, its memory given.
TEST(AttentionGraphRules, TheProbeIsWhatCudnnIsAskedFor) {
  FakeCudnn::propose({{.notes = {}, .workspace_bytes = 0}});
  for (const DType added_dtype : {DType::undefined, DType::float16, DType::float32}) {
    for (const bool has_one_query : {false, true}) {
      const AttentionKind kind{DType::float16, added_dtype, has_one_query, 16, 24};
      const AttentionProbe probe = attention_probe(kind);
      LibraryAttention attention = probing_attention(kind, probe.queries);
      Tensor y = random_tensor(kind.dtype, attention.problem.batch() * probe.queries * kind.value_size, 1);
      attention.q = probe.q.view().data;
      attention.k = probe.k.view().data;
      attention.v = probe.v.view().data;
      attention.y = y.mutable_data();
      if (added_dtype != DType::undefined) attention.added = probe.added.view().data;
      const auto locations = suits_cudnn(attention, kVersion);
      ASSERT_TRUE(locations.has_value());
      const CudnnChoice choice =
          choose_attention_plan(FakeCudnn::functions(), {.handle = kAttentionHandle}, attention, *locations);
      ASSERT_NE(choice.plan, nullptr) << choice.refusal;
      std::vector<float> log_sums(static_cast<size_t>(attention.problem.batch() * probe.queries));
      ASSERT_TRUE(
          run_attention_plan(*choice.plan, kAttentionHandle, attention, *locations, {log_sums.data(), nullptr}).ok());
      EXPECT_TRUE(is_attended_as_ours(kind, y)) << name_of(added_dtype) << (has_one_query ? ", one query" : "");
    }
  }
}

TEST(AttentionGraphRules, ThePlansKeyHoldsAllThatIsDescribed) {
  std::set<CudnnKey> keys;
  for (const AttentionCase& given : kAttentionCases) {
    for (const DType dtype : {DType::float16, DType::bfloat16}) {
      const Located all = placed(given, dtype);
      keys.insert(key_of(all.attention, *suits_cudnn(all.attention, kVersion)));
    }
  }
  EXPECT_EQ(keys.size(), 2 * kAttentionCases.size());
}

}  // namespace
}  // namespace parallax::runtime

#endif
