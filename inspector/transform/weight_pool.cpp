// SPDX-License-Identifier: Apache-2.0
// Finds equal weights by their hash, then by their bytes.
#include "inspector/transform/weight_pool.h"

#include <algorithm>
#include <cstring>

#include "inspector/base/hash.h"

namespace parallax::transform {
namespace {

uint64_t hash_of(const Tensor& tensor) {
  if (tensor.dtype() != DType::string) return hash128(tensor.view().data, tensor.size_bytes()).low;
  uint64_t hash = 0;
  for (const std::string& text : tensor.as<std::string>()) hash = hash * 31 + hash128(text.data(), text.size()).low;
  return hash;
}

bool are_equal(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.dtype() == DType::string) return std::ranges::equal(a.as<std::string>(), b.as<std::string>());
  return a.size_bytes() == 0 || std::memcmp(a.view().data, b.view().data, a.size_bytes()) == 0;
}

}  // namespace

size_t WeightPool::add(const StoredTensor& stored, const TypeInfo& type, uint32_t user) {
  const uint64_t hash = hash_of(stored.tensor);
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto known = begin; known != end; ++known) {
    Weight& weight = weights_[known->second];
    if (!are_equal(weight.stored.tensor, stored.tensor)) continue;
    weight.users |= user;
    return known->second;
  }
  by_hash_.emplace(hash, weights_.size());
  weights_.push_back({stored, type, user});
  return weights_.size() - 1;
}

}  // namespace parallax::transform
