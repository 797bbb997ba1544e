// SPDX-License-Identifier: Apache-2.0
// `parallax rewrite`.
#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/executors/rewrite.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "inspector/transform/hidden_faults.h"
#include "inspector/workbench/checks.h"

namespace parallax::cli {
namespace {

class RewriteCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("MODEL", model_, "the model")->type_name("MODEL");
    app.add_option("--patterns", patterns_,
                   "patterns to apply: a set by target, names, or a set less a name (default: standard+microsoft+own, "
                   "which are those that --list says are on)")
        ->type_name("standard[+microsoft[+own]]|default|all|NAME,-NAME");
    app.add_option("-o,--output", output_, "the rewritten model")->type_name("F.onnx");
    app.add_flag("--list", list_, "name the patterns");
    common_.declare(app, true);
    common_.declare_force(app);
  }

  NamedFiles files() const override { return {{model_}, {output_}, {}, common_.force}; }

  Result<int> execute() override {
    common_.apply();
    if (list_) {
      if (!model_.empty() || !output_.empty() || !patterns_.empty())
        return usage_error("--list names the patterns and rewrites nothing: give it without MODEL, -o and --patterns");
      print(common_.json ? list_as_json() : list_as_text());
      return 0;
    }
    if (model_.empty()) return usage_error("MODEL is missing: the model to rewrite");
    if (output_.empty()) return usage_error("-o is missing: where the rewritten model goes");
    PX_TRY(refuse_dump(model_));
    const std::string patterns = patterns_.empty() ? "default" : patterns_;
    PX_TRY(rewrite_model(Model(), patterns));  // whether there are such patterns, before a model is read
    const auto model = PX_TRY(import_model(model_, {.checks = ModelChecks::recorded}));
    PX_TRY(admit_model(output_));
    const RewrittenModel rewritten = PX_TRY(rewrite_healthy_part(*model, patterns));
    PX_TRY(export_model(*rewritten.model, output_));
    for (const std::string& corrected : rewritten.corrected_outputs)
      log_warning(fmt::format("{}: {}", output_, corrected));
    for (const ModelProblem& problem : model->problems)
      log_warning(fmt::format("{} cannot be executed: {}: {}", model_, problem.where, problem.message));
    log_info(fmt::format("{}: {} nodes, {} before", output_, rewritten.nodes_after, rewritten.nodes_before));
    if (common_.json) print(as_json(rewritten));
    return 0;
  }

 private:
  // Leaves as they are the nodes that cannot be executed.
  static Result<RewrittenModel> rewrite_healthy_part(const Model& model, const std::string& patterns) {
    if (model.problems.empty()) return rewrite_model(model, patterns);
    const transform::HiddenFaults hidden(model);
    RewrittenModel rewritten = PX_TRY(rewrite_model(*hidden.model(), patterns));
    rewritten.model = hidden.restored(*rewritten.model);
    return rewritten;
  }

  std::string as_json(const RewrittenModel& rewritten) const {
    std::string domains, applied;
    for (const auto& [domain, count] : rewritten.custom_ops)
      domains += fmt::format("{}{}: {}", domains.empty() ? "" : ", ", quoted_json(domain), count);
    for (const AppliedPattern& pattern : rewritten.applied) {
      applied += fmt::format("{}\n  {{\"pattern\": {}, \"count\": {}}}", applied.empty() ? "" : ",",
                             quoted_json(pattern.name), pattern.count);
    }
    return fmt::format(
        "{{\"written\": {}, \"nodes\": {{\"before\": {}, \"after\": {}}}, \"custom_ops\": {{{}}}, \"applied\": "
        "[{}]}}\n",
        quoted_json(output_), rewritten.nodes_before, rewritten.nodes_after, domains, applied);
  }

  static std::string list_as_text() {
    std::string text;
    for (const RewritePattern& pattern : list_rewrite_patterns())
      text += fmt::format("{:<18} {:<4} {:<9} {}\n", pattern.name, pattern.on_by_default ? "on" : "off", pattern.target,
                          pattern.description);
    return text;
  }

  static std::string list_as_json() {
    std::string rows;
    for (const RewritePattern& pattern : list_rewrite_patterns()) {
      rows += fmt::format("{}\n  {{\"name\": {}, \"default\": {}, \"target\": {}, \"description\": {}}}",
                          rows.empty() ? "" : ",", quoted_json(pattern.name), pattern.on_by_default,
                          quoted_json(pattern.target), quoted_json(pattern.description));
    }
    return "{\"patterns\": [" + rows + "\n]}\n";
  }

  std::string model_, output_, patterns_;
  bool list_ = false;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> make_rewrite_command() { return std::make_unique<RewriteCommand>(); }

}  // namespace parallax::cli
