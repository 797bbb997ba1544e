// SPDX-License-Identifier: Apache-2.0
// The copies that nodes with bodies make themselves: into their bodies, from one iteration to the next, and out again.
#pragma once

#include <optional>
#include <string>

#include "inspector/diff/localize/captured_side.h"

namespace parallax::diff {

enum class CarriedValues : uint8_t { unknown, right, wrong };

struct CarriedValuesCheck {
  CarriedValues state = CarriedValues::unknown;  // unknown: not everything needed was captured, or it is no plain copy
  size_t output = 0;                             // of the node, when wrong
  std::string why;
};

// Checks that the values that If, Loop, Scan and calls passed on are bit by bit their inputs. Errors: corrupt_file.
Result<CarriedValuesCheck> check_carried_values(const CapturedSide& side, const NodeInstance& instance);

}  // namespace parallax::diff
