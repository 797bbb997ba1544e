// Numbers as they stand where there is little room.
#pragma once

#include <string>

namespace parallax {

// So many significant digits, the exponent without padding: "0.25", "7.13e5", "1e-9", "inf".
std::string short_number(double number, int digits = 3);

}  // namespace parallax
