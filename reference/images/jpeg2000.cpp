// SPDX-License-Identifier: Apache-2.0
// JPEG 2000, by OpenJPEG: a file (JP2) or a bare codestream.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include <openjpeg.h>

#include "reference/images/image.h"

namespace parallax::reference {
namespace {

// A file in memory, as OpenJPEG's callbacks read it.
struct Reader {
  Bytes file;
  size_t location = 0;

  static OPJ_SIZE_T read(void* target, OPJ_SIZE_T count, void* user) {
    auto& reader = *static_cast<Reader*>(user);
    const size_t taken = std::min<size_t>(count, reader.file.size() - reader.location);
    if (taken == 0) return static_cast<OPJ_SIZE_T>(-1);
    std::memcpy(target, reader.file.data() + reader.location, taken);
    reader.location += taken;
    return taken;
  }
  static OPJ_OFF_T skip(OPJ_OFF_T count, void* user) {
    auto& reader = *static_cast<Reader*>(user);
    const auto left = static_cast<OPJ_OFF_T>(reader.file.size() - reader.location);
    if (count < 0 || count > left) return -1;
    reader.location += static_cast<size_t>(count);
    return count;
  }
  static OPJ_BOOL seek(OPJ_OFF_T location, void* user) {
    auto& reader = *static_cast<Reader*>(user);
    if (location < 0 || static_cast<size_t>(location) > reader.file.size()) return OPJ_FALSE;
    reader.location = static_cast<size_t>(location);
    return OPJ_TRUE;
  }
};

using Codec = std::unique_ptr<opj_codec_t, void (*)(opj_codec_t*)>;
using Stream = std::unique_ptr<opj_stream_t, void (*)(opj_stream_t*)>;
using Decoded = std::unique_ptr<opj_image_t, void (*)(opj_image_t*)>;

Decoded read_image(Reader& reader) {
  constexpr uint8_t kCodestream = 0xFF;  // first byte of its start marker
  const Codec codec(opj_create_decompress(reader.file[0] == kCodestream ? OPJ_CODEC_J2K : OPJ_CODEC_JP2),
                    opj_destroy_codec);
  const Stream stream(opj_stream_default_create(OPJ_TRUE), opj_stream_destroy);
  opj_stream_set_user_data(stream.get(), &reader, nullptr);
  opj_stream_set_user_data_length(stream.get(), reader.file.size());
  opj_stream_set_read_function(stream.get(), Reader::read);
  opj_stream_set_skip_function(stream.get(), Reader::skip);
  opj_stream_set_seek_function(stream.get(), Reader::seek);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* image = nullptr;
  Decoded none(nullptr, opj_image_destroy);
  if (opj_setup_decoder(codec.get(), &parameters) == OPJ_FALSE) return none;
  const bool read = opj_read_header(stream.get(), codec.get(), &image) != OPJ_FALSE;
  Decoded decoded(image, opj_image_destroy);
  const int64_t width = read ? int64_t{image->x1} - image->x0 : 0;
  const int64_t height = read ? int64_t{image->y1} - image->y0 : 0;
  if (width < 1 || height < 1 || height > kMaxPixels / width) return none;
  if (opj_decode(codec.get(), stream.get(), image) == OPJ_FALSE) return none;
  if (opj_end_decompress(codec.get(), stream.get()) == OPJ_FALSE) return none;
  return decoded;
}

// A sample in eight bits. Subsampled components repeat theirs.
double sample(const opj_image_comp_t& component, int64_t x, int64_t y) {
  const int64_t column = std::min<int64_t>(x / component.dx, component.w - 1);
  const int64_t row = std::min<int64_t>(y / component.dy, component.h - 1);
  const int64_t raw = component.data[row * component.w + column];
  const int64_t unsigned_value = component.sgnd != 0 ? raw + (int64_t{1} << (component.prec - 1)) : raw;
  if (component.prec == 8) return static_cast<double>(unsigned_value);
  return 255.0 * static_cast<double>(unsigned_value) / (std::ldexp(1.0, static_cast<int>(component.prec)) - 1);
}

uint8_t to_byte(double value) { return static_cast<uint8_t>(std::clamp(std::nearbyint(value), 0.0, 255.0)); }

}  // namespace

std::optional<Image> decode_jpeg2000(Bytes file) {
  Reader reader{file};
  const Decoded decoded = read_image(reader);
  if (decoded == nullptr || decoded->numcomps < 1) return std::nullopt;
  for (OPJ_UINT32 index = 0; index < decoded->numcomps; ++index) {
    const opj_image_comp_t& component = decoded->comps[index];
    if (component.data == nullptr || component.w < 1 || component.h < 1 || component.prec < 1 || component.prec > 31)
      return std::nullopt;
  }
  auto image = make_image(int64_t{decoded->x1} - decoded->x0, int64_t{decoded->y1} - decoded->y0);
  if (!image.has_value()) return std::nullopt;
  const bool colored = decoded->numcomps >= 3;
  const bool luma_chroma = colored && decoded->color_space == OPJ_CLRSPC_SYCC;
  for (int64_t index = 0; index < image->width * image->height; ++index) {
    double rgb[3];
    for (OPJ_UINT32 channel = 0; channel < 3; ++channel)
      rgb[channel] = sample(decoded->comps[colored ? channel : 0], index % image->width, index / image->width);
    if (luma_chroma) {  // JFIF's YCbCr
      const double luma = rgb[0];
      const double blue = rgb[1] - 128;
      const double red = rgb[2] - 128;
      rgb[0] = luma + 1.402 * red;
      rgb[1] = luma - 0.344136 * blue - 0.714136 * red;
      rgb[2] = luma + 1.772 * blue;
    }
    for (size_t channel = 0; channel < 3; ++channel)
      image->pixels[static_cast<size_t>(3 * index) + channel] = to_byte(rgb[channel]);
  }
  return image;
}

}  // namespace parallax::reference
