// SPDX-License-Identifier: Apache-2.0
// The probe of a library's activations: its product, and the judgment of what came out.
#include "runtime/device/gpu/library_epilogue.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runtime/device/cpu/activation.h"
#include "runtime/device/cpu/rows/sort_key.h"

namespace parallax::runtime {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Few bits each, so that every type and TF32 has them exactly; the large and the small ones are normal in float16.
constexpr std::array<float, EpilogueProbe::kRows> kValues = {std::numeric_limits<float>::quiet_NaN(),
                                                             kInfinity,
                                                             -kInfinity,
                                                             0.0F,
                                                             1.0F,
                                                             -1.0F,
                                                             0.5F,
                                                             -0.5F,
                                                             3.0F,
                                                             -3.0F,
                                                             0.125F,
                                                             -1.75F,
                                                             24576.0F,
                                                             -24576.0F,
                                                             0.0001220703125F,
                                                             -0.0001220703125F};

Tensor tensor_of(DType dtype, const Shape& shape, const std::vector<float>& values) {
  Tensor tensor = Tensor::allocate(dtype, shape).take();
  store_block<float>(dtype, tensor.mutable_data(), 0, static_cast<int64_t>(values.size()), values.data());
  return tensor;
}

// Neighbors in the type differ by one.
int64_t rank_among_numbers(DType dtype, const std::byte* element) {
  int64_t rank = 0;
  storage::visit_storage(dtype, [&](auto* type) {
    const auto* value = reinterpret_cast<const std::remove_pointer_t<decltype(type)>*>(element);
    rank = static_cast<int64_t>(gpu::sort_key(*value, NumberOrder::ascending));
  });
  return rank;
}

}  // namespace

EpilogueProbe epilogue_probe(const EpilogueKind& kind) {
  constexpr int64_t kRows = EpilogueProbe::kRows, kInner = EpilogueProbe::kInner, kColumns = EpilogueProbe::kColumns;
  std::vector<float> a(kRows * kInner, 0.0F), bias(kColumns, 0.0F);
  for (size_t row = 0; row < kRows; ++row) a[row * kInner] = kValues[row];
  for (size_t column = 0; kind.has_bias && column < kColumns; column += 2) bias[column] = 0.25F;
  EpilogueProbe probe{tensor_of(kind.dtype, Shape{kRows, kInner}, a),
                      tensor_of(kind.dtype, Shape{kInner, kColumns}, std::vector<float>(kInner * kColumns, 1.0F)),
                      tensor_of(kind.dtype, Shape{kColumns}, bias),
                      {}};
  for (const float value : kValues) {
    for (const float each : bias) probe.sums.push_back(value + each);
  }
  return probe;
}

float activated(Epilogue epilogue, float sum) {
  using Kind = Activation::Kind;
  if (epilogue == Epilogue::relu) return activation_detail::Apply<Kind::relu>{0, 0}(sum);
  if (epilogue == Epilogue::tanh_gelu) return activation_detail::Apply<Kind::fast_gelu>{0, 0}(sum);
  return sum;
}

bool is_as_ours(const EpilogueKind& kind, const std::vector<float>& sums, const Tensor& results) {
  if (results.dtype() != kind.dtype || results.element_count() != static_cast<int64_t>(sums.size())) return false;
  const auto bytes = byte_size(kind.dtype, 1);
  constexpr int64_t kUnits = 4;
  constexpr float kLostBySum = 0x1p-23F;  // 1 + tanh(u), as most compute it, rounds to 2^-24 and may be off by two
  for (size_t i = 0; i < sums.size(); ++i) {
    const float ours = activated(kind.epilogue, sums[i]);
    std::array<std::byte, sizeof(double)> stored{};
    store_block<float>(kind.dtype, stored.data(), 0, 1, &ours);
    const std::byte* theirs = results.view().data + i * bytes;
    const float shown = load_element<float>(kind.dtype, theirs, 0);
    if (std::isnan(ours) || std::isnan(shown)) {
      if (std::isnan(ours) != std::isnan(shown)) return false;
      continue;
    }
    const bool is_exact = std::equal(theirs, theirs + bytes, stored.data());
    if (is_exact) continue;
    if (kind.epilogue != Epilogue::tanh_gelu || std::isinf(ours)) return false;
    const int64_t distance = rank_among_numbers(kind.dtype, theirs) - rank_among_numbers(kind.dtype, stored.data());
    const bool is_sum_rounded = std::abs(shown - ours) <= kLostBySum * std::abs(sums[i]);
    if (std::abs(distance) > kUnits && !is_sum_rounded) return false;
  }
  return true;
}

}  // namespace parallax::runtime
