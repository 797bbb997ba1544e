// SPDX-License-Identifier: Apache-2.0
// Vector levels: lowered and raised again, never above what the processor has.
#include "inspector/base/cpu_features.h"

#include <gtest/gtest.h>

namespace parallax {
namespace {

TEST(CpuFeatures, LevelIsLoweredAndRaisedAgain) {
  const VectorLevel widest = vector_level();
  set_vector_level_for_tests(VectorLevel::baseline);
  EXPECT_EQ(vector_level(), VectorLevel::baseline);
  set_vector_level_for_tests(widest);
  EXPECT_EQ(vector_level(), widest);
}

TEST(CpuFeatures, FeaturesOfAvx512NeedItsLevel) {
  const VectorLevel widest = vector_level();
  set_vector_level_for_tests(VectorLevel::baseline);
  for (const CpuFeature feature :
       {CpuFeature::avx512_vnni, CpuFeature::avx512_vbmi, CpuFeature::avx512_bf16, CpuFeature::avx512_clmul}) {
    EXPECT_FALSE(has_feature(feature));
  }
  set_vector_level_for_tests(widest);
}

TEST(CpuFeatures, LevelsHaveNames) {
  EXPECT_EQ(name_of(VectorLevel::avx512), "AVX-512");
  EXPECT_EQ(name_of(VectorLevel::avx2), "AVX2");
  EXPECT_EQ(name_of(VectorLevel::baseline), "baseline");
}

}  // namespace
}  // namespace parallax
