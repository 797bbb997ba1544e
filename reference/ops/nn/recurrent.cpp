// SPDX-License-Identifier: Apache-2.0
// RNN, GRU, LSTM: the equations of their pages in the specification, one hidden unit at a time. States stay in double
// over the whole sequence; only the outputs are rounded.
#include "reference/ops/nn/recurrent.h"

#include <algorithm>
#include <memory>

#include "inspector/model/rule_errors.h"
#include "reference/kernels/lanes.h"
#include "reference/ops/families.h"

namespace parallax::reference {
namespace {

// Calls each(sample, time) for the samples of a share that have not reached their end.
template <class Each>
void for_going(const Step& step, const Each& each) {
  for (size_t index = 0; index < step.times.size(); ++index) {
    if (step.times[index] >= 0) each(static_cast<int64_t>(index), step.times[index]);
  }
}

// Ht = f(Xt W^T + Ht-1 R^T + Wb + Rb)
Status op_rnn(OpContext& op) {
  const Recurrence plan = PX_TRY(Recurrence::create(op, 1, {"Tanh"}));
  return run_recurrence(op, plan, [&](const Share& share) -> CellStep {
    const Activation& function = plan.activations[static_cast<size_t>(share.direction)];
    return {[&, share, sums = share.rows()](const Step& step, std::span<const double> before,
                                            std::span<double> after) mutable {
      plan.gate_sums(share, {0, 1}, step, before, sums);
      for_going(step, [&](int64_t sample, int64_t) {
        const auto next = share.row(sums, sample);
        plan.activate(function, next);
        std::ranges::copy(next, plan.units_of(share, after, sample).begin());
      });
    }};
  });
}

// Some samples of one direction. `resets` is theirs, [count, hidden], and serves all units' shares.
class GruCell {
 public:
  GruCell(const Recurrence& plan, const Share& share, bool linear_before_reset, std::span<double> resets)
      : plan_(plan),
        functions_(&plan.activations[static_cast<size_t>(2 * share.direction)]),
        share_(share),
        linear_before_reset_(linear_before_reset),
        resets_(resets) {}

  // zt and rt, and rt . Ht-1, of which the candidates take all units.
  void update_and_reset(const Step& step, std::span<const double> before) {
    plan_.gate_sums(share_, kUpdateAndReset, step, before, zr_);
    for_going(step, [&](int64_t sample, int64_t) {
      plan_.activate(functions_[0], share_.row(zr_, sample, 2));
      const auto r = share_.row(share_.row(zr_, sample, 2), 1), own = plan_.units_of(share_, resets_, sample);
      const auto state = plan_.units_of(share_, before, sample);
      for (size_t unit = 0; unit < own.size(); ++unit) own[unit] = r[unit] * state[unit];
    });
  }

  void candidate(const Step& step, std::span<const double> before, std::span<double> after) {
    plan_.hidden_sums(share_, kCandidate, step, linear_before_reset_ ? before : resets_, candidates_);
    for_going(step, [&](int64_t sample, int64_t time) { update(sample, time, before, after); });
  }

 private:
  static constexpr Gates kUpdateAndReset{0, 2}, kCandidate{2, 3};

  void update(int64_t sample, int64_t time, std::span<const double> before, std::span<double> after) {
    const auto gates = share_.row(zr_, sample, 2), z = share_.row(gates, 0), r = share_.row(gates, 1);
    const auto candidate = share_.row(candidates_, sample);
    const auto from_input = plan_.input_sums(share_, kCandidate.first, time, sample);
    for (size_t unit = 0; unit < candidate.size(); ++unit)
      candidate[unit] = from_input[unit] + (linear_before_reset_ ? r[unit] * candidate[unit] : candidate[unit]);
    plan_.activate(functions_[1], candidate);
    const auto old = plan_.units_of(share_, before, sample);
    const auto state = plan_.units_of(share_, after, sample);
    for (size_t unit = 0; unit < state.size(); ++unit)
      state[unit] = (1 - z[unit]) * candidate[unit] + z[unit] * old[unit];
  }

  const Recurrence& plan_;
  const Activation* functions_;
  Share share_;
  bool linear_before_reset_;
  std::span<double> resets_;
  std::vector<double> zr_ = share_.rows(2), candidates_ = share_.rows();
};

// Gates z, r, h. zt = f(..), rt = f(..); ht = g(Xt Wh^T + (rt . Ht-1) Rh^T + Rbh + Wbh), or with linear_before_reset
// g(Xt Wh^T + rt . (Ht-1 Rh^T + Rbh) + Wbh); Ht = (1 - zt) . ht + zt . Ht-1.
Status op_gru(OpContext& op) {
  const Recurrence plan = PX_TRY(Recurrence::create(op, 3, {"Sigmoid", "Tanh"}));
  const bool linear_before_reset = op.find_int("linear_before_reset").value_or(0) != 0;
  std::vector<double> resets(plan.initial_h.size(), 0.0);
  return run_recurrence(op, plan, [&](const Share& share) -> CellStep {
    const auto cell = std::make_shared<GruCell>(plan, share, linear_before_reset, plan.states_of(share, resets));
    return {[=](const Step& step, auto before, auto) { cell->update_and_reset(step, before); },
            [=](const Step& step, auto before, auto after) { cell->candidate(step, before, after); }};
  });
}

// values[i] += weights[i] * cell[i].
void add_peephole(std::span<const double> weights, std::span<const double> cell, std::span<double> values) {
  with_widest_vectors([&](auto) PX_INLINE {
    for (size_t unit = 0; unit < values.size(); ++unit) values[unit] += weights[unit] * cell[unit];
  });
}

// Ct = ft . Ct-1 + it . ct, also into h.
void update_cell(std::span<const double> f, std::span<const double> i, std::span<const double> c,
                 std::span<double> cell, std::span<double> h) {
  with_widest_vectors([&](auto) PX_INLINE {
    for (size_t unit = 0; unit < cell.size(); ++unit) h[unit] = cell[unit] = f[unit] * cell[unit] + i[unit] * c[unit];
  });
}

void scale(std::span<const double> factors, std::span<double> values) {
  with_widest_vectors([&](auto) PX_INLINE {
    for (size_t unit = 0; unit < values.size(); ++unit) values[unit] *= factors[unit];
  });
}

// Some units of some samples of one direction. `peepholes` is empty or [3, hidden] for i, o, f; `cells` is the
// samples', [count, hidden].
class LstmCell {
 public:
  LstmCell(const Recurrence& plan, const Share& share, bool input_forget, std::span<const double> peepholes,
           std::span<double> cells)
      : plan_(plan),
        functions_(&plan.activations[static_cast<size_t>(3 * share.direction)]),
        share_(share),
        input_forget_(input_forget),
        peepholes_(peepholes),
        cells_(cells) {}

  void operator()(const Step& step, std::span<const double> before, std::span<double> after) {
    plan_.gate_sums(share_, kAll, step, before, sums_);
    for_going(step, [&](int64_t sample, int64_t) {
      update(share_.row(sums_, sample, kAll.count()), plan_.units_of(share_, cells_, sample),
             plan_.units_of(share_, after, sample));
    });
  }

 private:
  static constexpr Gates kAll{0, 4};

  // From the sums of the gates i, o, f, c.
  void update(std::span<double> gates, std::span<double> cell, std::span<double> h) const {
    const auto i = share_.row(gates, 0), o = share_.row(gates, 1), f = share_.row(gates, 2), c = share_.row(gates, 3);
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

  std::span<const double> peephole(int64_t gate) const { return plan_.units_of(share_, peepholes_, gate); }

  const Recurrence& plan_;
  const Activation* functions_;
  Share share_;
  bool input_forget_;
  std::span<const double> peepholes_;
  std::span<double> cells_;
  std::vector<double> sums_ = share_.rows(kAll.count());
};

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
      return wrong_input(op, 7, "be [{},{}]", plan.directions, 3 * plan.hidden);
    load<double>(op.input(7), 0, peepholes);
  }
  PX_TRY(run_recurrence(op, plan, [&](const Share& share) -> CellStep {
    std::span<const double> weights = peepholes;
    if (!weights.empty()) {
      const auto count = static_cast<size_t>(3 * plan.hidden);
      weights = weights.subspan(static_cast<size_t>(share.direction) * count, count);
    }
    return {LstmCell(plan, share, input_forget, weights, plan.states_of(share, cells))};
  }));
  return set_state(op, 2, plan, cells);
}

constexpr OpRow kRecurrentRows[] = {
    {"GRU", kOnnx, 1, 22, op_gru},
    {"LSTM", kOnnx, 1, 22, op_lstm},
    {"RNN", kOnnx, 1, 22, op_rnn},
};

}  // namespace

OpRows recurrent_rows() { return kRecurrentRows; }

}  // namespace parallax::reference
