// SPDX-License-Identifier: Apache-2.0
// Attention of the executor "cuda", by cuDNN where it is there, against the host's: plain runs and replayed ones.
#include "runtime/device/cuda/queue_cuda.h"
#include "tests/runtime/attention_models.h"
#include "tests/runtime/flash_cases.h"

namespace parallax {
namespace {

using attention_models::AttentionModel;

TEST(CudaAttention, GivesWhatTheHostDoes) {
  const auto cuda = make_cuda_executor();
  if (!cuda.ok()) GTEST_SKIP() << cuda.error().message;
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    for (const AttentionModel& given : attention_models::attention_models(dtype)) {
      attention_models::expect_what_the_host_gives(**cuda, given, dtype);
    }
  }
}

TEST(CudaAttention, MinusInfinityHides) {
  const auto cuda = make_cuda_executor();
  if (!cuda.ok()) GTEST_SKIP() << cuda.error().message;
  attention_models::expect_minus_infinity_to_hide(**cuda);
}

TEST(CudaAttention, OurOwnKernelIsTheSoftmaxOfTheDefinition) {
  using namespace runtime;
  if (cuda_devices().count == 0) GTEST_SKIP() << cuda_devices().problem;
  const auto make_queue = [](bool tf32) { return Queue<Cuda>::create({.device_index = 0, .tf32 = tf32}).take(); };
  flash_cases::expect_softmax_of_the_definition(make_queue);
  flash_cases::expect_lengths_on_the_device(make_queue);
  flash_cases::expect_unbounded_values(make_queue);
  flash_cases::expect_hidden_queries(make_queue);
}

}  // namespace
}  // namespace parallax
