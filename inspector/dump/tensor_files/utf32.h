// SPDX-License-Identifier: Apache-2.0
// Text between numpy's UTF-32 and our UTF-8.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "inspector/base/result.h"

namespace parallax::dump {

// Ends at the zeros that numpy fills with. Errors: corrupt_file for what is no code point.
Result<std::string> utf8_from_utf32(std::span<const std::byte> bytes, bool is_big_endian);
// Errors: unsupported for what is not UTF-8, and for a zero at the end, which numpy cannot hold.
Result<std::u32string> utf32_from_utf8(std::string_view text);

}  // namespace parallax::dump
