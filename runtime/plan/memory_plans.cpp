// SPDX-License-Identifier: Apache-2.0
// Which plan a run uses, and what is learnt from it. Nothing here is relied on for correctness: the pool takes a buffer
// of its own wherever a plan turns out not to fit.
#include "runtime/plan/memory_plans.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace parallax::runtime {
namespace {

int64_t upper_bound_of(int64_t dim) {
  if (dim <= 0 || dim > (int64_t{1} << 40)) return dim;
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(dim + (dim + 3) / 4)));
}

}  // namespace

MemoryPlans::Form MemoryPlans::form_of(std::span<const Value> inputs) {
  Form form;
  const auto add = [&](int64_t number, bool is_dim) {
    form.numbers.push_back(number);
    form.is_dim.push_back(is_dim);
  };
  for (const Value& input : inputs) {
    add(input.is_tensor() ? static_cast<int64_t>(input.tensor().dtype()) : -1, false);
    if (!input.is_tensor()) continue;
    add(static_cast<int64_t>(input.tensor().shape().rank()), false);
    for (int64_t dim : input.tensor().shape()) add(dim, true);
  }
  return form;
}

bool MemoryPlans::serves(const Entry& entry) const {
  for (size_t index = 0; index < form_.numbers.size(); ++index) {
    const int64_t number = form_.numbers[index];
    if (varies_[index] ? number > entry.limits[index] : number != entry.limits[index]) return false;
  }
  return true;
}

std::shared_ptr<const MemoryPlan> MemoryPlans::choose(std::span<const Value> inputs) {
  Form form = form_of(inputs);
  const auto same_kind = [&] {
    if (form.is_dim != form_.is_dim) return false;
    for (size_t index = 0; index < form.numbers.size(); ++index) {
      if (!form.is_dim[index] && form.numbers[index] != form_.numbers[index]) return false;
    }
    return true;
  };
  if (same_kind() && runs_ > 0) {
    for (size_t index = 0; index < form.numbers.size(); ++index) {
      if (form.numbers[index] != form_.numbers[index]) varies_[index] = true;
    }
  } else {
    entries_.clear();
    varies_.assign(form.numbers.size(), false);
    last_lives_.clear();
  }
  form_ = std::move(form);
  ++runs_;
  Entry* best = nullptr;
  for (Entry& entry : entries_) {
    if (serves(entry) && (best == nullptr || entry.plan->arena_bytes < best->plan->arena_bytes)) best = &entry;
  }
  if (best != nullptr) best->last_use = runs_;
  last_used_ = best == nullptr ? nullptr : best->plan;
  return last_used_;
}

std::vector<int64_t> MemoryPlans::limits_and_growth(double& growth) const {
  std::vector<int64_t> limits = form_.numbers;
  for (size_t index = 0; index < limits.size(); ++index) {
    if (!varies_[index]) continue;
    limits[index] = upper_bound_of(form_.numbers[index]);
    if (form_.numbers[index] == 0) continue;
    growth = std::max(growth, static_cast<double>(limits[index]) / static_cast<double>(form_.numbers[index]));
  }
  growth = std::pow(growth, growth_power_);
  return limits;
}

// A buffer that had the same size in the last traced run, of other dimensions, does not depend on them.
std::vector<BufferLife> MemoryPlans::grown(const std::vector<BufferLife>& lives, double growth) const {
  std::vector<BufferLife> larger = lives;
  if (growth <= 1) return larger;
  const bool comparable = last_lives_.size() == lives.size() && last_numbers_ != form_.numbers;
  for (size_t index = 0; index < larger.size(); ++index) {
    BufferLife& life = larger[index];
    const bool is_fixed = comparable && last_lives_[index].step == life.step && last_lives_[index].bytes == life.bytes;
    if (!is_fixed) life.bytes = static_cast<size_t>(std::ceil(static_cast<double>(life.bytes) * growth));
  }
  return larger;
}

void MemoryPlans::learn(const RunMemory::Run& run, int32_t step_count) {
  is_settled_ = run.requests_outgrown == 0 && (last_used_ != nullptr || run.trace.lives.empty());
  if (last_used_ != nullptr) {
    if (run.requests_outgrown == 0) return;
    // The plan was too small for what it was made for: the next run of these shapes is traced again.
    std::erase_if(entries_, [&](const Entry& entry) { return entry.plan == last_used_; });
    growth_power_ = 2;
    return;
  }
  const std::vector<BufferLife>& lives = run.trace.lives;
  if (runs_ > 1 && !lives.empty()) {
    double growth = 1;
    std::vector<int64_t> limits = limits_and_growth(growth);
    auto plan = plan_memory(grown(lives, growth), step_count, alignment_);
    if (plan.has_value()) {
      ++built_;
      keep({std::move(limits), std::make_shared<const MemoryPlan>(*std::move(plan)), runs_});
    }
  }
  last_lives_ = lives;
  last_numbers_ = form_.numbers;
}

void MemoryPlans::keep(Entry entry) {
  if (entries_.size() >= kMostPlans) {
    entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                    [](const Entry& a, const Entry& b) { return a.last_use < b.last_use; }));
  }
  entries_.push_back(std::move(entry));
}

}  // namespace parallax::runtime
