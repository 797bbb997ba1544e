// SPDX-License-Identifier: Apache-2.0
// `parallax diff` and `parallax blame`.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/base/memory_budget.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/diff/compare/structure.h"
#include "inspector/model/io/import.h"
#include "inspector/render/runs/runs_report.h"
#include "inspector/render/structure_report.h"
#include "inspector/workbench/blame.h"
#include "inspector/workbench/open.h"
#include "inspector/workbench/report_files.h"
#include "inspector/workbench/run.h"

namespace parallax::cli {
namespace {

// Names the commands that compare models, where two models were given in place of dumps.
void point_to_models(std::string_view verb, const std::string& a, const std::string& b) {
  ImportOptions options;
  options.checks = ModelChecks::none;
  for (const std::string* file : {&a, &b}) {
    const auto is_dump = is_dump_file(*file);
    if (!is_dump.ok() || *is_dump || !import_model(*file, options).ok()) return;
  }
  log_info(fmt::format("'{}' and '{}' are models: parallax {} '{}' --against '{}' runs both and compares their values",
                       a, b, verb, a, b));
}

Result<OpenedComparison> compare_and_blame(std::string_view verb, const std::string& a, const std::string& b,
                                           const Policy& policy, const ReportOptions& reports) {
  CompareOptions options;
  options.error_pictures = reports.needs_error_pictures();
  auto compared = compare_and_blame_files(a, b, policy, options, executor_factory());
  if (!compared.ok()) {
    point_to_models(verb, a, b);
    return std::move(compared).error();
  }
  OpenedComparison opened = std::move(compared).take();
  for (const std::string& remark : opened.remarks) log_warning(remark);
  return opened;
}

class DiffCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("A", a_, "the expected side's dump, or a model")->required()->type_name("A.plx|A.onnx");
    app.add_option("B", b_, "the other side's dump, or a model: two models are compared as graphs, nothing is run")
        ->required()
        ->type_name("B.plx|B.onnx");
    app.add_option("MORE", more_, "further dumps: A is the baseline of all")->type_name("C.plx ...");
    policy_.declare(app);
    reports_.declare(app);
    common_.declare(app, true);
    common_.declare_force(app);
  }

  NamedFiles files() const override {
    NamedFiles named{{a_, b_, policy_.file}, {}, {}, common_.force};
    named.read.insert(named.read.end(), more_.begin(), more_.end());
    reports_.name_files(named);
    return named;
  }

  Result<int> execute() override {
    common_.apply();
    PX_TRY(reports_.check_distinct());
    if (!more_.empty()) return compare_runs();
    if (PX_TRY(are_models())) return compare_models();
    const Policy policy = PX_TRY(policy_.make());
    const OpenedComparison opened = PX_TRY(compare_and_blame("run", a_, b_, policy, reports_));
    for (const std::string& glob : idle_globs({}, policy, opened.comparison))
      log_warning(fmt::format("'{}' matches no value", glob));
    return reports_.write(opened.comparison, opened.model == nullptr ? nullptr : &opened.model->graph, common_.json);
  }

 private:
  Result<bool> are_models() const {
    const bool a_is_dump = PX_TRY(is_dump_file(a_)), b_is_dump = PX_TRY(is_dump_file(b_));
    if (a_is_dump == b_is_dump) return !a_is_dump;
    return usage_error(fmt::format("'{}' is a dump and '{}' is none: diff takes two dumps, or two models",
                                   a_is_dump ? a_ : b_, a_is_dump ? b_ : a_));
  }

  // Several dumps, each with the first. The exit code is the worst of the pairs.
  Result<int> compare_runs() {
    if (!reports_.csv.empty() || !reports_.junit.empty() || !reports_.dot.empty() || !reports_.svg.empty() ||
        !reports_.netron.empty() || !reports_.model_explorer.empty()) {
      return usage_error(
          "of several runs --json and --html are written; the other reports are of one pair: parallax diff A.plx "
          "B.plx");
    }
    const Policy policy = PX_TRY(policy_.make());
    ComparedRuns compared{a_, {}};
    std::vector<std::string> files{b_};
    files.insert(files.end(), more_.begin(), more_.end());
    for (const std::string& file : files) {
      for (const std::string& named : {a_, file}) {
        if (!PX_TRY(is_dump_file(named)))
          return usage_error(fmt::format("'{}' is no dump: several runs are compared by their dumps", named));
      }
      auto blamed = PX_TRY(compare_and_blame("run", a_, file, policy, reports_));
      compared.runs.push_back({file, std::move(blamed.comparison)});
    }
    warn_of_idle_globs(policy, compared);
    return write_runs(compared);
  }

  static void warn_of_idle_globs(const Policy& policy, const ComparedRuns& compared) {
    std::map<std::string, size_t> idle;
    for (const ComparedRun& run : compared.runs) {
      for (const std::string& glob : idle_globs({}, policy, run.comparison)) ++idle[glob];
    }
    for (const auto& [glob, count] : idle) {
      if (count == compared.runs.size()) log_warning(fmt::format("'{}' matches no value", glob));
    }
  }

  Result<int> write_runs(const ComparedRuns& compared) const {
    print(common_.json ? runs_to_json(compared) + "\n" : runs_to_text(compared, reports_.top.value_or(kDefaultTop)));
    if (!reports_.html.empty()) {
      PX_TRY(write_file(reports_.html, runs_to_html(compared, kept_command())));
      log_info(fmt::format("wrote {}", reports_.html));
    }
    int code = 0;
    for (const ComparedRun& run : compared.runs) {
      const auto damage = damage_of(run.comparison);
      code = std::max(code, damage.has_value() ? exit_code(damage->code) : exit_code_of(run.comparison));
    }
    return code;
  }

  // Structure, attributes and constants.
  Result<int> compare_models() {
    if (policy_.is_given() || !reports_.csv.empty() || !reports_.junit.empty() || !reports_.dot.empty() ||
        !reports_.netron.empty() || !reports_.model_explorer.empty()) {
      return usage_error(fmt::format(
          "tolerances and reports of values are for runs, and here are two models, of which --json, --html and --svg "
          "show how they differ as graphs: parallax run '{}' --against '{}' compares their values",
          a_, b_));
    }
    const auto a = PX_TRY(open_graph(a_));
    const auto b = PX_TRY(open_graph(b_));
    const StructureComparison comparison = PX_TRY(compare_structure(a, b));
    if (!reports_.svg.empty()) PX_TRY(write_file(reports_.svg, structure_to_svg(comparison)));
    if (!reports_.html.empty()) PX_TRY(write_file(reports_.html, structure_to_html(comparison)));
    constexpr int64_t kListed = 30;
    print(common_.json ? structure_to_json(comparison) + "\n"
                       : structure_to_text(comparison, reports_.top.value_or(kListed)));
    return comparison.is_same() ? 0 : 1;
  }

  std::string a_, b_;
  std::vector<std::string> more_;
  PolicyOptions policy_;
  ReportOptions reports_;
  CommonOptions common_;
};

class BlameCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("FILES", files_, "two dumps, or a model to run on two executors")
        ->required()
        ->type_name("A.plx B.plx | MODEL")
        ->expected(1, 2);
    app.add_option("--against", against_, "a second model: same inputs, values matched one by one")
        ->type_name("B.onnx");
    app.add_option(
           "--with", executors_,
           "two executors to compare, or one with --against (default: reference and cuda, or cpu where there is no "
           "GPU; with --against reference)")
        ->type_name("EXEC,EXEC");
    inputs_.declare(app);
    mode_.declare(app);
    policy_.declare(app);
    reports_.declare(app);
    app.get_option("--top")->description("worst values listed (default: causes alone; -1: all, in execution order)");
    common_.declare(app, true);
    common_.declare_force(app);
  }

  NamedFiles files() const override {
    NamedFiles named{{against_, policy_.file}, {}, {}, common_.force};
    named.read.insert(named.read.end(), files_.begin(), files_.end());
    inputs_.name_files(named);
    reports_.name_files(named);
    return named;
  }

  Result<int> execute() override {
    common_.apply();
    PX_TRY(reports_.check_distinct());
    if (!reports_.top.has_value()) reports_.top = 0;
    return files_.size() == 2 ? blame_dumps() : blame_model();
  }

 private:
  Result<int> blame_dumps() {
    if (!against_.empty() || !executors_.empty())
      return usage_error("--against and --with belong to a model that is run: two dumps are judged as they are");
    if (inputs_.is_given() || mode_.is_given())
      return usage_error(
          "inputs, and options of a run, belong to a model that is run: two dumps are judged as they are");
    const Policy policy = PX_TRY(policy_.make());
    const OpenedComparison opened = PX_TRY(compare_and_blame("blame", files_[0], files_[1], policy, reports_));
    return reports_.write(opened.comparison, opened.model == nullptr ? nullptr : &opened.model->graph, common_.json);
  }

  Result<int> blame_model() {
    const auto is_dump = is_dump_file(files_[0]);
    if (is_dump.ok() && *is_dump)  // what cannot be read is said by whoever reads the model
      return usage_error(fmt::format("'{}' is a dump: blame needs two dumps, or a model", files_[0]));
    RunRequest request;
    request.model = files_[0];
    request.against = against_;
    request.executors = PX_TRY(executors_of(executors_, !against_.empty()));
    if (request.executors.size() < 2 && against_.empty())
      return usage_error("blame compares two sides: give --with two executors, or --against a second model");
    PX_TRY(apply_arguments(inputs_, mode_, policy_, request));
    request.error_pictures = reports_.needs_error_pictures();
    request.message = [](const std::string& sentence) { log_info(sentence); };
    const MemoryBudget::Scope budget(request.options.memory_limit_bytes);  // reports count, too
    const RunResult result = PX_TRY(run_models(request, executor_factory()));
    for (const std::string& note : result.notes) log_info(note);
    return reports_.write(*result.comparison, &result.model_a->graph, common_.json);
  }

  std::vector<std::string> files_;
  std::string against_, executors_;
  InputOptions inputs_;
  ModeOptions mode_;
  PolicyOptions policy_;
  ReportOptions reports_;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> make_blame_command() { return std::make_unique<BlameCommand>(); }
std::unique_ptr<Command> make_diff_command() { return std::make_unique<DiffCommand>(); }

}  // namespace parallax::cli
