// SPDX-License-Identifier: Apache-2.0
// PNG, by libpng's simplified interface. Transparency is left out.
#include <png.h>

#include "reference/images/image.h"

namespace parallax::reference {

std::optional<Image> decode_png(Bytes file) {
  png_image header = {};
  header.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&header, file.data(), file.size()) == 0) return std::nullopt;
  auto image = make_image(header.width, header.height);
  if (!image.has_value()) {
    png_image_free(&header);
    return std::nullopt;
  }
  header.format = PNG_FORMAT_RGBA;  // asking for RGB would blend with a background
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(header));
  if (png_image_finish_read(&header, nullptr, pixels.data(), 0, nullptr) == 0) return std::nullopt;
  for (size_t pixel = 0; pixel < pixels.size() / 4; ++pixel) {
    for (size_t channel = 0; channel < 3; ++channel) image->pixels[3 * pixel + channel] = pixels[4 * pixel + channel];
  }
  return image;
}

}  // namespace parallax::reference
