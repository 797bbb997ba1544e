// SPDX-License-Identifier: Apache-2.0
// In which numbers GroupQueryAttention keeps its cache: as they are, or as multiples of a scale.
#pragma once

#include <string>
#include <vector>

#include "reference/ops/contrib/heads.h"

namespace parallax::reference {

// "Quantization" on the page of com.microsoft.GroupQueryAttention, for keys or for values. The page leaves open how 4
// bits are written; as in onnxruntime they are the number + 8, the even element in the low bits of a byte. New tokens
// are attended to as the cache holds them, rounded.
class CacheFormat {
 public:
  // `past`, `scale`: inputs; `type`: the attribute k_quant_type or v_quant_type; for heads of `size` elements.
  static Result<CacheFormat> create(const OpContext& op, size_t past, size_t scale, const std::string& type,
                                    int64_t heads, int64_t size);

  // The cache's numbers, in units of their scales.
  Result<HeadBlock> read(const OpContext& op, size_t past) const;
  // Real numbers in units of their scales, rounded as the cache holds them; and back.
  void to_cache(HeadBlock& block) const;
  void from_cache(HeadBlock& block) const;
  Status set_output(OpContext& op, size_t index, const HeadBlock& cache) const;

 private:
  double scale_of(int64_t position, const HeadBlock& block) const;

  DType dtype_ = DType::float32;
  bool int4_values_ = false;
  std::vector<double> scales_;  // [heads * size], or one for all; empty: numbers as they are
  int64_t size_ = 0;
};

}  // namespace parallax::reference
