// SPDX-License-Identifier: Apache-2.0
// `parallax extract` and `reduce`: models made from models.
#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/base/shown_text.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/executors/default_executors.h"
#include "inspector/workbench/reduce/reduce.h"
#include "inspector/workbench/transforms/extract.h"

namespace parallax::cli {
namespace {

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
    common_.declare_force(app);
  }

  NamedFiles files() const override {
    NamedFiles named{{model_}, {}, {output_folder()}, common_.force};
    inputs_.name_files(named);
    return named;
  }

  Result<int> execute() override {
    common_.apply();
    PX_TRY(refuse_dump(model_));
    request_.run.model = model_;
    request_.run.executors = {PX_TRY(one_executor("extract", executor_))};
    request_.run.inputs = PX_TRY(inputs_.request());
    request_.run.options.seed = inputs_.seed;
    PX_TRY(mode_.apply(request_.run));
    request_.directory = output_folder();
    request_.run.message = [](const std::string& sentence) { log_info(sentence); };
    const ExtractResult result = PX_TRY(extract_part(request_, executor_factory()));
    for (const std::string& note : result.notes) log_info(note);
    print(common_.json ? extract_to_json(result) + "\n" : extract_to_text(result));
    return 0;
  }

 private:
  std::string output_folder() const {
    return request_.directory.empty() ? default_folder(model_, "part") : request_.directory;
  }

  std::string model_, executor_ = "reference";
  ExtractRequest request_;
  InputOptions inputs_;
  ModeOptions mode_;
  CommonOptions common_;
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
    common_.declare_force(app);
  }

  NamedFiles files() const override {
    NamedFiles named{{model_, request_.run.against, policy_.file}, {}, {output_folder()}, common_.force};
    inputs_.name_files(named);
    return named;
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
      print_message(fmt::format("parallax: {}\n", one_safe_line(result.explanation)));
    }
    return result.fails ? 0 : 1;
  }

 private:
  std::string output_folder() const {
    return request_.directory.empty() ? default_folder(model_, "reduced") : request_.directory;
  }

  Status fill_request() {
    RunRequest& run = request_.run;
    for (const std::string* model : {&model_, &run.against}) PX_TRY(refuse_dump(*model));
    run.model = model_;
    if (!executors_.empty()) {
      run.executors = PX_TRY(parse_executors(executors_));
    } else if (!request_.check.text.empty() || !run.against.empty()) {
      run.executors = default_executors(true);
    }
    PX_TRY(apply_arguments(inputs_, mode_, policy_, run));
    request_.directory = output_folder();
    request_.script_options = script_options(inputs_.seed, mode_, policy_);
    return {};
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
