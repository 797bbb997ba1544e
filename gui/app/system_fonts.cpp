// SPDX-License-Identifier: Apache-2.0
// One call of fc-match a letter; the caller asks for few of them.
#include "gui/app/system_fonts.h"

#include <charconv>
#include <cstdio>

#include <fmt/format.h>

#include "inspector/base/mapped_file.h"

namespace parallax::gui {
namespace {

std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  char buffer[512];
  for (size_t count = 0; (count = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) text.append(buffer, count);
  return ::pclose(pipe) == 0 ? text : "";
}

uint32_t big_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// ImGui reads these and trusts that the face is there.
bool is_readable(const std::string& bytes, int face) {
  constexpr uint32_t kTrueType = 0x00010000;
  if (bytes.size() < 12 || bytes.size() > (1U << 30) || face < 0) return false;
  const std::string_view mark(bytes.data(), 4);
  if (mark == "ttcf") return static_cast<uint32_t>(face) < big_endian(bytes, 8);
  return face == 0 && (mark == "OTTO" || mark == "true" || big_endian(bytes, 0) == kTrueType);
}

}  // namespace

std::optional<FontFile> system_font_for(uint32_t letter) {
  const std::string found =
      output_of(fmt::format("fc-match --format='%{{index}} %{{file}}' 'sans:charset={:x}' 2>/dev/null", letter));
  int index = -1;
  const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), index);
  if (error != std::errc() || end == found.data() + found.size()) return std::nullopt;
  auto bytes = read_file(std::string(end + 1, found.data() + found.size()));
  const int face = index & 0xFFFF;  // above: an instance of a variable font
  if (!bytes.ok() || !is_readable(*bytes, face)) return std::nullopt;
  return FontFile{std::make_shared<const std::string>(std::move(bytes).take()), face};
}

}  // namespace parallax::gui
