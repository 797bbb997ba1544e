// The cells of RNN, GRU and LSTM: what one step makes of its gates, an element at a time. Gate order and formulas as in
// the specification.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "runtime/device/elements.h"
#include "runtime/device/math.h"
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
        return std::log1p(math::exp(-std::fabs(x))) + (x > C(0) ? x : C(0));
    }
    return x;
  }
};

// The node's activations, `per_direction` for each of its directions, with the defaults of the operator. Errors:
// execution.
Result<std::vector<CellActivation>> cell_activations(const OpCall& op, const std::vector<std::string>& defaults,
                                                     int64_t directions);

// One direction's parameters, and one step of it: element i of batch entry b is number b * hidden + i. Where a sequence
// has ended the states stay as they are.
template <class Device, class C>
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

  PX_HD bool has_ended(int64_t element) const { return step >= lengths[element / hidden]; }
  PX_HD C clipped(C value) const { return clip > C(0) ? math::minimum(math::maximum(value, -clip), clip) : value; }
  PX_HD C from_input(int64_t gate, int64_t element) const {
    const int64_t entry = element / hidden;
    const int64_t at = gate * hidden + element % hidden;
    const int64_t time = reversed ? lengths[entry] - 1 - step : step;
    return x_gates[(time * batch + entry) * gates * hidden + at] + (input_bias ? input_bias[at] : C(0));
  }
  PX_HD C from_state(int64_t gate, int64_t element) const {
    const int64_t at = gate * hidden + element % hidden;
    return h_gates[element / hidden * gates * hidden + at] + (recurrent_bias ? recurrent_bias[at] : C(0));
  }
  PX_HD C gate(int64_t number, int64_t element) const {
    return from_input(number, element) + from_state(number, element);
  }
};

// h = f(x W^T + h R^T + b)
template <class Device, class C>
struct RnnHidden {
  static constexpr int64_t kWork = 20;
  CellStep<Device, C> cell;
  PX_HD C operator()(int64_t element) const {
    if (cell.has_ended(element)) return cell.h[element];
    return cell.activations[0](cell.clipped(cell.gate(0, element)));
  }
};

// GRU's gates are z, r, h. What is multiplied with the hidden gate's R, unless it has been already.
template <class Device, class C>
struct GruResetState {
  static constexpr int64_t kWork = 20;
  CellStep<Device, C> cell;
  PX_HD C operator()(int64_t element) const {
    if (cell.has_ended(element)) return C(0);
    return cell.activations[0](cell.clipped(cell.gate(1, element))) * cell.h[element];
  }
};
template <class Device, class C>
struct GruHidden {
  static constexpr int64_t kWork = 40;
  CellStep<Device, C> cell;
  PX_HD C operator()(int64_t element) const {
    if (cell.has_ended(element)) return cell.h[element];
    const C update = cell.activations[0](cell.clipped(cell.gate(0, element)));
    C from_h;
    if (cell.linear_before_reset) {
      from_h = cell.activations[0](cell.clipped(cell.gate(1, element))) * cell.from_state(2, element);
    } else {
      const int64_t at = 2 * cell.hidden + element % cell.hidden;
      from_h = cell.product_h[element] + (cell.recurrent_bias ? cell.recurrent_bias[at] : C(0));
    }
    const C candidate = cell.activations[1](cell.clipped(cell.from_input(2, element) + from_h));
    return (C(1) - update) * candidate + update * cell.h[element];
  }
};

// LSTM's gates are i, o, f, c; the peepholes' order is i, o, f.
template <class Device, class C>
PX_HD C peephole(const CellStep<Device, C>& cell, int64_t number, int64_t element, C state) {
  return cell.peepholes ? cell.peepholes[number * cell.hidden + element % cell.hidden] * state : C(0);
}
template <class Device, class C>
struct LstmState {
  static constexpr int64_t kWork = 60;
  CellStep<Device, C> cell;
  Elements<Device, const C> c;  // overwritten by the result, element by element
  PX_HD C operator()(int64_t element) const {
    const C old = c[element];
    if (cell.has_ended(element)) return old;
    const C in = cell.activations[0](cell.clipped(cell.gate(0, element) + peephole(cell, 0, element, old)));
    const C forget = cell.input_forget
                         ? C(1) - in
                         : cell.activations[0](cell.clipped(cell.gate(2, element) + peephole(cell, 2, element, old)));
    return forget * old + in * cell.activations[1](cell.clipped(cell.gate(3, element)));
  }
};
template <class Device, class C>
struct LstmHidden {
  static constexpr int64_t kWork = 40;
  CellStep<Device, C> cell;
  Elements<Device, const C> c;  // after the step
  PX_HD C operator()(int64_t element) const {
    if (cell.has_ended(element)) return cell.h[element];
    const C out = cell.activations[0](cell.clipped(cell.gate(1, element) + peephole(cell, 1, element, c[element])));
    return out * cell.activations[2](cell.clipped(c[element]));
  }
};

}  // namespace parallax::runtime
