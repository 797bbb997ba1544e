// SPDX-License-Identifier: Apache-2.0
// Keys as chords, the words of the command table: "Ctrl+Shift+O", "PageDown".
#pragma once

#include <string>

namespace parallax::gui {

// The chord of GLFW's key and modifiers where it writes no character; "" for the modifiers themselves, and for keys
// whose character decides. `on_key` is what the layout has on the key (glfwGetKeyName), null where that is nothing.
std::string chord_of(int key, int modifiers, const char* on_key);
// The chord of a press by the character that it wrote: "?" is Shift+Slash wherever a layout has it. Digits and, in
// layouts of another script, letters go by the key where the character has no chord.
std::string chord_of_character(unsigned int code, int key, int modifiers);
// A letter of Unicode in UTF-8.
std::string utf8_of(unsigned int code);

}  // namespace parallax::gui
