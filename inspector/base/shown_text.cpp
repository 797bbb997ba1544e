// SPDX-License-Identifier: Apache-2.0
// A name is a run without spaces and quotation marks: what is quoted in a message, and a path that is not.
#include "inspector/base/shown_text.h"

#include <algorithm>

namespace parallax {
namespace {

constexpr size_t kMostNameBytes = 200, kShortNameBytes = 183;  // of a name; of a longer one, when it is cut

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80; }

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

std::string without_control_characters(std::string_view text) {
  std::string line(text);
  for (size_t index = 0; index < line.size(); ++index) {
    const bool is_c1 = line[index] == '\xC2' && index + 1 < line.size() &&
                       static_cast<unsigned char>(line[index + 1]) < 0xA0 && is_continuation(line[index + 1]);
    if (is_c1) line.erase(index + 1, 1);
    if (is_control(line[index]) || is_c1) line[index] = line[index] == '\n' || line[index] == '\t' ? ' ' : '?';
  }
  return line;
}

std::string one_safe_line(std::string_view message) { return without_control_characters(with_short_names(message)); }

}  // namespace parallax
