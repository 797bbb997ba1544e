// SPDX-License-Identifier: Apache-2.0
// Feature maps whose channels are adjacent, a group after the other; and elements gathered, which compilers do one by
// one.
#include "runtime/ops/spatial/host_taps.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/transpose_blocks.h"

namespace parallax::runtime {

template <class C>
void group_channels(const C* feature_maps, int64_t samples, int64_t channels, int64_t plane, C* grouped) {
  constexpr int64_t kPart = 1024, kGroup = kChannelGroup<C>;
  const int64_t parts = (plane + kPart - 1) / kPart, groups = channel_groups<C>(channels);
  parallel_for(samples * groups * parts, kPart * kGroup / 4, [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; ++number) {
      const int64_t group = number / parts, first = number % parts * kPart;
      const int64_t count = std::min(kPart, plane - first);
      const int64_t channel = group % groups * kGroup, width = std::min(kGroup, channels - channel);
      C* const target = grouped + (group * plane + first) * kGroup;
      if (width < kGroup) std::fill_n(target, count * kGroup, C(0));
      transpose(target, kGroup, feature_maps + (group / groups * channels + channel) * plane + first, plane, count,
                width);
    }
  });
}

#ifdef __x86_64__
namespace {

__attribute__((target("avx512f"))) void add_up_avx512(const float* plane, const int32_t* offsets, const float* weights,
                                                      int64_t taps, int64_t locations, int64_t count, float* y) {
  for (int64_t first = 0; first < count; first += 16) {
    const auto present = static_cast<__mmask16>(0xFFFFU >> (16 - std::min<int64_t>(16, count - first)));
    __m512 sum = _mm512_setzero_ps();
    for (int64_t at = first; at < taps * locations; at += locations) {
      const __m512i offset = _mm512_maskz_loadu_epi32(present, offsets + at);
      const __mmask16 inside = _mm512_mask_cmpge_epi32_mask(present, offset, _mm512_setzero_si512());
      const __m512 read = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), inside, offset, plane, 4);
      sum = _mm512_add_ps(sum, _mm512_mul_ps(_mm512_maskz_loadu_ps(inside, weights + at), read));
    }
    _mm512_mask_storeu_ps(y + first, present, sum);
  }
}

}  // namespace
#endif

bool add_up_gathered(const float* plane, const int32_t* offsets, const float* weights, int64_t taps, int64_t locations,
                     int64_t count, float* y) {
#ifdef __x86_64__
  if (vector_level() == VectorLevel::avx512) {
    add_up_avx512(plane, offsets, weights, taps, locations, count, y);
    return true;
  }
#endif
  return false;
}

template void group_channels(const float*, int64_t, int64_t, int64_t, float*);
template void group_channels(const double*, int64_t, int64_t, int64_t, double*);

}  // namespace parallax::runtime
