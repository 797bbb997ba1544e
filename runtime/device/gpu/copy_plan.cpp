// SPDX-License-Identifier: Apache-2.0
// The order, the width and the tiles of a strided copy, from its dims, strides and addresses.
#include "runtime/device/gpu/copy_plan.h"

#include <cstdlib>

#include "runtime/device/cpu/map.h"

namespace parallax::runtime::gpu {
namespace {

// Along shorter axes most threads of a tile would have nothing to move.
constexpr int64_t kLeastTiled = 8;

void sort_by_target(Ints& dims, std::array<Ints, 2>& strides) {
  for (int64_t end = dims.size(); end > 1; --end) {
    for (int64_t axis = 0; axis + 1 < end; ++axis) {
      if (std::abs(strides[0][axis]) >= std::abs(strides[0][axis + 1])) continue;
      std::swap(dims[axis], dims[axis + 1]);
      for (Ints& own : strides) std::swap(own[axis], own[axis + 1]);
    }
  }
}

// True where `times` neighbors along the last axis may be moved as one element.
bool may_widen(const CopyPlan& plan, int64_t times, const std::byte* target, const std::byte* source) {
  const int64_t last = plan.dims.size() - 1;
  if (plan.strides[0][last] != 1 || plan.strides[1][last] != 1 || plan.dims[last] % times != 0) return false;
  for (int64_t axis = 0; axis < last; ++axis) {
    if (plan.strides[0][axis] % times != 0 || plan.strides[1][axis] % times != 0) return false;
  }
  const auto bytes = static_cast<uintptr_t>(plan.bytes * times);
  return reinterpret_cast<uintptr_t>(target) % bytes == 0 && reinterpret_cast<uintptr_t>(source) % bytes == 0;
}

}  // namespace

CopyPlan plan_copy(int64_t bytes_per_element, const Ints& dims, const StridedTarget& target,
                   const StridedSource& source) {
  CopyPlan plan{bytes_per_element, dims, {target.strides, source.strides}, -1};
  merge_axes(plan.dims, plan.strides);  // an axis of one element has a stride that tells nothing
  sort_by_target(plan.dims, plan.strides);
  merge_axes(plan.dims, plan.strides);
  const int64_t last = plan.dims.size() - 1;
  const std::byte* to = target.data + target.offset * bytes_per_element;
  const std::byte* from = source.data + source.offset * bytes_per_element;
  for (int64_t times = 16 / plan.bytes; times > 1; times /= 2) {
    if (!may_widen(plan, times, to, from)) continue;
    plan.bytes *= times;
    plan.dims[last] /= times;
    for (Ints& own : plan.strides) {
      for (int64_t axis = 0; axis < last; ++axis) own[axis] /= times;
    }
    return plan;
  }
  if (plan.strides[0][last] != 1 || plan.strides[1][last] == 1 || plan.dims[last] < kLeastTiled) return plan;
  for (int64_t axis = 0; axis < last; ++axis) {
    if (plan.strides[1][axis] == 1 && plan.dims[axis] >= kLeastTiled) plan.source_axis = axis;
  }
  return plan;
}

}  // namespace parallax::runtime::gpu
