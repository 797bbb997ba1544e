// Where a value comes from: whether it says anything of the data that a run was given.
#pragma once

#include <unordered_map>
#include <vector>

#include "inspector/diff/comparison.h"
#include "inspector/exec/observer.h"

namespace parallax::diff {

class OriginIndex {
 public:
  Origin of(const ValueSite& site);

 private:
  std::unordered_map<const Graph*, std::vector<bool>> given_;  // by ValueId
};

}  // namespace parallax::diff
