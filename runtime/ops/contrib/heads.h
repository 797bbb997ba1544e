// SPDX-License-Identifier: Apache-2.0
// Attention as com.microsoft's operators share it: queries, keys and values by head, masks written as numbers to be
// added, and the Attention of ai.onnx that computes. All in float32 or float64.
#pragma once

#include "inspector/model/rule_errors.h"
#include "runtime/ops/inner_op.h"

namespace parallax::runtime {

// A view of the elements under other dimensions. Error: execution, when there are not as many.
inline Result<Tensor> reshaped(const Tensor& tensor, const Ints& dims) {
  const Shape shape = PX_TRY(shape_of(dims));
  if (shape.element_count() != tensor.element_count())
    return wrong_shape("the tensor", tensor.shape(), "have {} elements to be seen as {}", shape.element_count(),
                       shape.to_string());
  return tensor.reshaped(shape);
}

// The compute type: float32 for narrow floats and float32, float64 for itself.
inline DType head_type(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

// [batch, length, heads * size] as [batch, heads, length, size], and back. Errors: execution, when it does not split.
Result<Tensor> split_heads(ChainContext& op, const Tensor& x, int64_t heads);
Result<Tensor> join_heads(ChainContext& op, const Tensor& x);
// Columns [begin, end) of the last axis.
Result<Tensor> columns(ChainContext& op, const Tensor& x, int64_t begin, int64_t end);
// Part `part` of [batch, length, heads, parts, size], as [batch, heads, length, size].
Result<Tensor> packed_part(ChainContext& op, const Tensor& x, int64_t heads, int64_t parts, int64_t part);
// Rows of `a` along axis 2, then those of `b`.
Result<Tensor> joined_rows(ChainContext& op, const Tensor& a, const Tensor& b);

struct ScoreShape {
  int64_t batch = 0, queries = 0, keys = 0, past = 0;
};
// 0 where a key may be seen, `filter` elsewhere: [batch, 1, queries or 1, keys] of float32. The mask has a length for
// each sample (or an end and a beginning), a number for each key, or one for each query and key.
Result<Tensor> added_mask(ChainContext& op, const Tensor& mask, const ScoreShape& shape, double filter);
// The sum of two masks, either of which may be undefined.
Result<Tensor> both_masks(ChainContext& op, const Tensor& a, const Tensor& b);

struct Heads {
  Tensor q, k, v;    // [batch, heads, length, size], of one type
  Tensor mask;       // added to the scores; undefined: none
  double scale = 0;  // 0: by the size of a head
  double softcap = 0;
  bool causal = false;  // query i sees keys up to past + i
  int64_t past = 0;     // keys in front of those of the first query
  int64_t shown = -1;   // the stage of the scores that is wanted (see Attention's qk_matmul_output_mode)
};
struct Attended {
  Tensor y;       // [batch, heads, length, size]
  Tensor scores;  // where they are shown
};
Result<Attended> attend(ChainContext& op, const Heads& heads);

}  // namespace parallax::runtime
