// SPDX-License-Identifier: Apache-2.0
// WebP, by libwebp.
#include <webp/decode.h>

#include "reference/images/image.h"

namespace parallax::reference {

std::optional<Image> decode_webp(Bytes file) {
  int width = 0;
  int height = 0;
  if (WebPGetInfo(file.data(), file.size(), &width, &height) == 0) return std::nullopt;
  auto image = make_image(width, height);
  if (!image.has_value()) return std::nullopt;
  const uint8_t* decoded =
      WebPDecodeRGBInto(file.data(), file.size(), image->pixels.data(), image->pixels.size(), 3 * width);
  return decoded == nullptr ? std::nullopt : image;
}

}  // namespace parallax::reference
