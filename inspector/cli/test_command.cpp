// SPDX-License-Identifier: Apache-2.0
// `parallax test`.
#include <map>

#include <fmt/format.h>

#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/executors/default_executors.h"
#include "inspector/executors/rewrite.h"
#include "inspector/workbench/backend_test.h"
#include "inspector/workbench/reports.h"

namespace parallax::cli {
namespace {

class TestCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("DIR", request_.folders,
                   "folders of ONNX backend tests (model.onnx and test_data_set_N), at any depth")
        ->required();
    app.add_option("--with", request_.executor, "the executor to test (default: cuda where there is a GPU, else cpu)")
        ->type_name("EXEC");
    app.add_option("-k", request_.glob, "only the cases whose name matches")->type_name("GLOB");
    app.add_flag("--strict", request_.strict, "judge by the policy table instead of rtol 1e-3, atol 1e-7");
    declare_rewrite(app, rewrite_);
    declare_fallback(app, request_.fallback);
    common_.declare(app, true);
  }

  Result<int> execute() override {
    common_.apply();
    if (request_.executor.empty()) request_.executor = default_executors(false).back();
    request_.rewrite = PX_TRY(parse_rewrite(rewrite_));
    PX_TRY(check_fallback(request_.fallback));
    for (const auto& [name, on] : request_.rewrite.changes) PX_TRY(check_pattern(name));
    BackendTestResult result;
    {
      ProgressBar bar("testing");
      request_.on_case = [&bar](const CaseResult&, int64_t done, int64_t total) { bar.update(done, total); };
      result = PX_TRY(run_backend_tests(request_, executor_factory()));
    }
    print(common_.json ? backend_tests_to_json(result) + "\n" : backend_tests_to_text(result));
    const int64_t bad = result.count(CaseStatus::failed) + result.count(CaseStatus::error);
    return bad == 0 ? 0 : 1;
  }

 private:
  static Status check_pattern(const std::string& name) {  // once, not in each case
    for (const RewritePattern& pattern : list_rewrite_patterns()) {
      if (pattern.name == name) return {};
    }
    return usage_error(fmt::format("there is no rewrite pattern '{}'; `parallax rewrite --list` names them", name));
  }

  BackendTestRequest request_;
  std::string rewrite_ = "default";
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> make_test_command() { return std::make_unique<TestCommand>(); }

}  // namespace parallax::cli
