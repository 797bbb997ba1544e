// `parallax extract`: models made from models.
#include <filesystem>

#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/workbench/extract.h"

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
    request_.run.model = model_;
    if (executor_.find(',') != std::string::npos) return usage_error("--with: extract runs one executor");
    request_.run.executors = {executor_};
    request_.run.inputs = PX_TRY(inputs_.request());
    request_.run.options.seed = inputs_.seed;
    PX_TRY(mode_.apply(request_.run));
    if (request_.directory.empty()) request_.directory = default_folder(model_, "part");
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

}  // namespace

std::unique_ptr<Command> make_extract_command() { return std::make_unique<ExtractCommand>(); }

}  // namespace parallax::cli
