// SPDX-License-Identifier: Apache-2.0
// A name is a run without spaces and quotation marks: what is quoted in a message, and a path that is not.
#include "inspector/base/shown_text.h"

#include <algorithm>

namespace parallax {
namespace {

constexpr size_t kMostNameBytes = 200, kShortNameBytes = 183;  // of a name; of a longer one, when it is cut
constexpr size_t kMostLineBytes = 900;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80; }

// U+FFFE and U+FFFF.
bool is_noncharacter(std::string_view character) { return character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF"; }

bool is_c1(std::string_view character) {
  return character.size() == 2 && character[0] == '\xC2' && static_cast<unsigned char>(character[1]) < 0xA0;
}

// The number of bytes before the first that is no printable ASCII.
size_t plain_length(std::string_view text) {
  const auto is_plain = [](char character) { return character >= ' ' && character <= '~'; };
  return static_cast<size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
}

std::string spelled_control(unsigned char character) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  switch (character) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return {'\\', 'x', kDigits[character >> 4], kDigits[character & 15]};
  }
}

}  // namespace

std::string shorten(std::string_view text, size_t limit) {
  if (text.size() <= limit || limit < 5) return std::string(text);
  size_t head = (limit - 3) / 2;
  size_t tail = text.size() - (limit - 3 - head);
  while (head > 0 && is_continuation(text[head])) --head;
  while (tail < text.size() && is_continuation(text[tail])) ++tail;
  return std::string(text.substr(0, head)) + "..." + std::string(text.substr(tail));
}

std::string with_short_names(std::string_view message) {
  constexpr std::string_view kBetweenNames = " '\"\n\t";
  std::string shown;
  while (!message.empty()) {
    const size_t name_end = std::min(message.find_first_of(kBetweenNames), message.size());
    const std::string_view name = message.substr(0, name_end);
    shown += name.size() <= kMostNameBytes ? std::string(name) : shorten(name, kShortNameBytes);
    const size_t next = std::min(message.find_first_not_of(kBetweenNames, name_end), message.size());
    shown += message.substr(name_end, next - name_end);
    message.remove_prefix(next);
  }
  return shown;
}

bool is_control(char character) {
  const auto byte = static_cast<unsigned char>(character);
  return byte < 0x20 || byte == 0x7F;
}

size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool beyond = (lead == 0xED && byte(1) >= 0xA0) || (lead == 0xF4 && byte(1) >= 0x90);
  return overlong || beyond ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text, std::string_view kept) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const size_t plain = plain_length(text);
    shown += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<size_t>(length, 1));
    if (length == 0 || is_noncharacter(character)) {
      shown += kReplacement;
    } else if ((length == 1 && kept.find(text[0]) == std::string_view::npos) || is_c1(character)) {
      shown += spelled_control(static_cast<unsigned char>(character.back()));
    } else {
      shown += character;
    }
    text.remove_prefix(character.size());
  }
  return shown;
}

std::string one_safe_line(std::string_view message) {
  std::string line = with_short_names(message);
  std::ranges::replace_if(
      line, [](char character) { return character == '\n' || character == '\t'; }, ' ');
  return shorten(printable(line), kMostLineBytes);
}

}  // namespace parallax
