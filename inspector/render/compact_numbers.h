// SPDX-License-Identifier: Apache-2.0
// Numbers and types as they stand where there is little room.
#pragma once

#include <functional>
#include <string>

#include "inspector/tensor/type_info.h"

namespace parallax {

// So many significant digits, the exponent without padding: "0.25", "7.13e5", "1e-9", "inf".
std::string short_number(double number, int digits = 3);
std::string trimmed_exponent(std::string text);  // "1e-05" becomes "1e-5"

// The number itself where it fits, else with "~" and the most digits that fit: "~1.09e7". Other text stays.
std::string fitted_number(const std::string& text, const std::function<bool(const std::string&)>& fits);

// The element type of a tensor, "sequence of ..." of anything else.
std::string dtype_text(const TypeInfo& type);

}  // namespace parallax
