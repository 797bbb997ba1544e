// SPDX-License-Identifier: Apache-2.0
// The formulas of the binary operators. Integers wrap; division of integers by zero is refused before the loop.
#pragma once

#include <cmath>

#include "runtime/device/cpu/math.h"
#include "runtime/ops/op_call.h"

namespace parallax::runtime {

namespace functor_detail {
// Integer arithmetic in unsigned, where wrapping is defined.
template <class T, class Op>
PX_HD T wrapping(T a, T b, Op op) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(op(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  } else {
    return op(a, b);
  }
}
}  // namespace functor_detail

struct Add {
  template <class T>
  PX_HD T operator()(T a, T b) const {
    return functor_detail::wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Sub {
  template <class T>
  PX_HD T operator()(T a, T b) const {
    return functor_detail::wrapping(a, b, [](auto x, auto y) { return x - y; });
  }
};
struct Mul {
  template <class T>
  PX_HD T operator()(T a, T b) const {
    return functor_detail::wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};
struct Div {  // integers truncate; the smallest by -1 wraps
  template <class T>
  PX_HD T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      if (b == T(-1)) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(a));
    }
    return a / b;
  }
};
struct Mod {  // the sign of the divisor, as Python's %
  static constexpr int64_t kWork = 5;
  template <class T>
  PX_HD T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return T(0);
      }
      const T rest = a % b;
      return rest != T(0) && ((rest < T(0)) != (b < T(0))) ? rest + b : rest;
    } else {
      const T rest = std::fmod(a, b);
      if (rest == T(0)) return std::copysign(T(0), b);
      return (rest < T(0)) != (b < T(0)) ? rest + b : rest;
    }
  }
};
struct Fmod {  // the sign of the dividend, as C's fmod
  static constexpr int64_t kWork = 5;
  template <class T>
  PX_HD T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return T(0);
      }
      return a % b;
    } else {
      return std::fmod(a, b);
    }
  }
};
struct Maximum {
  template <class T>
  PX_HD T operator()(T a, T b) const {
    return math::maximum(a, b);
  }
};
struct Minimum {
  template <class T>
  PX_HD T operator()(T a, T b) const {
    return math::minimum(a, b);
  }
};
struct PRelu {
  template <class T>
  PX_HD T operator()(T x, T slope) const {
    const T below = slope * x;  // in any case: no branch
    return x < T(0) ? below : x;
  }
};

struct Equal {
  template <class T>
  PX_HD bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Greater {
  template <class T>
  PX_HD bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterOrEqual {
  template <class T>
  PX_HD bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct Less {
  template <class T>
  PX_HD bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessOrEqual {
  template <class T>
  PX_HD bool operator()(T a, T b) const {
    return a <= b;
  }
};

struct And {
  PX_HD uint8_t operator()(uint8_t a, uint8_t b) const { return a & b; }
};
struct Or {
  PX_HD uint8_t operator()(uint8_t a, uint8_t b) const { return a | b; }
};
struct Xor {
  PX_HD uint8_t operator()(uint8_t a, uint8_t b) const { return a ^ b; }
};
struct BitwiseAnd {
  template <class T>
  PX_HD T operator()(T a, T b) const {
    return a & b;
  }
};
struct BitwiseOr {
  template <class T>
  PX_HD T operator()(T a, T b) const {
    return a | b;
  }
};
struct BitwiseXor {
  template <class T>
  PX_HD T operator()(T a, T b) const {
    return a ^ b;
  }
};
// Shifts by the type's width or more, or by a negative amount, leave what the sign fills in: -1 to the right of a
// negative number, else 0 (BitShift-28). A negative amount is huge when taken without sign.
struct ShiftLeft {
  uint64_t width;
  explicit ShiftLeft(const OpCall& op) : width(static_cast<uint64_t>(bits_of(op.input(0).dtype()))) {}
  template <class T>
  PX_HD T operator()(T a, T b) const {
    const auto bits = static_cast<uint64_t>(b);
    return bits >= width ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << bits);
  }
};
struct ShiftRight {
  uint64_t width;
  explicit ShiftRight(const OpCall& op) : width(static_cast<uint64_t>(bits_of(op.input(0).dtype()))) {}
  template <class T>
  PX_HD T operator()(T a, T b) const {
    const auto bits = static_cast<uint64_t>(b);
    if (bits >= width) return a < T(0) ? static_cast<T>(-1) : T(0);
    return static_cast<T>(a >> bits);
  }
};

}  // namespace parallax::runtime
