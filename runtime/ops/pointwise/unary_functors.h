// SPDX-License-Identifier: Apache-2.0
// The formulas of the unary operators, named as ONNX names them. Sources: the specification's text of each operator.
#pragma once

#include <cmath>
#include <limits>

#include "runtime/device/cpu/math.h"
#include "runtime/device/storage.h"
#include "runtime/ops/op_call.h"

namespace parallax::runtime {

struct Abs {
  template <class T>
  PX_HD T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return std::fabs(x);
    return x < T(0) ? static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x)) : x;
  }
};
struct Neg {
  template <class T>
  PX_HD T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return -x;
    return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
  }
};
struct Sign {
  template <class T>
  PX_HD T operator()(T x) const {
    if (x != x) return x;
    return static_cast<T>(static_cast<int>(x > T(0)) - static_cast<int>(x < T(0)));
  }
};
struct Floor {
  template <class T>
  PX_HD T operator()(T x) const {
    return std::floor(x);
  }
};
struct Ceil {
  template <class T>
  PX_HD T operator()(T x) const {
    return std::ceil(x);
  }
};
struct Round {  // halves to even
  template <class T>
  PX_HD T operator()(T x) const {
    return std::nearbyint(x);
  }
};
struct Sqrt {
  template <class T>
  PX_HD T operator()(T x) const {
    return std::sqrt(x);
  }
};
struct Reciprocal {
  template <class T>
  PX_HD T operator()(T x) const {
    return T(1) / x;
  }
};

// Operators that are one call of the C library, some ten nanoseconds each.
#define PX_LIBRARY_FUNCTOR(Name, function) \
  struct Name {                            \
    static constexpr int64_t kWork = 10;   \
    template <class T>                     \
    PX_HD T operator()(T x) const {        \
      return std::function(x);             \
    }                                      \
  };
PX_LIBRARY_FUNCTOR(Tan, tan)
PX_LIBRARY_FUNCTOR(Sinh, sinh)
PX_LIBRARY_FUNCTOR(Cosh, cosh)
PX_LIBRARY_FUNCTOR(Asinh, asinh)
PX_LIBRARY_FUNCTOR(Acosh, acosh)
PX_LIBRARY_FUNCTOR(Atanh, atanh)
#undef PX_LIBRARY_FUNCTOR

// Sine and cosine: the library's, but of a float of ordinary size, for which map vectorizes in_fast_range().
template <int32_t kQuarters>
struct Permuted {
  static constexpr int64_t kWork = 4;
  PX_HD bool is_in_fast_range(float x) const { return std::fabs(x) <= math::kMostReduced; }
  PX_HD float in_fast_range(float x) const { return math::sin_reduced(x, kQuarters); }
  template <class T>
  PX_HD T operator()(T x) const {
#ifndef __CUDA_ARCH__  // whose doubles may be slow
    if constexpr (std::is_same_v<T, float>) {
      if (is_in_fast_range(x)) return in_fast_range(x);
    }
#endif
    return kQuarters == 0 ? std::sin(x) : std::cos(x);
  }
};
using Sin = Permuted<0>;
using Cos = Permuted<1>;

// Operators that are one function of ours (runtime/device/cpu/math.h), which vector code can be made of.
#define PX_OWN_FUNCTOR(Name, function) \
  struct Name {                        \
    template <class T>                 \
    PX_HD T operator()(T x) const {    \
      return math::function(x);        \
    }                                  \
  };
PX_OWN_FUNCTOR(Log, log)
PX_OWN_FUNCTOR(Asin, asin)
PX_OWN_FUNCTOR(Acos, acos)
PX_OWN_FUNCTOR(Atan, atan)
PX_OWN_FUNCTOR(Tanh, tanh)
PX_OWN_FUNCTOR(Erf, erf)
PX_OWN_FUNCTOR(Sigmoid, sigmoid)
PX_OWN_FUNCTOR(Softplus, softplus)
PX_OWN_FUNCTOR(Mish, mish)
PX_OWN_FUNCTOR(GeluErf, gelu)
PX_OWN_FUNCTOR(GeluTanh, gelu_by_tanh)
#undef PX_OWN_FUNCTOR

// For floats whose exponential is a normal number, map compiles shorter code, with the same results.
struct Exp {
  PX_HD bool is_in_fast_range(float x) const { return std::fabs(x) <= 87.0F; }
  PX_HD float in_fast_range(float x) const { return math::exp_normal<0>(x); }
  template <class T>
  PX_HD T operator()(T x) const {
    return math::exp(x);
  }
};

struct Relu {
  template <class T>
  PX_HD T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};
struct LeakyRelu {
  float alpha;
  explicit LeakyRelu(const OpCall& op) : alpha(static_cast<float>(op.real("alpha"))) {}
  template <class T>
  PX_HD T operator()(T x) const {
    const T below = static_cast<T>(alpha) * x;  // in any case: no branch
    return x < T(0) ? below : x;
  }
};
struct Elu {
  float alpha;
  explicit Elu(const OpCall& op) : alpha(static_cast<float>(op.real("alpha"))) {}
  template <class T>
  PX_HD T operator()(T x) const {
    const T below = static_cast<T>(alpha) * math::expm1_negative(x);  // in any case: no branch
    return x < T(0) ? below : x;
  }
};
struct Celu {
  float alpha;
  explicit Celu(const OpCall& op) : alpha(static_cast<float>(op.real("alpha"))) {}
  template <class T>
  PX_HD T operator()(T x) const {
    const T a = static_cast<T>(alpha);
    const T scaled = x / a;  // positive below 0 where alpha is negative
    const T below = a * (scaled > T(0) ? math::exp(scaled) - T(1) : math::expm1_negative(scaled));
    return x < T(0) ? below : x;
  }
};
struct Selu {
  float alpha;
  float gamma;
  explicit Selu(const OpCall& op)
      : alpha(static_cast<float>(op.real("alpha"))), gamma(static_cast<float>(op.real("gamma"))) {}
  template <class T>
  PX_HD T operator()(T x) const {
    const T below = static_cast<T>(alpha) * math::expm1_negative(x);
    return static_cast<T>(gamma) * (x <= T(0) ? below : x);
  }
};
struct HardSigmoid {
  float alpha;
  float beta;
  explicit HardSigmoid(const OpCall& op)
      : alpha(static_cast<float>(op.real("alpha"))), beta(static_cast<float>(op.real("beta"))) {}
  template <class T>
  PX_HD T operator()(T x) const {
    return math::maximum(T(0), math::minimum(T(1), static_cast<T>(alpha) * x + static_cast<T>(beta)));
  }
};
struct HardSwish {
  template <class T>
  PX_HD T operator()(T x) const {
    return x * math::maximum(T(0), math::minimum(T(1), x / T(6) + T(0.5)));
  }
};
struct Softsign {
  template <class T>
  PX_HD T operator()(T x) const {
    return x / (T(1) + std::fabs(x));
  }
};
struct ThresholdedRelu {
  float alpha;
  explicit ThresholdedRelu(const OpCall& op) : alpha(static_cast<float>(op.real("alpha"))) {}
  template <class T>
  PX_HD T operator()(T x) const {
    return x > static_cast<T>(alpha) ? x : T(0);
  }
};
struct Swish {
  float alpha;
  explicit Swish(const OpCall& op) : alpha(static_cast<float>(op.real("alpha"))) {}
  template <class T>
  PX_HD T operator()(T x) const {
    return math::times_sigmoid(x, static_cast<T>(alpha) * x);
  }
};
struct Shrink {
  float bias;
  float lambd;
  explicit Shrink(const OpCall& op)
      : bias(static_cast<float>(op.real("bias"))), lambd(static_cast<float>(op.real("lambd"))) {}
  template <class T>
  PX_HD T operator()(T x) const {
    const double value = static_cast<double>(x);
    if (value < -static_cast<double>(lambd)) return storage::from_storage<T>(value + static_cast<double>(bias));
    if (value > static_cast<double>(lambd)) return storage::from_storage<T>(value - static_cast<double>(bias));
    return T(0);
  }
};
struct IsNaN {
  template <class T>
  PX_HD bool operator()(T x) const {
    return x != x;
  }
};
struct IsInf {
  bool detect_negative;
  bool detect_positive;
  explicit IsInf(const OpCall& op)
      : detect_negative(op.integer("detect_negative") != 0), detect_positive(op.integer("detect_positive") != 0) {}
  template <class T>
  PX_HD bool operator()(T x) const {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    return (x == kInfinity && detect_positive) || (x == -kInfinity && detect_negative);
  }
};
struct Not {
  PX_HD uint8_t operator()(uint8_t x) const { return x == 0 ? 1 : 0; }
};
struct BitwiseNot {
  template <class T>
  PX_HD T operator()(T x) const {
    return static_cast<T>(~x);
  }
};

}  // namespace parallax::runtime
