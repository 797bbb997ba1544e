// SPDX-License-Identifier: Apache-2.0
// A name is a run without spaces and quotation marks: what is quoted in a message, and a path that is not.
#include "inspector/base/shown_text.h"

#include <algorithm>

namespace parallax {
namespace {

constexpr size_t kMostNameBytes = 200, kKeptNameBytes = 90;  // of a name; of each of its ends where it is longer

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80; }

std::string shortened(std::string_view name) {
  if (name.size() <= kMostNameBytes) return std::string(name);
  size_t head = kKeptNameBytes, tail = name.size() - kKeptNameBytes;
  while (head > 0 && is_continuation(name[head])) --head;
  while (tail < name.size() && is_continuation(name[tail])) ++tail;
  return std::string(name.substr(0, head)) + "..." + std::string(name.substr(tail));
}

}  // namespace

std::string with_short_names(std::string_view message) {
  constexpr std::string_view kBetweenNames = " '\"\n\t";
  std::string shown;
  while (!message.empty()) {
    const size_t name_end = std::min(message.find_first_of(kBetweenNames), message.size());
    shown += shortened(message.substr(0, name_end));
    const size_t next = std::min(message.find_first_not_of(kBetweenNames, name_end), message.size());
    shown += message.substr(name_end, next - name_end);
    message.remove_prefix(next);
  }
  return shown;
}

std::string one_safe_line(std::string_view message) {
  std::string line = with_short_names(message);
  for (size_t index = 0; index < line.size(); ++index) {
    const auto byte = static_cast<unsigned char>(line[index]);
    const bool is_space = byte == '\n' || byte == '\t';
    const bool is_c1 = byte == 0xC2 && index + 1 < line.size() && static_cast<unsigned char>(line[index + 1]) < 0xA0 &&
                       is_continuation(line[index + 1]);
    if (is_c1) line.erase(index + 1, 1);
    if (is_space || byte < 0x20 || byte == 0x7F || is_c1) line[index] = is_space ? ' ' : '?';
  }
  return line;
}

}  // namespace parallax
