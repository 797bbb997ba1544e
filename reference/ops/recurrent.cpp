// RNN, GRU, LSTM: the equations of their pages in the specification, one hidden unit at a time. States stay in double
// over the whole sequence; only the outputs are rounded.
#include "reference/ops/recurrent.h"

#include "reference/ops/ops.h"

namespace parallax::reference {
// Ht = f(Xt W^T + Ht-1 R^T + Wb + Rb)
Status op_rnn(OpContext& op) {
  const Recurrence plan = PX_TRY(Recurrence::create(op, 1, {"Tanh"}));
  return run_recurrence(op, plan, [&](int64_t direction, int64_t sample) -> CellStep {
    return [&, direction, sample, next = plan.unit_row()](int64_t step, std::span<double> h) mutable {
      plan.gate_sums(direction, 0, step, sample, h, next);
      plan.activate(plan.activations[static_cast<size_t>(direction)], next);
      std::copy(next.begin(), next.end(), h.begin());
    };
  });
}

// Gates z, r, h. zt = f(..), rt = f(..); ht = g(Xt Wh^T + (rt . Ht-1) Rh^T + Rbh + Wbh), or with linear_before_reset
// g(Xt Wh^T + rt . (Ht-1 Rh^T + Rbh) + Wbh); Ht = (1 - zt) . ht + zt . Ht-1.
Status op_gru(OpContext& op) {
  const Recurrence plan = PX_TRY(Recurrence::create(op, 3, {"Sigmoid", "Tanh"}));
  const bool linear_before_reset = op.find_int("linear_before_reset").value_or(0) != 0;
  return run_recurrence(op, plan, [&, linear_before_reset](int64_t direction, int64_t sample) -> CellStep {
    const Activation* functions = &plan.activations[static_cast<size_t>(2 * direction)];
    return [&plan, functions, linear_before_reset, direction, sample, z = plan.unit_row(), r = plan.unit_row(),
            reset = plan.unit_row(), candidate = plan.unit_row()](int64_t step, std::span<double> h) mutable {
      plan.gate_sums(direction, 0, step, sample, h, z);
      plan.activate(functions[0], z);
      plan.gate_sums(direction, 1, step, sample, h, r);
      plan.activate(functions[0], r);
      for (size_t unit = 0; unit < h.size(); ++unit) reset[unit] = r[unit] * h[unit];
      const auto from_input = plan.input_sums(direction, 2, step, sample);
      plan.hidden_sums(direction, 2, linear_before_reset ? std::span<const double>(h) : reset, candidate);
      for (size_t unit = 0; unit < h.size(); ++unit)
        candidate[unit] = from_input[unit] + (linear_before_reset ? r[unit] * candidate[unit] : candidate[unit]);
      plan.activate(functions[1], candidate);
      for (size_t unit = 0; unit < h.size(); ++unit) h[unit] = (1 - z[unit]) * candidate[unit] + z[unit] * h[unit];
    };
  });
}

namespace {

// One direction of one sample. The rows are kept from step to step only to spare their allocation.
class LstmCell {
 public:
  LstmCell(const Recurrence& plan, int64_t direction, int64_t sample, bool input_forget, const double* peepholes,
           double* cell)
      : plan_(plan),
        functions_(&plan.activations[static_cast<size_t>(3 * direction)]),
        direction_(direction),
        sample_(sample),
        input_forget_(input_forget),
        peepholes_(peepholes),
        cell_(cell, static_cast<size_t>(plan.hidden)) {}

  void operator()(int64_t step, std::span<double> h) {
    gate(0, 0, functions_[0], step, h, i_);
    gate(2, 2, functions_[0], step, h, f_);
    gate(3, -1, functions_[1], step, h, c_);
    for (size_t unit = 0; input_forget_ && unit < h.size(); ++unit) f_[unit] = 1 - i_[unit];
    for (size_t unit = 0; unit < h.size(); ++unit) cell_[unit] = f_[unit] * cell_[unit] + i_[unit] * c_[unit];
    gate(1, 1, functions_[0], step, h, o_);
    std::copy(cell_.begin(), cell_.end(), h.begin());
    plan_.activate(functions_[2], h);
    for (size_t unit = 0; unit < h.size(); ++unit) h[unit] *= o_[unit];
  }

 private:
  // `peephole` is the place of the gate in P, -1 for none; it looks at the cell as it is when the gate is computed.
  void gate(int64_t index, int64_t peephole, const Activation& function, int64_t step, std::span<const double> h,
            std::vector<double>& values) const {
    plan_.gate_sums(direction_, index, step, sample_, h, values);
    if (peepholes_ != nullptr && peephole >= 0) {
      const double* weights = peepholes_ + (direction_ * 3 + peephole) * plan_.hidden;
      for (size_t unit = 0; unit < values.size(); ++unit) values[unit] += weights[unit] * cell_[unit];
    }
    plan_.activate(function, values);
  }

  const Recurrence& plan_;
  const Activation* functions_;
  int64_t direction_, sample_;
  bool input_forget_;
  const double* peepholes_;
  std::span<double> cell_;
  std::vector<double> i_ = plan_.unit_row(), f_ = plan_.unit_row(), c_ = plan_.unit_row(), o_ = plan_.unit_row();
};

}  // namespace

// Gates i, o, f, c with peepholes P for i, o, f. it = f(.. + Pi . Ct-1), ft = f(.. + Pf . Ct-1), ct = g(..),
// Ct = ft . Ct-1 + it . ct, ot = f(.. + Po . Ct), Ht = ot . h(Ct). With input_forget, ft = 1 - it.
Status op_lstm(OpContext& op) {
  const Recurrence plan = PX_TRY(Recurrence::create(op, 4, {"Sigmoid", "Tanh", "Tanh"}));
  const bool input_forget = op.find_int("input_forget").value_or(0) != 0;
  std::vector<double> cells = PX_TRY(read_state(op, 6, plan));
  std::vector<double> peepholes;
  if (op.has_input(7)) {
    peepholes.resize(static_cast<size_t>(plan.directions * 3 * plan.hidden));
    if (op.input(7).element_count() != static_cast<int64_t>(peepholes.size()))
      return execution_error("P must be [directions, 3 * hidden_size]");
    load<double>(op.input(7), 0, peepholes);
  }
  PX_TRY(run_recurrence(op, plan, [&](int64_t direction, int64_t sample) -> CellStep {
    double* cell = cells.data() + (direction * plan.batch + sample) * plan.hidden;
    return LstmCell(plan, direction, sample, input_forget, peepholes.empty() ? nullptr : peepholes.data(), cell);
  }));
  return set_state(op, 2, plan, cells);
}

}  // namespace parallax::reference
