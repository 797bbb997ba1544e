// Keys as chords, the words of the command table: "Ctrl+Shift+O", "PageDown".
#pragma once

#include <string>

namespace parallax::gui {

// Of GLFW's key and modifiers; "" for keys that stand in no chord (the modifiers themselves).
std::string chord_of(int key, int modifiers);

}  // namespace parallax::gui
