// SPDX-License-Identifier: Apache-2.0
// The probe of a library's attention: its operands, and the judgment of what came out.
#include "runtime/device/gpu/attention_probe.h"

#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "runtime/device/cpu/blocks.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kProbeHeads = AttentionProbe::kHeads, kProbeKeys = AttentionProbe::kKeys;
constexpr float kInfinite = std::numeric_limits<float>::infinity(), kNoNumber = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kHiddenHead = 1;
constexpr float kHiddenValue = 4, kSeenValue = 1;  // of the first half of the keys, and of the rest

int64_t probe_queries(const AttentionKind& kind) { return kind.has_one_query ? 1 : 16; }

// An element for each (head, row, column).
Tensor probe_tensor(DType dtype, const Shape& shape, const std::function<float(int64_t, int64_t, int64_t)>& element) {
  Tensor tensor = Tensor::allocate(dtype, shape).take();
  const int64_t rows = shape[1], columns = shape[2];
  for (int64_t i = 0; i < shape.element_count(); ++i) {
    const float value = element(i / (rows * columns), i / columns % rows, i % columns);
    store_block<float>(dtype, tensor.mutable_data(), i, 1, &value);
  }
  return tensor;
}

// Its queries are zeros but for the first number of each, its keys ones: that number is the score of all keys.
constexpr std::array<float, kProbeHeads> kScores = {0, 0, kNoNumber, kInfinite};

// Every weight is a power of two, so that no order of the sums rounds.
std::array<float, kProbeHeads> expected_of(const AttentionKind& kind) {
  constexpr float kMean = (kHiddenValue + kSeenValue) / 2;
  if (kind.added_dtype == DType::undefined) return {kMean, kMean, kNoNumber, kNoNumber};
  return {kSeenValue, kNoNumber, kNoNumber, kNoNumber};
}

}  // namespace

AttentionProbe attention_probe(const AttentionKind& kind) {
  AttentionProbe probe;
  probe.queries = probe_queries(kind);
  probe.q = probe_tensor(
      kind.dtype, Shape{kProbeHeads, probe.queries, kind.size},
      [](int64_t head, int64_t, int64_t column) { return column == 0 ? kScores[static_cast<size_t>(head)] : 0.0F; });
  probe.k = probe_tensor(kind.dtype, Shape{kProbeHeads, kProbeKeys, kind.size},
                         [](int64_t, int64_t, int64_t) { return 1.0F; });
  probe.v =
      probe_tensor(kind.dtype, Shape{kProbeHeads, kProbeKeys, kind.value_size},
                   [](int64_t, int64_t key, int64_t) { return key < kProbeKeys / 2 ? kHiddenValue : kSeenValue; });
  if (kind.added_dtype == DType::undefined) return probe;
  probe.added = probe_tensor(kind.added_dtype, Shape{kProbeHeads, probe.queries, kProbeKeys},
                             [](int64_t head, int64_t, int64_t key) {
                               return head == kHiddenHead || (head == 0 && key < kProbeKeys / 2) ? -kInfinite : 0.0F;
                             });
  return probe;
}

bool is_attended_as_ours(const AttentionKind& kind, const Tensor& results) {
  const int64_t of_head = probe_queries(kind) * kind.value_size;
  if (results.dtype() != kind.dtype || results.element_count() != kProbeHeads * of_head) return false;
  const std::array<float, kProbeHeads> expected = expected_of(kind);
  for (int64_t i = 0; i < results.element_count(); ++i) {
    const float ours = expected[static_cast<size_t>(i / of_head)];
    const float theirs = load_element<float>(kind.dtype, results.view().data, i);
    const bool is_hidden = kind.added_dtype != DType::undefined && i / of_head == kHiddenHead;
    if (is_hidden && theirs == 0) continue;  // store_hidden_queries makes it NaN
    if (std::isnan(ours) ? !std::isnan(theirs) : theirs != ours) return false;
  }
  return true;
}

}  // namespace parallax::runtime
