// SPDX-License-Identifier: Apache-2.0
// ImageDecoder: an encoded image file as pixels.
#include "inspector/model/rule_errors.h"
#include "reference/images/image.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// Luma of ITU-R BT.601 in 16 bits of fixed point; the specification does not say which.
uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 0x8000U) >> 16U);
}

// [height, width, channels]; what cannot be decoded gives no pixels, [0, 0, channels].
Status op_image_decoder(OpContext& op) {
  const std::string format = op.string_attribute("pixel_format");
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    return wrong_attribute("pixel_format", format, "be RGB, BGR or Grayscale");
  const int64_t channels = format == "Grayscale" ? 1 : 3;
  const auto image = decode_image(op.input(0).as<uint8_t>());
  if (!image.has_value()) {
    Tensor empty = PX_TRY(op.allocate(DType::uint8, Shape{0, 0, channels}));
    return op.set_output(0, std::move(empty));
  }
  Tensor output = PX_TRY(op.allocate(DType::uint8, Shape{image->height, image->width, channels}));
  auto bytes = output.mutable_as<uint8_t>();
  for (size_t pixel = 0; pixel < image->pixels.size() / 3; ++pixel) {
    const uint8_t* rgb = image->pixels.data() + 3 * pixel;
    if (channels == 1) {
      bytes[pixel] = luma(rgb);
      continue;
    }
    for (size_t channel = 0; channel < 3; ++channel)
      bytes[3 * pixel + channel] = rgb[format == "BGR" ? 2 - channel : channel];
  }
  return op.set_output(0, std::move(output));
}

constexpr OpRow kImageDecoderRows[] = {
    {"ImageDecoder", kOnnx, 20, 20, op_image_decoder},
};

}  // namespace

OpRows image_decoder_rows() { return kImageDecoderRows; }

}  // namespace parallax::reference
