// SPDX-License-Identifier: Apache-2.0
// Image files made by hand, byte by byte: the formats read here, two of the libraries' formats, and broken files.
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/images/image.h"

namespace parallax::reference {
namespace {

using Pixels = std::vector<uint8_t>;

std::optional<Image> decode_text(const std::string& file) {
  return decode_image({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
}

void expect_image(const std::optional<Image>& image, int64_t width, int64_t height, const Pixels& pixels) {
  ASSERT_TRUE(image.has_value());
  EXPECT_EQ(image->width, width);
  EXPECT_EQ(image->height, height);
  EXPECT_EQ(image->pixels, pixels);
}

TEST(Images, ReadsPortableFormats) {
  const Pixels black_white{0, 0, 0, 255, 255, 255};
  expect_image(decode_text("P1\n# a comment\n2 1\n10"), 2, 1, black_white);
  expect_image(decode_text("P2\n2 1\n15\n0 15"), 2, 1, black_white);
  expect_image(decode_text("P3 1 2 255 1 2 3 4 5 6"), 1, 2, {1, 2, 3, 4, 5, 6});
  expect_image(decode_text(std::string("P4\n2 1\n") + '\x80'), 2, 1, black_white);
  expect_image(decode_text(std::string("P5\n2 1\n255\n") + '\0' + '\xFF'), 2, 1, black_white);
  expect_image(decode_text("P6\n1 1\n255\nABC"), 1, 1, {'A', 'B', 'C'});
  expect_image(decode_text(std::string("P5 1 1 65535 ") + '\x80' + '\0'), 1, 1, {128, 128, 128});
}

// 2 x 2, 24 bits, rows from the bottom and padded to four bytes; blue comes first.
std::string bitmap(int32_t height) {
  std::string file(54, '\0');
  const auto put = [&](size_t location, uint32_t value) {
    for (size_t byte = 0; byte < 4; ++byte) file[location + byte] = static_cast<char>(value >> (8 * byte));
  };
  file.replace(0, 2, "BM");
  put(10, 54);
  put(14, 40);
  put(18, 2);
  put(22, static_cast<uint32_t>(height));
  file[26] = 1;
  file[28] = 24;
  for (int row = 0; row < 2; ++row) {
    for (int byte = 0; byte < 8; ++byte) file += static_cast<char>(byte < 6 ? 10 * row + byte : 0);
  }
  return file;
}

TEST(Images, ReadsBitmapsFromBottomAndTop) {
  expect_image(decode_text(bitmap(2)), 2, 2, {12, 11, 10, 15, 14, 13, 2, 1, 0, 5, 4, 3});
  expect_image(decode_text(bitmap(-2)), 2, 2, {2, 1, 0, 5, 4, 3, 12, 11, 10, 15, 14, 13});
}

constexpr uint8_t kPng[] = {0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48,
                            0x44, 0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x08, 0x02, 0x00, 0x00,
                            0x00, 0xFD, 0xD4, 0x9A, 0x73, 0x00, 0x00, 0x00, 0x16, 0x49, 0x44, 0x41, 0x54, 0x78,
                            0xDA, 0x63, 0xF8, 0xCF, 0xC0, 0xC0, 0xC8, 0xC4, 0xCC, 0xC0, 0xF0, 0x9F, 0xE1, 0xD7,
                            0xEF, 0x3F, 0x00, 0x18, 0x10, 0x04, 0xF6, 0x5E, 0x08, 0x1D, 0x0A, 0x00, 0x00, 0x00,
                            0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82};

constexpr uint8_t kTiff[] = {
    0x49, 0x49, 0x2A, 0x00, 0x08, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x01, 0x03, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02,
    0x00, 0x00, 0x00, 0x01, 0x01, 0x03, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x01, 0x03, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x03, 0x01, 0x03, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
    0x00, 0x06, 0x01, 0x03, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x11, 0x01, 0x04, 0x00, 0x01, 0x00,
    0x00, 0x00, 0x7A, 0x00, 0x00, 0x00, 0x15, 0x01, 0x03, 0x00, 0x01, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x16,
    0x01, 0x03, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x17, 0x01, 0x04, 0x00, 0x01, 0x00, 0x00, 0x00,
    0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0A, 0x14, 0x1E, 0x28, 0x32, 0x3C};

TEST(Images, ReadsWhatLibrariesDecode) {
  expect_image(decode_image(kPng), 2, 2, {255, 0, 0, 1, 2, 3, 0, 255, 0, 250, 251, 252});
  expect_image(decode_image(kTiff), 2, 1, {10, 20, 30, 40, 50, 60});
}

// Whatever is missing or wrong: no image, and no crash.
TEST(Images, GivesNothingForBrokenFiles) {
  const std::string whole[] = {bitmap(2), std::string(std::begin(kPng), std::end(kPng)),
                               std::string(std::begin(kTiff), std::end(kTiff)), "P6\n1 1\n255\nABC"};
  for (const std::string& file : whole) {
    for (size_t size = 0; size + 1 < file.size(); ++size) decode_text(file.substr(0, size));
    EXPECT_FALSE(decode_text(file.substr(0, file.size() / 2)).has_value());
  }
  EXPECT_FALSE(decode_text("").has_value());
  EXPECT_FALSE(decode_text("P6 99999999999 1 255 ").has_value());
  EXPECT_FALSE(decode_text("P6 100000000 100000000 255 ").has_value());
  EXPECT_FALSE(decode_text("P2 1 1 0 0").has_value());
  EXPECT_FALSE(decode_text(bitmap(INT32_MIN)).has_value());
  for (const char* magic : {"\xFF\xD8\xFF", "RIFF....WEBP", "\xFF\x4F\xFF\x51", "BM", "MM"})
    EXPECT_FALSE(decode_text(std::string(magic) + "not what it says").has_value());
}

}  // namespace
}  // namespace parallax::reference
