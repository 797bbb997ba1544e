// SPDX-License-Identifier: Apache-2.0
// The host as a platform.
#include "runtime/plan/host_platform.h"

#include <new>

#include "inspector/base/memory_budget.h"
#include "runtime/device/cpu/channels_last.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/weight_cache.h"
#include "runtime/ops/table.h"
#include "runtime/plan/growing_values.h"

namespace parallax::runtime {
namespace {

class HostPlatform final : public GrowingValues<Cpu> {
 public:
  explicit HostPlatform(const BufferPoolOptions& options)
      : options_(options), pool_(BufferPool::create(options)), queue_(pool_) {}

  std::unique_ptr<Platform> clone() const override {
    auto copy = std::make_unique<HostPlatform>(options_);
    copy->queue_.weights().share_with(queue_.weights());
    return copy;
  }

  std::string_view name() const override { return "cpu"; }
  bool is_host() const override { return true; }

  Result<ChosenKernel> choose(const Node& node, std::span<const DType> input_dtypes) const override {
    const KernelRow<Cpu>* row = PX_TRY(find_kernel<Cpu>(node, input_dtypes));
    return chosen(*row);
  }
  Status call(const ChosenKernel& kernel, const Node& node, std::span<const OpInput> inputs, uint64_t seed,
              CallResult& result) override {
    try {
      return call_in_any_order(*static_cast<const KernelRow<Cpu>*>(kernel.row), node, inputs, seed, queue_, result);
    } catch (const std::bad_alloc&) {
      return no_kernel_memory();
    }
  }

  Result<Value> to_host(const Value& value) override { return to_row_major(value); }
  Result<Value> to_device(const Value& value) override { return value; }
  Result<Value> to_row_major(const Value& value) override {
    if (is_growable(value)) return row_major(value);
    if (!is_channels_last(value)) return value;  // those within sequences and optionals are row-major
    return Value(PX_TRY(runtime::to_row_major(queue_, value.tensor())));
  }

  Result<Tensor> allocate(DType dtype, const Shape& shape) override { return queue_.allocate(dtype, shape); }
  Status copy(int64_t bytes_per_element, const Ints& dims, const StridedTarget& target,
              const StridedSource& source) override {
    return copy_strided(queue_, bytes_per_element, dims, target, source), Status{};
  }

  Status synchronize() override { return {}; }

  void begin_run(std::shared_ptr<const MemoryPlan> plan) override { pool_->begin_run(std::move(plan)); }
  void enter_step(int32_t memory_step) override { pool_->enter_step(memory_step); }
  RunMemory::Run end_run() override { return pool_->end_run(); }

  void set_limit(int64_t bytes, int64_t weight_bytes) override { pool_->set_limit(bytes, weight_bytes); }
  void reset_peak() override { pool_->reset_peak(); }
  int64_t peak_bytes() const override { return pool_->peak_bytes(); }
  int64_t extra_weight_bytes() const override { return queue_.weights().bytes(); }

  Queue<Cpu>& host_queue() override { return queue_; }

 private:
  Queue<Cpu>& queue() override { return queue_; }

  const BufferPoolOptions options_;
  std::shared_ptr<BufferPool> pool_;
  Queue<Cpu> queue_;
};

}  // namespace

Error no_kernel_memory() {
  return MemoryBudget::take_refusal("a buffer of its kernel")
      .value_or(out_of_memory("the system has no memory for a buffer of its kernel"));
}

std::unique_ptr<Platform> make_host_platform(const BufferPoolOptions& options) {
  return std::make_unique<HostPlatform>(options);
}

}  // namespace parallax::runtime
