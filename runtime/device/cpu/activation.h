// SPDX-License-Identifier: Apache-2.0
// Activation: what a product or a convolution does to each element of its result before it is stored.
#pragma once

#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/math.h"

namespace parallax::runtime {

struct Activation {
  enum class Kind : uint8_t {
    none,
    relu,
    sigmoid,
    tanh,
    leaky_relu,    // alpha
    clip,          // alpha: lowest, beta: highest
    hard_sigmoid,  // max(0, min(1, alpha x + beta))
    hard_swish,
    softsign,
    gelu,       // with erf
    fast_gelu,  // with tanh
    swish,      // x sigmoid(alpha x)
  };
  Kind kind = Kind::none;
  float alpha = 0;
  float beta = 0;
};

namespace activation_detail {

template <Activation::Kind kKind>
struct Apply {
  float alpha, beta;
  template <class T>
  PX_HD T operator()(T x) const {
    using Kind = Activation::Kind;
    [[maybe_unused]] const T a = static_cast<T>(alpha);
    [[maybe_unused]] const T b = static_cast<T>(beta);
    if constexpr (kKind == Kind::relu) return x < T(0) ? T(0) : x;
    if constexpr (kKind == Kind::sigmoid) return math::sigmoid(x);
    if constexpr (kKind == Kind::tanh) return math::tanh(x);
    if constexpr (kKind == Kind::leaky_relu) {
      const T below = a * x;  // in any case: no branch
      return x < T(0) ? below : x;
    }
    if constexpr (kKind == Kind::clip) return math::minimum(b, math::maximum(a, x));
    if constexpr (kKind == Kind::hard_sigmoid) return math::maximum(T(0), math::minimum(T(1), a * x + b));
    if constexpr (kKind == Kind::hard_swish) return x * math::maximum(T(0), math::minimum(T(1), x / T(6) + T(0.5)));
    if constexpr (kKind == Kind::softsign) return x / (T(1) + std::fabs(x));
    if constexpr (kKind == Kind::gelu) return math::gelu(x);
    if constexpr (kKind == Kind::fast_gelu) return math::gelu_by_tanh(x);
    if constexpr (kKind == Kind::swish) return math::times_sigmoid(x, a * x);
    return x;
  }
};

}  // namespace activation_detail

// Calls visit with the functor of the activation.
template <class Visit>
void visit_activation(const Activation& activation, const Visit& visit) {
  using Kind = Activation::Kind;
  using activation_detail::Apply;
  const float a = activation.alpha;
  const float b = activation.beta;
  switch (activation.kind) {
    case Kind::none:
      return visit(Apply<Kind::none>{a, b});
    case Kind::relu:
      return visit(Apply<Kind::relu>{a, b});
    case Kind::sigmoid:
      return visit(Apply<Kind::sigmoid>{a, b});
    case Kind::tanh:
      return visit(Apply<Kind::tanh>{a, b});
    case Kind::leaky_relu:
      return visit(Apply<Kind::leaky_relu>{a, b});
    case Kind::clip:
      return visit(Apply<Kind::clip>{a, b});
    case Kind::hard_sigmoid:
      return visit(Apply<Kind::hard_sigmoid>{a, b});
    case Kind::hard_swish:
      return visit(Apply<Kind::hard_swish>{a, b});
    case Kind::softsign:
      return visit(Apply<Kind::softsign>{a, b});
    case Kind::gelu:
      return visit(Apply<Kind::gelu>{a, b});
    case Kind::fast_gelu:
      return visit(Apply<Kind::fast_gelu>{a, b});
    case Kind::swish:
      return visit(Apply<Kind::swish>{a, b});
  }
}

// One row: y = apply(x + bias) + residual, where bias and residual may be null, and y may be x.
template <class C, class Apply>
void finish_row(int64_t columns, const C* x, const C* bias, const C* residual, const Apply& apply, C* y) {
  vectorized(0, columns, [=](int64_t first, int64_t last) {
    if (bias != nullptr && residual != nullptr) {
      PX_INDEPENDENT_ITERATIONS
      for (int64_t i = first; i < last; ++i) y[i] = apply(x[i] + bias[i]) + residual[i];
    } else if (bias != nullptr) {
      PX_INDEPENDENT_ITERATIONS
      for (int64_t i = first; i < last; ++i) y[i] = apply(x[i] + bias[i]);
    } else if (residual != nullptr) {
      PX_INDEPENDENT_ITERATIONS
      for (int64_t i = first; i < last; ++i) y[i] = apply(x[i]) + residual[i];
    } else {
      PX_INDEPENDENT_ITERATIONS
      for (int64_t i = first; i < last; ++i) y[i] = apply(x[i]);
    }
  });
}

// y = activation(y + bias) + residual in place, y being rows of `columns`; bias is one row, residual as large as y;
// both may be null.
template <class C>
void finish_rows(int64_t rows, int64_t columns, const C* bias, const C* residual, const Activation& activation, C* y) {
  visit_activation(activation, [&](auto apply) {
    parallel_for(rows, columns * 4, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * columns; at < end * columns; at += columns)
        finish_row(columns, y + at, bias, residual == nullptr ? nullptr : residual + at, apply, y + at);
    });
  });
}

// The epilogue in place on x, which becomes x + bias, and y = activation(x + bias) + residual.
template <class C>
void finish_rows_across(int64_t rows, int64_t columns, const C* bias, const C* residual, const Activation& activation,
                        C* x, C* y) {
  const C* const none = nullptr;
  const auto same = [](C sum) { return sum; };
  visit_activation(activation, [&](auto apply) {
    parallel_for(rows, columns * 5, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * columns; at < end * columns; at += columns) {
        if (bias != nullptr) finish_row(columns, x + at, bias, none, same, x + at);
        finish_row(columns, x + at, none, residual == nullptr ? nullptr : residual + at, apply, y + at);
      }
    });
  });
}

// y = activation(y + residual) in place.
template <class C>
void finish_sum(int64_t count, const C* residual, const Activation& activation, C* y) {
  visit_activation(activation, [&](auto apply) {
    parallel_for(count, 4, [&](int64_t begin, int64_t end) {
      vectorized(begin, end, [=](int64_t first, int64_t last) {
        PX_INDEPENDENT_ITERATIONS
        for (int64_t i = first; i < last; ++i) y[i] = apply(y[i] + residual[i]);
      });
    });
  });
}

}  // namespace parallax::runtime
