// SPDX-License-Identifier: Apache-2.0
// `parallax merge-decoders`.
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/workbench/transforms/merge_decoders.h"

namespace parallax::cli {
namespace {

class MergeDecodersCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("DECODER", request_.first, "the decoder of the first step, which makes the cache")->required();
    app.add_option("DECODER_WITH_PAST", request_.later, "the decoder of later steps, which reads the cache")
        ->required();
    app.add_option("-o", request_.output, "the merged model")->type_name("F.onnx")->required();
    app.add_option("--condition", request_.condition,
                   "name of the new input, bool [1]: true with a cache (default: use_cache_branch)")
        ->type_name("NAME");
    verify_ = app.add_option("--verify", request_.data,
                             "run both branches and both models on reference and cpu, bit by bit; where a folder is "
                             "given, compare with its outputs too: a test_data_set_N, or one that holds some, with the "
                             "inputs of the merged model (show lists them), the condition last")
                  ->type_name("[DIR]")
                  ->expected(0, 1);
    common_.declare(app, true);
    common_.declare_force(app);
  }

  NamedFiles files() const override { return {{request_.first, request_.later}, {request_.output}, {}, common_.force}; }

  Result<int> execute() override {
    common_.apply();
    request_.verify = verify_->count() > 0;
    const MergeResult result = PX_TRY(merge_decoder_files(request_, executor_factory()));
    print(common_.json ? merge_to_json(result) + "\n" : merge_to_text(result));
    return result.passed() ? 0 : 1;
  }

 private:
  MergeRequest request_;
  CLI::Option* verify_ = nullptr;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> make_merge_decoders_command() { return std::make_unique<MergeDecodersCommand>(); }

}  // namespace parallax::cli
