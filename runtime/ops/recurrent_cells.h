// SPDX-License-Identifier: Apache-2.0
// The cells of RNN, GRU and LSTM: what one step makes of its gates, an element at a time. Gate order and formulas as in
// the specification.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "runtime/device/cpu/math.h"
#include "runtime/device/elements.h"
#include "runtime/ops/op_call.h"

namespace parallax::runtime {

// One activation function with its parameters.
struct CellActivation {
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
  PX_HD C operator()(C x) const {
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
        return math::minimum(math::maximum(a * x + b, C(0)), C(1));
      case Kind::elu:
        return x < C(0) ? a * (math::exp(x) - C(1)) : x;
      case Kind::softsign:
        return x / (C(1) + std::fabs(x));
      case Kind::softplus:
        return math::softplus(x);
    }
    return x;
  }
};

// The node's activations, `per_direction` for each of its directions, with the defaults of the operator. Errors:
// execution.
Result<std::vector<CellActivation>> cell_activations(const OpCall& op, const std::vector<std::string>& defaults,
                                                     int64_t directions);

// One direction's parameters, and one step of it. Unit u of batch entry e is element e * hidden + u of a state. Where a
// sequence has ended the states stay as they are; the cells below are asked for the others alone. A usual step has the
// operator's own activations, a bias, no clip, no peepholes and a forget gate, as nearly all models have it: without
// branches, so that loops over units become vector code.
template <class Device, class C, bool kUsual>
struct CellStep {
  int64_t hidden = 0, batch = 0, gates = 1, step = 0;
  bool reversed = false, linear_before_reset = false, input_forget = false;
  C clip = 0;  // 0: none
  CellActivation activations[3];
  Elements<Device, const C> input_bias, recurrent_bias;  // [gates * hidden]; none without B
  Elements<Device, const C> peepholes;                   // [3 * hidden], LSTM
  Elements<Device, const int64_t> lengths;               // [batch]
  Elements<Device, const C> x_gates;                     // [steps, batch, gates * hidden]
  Elements<Device, const C> h_gates;                     // [batch, gates * hidden]
  Elements<Device, const C> h;                           // [batch, hidden], before the step
  Elements<Device, const C> product_h;                   // [batch, hidden], GRU: the reset state times R

  PX_HD bool has_ended(int64_t entry) const { return step >= lengths[entry]; }
  PX_HD int64_t element(int64_t entry, int64_t unit) const { return entry * hidden + unit; }
  PX_HD C bias(const Elements<Device, const C>& values, int64_t gate, int64_t unit) const {
    if constexpr (kUsual) return values[gate * hidden + unit];
    return values ? values[gate * hidden + unit] : C(0);
  }
  PX_HD C from_input(int64_t gate, int64_t entry, int64_t unit) const {
    const int64_t from_the_end = lengths[entry] - 1 - step;  // read in any case: no branch
    const int64_t time = reversed ? from_the_end : step;
    return x_gates[((time * batch + entry) * gates + gate) * hidden + unit] + bias(input_bias, gate, unit);
  }
  PX_HD C from_state(int64_t gate, int64_t entry, int64_t unit) const {
    return h_gates[(entry * gates + gate) * hidden + unit] + bias(recurrent_bias, gate, unit);
  }
  PX_HD C gate(int64_t number, int64_t entry, int64_t unit) const {
    return from_input(number, entry, unit) + from_state(number, entry, unit);
  }
  PX_HD bool forgets_as_input() const { return !kUsual && input_forget; }
  // `sum` with the state seen through a peephole.
  PX_HD C peeped(C sum, int64_t number, int64_t unit, C state) const {
    if constexpr (kUsual) return sum;
    return peepholes ? sum + peepholes[number * hidden + unit] * state : sum;
  }
  template <CellActivation::Kind kOwn>
  PX_HD C activated(int64_t number, C value) const {
    if constexpr (kUsual) {
      return CellActivation{kOwn}(value);
    } else {
      return activations[number](clip > C(0) ? math::minimum(math::maximum(value, -clip), clip) : value);
    }
  }
  PX_HD C sigmoid(int64_t number, C value) const {
    return this->template activated<CellActivation::Kind::sigmoid>(number, value);
  }
  PX_HD C tanh(int64_t number, C value) const {
    return this->template activated<CellActivation::Kind::tanh>(number, value);
  }
};

// h = f(x W^T + h R^T + b)
template <class C, class Step>
struct RnnHidden {
  static constexpr int64_t kWork = 20;
  Step cell;
  PX_HD C operator()(int64_t entry, int64_t unit) const { return cell.tanh(0, cell.gate(0, entry, unit)); }
};

// GRU's gates are z, r, h. What is multiplied with the hidden gate's R, unless it has been already.
template <class C, class Step>
struct GruResetState {
  static constexpr int64_t kWork = 20;
  Step cell;
  PX_HD C operator()(int64_t entry, int64_t unit) const {
    return cell.sigmoid(0, cell.gate(1, entry, unit)) * cell.h[cell.element(entry, unit)];
  }
};
template <class C, class Step, bool kLinearBeforeReset>
struct GruHidden {
  static constexpr int64_t kWork = 40;
  Step cell;
  PX_HD C operator()(int64_t entry, int64_t unit) const {
    const int64_t element = cell.element(entry, unit);
    const C update = cell.sigmoid(0, cell.gate(0, entry, unit));
    C from_h;
    if constexpr (kLinearBeforeReset) {
      from_h = cell.sigmoid(0, cell.gate(1, entry, unit)) * cell.from_state(2, entry, unit);
    } else {
      from_h = cell.product_h[element] + cell.bias(cell.recurrent_bias, 2, unit);
    }
    const C candidate = cell.tanh(1, cell.from_input(2, entry, unit) + from_h);
    return (C(1) - update) * candidate + update * cell.h[element];
  }
};

// LSTM's gates are i, o, f, c; the peepholes' order is i, o, f.
template <class C, class Step>
struct LstmState {
  static constexpr int64_t kWork = 60;
  Step cell;
  decltype(Step::h) c;  // overwritten by the result, element by element
  PX_HD C operator()(int64_t entry, int64_t unit) const {
    const C old = c[cell.element(entry, unit)];
    const C in = cell.sigmoid(0, cell.peeped(cell.gate(0, entry, unit), 0, unit, old));
    const C forget =
        cell.forgets_as_input() ? C(1) - in : cell.sigmoid(0, cell.peeped(cell.gate(2, entry, unit), 2, unit, old));
    return forget * old + in * cell.tanh(1, cell.gate(3, entry, unit));
  }
};
template <class C, class Step>
struct LstmHidden {
  static constexpr int64_t kWork = 40;
  Step cell;
  decltype(Step::h) c;  // after the step
  PX_HD C operator()(int64_t entry, int64_t unit) const {
    const C state = c[cell.element(entry, unit)];
    const C out = cell.sigmoid(0, cell.peeped(cell.gate(1, entry, unit), 1, unit, state));
    return out * cell.tanh(2, state);
  }
};

}  // namespace parallax::runtime
