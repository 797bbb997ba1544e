// SPDX-License-Identifier: Apache-2.0
// CRC-32C by tables, by the SSE 4.2 instruction on three interleaved streams joined by a shift table, and by AVX-512
// carry-less products.
#include "inspector/base/crc32c.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <array>
#include <cstring>

#include "inspector/base/cpu_features.h"

namespace parallax {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78U;  // 0x1EDC6F41 with its bits reversed

// Polynomials modulo the CRC's, with their bits reversed: the highest bit is the coefficient of x^0.
constexpr uint32_t times_x(uint32_t value) { return (value & 1U) != 0 ? (value >> 1) ^ kPolynomial : value >> 1; }
constexpr uint32_t power_of_x(int exponent) {
  uint32_t value = 0x80000000U;
  for (; exponent > 0; --exponent) value = times_x(value);
  return value;
}
constexpr uint32_t product(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (uint32_t bit = 0x80000000U; bit != 0; bit >>= 1, b = times_x(b)) sum ^= (a & bit) != 0 ? b : 0U;
  return sum;
}

constexpr std::array<std::array<uint32_t, 256>, 8> make_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = times_x(crc);
    tables[0][byte] = crc;
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    for (size_t slice = 1; slice < 8; ++slice) {
      const uint32_t previous = tables[slice - 1][byte];
      tables[slice][byte] = (previous >> 8) ^ tables[0][previous & 0xFFU];
    }
  }
  return tables;
}
constexpr auto kTables = make_tables();

uint64_t load_u64(const uint8_t* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

uint32_t update_portable(uint32_t crc, const uint8_t* bytes, size_t size) {
  for (; size >= 8; bytes += 8, size -= 8) {
    const uint64_t word = load_u64(bytes) ^ crc;
    uint32_t next = 0;
    for (size_t slice = 0; slice < 8; ++slice) next ^= kTables[7 - slice][(word >> (8 * slice)) & 0xFFU];
    crc = next;
  }
  for (; size > 0; ++bytes, --size) crc = (crc >> 8) ^ kTables[0][(crc ^ *bytes) & 0xFFU];
  return crc;
}

// x^(8 * 2^k): what appending 2^k zero bytes multiplies a CRC by.
constexpr std::array<uint32_t, 64> make_exponent_powers() {
  std::array<uint32_t, 64> powers{power_of_x(8)};
  for (size_t k = 1; k < powers.size(); ++k) powers[k] = product(powers[k - 1], powers[k - 1]);
  return powers;
}
constexpr auto kExponentPowers = make_exponent_powers();

#if defined(__x86_64__)
constexpr size_t kBlock = 2048;  // bytes of each of the three streams

// Appending n zero bytes to a message is linear in its CRC: four tables of 256 entries apply it for n = kBlock.
constexpr std::array<std::array<uint32_t, 256>, 4> make_shift_tables() {
  constexpr uint32_t kBlockPower = kExponentPowers[11];
  static_assert(kBlock == size_t{1} << 11);
  std::array<std::array<uint32_t, 256>, 4> tables{};
  for (size_t part = 0; part < 4; ++part) {
    for (uint32_t byte = 0; byte < 256; ++byte) tables[part][byte] = product(byte << (8 * part), kBlockPower);
  }
  return tables;
}

uint32_t shift_by_block(uint32_t crc) {
  static const auto kShift = make_shift_tables();
  return kShift[0][crc & 0xFFU] ^ kShift[1][crc >> 8 & 0xFFU] ^ kShift[2][crc >> 16 & 0xFFU] ^ kShift[3][crc >> 24];
}

__attribute__((target("sse4.2"))) uint32_t update_sse42(uint32_t crc, const uint8_t* bytes, size_t size) {
  uint64_t first = crc;
  for (; size >= 3 * kBlock; bytes += 3 * kBlock, size -= 3 * kBlock) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t offset = 0; offset < kBlock; offset += 8) {
      first = __builtin_ia32_crc32di(first, load_u64(bytes + offset));
      second = __builtin_ia32_crc32di(second, load_u64(bytes + kBlock + offset));
      third = __builtin_ia32_crc32di(third, load_u64(bytes + 2 * kBlock + offset));
    }
    const uint32_t joined = shift_by_block(static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
    first = shift_by_block(joined) ^ static_cast<uint32_t>(third);
  }
  for (; size >= 8; bytes += 8, size -= 8) first = __builtin_ia32_crc32di(first, load_u64(bytes));
  auto tail = static_cast<uint32_t>(first);
  for (; size > 0; ++bytes, --size) tail = __builtin_ia32_crc32qi(tail, *bytes);
  return tail;
}

// Folding: 128 bits of the message, 2048 bits ahead of others, are the same modulo the polynomial as two products that
// are added to those others. Gopal et al.: Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction,
// 2009. What is left after all folds is a message of 256 bytes with the same CRC.
constexpr size_t kFoldBytes = 256;
constexpr size_t kLeastFoldedBytes = 4 * kFoldBytes;
constexpr uint64_t kFoldLow = uint64_t{power_of_x(8 * kFoldBytes + 32)} << 1;
constexpr uint64_t kFoldHigh = uint64_t{power_of_x(8 * kFoldBytes - 32)} << 1;

__attribute__((target("avx512f,vpclmulqdq"))) size_t fold_avx512(uint32_t crc, const uint8_t* bytes, size_t size,
                                                                 uint8_t (&rest)[kFoldBytes]) {
  const auto constants =
      _mm512_set_epi64(kFoldHigh, kFoldLow, kFoldHigh, kFoldLow, kFoldHigh, kFoldLow, kFoldHigh, kFoldLow);
  __m512i state[4];
#pragma GCC unroll 4
  for (size_t part = 0; part < 4; ++part) state[part] = _mm512_loadu_si512(bytes + 64 * part);
  state[0] = _mm512_xor_si512(state[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc))));
  size_t offset = kFoldBytes;
  for (; offset + kFoldBytes <= size; offset += kFoldBytes) {
#pragma GCC unroll 4
    for (size_t part = 0; part < 4; ++part) {
      const __m512i low = _mm512_clmulepi64_epi128(state[part], constants, 0x00);
      const __m512i high = _mm512_clmulepi64_epi128(state[part], constants, 0x11);
      const __m512i next = _mm512_loadu_si512(bytes + offset + 64 * part);
      state[part] = _mm512_ternarylogic_epi64(low, high, next, 0x96);  // the exclusive or of all three
    }
  }
  std::memcpy(rest, state, sizeof rest);
  return offset;
}

bool has_avx512_products() {
  static const bool has_them = has_feature(CpuFeature::avx512_clmul) && has_feature(CpuFeature::sse42);
  return has_them;
}

uint32_t update_avx512(uint32_t crc, const uint8_t* bytes, size_t size) {
  uint8_t rest[kFoldBytes];
  const size_t folded = fold_avx512(crc, bytes, size, rest);
  return update_sse42(update_sse42(0, rest, sizeof rest), bytes + folded, size - folded);
}
#endif

}  // namespace

uint32_t crc32c_portable(const void* data, size_t size, uint32_t crc) {
  return ~update_portable(~crc, static_cast<const uint8_t*>(data), size);
}

uint32_t crc32c_joined(uint32_t first, uint32_t second, size_t second_bytes) {
  for (size_t k = 0; second_bytes != 0; ++k, second_bytes >>= 1) {
    if ((second_bytes & 1U) != 0) first = product(first, kExponentPowers[k]);
  }
  return first ^ second;
}

uint32_t crc32c(const void* data, size_t size, uint32_t crc) {
#if defined(__x86_64__)
  if (size >= kLeastFoldedBytes && has_avx512_products())
    return ~update_avx512(~crc, static_cast<const uint8_t*>(data), size);
  static const bool has_sse42 = has_feature(CpuFeature::sse42);
  if (has_sse42) return ~update_sse42(~crc, static_cast<const uint8_t*>(data), size);
#endif
  return crc32c_portable(data, size, crc);
}

}  // namespace parallax
