// SPDX-License-Identifier: Apache-2.0
// The tables of the ramps.
#include "gui/viewmodel/view_colors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace parallax {
namespace {

constexpr std::array<std::string_view, 9> kBuRd = {"#2166AC", "#4393C3", "#92C5DE", "#D1E5F0", "#F7F7F7",
                                                   "#FDDBC7", "#F4A582", "#D6604D", "#B2182B"};
constexpr std::array<std::string_view, 9> kYlOrBr = {"#FFFFE5", "#FFF7BC", "#FEE391", "#FEC44F", "#FB9A29",
                                                     "#EC7014", "#CC4C02", "#993404", "#662506"};
constexpr std::array<std::string_view, 10> kCividis = {"#00224E", "#123570", "#3B496C", "#575D6D", "#707173",
                                                       "#8A8678", "#A59C74", "#C3B369", "#E1CC55", "#FEE838"};

Color along(std::span<const std::string_view> ramp, double t) {
  const double at = std::clamp(std::isnan(t) ? 0.0 : t, 0.0, 1.0) * static_cast<double>(ramp.size() - 1);
  const auto low = std::min(static_cast<size_t>(at), ramp.size() - 2);
  return mixed(color_from_hex(ramp[low]), color_from_hex(ramp[low + 1]), at - static_cast<double>(low));
}

double linear(uint8_t channel) {
  const double c = channel / 255.0;
  return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

}  // namespace

Color color_from_hex(std::string_view text) {
  uint32_t value = 0;
  std::from_chars(text.data() + 1, text.data() + text.size(), value, 16);
  return {static_cast<uint8_t>(value >> 16), static_cast<uint8_t>(value >> 8 & 255), static_cast<uint8_t>(value & 255)};
}

Color mixed(Color a, Color b, double share) {
  const auto mix = [&](uint8_t x, uint8_t y) {
    return static_cast<uint8_t>(std::lround(x + (static_cast<double>(y) - x) * share));
  };
  return {mix(a.r, b.r), mix(a.g, b.g), mix(a.b, b.b), mix(a.a, b.a)};
}

double luminance(Color color) { return 0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b); }

double contrast(Color a, Color b) {
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

Color readable_on(Color fill) {
  constexpr Color kBlack{0, 0, 0}, kWhite{255, 255, 255};
  return contrast(kBlack, fill) >= contrast(kWhite, fill) ? kBlack : kWhite;
}

Color signed_color(double t) { return along(kBuRd, (t + 1) / 2); }
Color magnitude_color(double t, bool is_dark) { return along(kYlOrBr, is_dark ? 1 - t : t); }
Color value_color(double t) { return along(kCividis, t); }

}  // namespace parallax
