// What RNN, GRU and LSTM share: their inputs by direction, activation functions, and the walk over time.
#pragma once

#include <functional>
#include <vector>

#include "reference/op_context.h"
#include "reference/ops/numbers.h"

namespace parallax::reference {

// Replaces every number by its function.
using Activation = std::function<void(std::span<double>)>;

// The sizes, inputs and options of one node. `gates` is 1, 3 or 4.
struct Recurrence {
  int64_t gates = 1;
  int64_t directions = 1, steps = 0, batch = 0, inputs = 0, hidden = 0;
  bool batch_first = false;  // layout = 1
  bool reverse_only = false;
  double clip = 0;  // 0: none
  std::vector<double> b, initial_h;
  std::vector<double> recurrent;  // R in panels of units: [directions, gates, panels, hidden (of h), kPanelWidth]
  std::vector<double> projected;  // X W^T + Wb of every step: [directions, steps * batch in X's order, gates, hidden]
  std::vector<int64_t> lengths;   // of each sample
  std::vector<Activation> activations;  // of all directions, in order
  DType dtype = DType::float32;

  static Result<Recurrence> create(const OpContext& op, int64_t gates,
                                   const std::vector<std::string>& default_activations);

  // Room for one number of every hidden unit.
  std::vector<double> unit_row() const { return std::vector<double>(static_cast<size_t>(hidden)); }
  // x[t, sample] * W[gate]^T + its bias, and h * R[gate]^T + its bias, for every hidden unit.
  std::span<const double> input_sums(int64_t direction, int64_t gate, int64_t step, int64_t sample) const;
  void hidden_sums(int64_t direction, int64_t gate, std::span<const double> h, std::span<double> sums) const;
  // The sum of the two.
  void gate_sums(int64_t direction, int64_t gate, int64_t step, int64_t sample, std::span<const double> h,
                 std::span<double> sums) const;
  // function(values), once they are clipped.
  void activate(const Activation& function, std::span<double> values) const;
};

// One sample going one step in one direction: h (and whatever else the cell keeps) in place.
using CellStep = std::function<void(int64_t step, std::span<double> h)>;
using MakeCell = std::function<CellStep(int64_t direction, int64_t sample)>;

// Runs all directions over all steps and sets Y (output 0) and Y_h (output 1).
Status run_recurrence(OpContext& op, const Recurrence& plan, const MakeCell& make_cell);

// A [directions, batch, hidden] state as output `index`, with the layout asked.
Status set_state(OpContext& op, size_t index, const Recurrence& plan, const std::vector<double>& state);
// An initial state input in [directions, batch, hidden] order; zeros where it is absent.
Result<std::vector<double>> read_state(const OpContext& op, size_t index, const Recurrence& plan);

}  // namespace parallax::reference
