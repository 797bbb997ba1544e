// SPDX-License-Identifier: Apache-2.0
// Colors of numbers, the same for graph and tensors. Ramps that keep their order in gray and for people who do not tell
// red from green; non-numbers have colors of its own, outside the ramps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace parallax {

struct Colour {
  uint8_t r = 0, g = 0, b = 0, a = 255;
  bool operator==(const Colour&) const = default;
};

Colour colour_from_hex(std::string_view text);  // "#RRGGBB"
Colour mixed(Colour a, Colour b, double share_of_b);
double luminance(Colour colour);  // relative, 0 to 1 (WCAG 2.1)
Colour readable_on(Colour fill);  // black or white

// t from -1 to 1: Paul Tol's BuRd. https://personal.sron.nl/~pault/
Colour signed_colour(double t);
// t from 0 to 1: Tol's YlOrBr, light to dark.
Colour magnitude_colour(double t);
// t from 0 to 1: cividis (Nunez, Anderton, Renslow 2018).
Colour value_colour(double t);
// The kind of an operator: "matrix", "activation", ...; "other" for those that are not known. One color for each kind,
// the same in every model: Tol's light scheme.
std::string_view kind_of_operator(std::string_view op);
std::span<const std::string_view> operator_kinds();
Colour operator_colour(std::string_view op);

// Tol's vibrant scheme.
constexpr Colour kNanColour{0xEE, 0x33, 0x77};
constexpr Colour kPositiveInfColour{0x00, 0x99, 0x88};
constexpr Colour kNegativeInfColour{0x33, 0xBB, 0xEE};
constexpr Colour kMissingColour{0xBB, 0xBB, 0xBB};

}  // namespace parallax
