// SPDX-License-Identifier: Apache-2.0
// Trims the exponent that printf pads.
#include "inspector/render/compact_numbers.h"

#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace parallax {

std::string short_number(double number, int digits_kept) {
  if (std::isnan(number)) return "nan";  // its sign says nothing
  return trimmed_exponent(fmt::format("{:.{}g}", number, digits_kept));
}

std::string trimmed_exponent(std::string text) {
  const size_t exponent = text.find('e');
  if (exponent == std::string::npos) return text;
  size_t digits = exponent + 1;
  if (text[digits] == '+') text.erase(digits, 1);
  if (text[digits] == '-') ++digits;
  while (text.size() > digits + 1 && text[digits] == '0') text.erase(digits, 1);
  return text;
}

std::string fitted_number(const std::string& text, const std::function<bool(const std::string&)>& fits) {
  if (fits(text)) return text;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0) return text;
  std::string rounded;
  for (int digits = 6; digits > 0; --digits) {
    rounded = "~" + short_number(number, digits);
    if (fits(rounded)) return rounded;
  }
  return rounded;
}

std::string dtype_text(const TypeInfo& type) {
  return type.kind == TypeInfo::Kind::tensor ? std::string(name_of(type.dtype)) : to_string(type);
}

}  // namespace parallax
