// SPDX-License-Identifier: Apache-2.0
// Colors of numbers, the same for graph and tensors. Ramps that keep their order in gray and for people who do not tell
// red from green; non-numbers have colors of its own, outside the ramps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace parallax {

struct Color {
  uint8_t r = 0, g = 0, b = 0, a = 255;
  bool operator==(const Color&) const = default;
};

Color color_from_hex(std::string_view text);  // "#RRGGBB"
Color mixed(Color a, Color b, double share_of_b);
double luminance(Color color);      // relative, 0 to 1 (WCAG 2.1)
double contrast(Color a, Color b);  // 1 to 21 (WCAG 2.1)
Color readable_on(Color fill);      // black or white, whichever contrasts more

// t from -1 to 1: Paul Tol's BuRd. https://personal.sron.nl/~pault/
Color signed_color(double t);
// t from 0 to 1: Tol's YlOrBr, from what is near the background to what contrasts with it most: light to dark, and on a
// dark background dark to light.
Color magnitude_color(double t, bool is_dark);
// t from 0 to 1: cividis (Nunez, Anderton, Renslow 2018).
Color value_color(double t);
// The kind of an operator: "matrix", "activation", ...; "other" for those that are not known. One color for each kind,
// the same in every model: Tol's light scheme.
std::string_view kind_of_operator(std::string_view op);
std::span<const std::string_view> operator_kinds();
Color operator_color(std::string_view op);

// Tol's vibrant scheme.
constexpr Color kNanColor{0xEE, 0x33, 0x77};
constexpr Color kPositiveInfColor{0x00, 0x99, 0x88};
constexpr Color kNegativeInfColor{0x33, 0xBB, 0xEE};
constexpr Color kMissingColor{0xBB, 0xBB, 0xBB};

}  // namespace parallax
