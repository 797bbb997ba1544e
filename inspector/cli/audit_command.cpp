// SPDX-License-Identifier: Apache-2.0
// `parallax audit-fp16`.
#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/base/mapped_file.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/options.h"
#include "inspector/workbench/half_precision/audit.h"
#include "inspector/workbench/half_precision/convert.h"

namespace parallax::cli {
namespace {

class AuditCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("MODEL", request_.model, "the model to audit")->required();
    app.add_option("--to", to_, "the type to audit for (default: float16)")->type_name("float16|bfloat16");
    declare_inputs(app);
    app.add_option("--feed", feeds_,
                   "a model that runs first, and which of its outputs become which inputs; may be "
                   "repeated")
        ->type_name("OTHER.onnx:OUT=IN[,OUT=IN]")
        ->allow_extra_args(false);
    app.add_option("--with", request_.executor, "the executor that the model is watched on (default: cpu)")
        ->type_name("cpu|reference");
    app.add_option("--tolerance", request_.tolerance,
                   "relative error that an output may have in half precision (default 0.01)")
        ->type_name("X")
        ->check(number_from_zero());
    app.add_flag("--minimise", request_.minimize, "leave out nodes whose outputs are right without them");
    app.add_option("--kernels", kernels_, "half-sums: for kernels that add in half precision; wide sums are kept, too")
        ->type_name("half-sums");
    app.add_option("--keep-file", keep_file_, "write the nodes to keep, for convert --keep-file")->type_name("F");
    app.add_option("--html", html_, "write a page with a bar for each node")->type_name("F");
    app.add_option("--csv", csv_, "write a table of all nodes")->type_name("F");
    common_.declare(app, true);
    common_.declare_force(app);
  }

  NamedFiles files() const override {
    NamedFiles named{{request_.model}, {keep_file_, html_, csv_}, {}, common_.force};
    named.read.insert(named.read.end(), sources_.begin(), sources_.end());
    for (const std::string& feed : feeds_) named.read.push_back(feed.substr(0, feed.rfind(':')));
    return named;
  }

  Result<int> execute() override {
    common_.apply();
    PX_TRY(refuse_dump(request_.model));
    PX_TRY(fill_request());
    const HalfAudit audit = PX_TRY(audit_half(request_, executor_factory()));
    for (const std::string& note : audit.notes) log_info(note);
    PX_TRY(write(keep_file_, [&] {
      std::string text;
      for (const std::string& path : audit.keep) text += path + "\n";
      return text;
    }));
    PX_TRY(write(html_, [&] { return audit_to_html(audit, request_.model); }));
    PX_TRY(write(csv_, [&] { return audit_to_csv(audit); }));
    print(common_.json ? audit_to_json(audit) + "\n" : audit_to_text(audit));
    return audit.kept.passed ? 0 : 1;
  }

 private:
  void declare_inputs(CLI::App& app) {
    app.add_option("--inputs", sources_,
                   "an input set: a test_data_set_N folder, a .npz or a .safetensors file; may be "
                   "repeated")
        ->type_name("DIR|F")
        ->allow_extra_args(false);
    seeds_option_ = app.add_option("--seeds", seeds_, "generated input sets (default 1 where --inputs names none)")
                        ->type_name("N")
                        ->check(whole_number(0, 10'000));
    app.add_option("--until-stable", request_.until_stable,
                   "generate further sets until so many in a row give no other node to keep")
        ->type_name("N")
        ->check(whole_number(1, 1'000));
    app.add_option("--shape", arguments_.shapes, "shape of a generated input; may be repeated")
        ->type_name("NAME=1x3x224x224")
        ->allow_extra_args(false);
    app.add_option("--dim", arguments_.dims, "size of a named dimension; may be repeated")
        ->type_name("NAME=N")
        ->allow_extra_args(false);
    app.add_option("--range", arguments_.ranges, "range of a generated input; may be repeated")
        ->type_name("NAME=LO..HI")
        ->allow_extra_args(false);
  }

  Status fill_request() {
    request_.to = PX_TRY(parse_half_type(to_));
    if (!kernels_.empty() && kernels_ != "half-sums")
      return usage_error(fmt::format("--kernels is '{}'; it must be half-sums", kernels_));
    request_.half_sums = !kernels_.empty();
    for (const std::string& feed : feeds_) request_.feeds.push_back(PX_TRY(parse_feed(feed)));
    InputRequest generated = PX_TRY(arguments_.request());
    int64_t seeds = seeds_option_->count() > 0 ? seeds_ : sources_.empty() ? 1 : 0;
    if (seeds == 0 && sources_.empty() && request_.until_stable == 0)
      return usage_error("--seeds is 0 and there is no --inputs; an audit watches the model on one input set or more");
    if (request_.until_stable > 0) seeds = INT64_MAX;
    request_.next_inputs = [this, generated, seeds](int64_t index) -> Result<std::optional<InputRequest>> {
      InputRequest next = generated;
      const auto listed = static_cast<int64_t>(sources_.size());
      if (index < listed) {
        next.source = sources_[static_cast<size_t>(index)];
        return std::optional(next);
      }
      if (index - listed >= seeds) return std::optional<InputRequest>();
      next.seed = static_cast<uint64_t>(index - listed);
      return std::optional(next);
    };
    request_.message = [](const std::string& sentence) { log_info(sentence); };
    return {};
  }

  template <class MakeText>
  static Status write(const std::string& file, const MakeText& make_text) {
    if (file.empty()) return {};
    PX_TRY(write_file(file, make_text()));
    log_info(fmt::format("wrote {}", file));
    return {};
  }

  AuditRequest request_;
  std::string to_ = "float16", kernels_, keep_file_, html_, csv_;
  std::vector<std::string> sources_, feeds_;
  InputArguments arguments_;
  int64_t seeds_ = 0;
  CLI::Option* seeds_option_ = nullptr;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> make_audit_command() { return std::make_unique<AuditCommand>(); }

}  // namespace parallax::cli
