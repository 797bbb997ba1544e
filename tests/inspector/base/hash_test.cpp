// SPDX-License-Identifier: Apache-2.0
// SHA-256 against FIPS 180-4's examples; XXH3 tells equal from unequal.
#include "inspector/base/hash.h"

#include <string_view>

#include <gtest/gtest.h>

namespace parallax {
namespace {

TEST(Hash, Sha256OfPublishedExamples) {
  EXPECT_EQ(sha256_hex(nullptr, 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hash, Hash128SeesLengthAndContent) {
  constexpr std::string_view kText = "0000";
  EXPECT_EQ(hash128(kText.data(), 4), hash128(kText.data(), 4));
  EXPECT_NE(hash128(kText.data(), 4), hash128(kText.data(), 3));
  EXPECT_NE(hash128("0001", 4), hash128(kText.data(), 4));
}

}  // namespace
}  // namespace parallax
