// SPDX-License-Identifier: Apache-2.0
// WantedLevels: an observer's answers for every value of a session, kept so that it is asked once.
#pragma once

#include <cstdint>
#include <vector>

#include "inspector/exec/value_table.h"

namespace parallax {

class WantedLevels {
 public:
  // By value id. Asks only an observer that is not the one asked last.
  const std::vector<CaptureLevel>& of(Observer& observer, const ValueTable& value_infos);

 private:
  std::vector<CaptureLevel> levels_;
  uint64_t asked_ = 0;  // Observer::identity(), 0: none
};

}  // namespace parallax
