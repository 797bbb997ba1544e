// SPDX-License-Identifier: Apache-2.0
// `parallax profile`.
#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/base/mapped_file.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/workbench/profile.h"

namespace parallax::cli {
namespace {

class ProfileCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("MODEL", model_, "the model to profile")->required();
    app.add_option("--with", executor_, "the executor (default: cuda where there is a GPU, else cpu)")
        ->type_name("EXEC");
    app.add_option("--iterations", iterations_, "timed runs after one warm-up (default 5)")
        ->type_name("N")
        ->check(whole_number(1, 1'000'000));
    app.add_option("--top", top_, "most expensive nodes listed (default 20; -1: all)")
        ->type_name("N")
        ->check(whole_number(-1, 1'000'000'000));
    app.add_option("--trace", trace_, "write the last run for chrome://tracing or Perfetto")->type_name("F.json");
    inputs_.declare(app);
    mode_.declare(app);
    common_.declare(app, true);
    common_.declare_force(app);
  }

  NamedFiles files() const override {
    NamedFiles named{{model_}, {trace_}, {}, common_.force};
    inputs_.name_files(named);
    return named;
  }

  Result<int> execute() override {
    common_.apply();
    RunRequest request;
    PX_TRY(refuse_dump(model_));
    request.model = model_;
    request.executors = {PX_TRY(one_executor("profile", executor_))};
    request.inputs = PX_TRY(inputs_.request());
    request.options.seed = inputs_.seed;
    PX_TRY(mode_.apply(request));
    request.message = [](const std::string& sentence) { log_info(sentence); };
    const ProfileResult result = PX_TRY(profile_model(request, iterations_, executor_factory()));
    for (const std::string& note : result.notes) log_info(note);
    if (!trace_.empty()) {
      PX_TRY(write_file(trace_, result.trace));
      log_info(fmt::format("wrote {}", trace_));
    }
    print(common_.json ? profile_to_json(result) + "\n" : profile_to_text(result, top_));
    return 0;
  }

 private:
  std::string model_, executor_, trace_;
  int64_t iterations_ = 5;
  int64_t top_ = 20;
  InputOptions inputs_;
  ModeOptions mode_;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> make_profile_command() { return std::make_unique<ProfileCommand>(); }

}  // namespace parallax::cli
