// What RNN, GRU and LSTM share: their inputs by direction, activation functions, and the walk over time.
#pragma once

#include <functional>
#include <vector>

#include "reference/op_context.h"
#include "reference/ops/numbers.h"
#include "reference/ops/scratch.h"

namespace parallax::reference {

// Replaces every number by its function.
using Activation = std::function<void(std::span<double>)>;

// Samples of one direction that go through time together.
struct Samples {
  int64_t direction = 0, first = 0, count = 0;
};

// One step of a block of samples.
struct Step {
  int64_t count = 0;               // how many went before
  std::span<const int64_t> times;  // the step of each sample; -1 for one that is at its end and keeps its state
};

// The gates [first, last) of a cell, in the order of their weights.
struct Gates {
  int64_t first = 0, last = 0;
  int64_t count() const { return last - first; }
};

// The sizes, inputs and options of one node. `gates` is 1, 3 or 4.
struct Recurrence {
  int64_t gates = 1;
  int64_t directions = 1, steps = 0, batch = 0, inputs = 0, hidden = 0;
  bool batch_first = false;  // layout = 1
  bool reverse_only = false;
  double clip = 0;  // 0: none
  std::vector<double> b, initial_h;
  Scratch<double> recurrent;     // R in panels of units: [directions, panels, hidden (of h), kPanelWidth]
  Scratch<double> projected;     // X W^T + Wb of every step: [directions, steps * batch in X's order, gates, hidden]
  std::vector<int64_t> lengths;  // of each sample
  std::vector<Activation> activations;  // of all directions, in order
  DType dtype = DType::float32;

  static Result<Recurrence> create(const OpContext& op, int64_t gates,
                                   const std::vector<std::string>& default_activations);

  // Room for the numbers of some gates of every sample.
  std::vector<double> rows(const Samples& samples, int64_t gate_count = 1) const {
    return std::vector<double>(static_cast<size_t>(samples.count * gate_count * hidden));
  }
  std::span<double> row(std::span<double> numbers, int64_t sample, int64_t gate_count = 1) const {
    return numbers.subspan(static_cast<size_t>(sample * gate_count * hidden), static_cast<size_t>(gate_count * hidden));
  }
  // x[step, sample] * W[gate]^T + its bias for every hidden unit of the gates.
  std::span<const double> input_sums(int64_t direction, Gates which, int64_t step, int64_t sample) const;
  // h * R[gate]^T + its bias for all samples: sums[sample, gate, unit].
  void hidden_sums(const Samples& samples, Gates which, const Step& step, std::span<const double> h,
                   std::span<double> sums) const;
  // The sum of the two for the samples that go on.
  void gate_sums(const Samples& samples, Gates which, const Step& step, std::span<const double> h,
                 std::span<double> sums) const;
  // function(values), once they are clipped.
  void activate(const Activation& function, std::span<double> values) const;

 private:
  // out[sample, gate, unit] = others[sample][gate, unit] + h * R[gate]^T + its bias, without what is null.
  void add_hidden(const Samples& samples, Gates which, const Step& step, std::span<const double> h,
                  std::span<const double* const> others, std::span<double> sums) const;
};

// All samples of a block going one step: h [count, hidden] (and whatever else the cell keeps) in place.
using CellStep = std::function<void(const Step& step, std::span<double> h)>;
using MakeCell = std::function<CellStep(const Samples& samples)>;

// Runs all directions over all steps and sets Y (output 0) and Y_h (output 1).
Status run_recurrence(OpContext& op, const Recurrence& plan, const MakeCell& make_cell);

// A [directions, batch, hidden] state as output `index`, with the layout asked.
Status set_state(OpContext& op, size_t index, const Recurrence& plan, const std::vector<double>& state);
// An initial state input in [directions, batch, hidden] order; zeros where it is absent.
Result<std::vector<double>> read_state(const OpContext& op, size_t index, const Recurrence& plan);

}  // namespace parallax::reference
