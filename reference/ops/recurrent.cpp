// RNN, GRU, LSTM: the equations of their pages in the specification, one hidden unit at a time. States stay in double
// over the whole sequence; only the outputs are rounded.
#include "reference/ops/recurrent.h"

#include "reference/ops/ops.h"

namespace parallax::reference {
namespace {

// The unrounded values of one gate for all hidden units.
template <class Unit>
std::vector<double> gate_of(const Recurrence& plan, const Activation& function, const Unit& sum_of) {
  std::vector<double> values(static_cast<size_t>(plan.hidden));
  for (size_t unit = 0; unit < values.size(); ++unit) values[unit] = function(plan.clipped(sum_of(unit)));
  return values;
}

}  // namespace

// Ht = f(Xt W^T + Ht-1 R^T + Wb + Rb)
Status op_rnn(OpContext& op) {
  const Recurrence plan = PX_TRY(Recurrence::create(op, 1, {"Tanh"}));
  return run_recurrence(op, plan, [&](int64_t direction, int64_t sample, int64_t step, std::span<double> h) {
    const auto from_input = plan.input_sums(direction, 0, step, sample);
    const std::vector<double> from_hidden = plan.hidden_sums(direction, 0, h);
    const std::vector<double> next = gate_of(plan, plan.activations[static_cast<size_t>(direction)],
                                             [&](size_t unit) { return from_input[unit] + from_hidden[unit]; });
    std::copy(next.begin(), next.end(), h.begin());
  });
}

// Gates z, r, h. zt = f(..), rt = f(..); ht = g(Xt Wh^T + (rt . Ht-1) Rh^T + Rbh + Wbh), or with linear_before_reset
// g(Xt Wh^T + rt . (Ht-1 Rh^T + Rbh) + Wbh); Ht = (1 - zt) . ht + zt . Ht-1.
Status op_gru(OpContext& op) {
  const Recurrence plan = PX_TRY(Recurrence::create(op, 3, {"Sigmoid", "Tanh"}));
  const bool linear_before_reset = op.find_int("linear_before_reset").value_or(0) != 0;
  return run_recurrence(op, plan, [&](int64_t direction, int64_t sample, int64_t step, std::span<double> h) {
    const Activation* functions = &plan.activations[static_cast<size_t>(2 * direction)];
    const auto plain_gate = [&](int64_t gate) {
      const auto from_input = plan.input_sums(direction, gate, step, sample);
      const std::vector<double> from_hidden = plan.hidden_sums(direction, gate, h);
      return gate_of(plan, functions[0], [&](size_t unit) { return from_input[unit] + from_hidden[unit]; });
    };
    const std::vector<double> z = plain_gate(0);
    const std::vector<double> r = plain_gate(1);
    std::vector<double> reset(h.begin(), h.end());
    for (size_t unit = 0; unit < reset.size(); ++unit) reset[unit] *= r[unit];
    const auto from_input = plan.input_sums(direction, 2, step, sample);
    const std::vector<double> from_hidden = plan.hidden_sums(direction, 2, linear_before_reset ? h : reset);
    const std::vector<double> candidate = gate_of(plan, functions[1], [&](size_t unit) {
      return from_input[unit] + (linear_before_reset ? r[unit] * from_hidden[unit] : from_hidden[unit]);
    });
    for (size_t unit = 0; unit < h.size(); ++unit) h[unit] = (1 - z[unit]) * candidate[unit] + z[unit] * h[unit];
  });
}

// Gates i, o, f, c with peepholes P for i, o, f. it = f(.. + Pi . Ct-1), ft = f(.. + Pf . Ct-1), ct = g(..),
// Ct = ft . Ct-1 + it . ct, ot = f(.. + Po . Ct), Ht = ot . h(Ct). With input_forget, ft = 1 - it.
Status op_lstm(OpContext& op) {
  const Recurrence plan = PX_TRY(Recurrence::create(op, 4, {"Sigmoid", "Tanh", "Tanh"}));
  const bool input_forget = op.find_int("input_forget").value_or(0) != 0;
  std::vector<double> cells = PX_TRY(read_state(op, 6, plan));
  std::vector<double> peepholes(static_cast<size_t>(plan.directions * 3 * plan.hidden), 0.0);
  if (op.has_input(7)) {
    if (op.input(7).element_count() != static_cast<int64_t>(peepholes.size()))
      return execution_error("P must be [directions, 3 * hidden_size]");
    load<double>(op.input(7), 0, peepholes);
  }
  PX_TRY(run_recurrence(op, plan, [&](int64_t direction, int64_t sample, int64_t step, std::span<double> h) {
    const Activation* functions = &plan.activations[static_cast<size_t>(3 * direction)];
    double* cell = cells.data() + (direction * plan.batch + sample) * plan.hidden;
    // `peephole` is the place of the gate in P, -1 for none; it looks at the cell as it is when the gate is computed.
    const auto gate = [&](int64_t index, int64_t peephole, const Activation& function) {
      const auto from_input = plan.input_sums(direction, index, step, sample);
      const std::vector<double> from_hidden = plan.hidden_sums(direction, index, h);
      const double* weights = peephole < 0 ? nullptr : peepholes.data() + (direction * 3 + peephole) * plan.hidden;
      return gate_of(plan, function, [&](size_t unit) {
        const double sum = from_input[unit] + from_hidden[unit];
        return weights == nullptr ? sum : sum + weights[unit] * cell[unit];
      });
    };
    const std::vector<double> i = gate(0, 0, functions[0]);
    std::vector<double> f = gate(2, 2, functions[0]);
    const std::vector<double> c = gate(3, -1, functions[1]);
    for (size_t unit = 0; input_forget && unit < f.size(); ++unit) f[unit] = 1 - i[unit];
    for (size_t unit = 0; unit < f.size(); ++unit) cell[unit] = f[unit] * cell[unit] + i[unit] * c[unit];
    const std::vector<double> o = gate(1, 1, functions[0]);
    for (size_t unit = 0; unit < o.size(); ++unit) h[unit] = o[unit] * functions[2](plan.clipped(cell[unit]));
  }));
  return set_state(op, 2, plan, cells);
}

}  // namespace parallax::reference
