// SPDX-License-Identifier: Apache-2.0
// Asks and remembers.
#include "inspector/exec/wanted_levels.h"

namespace parallax {

const std::vector<CaptureLevel>& WantedLevels::of(Observer& observer, const SiteTable& sites) {
  if (asked_ == observer.identity()) return levels_;
  levels_.clear();
  for (const ValueSite& site : sites.sites()) levels_.push_back(observer.wants(site));
  asked_ = observer.identity();
  return levels_;
}

}  // namespace parallax
