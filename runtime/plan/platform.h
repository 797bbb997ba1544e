// SPDX-License-Identifier: Apache-2.0
// Platform: what plans and the runner need of a device, whatever it is: the kernel of a node, calls of it, memory, and
// values brought to where they are read.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "inspector/exec/capture_traffic.h"
#include "inspector/exec/kept_states.h"
#include "inspector/exec/observer.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/growable.h"
#include "runtime/device/run_memory.h"
#include "runtime/ops/orders.h"
#include "runtime/plan/pending_value.h"
#include "runtime/plan/replay.h"

namespace parallax::runtime {

// On a GPU, values of at most so many elements may stay on the host.
inline constexpr int64_t kMostHostElements = 1024;

// The row that runs a node; `row` is a KernelRow of the platform's device.
struct ChosenKernel {
  const void* row = nullptr;
  uint32_t dtypes = 0;
  int64_t dtype_input = 0;
  Arguments arguments = Arguments::tensors;
  uint32_t host_inputs = 0;  // a bit for each input of which the host reads the content
  explicit operator bool() const { return row != nullptr; }
};

class Platform {
 public:
  virtual ~Platform() = default;

  // Another one for the same plan, with memory of its own and packed weights in common; null: there is none.
  virtual std::unique_ptr<Platform> clone() const { return nullptr; }

  virtual std::string_view name() const = 0;  // of the executor, for messages
  virtual bool is_host() const = 0;           // values never need to be moved

  // Errors: unsupported.
  virtual Result<ChosenKernel> choose(const Node& node, std::span<const DType> input_dtypes) const = 0;
  virtual Status call(const ChosenKernel& kernel, const Node& node, std::span<const OpInput> inputs, uint64_t seed,
                      CallResult& result) = 0;

  // The value with all its tensors there; itself where they are there already.
  virtual Result<Value> to_host(const Value& value) = 0;
  virtual Result<Value> to_device(const Value& value) = 0;
  // The value where it is stored, row-major: kernels may hand each other values in orders of their own.
  virtual Result<Value> to_row_major(const Value& value) = 0;

  // Tensor operations of control flow: allocation, and copies of regions between tensors, both on the device.
  virtual Result<Tensor> allocate(DType dtype, const Shape& shape) = 0;
  virtual Status copy(int64_t bytes_per_element, const Ints& dims, const StridedTarget& target,
                      const StridedSource& source) = 0;

  // ---- Values that the session keeps, longer from run to run along an axis (growing_values.h) ----
  virtual Result<std::vector<Value>> make_growable(std::span<const GrowableShape> shapes) = 0;  // empty ones
  // The growable value with other elements, a tensor of the host.
  virtual Result<Value> refill(Value growable, const Value& value) = 0;
  // For the one node that appends to it.
  virtual Result<Value> open(const Value& value, int64_t axis) = 0;
  virtual Result<std::vector<Value>> take_growable_rows(std::span<const Value> values,
                                                        std::span<const int32_t> rows) = 0;

  // Row i along the first axis is row rows[i] of `value`, a tensor. Rows are valid.
  virtual Result<Value> take_rows(const Value& value, std::span<const int32_t> rows) {
    return Value(PX_TRY(parallax::take_rows(value.tensor(), rows)));
  }

  virtual Status synchronize() = 0;
  virtual bool waits_for_each_node() const { return false; }  // and runs without planned memory and replays

  // ---- Values on their way to the observer; on the host they are there ----
  // Null where there is no room for it now. `order`: in which its statistics count.
  virtual Result<std::optional<PendingValue>> send(const Value& value, CaptureLevel /*level*/, ElementOrder /*order*/) {
    return std::optional<PendingValue>(PX_TRY(bring(value)));
  }
  // All of it, without room, waiting for it.
  virtual Result<PendingValue> bring(const Value& value) { return PendingValue{PX_TRY(to_host(value)), {}, {}, {}}; }
  virtual Result<bool> has_come(PendingValue& /*pending_value*/) { return true; }
  virtual Status receive(PendingValue& /*pending_value*/) { return {}; }  // waits
  virtual std::optional<CaptureCounts> capture_counts() const { return std::nullopt; }

  // ---- Planned memory. A platform without it traces nothing, so that nothing is ever planned ----
  virtual void begin_run(std::shared_ptr<const MemoryPlan> /*plan*/) {}
  virtual void enter_step(int32_t /*memory_step*/) {}
  virtual RunMemory::Run end_run() { return {}; }
  virtual size_t buffer_alignment() const { return kBufferAlignment; }

  // A run kept to be launched again as one. Null: it cannot be, or the platform has no such thing.
  virtual std::unique_ptr<Replay> record(const ReplayInputs& /*inputs*/, const DeviceRun& /*run*/) { return nullptr; }

  virtual void set_limit(int64_t bytes, int64_t weight_bytes) = 0;  // of both weights and values; 0: none
  virtual void reset_peak() = 0;
  virtual int64_t peak_bytes() const = 0;          // of values, since reset_peak
  virtual int64_t extra_weight_bytes() const = 0;  // copies of weights made for kernels

  // The host's kernels on host values, for constant folding.
  virtual Queue<Cpu>& host_queue() = 0;
};

}  // namespace parallax::runtime
