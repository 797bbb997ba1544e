// The cells of RNN, GRU and LSTM: what one step makes of its gates. Gate order and formulas as in the specification.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/device/math.h"
#include "runtime/ops/op_call.h"

namespace parallax::runtime {

// One activation function with its parameters.
struct Activation {
  enum class Kind : uint8_t {
    relu,
    tanh,
    sigmoid,
    affine,
    leaky_relu,
    thresholded_relu,
    scaled_tanh,
    hard_sigmoid,
    elu,
    softsign,
    softplus
  };
  Kind kind = Kind::tanh;
  double alpha = 0;
  double beta = 0;

  template <class C>
  C operator()(C x) const {
    const C a = static_cast<C>(alpha);
    const C b = static_cast<C>(beta);
    switch (kind) {
      case Kind::relu:
        return x > C(0) ? x : C(0);
      case Kind::tanh:
        return math::tanh(x);
      case Kind::sigmoid:
        return math::sigmoid(x);
      case Kind::affine:
        return a * x + b;
      case Kind::leaky_relu:
        return x < C(0) ? a * x : x;
      case Kind::thresholded_relu:
        return x > a ? x : C(0);
      case Kind::scaled_tanh:
        return a * math::tanh(b * x);
      case Kind::hard_sigmoid:
        return std::clamp(a * x + b, C(0), C(1));
      case Kind::elu:
        return x < C(0) ? a * (math::exp(x) - C(1)) : x;
      case Kind::softsign:
        return x / (C(1) + std::fabs(x));
      case Kind::softplus:
        return std::log1p(math::exp(-std::fabs(x))) + std::max(x, C(0));
    }
    return x;
  }
};

// The node's activations, `per_direction` for each of its directions, with the defaults of the operator. Errors:
// execution.
Result<std::vector<Activation>> activations_of(const OpCall& op, const std::vector<std::string>& defaults,
                                               int64_t directions);

// Parameters of one direction; null where the node has none.
template <class C>
struct CellParameters {
  int64_t hidden = 0;
  int64_t batch = 0;
  const C* input_bias = nullptr;      // [gates * hidden]
  const C* recurrent_bias = nullptr;  // [gates * hidden]
  const C* peepholes = nullptr;       // [3 * hidden], LSTM
  const Activation* activations = nullptr;
  C clip = 0;  // 0: none
  bool linear_before_reset = false;
  bool input_forget = false;
};

template <class C>
C clipped(C value, C clip) {
  return clip > C(0) ? std::clamp(value, -clip, clip) : value;
}

template <class C>
C bias_at(const C* bias, int64_t index) {
  return bias == nullptr ? C(0) : bias[index];
}

// h = f(x W^T + h R^T + b). `x_gates` and `h_gates` hold the two products of one batch entry.
template <class C>
void rnn_cell(const CellParameters<C>& cell, const C* x_gates, const C* h_gates, C* h, C*) {
  for (int64_t i = 0; i < cell.hidden; ++i) {
    const C sum = x_gates[i] + h_gates[i] + bias_at(cell.input_bias, i) + bias_at(cell.recurrent_bias, i);
    h[i] = cell.activations[0](clipped(sum, cell.clip));
  }
}

// Gates i, o, f, c.
template <class C>
void lstm_cell(const CellParameters<C>& cell, const C* x_gates, const C* h_gates, C* h, C* c) {
  const int64_t n = cell.hidden;
  const auto gate = [&](int64_t number, int64_t i) {
    const int64_t at = number * n + i;
    return x_gates[at] + h_gates[at] + bias_at(cell.input_bias, at) + bias_at(cell.recurrent_bias, at);
  };
  const auto peephole = [&](int64_t number, int64_t i) { return bias_at(cell.peepholes, number * n + i); };
  for (int64_t i = 0; i < n; ++i) {
    const C in = cell.activations[0](clipped(gate(0, i) + peephole(0, i) * c[i], cell.clip));
    const C forget =
        cell.input_forget ? C(1) - in : cell.activations[0](clipped(gate(2, i) + peephole(2, i) * c[i], cell.clip));
    const C candidate = cell.activations[1](clipped(gate(3, i), cell.clip));
    c[i] = forget * c[i] + in * candidate;
    const C out = cell.activations[0](clipped(gate(1, i) + peephole(1, i) * c[i], cell.clip));
    h[i] = out * cell.activations[2](clipped(c[i], cell.clip));
  }
}

}  // namespace parallax::runtime
