// `parallax extract` and `reduce`: models made from models.
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/base/text.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/workbench/extract.h"
#include "inspector/workbench/reduce.h"
#include "inspector/workbench/reduce_shell.h"

namespace parallax::cli {
namespace {

// "cnn/model.onnx" -> "model-part", in the folder the program was called in.
std::string default_folder(const std::string& model, const char* kind) {
  return fmt::format("{}-{}", std::filesystem::path(model).stem().string(), kind);
}

class ExtractCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("MODEL", model_, "the model to cut")->required();
    app.add_option("--from", request_.from, "values that become inputs (default: the graph's inputs, as far as needed)")
        ->type_name("PATH...");
    app.add_option("--to", request_.to, "values that become outputs")->type_name("PATH...")->required();
    app.add_option("-o", request_.directory, "the folder to write (default: <model>-part)")->type_name("DIR");
    app.add_option("--with", executor_, "the executor that computes the values (default: reference)")
        ->type_name("EXEC");
    inputs_.declare(app);
    mode_.declare(app);
    common_.declare(app, true);
  }

  Result<int> execute() override {
    common_.apply();
    PX_TRY(refuse_dump(model_));
    request_.run.model = model_;
    request_.run.executors = {PX_TRY(parse_executor("extract", executor_))};
    request_.run.inputs = PX_TRY(inputs_.request());
    request_.run.options.seed = inputs_.seed;
    PX_TRY(mode_.apply(request_.run));
    if (request_.directory.empty()) request_.directory = default_folder(model_, "part");
    request_.run.message = [](const std::string& sentence) { log_info(sentence); };
    const ExtractResult result = PX_TRY(extract_part(request_, executor_factory()));
    for (const std::string& note : result.notes) log_info(note);
    print(common_.json ? extract_to_json(result) + "\n" : extract_to_text(result));
    return 0;
  }

 private:
  std::string model_, executor_ = "reference";
  ExtractRequest request_;
  InputOptions inputs_;
  ModeOptions mode_;
  CommonOptions common_;
};

// Options as they stand behind `parallax run` in a script.
class ScriptOptions {
 public:
  void add(std::string_view option, const std::string& value, std::string_view default_value = "") {
    if (value != default_value) text_ += fmt::format(" {} {}", option, shell_quoted(value));
  }
  void add_file(std::string_view option, const std::string& path) {
    if (!path.empty()) add(option, std::filesystem::absolute(path).string());
  }
  void add_flag(std::string_view option, bool is_set) {
    if (is_set) text_ += fmt::format(" {}", option);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class ReduceCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("MODEL", model_, "the model that fails")->required();
    app.add_option("--check", request_.check.text,
                   "a command that fails; {model} stands for a candidate's file, {inputs} for its test_data_set folder")
        ->type_name("CMD");
    app.add_option("--fail-code", request_.check.fail_codes,
                   "exit code of --check that means failure (default: any but 0)")
        ->type_name("N")
        ->check(whole_number(0, 255))
        ->allow_extra_args(false);
    app.add_option("--fail-regex", request_.check.fail_regex, "a line of --check's output that means failure")
        ->type_name("REGEX");
    app.add_option("--timeout", request_.check.timeout_s, "--check is killed after this time, and has not failed then")
        ->type_name("SECONDS")
        ->check(number_from_zero());
    app.add_option("--against", request_.run.against, "a second model: what fails is their comparison")
        ->type_name("B.onnx");
    app.add_option("--with", executors_, "two executors to compare; one with --check (default: reference) or --against")
        ->type_name("EXEC[,EXEC]");
    app.add_option("-o", request_.directory, "the folder to write (default: <model>-reduced)")->type_name("DIR");
    inputs_.declare(app);
    mode_.declare(app);
    policy_.declare(app);
    common_.declare(app, true);
  }

  Result<int> execute() override {
    common_.apply();
    PX_TRY(fill_request());
    request_.run.message = [](const std::string& sentence) { log_info(sentence); };
    const ReduceResult result = PX_TRY(reduce_model(request_, executor_factory()));
    for (const std::string& note : result.notes) log_info(note);
    if (common_.json) {
      print(reduce_to_json(result) + "\n");
    } else if (result.fails) {
      print(reduce_to_text(result));
    } else {
      print_message(fmt::format("parallax: {}\n", result.why_not));
    }
    return result.fails ? 0 : 1;
  }

 private:
  Status fill_request() {
    RunRequest& run = request_.run;
    for (const std::string* model : {&model_, &run.against}) PX_TRY(refuse_dump(*model));
    run.model = model_;
    if (!executors_.empty()) {
      const auto names = split(executors_, ',');
      if (names.size() > 2) return usage_error(fmt::format("--with '{}': one or two executors", executors_));
      run.executors.assign(names.begin(), names.end());
    } else if (!request_.check.text.empty() || !run.against.empty()) {
      run.executors = default_executors(true);
    }
    run.inputs = PX_TRY(inputs_.request());
    run.options.seed = inputs_.seed;
    PX_TRY(mode_.apply(run));
    run.policy = PX_TRY(policy_.make());
    if (request_.directory.empty()) request_.directory = default_folder(model_, "reduced");
    request_.script_options = script_options();
    return {};
  }

  std::string script_options() const {
    ScriptOptions options;
    options.add("--seed", std::to_string(inputs_.seed), "0");
    options.add("--tf32", mode_.tf32, "off");
    options.add("--accumulate", mode_.accumulate, "default");
    options.add("--rewrite", mode_.rewrite, "default");
    options.add("--fallback", mode_.fallback);
    options.add("--memory-limit", mode_.memory_limit);
    options.add_flag("--observe-all", mode_.observe_all);
    options.add_flag("--keep-casts", mode_.keep_casts);
    options.add("--policy", policy_.policy);
    options.add("--rtol", policy_.rtol);
    options.add("--atol", policy_.atol);
    for (const std::string& rule : policy_.per) options.add("--per", rule);
    options.add_file("--policy-file", policy_.file);
    return options.text();
  }

  std::string model_, executors_;
  ReduceRequest request_;
  InputOptions inputs_;
  ModeOptions mode_;
  PolicyOptions policy_;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> make_extract_command() { return std::make_unique<ExtractCommand>(); }
std::unique_ptr<Command> make_reduce_command() { return std::make_unique<ReduceCommand>(); }

}  // namespace parallax::cli
