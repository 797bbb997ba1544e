// SPDX-License-Identifier: Apache-2.0
// Queue<Emulated>: the device of the tests. Blocks are small and few, so that small cases already take several.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "inspector/tensor/element_order.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/gpu/queue_gpu.h"
#include "tests/runtime/emulated/emulation.h"

namespace parallax::runtime {

template <>
class Queue<Emulated> : public GpuQueueBase {
 public:
  static constexpr int kThreads = 64;
  static constexpr int64_t kMaxBlocks = 3;
  static constexpr int64_t kMostNarrow = 500;

  Queue() : GpuQueueBase({emulation::poison, emulation::poison}) {}

  Result<Tensor> allocate(DType dtype, const Shape& shape);
  std::shared_ptr<std::byte> make_block(int64_t bytes);
  Result<Tensor> to_device(const Tensor& host);
  Result<Tensor> to_host(const Tensor& device);
  Status upload(const Tensor& host, const Tensor& device);
  Status synchronize() { return refused_in_recording("wait for the device"); }

  // Recorded, work is kept for later; else it is done now.
  void perform(std::function<Status()> work) {
    if (is_recording()) return work_.push_back(std::move(work));
    Status status = work();
    if (!status.ok()) fail(std::move(status).error());
  }
  Status begin_recording();
  Result<std::unique_ptr<Recording>> end_recording();
  Status replay(const Recording& recording);

  // Copies to the host are made as late as may be: when they are waited for, or asked after for the third time. An
  // error, where a copy goes to a destination of another pending copy.
  Result<std::shared_ptr<std::byte>> host_memory(size_t bytes);
  Result<int64_t> start_copy_to_host(std::byte* target, const std::byte* source, size_t bytes);
  Result<bool> is_copied(int64_t ticket);
  Status wait_copied(int64_t ticket);

  void set_limit(int64_t bytes) { limit_bytes_ = bytes; }
  bool has_limit() const { return limit_bytes_ > 0; }
  struct Options {
    bool tf32 = false;  // products of float32 may round their operands to TF32
  };
  Options& options() { return options_; }
  const Options& options() const { return options_; }
  int64_t live_bytes() const { return emulation::live_bytes(); }
  int64_t peak_bytes() const { return peak_bytes_; }
  void reset_peak() { peak_bytes_ = live_bytes(); }

 private:
  struct Copy {
    std::byte* target;
    const std::byte* source;
    size_t bytes;
  };
  Status finish_front();
  Result<Tensor> allocate_alongside(DType dtype, const Shape& shape);  // for the recording

  std::vector<std::function<Status()>> work_;  // of the recording
  Options options_;
  int64_t limit_bytes_ = 0;
  int64_t peak_bytes_ = 0;
  std::deque<Copy> copies_;  // under way
  int64_t first_ticket_ = 0;
  int times_asked_ = 0;  // after the front one
};

inline int64_t most_shared_bytes(const Queue<Emulated>&) { return int64_t{160} << 10; }

template <class Kernel>
void launch(Queue<Emulated>& queue, const Kernel& kernel, const gpu::LaunchSize& size) {
  static_assert(std::is_trivially_copyable_v<Kernel>, "kernels are copied to the device byte by byte");
  queue.perform([kernel, size] {
    const auto body = [](gpu::LaunchEmulated& launch, const void* self) {
      (*static_cast<const Kernel*>(self))(launch);
    };
    return emulation::run(Kernel::kName, size, body, &kernel);
  });
}

Result<Tensor> chunk_statistics(Queue<Emulated>& queue, const TensorView& view,
                                ElementOrder order = ElementOrder::row_major);
void copy_bytes(Queue<Emulated>& queue, std::byte* target, const std::byte* source, size_t bytes);

void copy_strided(Queue<Emulated>& queue, int64_t bytes_per_element, const Ints& dims, const StridedTarget& target,
                  const StridedSource& source);
void choose(Queue<Emulated>& queue, const MutableView& out, const std::array<TensorView, 3>& in);
void fill(Queue<Emulated>& queue, const MutableView& out, const std::byte* element);
template <class C>
void convert_elements(Queue<Emulated>& queue, const MutableView& out, const TensorView& in);

// The stand-in for the library, and a record of its calls. Tests let it have other activations, and give zeros to
// queries all of whose keys are hidden.
struct EmulatedLibrary {
  float (*activate)(Epilogue epilogue, float sum) = activated;
  int64_t activated_products = 0;
  int64_t residual_products = 0;
  bool keeps_sums = true;     // of its GELU, as the library's own
  int64_t kept_products = 0;  // that had an activation and kept what it is of
  enum class HiddenQueries : uint8_t { no_numbers, zeros, means };
  HiddenQueries hidden_queries = HiddenQueries::no_numbers;  // what its attention gives where all keys are hidden
  int64_t attentions = 0;
};
EmulatedLibrary& emulated_library();

// In place of the library's: the kernel that integers take.
Status gemm(Queue<Emulated>& queue, const GemmProblem& problem, const float* a, const float* b, float* c);
Status gemm(Queue<Emulated>& queue, const GemmProblem& problem, const double* a, const double* b, double* c);

}  // namespace parallax::runtime
