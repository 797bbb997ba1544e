// SPDX-License-Identifier: Apache-2.0
// Pieces of PTX text: words, lists that keep brackets together, numbers, declarations.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/runtime/ptx/instruction.h"

namespace parallax::ptx {

std::string trim(std::string_view text);
// At `separator` outside of brackets of any kind.
std::vector<std::string> split(std::string_view text, char separator);
// Decimal, hexadecimal, octal, and floats as 0f and 0d with their bits. None where it is no number.
std::optional<uint64_t> number_of(std::string_view text);

// ".align 8 .b8 name[320]". `bytes` is -1 for name[].
struct Declaration {
  std::string name;
  Type type = Type::none;
  int bytes = 0;
  int alignment = 1;
};
std::optional<Declaration> declaration_of(std::string_view text);

inline int aligned(int offset, int alignment) { return (offset + alignment - 1) / alignment * alignment; }

}  // namespace parallax::ptx
