// SPDX-License-Identifier: Apache-2.0
// WeightPool: initializers of several models, each content once.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "inspector/model/ir.h"

namespace parallax::transform {

class WeightPool {
 public:
  struct Weight {
    StoredTensor stored;
    TypeInfo type;
    uint32_t users = 0;  // one bit for each model
  };

  // The index of the weight with this type, shape and content, which is added where there is none. Metadata and the
  // name are those of the first one.
  size_t add(const StoredTensor& stored, const TypeInfo& type, uint32_t user);
  std::vector<Weight>& weights() { return weights_; }

 private:
  std::vector<Weight> weights_;
  std::unordered_multimap<uint64_t, size_t> by_hash_;
};

}  // namespace parallax::transform
