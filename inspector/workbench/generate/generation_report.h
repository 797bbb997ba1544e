// SPDX-License-Identifier: Apache-2.0
// A generation as an HTML page: the steps with their margins, and with two sides the comparison.
#pragma once

#include <string>

#include "inspector/workbench/generate/generation.h"

namespace parallax {

// A table of steps, as HTML.
std::string generation_steps_html(const Generation& generation);
// A whole page. `command` makes the generation again; may be empty.
std::string generation_to_html(const Generation& generation, const std::string& command);

}  // namespace parallax
