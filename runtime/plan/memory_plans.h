// SPDX-License-Identifier: Apache-2.0
// MemoryPlans: the plans of memory of one session, one for a range of input shapes, made from runs that were traced.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "inspector/tensor/value.h"
#include "runtime/device/run_memory.h"

namespace parallax::runtime {

// A dimension that stays as it is is planned as it is. One that has changed from call to call (a batch, a growing
// cache) is planned for an upper bound, the power of two from 5/4 of it on, so that growth by one needs a new plan each
// doubling. The very first run is not planned: it prepares weights, and nothing is known yet of what changes.
class MemoryPlans {
 public:
  explicit MemoryPlans(size_t alignment = kBufferAlignment) : alignment_(alignment) {}  // of buffers

  // The plan for a run on these inputs. Null: there is none yet, and the run is to be traced.
  std::shared_ptr<const MemoryPlan> choose(std::span<const Value> inputs);
  // Takes the result of the run that choose() was last asked for, when it succeeded.
  void learn(const RunMemory::Run& run, int32_t step_count);

  // The last run that was learnt from found all its memory planned, or asked for none.
  bool is_settled() const { return is_settled_; }
  int64_t built() const { return built_; }
  const MemoryPlan* last_used() const { return last_used_.get(); }

 private:
  static constexpr size_t kMostPlans = 16;

  // All that is known of inputs before a run: for each its type and rank, which never match another's, and its
  // dimensions, which may.
  struct Form {
    std::vector<int64_t> numbers;
    std::vector<bool> is_dim;
  };
  struct Entry {
    std::vector<int64_t> limits;  // by number of the form
    std::shared_ptr<const MemoryPlan> plan;
    int64_t last_use = 0;
  };

  static Form form_of(std::span<const Value> inputs);
  bool serves(const Entry& entry) const;
  std::vector<int64_t> limits_and_growth(double& growth) const;
  std::vector<BufferLife> grown(const std::vector<BufferLife>& lives, double growth) const;
  void keep(Entry entry);

  size_t alignment_;
  std::vector<Entry> entries_;
  Form form_;                           // of the run at hand
  std::vector<bool> varies_;            // numbers that have changed
  std::vector<BufferLife> last_lives_;  // of the last traced run, by step, and what it ran on
  std::vector<int64_t> last_numbers_;
  std::shared_ptr<const MemoryPlan> last_used_;
  bool is_settled_ = false;
  int64_t built_ = 0;
  int64_t runs_ = 0;
  int growth_power_ = 1;  // sizes grow with the dimensions, or with their squares
};

}  // namespace parallax::runtime
