// The executor "cpu": options, preparation, and sessions around the runner.
#include <fmt/format.h>

#include "inspector/base/thread_pool.h"
#include "inspector/exec/overrides.h"
#include "inspector/exec/wanted_levels.h"
#include "runtime/device/host_info.h"
#include "runtime/device/multiversion.h"
#include "runtime/device/weight_cache.h"
#include "runtime/plan/runner.h"
#include "runtime/plan/runtime.h"

namespace parallax {
namespace runtime {
namespace {

int64_t input_bytes(std::span<const Value> inputs) {
  int64_t bytes = 0;
  for (const Value& input : inputs) bytes += static_cast<int64_t>(payload_bytes(input));
  return bytes;
}

class CpuSession final : public Session {
 public:
  CpuSession(std::shared_ptr<const Model> model, RunOptions options, std::shared_ptr<BufferPool> pool)
      : model_(std::move(model)), options_(std::move(options)), pool_(pool), queue_(pool) {}

  Status prepare() {
    sites_ = std::make_unique<SiteTable>(PX_TRY(SiteTable::build(model_)));
    PX_TRY(check_override_paths(*sites_, options_.overrides));
    PlanRequest request;
    request.options = &options_;
    request.patterns = PX_TRY(chosen_patterns(options_));
    request.evaluate = [this](const Node& node, std::span<const Value> inputs) { return evaluate(node, inputs); };
    plan_ = PX_TRY(plan_graph(sites_->main(), request));
    weight_bytes_ = request.weight_bytes;
    fallback_nodes_ = std::move(request.fallback_nodes);
    if (options_.memory_limit_bytes > 0 && weight_bytes_ > options_.memory_limit_bytes) {
      return out_of_memory(
          fmt::format("the weights take {} bytes, the memory limit is {}", weight_bytes_, options_.memory_limit_bytes));
    }
    pool_->set_limit(options_.memory_limit_bytes == 0 ? 0 : options_.memory_limit_bytes - weight_bytes_);
    return {};
  }

  Result<std::vector<Value>> run(std::span<const Value> inputs, Observer& observer, const CallInfo& call) override {
    PX_TRY(check_inputs(model_->graph, inputs));
    pool_->reset_peak();
    Runner runner(options_, levels_.of(observer, *sites_), queue_, observer);
    auto outputs = runner.call(*plan_, inputs, call, !announced_);
    announced_ = true;
    peak_bytes_ =
        std::max(peak_bytes_, weight_bytes_ + queue_.weights().bytes() + input_bytes(inputs) + pool_->peak_bytes());
    return outputs;
  }

  SessionStatistics statistics() const override {
    SessionStatistics statistics;
    statistics.peak_bytes = peak_bytes_;
    statistics.weight_bytes = weight_bytes_ + queue_.weights().bytes();
    statistics.arena_bytes = pool_->held_bytes();
    statistics.plan_count = 1;
    statistics.fallback_nodes = fallback_nodes_;
    return statistics;
  }

 private:
  // One node on constant inputs, for constant folding.
  Result<std::vector<Value>> evaluate(const Node& node, std::span<const Value> inputs) {
    std::vector<OpInput> operands;
    std::vector<DType> dtypes;
    for (const Value& input : inputs) {
      operands.push_back({&input, true, false});
      dtypes.push_back(input.is_tensor() ? input.tensor().dtype() : DType::undefined);
      if (!input.is_tensor() && !input.is_absent()) return unsupported("only tensors are folded");
    }
    const KernelRow<Cpu>* kernel = PX_TRY(find_kernel<Cpu>(node, dtypes));
    OpContext<Cpu> op(node, operands, options_.seed, queue_);
    PX_TRY(kernel->run(op));
    return op.take_outputs();
  }

  std::shared_ptr<const Model> model_;
  RunOptions options_;
  std::shared_ptr<BufferPool> pool_;
  Queue<Cpu> queue_;
  std::unique_ptr<SiteTable> sites_;
  std::unique_ptr<GraphPlan> plan_;
  WantedLevels levels_;
  std::vector<std::string> fallback_nodes_;
  int64_t weight_bytes_ = 0;
  int64_t peak_bytes_ = 0;
  bool announced_ = false;
};

std::string_view name_of(VectorLevel level) {
  switch (level) {
    case VectorLevel::avx512:
      return "AVX-512";
    case VectorLevel::avx2:
      return "AVX2";
    case VectorLevel::baseline:
      return "baseline";
  }
  return "baseline";
}

class CpuExecutor final : public Executor {
 public:
  explicit CpuExecutor(const CpuExecutorOptions& options) : options_(options) {}

  std::string name() const override { return "cpu"; }
  std::string device() const override { return fmt::format("{}, {}", processor_name(), name_of(vector_level())); }

  std::map<std::string, std::string> settings(const RunOptions& options) const override {
    std::string patterns;
    const auto chosen = chosen_patterns(options);
    if (chosen.ok()) {
      for (const Pattern* pattern : *chosen) {
        if (!patterns.empty()) patterns += ',';
        patterns += pattern->name;
      }
    }
    return {{"accumulate", "float32 for narrower floats"},
            {"fallback", options.fallback == nullptr ? "none" : options.fallback->name()},
            {"matrix products", library_versions()},
            {"rewrite", patterns.empty() ? "none" : patterns},
            {"seed", std::to_string(options.seed)},
            {"threads", std::to_string(thread_count())},
            {"vectors", std::string(name_of(vector_level()))}};
  }

  Result<std::unique_ptr<Session>> prepare(std::shared_ptr<const Model> model, const RunOptions& options) override {
    if (options.tf32) return usage_error("executor 'cpu' has no TF32: leave --tf32 off");
    if (options.keep_casts) return usage_error("--keep-casts is for reference:double; executor 'cpu' keeps all casts");
    BufferPoolOptions pool_options;
    pool_options.poison = options_.poison_buffers;
    auto session = std::make_unique<CpuSession>(std::move(model), options, BufferPool::create(pool_options));
    PX_TRY(session->prepare());
    return std::unique_ptr<Session>(std::move(session));
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
