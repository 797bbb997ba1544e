// Trims the exponent that printf pads.
#include "inspector/workbench/view_numbers.h"

#include <cmath>

#include <fmt/format.h>

namespace parallax {

std::string short_number(double number, int digits_kept) {
  if (std::isnan(number)) return "nan";  // its sign says nothing
  std::string text = fmt::format("{:.{}g}", number, digits_kept);
  const size_t exponent = text.find('e');
  if (exponent == std::string::npos) return text;
  size_t digits = exponent + 1;
  if (text[digits] == '+') text.erase(digits, 1);
  if (text[digits] == '-') ++digits;
  while (text.size() > digits + 1 && text[digits] == '0') text.erase(digits, 1);
  return text;
}

}  // namespace parallax
