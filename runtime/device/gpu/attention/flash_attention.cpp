// SPDX-License-Identifier: Apache-2.0
// Which attention our own kernel computes.
#include "runtime/device/gpu/attention/flash_attention.h"

#include <limits>

namespace parallax::runtime {
namespace {

constexpr int64_t kMostSize = 256;
constexpr int64_t kMostKeys = std::numeric_limits<int32_t>::max() / 2;  // they are counted in 32 bits

bool has_even_strides(const FlashAttention& attention, const MatrixOffsets& locations) {
  return head_strides(locations, attention.samples, attention.heads).has_value();
}

bool can_be_added(const FlashAttention& attention, const std::byte* added, DType dtype,
                  const MatrixOffsets& locations) {
  if (added == nullptr) return true;
  return (dtype == DType::float32 || dtype == attention.dtype) && has_even_strides(attention, locations);
}

}  // namespace

std::optional<HeadStrides> head_strides(const MatrixOffsets& locations, int64_t samples, int64_t heads) {
  const Ints& offsets = locations.offsets;
  if (offsets.empty() || offsets.size() != samples * heads) return std::nullopt;
  HeadStrides strides;
  while (strides.sharing < heads && offsets[strides.sharing] == offsets[0]) ++strides.sharing;
  if (heads % strides.sharing != 0) return std::nullopt;
  strides.start = offsets[0];
  strides.head = strides.sharing < heads ? offsets[strides.sharing] - offsets[0] : 0;
  strides.sample = samples > 1 ? offsets[heads] - offsets[0] : 0;
  strides.row = locations.row;
  strides.column = locations.column;
  for (int64_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] != strides.matrix(i / heads, i % heads)) return std::nullopt;
  }
  return strides;
}

bool is_for_flash(const FlashAttention& attention) {
  const AttentionProblem& problem = attention.problem;
  const DType dtype = attention.dtype;
  if (dtype != DType::float32 && dtype != DType::float16 && dtype != DType::bfloat16) return false;
  const auto is_size = [](int64_t size) { return size > 0 && size <= kMostSize; };
  if (!is_size(problem.size) || !is_size(problem.value_size)) return false;
  if (problem.queries < 1 || problem.keys < 1 || problem.keys > kMostKeys || problem.queries > kMostKeys) return false;
  if (attention.samples < 1 || attention.heads < 1) return false;
  for (const MatrixOffsets* locations : {&problem.q, &problem.k, &problem.v, &problem.y}) {
    if (!has_even_strides(attention, *locations)) return false;
  }
  if (attention.hiding != nullptr && !has_even_strides(attention, attention.hiding_locations)) return false;
  return can_be_added(attention, attention.added, attention.added_dtype, attention.added_locations) &&
         can_be_added(attention, attention.added_again, attention.added_again_dtype, attention.added_again_locations);
}

}  // namespace parallax::runtime
