// SPDX-License-Identifier: Apache-2.0
// JPEG, by libjpeg-turbo: chroma is upsampled smoothly, as the specification of ImageDecoder asks.
#include <memory>

#include <turbojpeg.h>

#include "reference/images/image.h"

namespace parallax::reference {

std::optional<Image> decode_jpeg(Bytes file) {
  const std::unique_ptr<void, int (*)(tjhandle)> decoder(tjInitDecompress(), tjDestroy);
  if (decoder == nullptr) return std::nullopt;
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colors = 0;
  const auto size = static_cast<unsigned long>(file.size());
  if (tjDecompressHeader3(decoder.get(), file.data(), size, &width, &height, &subsampling, &colors) != 0)
    return std::nullopt;
  auto image = make_image(width, height);
  if (!image.has_value()) return std::nullopt;
  const int status = tjDecompress2(decoder.get(), file.data(), size, image->pixels.data(), width, 0, height, TJPF_RGB,
                                   TJFLAG_ACCURATEDCT);
  // A file that was cut short gives a warning and gray rows: not what was encoded.
  return status == 0 ? image : std::nullopt;
}

}  // namespace parallax::reference
