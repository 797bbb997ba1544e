// SPDX-License-Identifier: Apache-2.0
// The names of GLFW's keys.
#include "gui/app/keys.h"

#define GLFW_INCLUDE_NONE
#include <string_view>
#include <utility>

#include <GLFW/glfw3.h>

namespace parallax::gui {
namespace {

constexpr std::pair<int, std::string_view> kNames[] = {
    {GLFW_KEY_SPACE, "Space"},
    {GLFW_KEY_ENTER, "Enter"},
    {GLFW_KEY_KP_ENTER, "Enter"},
    {GLFW_KEY_ESCAPE, "Escape"},
    {GLFW_KEY_BACKSPACE, "Backspace"},
    {GLFW_KEY_TAB, "Tab"},
    {GLFW_KEY_HOME, "Home"},
    {GLFW_KEY_END, "End"},
    {GLFW_KEY_PAGE_UP, "PageUp"},
    {GLFW_KEY_PAGE_DOWN, "PageDown"},
    {GLFW_KEY_LEFT, "Left"},
    {GLFW_KEY_RIGHT, "Right"},
    {GLFW_KEY_UP, "Up"},
    {GLFW_KEY_DOWN, "Down"},
    {GLFW_KEY_DELETE, "Delete"},
    {GLFW_KEY_LEFT_BRACKET, "LeftBracket"},
    {GLFW_KEY_RIGHT_BRACKET, "RightBracket"},
    {GLFW_KEY_COMMA, "Comma"},
    {GLFW_KEY_PERIOD, "Period"},
    {GLFW_KEY_SLASH, "Slash"},
    {GLFW_KEY_EQUAL, "Equal"},
    {GLFW_KEY_KP_ADD, "Equal"},
    {GLFW_KEY_MINUS, "Minus"},
    {GLFW_KEY_KP_SUBTRACT, "Minus"},
};

std::string name_of(int key) {
  if (key >= GLFW_KEY_A && key <= GLFW_KEY_Z) return std::string(1, static_cast<char>('A' + key - GLFW_KEY_A));
  if (key >= GLFW_KEY_0 && key <= GLFW_KEY_9) return std::string(1, static_cast<char>('0' + key - GLFW_KEY_0));
  if (key >= GLFW_KEY_F1 && key <= GLFW_KEY_F12) return "F" + std::to_string(key - GLFW_KEY_F1 + 1);
  for (const auto& [code, name] : kNames) {
    if (code == key) return std::string(name);
  }
  return "";
}

}  // namespace

std::string chord_of(int key, int modifiers) {
  const std::string name = name_of(key);
  if (name.empty()) return "";
  std::string chord;
  if ((modifiers & GLFW_MOD_CONTROL) != 0) chord += "Ctrl+";
  if ((modifiers & GLFW_MOD_ALT) != 0) chord += "Alt+";
  if ((modifiers & GLFW_MOD_SHIFT) != 0) chord += "Shift+";
  return chord + name;
}

std::string utf8_of(unsigned int code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | code >> 18), tail(12), tail(6), tail(0)};
}

}  // namespace parallax::gui
