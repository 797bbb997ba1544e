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

}  // namespace parallax
