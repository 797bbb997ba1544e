// SPDX-License-Identifier: Apache-2.0
// Four characters have a meaning in markup, and six begin a formula; the rest is as it is.
#include "inspector/render/markup.h"

namespace parallax {

std::string html_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string xml_text(std::string_view text, std::string_view kept) {
  std::string safe = html_text(text);
  for (char& c : safe) {
    if (static_cast<unsigned char>(c) < 0x20 && kept.find(c) == std::string_view::npos) c = '?';
  }
  return safe;
}

std::string csv_field(std::string_view text) {
  const bool is_formula = !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos;
  const std::string field = (is_formula ? "'" : "") + std::string(text);
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char character : field) {
    if (character == '"') quoted += '"';
    quoted += character;
  }
  return quoted + "\"";
}

}  // namespace parallax
