// `parallax rewrite`.
#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/executors/rewrite.h"
#include "inspector/model/export.h"
#include "inspector/model/import.h"

namespace parallax::cli {
namespace {

class RewriteCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("MODEL", model_, "the model")->type_name("MODEL");
    app.add_option("--patterns", patterns_, "patterns to apply")->type_name("default|all|NAME,...");
    app.add_option("-o,--output", output_, "the rewritten model")->type_name("F.onnx");
    app.add_flag("--list", list_, "name the patterns");
    common_.declare(app, false);
  }

  Result<int> execute() override {
    common_.apply();
    if (list_) {
      print_list();
      return 0;
    }
    if (model_.empty()) return usage_error("MODEL is missing: the model to rewrite");
    if (output_.empty()) return usage_error("-o is missing: where the rewritten model goes");
    const auto model = PX_TRY(import_model(model_));
    const auto rewritten = PX_TRY(rewrite_model(*model, patterns_));
    PX_TRY(export_model(*rewritten, output_));
    log_info(fmt::format("{}: {} nodes, {} before", output_, rewritten->graph.nodes.size(), model->graph.nodes.size()));
    return 0;
  }

 private:
  static void print_list() {
    for (const RewritePattern& pattern : list_rewrite_patterns()) {
      print(fmt::format("{:<18} {:<4} {}\n", pattern.name, pattern.on_by_default ? "on" : "off", pattern.description));
    }
  }

  std::string model_, output_, patterns_ = "default";
  bool list_ = false;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> make_rewrite_command() { return std::make_unique<RewriteCommand>(); }

}  // namespace parallax::cli
