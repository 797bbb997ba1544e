// SPDX-License-Identifier: Apache-2.0
// Uses libpng's simplified interface: whole pictures, no state.
#include "gui/app/png_file.h"

#include <cstring>

#include <fmt/format.h>
#include <png.h>

#include "inspector/base/mapped_file.h"

namespace parallax::gui {
namespace {

png_image blank() {
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  return image;
}

}  // namespace

Status write_png(const std::string& path, const Picture& picture) {
  png_image image = blank();
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGBA;
  png_alloc_size_t size = 0;
  std::string bytes;
  bool is_made = png_image_write_to_memory(&image, nullptr, &size, 0, picture.rgba.data(), 0, nullptr) != 0;
  if (is_made) bytes.resize(size);
  is_made = is_made && png_image_write_to_memory(&image, bytes.data(), &size, 0, picture.rgba.data(), 0, nullptr) != 0;
  if (!is_made) return io_error(fmt::format("cannot write '{}': {}", path, image.message));
  return write_file(path, std::string_view(bytes).substr(0, size));
}

Result<Picture> read_png(const std::string& path) {
  png_image image = blank();
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0) {
    return io_error(fmt::format("cannot read '{}': {}", path, image.message));
  }
  image.format = PNG_FORMAT_RGBA;
  Picture picture{static_cast<int>(image.width), static_cast<int>(image.height),
                  std::vector<uint8_t>(PNG_IMAGE_SIZE(image))};
  if (png_image_finish_read(&image, nullptr, picture.rgba.data(), 0, nullptr) == 0) {
    return io_error(fmt::format("cannot read '{}': {}", path, image.message));
  }
  return picture;
}

}  // namespace parallax::gui
