// SPDX-License-Identifier: Apache-2.0
// Chords by the character that a press writes, on the layouts of several countries.
#include "gui/app/keys.h"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <gtest/gtest.h>

namespace parallax::gui {
namespace {

TEST(Keys, WithControlAChordIsOfWhatTheLayoutHasOnTheKey) {
  EXPECT_EQ(chord_of(GLFW_KEY_Q, GLFW_MOD_CONTROL, "a"), "Ctrl+A");                  // France
  EXPECT_EQ(chord_of(GLFW_KEY_RIGHT_BRACKET, GLFW_MOD_CONTROL, "+"), "Ctrl+Equal");  // Germany
  EXPECT_EQ(chord_of(GLFW_KEY_EQUAL, GLFW_MOD_CONTROL | GLFW_MOD_SHIFT, "="), "Ctrl+Shift+Equal");
  EXPECT_EQ(chord_of(GLFW_KEY_MINUS, GLFW_MOD_CONTROL, "\xC3\x9F"), "");  // sharp s
  EXPECT_EQ(chord_of(GLFW_KEY_1, GLFW_MOD_CONTROL, "&"), "Ctrl+1");
  EXPECT_EQ(chord_of(GLFW_KEY_F, GLFW_MOD_CONTROL, "\xD0\xB0"), "Ctrl+F");  // Russia
  EXPECT_EQ(chord_of(GLFW_KEY_RIGHT_SHIFT, GLFW_MOD_CONTROL, nullptr), "");
}

TEST(Keys, KeysThatWriteNothingGoByTheirName) {
  EXPECT_EQ(chord_of(GLFW_KEY_TAB, GLFW_MOD_SHIFT, nullptr), "Shift+Tab");
  EXPECT_EQ(chord_of(GLFW_KEY_F4, 0, nullptr), "F4");
  EXPECT_EQ(chord_of(GLFW_KEY_LEFT, GLFW_MOD_ALT, nullptr), "Alt+Left");
  EXPECT_EQ(chord_of(GLFW_KEY_N, 0, "n"), "");  // its character follows
}

TEST(Keys, ACharacterIsItsChordWhereverItIs) {
  EXPECT_EQ(chord_of_character('+', GLFW_KEY_EQUAL, GLFW_MOD_SHIFT), "Equal");  // United States
  EXPECT_EQ(chord_of_character('+', GLFW_KEY_RIGHT_BRACKET, 0), "Equal");       // Germany
  EXPECT_EQ(chord_of_character('-', GLFW_KEY_SLASH, 0), "Minus");
  EXPECT_EQ(chord_of_character('?', GLFW_KEY_MINUS, GLFW_MOD_SHIFT), "Shift+Slash");
  EXPECT_EQ(chord_of_character('[', GLFW_KEY_8, 0), "LeftBracket");  // with AltGr
  EXPECT_EQ(chord_of_character('/', GLFW_KEY_7, GLFW_MOD_SHIFT), "Slash");
  EXPECT_EQ(chord_of_character('>', GLFW_KEY_WORLD_2, GLFW_MOD_SHIFT), "Shift+Period");
  EXPECT_EQ(chord_of_character('&', GLFW_KEY_1, 0), "1");  // France
  EXPECT_EQ(chord_of_character('1', GLFW_KEY_1, GLFW_MOD_SHIFT), "1");
  EXPECT_EQ(chord_of_character('-', GLFW_KEY_6, 0), "Minus");
  EXPECT_EQ(chord_of_character('n', GLFW_KEY_N, 0), "N");
  EXPECT_EQ(chord_of_character('N', GLFW_KEY_N, GLFW_MOD_SHIFT), "Shift+N");
  EXPECT_EQ(chord_of_character('N', GLFW_KEY_N, 0), "N");             // capitals are locked
  EXPECT_EQ(chord_of_character(0x442, GLFW_KEY_N, 0), "N");           // Russia
  EXPECT_EQ(chord_of_character(0xFC, GLFW_KEY_LEFT_BRACKET, 0), "");  // u with two dots
}

}  // namespace
}  // namespace parallax::gui
