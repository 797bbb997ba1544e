// SPDX-License-Identifier: Apache-2.0
// The names of GLFW's keys.
#include "gui/app/keys.h"

#define GLFW_INCLUDE_NONE
#include <algorithm>
#include <iterator>
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
    {GLFW_KEY_INSERT, "Insert"},
};

// Characters that commands are bound to. A chord names its key as on the layout of the United States.
constexpr std::pair<char, std::string_view> kCharacters[] = {
    {'[', "LeftBracket"}, {']', "RightBracket"}, {',', "Comma"},      {'.', "Period"},
    {'/', "Slash"},       {'=', "Equal"},        {'+', "Equal"},      {'-', "Minus"},
    {'<', "Shift+Comma"}, {'>', "Shift+Period"}, {'?', "Shift+Slash"}};

bool is_digit_key(int key) { return key >= GLFW_KEY_0 && key <= GLFW_KEY_9; }
bool is_latin_letter(unsigned int code) { return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z'); }

// The name of a key that writes nothing.
std::string_view name_of(int key) {
  const auto found = std::ranges::find(kNames, key, &std::pair<int, std::string_view>::first);
  return found == std::end(kNames) ? "" : found->second;
}

// The name of a character, without the modifiers that wrote it, else of the key; "" where neither has one.
std::string name_of_character(unsigned int code, int key) {
  if (is_latin_letter(code)) return std::string(1, static_cast<char>(code & ~0x20U));
  if (code >= '0' && code <= '9') return std::string(1, static_cast<char>(code));
  for (const auto& [character, name] : kCharacters) {
    if (code == static_cast<unsigned char>(character)) return std::string(name);
  }
  constexpr unsigned int kFirstOfOtherScripts = 0x370;  // Greek follows the blocks of Latin
  if (is_digit_key(key)) return std::string(1, static_cast<char>('0' + key - GLFW_KEY_0));
  if (code >= kFirstOfOtherScripts && key >= GLFW_KEY_A && key <= GLFW_KEY_Z)
    return std::string(1, static_cast<char>('A' + key - GLFW_KEY_A));
  return "";
}

unsigned int first_of(const char* utf8) {
  const auto byte = [&](int i) { return static_cast<unsigned int>(static_cast<unsigned char>(utf8[i])); };
  if (utf8 == nullptr) return 0;
  if (byte(0) < 0x80) return byte(0);
  if (byte(0) < 0xE0) return (byte(0) & 0x1FU) << 6 | (byte(1) & 0x3FU);
  return 0xFFFF;  // further on; no chord tells such characters from each other
}

std::string with_modifiers(std::string_view name, int modifiers) {
  if (name.empty()) return "";
  std::string chord;
  if ((modifiers & GLFW_MOD_CONTROL) != 0) chord += "Ctrl+";
  if ((modifiers & GLFW_MOD_ALT) != 0) chord += "Alt+";
  if ((modifiers & GLFW_MOD_SHIFT) != 0) chord += "Shift+";
  return chord + std::string(name);
}

}  // namespace

std::string chord_of(int key, int modifiers, const char* on_key) {
  if (key >= GLFW_KEY_F1 && key <= GLFW_KEY_F12)
    return with_modifiers("F" + std::to_string(key - GLFW_KEY_F1 + 1), modifiers);
  if (const std::string_view name = name_of(key); !name.empty()) return with_modifiers(name, modifiers);
  if ((modifiers & (GLFW_MOD_CONTROL | GLFW_MOD_ALT)) == 0) return "";  // its character follows
  const std::string name = name_of_character(first_of(on_key), key);
  return name.starts_with("Shift+") ? "" : with_modifiers(name, modifiers);
}

std::string chord_of_character(unsigned int code, int key, int modifiers) {
  const std::string name = name_of_character(code, key);
  const bool is_letter = name.size() == 1 && name[0] >= 'A' && name[0] <= 'Z';
  return is_letter ? with_modifiers(name, modifiers) : name;  // Shift has only chosen the character
}

std::string utf8_of(unsigned int code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | code >> 18), tail(12), tail(6), tail(0)};
}

}  // namespace parallax::gui
