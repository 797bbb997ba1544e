// SPDX-License-Identifier: Apache-2.0
// The build that a program comes from: compiler, options, instruction sets and features.
#pragma once

#include <string>

namespace parallax {

// "NAME VERSION", then a line for the build, one for the instruction sets and one for the features.
std::string build_description(const std::string& program);

}  // namespace parallax
