// RNN, GRU, LSTM: the equations of their pages in the specification, one hidden unit at a time. States stay in double
// over the whole sequence; only the outputs are rounded.
#include "reference/ops/recurrent.h"

#include "reference/ops/ops.h"
#include "reference/ops/widest.h"

namespace parallax::reference {
namespace {

// Calls each(sample, time) for the samples of a block that have not reached their end.
template <class Each>
void for_going(const Step& step, const Each& each) {
  for (size_t index = 0; index < step.times.size(); ++index) {
    if (step.times[index] >= 0) each(static_cast<int64_t>(index), step.times[index]);
  }
}

}  // namespace

// Ht = f(Xt W^T + Ht-1 R^T + Wb + Rb)
Status op_rnn(OpContext& op) {
  const Recurrence plan = PX_TRY(Recurrence::create(op, 1, {"Tanh"}));
  return run_recurrence(op, plan, [&](const Samples& samples) -> CellStep {
    const Activation& function = plan.activations[static_cast<size_t>(samples.direction)];
    return [&, samples, sums = plan.rows(samples)](const Step& step, std::span<double> h) mutable {
      plan.gate_sums(samples, {0, 1}, step, h, sums);
      for_going(step, [&](int64_t sample, int64_t) {
        const auto next = plan.row(sums, sample);
        plan.activate(function, next);
        std::copy(next.begin(), next.end(), plan.row(h, sample).begin());
      });
    };
  });
}

// Gates z, r, h. zt = f(..), rt = f(..); ht = g(Xt Wh^T + (rt . Ht-1) Rh^T + Rbh + Wbh), or with linear_before_reset
// g(Xt Wh^T + rt . (Ht-1 Rh^T + Rbh) + Wbh); Ht = (1 - zt) . ht + zt . Ht-1.
Status op_gru(OpContext& op) {
  const Recurrence plan = PX_TRY(Recurrence::create(op, 3, {"Sigmoid", "Tanh"}));
  const bool linear_before_reset = op.find_int("linear_before_reset").value_or(0) != 0;
  static constexpr Gates kUpdateAndReset{0, 2}, kCandidate{2, 3};
  return run_recurrence(op, plan, [&, linear_before_reset](const Samples& samples) -> CellStep {
    const Activation* functions = &plan.activations[static_cast<size_t>(2 * samples.direction)];
    return [&plan, functions, linear_before_reset, samples, zr = plan.rows(samples, 2), reset = plan.rows(samples),
            candidates = plan.rows(samples)](const Step& step, std::span<double> h) mutable {
      const auto units = static_cast<size_t>(plan.hidden);
      plan.gate_sums(samples, kUpdateAndReset, step, h, zr);
      std::copy(h.begin(), h.end(), reset.begin());
      for_going(step, [&](int64_t sample, int64_t) {
        const auto gates = plan.row(zr, sample, 2);
        plan.activate(functions[0], gates);
        const auto own = plan.row(reset, sample);
        for (size_t unit = 0; !linear_before_reset && unit < units; ++unit) own[unit] = gates[units + unit] * own[unit];
      });
      plan.hidden_sums(samples, kCandidate, step, reset, candidates);
      for_going(step, [&](int64_t sample, int64_t time) {
        const auto z = plan.row(zr, sample, 2).first(units), r = plan.row(zr, sample, 2).last(units);
        const auto candidate = plan.row(candidates, sample), state = plan.row(h, sample);
        const auto from_input = plan.input_sums(samples.direction, kCandidate, time, samples.first + sample);
        for (size_t unit = 0; unit < units; ++unit)
          candidate[unit] = from_input[unit] + (linear_before_reset ? r[unit] * candidate[unit] : candidate[unit]);
        plan.activate(functions[1], candidate);
        for (size_t unit = 0; unit < units; ++unit)
          state[unit] = (1 - z[unit]) * candidate[unit] + z[unit] * state[unit];
      });
    };
  });
}

namespace {

// values[i] += weights[i] * cell[i].
PX_WIDEST void add_peephole(std::span<const double> weights, std::span<const double> cell, std::span<double> values) {
  for (size_t unit = 0; unit < values.size(); ++unit) values[unit] += weights[unit] * cell[unit];
}

// Ct = ft . Ct-1 + it . ct, also into h.
PX_WIDEST void update_cell(std::span<const double> f, std::span<const double> i, std::span<const double> c,
                           std::span<double> cell, std::span<double> h) {
  for (size_t unit = 0; unit < cell.size(); ++unit) h[unit] = cell[unit] = f[unit] * cell[unit] + i[unit] * c[unit];
}

PX_WIDEST void scale(std::span<const double> factors, std::span<double> values) {
  for (size_t unit = 0; unit < values.size(); ++unit) values[unit] *= factors[unit];
}

// Some samples of one direction. `peepholes` is empty or [3, hidden] for i, o, f; `cells` is [count, hidden].
class LstmCell {
 public:
  LstmCell(const Recurrence& plan, const Samples& samples, bool input_forget, std::span<const double> peepholes,
           std::span<double> cells)
      : plan_(plan),
        functions_(&plan.activations[static_cast<size_t>(3 * samples.direction)]),
        samples_(samples),
        input_forget_(input_forget),
        peepholes_(peepholes),
        cells_(cells) {}

  void operator()(const Step& step, std::span<double> h) {
    plan_.gate_sums(samples_, kAll, step, h, sums_);
    for_going(step, [&](int64_t sample, int64_t) {
      update(plan_.row(sums_, sample, kAll.count()), plan_.row(cells_, sample), plan_.row(h, sample));
    });
  }

 private:
  static constexpr Gates kAll{0, 4};

  // From the sums of the gates i, o, f, c.
  void update(std::span<double> gates, std::span<double> cell, std::span<double> h) const {
    const auto i = plan_.row(gates, 0), o = plan_.row(gates, 1), f = plan_.row(gates, 2), c = plan_.row(gates, 3);
    if (peepholes_.empty()) {
      plan_.activate(functions_[0], gates.first(3 * i.size()));  // i, o and f
    } else {
      add_peephole(peephole(0), cell, i);
      add_peephole(peephole(2), cell, f);
      plan_.activate(functions_[0], i);
      plan_.activate(functions_[0], f);
    }
    plan_.activate(functions_[1], c);
    for (size_t unit = 0; input_forget_ && unit < f.size(); ++unit) f[unit] = 1 - i[unit];
    update_cell(f, i, c, cell, h);
    if (!peepholes_.empty()) {  // that of o looks at the new cell
      add_peephole(peephole(1), cell, o);
      plan_.activate(functions_[0], o);
    }
    plan_.activate(functions_[2], h);
    scale(o, h);
  }

  std::span<const double> peephole(size_t gate) const {
    const auto units = static_cast<size_t>(plan_.hidden);
    return peepholes_.subspan(gate * units, units);
  }

  const Recurrence& plan_;
  const Activation* functions_;
  Samples samples_;
  bool input_forget_;
  std::span<const double> peepholes_;
  std::span<double> cells_;
  std::vector<double> sums_ = plan_.rows(samples_, kAll.count());
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
  PX_TRY(run_recurrence(op, plan, [&](const Samples& samples) -> CellStep {
    const int64_t first = (samples.direction * plan.batch + samples.first) * plan.hidden;
    const auto own =
        std::span(cells).subspan(static_cast<size_t>(first), static_cast<size_t>(samples.count * plan.hidden));
    std::span<const double> weights = peepholes;
    if (!weights.empty()) {
      const auto count = static_cast<size_t>(3 * plan.hidden);
      weights = weights.subspan(static_cast<size_t>(samples.direction) * count, count);
    }
    return LstmCell(plan, samples, input_forget, weights, own);
  }));
  return set_state(op, 2, plan, cells);
}

}  // namespace parallax::reference
