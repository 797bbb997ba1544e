// What RNN, GRU and LSTM share: their inputs by direction, activation functions, and the walk over time.
#pragma once

#include <functional>
#include <vector>

#include "reference/op_context.h"
#include "reference/ops/numbers.h"

namespace parallax::reference {

using Activation = std::function<double(double)>;

// The sizes, inputs and options of one node. `gates` is 1, 3 or 4.
struct Recurrence {
  int64_t gates = 1;
  int64_t directions = 1, steps = 0, batch = 0, inputs = 0, hidden = 0;
  bool batch_first = false;  // layout = 1
  bool reverse_only = false;
  double clip = 0;  // 0: none
  std::vector<double> b, initial_h;
  std::vector<double> recurrent;  // R with the units last: [directions, gates, hidden (of h), hidden]
  std::vector<double> projected;  // X W^T + Wb of every step: [directions, steps * batch in X's order, gates, hidden]
  std::vector<int64_t> lengths;   // of each sample
  std::vector<Activation> activations;  // of all directions, in order
  DType dtype = DType::float32;

  static Result<Recurrence> create(const OpContext& op, int64_t gates,
                                   const std::vector<std::string>& default_activations);

  size_t activations_per_direction() const { return activations.size() / static_cast<size_t>(directions); }
  double clipped(double value) const;
  // x[t, sample] * W[gate]^T + its bias, and h * R[gate]^T + its bias, for every hidden unit.
  std::span<const double> input_sums(int64_t direction, int64_t gate, int64_t step, int64_t sample) const;
  std::vector<double> hidden_sums(int64_t direction, int64_t gate, std::span<const double> h) const;
};

// One sample's state going one step: h (and whatever else the cell keeps) in place.
using CellStep = std::function<void(int64_t direction, int64_t sample, int64_t step, std::span<double> h)>;

// Runs all directions over all steps and sets Y (output 0) and Y_h (output 1).
Status run_recurrence(OpContext& op, const Recurrence& plan, const CellStep& step);

// A [directions, batch, hidden] state as output `index`, with the layout asked.
Status set_state(OpContext& op, size_t index, const Recurrence& plan, const std::vector<double>& state);
// An initial state input in [directions, batch, hidden] order; zeros where it is absent.
Result<std::vector<double>> read_state(const OpContext& op, size_t index, const Recurrence& plan);

}  // namespace parallax::reference
