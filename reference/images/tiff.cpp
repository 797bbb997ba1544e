// SPDX-License-Identifier: Apache-2.0
// TIFF, by libtiff's RGBA interface: the first picture of the file, whatever its layout and compression.
#include <algorithm>
#include <cstring>
#include <memory>

#include <tiffio.h>

#include "reference/images/image.h"

namespace parallax::reference {
namespace {

// A file in memory, as libtiff's callbacks read it.
struct TiffReader {
  Bytes file;
  size_t location = 0;

  static TiffReader& of(thandle_t handle) { return *static_cast<TiffReader*>(handle); }

  static tmsize_t read(thandle_t handle, void* target, tmsize_t count) {
    TiffReader& reader = of(handle);
    if (count < 0) return -1;
    const size_t taken = std::min(static_cast<size_t>(count), reader.file.size() - reader.location);
    std::memcpy(target, reader.file.data() + reader.location, taken);
    reader.location += taken;
    return static_cast<tmsize_t>(taken);
  }
  static tmsize_t write(thandle_t, void*, tmsize_t) { return -1; }
  static toff_t seek(thandle_t handle, toff_t offset, int whence) {
    TiffReader& reader = of(handle);
    const toff_t base = whence == SEEK_CUR ? reader.location : whence == SEEK_END ? reader.file.size() : 0;
    if (base + offset > reader.file.size()) return static_cast<toff_t>(-1);
    reader.location = static_cast<size_t>(base + offset);
    return reader.location;
  }
  static int close(thandle_t) { return 0; }
  static toff_t size(thandle_t handle) { return of(handle).file.size(); }
};

// A message that discards libtiff's output: the result of each call reports its failures.
int be_silent(TIFF*, void*, const char*, const char*, va_list) { return 1; }

}  // namespace

std::optional<Image> decode_tiff(Bytes file) {
  TiffReader reader{file};
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), be_silent, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), be_silent, nullptr);
  const std::unique_ptr<TIFF, void (*)(TIFF*)> tiff(
      TIFFClientOpenExt("image", "rm", &reader, TiffReader::read, TiffReader::write, TiffReader::seek,
                        TiffReader::close, TiffReader::size, nullptr, nullptr, options.get()),
      TIFFClose);
  uint32_t width = 0;
  uint32_t height = 0;
  if (tiff == nullptr || TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) == 0 ||
      TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) == 0) {
    return std::nullopt;
  }
  auto image = make_image(width, height);
  if (!image.has_value()) return std::nullopt;
  std::vector<uint32_t> pixels(image->pixels.size() / 3);
  if (TIFFReadRGBAImageOriented(tiff.get(), width, height, pixels.data(), ORIENTATION_TOPLEFT, 1) == 0)
    return std::nullopt;
  for (size_t index = 0; index < pixels.size(); ++index) {
    image->pixels[3 * index] = static_cast<uint8_t>(TIFFGetR(pixels[index]));
    image->pixels[3 * index + 1] = static_cast<uint8_t>(TIFFGetG(pixels[index]));
    image->pixels[3 * index + 2] = static_cast<uint8_t>(TIFFGetB(pixels[index]));
  }
  return image;
}

}  // namespace parallax::reference
