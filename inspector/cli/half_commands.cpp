// SPDX-License-Identifier: Apache-2.0
// `parallax convert`: half precision.
#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/workbench/half_precision/convert.h"

namespace parallax::cli {
namespace {

class ConvertCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("MODEL", request_.model, "the model to convert")->required();
    app.add_option("--to", to_, "the type that float32 becomes")->type_name("float16|bfloat16")->required();
    app.add_option("-o", request_.output, "the converted model")->type_name("OUT")->required();
    app.add_option("--keep", request_.half.keep,
                   "a node that stays in float32: its name, its path in a body, or a glob over these; may be repeated")
        ->type_name("NODE|GLOB")
        ->allow_extra_args(false);
    app.add_option("--keep-file", request_.keep_file, "a file with such nodes, one on each line")->type_name("F");
    app.add_flag("--keep-io", request_.half.keep_io, "inputs and outputs stay float32");
    app.add_option("--verify", request_.verify,
                   "a test_data_set_N folder, a .npz or a .safetensors file: both models run on it on reference")
        ->type_name("DIR|F");
    tolerance_ = app.add_option("--tolerance", request_.tolerance,
                                "relative error that --verify allows an output (default 0.01)")
                     ->type_name("X")
                     ->check(number_from_zero());
    common_.declare(app, true);
    common_.declare_force(app);
  }

  NamedFiles files() const override {
    return {{request_.model, request_.keep_file, request_.verify}, {request_.output}, {}, common_.force};
  }

  Result<int> execute() override {
    common_.apply();
    PX_TRY(refuse_dump(request_.model));
    request_.half.to = PX_TRY(parse_half_type(to_));
    if (tolerance_->count() > 0 && request_.verify.empty())
      return usage_error("--tolerance judges what --verify runs, which is missing: give both or neither");
    request_.message = [](const std::string& sentence) { log_info(sentence); };
    const ConvertResult result = PX_TRY(convert_model(request_, executor_factory()));
    print(common_.json ? convert_to_json(result) + "\n" : convert_to_text(result));
    return result.verification.has_value() && !result.verification->passed ? 1 : 0;
  }

 private:
  ConvertRequest request_;
  std::string to_;
  CLI::Option* tolerance_ = nullptr;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> make_convert_command() { return std::make_unique<ConvertCommand>(); }

}  // namespace parallax::cli
