// SPDX-License-Identifier: Apache-2.0
// BMP with BITMAPINFOHEADER or a later header: 1, 4, 8, 24 and 32 bits a pixel, not compressed.
#include "reference/images/image.h"

namespace parallax::reference {
namespace {

constexpr size_t kFileHeader = 14;

// Little-endian numbers; 0 after the end.
uint32_t number_at(Bytes file, size_t location, size_t bytes) {
  uint32_t value = 0;
  for (size_t index = 0; index < bytes; ++index) {
    if (location + index < file.size()) value |= static_cast<uint32_t>(file[location + index]) << (8 * index);
  }
  return value;
}

struct Header {
  int64_t width, height;
  bool from_top;
  size_t bits, pixels, palette, colors;

  size_t row_bytes() const { return (bits * static_cast<size_t>(width) + 31) / 32 * 4; }
};

std::optional<Header> read_header(Bytes file) {
  const size_t info = number_at(file, kFileHeader, 4);
  if (info < 40 || file.size() < kFileHeader + info) return std::nullopt;
  const auto height = static_cast<int32_t>(number_at(file, 22, 4));
  Header header{static_cast<int32_t>(number_at(file, 18, 4)),
                height < 0 ? -int64_t{height} : int64_t{height},
                height < 0,
                number_at(file, 28, 2),
                number_at(file, 10, 4),
                kFileHeader + info,
                number_at(file, 46, 4)};
  const uint32_t compression = number_at(file, 30, 4);
  const bool known = header.bits == 1 || header.bits == 4 || header.bits == 8 || header.bits == 24 || header.bits == 32;
  if (!known || compression != 0) return std::nullopt;
  if (header.bits <= 8 && header.colors == 0) header.colors = size_t{1} << header.bits;
  return header;
}

// The file offsets of the blue, green and red bytes of a pixel.
std::optional<size_t> color_offset(Bytes file, const Header& header, size_t row, size_t column) {
  const size_t begin = header.pixels + row * header.row_bytes();
  if (header.bits >= 24) return begin + column * header.bits / 8;
  const size_t bit = column * header.bits;
  const uint32_t byte = number_at(file, begin + bit / 8, 1);
  const size_t color = (byte >> (8 - header.bits - bit % 8)) & ((1U << header.bits) - 1);
  if (color >= header.colors) return std::nullopt;
  return header.palette + 4 * color;
}

}  // namespace

std::optional<Image> decode_bmp(Bytes file) {
  const auto header = read_header(file);
  if (!header.has_value()) return std::nullopt;
  auto image = make_image(header->width, header->height);
  if (!image.has_value()) return std::nullopt;
  const auto height = static_cast<size_t>(header->height);
  const auto width = static_cast<size_t>(header->width);
  if (header->pixels > file.size() || header->row_bytes() * height > file.size() - header->pixels) return std::nullopt;
  for (size_t row = 0; row < height; ++row) {
    const size_t stored = header->from_top ? row : height - 1 - row;
    for (size_t column = 0; column < width; ++column) {
      const auto offset = color_offset(file, *header, stored, column);
      if (!offset.has_value() || *offset + 3 > file.size()) return std::nullopt;
      for (size_t channel = 0; channel < 3; ++channel)
        image->pixels[3 * (row * width + column) + channel] = file[*offset + 2 - channel];
    }
  }
  return image;
}

}  // namespace parallax::reference
