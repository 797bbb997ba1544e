// SPDX-License-Identifier: Apache-2.0
// Keys as chords, the words of the command table: "Ctrl+Shift+O", "PageDown".
#pragma once

#include <string>

namespace parallax::gui {

// The chord of GLFW's key and modifiers; "" for keys that cannot be part of a chord (the modifiers themselves).
std::string chord_of(int key, int modifiers);
// A letter of Unicode in UTF-8.
std::string utf8_of(unsigned int code);

}  // namespace parallax::gui
