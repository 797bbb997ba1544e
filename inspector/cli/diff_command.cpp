// `parallax diff`.
#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/workbench/open.h"
#include "inspector/workbench/run.h"

namespace parallax::cli {
namespace {

class DiffCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("A", a_, "the expected side's dump")->required()->type_name("A.plx");
    app.add_option("B", b_, "the other side's dump")->required()->type_name("B.plx");
    policy_.declare(app);
    reports_.declare(app);
    common_.declare(app, true);
  }

  Result<int> execute() override {
    common_.apply();
    const Policy policy = PX_TRY(policy_.make());
    const OpenedComparison opened = PX_TRY(compare_files(a_, b_, policy));
    for (const std::string& glob : idle_globs({}, policy, opened.comparison))
      log_warning(fmt::format("'{}' matches no value", glob));
    PX_TRY(reports_.write(opened.comparison, opened.model == nullptr ? nullptr : &opened.model->graph, common_.json));
    return exit_code_of(opened.comparison);
  }

 private:
  std::string a_, b_;
  PolicyOptions policy_;
  ReportOptions reports_;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> make_diff_command() { return std::make_unique<DiffCommand>(); }

}  // namespace parallax::cli
