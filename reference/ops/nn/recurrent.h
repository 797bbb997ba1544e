// SPDX-License-Identifier: Apache-2.0
// Parts that RNN, GRU and LSTM share: their inputs by direction, activation functions, and the walk over time.
#pragma once

#include <functional>
#include <vector>

#include "reference/kernels/numbers.h"
#include "reference/kernels/scratch.h"
#include "reference/ops/op_context.h"

namespace parallax::reference {

// Replaces every number by its function.
using Activation = std::function<void(std::span<double>)>;

// Some hidden units of some samples of a direction, which go through time together.
struct Share {
  int64_t direction = 0;
  int64_t first = 0, count = 0;       // samples
  int64_t first_unit = 0, units = 0;  // of the hidden ones

  // Room for the numbers of some gates: [count, gates, units].
  std::vector<double> rows(int64_t gates = 1) const {
    return std::vector<double>(static_cast<size_t>(count * gates * units));
  }
  // The numbers of sample `index` of the share, or of one gate of a sample.
  std::span<double> row(std::span<double> numbers, int64_t index, int64_t gates = 1) const {
    return numbers.subspan(static_cast<size_t>(index * gates * units), static_cast<size_t>(gates * units));
  }
};

// One step of the samples of a share.
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
  // The partition of each direction's hidden units: the number of shares, and the units of each but the last.
  int64_t shares = 1, share_units = 0;
  std::vector<double> b, initial_h;
  Scratch<double> recurrent;  // R in panels of units: [directions, shares, gates, panels, hidden (of h), kPanelWidth]
  Scratch<double> projected;  // X W^T + Wb: [directions, shares, steps * batch in X's order, gates, units of a share]
  std::vector<int64_t> lengths;         // of each sample
  std::vector<Activation> activations;  // of all directions, in order
  DType dtype = DType::float32;

  static Result<Recurrence> create(const OpContext& op, int64_t gates,
                                   const std::vector<std::string>& default_activations);

  // Some samples' share of the units.
  Share share_of(int64_t direction, int64_t share, int64_t first_sample, int64_t sample_count) const;

  // The samples' part [count, hidden] of a state [directions, batch, hidden].
  std::span<double> states_of(const Share& share, std::span<double> states) const {
    return states.subspan(static_cast<size_t>((share.direction * batch + share.first) * hidden),
                          static_cast<size_t>(share.count * hidden));
  }
  // The share's units of sample `index` in such a part.
  template <class T>
  std::span<T> units_of(const Share& share, std::span<T> states, int64_t index) const {
    return states.subspan(static_cast<size_t>(index * hidden + share.first_unit), static_cast<size_t>(share.units));
  }
  // x[step] * W[gate]^T + its bias for one of the share's samples and all of its units; the next gate's follow.
  std::span<const double> input_sums(const Share& share, int64_t gate, int64_t step, int64_t sample) const;
  // h * R[gate]^T + its bias: sums[sample, gate, unit of the share].
  void hidden_sums(const Share& share, Gates which, const Step& step, std::span<const double> h,
                   std::span<double> sums) const;
  // The sum of the two for the samples that go on.
  void gate_sums(const Share& share, Gates which, const Step& step, std::span<const double> h,
                 std::span<double> sums) const;
  // function(values), once they are clipped.
  void activate(const Activation& function, std::span<double> values) const;

 private:
  void lay_out(const Tensor& x, const Tensor& w, const Tensor& r);
  void lay_out_recurrent(const Share& share, const Tensor& r);
  void project(const Share& share, const Tensor& x, const Tensor& w);
  // A panel of a gate of the share.
  int64_t panel_offset(const Share& share, int64_t gate, int64_t first_unit) const;
  // sums[sample, gate, unit] = others[sample][gate, unit] + h * R[gate]^T + its bias, without what is null.
  void add_hidden(const Share& share, Gates which, const Step& step, std::span<const double> h,
                  std::span<const double* const> others, std::span<double> sums) const;
};

// A part of what a step does for a share. All shares of a sample's units are through with one part before the next
// begins; the last one gives the share's units of h `after` (and whatever else the cell keeps) for the samples that go
// on, from all units `before`. Both are [count, hidden].
using CellPart = std::function<void(const Step& step, std::span<const double> before, std::span<double> after)>;
using CellStep = std::vector<CellPart>;
using MakeCell = std::function<CellStep(const Share& share)>;

// Runs all directions over all steps and sets Y (output 0) and Y_h (output 1).
Status run_recurrence(OpContext& op, const Recurrence& plan, const MakeCell& make_cell);

// A [directions, batch, hidden] state as output `index`, with the layout asked.
Status set_state(OpContext& op, size_t index, const Recurrence& plan, const std::vector<double>& state);
// An initial state input in [directions, batch, hidden] order; zeros where it is absent.
Result<std::vector<double>> read_state(const OpContext& op, size_t index, const Recurrence& plan);

}  // namespace parallax::reference
