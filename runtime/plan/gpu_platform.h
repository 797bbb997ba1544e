// SPDX-License-Identifier: Apache-2.0
// A GPU as a platform. Values are on the device, but for those of shape arithmetic: small values that follow from
// shapes and constants alone stay on the host and are computed there by the host's kernels.
#pragma once

#include <map>
#include <optional>

#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cuda/profiler_range.h"
#include "runtime/ops/growable_inputs.h"
#include "runtime/ops/table.h"
#include "runtime/plan/gpu_replay.h"
#include "runtime/plan/growing_values.h"
#include "runtime/plan/host_platform.h"
#include "runtime/plan/move_value.h"

namespace parallax::runtime {

template <class Device>
class GpuPlatform final : public GrowingValues<Device> {
 public:
  GpuPlatform(std::string name, std::unique_ptr<Queue<Device>> queue, const HostCopySizes& sizes = {})
      : name_(std::move(name)),
        queue_(std::move(queue)),
        copies_(*queue_, sizes),
        host_queue_(BufferPool::create({})) {}

  std::string_view name() const override { return name_; }
  bool is_host() const override { return false; }

  Result<ChosenKernel> choose(const Node& node, std::span<const DType> input_dtypes) const override {
    const KernelRow<Device>* row = PX_TRY(find_kernel<Device>(node, input_dtypes));
    return chosen(*row);
  }

  Status call(const ChosenKernel& kernel, const Node& node, std::span<const OpInput> inputs, uint64_t seed,
              CallResult& result) override {
    if (kernel.arguments == Arguments::tensors && stays_on_host(inputs)) {
      std::vector<DType> dtypes;
      for (const OpInput& input : inputs) dtypes.push_back(dtype_of_input(input));
      const auto host_row = find_kernel<Cpu>(node, dtypes);
      if (host_row.ok()) return call_row(**host_row, node, inputs, seed, host_queue_, result);
    }
    [[maybe_unused]] const ProfilerRange<Device> range(node.display_name);
    const auto& row = *static_cast<const KernelRow<Device>*>(kernel.row);
    std::vector<Value> moved(inputs.size());
    std::vector<OpInput> operands(inputs.begin(), inputs.end());
    for (size_t index = 0; index < inputs.size(); ++index)
      PX_TRY(move_input(row, index, moved[index], operands[index]));
    if (has_growable(operands)) {
      if (appends_to_first(row.op, operands)) {
        PX_TRY(append_to_first(node, operands, operands[1].value->tensor(), seed, *queue_, result));
        return queue_->take_failure();
      }
      PX_TRY(copy_growable(row, *queue_, operands, moved));
    }
    return call_row(row, node, operands, seed, *queue_, result);
  }

  Result<Value> to_host(const Value& value) override {
    const Value stored = PX_TRY(to_row_major(value));
    return move_value(stored, [&](const Tensor& tensor) -> Result<Tensor> {
      return tensor.device().is_host() ? Result<Tensor>(tensor) : queue_->to_host(tensor);
    });
  }
  Result<Value> to_device(const Value& value) override {
    return move_value(value, [&](const Tensor& tensor) -> Result<Tensor> { return on_device(tensor, false); });
  }
  Result<Value> to_row_major(const Value& value) override {
    const Value stored = PX_TRY(this->row_major(value));
    PX_TRY(queue_->take_failure());
    return stored;
  }

  Result<Tensor> allocate(DType dtype, const Shape& shape) override { return queue_->allocate(dtype, shape); }
  Status copy(int64_t bytes_per_element, const Ints& dims, const StridedTarget& target,
              const StridedSource& source) override {
    copy_strided(*queue_, bytes_per_element, dims, target, source);
    return queue_->take_failure();
  }

  Result<Value> take_rows(const Value& value, std::span<const int32_t> rows) override {
    const Tensor& from = value.tensor();
    if (from.device().is_host()) return Platform::take_rows(value, rows);
    Ints dims(from.shape());
    const size_t row_bytes = dims[0] == 0 ? 0 : from.size_bytes() / static_cast<size_t>(dims[0]);
    dims[0] = static_cast<int64_t>(rows.size());
    const Shape shape = PX_TRY(shape_of(dims));
    const Tensor taken = PX_TRY(queue_->allocate(from.dtype(), shape));
    for (size_t i = 0; i < rows.size() && row_bytes > 0; ++i)
      copy_bytes(*queue_, taken.storage().get() + i * row_bytes,
                 from.view().data + static_cast<size_t>(rows[i]) * row_bytes, row_bytes);
    PX_TRY(queue_->take_failure());
    return Value(taken);
  }

  Status synchronize() override { return queue_->synchronize(); }
  bool waits_for_each_node() const override { return runtime::waits_for_each_node(); }

  // Whole values are summed up by the host, in the pass that takes them from the ring; where nobody wants more than the
  // statistics, they are taken on the device and travel alone.
  Result<std::optional<PendingValue>> send(const Value& value, CaptureLevel level, ElementOrder order) override {
    PendingValue pending_value;
    if (!value.is_tensor() || value.tensor().device().is_host() || value.tensor().size_bytes() == 0) {
      pending_value.value = PX_TRY(to_host(value));
      return std::optional(std::move(pending_value));
    }
    const Value stored = PX_TRY(to_row_major(value));
    const Tensor& tensor = stored.tensor();
    if (level == CaptureLevel::shape) {
      pending_value.value = without_payload(tensor);
      return std::optional(std::move(pending_value));
    }
    if (level == CaptureLevel::stats) {
      if (!PX_TRY(copies_.has_room(most_summary_bytes(tensor)))) return std::optional<PendingValue>();
      const Tensor chunks = PX_TRY(chunk_statistics(*queue_, tensor, order));
      if (chunks.defined()) return std::optional(PX_TRY(summary_of(tensor, chunks, order)));
    }
    if (!PX_TRY(copies_.has_room(tensor.size_bytes()))) return std::optional<PendingValue>();
    pending_value.copy = PX_TRY(copies_.start(tensor));
    pending_value.value = pending_value.copy->host;
    return std::optional(std::move(pending_value));
  }

  Result<PendingValue> bring(const Value& value) override {
    PendingValue pending_value;
    const Value stored = PX_TRY(to_row_major(value));
    pending_value.value = PX_TRY(move_value(stored, [&](const Tensor& tensor) -> Result<Tensor> {
      return tensor.device().is_host() ? Result<Tensor>(tensor) : copies_.bring_in_pieces(tensor);
    }));
    return pending_value;
  }

  Result<bool> has_come(PendingValue& pending_value) override {
    if (pending_value.copy.has_value() && PX_TRY(copies_.has_come(*pending_value.copy))) unpack(pending_value);
    return !pending_value.copy.has_value();
  }

  Status receive(PendingValue& pending_value) override {
    if (!pending_value.copy.has_value()) return {};
    PX_TRY(copies_.wait(*pending_value.copy));
    unpack(pending_value);
    return {};
  }

  std::optional<CaptureCounts> capture_counts() const override {
    const HostCopyCounts& counts = copies_.counts();
    return CaptureCounts{counts.copies, counts.bytes, counts.bytes_in_pieces, counts.waits, counts.waited_ms};
  }

  void begin_run(std::shared_ptr<const MemoryPlan> plan) override {
    if (plan == nullptr && queue_->has_limit()) queue_->memory().drop_block();  // its bytes are needed
    queue_->memory().begin_run(std::move(plan), [this](int64_t bytes) { return queue_->make_block(bytes); });
  }
  void enter_step(int32_t memory_step) override { queue_->memory().enter_step(memory_step); }
  RunMemory::Run end_run() override { return queue_->memory().end_run(); }
  size_t buffer_alignment() const override { return kGpuBufferAlignment; }

  std::unique_ptr<Replay> record(const ReplayInputs& inputs, const DeviceRun& run) override {
    auto replay = std::make_unique<GpuReplay<Device>>(*queue_);
    if (!replay->record(inputs, run)) return nullptr;
    return replay;
  }

  void set_limit(int64_t bytes, int64_t weight_bytes) override {
    queue_->set_limit(bytes == 0 ? 0 : std::max<int64_t>(1, bytes - weight_bytes));  // 0 would be none
  }
  void reset_peak() override { queue_->reset_peak(); }
  int64_t peak_bytes() const override { return queue_->peak_bytes(); }
  int64_t extra_weight_bytes() const override { return 0; }

  Queue<Cpu>& host_queue() override { return host_queue_; }

 private:
  Queue<Device>& queue() override { return *queue_; }

  static DType dtype_of_input(const OpInput& input) {
    return input.value != nullptr && input.value->is_tensor() ? input.value->tensor().dtype() : DType::undefined;
  }

  // Inputs that are all on the host, and small: values that follow from them are computed there too.
  static bool stays_on_host(std::span<const OpInput> inputs) {
    bool any = false;
    for (const OpInput& input : inputs) {
      if (input.value == nullptr || input.value->is_absent()) continue;
      if (!input.value->is_tensor()) return false;
      const Tensor& tensor = input.value->tensor();
      if (!tensor.device().is_host() || tensor.element_count() > kMostHostElements) return false;
      any = true;
    }
    return any;
  }

  Result<Tensor> on_device(const Tensor& tensor, bool is_constant) {
    if (!tensor.device().is_host() || tensor.dtype() == DType::string) return tensor;
    if (!is_constant || tensor.element_count() == 0) return queue_->to_device(tensor);
    const Tensor uploaded =
        PX_TRY(queue_->cached(tensor.view(), tensor.dtype(), [&] { return queue_->to_device(tensor); }));
    return uploaded.reshaped(tensor.shape());
  }

  static Value without_payload(const Tensor& tensor) {
    return Tensor::wrap(tensor.dtype(), tensor.shape(), nullptr, tensor.device());
  }

  // Complex numbers count as two each.
  static size_t most_summary_bytes(const Tensor& tensor) {
    const auto numbers = static_cast<size_t>(2 * tensor.element_count());
    return (numbers / statistics::kChunkElements + 1) * sizeof(statistics::ChunkStatistics);
  }

  Result<PendingValue> summary_of(const Tensor& tensor, const Tensor& chunks, ElementOrder order) {
    PendingValue pending_value;
    pending_value.copy = PX_TRY(copies_.start(chunks));
    pending_value.summary = PendingValue::Summary{tensor.element_count() * (is_complex(tensor.dtype()) ? 2 : 1), order};
    pending_value.value = without_payload(tensor);
    return pending_value;
  }

  static void unpack(PendingValue& pending_value) {
    if (pending_value.summary.has_value()) {
      const TensorView& view = pending_value.copy->host.view();
      const std::span chunks(reinterpret_cast<const statistics::ChunkStatistics*>(view.data),
                             view.size_bytes() / sizeof(statistics::ChunkStatistics));
      pending_value.statistics = joined_statistics(chunks, pending_value.summary->count, pending_value.summary->order);
    }
    pending_value.copy.reset();
  }

  // Input `index` where the row reads it: `moved` owns it when it has to be copied.
  Status move_input(const KernelRow<Device>& row, size_t index, Value& moved, OpInput& operand) {
    if (operand.value == nullptr || operand.value->is_absent()) return {};
    const bool on_host = index < 32 && ((row.host_inputs >> index) & 1U) != 0;
    if (on_host) {
      moved = PX_TRY(to_host(*operand.value));
    } else if (row.arguments == Arguments::tensors && operand.value->tensor().device().is_host()) {
      moved = PX_TRY(on_device(operand.value->tensor(), operand.is_constant));
    } else {
      return {};
    }
    operand.value = &moved;
    return {};
  }

  std::string name_;
  std::unique_ptr<Queue<Device>> queue_;
  HostCopies<Device> copies_;
  Queue<Cpu> host_queue_;
};

}  // namespace parallax::runtime
