// SPDX-License-Identifier: Apache-2.0
// Fonts of the system, for letters that the program does not bring along: Chinese, Japanese, Korean and others.
#pragma once

#include <optional>

#include "gui/panels/ui.h"

namespace parallax::gui {

// The font that fontconfig's `fc-match` prefers for a letter; nothing where there is no such program, or its font has
// another format than TrueType or OpenType.
std::optional<FontFile> system_font_for(uint32_t letter);

}  // namespace parallax::gui
