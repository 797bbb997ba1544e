// CRC-32C by tables, and by the SSE 4.2 instruction on three interleaved streams joined by a carry-less shift table.
#include "inspector/base/crc32c.h"

#include <array>
#include <cstring>

namespace parallax {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78U;  // 0x1EDC6F41 with its bits reversed

constexpr std::array<std::array<uint32_t, 256>, 8> make_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? (crc >> 1) ^ kPolynomial : crc >> 1;
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

#if defined(__x86_64__)
constexpr size_t kBlock = 2048;  // bytes of each of the three streams

// Appending n zero bytes to a message is linear in its CRC: four tables of 256 entries apply it for n = kBlock.
constexpr std::array<std::array<uint32_t, 256>, 4> make_shift_tables() {
  std::array<uint32_t, 32> basis{};
  for (size_t bit = 0; bit < 32; ++bit) {
    uint32_t crc = 1U << bit;
    for (size_t byte = 0; byte < kBlock; ++byte) crc = (crc >> 8) ^ kTables[0][crc & 0xFFU];
    basis[bit] = crc;
  }
  std::array<std::array<uint32_t, 256>, 4> tables{};
  for (size_t part = 0; part < 4; ++part) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t crc = 0;
      for (size_t bit = 0; bit < 8; ++bit) {
        if ((byte >> bit & 1U) != 0) crc ^= basis[part * 8 + bit];
      }
      tables[part][byte] = crc;
    }
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
#endif

}  // namespace

uint32_t crc32c_portable(const void* data, size_t size, uint32_t crc) {
  return ~update_portable(~crc, static_cast<const uint8_t*>(data), size);
}

uint32_t crc32c(const void* data, size_t size, uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_sse42 = __builtin_cpu_supports("sse4.2");
  if (has_sse42) return ~update_sse42(~crc, static_cast<const uint8_t*>(data), size);
#endif
  return crc32c_portable(data, size, crc);
}

}  // namespace parallax
