// SPDX-License-Identifier: Apache-2.0
// In which numbers GroupQueryAttention keeps its cache: as they are, or as multiples of a scale.
#pragma once

#include <string>
#include <vector>

#include "runtime/ops/op_context.h"

namespace parallax::runtime {

// The position of a sample's new tokens in its sequence: after `past` others; `total` of its tokens are no padding.
struct CachePosition {
  int64_t past = 0;
  int64_t total = 0;
};

// A cache [batch, heads, capacity, size] that takes in [batch, heads, sequence, size].
struct CacheRows {
  int64_t batch, heads, sequence, size, capacity;
  const std::vector<CachePosition>& locations;
};

// "Quantization" on the operator's page. It leaves open how 4 bits are written; as in onnxruntime they are the number
// + 8, the even element in the low bits of a byte. New tokens are attended to as the cache holds them, rounded.
class CacheFormat {
 public:
  // `past`, `scale`: inputs; `type`: the attribute k_quant_type or v_quant_type. Errors: execution.
  static Result<CacheFormat> create(const OpCall& op, int64_t past, int64_t scale, const std::string& type,
                                    int64_t heads, int64_t size);

  // The past rows of each sample, then its new ones, then zeros, as float32; output `output` is the same as the cache
  // holds it.
  Result<Tensor> extend(OpContext<Cpu>& op, int64_t past, int64_t output, const Tensor& fresh, const CacheRows& rows);

  DType dtype() const { return dtype_; }
  bool is_quantized() const { return scale_count_ > 0; }
  bool has_int4() const { return int4_values_; }  // two numbers of 4 bits in a byte
  int64_t scale_count() const { return scale_count_; }

 private:
  float scale_of(int64_t head, int64_t element) const;
  float rounded(float number) const;
  Result<std::vector<float>> numbers_of_past(const OpCall& op, int64_t past, const CacheRows& rows) const;
  Status set_output(OpContext<Cpu>& op, int64_t output, const Tensor& numbers) const;

  DType dtype_ = DType::float32;
  bool int4_values_ = false;
  int64_t scale_input_ = 0;
  int64_t scale_count_ = 0;    // heads * size, or one for all; 0: numbers as they are
  std::vector<float> scales_;  // read where the host extends
  int64_t size_ = 0;
};

}  // namespace parallax::runtime
