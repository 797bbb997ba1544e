// SPDX-License-Identifier: Apache-2.0
// Indices of elements split into axes, in 32-bit arithmetic: divisions by numbers that the host knows become
// multiplications, and what does not fit is launched in parts that do.
#pragma once

#include <array>
#include <bit>
#include <limits>
#include <span>
#include <vector>

#include "runtime/device/cpu/ints.h"
#include "runtime/device/gpu/launch.h"

// A loop whose body is in the code but once.
#ifdef __CUDA_ARCH__
#define PX_ROLLED _Pragma("unroll 1")
#else
#define PX_ROLLED
#endif

namespace parallax::runtime::gpu {

constexpr int64_t kMostNarrow = std::numeric_limits<int32_t>::max();

// Division of numbers that are not negative by one that is positive (Granlund and Montgomery, "Division by invariant
// integers using multiplication", 1994, theorem 4.2 with N = 31): with l = ceil(log2 d) and m = ceil(2^(31+l) / d),
// which is below 2^32, n / d is floor(m n / 2^(31+l)) for all n below 2^31.
struct Divisor {
  int64_t value = 1;
  uint32_t multiplier = uint32_t{1} << 31;
  uint32_t shift = 31;

  Divisor() = default;
  explicit Divisor(int64_t divisor) : value(divisor), multiplier(0), shift(0) {
    if (divisor < 1 || divisor > kMostNarrow) return;  // of larger ones every narrow quotient is 0
    shift = static_cast<uint32_t>(31 + std::bit_width(static_cast<uint64_t>(divisor) - 1));
    multiplier = static_cast<uint32_t>(((uint64_t{1} << shift) + static_cast<uint64_t>(divisor) - 1) /
                                       static_cast<uint64_t>(divisor));
  }

  // The quotient of a number below 2^31.
  PX_HD uint32_t narrow_quotient(uint32_t n) const {
    return static_cast<uint32_t>((uint64_t{n} * multiplier) >> shift);
  }
  PX_HD int64_t quotient(int64_t n) const {
    return n <= kMostNarrow ? static_cast<int64_t>(narrow_quotient(static_cast<uint32_t>(n))) : n / value;
  }
};

// Axes that N operands walk together, row-major, in 32-bit arithmetic: every index and offset is at most kMostNarrow.
template <size_t N>
struct Walk {
  int axes = 0;
  Divisor dims[kMaxAxes];
  int32_t strides[N][kMaxAxes] = {};

  Walk() = default;
  Walk(const Ints& walked, const std::array<Ints, N>& own_strides) : axes(static_cast<int>(walked.size())) {
    for (int axis = 0; axis < axes; ++axis) {
      dims[axis] = Divisor(walked[axis]);
      // a position of an axis of one element is 0, whatever its stride
      for (size_t operand = 0; operand < N; ++operand) {
        strides[operand][axis] = walked[axis] == 1 ? 0 : static_cast<int32_t>(own_strides[operand][axis]);
      }
    }
  }

  // The offset of element `index` in one operand. There is at least one axis.
  PX_HD int32_t offset(int operand, uint32_t index) const {
    int32_t at = 0;
    PX_ROLLED
    for (int axis = axes - 1; axis > 0; --axis) {
      const uint32_t outer = dims[axis].narrow_quotient(index);
      at += static_cast<int32_t>(index - outer * static_cast<uint32_t>(dims[axis].value)) * strides[operand][axis];
      index = outer;
    }
    return at + static_cast<int32_t>(index) * strides[operand][0];
  }
  // Sets `at` to the offset of element `index` in each operand. There is at least one axis.
  PX_HD void offsets(uint32_t index, int32_t (&at)[N]) const {
    for (size_t operand = 0; operand < N; ++operand) at[operand] = 0;
    PX_ROLLED
    for (int axis = axes - 1; axis > 0; --axis) {
      const uint32_t outer = dims[axis].narrow_quotient(index);
      const auto position = static_cast<int32_t>(index - outer * static_cast<uint32_t>(dims[axis].value));
      for (size_t operand = 0; operand < N; ++operand) at[operand] += position * strides[operand][axis];
      index = outer;
    }
    for (size_t operand = 0; operand < N; ++operand) at[operand] += static_cast<int32_t>(index) * strides[operand][0];
  }
};

// A part of the elements of some axes: its dims, and where each operand begins.
struct WalkPart {
  Ints dims;
  Ints offsets;
};

// Divides the axes until in each part no number of elements, and no distance in any operand, is above `most`. Parts are
// row-major neighbors, but where operands have strides that make these too many: none of dense operands do.
std::vector<WalkPart> narrow_parts(const Ints& dims, std::span<const Ints> strides, int64_t most);

}  // namespace parallax::runtime::gpu
