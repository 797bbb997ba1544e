// SPDX-License-Identifier: Apache-2.0
// The words of an opcode: "setp.lt.and.f32" is "setp" with three more.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/runtime/ptx/instruction.h"

namespace parallax::ptx {

std::vector<std::string> words_of(std::string_view opcode);
// Applies a word after the name that is no type. False where it is not known.
bool apply_modifier(Instruction& instruction, std::string_view opcode, std::string_view word);

}  // namespace parallax::ptx
