// SPDX-License-Identifier: Apache-2.0
// Sessions by what is asked of them, dumps, and the loop in between.
#include "inspector/workbench/generate/generator.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "inspector/base/input_files.h"
#include "inspector/base/memory_budget.h"
#include "inspector/base/output_group.h"
#include "inspector/exec/executor_names.h"
#include "inspector/workbench/generate/language_model.h"
#include "inspector/workbench/generate/runner.h"
#include "inspector/workbench/generate/settings.h"

namespace parallax {

using generate::LanguageModel;
using generate::ModelSide;
using generate::PromptBatch;
using generate::SideOptions;
using generate::SideRunner;

namespace {

// The key of a prepared session: a side, with or without the logits of every position.
struct SideKey {
  bool is_b = false, last_position_only = false;
  CacheMode cache = CacheMode::automatic;
  auto operator<=>(const SideKey&) const = default;
};

struct Dumps {
  std::unique_ptr<DumpWriter> a, b;
};

double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto index = static_cast<size_t>(share * static_cast<double>(sorted.size()));
  return sorted[std::min(index, sorted.size() - 1)];
}

void add_times(const std::vector<GenerationStep>& steps, size_t tokens, Generation& generation) {
  if (steps.empty()) return;
  std::vector<double> decode;
  double total = 0;
  for (const GenerationStep& step : steps) {
    total += step.ms;
    if (step.step > 0) decode.push_back(step.ms);
  }
  std::ranges::sort(decode);
  generation.prefill_ms = steps.front().ms;
  generation.decode_min_ms = quantile(decode, 0);
  generation.decode_median_ms = quantile(decode, 0.5);
  generation.decode_p95_ms = quantile(decode, 0.95);
  generation.tokens_per_second = total > 0 ? 1000 * static_cast<double>(tokens) / total : 0;
}

// The first token that is not the expected one.
std::optional<TokenDivergence> first_unexpected(const Generation& generation) {
  constexpr double kTie = 1e-3;  // of logits of ordinary size, in float32
  std::optional<TokenDivergence> first;
  const size_t rows = std::min(generation.sequences.size(), generation.expected.size());
  for (size_t row = 0; row < rows; ++row) {
    const auto &made = generation.sequences[row], &expected = generation.expected[row];
    const size_t length = std::max(made.size(), expected.size());
    for (size_t step = 0; step < length; ++step) {
      const int64_t a = step < expected.size() ? expected[step] : -1, b = step < made.size() ? made[step] : -1;
      if (a == b) continue;
      const bool has_margin = generation.settings.beams == 1 && step < generation.steps.size();
      const double margin = has_margin ? generation.steps[step].margin[row] : 0;
      const TokenDivergence divergence{static_cast<int64_t>(step),
                                       static_cast<int64_t>(row),
                                       a,
                                       b,
                                       margin,
                                       has_margin && a >= 0 && b >= 0 && margin <= kTie};
      if (!first.has_value() || divergence.step < first->step) first = divergence;
      break;
    }
  }
  return first;
}

}  // namespace

class Generator::Impl {
 public:
  Impl(GeneratorRequest request, ExecutorFactory make_executor)
      : request_(std::move(request)),
        make_executor_(std::move(make_executor)),
        budget_(MemoryBudget::create(request_.options.memory_limit_bytes)) {}

  Status open();
  Result<Generation> generate(const GenerationRequest& request);
  CancelToken cancel_token() const { return cancel_; }
  const GenerationModel& model() const { return report_; }
  const GeneratorRequest& request() const { return request_; }
  std::vector<std::string> roles_text() const;

 private:
  RunRequest run_request() const;
  bool has_two_sides() const { return request_.has_two_sides(); }
  const LanguageModel& model_b() const { return against_.has_value() ? *against_ : model_; }
  Result<ModelSide*> side(bool is_b, const SideOptions& options);
  SideOptions options_for_request(const GenerationRequest& request, bool has_padding) const;
  Result<PromptBatch> make_batch(const GenerationRequest& request, const UsedSettings& settings) const;
  Result<Dumps> make_dumps(const GenerationRequest& request, const ModelSide& a, const ModelSide* b,
                           Generation& generation) const;
  Result<Generation> run(const GenerationRequest& request);
  Status conclude_run(const GenerationRequest& request, generate::LoopResult loop, Generation& generation) const;

  GeneratorRequest request_;
  ExecutorFactory make_executor_;
  MemoryBudget::Owner budget_;
  CancelToken cancel_;
  LanguageModel model_;
  std::optional<LanguageModel> against_;
  GenerationModel report_;
  std::map<SideKey, std::unique_ptr<ModelSide>> sides_;
};

Status Generator::Impl::open() {
  const MemoryBudget::ThreadScope scope(budget_.get());
  if (request_.executors.empty() || request_.executors.size() > 2)
    return usage_error(
        fmt::format("{} executors are named; one runs the models, or two are compared", request_.executors.size()));
  PX_TRY(check_sides(request_.executors, request_.has_against()));
  for (const std::string& name : request_.executors) PX_TRY(make_executor_(name));
  generate::RoleMap map =
      request_.map_file.empty() ? generate::RoleMap() : PX_TRY(generate::read_role_map(request_.map_file));
  for (const auto& [role, name] : request_.roles) map[role] = name;
  model_ = PX_TRY(generate::open_language_model(request_.model, request_.models, map));
  if (request_.has_against()) {
    against_ = PX_TRY(generate::open_language_model(request_.against, request_.against_models, map));
    if (against_->encoder.has_value() != model_.encoder.has_value())
      return usage_error(
          fmt::format("one of '{}' and '{}' has an encoder and the other has none; two sides are models "
                      "of one kind",
                      request_.model, request_.against));
  }
  report_ = generate::report_of(model_);
  if (request_.message) {
    for (const std::string& sentence : roles_text()) request_.message(sentence);
  }
  const SideOptions options = options_for_request({}, false);
  PX_TRY(side(false, options));
  if (has_two_sides()) PX_TRY(side(true, options));
  return {};
}

std::vector<std::string> Generator::Impl::roles_text() const {
  std::vector<std::string> sentences = {generate::describe(model_)};
  if (against_.has_value()) sentences.push_back("B: " + generate::describe(*against_));
  return sentences;
}

RunRequest Generator::Impl::run_request() const {
  RunRequest request;
  request.model = request_.model;
  request.against = request_.against;
  request.executors = request_.executors;
  request.options = request_.options;
  request.options.states.clear();
  request.options.cancel = cancel_;
  request.fallback = request_.fallback;
  request.message = request_.message;
  return request;
}

// Observed values are those of the file's own graph.
SideOptions Generator::Impl::options_for_request(const GenerationRequest& request, bool has_padding) const {
  const bool is_watched = has_two_sides() || request.observer != nullptr || !request.dump_directory.empty();
  SideOptions options;
  options.cache = request_.cache;
  if (has_two_sides() && options.cache == CacheMode::automatic) options.cache = CacheMode::copy;
  const bool is_last_one_padding = has_padding && model_.pads_right();
  options.last_position_only = !request_.all_logits && !is_watched && !is_last_one_padding;
  return options;
}

Result<ModelSide*> Generator::Impl::side(bool is_b, const SideOptions& options) {
  std::unique_ptr<ModelSide>& found = sides_[SideKey{is_b, options.last_position_only, options.cache}];
  if (found == nullptr) {
    const std::string& executor = is_b ? request_.executors.back() : request_.executors.front();
    auto prepared = ModelSide::prepare(is_b ? model_b() : model_, executor, run_request(), options, make_executor_);
    if (!prepared.ok()) return std::move(prepared).error();
    found = prepared.take();
  }
  return found.get();
}

Result<Dumps> Generator::Impl::make_dumps(const GenerationRequest& request, const ModelSide& a, const ModelSide* b,
                                          Generation& generation) const {
  Dumps dumps;
  if (request.dump_directory.empty()) return dumps;
  if (request.capture == CaptureLevel::none)
    return usage_error("--dump keeps values, and --capture none keeps none: leave one of the two out");
  PX_TRY(admit_output(request.dump_directory));
  PX_TRY(make_output_folder(request.dump_directory));
  DumpWriterOptions options;
  options.level = request.capture.value_or(CaptureLevel::all);
  options.only = request.only;
  const auto make = [&](const ModelSide& side, const char* letter) -> Result<std::unique_ptr<DumpWriter>> {
    const std::string path =
        fmt::format("{}/{}{}.plx", request.dump_directory, letter, file_name_of(side.stepping().executor->name()));
    auto writer = PX_TRY(DumpWriter::create(path, options));
    generation.written.push_back(path);
    PX_TRY(writer->begin_run(side.stepping().info));
    return writer;
  };
  dumps.a = PX_TRY(make(a, b == nullptr ? "" : "A-"));
  if (b != nullptr) dumps.b = PX_TRY(make(*b, "B-"));
  return dumps;
}

Status Generator::Impl::conclude_run(const GenerationRequest& request, generate::LoopResult loop,
                                     Generation& generation) const {
  size_t tokens = 0;
  for (const auto& sequence : loop.sequences) tokens += sequence.size();
  add_times(loop.steps, tokens, generation);
  generation.sequences = std::move(loop.sequences);
  generation.scores = std::move(loop.scores);
  generation.stopped = std::move(loop.stopped);
  generation.steps = std::move(loop.steps);
  generation.first_token_apart = loop.first_token_apart;
  if (request.expected.empty() && request.expected_file.empty()) return {};
  if (const auto unexpected = first_unexpected(generation); unexpected.has_value()) {
    generation.is_expectation_missed = true;
    if (!generation.first_token_apart.has_value()) generation.first_token_apart = unexpected;
  }
  return {};
}

Result<PromptBatch> Generator::Impl::make_batch(const GenerationRequest& request, const UsedSettings& settings) const {
  PromptBatch batch = PX_TRY(generate::make_batch(model_, request, settings));
  const int64_t limit = request_.options.memory_limit_bytes;
  PX_TRY(generate::check_beams(model_, batch, settings, limit > 0 ? limit : physical_memory_bytes()));
  if (!against_.has_value()) return batch;
  PX_TRY(generate::check_padding(*against_, batch));
  if (batch.decoder.has_padding() && model_.pads_right() != against_->pads_right()) {
    const bool is_a = model_.pads_right();
    return unsupported(fmt::format(
        "'{}' takes padded prompts with the padding after their tokens and '{}' before them, so that their values have "
        "other positions; two sides need one layout. Compare them on one prompt after the other",
        is_a ? model_.title : against_->title, is_a ? against_->title : model_.title));
  }
  return batch;
}

Result<Generation> Generator::Impl::run(const GenerationRequest& request) {
  Generation generation;
  generation.model = report_;
  generation.settings = PX_TRY(generate::resolve_settings(request.settings, model_.defaults));
  const PromptBatch batch = PX_TRY(make_batch(request, generation.settings));
  const SideOptions options = options_for_request(request, batch.decoder.has_padding());
  ModelSide* const a = PX_TRY(side(false, options));
  ModelSide* const b = has_two_sides() ? PX_TRY(side(true, options)) : nullptr;
  generation.settings.cache = a->cache();
  generate::LoopRequest loop{generate::histories_of(model_, batch), generation.settings, request.on_step, cancel_};
  generation.expected = PX_TRY(generate::expected_tokens(request, generation.settings, loop.histories));
  std::optional<generate::CallComparison> comparison;
  if (b != nullptr) {
    generate::CallComparisonOptions compare{request.policy,         request.capture, request.only,
                                            request.error_pictures, cancel_,         request_.message};
    comparison.emplace(*a, *b, run_request(), std::move(compare), make_executor_);
  }
  const Dumps dumps = PX_TRY(make_dumps(request, *a, b, generation));
  SideRunner runner(*a, b, batch, {request.observer, dumps.a.get(), dumps.b.get()},
                    comparison.has_value() ? &*comparison : nullptr);
  auto result = generate::run_loop(runner, loop);
  for (DumpWriter* dump : {dumps.a.get(), dumps.b.get()}) {
    if (dump == nullptr) continue;
    const Status ended = dump->end_run(result.ok());
    const Status finished = dump->finish(result.ok() || result.error().code == ErrorCode::execution);
    if (result.ok() && !ended.ok()) return Error(ended.error());
    if (result.ok() && !finished.ok()) return Error(finished.error());
  }
  if (!result.ok()) return std::move(result).error();
  PX_TRY(conclude_run(request, result.take(), generation));
  const auto describe = [](const ModelSide& side, Side which, double wall_ms) {
    ComparedExecution execution = describe_side(side.stepping(), which);
    execution.wall_ms = wall_ms;
    execution.costs = RunCosts{side.prepare_ms(), side.peak_bytes()};
    return execution;
  };
  generation.executions.push_back(describe(*a, Side::a, runner.wall_ms_a()));
  if (b != nullptr) generation.executions.push_back(describe(*b, Side::b, runner.wall_ms_b()));
  generation.peak_bytes = a->peak_bytes();
  generation.model_a = model_.stepping().model;
  if (comparison.has_value()) {
    generation.comparison = comparison->take();
    generation.comparison->executions = generation.executions;
  }
  return generation;
}

Result<Generation> Generator::Impl::generate(const GenerationRequest& request) {
  const MemoryBudget::ThreadScope scope(budget_.get());
  auto result = run(request);
  if (cancel_.is_cancelled()) {  // sessions keep their token: the next generation needs others
    sides_.clear();
    cancel_ = {};
  }
  return result;
}

Generator::Generator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Generator::~Generator() = default;

Result<std::unique_ptr<Generator>> Generator::open(GeneratorRequest request, ExecutorFactory make_executor) {
  auto impl = std::make_unique<Impl>(std::move(request), std::move(make_executor));
  PX_TRY(impl->open());
  return std::unique_ptr<Generator>(new Generator(std::move(impl)));
}

Result<Generation> Generator::generate(const GenerationRequest& request) { return impl_->generate(request); }
CancelToken Generator::cancel_token() const { return impl_->cancel_token(); }
const GenerationModel& Generator::model() const { return impl_->model(); }
const GeneratorRequest& Generator::request() const { return impl_->request(); }
std::vector<std::string> Generator::roles_text() const { return impl_->roles_text(); }

Result<Generation> generate_once(const GeneratorRequest& model, const GenerationRequest& request,
                                 const ExecutorFactory& make_executor) {
  const auto generator = PX_TRY(Generator::open(model, make_executor));
  return generator->generate(request);
}

}  // namespace parallax
