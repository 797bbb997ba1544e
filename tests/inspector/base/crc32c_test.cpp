// SPDX-License-Identifier: Apache-2.0
// CRC-32C against published values, and the fast form against the portable one.
#include "inspector/base/crc32c.h"

#include <array>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace parallax {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, PublishedValues) {
  std::array<uint8_t, 32> bytes{};
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), 0x8A9136AAU);
  bytes.fill(0xFF);
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), 0x62A8AB43U);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), 0x46DD794EU);
  constexpr std::string_view kDigits = "123456789";
  EXPECT_EQ(crc32c(kDigits.data(), kDigits.size()), 0xE3069283U);
  EXPECT_EQ(crc32c_portable(kDigits.data(), kDigits.size()), 0xE3069283U);
}

// Lengths around the blocks of the fast form, at every alignment of eight bytes.
TEST(Crc32c, FastAndPortableAgree) {
  std::mt19937 random(1);
  std::vector<uint8_t> bytes(100'000);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  for (const size_t size : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{63}, size_t{1023}, size_t{1024},
                            size_t{1025}, size_t{1279}, size_t{1280}, size_t{2047}, size_t{6143}, size_t{6144},
                            size_t{6145}, size_t{12288}, size_t{18432}, size_t{99'990}}) {
    for (size_t offset = 0; offset < 8; ++offset) {
      EXPECT_EQ(crc32c(&bytes[offset], size), crc32c_portable(&bytes[offset], size)) << size << " bytes at " << offset;
    }
  }
}

TEST(Crc32c, ContinuesOverPieces) {
  std::vector<uint8_t> bytes(20'000);
  std::iota(bytes.begin(), bytes.end(), uint8_t{3});
  const uint32_t whole = crc32c(bytes.data(), bytes.size());
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{6144}, size_t{9999}}) {
    const uint32_t first = crc32c(bytes.data(), cut);
    EXPECT_EQ(crc32c(&bytes[cut], bytes.size() - cut, first), whole) << "cut at " << cut;
  }
}

TEST(Crc32c, IsJoinedFromThoseOfTwoParts) {
  std::vector<uint8_t> bytes(70'000);
  std::iota(bytes.begin(), bytes.end(), uint8_t{5});
  const uint32_t whole = crc32c(bytes.data(), bytes.size());
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{4464}, size_t{65'536}, size_t{69'999}, size_t{70'000}}) {
    const uint32_t first = crc32c(bytes.data(), cut);
    const uint32_t second = crc32c(bytes.data() + cut, bytes.size() - cut);
    EXPECT_EQ(crc32c_joined(first, second, bytes.size() - cut), whole) << "cut at " << cut;
  }
}

}  // namespace
}  // namespace parallax
