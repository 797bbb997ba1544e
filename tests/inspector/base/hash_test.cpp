// crc32c against published vectors and its portable twin; SHA-256 against its standard; checked products.
#include "inspector/base/hash.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/base/checked_math.h"
#include "inspector/base/crc32c.h"

namespace parallax {
namespace {

TEST(Crc32c, PublishedVectors) {
  // RFC 3720, appendix B.4, and the check value of the CRC catalogue.
  const std::vector<unsigned char> zeros(32, 0);
  const std::vector<unsigned char> ones(32, 0xFF);
  EXPECT_EQ(crc32c(zeros.data(), zeros.size()), 0x8A9136AAU);
  EXPECT_EQ(crc32c(ones.data(), ones.size()), 0x62A8AB43U);
  EXPECT_EQ(crc32c("123456789", 9), 0xE3069283U);
  EXPECT_EQ(crc32c_portable("123456789", 9), 0xE3069283U);
  EXPECT_EQ(crc32c(nullptr, 0), 0U);
}

TEST(Crc32c, FastAndPortableAgreeAtEveryLengthAndOffset) {
  std::mt19937_64 random(1);
  std::vector<unsigned char> bytes(40'000);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
  for (size_t size = 0; size < 300; ++size) {
    ASSERT_EQ(crc32c(bytes.data() + size % 9, size), crc32c_portable(bytes.data() + size % 9, size)) << size;
  }
  for (size_t size : {6143U, 6144U, 6145U, 12288U, 12295U, 39'991U}) {
    ASSERT_EQ(crc32c(bytes.data() + 3, size), crc32c_portable(bytes.data() + 3, size)) << size;
  }
}

TEST(Crc32c, ContinuesOverPieces) {
  const std::string text(10'000, 'x');
  const uint32_t whole = crc32c(text.data(), text.size());
  EXPECT_EQ(crc32c(text.data() + 7777, text.size() - 7777, crc32c(text.data(), 7777)), whole);
}

TEST(Hash, Sha256OfTheStandard) {
  EXPECT_EQ(sha256_hex("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hash, Hash128SeparatesContents) {
  EXPECT_EQ(hash128("abc", 3), hash128("abc", 3));
  EXPECT_FALSE(hash128("abc", 3) == hash128("abd", 3));
}

TEST(CheckedMath, ProductsStopAtOverflow) {
  const std::vector<int64_t> huge = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_FALSE(checked_product(huge).has_value());
  const std::vector<int64_t> with_zero = {int64_t{1} << 40, int64_t{1} << 40, 0};
  EXPECT_EQ(checked_product(with_zero), 0);
  EXPECT_EQ(checked_product({}), 1);
  EXPECT_FALSE(checked_add(INT64_MAX, 1).has_value());
}

}  // namespace
}  // namespace parallax
