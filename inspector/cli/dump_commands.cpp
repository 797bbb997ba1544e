// SPDX-License-Identifier: Apache-2.0
// `parallax import`, `export`, `check` and `repair`.
#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/dump/convert/convert.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/model/io/import.h"
#include "inspector/workbench/checks.h"
#include "inspector/workbench/open.h"

namespace parallax::cli {
namespace {

class ImportCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option(
           "ORIGIN", request_.origin,
           "a test_data_set folder, a folder of .npy, a .npz, .safetensors, .npy, .plx or ONNX file, or Polygraphy's "
           ".json")
        ->required();
    app.add_option("-o", output_, "the dump to write")->required()->type_name("F.plx");
    app.add_option("--model", request_.model, "the model the tensors belong to")->type_name("M.onnx");
    app.add_option("--map", request_.map, "JSON object: foreign name -> value path")->type_name("F.json");
    common_.declare(app, true);
    common_.declare_force(app);
  }

  NamedFiles files() const override {
    return {{request_.origin, request_.model, request_.map}, {output_}, {}, common_.force};
  }

  Result<int> execute() override {
    common_.apply();
    PX_TRY(check_dump_name("-o", output_));
    const ImportReport report = PX_TRY(import_dump(request_, output_));
    for (const std::string& note : report.notes) log_warning(note);
    if (common_.json) {
      print(fmt::format("{{\"written\": {}, \"values\": {}}}\n", quoted_json(output_), report.values));
    } else {
      log_info(fmt::format("wrote {} ({} values)", output_, report.values));
    }
    return 0;
  }

 private:
  ImportRequest request_;
  std::string output_;
  CommonOptions common_;
};

class ExportCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("DUMP", dump_, "the dump to read")->required()->type_name("F.plx");
    app.add_option("-o", output_,
                   "where to write: .npz, .safetensors, .onnx, or a folder (of .npy, or test_data_set_N)")
        ->required()
        ->type_name("DEST");
    common_.declare(app, false);
    common_.declare_force(app);
  }

  // A folder is one by what is asked of it: the verb checks it itself.
  NamedFiles files() const override { return {{dump_}, {output_}, {}, common_.force}; }

  Result<int> execute() override {
    const ExportReport report = PX_TRY(export_dump(dump_, output_));
    for (const std::string& note : report.notes) log_warning(note);
    if (common_.json) {
      print(fmt::format("{{\"written\": {}, \"values\": {}}}\n", quoted_json(output_), report.values));
    } else {
      log_info(fmt::format("wrote {} ({} values)", output_, report.values));
    }
    return 0;
  }

 private:
  std::string dump_, output_;
  CommonOptions common_;
};

class CheckCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("FILE", file_, "a dump (every CRC, index, reference) or a model (its validity)")
        ->required()
        ->type_name("F.plx|MODEL");
    common_.declare(app, true);
  }

  Result<int> execute() override {
    common_.apply();
    const CheckReport report = PX_TRY(check_file(file_));
    print(common_.json ? check_to_json(report) + "\n" : check_to_text(report));
    if (report.problems.empty()) {
      if (report.is_dump) {
        for (const std::string& remark : run_remarks(*PX_TRY(DumpReader::open(file_)))) log_warning(remark);
      }
      return 0;
    }
    return exit_code(report.code);
  }

 private:
  std::string file_;
  CommonOptions common_;
};

class RepairCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("DUMP", dump_, "the damaged or unfinished dump")->required()->type_name("F.plx");
    app.add_option("-o", output_, "the dump to write")->required()->type_name("G.plx");
    common_.declare(app, false);
    common_.declare_force(app);
  }

  NamedFiles files() const override { return {{dump_}, {output_}, {}, common_.force}; }

  Result<int> execute() override {
    PX_TRY(check_dump_name("-o", output_));
    const RepairReport report = PX_TRY(repair_dump(dump_, output_));
    if (common_.json) {
      print(fmt::format("{{\"written\": {}, \"records_kept\": {}, \"records_dropped\": {}, \"bytes_skipped\": {}}}\n",
                        quoted_json(output_), report.records_kept, report.records_dropped, report.bytes_skipped));
    } else {
      print(fmt::format("wrote {}: {} records kept, {} dropped, {} bytes skipped\n", output_, report.records_kept,
                        report.records_dropped, report.bytes_skipped));
    }
    return 0;
  }

 private:
  std::string dump_, output_;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> make_import_command() { return std::make_unique<ImportCommand>(); }
std::unique_ptr<Command> make_export_command() { return std::make_unique<ExportCommand>(); }
std::unique_ptr<Command> make_check_command() { return std::make_unique<CheckCommand>(); }
std::unique_ptr<Command> make_repair_command() { return std::make_unique<RepairCommand>(); }

}  // namespace parallax::cli
