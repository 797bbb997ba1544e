// SPDX-License-Identifier: Apache-2.0
// How operators treat the element type of what they read: which only move elements, which take any type, and which stay
// in float32 although their schema would allow a narrower type.
#pragma once

#include <cstdint>
#include <string_view>

#include "inspector/model/ir.h"

namespace parallax::transform {

enum class PrecisionRule : uint8_t {
  computes,      // its results are rounded to the type it computes in
  moves,         // gives elements of its inputs back as they are: either type serves
  casts,         // reads any type, and an attribute or another input names the type that it gives
  reads_shape,   // reads any type, and no elements
  constant,      // gives a stored tensor
  fills,         // gives one stored number again and again
  quantizes,     // scale and data have one type
  float32_only,  // draws random numbers, makes windows, or reads bits: another type would change its meaning
  branches,      // If
  loops,         // Loop
  scans,         // Scan
};
PrecisionRule precision_rule_of(const Node& node);

// True for an input that must be float32 whatever the schema allows: the region's borders and the scales of a Resize.
bool is_always_float32(const Node& node, size_t index);

// The attribute that names the element type of the output, or nothing ("").
std::string_view type_attribute_of(const Node& node);

}  // namespace parallax::transform
