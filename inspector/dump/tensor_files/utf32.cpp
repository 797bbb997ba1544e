// SPDX-License-Identifier: Apache-2.0
// UTF-8 as RFC 3629 defines it: no surrogates, no overlong forms, nothing above U+10FFFF.
#include "inspector/dump/tensor_files/utf32.h"

#include <cstdint>
#include <cstring>

namespace parallax::dump {
namespace {

bool is_code_point(uint32_t code) { return code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF); }

void append_utf8(std::string& text, uint32_t code) {
  const auto add = [&text](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

// Bytes that follow a lead byte, and the smallest code that needs them; -1 for no lead byte.
struct Lead {
  int following;
  uint32_t bits;
  uint32_t smallest;
};
Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {0, byte, 0};
  if (byte >= 0xC0 && byte < 0xE0) return {1, byte & 0x1FU, 0x80};
  if (byte >= 0xE0 && byte < 0xF0) return {2, byte & 0x0FU, 0x800};
  if (byte >= 0xF0 && byte < 0xF8) return {3, byte & 0x07U, 0x10000};
  return {-1, 0, 0};
}

}  // namespace

Result<std::string> utf8_from_utf32(std::span<const std::byte> bytes, bool is_big_endian) {
  std::u32string codes(bytes.size() / 4, U'\0');
  std::memcpy(codes.data(), bytes.data(), codes.size() * 4);
  if (is_big_endian) {
    for (char32_t& code : codes) code = static_cast<char32_t>(__builtin_bswap32(static_cast<uint32_t>(code)));
  }
  codes.resize(codes.find_last_not_of(U'\0') + 1);
  std::string text;
  for (const char32_t code : codes) {
    if (!is_code_point(code)) return corrupt_file("a text holds a number that is no character");
    append_utf8(text, code);
  }
  return text;
}

Result<std::u32string> utf32_from_utf8(std::string_view text) {
  const auto refused = [] { return unsupported("a string is not UTF-8 text, which is all that numpy holds"); };
  std::u32string codes;
  for (size_t position = 0; position < text.size();) {
    const Lead lead = lead_of(static_cast<unsigned char>(text[position++]));
    uint32_t code = lead.bits;
    if (lead.following < 0 || text.size() - position < static_cast<size_t>(lead.following)) return refused();
    for (int index = 0; index < lead.following; ++index) {
      const auto byte = static_cast<unsigned char>(text[position++]);
      if ((byte & 0xC0) != 0x80) return refused();
      code = code << 6 | (byte & 0x3FU);
    }
    if (code < lead.smallest || !is_code_point(code)) return refused();
    codes += static_cast<char32_t>(code);
  }
  if (!codes.empty() && codes.back() == U'\0') return unsupported("a string ends in a zero, which numpy cannot hold");
  return codes;
}

}  // namespace parallax::dump
