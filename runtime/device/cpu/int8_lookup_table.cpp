// SPDX-License-Identifier: Apache-2.0
// The table in four registers where bytes can be picked out of two at once (AVX-512 VBMI).
#include "runtime/device/cpu/int8_lookup_table.h"

#include "inspector/base/cpu_features.h"
#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/multiversion.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace parallax::runtime {
namespace {

#if defined(__x86_64__)
bool picks_bytes() { return has_feature(CpuFeature::avx512_vbmi); }

// 64 at a time; returns where it ended.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) int64_t look_up_registers(const Int8LookupTable& table,
                                                                                 int64_t count, const uint8_t* x,
                                                                                 uint8_t* y) {
  const __m512i first = _mm512_loadu_si512(table.data()), second = _mm512_loadu_si512(table.data() + 64);
  const __m512i third = _mm512_loadu_si512(table.data() + 128), fourth = _mm512_loadu_si512(table.data() + 192);
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    const __m512i indices = _mm512_loadu_si512(x + i);
    const __m512i low = _mm512_permutex2var_epi8(first, indices, second);
    const __m512i high = _mm512_permutex2var_epi8(third, indices, fourth);
    _mm512_storeu_si512(y + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(indices), low, high));
  }
  return i;
}
#else
bool picks_bytes() { return false; }
int64_t look_up_registers(const Int8LookupTable&, int64_t, const uint8_t*, uint8_t*) { return 0; }
#endif

}  // namespace

void look_up_bytes(const Int8LookupTable& table, int64_t count, const std::byte* x, std::byte* y) {
  parallel_for(count, 1, [&](int64_t begin, int64_t end) {
    const auto* const from = reinterpret_cast<const uint8_t*>(x);
    auto* const to = reinterpret_cast<uint8_t*>(y);
    int64_t i = begin;
    if (picks_bytes()) i += look_up_registers(table, end - begin, from + begin, to + begin);
    for (; i < end; ++i) to[i] = table[from[i]];
  });
}

}  // namespace parallax::runtime
