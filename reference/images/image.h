// SPDX-License-Identifier: Apache-2.0
// Decoding of image files for the operator ImageDecoder. Each codec is its library's, one file a library; BMP and the
// portable formats are read here. The reference sees pixels alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace parallax::reference {

// Eight bits a channel, red, green, blue, rows from the top.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;
};

using Bytes = std::span<const uint8_t>;

// An image has at most this many pixels; what claims more is not decoded.
inline constexpr int64_t kMaxPixels = int64_t{1} << 28;

// A black image, or nothing where the size is none that can be held.
std::optional<Image> make_image(int64_t width, int64_t height);

// By the file's first bytes. Nothing where no codec can decode it: the operator then gives an empty result.
std::optional<Image> decode_image(Bytes file);

std::optional<Image> decode_bmp(Bytes file);
std::optional<Image> decode_jpeg(Bytes file);
std::optional<Image> decode_jpeg2000(Bytes file);
std::optional<Image> decode_pnm(Bytes file);
std::optional<Image> decode_png(Bytes file);
std::optional<Image> decode_tiff(Bytes file);
std::optional<Image> decode_webp(Bytes file);

}  // namespace parallax::reference
