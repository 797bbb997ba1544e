// SPDX-License-Identifier: Apache-2.0
// Attention of ai.onnx on a GPU without stored scores: by the GPU's library, else by our own kernel.
#pragma once

#include <limits>
#include <memory>

#include "runtime/device/gpu/attention/attention_kernel.h"
#include "runtime/device/gpu/attention/flash_attention.h"
#include "runtime/ops/attention_heads.h"

namespace parallax::runtime {

template <class Device>
struct AttentionShape {
  HeadsView q, k, v;
  int64_t past = 0;
  int64_t keys = 0;                               // past and present
  Elements<Device, const int64_t> valid_lengths;  // of each sample's keys; none without nonpad_kv_seqlen
  int64_t left_window = -1, right_window = -1;
  bool is_causal = false;
  double scale = 0;
  double softcap = 0;
};

// A tensor that is added to the scores, or hides them where it is false; strides of batch, head, query and key.
struct ScoreMask {
  Source data;  // no data: none
  int64_t strides[4] = {};
  int64_t keys = 0;  // those after them are hidden
};

// The heads of all keys or values.
inline HeadsView heads_of(const CachedRows& rows) {
  const Shape& shape = rows.view.shape;
  return {shape[0], shape[1], shape[2], shape[3], shape[1] * rows.matrix, rows.matrix, shape[3]};
}

// The mask as it is added to the scores of a kernel or library, or hides them. Floats of a third type are converted.
template <class Device>
Status describe_mask(OpContext<Device>& op, const ScoreMask& mask, FlashAttention& attention,
                     std::shared_ptr<const float>& kept) {
  if (mask.data.data == nullptr) return {};
  attention.rule.keys = mask.keys;
  MatrixOffsets locations{Ints(attention.samples * attention.heads), mask.strides[2], mask.strides[3]};
  for (int64_t i = 0; i < locations.offsets.size(); ++i) {
    locations.offsets[i] = i / attention.heads * mask.strides[0] + i % attention.heads * mask.strides[1];
  }
  if (mask.data.dtype == DType::bool_) {
    attention.hiding = mask.data.data;
    attention.hiding_locations = locations;
    attention.hides_where = false;
    attention.hidden_value = -std::numeric_limits<float>::infinity();
    return {};
  }
  attention.added = mask.data.data;
  attention.added_dtype = mask.data.dtype;
  attention.added_locations = locations;
  if (mask.data.dtype == DType::float32 || mask.data.dtype == attention.dtype) return {};
  kept = PX_TRY(converted<float>(op.queue(), op.input(3).view(), op.is_constant(3)));
  attention.added = reinterpret_cast<const std::byte*>(kept.get());
  attention.added_dtype = DType::float32;
  return {};
}

// The operands as they are stored.
template <class Device>
void describe_operands(const OpContext<Device>& op, const AttentionShape<Device>& shape, const HeadsView& keys,
                       const HeadsView& values, FlashAttention& attention) {
  const HeadsView& q = shape.q;
  AttentionProblem& problem = attention.problem;
  attention.samples = q.batch;
  attention.heads = q.heads;
  attention.dtype = op.input(0).dtype();
  attention.q = op.input(0).view().data;
  problem.queries = q.length;
  problem.keys = shape.keys;
  problem.size = q.size;
  problem.value_size = shape.v.size;
  problem.scale = shape.scale;
  problem.q = q.locations(q.heads);
  problem.k = keys.locations(q.heads);
  std::swap(problem.k.row, problem.k.column);
  problem.v = values.locations(q.heads);
  attention.rule = {shape.keys, shape.past, shape.left_window, shape.right_window, shape.is_causal};
  attention.lengths = shape.valid_lengths.data;
  if (attention.lengths != nullptr) attention.rule.past = 0;
  attention.softcap = shape.softcap;
  attention.hidden_is_zero = true;
}

// True where the library's scores are ours: it knows those that one tensor is added to.
inline bool is_plain(const FlashAttention& attention) {
  const KeyRule& rule = attention.rule;
  return attention.hiding == nullptr && attention.lengths == nullptr && attention.softcap == 0.0 && !rule.is_causal &&
         rule.left_window < 0 && rule.right_window < 0 && rule.keys == attention.problem.keys;
}

// By a GPU's library, else by our own kernel, which store no scores. Queries whose keys are all hidden give zeros.
template <class Device>
Result<bool> attend_at_once(OpContext<Device>& op, const AttentionShape<Device>& shape, const ScoreMask& mask,
                            const TensorView& keys, const HeadsView& key_heads, const TensorView& values,
                            const HeadsView& value_heads) {
  const DType dtype = op.input(0).dtype();
  if (op.wants_output(3) || keys.dtype != dtype || values.dtype != dtype || dtype == DType::float64) return false;
  FlashAttention attention;
  describe_operands(op, shape, key_heads, value_heads, attention);
  const HeadsView& q = shape.q;
  const bool flat = op.input(0).shape().rank() == 3;
  const Shape out =
      flat ? Shape{q.batch, q.length, q.heads * shape.v.size} : Shape{q.batch, q.heads, q.length, shape.v.size};
  attention.problem.y = PX_TRY(heads_view(out, q.heads, "Y")).locations(q.heads);
  if (out.element_count() == 0) return false;
  attention.k = keys.data;
  attention.v = values.data;
  std::shared_ptr<const float> kept;
  PX_TRY(describe_mask(op, mask, attention, kept));
  const bool is_librarys = is_plain(attention) && PX_TRY(is_left_to_library(op.queue(), attention));
  if (!is_librarys && !is_for_flash(attention)) return false;
  attention.y = PX_TRY(op.make_output(0, dtype, out)).data;
  if (is_librarys && PX_TRY(library_attention(op.queue(), attention))) {
    PX_TRY(store_hidden_queries(op.queue(), attention, 0.0F));
    return true;
  }
  return flash_attention(op.queue(), attention);
}

}  // namespace parallax::runtime
