// SPDX-License-Identifier: Apache-2.0
// Characters that have a meaning in a format are escaped as it asks; four begin a formula.
#include "inspector/render/markup.h"

#include <algorithm>
#include <span>
#include <utility>

#include "inspector/base/shown_text.h"

namespace parallax {
namespace {

using Escape = std::pair<char, std::string_view>;

std::string replaced(std::string_view text, std::span<const Escape> escapes) {
  std::string safe;
  safe.reserve(text.size());
  for (const char character : text) {
    const auto found = std::ranges::find(escapes, character, &Escape::first);
    found == escapes.end() ? safe.append(1, character) : safe.append(found->second);
  }
  return safe;
}

}  // namespace

std::string xml_text(std::string_view text, std::string_view kept) {
  constexpr Escape kEntities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
  return replaced(printable(text, kept), kEntities);
}

std::string dot_text(std::string_view text) {
  constexpr Escape kEscapes[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}, {'&', "&amp;"}};
  return replaced(printable(text, "\n"), kEscapes);
}

std::string csv_field(std::string_view text) {
  const bool is_formula = !text.empty() && std::string_view("=+-@").find(text[0]) != std::string_view::npos;
  const std::string field = (is_formula ? "'" : "") + printable(text);
  if (field.find_first_of(",\"") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char character : field) {
    if (character == '"') quoted += '"';
    quoted += character;
  }
  return quoted + "\"";
}

}  // namespace parallax
