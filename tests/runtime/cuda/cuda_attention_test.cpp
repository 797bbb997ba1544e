// SPDX-License-Identifier: Apache-2.0
// Attention of the executor "cuda", by cuDNN where it is there, against the host's: plain runs and replayed ones.
#include "tests/runtime/attention_models.h"

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

}  // namespace
}  // namespace parallax
