// SPDX-License-Identifier: Apache-2.0
// Walks whose indices or offsets do not fit 32 bits, halved until they do.
#include "runtime/device/gpu/index_walk.h"

#include <cstdlib>

#include "inspector/base/check.h"

namespace parallax::runtime::gpu {
namespace {

// The axis to be halved; none where the part fits.
constexpr size_t kMostParts = 65536;  // dense operands that fit a memory need far fewer

bool is_narrow(const Ints& dims, std::span<const Ints> strides, int64_t most) {
  if (product(dims) > most) return false;
  for (const Ints& own : strides) {
    int64_t reach = 0;
    for (int64_t axis = 0; axis < dims.size(); ++axis) reach += std::abs(own[axis]) * (dims[axis] - 1);
    if (reach > most) return false;
  }
  return true;
}

int64_t outermost(const Ints& dims) {
  int64_t axis = 0;
  while (dims[axis] == 1) ++axis;
  return axis;
}

// The axis along which any operand goes farthest; the outermost one where none moves.
int64_t widest(const Ints& dims, std::span<const Ints> strides) {
  int64_t farthest = 0, found = outermost(dims);
  for (const Ints& own : strides) {
    for (int64_t axis = 0; axis < dims.size(); ++axis) {
      const int64_t distance = std::abs(own[axis]) * (dims[axis] - 1);
      if (distance > farthest) found = axis;
      farthest = std::max(farthest, distance);
    }
  }
  return found;
}

// Empty where there would be more than kMostParts.
template <class Choose>
std::vector<WalkPart> parts_by(const Choose& choose, const WalkPart& whole, std::span<const Ints> strides,
                               int64_t most) {
  std::vector<WalkPart> done, open{whole};
  while (!open.empty()) {
    WalkPart first = std::move(open.back());
    open.pop_back();
    if (is_narrow(first.dims, strides, most)) {
      done.push_back(std::move(first));
      continue;
    }
    if (done.size() + open.size() >= kMostParts) return {};
    const int64_t axis = choose(first.dims);
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

}  // namespace

std::vector<WalkPart> narrow_parts(const Ints& dims, std::span<const Ints> strides, int64_t most) {
  PX_CHECK(most > 0);
  const WalkPart whole{dims, Ints(static_cast<int64_t>(strides.size()))};
  std::vector<WalkPart> parts = parts_by(outermost, whole, strides, most);
  if (!parts.empty()) return parts;
  return parts_by([&](const Ints& left) { return widest(left, strides); }, whole, strides, most);
}

}  // namespace parallax::runtime::gpu
