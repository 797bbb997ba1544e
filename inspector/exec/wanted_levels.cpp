// SPDX-License-Identifier: Apache-2.0
// Asks and remembers.
#include "inspector/exec/wanted_levels.h"

namespace parallax {

const std::vector<CaptureLevel>& WantedLevels::of(Observer& observer, const ValueTable& value_infos) {
  if (asked_ == observer.identity()) return levels_;
  levels_.clear();
  for (const ValueInfo& value_info : value_infos.value_infos()) levels_.push_back(observer.wants(value_info));
  asked_ = observer.identity();
  return levels_;
}

}  // namespace parallax
