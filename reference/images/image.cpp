// SPDX-License-Identifier: Apache-2.0
// Which codec a file is for.
#include "reference/images/image.h"

#include <algorithm>
#include <string_view>

namespace parallax::reference {
namespace {

using namespace std::string_view_literals;

struct Signature {
  size_t offset;
  std::string_view bytes;
  std::optional<Image> (*decode)(Bytes file);
};

// The first bytes that the formats' own specifications require.
constexpr Signature kSignatures[] = {
    {0, "BM"sv, decode_bmp},
    {0, "\xFF\xD8\xFF"sv, decode_jpeg},
    {0, "\x89PNG\r\n\x1A\n"sv, decode_png},
    {0, "II*\0"sv, decode_tiff},
    {0, "MM\0*"sv, decode_tiff},
    {8, "WEBP"sv, decode_webp},
    {0, "\0\0\0\x0CjP  \r\n\x87\n"sv, decode_jpeg2000},
    {0, "\xFF\x4F\xFF\x51"sv, decode_jpeg2000},  // a bare codestream
    {0, "P1"sv, decode_pnm},
    {0, "P2"sv, decode_pnm},
    {0, "P3"sv, decode_pnm},
    {0, "P4"sv, decode_pnm},
    {0, "P5"sv, decode_pnm},
    {0, "P6"sv, decode_pnm},
};

bool begins(Bytes file, const Signature& signature) {
  if (file.size() < signature.offset + signature.bytes.size()) return false;
  return std::equal(signature.bytes.begin(), signature.bytes.end(),
                    file.begin() + static_cast<ptrdiff_t>(signature.offset),
                    [](char expected, uint8_t byte) { return static_cast<uint8_t>(expected) == byte; });
}

}  // namespace

std::optional<Image> make_image(int64_t width, int64_t height) {
  if (width < 1 || height < 1 || width > kMaxPixels || height > kMaxPixels / width) return std::nullopt;
  return Image{height, width, std::vector<uint8_t>(static_cast<size_t>(3 * width * height), 0)};
}

std::optional<Image> decode_image(Bytes file) {
  for (const Signature& signature : kSignatures) {
    if (begins(file, signature)) return signature.decode(file);
  }
  return std::nullopt;
}

}  // namespace parallax::reference
