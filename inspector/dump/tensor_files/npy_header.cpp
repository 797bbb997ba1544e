// SPDX-License-Identifier: Apache-2.0
// Format: numpy.lib.format, versions 1.0 to 3.0. The literal is a dictionary of three keys; nothing else of Python is
// read.
#include "inspector/dump/tensor_files/npy_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "inspector/tensor/shape.h"

namespace parallax::dump {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kMaxHeaderBytes = 1 << 20;

constexpr std::array<NpyType, 14> kTypes = {{
    {"f4", DType::float32},
    {"f8", DType::float64},
    {"f2", DType::float16},
    {"b1", DType::bool_},
    {"i1", DType::int8},
    {"i2", DType::int16},
    {"i4", DType::int32},
    {"i8", DType::int64},
    {"u1", DType::uint8},
    {"u2", DType::uint16},
    {"u4", DType::uint32},
    {"u8", DType::uint64},
    {"c8", DType::complex64},
    {"c16", DType::complex128},
}};

// The part of Python's literals that such headers are made of.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}

  bool accept(char wanted) {
    skip_space();
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool accept(std::string_view word) {
    skip_space();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string> text() {
    const char quote = accept('\'') ? '\'' : accept('"') ? '"' : 0;
    const size_t end = quote == 0 ? std::string_view::npos : text_.find(quote);
    if (end == std::string_view::npos || text_.substr(0, end).find('\\') != std::string_view::npos) return std::nullopt;
    std::string value(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return value;
  }
  std::optional<int64_t> number() {
    skip_space();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) return std::nullopt;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    accept('L');  // Python 2 wrote long integers so
    return value;
  }
  bool at_end() {
    skip_space();
    return text_.empty();
  }

 private:
  void skip_space() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n"), text_.size())); }
  std::string_view text_;
};

Error broken(const std::string& what) { return corrupt_file("its .npy header breaks the format: " + what); }

Status parse_descr(Literal& literal, NpyHeader& header) {
  if (literal.accept('['))
    return unsupported("it is an array of records (structured type): save each field as an array of its own");
  const auto descr = literal.text();
  if (!descr.has_value() || descr->size() < 2) return broken("'descr' is no type");
  const bool has_order = std::string_view("<>|=").find(descr->front()) != std::string_view::npos;
  const std::string code = has_order ? descr->substr(1) : *descr;
  header.is_big_endian = descr->front() == '>';
  if (code == "?") header.dtype = DType::bool_;
  // The package ml_dtypes gives its types a byte order, which numpy's own raw bytes ('|V2') do not have; of those of
  // two bytes there is one.
  if (*descr == "<V2") header.dtype = DType::bfloat16;
  for (const NpyType& type : kTypes) {
    if (type.code == code) header.dtype = type.dtype;
  }
  if (header.dtype != DType::undefined) {
    header.element_bytes = static_cast<uint64_t>(bits_of(header.dtype) / 8);
    return {};
  }
  const char kind = code.empty() ? 'V' : code.front();
  if (kind == 'U' || kind == 'S') {
    uint64_t length = 0;
    const auto [end, error] = std::from_chars(code.data() + 1, code.data() + code.size(), length);
    if (error != std::errc() || end != code.data() + code.size() || length > (uint64_t{1} << 40))
      return broken("'descr' has no length");
    header.dtype = DType::string;
    header.text_kind = kind;
    header.element_bytes = length * (kind == 'U' ? 4 : 1);
    return {};
  }
  if (kind == 'O')
    return unsupported("it is an array of Python objects, which only Python can read: save it with a numeric type");
  if (kind == 'M' || kind == 'm') return unsupported("it is an array of dates or times: save it as int64");
  if (kind == 'V')
    return unsupported(
        fmt::format("its type '{}' does not say what its bytes are: save float8 as .safetensors, and bfloat16 so, too, "
                    "or as its bits in uint16",
                    *descr));
  return unsupported(
      fmt::format("its element type '{}' has no counterpart in ONNX; save it as a type that ONNX has", *descr));
}

Status parse_shape(Literal& literal, NpyHeader& header) {
  if (!literal.accept('(')) return broken("'shape' is no tuple");
  while (!literal.accept(')')) {
    const auto dim = literal.number();
    if (!dim.has_value() || *dim < 0) return broken("'shape' holds no size");
    if (header.dims.size() == Shape::kMaxRank)
      return unsupported("it has more than 16 dimensions; at most 16 can be held");
    header.dims.push_back(*dim);
    if (!literal.accept(',')) {
      if (!literal.accept(')')) return broken("'shape' is not closed");
      break;
    }
  }
  return {};
}

Status parse_dictionary(Literal literal, NpyHeader& header) {
  bool has_descr = false;
  bool has_order = false;
  bool has_shape = false;
  if (!literal.accept('{')) return broken("it is no dictionary");
  while (!literal.accept('}')) {
    const auto key = literal.text();
    if (!key.has_value() || !literal.accept(':')) return broken("a key is missing");
    if (*key == "descr" && !has_descr) {
      has_descr = true;
      PX_TRY(parse_descr(literal, header));
    } else if (*key == "fortran_order" && !has_order) {
      has_order = true;
      header.is_column_major = literal.accept("True");
      if (!header.is_column_major && !literal.accept("False"))
        return broken("'fortran_order' is neither True nor False");
    } else if (*key == "shape" && !has_shape) {
      has_shape = true;
      PX_TRY(parse_shape(literal, header));
    } else {
      return broken("the key '" + key->substr(0, 40) + "' is unknown or stands twice");
    }
    if (literal.accept(',')) continue;
    if (!literal.accept('}')) return broken("it is not closed");
    break;
  }
  if (!literal.at_end()) return broken("something follows it");
  if (!has_descr || !has_order || !has_shape) return broken("one of descr, fortran_order and shape is missing");
  return {};
}

}  // namespace

std::span<const NpyType> npy_types() { return kTypes; }

Result<NpyHeader> parse_npy_header(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic) || text.size() < 10)
    return corrupt_file("it is no .npy file: its first bytes are not those of one; numpy.save writes them");
  const auto version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3)
    return unsupported(fmt::format("it is a .npy file of version {}; versions 1 to 3 are read", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t begin = 8 + length_bytes;
  uint32_t length = 0;
  if (text.size() < begin) return broken("it is cut off");
  std::memcpy(&length, text.data() + 8, length_bytes);
  if (length > kMaxHeaderBytes || length > text.size() - begin)
    return broken("it is longer than the file or than 1 MiB");
  NpyHeader header;
  header.data_offset = begin + length;
  PX_TRY(parse_dictionary(Literal(text.substr(begin, length)), header));
  return header;
}

std::string make_npy_header(std::string_view descr, std::span<const int64_t> dims) {
  std::string shape;
  for (const int64_t dim : dims) shape += fmt::format("{}, ", dim);
  if (dims.size() > 1) shape.resize(shape.size() - 2);
  if (dims.size() == 1) shape.resize(shape.size() - 1);
  std::string literal = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  // At most 16 dimensions of 20 digits: version 1, whose length has 16 bits, is always enough.
  const size_t prefix = kMagic.size() + 4;
  literal.resize((prefix + literal.size() + 1 + 63) / 64 * 64 - prefix - 1, ' ');
  literal += '\n';
  const auto length = static_cast<uint16_t>(literal.size());
  std::string header(kMagic);
  header += '\x01';
  header += '\x00';
  header.append(reinterpret_cast<const char*>(&length), sizeof length);
  return header + literal;
}

}  // namespace parallax::dump
