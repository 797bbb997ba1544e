// SPDX-License-Identifier: Apache-2.0
// Small work on text that several parts need.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace parallax {

// The parts between separators, empty ones included: "a,,b" has three, "" has one. They are views into `text`.
std::vector<std::string_view> split(std::string_view text, char separator);

// ASCII letters in lower case, all else as it is.
std::string lower_case(std::string_view text);

// Levenshtein's distance: how many characters are replaced, left out or put in between the two.
size_t edit_distance(std::string_view a, std::string_view b);

// "; did you mean 'a' or 'b'?" with those of `known` that are most alike, whatever their case; "" where none is.
std::string did_you_mean(std::string_view asked, const std::vector<std::string>& known);

}  // namespace parallax
