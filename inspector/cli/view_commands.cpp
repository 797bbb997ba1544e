// SPDX-License-Identifier: Apache-2.0
// `parallax show`, `parallax dot` and `parallax doctor`.
#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/base/mapped_file.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/opset/opset_registry.h"
#include "inspector/render/dot.h"
#include "inspector/render/graph_text.h"
#include "inspector/render/graphviz.h"
#include "inspector/workbench/checks.h"
#include "inspector/workbench/doctor/doctor.h"
#include "inspector/workbench/open.h"
#include "inspector/workbench/operator_help.h"
#include "inspector/workbench/report_files.h"

namespace parallax::cli {
namespace {

class ShowCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("FILE", file_, "a model, or a dump that holds its graph")->type_name("MODEL|DUMP");
    app.add_option("--op", operator_, "an operator's signature and documentation instead")->type_name("NAME[-VERSION]");
    app.add_flag("--shapes", text_.shapes, "types of every node's outputs");
    app.add_option("--depth", text_.depth, "fold scopes below this depth into a line each")
        ->type_name("N")
        ->check(whole_number(0, 1'000'000));
    common_.declare(app, false);
  }

  Result<int> execute() override {
    if (file_.empty() == operator_.empty())
      return usage_error("show takes a model or a dump, or --op NAME (see parallax show --help)");
    if (!operator_.empty()) {
      print(PX_TRY(common_.json ? operator_to_json(operator_) : operator_to_text(operator_)) + "\n");
      return 0;
    }
    const auto model = PX_TRY(open_graph(file_));
    print(common_.json ? graph_to_json(*model, text_) + "\n" : graph_to_text(*model, text_));
    return 0;
  }

 private:
  std::string file_, operator_;
  GraphTextOptions text_;
  CommonOptions common_;
};

class DotCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("FILES", files_, "a model, a dump, or two dumps to compare")
        ->required()
        ->type_name("MODEL | DUMP | A.plx B.plx")
        ->expected(1, 2);
    app.add_option("--depth", dot_.depth, "draw scopes below this depth as one box each")
        ->type_name("N")
        ->check(whole_number(0, 1'000'000));
    app.add_option("--focus", dot_.focus, "draw only what is near this value or node")->type_name("PATH");
    app.add_option("-o", output_, "where to write (default: dot on stdout)")->type_name("F.dot|F.svg|F.png");
    policy_.declare(app);
    common_.declare(app, true);
    common_.declare_force(app);
  }

  NamedFiles files() const override {
    NamedFiles named{{policy_.file}, {output_}, {}, common_.force};
    named.read.insert(named.read.end(), files_.begin(), files_.end());
    return named;
  }

  Result<int> execute() override {
    common_.apply();
    if (!output_.empty()) PX_TRY(check_picture_name(output_));
    if (files_.size() == 1 && policy_.is_given())
      return usage_error("tolerances judge how two dumps compare, and here is one file");
    Comparison comparison;
    std::shared_ptr<const Model> model;
    if (files_.size() == 2) {
      const Policy policy = PX_TRY(policy_.make());
      auto opened = PX_TRY(compare_files(files_[0], files_[1], policy));
      for (const std::string& remark : opened.remarks) log_warning(remark);
      comparison = std::move(opened.comparison);
      if (auto damage = damage_of(comparison); damage.has_value()) return *std::move(damage);
      model = std::move(opened.model);
      if (model == nullptr)
        return usage_error(fmt::format("neither '{}' nor '{}' holds a graph: {}", files_[0], files_[1], kWayToGraph));
      dot_.comparison = &comparison;
    } else {
      model = PX_TRY(open_graph(files_.front()));
    }
    const bool is_whole = dot_.depth < 0 && dot_.focus.empty();
    const std::string text = PX_TRY(graph_to_dot(model->graph, dot_));
    if (!output_.empty()) {
      if (is_whole && output_.ends_with(".svg")) {
        const std::string svg = PX_TRY(draw_graph(model->graph, dot_.comparison));
        PX_TRY(write_file(output_, svg));
      } else {
        PX_TRY(write_graph_picture(text, output_));
      }
      log_info(fmt::format("wrote {}", output_));
    }
    if (common_.json) {
      print(output_.empty() ? fmt::format("{{\"dot\": {}}}\n", quoted_json(text))
                            : fmt::format("{{\"written\": {}}}\n", quoted_json(output_)));
    } else if (output_.empty()) {
      print(text);
    }
    return 0;
  }

 private:
  std::vector<std::string> files_;
  std::string output_;
  DotOptions dot_;
  PolicyOptions policy_;
  CommonOptions common_;
};

class DoctorCommand final : public Command {
 public:
  void declare(CLI::App& app) override { common_.declare(app, false); }

  Result<int> execute() override {
    std::vector<DoctorItem> items = examine_machine();
    for (const ExecutorAvailability& executor : examine_executors()) {
      items.push_back({"executor " + executor.name, executor.available, executor.detail, executor.advice});
    }
    const std::vector<LateLibrary> libraries = examine_late_libraries();
    print(common_.json ? doctor_to_json(items, libraries) + "\n" : doctor_to_text(items, libraries));
    return 0;
  }

 private:
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> make_show_command() { return std::make_unique<ShowCommand>(); }
std::unique_ptr<Command> make_dot_command() { return std::make_unique<DotCommand>(); }
std::unique_ptr<Command> make_doctor_command() { return std::make_unique<DoctorCommand>(); }

}  // namespace parallax::cli
