// SPDX-License-Identifier: Apache-2.0
// The executor "emulated": sessions as those of "cuda", on the emulated device.
#include "tests/runtime/emulated/emulated_executor.h"

#include "runtime/device/gpu/epilogue_settings.h"
#include "runtime/plan/gpu_platform.h"
#include "runtime/plan/session.h"
#include "tests/runtime/emulated/copies_emulated.h"

namespace parallax::tests {
namespace {

class EmulatedExecutor final : public Executor {
 public:
  explicit EmulatedExecutor(const runtime::HostCopySizes& sizes) : sizes_(sizes) {}
  std::string name() const override { return "emulated"; }
  std::string device() const override { return "emulated GPU"; }
  std::map<std::string, std::string> settings(const RunOptions& options) const override {
    runtime::Queue<runtime::Emulated> queue;
    const Result<std::string> activations = runtime::accepted_epilogues(queue);
    return {{"activations of products", activations.ok() ? *activations : activations.error().message},
            {"rewrite", runtime::pattern_names(options, false)}};
  }
  Result<std::unique_ptr<Session>> prepare(std::shared_ptr<const Model> model, const RunOptions& options) override {
    using Platform = runtime::GpuPlatform<runtime::Emulated>;
    return runtime::make_session(
        std::move(model), options,
        std::make_unique<Platform>(name(), std::make_unique<runtime::Queue<runtime::Emulated>>(), sizes_));
  }

 private:
  runtime::HostCopySizes sizes_;
};

}  // namespace

std::unique_ptr<Executor> make_emulated_executor(const runtime::HostCopySizes& sizes) {
  return std::make_unique<EmulatedExecutor>(sizes);
}

}  // namespace parallax::tests
