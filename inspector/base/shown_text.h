// SPDX-License-Identifier: Apache-2.0
// Messages that are safe to look at: their names come from files and scripts of other people.
#pragma once

#include <string>
#include <string_view>

namespace parallax {

// Quoted names and words of more than 200 bytes are cut in the middle, between characters of UTF-8.
std::string with_short_names(std::string_view message);

// A message for a terminal: one line, with short names, and with '?' in place of control characters (C1 in UTF-8 too).
std::string one_safe_line(std::string_view message);

}  // namespace parallax
