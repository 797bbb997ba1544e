// SPDX-License-Identifier: Apache-2.0
// `parallax generate`.
#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/base/mapped_file.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/workbench/generate/generation_report.h"
#include "inspector/workbench/generate/generator.h"
#include "inspector/workbench/report_files.h"
#include "inspector/workbench/run_side.h"

namespace parallax::cli {
namespace {

struct NamedCache {
  std::string_view name;
  CacheMode mode;
};
constexpr NamedCache kCaches[] = {{"", CacheMode::automatic},
                                  {"in-place", CacheMode::in_place},
                                  {"copy", CacheMode::copy},
                                  {"none", CacheMode::none}};

struct NamedStopping {
  std::string_view name;
  EarlyStopping stopping;
};
constexpr NamedStopping kStoppings[] = {
    {"false", EarlyStopping::no}, {"true", EarlyStopping::yes}, {"never", EarlyStopping::never}};

class GenerateCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("MODEL", model_, "the decoder (.onnx), or a folder with the models that generate together")
        ->required();
    declare_prompts(app);
    declare_choice(app);
    app.add_option(
           "--with", executors_,
           "one executor, or two to compare: reference, reference:double, cpu, cuda (default: cpu; with --against "
           "reference)")
        ->type_name("EXEC[,EXEC]");
    app.add_option("--against", against_, "a second model: both get A's token at each step")->type_name("MODEL|DIR");
    app.add_option("--expect", expect_, "the tokens that must come out: expected.json, a list of ids, or sequences")
        ->type_name("F.json");
    app.add_option("--cache", cache_,
                   "where the past is kept (default: in the session where it can; copy with two sides)")
        ->type_name("in-place|copy|none");
    app.add_option("--map", map_, "roles of inputs and outputs whose names say nothing: {\"input_ids\": \"tokens\"}")
        ->type_name("F.json");
    app.add_option("--capture", capture_, "how much is kept of each value")->type_name("none|shape|stats|sample|all");
    app.add_option("--only", only_, "capture and list these values only, and the graphs' outputs; may be repeated")
        ->type_name("GLOB")
        ->allow_extra_args(false);
    app.add_option("--dump", dump_, "write the dumps into this folder")->type_name("DIR");
    mode_.declare(app);
    policy_.declare(app);
    reports_.declare(app);
    common_.declare(app, true);
    common_.declare_force(app);
  }

  NamedFiles files() const override {
    NamedFiles named{{model_, against_, prompt_file_, expect_, map_, policy_.file}, {dump_}, {}, common_.force};
    reports_.name_files(named);
    return named;
  }

  Result<int> execute() override {
    common_.apply();
    PX_TRY(reports_.check_distinct());
    for (const std::string* model : {&model_, &against_}) PX_TRY(refuse_dump(*model));
    GeneratorRequest opened = PX_TRY(make_opened());
    GenerationRequest request = PX_TRY(make_request());
    PX_TRY(check_effects(opened, request));
    ProgressBar bar("generating");
    const int64_t most = request.settings.max_new_tokens.value_or(0);
    request.on_step = [&bar, most](const GenerationStep& step) { bar.update(step.step + 1, most); };
    const Generation generation = PX_TRY(generate_once(opened, request, executor_factory()));
    for (const std::string& note : generation.notes) log_info(note);
    for (const std::string& file : generation.written) log_info(fmt::format("wrote {}", file));
    return show(generation);
  }

 private:
  void declare_prompts(CLI::App& app) {
    app.add_option("--prompt-ids", prompt_ids_, "token ids of the prompt; of several, ; between")
        ->type_name("1,2,3[;4,5]");
    app.add_option("--prompt-file", prompt_file_,
                   "prompts as a JSON list, {\"input_ids\", \"attention_mask\"}, or .npy")
        ->type_name("F.json|F.npy");
    app.add_option("--max-new-tokens", settings_.max_new_tokens, "tokens at most (default 20)")->type_name("N");
    app.add_option("--min-new-tokens", settings_.min_new_tokens, "no end token before so many")->type_name("N");
    app.add_option("--eos", eos_, "tokens that end a sequence (default: the model's files)")->type_name("ID,..|none");
    app.add_option("--pad", settings_.pad, "the token of padding")->type_name("ID");
    app.add_option("--start-ids", start_ids_, "what the decoder of an encoder-decoder begins with")->type_name("ID,..");
  }

  void declare_choice(CLI::App& app) {
    app.add_option("--beams", settings_.beams, "beam search with so many beams")->type_name("N");
    app.add_option("--length-penalty", settings_.length_penalty,
                   "a hypothesis' score is its sum / length^X (default 1)")
        ->type_name("X");
    app.add_option("--early-stopping", early_stopping_, "when a beam search ends (default false)")
        ->type_name("true|false|never");
    app.add_option("--return", settings_.returned, "the best so many beams (default 1)")->type_name("N");
    app.add_option("--no-repeat-ngram", settings_.no_repeat_ngram, "no n-gram of this size comes twice")
        ->type_name("N");
    app.add_option("--repetition-penalty", settings_.repetition_penalty, "makes what has come less likely; 1: off")
        ->type_name("X");
    app.add_flag("--sample", settings_.sample, "draw tokens by their probability");
    app.add_option("--temperature", settings_.temperature, "divides the logits (default 1)")->type_name("X");
    app.add_option("--top-k", settings_.top_k, "draw among the N best (default 50; 0: all)")->type_name("N");
    app.add_option("--top-p", settings_.top_p, "draw among the best that make up this share")->type_name("X");
    app.add_option("--min-p", settings_.min_p, "draw among those with this share of the best one's probability")
        ->type_name("X");
    app.add_option("--seed", settings_.seed, "of what is drawn (default 0)")->type_name("N");
  }

  Result<GeneratorRequest> make_opened() const {
    GeneratorRequest request;
    request.model = model_;
    request.against = against_;
    if (!executors_.empty()) {
      request.executors = PX_TRY(parse_executors(executors_));
    } else if (!against_.empty()) {
      request.executors = {"reference"};
    } else {
      request.executors = {"cpu"};
    }
    RunRequest mode;
    PX_TRY(mode_.apply(mode));
    mode.executors = request.executors;
    mode.against = against_;
    PX_TRY(check_options(mode));
    request.options = mode.options;
    request.options.seed = settings_.seed;
    request.fallback = mode.fallback;
    request.map_file = map_;
    request.message = [](const std::string& sentence) { log_info(sentence); };
    const auto* cache = std::ranges::find(kCaches, std::string_view(cache_), &NamedCache::name);
    if (cache == std::end(kCaches))
      return usage_error(fmt::format("--cache is '{}'; it must be in-place, copy or none", cache_));
    request.cache = cache->mode;
    return request;
  }

  static Status check_options(const RunRequest& mode) { return parallax::check_options(mode, executor_factory()); }

  Result<GenerationRequest> make_request() const {
    GenerationRequest request;
    request.settings = settings_;
    if (prompt_ids_.empty() == prompt_file_.empty())
      return usage_error("a prompt is given by one of --prompt-ids 1,2,3 and --prompt-file F.json");
    if (!prompt_ids_.empty()) {
      request.prompts = PX_TRY(parse_prompt_ids(prompt_ids_));
    } else {
      Prompts prompts = PX_TRY(read_prompt_file(prompt_file_));
      request.prompts = std::move(prompts.ids);
      request.masks = std::move(prompts.masks);
    }
    if (!eos_.empty()) request.settings.eos = PX_TRY(parse_token_list("--eos", eos_));
    if (!start_ids_.empty()) request.settings.start_ids = PX_TRY(parse_token_list("--start-ids", start_ids_));
    if (!early_stopping_.empty()) {
      const auto* stopping = std::ranges::find(kStoppings, std::string_view(early_stopping_), &NamedStopping::name);
      if (stopping == std::end(kStoppings))
        return usage_error(fmt::format("--early-stopping is '{}'; it must be true, false or never", early_stopping_));
      request.settings.early_stopping = stopping->stopping;
    }
    request.expected_file = expect_;
    if (!capture_.empty()) request.capture = PX_TRY(parse_capture(capture_));
    request.only = only_;
    request.dump_directory = dump_;
    request.policy = PX_TRY(policy_.make());
    request.error_pictures = reports_.needs_error_pictures();
    return request;
  }

  Status check_effects(const GeneratorRequest& opened, const GenerationRequest& request) const {
    if (opened.has_two_sides()) return {};
    constexpr std::string_view kWays = "and here is one: give --with two executors, or --against";
    ReportOptions others = reports_;
    others.html.clear();
    if (others.asks_for_files() || reports_.top.has_value())
      return usage_error(fmt::format("reports say how two sides compare, {}", kWays));
    if (policy_.is_given()) return usage_error(fmt::format("tolerances judge how two sides compare, {}", kWays));
    const bool captures = request.capture.has_value() || !request.only.empty();
    if (captures && dump_.empty())
      return usage_error("--capture and --only with one side need --dump: there is nowhere else for the values to go");
    return {};
  }

  Status write_files(const Generation& generation) const {
    std::vector<std::string> written;
    if (generation.comparison.has_value()) {
      const ReportFiles files{reports_.csv,
                              reports_.junit,
                              reports_.html,
                              reports_.dot,
                              reports_.svg,
                              reports_.netron,
                              reports_.model_explorer,
                              kept_command(),
                              generation_steps_html(generation)};
      written = PX_TRY(write_reports(files, *generation.comparison, &generation.model_a->graph));
    } else if (!reports_.html.empty()) {
      PX_TRY(write_file(reports_.html, generation_to_html(generation, kept_command())));
      written.push_back(reports_.html);
    }
    for (const std::string& file : written) log_info(fmt::format("wrote {}", file));
    return {};
  }

  Result<int> show(const Generation& generation) const {
    const Status written = write_files(generation);
    if (common_.json) {
      print(generation_to_json(generation, written.ok() ? nullptr : &written.error()) + "\n");
      if (!written.ok()) return exit_code(written.error().code);
    } else {
      print(generation_to_text(generation));
      if (!written.ok()) return written.error();
    }
    return generation.passed() ? 0 : 1;
  }

  std::string model_, against_, executors_, prompt_ids_, prompt_file_, eos_, start_ids_, early_stopping_, expect_,
      cache_, map_, capture_, dump_;
  std::vector<std::string> only_;
  GenerationSettings settings_;
  ModeOptions mode_;
  PolicyOptions policy_;
  ReportOptions reports_;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> make_generate_command() { return std::make_unique<GenerateCommand>(); }

}  // namespace parallax::cli
