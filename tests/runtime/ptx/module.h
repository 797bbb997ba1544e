// SPDX-License-Identifier: Apache-2.0
// The PTX files of a program: their functions are found by name, and parsed when they are first launched.
#pragma once

#include <string>

#include "tests/runtime/ptx/instruction.h"

namespace parallax::ptx {

// Reads every *.ptx of the folder. Throws Problem where it is not there or holds none.
void load_modules(const std::string& folder);
// The kernel of this name; null: no file has it.
Function* find_kernel(const std::string& name);
// Throws Problem, naming the kernel and the line, where an instruction is not known.
void parse(Function& function);

}  // namespace parallax::ptx
