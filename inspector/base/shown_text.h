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

// Length of the UTF-8 sequence at the start of `text`, which is not empty; 0 where there is none (RFC 3629: no overlong
// form, no surrogate).
size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);

// The text as every document takes it. Control characters (also C1, U+0080 to U+009F), but for those in `kept`, are
// written \n, \t, \r or \xNN; a byte that is no UTF-8, and what XML excludes (U+FFFE, U+FFFF), becomes U+FFFD.
std::string printable(std::string_view text, std::string_view kept = {});

// A message as one line of at most 900 bytes: names are cut, line breaks are spaces, and of what is still too long the
// start and the end remain.
std::string one_safe_line(std::string_view message);

}  // namespace parallax
