// SPDX-License-Identifier: Apache-2.0
// `parallax run` and `parallax bench`.
#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/base/memory_budget.h"
#include "inspector/base/text.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/render/report_text.h"
#include "inspector/workbench/inputs/data_sources.h"
#include "inspector/workbench/reports.h"
#include "inspector/workbench/run.h"

namespace parallax::cli {
namespace {

class RunCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("MODEL", model_, "the model to run (.onnx, .textproto)")->required();
    app.add_option("--against", against_, "a second model: same inputs, values matched one by one")
        ->type_name("B.onnx");
    app.add_option(
           "--with", executors_,
           "one executor, or two to compare: reference, reference:double, cpu, cuda, onnxruntime, torch:FILE.pt2, "
           "openvino, tensorrt, cmd:COMMAND (default: reference and cuda, or cpu where there is no GPU; with --against "
           "reference)")
        ->type_name("EXEC[,EXEC]");
    app.add_option("--capture", capture_,
                   "how much is kept of each value (default: all with two sides or --dump, else none)")
        ->type_name("none|shape|stats|sample|all");
    app.add_option("--capture-limit", capture_limit_, "tensors larger than this are sampled, not stored in full")
        ->type_name("BYTES");
    app.add_option("--only", only_, "capture and compare these values only, and the graph's outputs; may be repeated")
        ->type_name("GLOB")
        ->allow_extra_args(false);
    app.add_option("--dump", dump_, "write the dumps into this folder")->type_name("DIR");
    app.add_option("--repeat", repeat_,
                   "run N times on one executor and require bit-identical results (determinism check)")
        ->type_name("N")
        ->check(whole_number(2, 1'000'000));
    app.add_option("--baseline", baseline_, "compare with a kept dump")->type_name("F.plx");
    app.add_option("--save-baseline", save_baseline_, "write a dump of statistics for later --baseline runs")
        ->type_name("F.plx");
    inputs_.declare(app);
    mode_.declare(app);
    policy_.declare(app);
    reports_.declare(app);
    common_.declare(app, true);
    common_.declare_force(app);
  }

  NamedFiles files() const override {
    NamedFiles named{{model_, against_, baseline_, policy_.file}, {save_baseline_, dump_}, {}, common_.force};
    inputs_.name_files(named);
    reports_.name_files(named);
    return named;
  }

  Result<int> execute() override {
    common_.apply();
    PX_TRY(reports_.check_distinct());
    for (const std::string* model : {&model_, &against_}) PX_TRY(refuse_dump(*model));
    RunRequest request = PX_TRY(make_request());
    const std::vector<Sample> samples = PX_TRY(samples_of(request.inputs, inputs_.sources, model_));
    request.inputs = samples.front().inputs;
    PX_TRY(check_all_effects(request));
    if (samples.size() > 1) PX_TRY(check_samples(samples.size()));
    const MemoryBudget::Scope budget(request.options.memory_limit_bytes);  // reports count, too
    ProgressBar bar("comparing");
    request.progress = [&bar](int64_t done, int64_t total) { bar.update(done, total); };
    std::vector<SampleRun> runs;
    for (const Sample& sample : samples) {
      request.inputs = sample.inputs;
      const std::string prefix = samples.size() > 1 ? sample.name + ": " : "";
      request.message = [&prefix](const std::string& sentence) { log_info(prefix + sentence); };
      if (samples.size() > 1 && !dump_.empty()) request.dump_directory = fmt::format("{}/{}", dump_, sample.name);
      auto result = run_models(request, executor_factory());
      if (!result.ok() && samples.size() > 1) return std::move(result).error().with_context(sample.name);
      RunResult run = PX_TRY(std::move(result));
      runs.push_back({sample.name, std::move(run)});
      for (const std::string& note : runs.back().result.notes) log_info(prefix + note);
      for (const std::string& file : runs.back().result.written) log_info(fmt::format("wrote {}", file));
    }
    const RunResult& worst = runs[worst_sample(runs)].result;
    if (worst.comparison.has_value()) {
      for (const std::string& glob : idle_globs(has_two_sides(request) ? request.only : std::vector<std::string>{},
                                                request.policy, *worst.comparison))
        log_warning(fmt::format("'{}' matches no value", glob));
    }
    if (!worst.comparison.has_value()) PX_TRY(refuse_comparing());
    if (runs.size() > 1) return show_samples(runs, has_two_sides(request));
    if (has_two_sides(request)) return reports_.write(*worst.comparison, &worst.model_a->graph, common_.json);
    return show_one_side(worst);
  }

 private:
  // Options that would change nothing are refused, those of reports, too.
  Status check_all_effects(const RunRequest& request) const {
    PX_TRY(check_effects(request));
    if (has_two_sides(request)) return {};
    if (reports_.top.has_value())
      return usage_error("--top lists the worst values of two sides, and here is one (parallax run --help)");
    return request.inputs.source.empty() ? refuse_comparing() : Status();  // a source may hold outputs
  }

  // Options that belong to one run.
  Status check_samples(size_t count) const {
    const std::pair<std::string_view, bool> single[] = {
        {"--repeat", repeat_ > 0}, {"--baseline", !baseline_.empty()}, {"--save-baseline", !save_baseline_.empty()}};
    for (const auto& [option, is_given] : single) {
      if (is_given) return usage_error(fmt::format("{} takes one sample, and --inputs has {}", option, count));
    }
    return {};
  }

  // The list of samples, then the worst one's report; files of reports are of the worst, too.
  Result<int> show_samples(const std::vector<SampleRun>& runs, bool two_sides) const {
    const SampleRun& worst = runs[worst_sample(runs)];
    const bool has_verdict = worst.result.comparison.has_value();
    if (!common_.json) {
      print(samples_to_text(runs));
      for (const SampleRun& run : runs) {
        if (has_verdict && &run != &worst) continue;
        print(fmt::format("\n{}:\n", run.name));
        if (!two_sides) print(single_run_to_text(run.result));
        if (has_verdict)
          print_colored(comparison_to_text(*run.result.comparison,
                                           {two_sides ? reports_.top.value_or(kDefaultTop) : 0, stdout_takes_color()}));
      }
    }
    if (has_verdict && reports_.asks_for_files()) log_info(fmt::format("reports are of sample {}", worst.name));
    const Status written =
        has_verdict ? reports_.write_files(*worst.result.comparison, &worst.result.model_a->graph) : Status();
    if (common_.json) print(samples_to_json(runs, written.ok() ? nullptr : &written.error()) + "\n");
    if (!written.ok() && common_.json) return exit_code(written.error().code);
    if (!written.ok()) return written.error();
    return has_verdict ? exit_code_of(*worst.result.comparison) : 0;
  }

  // One side is compared with nothing but the outputs of a data set.
  Status refuse_comparing() const {
    constexpr std::string_view kWays =
        "and here is one: give --with two executors, --against, --baseline, or --inputs with outputs";
    if (reports_.asks_for_files()) return usage_error(fmt::format("reports say how two sides compare, {}", kWays));
    if (policy_.is_given()) return usage_error(fmt::format("tolerances judge how two sides compare, {}", kWays));
    return {};
  }

  Result<int> show_one_side(const RunResult& result) const {
    const bool has_verdict = result.comparison.has_value();
    const Status written = has_verdict ? reports_.write_files(*result.comparison, &result.model_a->graph) : Status();
    if (common_.json) {
      print(single_run_to_json(result, written.ok() ? nullptr : &written.error()) + "\n");
      if (!written.ok()) return exit_code(written.error().code);
    } else {
      print(single_run_to_text(result));
      if (has_verdict) print_colored(comparison_to_text(*result.comparison, {0, stdout_takes_color()}));
      if (!written.ok()) return written.error();
    }
    return has_verdict ? exit_code_of(*result.comparison) : 0;
  }

  Result<RunRequest> make_request() const {
    RunRequest request;
    request.model = model_;
    request.against = against_;
    request.executors = PX_TRY(
        executors_of(executors_, !against_.empty() || repeat_ > 0 || !baseline_.empty() || !save_baseline_.empty()));
    request.inputs = PX_TRY(inputs_.without_source());
    request.options.seed = inputs_.seed;
    PX_TRY(mode_.apply(request));
    if (!capture_.empty()) request.capture = PX_TRY(parse_capture(capture_));
    if (!capture_limit_.empty()) request.capture_limit_bytes = PX_TRY(parse_bytes("--capture-limit", capture_limit_));
    request.only = only_;
    request.dump_directory = dump_;
    request.policy = PX_TRY(policy_.make());
    request.error_pictures = reports_.needs_error_pictures();
    request.repeat = repeat_;
    request.baseline = baseline_;
    request.save_baseline = save_baseline_;
    return request;
  }

  std::string model_, against_, executors_, capture_, capture_limit_, dump_, baseline_, save_baseline_;
  std::vector<std::string> only_;
  int repeat_ = 0;
  InputOptions inputs_;
  ModeOptions mode_;
  PolicyOptions policy_;
  ReportOptions reports_;
  CommonOptions common_;
};

class BenchCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("MODEL", model_, "the model to time")->required();
    app.add_option("--with", executor_, "the executor (default: cuda where there is a GPU, else cpu)")
        ->type_name("EXEC");
    app.add_option("--iterations", iterations_, "timed runs after one warm-up (default 10)")
        ->type_name("N")
        ->check(whole_number(1, 1'000'000));
    inputs_.declare(app);
    mode_.declare(app);
    common_.declare(app, true);
  }

  Result<int> execute() override {
    common_.apply();
    RunRequest request;
    PX_TRY(refuse_dump(model_));
    request.model = model_;
    request.executors = {PX_TRY(one_executor("bench", executor_))};
    request.inputs = PX_TRY(inputs_.request());
    request.options.seed = inputs_.seed;
    PX_TRY(mode_.apply(request));
    request.message = [](const std::string& sentence) { log_info(sentence); };
    const BenchResult result = PX_TRY(bench_model(request, iterations_, executor_factory()));
    print(common_.json ? bench_to_json(result) + "\n" : bench_to_text(result));
    return 0;
  }

 private:
  std::string model_, executor_;
  int64_t iterations_ = 10;
  InputOptions inputs_;
  ModeOptions mode_;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> make_run_command() { return std::make_unique<RunCommand>(); }
std::unique_ptr<Command> make_bench_command() { return std::make_unique<BenchCommand>(); }

}  // namespace parallax::cli
