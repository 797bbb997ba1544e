// SPDX-License-Identifier: Apache-2.0
// Walks whose indices or offsets do not fit 32 bits, halved until they do.
#include "runtime/device/gpu/index_walk.h"

#include <cstdlib>

#include "inspector/base/check.h"

namespace parallax::runtime::gpu {
namespace {

// The axis to be halved; none where the part fits.
bool is_narrow(const Ints& dims, std::span<const Ints> strides, int64_t most) {
  if (product(dims) > most) return false;
  for (const Ints& own : strides) {
    int64_t reach = 0;
    for (int64_t axis = 0; axis < dims.size(); ++axis) reach += std::abs(own[axis]) * (dims[axis] - 1);
    if (reach > most) return false;
  }
  return true;
}

// The outermost axis of more than one element, so that parts are row-major neighbors; -1 where nothing is to halve.
int64_t axis_to_halve(const Ints& dims, std::span<const Ints> strides, int64_t most) {
  if (is_narrow(dims, strides, most)) return -1;
  for (int64_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] > 1) return axis;
  }
  return -1;
}

}  // namespace

std::vector<WalkPart> narrow_parts(const Ints& dims, std::span<const Ints> strides, int64_t most) {
  PX_CHECK(most > 0);
  const WalkPart whole{dims, Ints(static_cast<int64_t>(strides.size()))};
  if (axis_to_halve(dims, strides, most) < 0) return {whole};
  std::vector<WalkPart> done;
  std::vector<WalkPart> open{whole};
  while (!open.empty()) {
    WalkPart first = std::move(open.back());
    open.pop_back();
    const int64_t axis = axis_to_halve(first.dims, strides, most);
    if (axis < 0) {
      done.push_back(std::move(first));
      continue;
    }
    WalkPart second = first;
    first.dims[axis] = (first.dims[axis] + 1) / 2;
    second.dims[axis] -= first.dims[axis];
    for (int64_t operand = 0; operand < second.offsets.size(); ++operand) {
      second.offsets[operand] += first.dims[axis] * strides[static_cast<size_t>(operand)][axis];
    }
    open.push_back(std::move(second));
    open.push_back(std::move(first));  // in order
  }
  return done;
}

}  // namespace parallax::runtime::gpu
