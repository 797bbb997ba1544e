// SPDX-License-Identifier: Apache-2.0
// The executor "cuda": its options and settings. Where CUDA is off at build time, its absence.
#include <fmt/format.h>

#include "runtime/plan/runtime.h"

#ifdef PX_WITH_CUDA
#include <map>
#include <mutex>

#include "runtime/device/cuda/copies_cuda.h"
#include "runtime/device/gpu/epilogue_settings.h"
#include "runtime/plan/gpu_platform.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/session.h"
#endif

namespace parallax {

#ifdef PX_WITH_CUDA

namespace runtime {
namespace {

Result<std::string> ask_device(bool tf32) {
  CudaQueueOptions options;
  options.tf32 = tf32;
  const auto queue = PX_TRY(Queue<Cuda>::create(options));
  return accepted_epilogues(*queue);
}

// Asked once in a process: every queue of the device is given the same answers.
const std::string& activations_of_device(bool tf32) {
  static std::mutex mutex;
  static std::map<bool, std::string> known;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = known.find(tf32);
  if (found != known.end()) return found->second;
  const Result<std::string> answer = ask_device(tf32);
  return known[tf32] = answer.ok() ? *answer : "not asked (" + answer.error().message + ")";
}

constexpr const char* kAttention =
    "half precision: cuDNN where it is, knows how and a probe on the device has shown its softmax to be ours: its "
    "first "
    "deterministic choice, sums in float32, weights rounded to the operands' type; else our own in float32";

class CudaExecutor final : public Executor {
 public:
  std::string name() const override { return "cuda"; }
  std::string device() const override { return describe_cuda(0).name; }

  std::map<std::string, std::string> settings(const RunOptions& options) const override {
    return {{"accumulate", "float32 for narrower floats"},
            {"activations of products", "cublasLt's where a probe on the device has shown them to be ours: " +
                                            activations_of_device(options.tf32)},
            {"attention", kAttention},
            {"convolutions", "cuDNN where it is, its first deterministic choice; else kernels of our own"},
            {"fallback", options.fallback == nullptr ? "none" : options.fallback->name()},
            {"libraries", describe_cuda(0).versions},
            {"products", "cuBLAS; half precision and biases: cublasLt, its first choice"},
            {"rewrite", pattern_names(options, false)},
            {"seed", std::to_string(options.seed)},
            {"tf32", options.tf32 ? "on" : "off"}};
  }

  Status check_options(const RunOptions& options) const override {
    if (options.keep_casts) return usage_error("--keep-casts is for reference:double; executor 'cuda' keeps all casts");
    PX_TRY(chosen_patterns(options, false));
    return {};
  }

  Result<std::unique_ptr<Session>> prepare(std::shared_ptr<const Model> model, const RunOptions& options) override {
    PX_TRY(check_options(options));
    CudaQueueOptions queue_options;
    queue_options.tf32 = options.tf32;
    auto queue = PX_TRY(Queue<Cuda>::create(queue_options));
    return make_session(std::move(model), options, std::make_unique<GpuPlatform<Cuda>>(name(), std::move(queue)));
  }
};

}  // namespace
}  // namespace runtime

Result<std::unique_ptr<Executor>> make_cuda_executor() {
  const runtime::CudaDevices devices = runtime::cuda_devices();
  if (devices.count == 0) return usage_error("cuda: " + devices.problem);
  return std::unique_ptr<Executor>(std::make_unique<runtime::CudaExecutor>());
}

#else

Result<std::unique_ptr<Executor>> make_cuda_executor() {
  return usage_error("cuda: this build has no CUDA executor (PARALLAX_CUDA was off)");
}

#endif

}  // namespace parallax
