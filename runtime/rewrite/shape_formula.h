// SPDX-License-Identifier: Apache-2.0
// The relation of a Reshape's shape operand to another value, in any form that exporters write it.
#pragma once

#include <vector>

#include "runtime/rewrite/fuser.h"

namespace parallax::runtime {

// One entry of a shape: a number, an axis of the value in question, or -1 for what is left.
struct ShapeTerm {
  enum class Kind : uint8_t { number, axis } kind = Kind::number;
  int64_t value = 0;
  static ShapeTerm number(int64_t value) { return {Kind::number, value}; }
  static ShapeTerm dim(int64_t axis) { return {Kind::axis, axis}; }
  static ShapeTerm the_rest() { return number(-1); }
  bool operator==(const ShapeTerm&) const = default;
};

// The Reshape gives exactly this shape, written in terms of `source`.
bool has_shape(const Fuser& fuser, const Node& reshape, ValueId source, const std::vector<ShapeTerm>& terms);

}  // namespace parallax::runtime
