// SPDX-License-Identifier: Apache-2.0
// The probe of a GPU's library for attention: our own softmax gives the expected answer, and other softmaxes do not.
#include "runtime/device/gpu/attention_probe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/products/attention.h"
#include "runtime/device/gpu/attention/library_attention.h"

namespace parallax::runtime {
namespace {

const std::vector<AttentionKind> kKinds = {
    {DType::float16, DType::undefined, false, 64, 64},
    {DType::float16, DType::float16, false, 40, 24},
    {DType::bfloat16, DType::float32, true, 8, 128},
    {DType::bfloat16, DType::undefined, true, 128, 8},
};

std::vector<float> numbers_of(const Tensor& tensor) {
  std::vector<float> numbers(static_cast<size_t>(tensor.element_count()));
  load_block<float>(tensor.dtype(), tensor.view().data, 0, 1, tensor.element_count(), numbers.data());
  return numbers;
}

struct Adding {
  const std::vector<float>& added;
  int64_t queries, keys;
  void change(int64_t matrix, int64_t query, int64_t first_key, float* scores, int64_t count) const {
    for (int64_t i = 0; i < count && !added.empty(); ++i) {
      scores[i] += added[static_cast<size_t>((matrix * queries + query) * keys + first_key + i)];
    }
  }
};

// By the host, whose formulas are those of our kernels.
std::vector<float> attended_by_host(const AttentionKind& kind) {
  Queue<Cpu> queue(BufferPool::create({}));
  const AttentionProbe probe = attention_probe(kind);
  const AttentionProblem problem = probing_attention(kind, probe.queries).problem;
  const bool is_added = kind.added_dtype != DType::undefined;
  const auto added = is_added ? numbers_of(probe.added) : std::vector<float>();
  std::vector<float> y(static_cast<size_t>(problem.batch() * problem.queries * problem.value_size));
  const Status status =
      attention(queue, problem, Adding{added, problem.queries, problem.keys}, numbers_of(probe.q).data(),
                numbers_of(probe.k).data(), numbers_of(probe.v).data(), y.data());
  EXPECT_TRUE(status.ok());
  return y;
}

Tensor stored_as(DType dtype, const std::vector<float>& values) {
  const auto count = static_cast<int64_t>(values.size());
  Tensor tensor = Tensor::allocate(dtype, Shape{count}).take();
  store_block<float>(dtype, tensor.mutable_data(), 0, count, values.data());
  return tensor;
}

TEST(AttentionProbe, OursIsTheAnswer) {
  for (const AttentionKind& kind : kKinds) {
    EXPECT_TRUE(is_attended_as_ours(kind, stored_as(kind.dtype, attended_by_host(kind))))
        << name_of(kind.dtype) << ", heads of " << kind.size;
  }
}

TEST(AttentionProbe, OthersAreNot) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const AttentionKind& kind : kKinds) {
    const std::vector<float> ours = attended_by_host(kind);
    const auto is_taken = [&](const std::vector<float>& values) {
      return is_attended_as_ours(kind, stored_as(kind.dtype, values));
    };
    int64_t numbers = 0;
    for (size_t i = 0; i < ours.size(); ++i) {
      std::vector<float> changed = ours;
      changed[i] = std::isnan(ours[i]) ? 1.0F : kNan;
      EXPECT_FALSE(is_taken(changed)) << "element " << i;
      if (std::isnan(ours[i])) continue;
      ++numbers;
      changed[i] = ours[i] * (1 + 1.0F / 64);
      EXPECT_FALSE(is_taken(changed)) << "element " << i;
    }
    const auto of_head = static_cast<int64_t>(ours.size()) / AttentionProbe::kHeads;
    std::vector<float> zeros_where_hidden = ours;
    std::fill_n(zeros_where_hidden.begin() + of_head, of_head, 0.0F);
    EXPECT_EQ(is_taken(zeros_where_hidden), kind.added_dtype != DType::undefined);
    EXPECT_EQ(numbers, kind.added_dtype == DType::undefined ? 2 * of_head : of_head);
    EXPECT_FALSE(is_attended_as_ours(kind, stored_as(DType::float32, ours)));
    EXPECT_FALSE(is_taken({ours.begin(), ours.end() - 1}));
  }
}

}  // namespace
}  // namespace parallax::runtime
