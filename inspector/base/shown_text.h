// SPDX-License-Identifier: Apache-2.0
// Texts that are safe to look at: their names come from files and scripts of other people.
#pragma once

#include <string>
#include <string_view>

namespace parallax {

// At most `limit` bytes, the middle replaced by "..." where longer. Never splits a UTF-8 sequence.
std::string shorten(std::string_view text, size_t limit);

// Quoted names and words of more than 200 bytes are cut in the middle.
std::string with_short_names(std::string_view message);

// True for the control characters of ASCII.
bool is_control(char character);

// One line for a terminal: newlines and tabs become spaces, other control characters '?' (C1 in UTF-8 too).
std::string without_control_characters(std::string_view text);

// A message for a terminal: both of the above.
std::string one_safe_line(std::string_view message);

}  // namespace parallax
