// SPDX-License-Identifier: Apache-2.0
// The walk over time of RNN, GRU and LSTM: blocks of samples side by side, and of each block's units several shares.
#include <algorithm>
#include <deque>

#include "reference/kernels/phases.h"
#include "reference/kernels/products_kernel.h"
#include "reference/ops/nn/recurrent.h"

namespace parallax::reference {
namespace {

// Some samples of a direction, which go through time together so that the weights are read once for all of them.
struct Block {
  explicit Block(int64_t share_count) : phases(share_count) {}

  std::vector<Share> shares;  // of the hidden units
  std::vector<CellStep> cells;
  Phases phases;  // one a part of a step
};

// A sample runs for its own length; Y is 0 beyond it and Y_h is its state after its last step.
struct Course {
  const Recurrence& plan;
  std::vector<double> states,
      others;  // each step's h is computed from the one into the other; in the end it is in states
  std::vector<double> y;

  explicit Course(const Recurrence& recurrence)
      : plan(recurrence),
        states(recurrence.initial_h),
        others(states.size()),
        y(states.size() * static_cast<size_t>(recurrence.steps), 0.0) {}

  // The work of the thread that has one share.
  void run(Block& block, int64_t share) {
    PhasesMember member(block.phases, share);
    const Share& own = block.shares[static_cast<size_t>(share)];
    const auto lengths =
        std::span(plan.lengths).subspan(static_cast<size_t>(own.first), static_cast<size_t>(own.count));
    const int64_t last = *std::ranges::max_element(lengths);
    const bool backward = plan.reverse_only || own.direction == 1;
    auto before = plan.states_of(own, states), after = plan.states_of(own, others);
    std::vector<int64_t> times(lengths.size());
    for (int64_t count = 0; count < last; ++count) {
      for (size_t index = 0; index < times.size(); ++index)
        times[index] = count >= lengths[index] ? -1 : backward ? lengths[index] - 1 - count : count;
      step(block, member, {count, times}, before, after);
      std::swap(before, after);
    }
    if (last % 2 == 0) return;
    for (int64_t index = 0; index < own.count; ++index)
      std::ranges::copy(plan.units_of(own, before, index), plan.units_of(own, after, index).begin());
  }

  void step(const Block& block, PhasesMember& member, const Step& step, std::span<const double> before,
            std::span<double> after) {
    const size_t parts = block.cells.front().size();
    for (size_t part = 0; part < parts; ++part) {
      const auto phase = static_cast<uint32_t>(static_cast<size_t>(step.count) * parts + part);
      member.run(phase, [&](int64_t piece) {
        const auto share = static_cast<size_t>(piece);
        block.cells[share][part](step, before, after);
        if (part + 1 == parts) keep(block.shares[share], step.times, before, after);
      });
    }
  }

  // Stores the results of a step in Y; samples that are at their end keep their state.
  void keep(const Share& share, std::span<const int64_t> times, std::span<const double> before,
            std::span<double> after) {
    for (int64_t index = 0; index < share.count; ++index) {
      const int64_t sample = share.first + index, time = times[static_cast<size_t>(index)];
      const auto own = plan.units_of(share, after, index);
      if (time < 0) {
        std::ranges::copy(plan.units_of(share, before, index), own.begin());
        continue;
      }
      // Y is [steps, directions, batch, hidden], or [batch, steps, directions, hidden] with the batch first.
      const int64_t target = plan.batch_first ? (sample * plan.steps + time) * plan.directions + share.direction
                                              : (time * plan.directions + share.direction) * plan.batch + sample;
      std::ranges::copy(own, y.begin() + target * plan.hidden + share.first_unit);
    }
  }
};

}  // namespace

Status run_recurrence(OpContext& op, const Recurrence& plan, const MakeCell& make_cell) {
  const int64_t sample_blocks = (plan.batch + kTileRows - 1) / kTileRows, block_count = plan.directions * sample_blocks;
  std::deque<Block> blocks;
  for (int64_t index = 0; index < block_count; ++index) {
    Block& block = blocks.emplace_back(plan.shares);
    const int64_t first = index % sample_blocks * kTileRows, count = std::min(kTileRows, plan.batch - first);
    for (int64_t share = 0; share < plan.shares; ++share) {
      block.shares.push_back(plan.share_of(index / sample_blocks, share, first, count));
      block.cells.push_back(make_cell(block.shares.back()));
    }
  }
  Course course(plan);
  const int64_t work = plan.steps * plan.share_units * plan.gates * plan.hidden;
  parallel_for(block_count * plan.shares, work, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index)
      course.run(blocks[static_cast<size_t>(index / plan.shares)], index % plan.shares);
  });
  const Shape shape = plan.batch_first ? Shape{plan.batch, plan.steps, plan.directions, plan.hidden}
                                       : Shape{plan.steps, plan.directions, plan.batch, plan.hidden};
  PX_TRY(op.set_output(0, plan.dtype, shape, std::span<const double>(course.y)));
  return set_state(op, 1, plan, course.states);
}

}  // namespace parallax::reference
