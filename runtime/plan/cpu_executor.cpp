// SPDX-License-Identifier: Apache-2.0
// The executor "cpu": its options and settings.
#include <fmt/format.h>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/host_info.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/plan/host_platform.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/runtime.h"
#include "runtime/plan/session.h"

namespace parallax {
namespace runtime {
namespace {

class CpuExecutor final : public Executor {
 public:
  explicit CpuExecutor(const CpuExecutorOptions& options) : options_(options) {}

  std::string name() const override { return "cpu"; }
  std::string device() const override { return fmt::format("{}, {}", processor_name(), name_of(vector_level())); }

  std::map<std::string, std::string> settings(const RunOptions& options) const override {
    return {{"accumulate", "float32 for narrower floats"},
            {"fallback", options.fallback == nullptr ? "none" : options.fallback->name()},
            {"matrix products", library_versions()},
            {"rewrite", pattern_names(options, true)},
            {"seed", std::to_string(options.seed)},
            {"threads", std::to_string(thread_count())},
            {"vectors", std::string(name_of(vector_level()))}};
  }

  Status check_options(const RunOptions& options) const override {
    if (options.tf32) return usage_error("executor 'cpu' has no TF32: leave --tf32 off");
    if (options.keep_casts) return usage_error("--keep-casts is for reference:double; executor 'cpu' keeps all casts");
    PX_TRY(chosen_patterns(options, true));
    return {};
  }

  Result<std::unique_ptr<Session>> prepare(std::shared_ptr<const Model> model, const RunOptions& options) override {
    PX_TRY(check_options(options));
    BufferPoolOptions pool_options;
    pool_options.poison = options_.poison_buffers;
    return make_session(std::move(model), options, make_host_platform(pool_options));
  }

 private:
  CpuExecutorOptions options_;
};

}  // namespace
}  // namespace runtime

std::unique_ptr<Executor> make_cpu_executor(const CpuExecutorOptions& options) {
  return std::make_unique<runtime::CpuExecutor>(options);
}

}  // namespace parallax
