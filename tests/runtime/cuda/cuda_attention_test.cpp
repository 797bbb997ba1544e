// SPDX-License-Identifier: Apache-2.0
// Attention of the executor "cuda", by cuDNN where it is there, against the host's: plain runs and replayed ones.
#include <limits>

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

// Keys hidden by minus infinity weigh nothing; a query all of whose keys are hidden gives no numbers, as on the host.
TEST(CudaAttention, MinusInfinityHides) {
  const auto cuda = make_cuda_executor();
  if (!cuda.ok()) GTEST_SKIP() << cuda.error().message;
  const auto host = make_cpu_executor();
  for (const AttentionModel& given : attention_models::attention_models(DType::float16)) {
    if (given.name != std::string("in_parts")) continue;
    const auto model = attention_models::model_of(given, DType::float16);
    const auto session = (*cuda)->prepare(model, {}), expecting = host->prepare(model, {});
    ASSERT_TRUE(session.ok() && expecting.ok());
    auto inputs = attention_models::inputs_of(given, DType::float16, 0);
    std::vector<double> mask(2 * 5 * 8, 0.0);
    for (size_t i = 0; i < mask.size(); ++i) {
      if (i % 8 > i / 8 % 5 || i / 8 == 3) mask[i] = -std::numeric_limits<double>::infinity();
    }
    Tensor hidden = Tensor::allocate(DType::float16, Shape{2, 1, 5, 8}).take();
    store_doubles(hidden, 0, mask);
    inputs[3] = hidden;
    const auto found = against_host::numbers_of_run(**session, inputs);
    const auto expected = against_host::numbers_of_run(**expecting, inputs);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(std::isnan(found[i]), std::isnan(expected[i])) << "element " << i;
      if (std::isnan(expected[i])) continue;
      ASSERT_NEAR(found[i], expected[i], 4e-3) << "element " << i;
    }
  }
}

}  // namespace
}  // namespace parallax
