// SPDX-License-Identifier: Apache-2.0
// How numbers stand in sorts.
#pragma once

#include <cstdint>

#include "runtime/device/devices.h"

namespace parallax::runtime {

// NaN counts as the largest, zeros of either sign are equal, equal ones keep the order of their indices.
enum class NumberOrder : uint8_t { ascending, descending };

// Numbers in one of these orders. That it says which lets keys be sorted in its place (gpu/sort_key.h).
struct TopFirst {
  bool largest;
  NumberOrder number_order() const { return largest ? NumberOrder::descending : NumberOrder::ascending; }
  template <class C>
  PX_HD bool operator()(C x, int64_t location_x, C y, int64_t location_y) const {
    const bool x_nan = x != x;
    const bool y_nan = y != y;
    if (x_nan != y_nan) return largest ? x_nan : y_nan;
    if (x != y && !x_nan) return largest ? x > y : x < y;
    return location_x < location_y;
  }
};

}  // namespace parallax::runtime
