// SPDX-License-Identifier: Apache-2.0
// The portable formats PBM, PGM and PPM (P1 to P6), as their manual pages describe them.
#include "reference/images/image.h"

namespace parallax::reference {
namespace {

class PnmReader {
 public:
  explicit PnmReader(Bytes file) : file_(file) {}

  // The next decimal number, after white space and comments.
  std::optional<int64_t> number() {
    skip_space();
    int64_t value = 0;
    const size_t begin = location_;
    for (; location_ < file_.size() && is_digit(file_[location_]); ++location_) {
      value = 10 * value + (file_[location_] - '0');
      if (value > kMaxPixels) return std::nullopt;
    }
    return location_ == begin ? std::nullopt : std::optional(value);
  }

  // The next digit 0 or 1 of a plain PBM, which need no space between them.
  std::optional<int64_t> digit() {
    skip_space();
    if (location_ >= file_.size() || file_[location_] < '0' || file_[location_] > '1') return std::nullopt;
    return file_[location_++] - '0';
  }

  std::optional<int64_t> byte() {
    if (location_ >= file_.size()) return std::nullopt;
    return file_[location_++];
  }

 private:
  static bool is_digit(uint8_t character) { return character >= '0' && character <= '9'; }
  static bool is_space(uint8_t character) { return character == ' ' || (character >= '\t' && character <= '\r'); }

  void skip_space() {
    while (location_ < file_.size() && (is_space(file_[location_]) || file_[location_] == '#')) {
      if (file_[location_] == '#') {
        while (location_ < file_.size() && file_[location_] != '\n') ++location_;
      } else {
        ++location_;
      }
    }
  }

  Bytes file_;
  size_t location_ = 2;  // after the magic number
};

struct Format {
  bool plain;      // numbers as text
  bool bits;       // PBM: 1 is black
  size_t samples;  // a pixel
  int64_t greatest;
};

std::optional<int64_t> read_sample(PnmReader& reader, const Format& format) {
  if (format.plain) return format.bits ? reader.digit() : reader.number();
  const auto high = reader.byte();
  if (format.greatest < 256 || !high.has_value()) return high;
  const auto low = reader.byte();
  return low.has_value() ? std::optional(256 * *high + *low) : std::nullopt;
}

void set_gray(Image& image, size_t pixel, uint8_t value) {
  for (size_t channel = 0; channel < 3; ++channel) image.pixels[3 * pixel + channel] = value;
}

// Eight pixels a byte, the leftmost highest; rows begin at a byte.
std::optional<Image> read_packed_bits(PnmReader& reader, Image image) {
  for (int64_t row = 0; row < image.height; ++row) {
    int64_t byte = 0;
    for (int64_t column = 0; column < image.width; ++column) {
      if (column % 8 == 0) {
        const auto next = reader.byte();
        if (!next.has_value()) return std::nullopt;
        byte = *next;
      }
      const bool black = ((byte >> (7 - column % 8)) & 1) != 0;
      set_gray(image, static_cast<size_t>(row * image.width + column), black ? 0 : 255);
    }
  }
  return image;
}

}  // namespace

std::optional<Image> decode_pnm(Bytes file) {
  const int kind = file[1] - '0';
  Format format{kind <= 3, kind == 1 || kind == 4, kind == 3 || kind == 6 ? size_t{3} : size_t{1}, 1};
  PnmReader reader(file);
  const auto width = reader.number();
  const auto height = reader.number();
  if (!width.has_value() || !height.has_value()) return std::nullopt;
  if (!format.bits) format.greatest = reader.number().value_or(0);
  if (format.greatest < 1 || format.greatest > 65535) return std::nullopt;
  auto image = make_image(*width, *height);
  if (!image.has_value()) return std::nullopt;
  if (!format.plain) reader.byte();  // the one white space before the samples
  if (format.bits && !format.plain) return read_packed_bits(reader, std::move(*image));
  for (size_t index = 0; index < image->pixels.size() / 3 * format.samples; ++index) {
    const auto sample = read_sample(reader, format);
    if (!sample.has_value() || *sample > format.greatest) return std::nullopt;
    const int64_t level = format.bits ? 255 * (1 - *sample) : (255 * *sample + format.greatest / 2) / format.greatest;
    if (format.samples == 1)
      set_gray(*image, index, static_cast<uint8_t>(level));
    else
      image->pixels[index] = static_cast<uint8_t>(level);
  }
  return image;
}

}  // namespace parallax::reference
