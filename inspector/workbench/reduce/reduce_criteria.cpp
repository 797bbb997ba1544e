// SPDX-License-Identifier: Apache-2.0
// Criteria that compare: one model on two executors, two models.
#include "inspector/workbench/reduce/reduce_criteria.h"

#include <thread>

#include <fmt/format.h>

#include "inspector/base/mapped_file.h"
#include "inspector/base/memory_budget.h"
#include "inspector/base/shell.h"
#include "inspector/diff/compare/stream_compare.h"
#include "inspector/transform/part_files.h"

namespace parallax {
namespace {

using transform::Part;
using transform::PartData;

// Errors that no other candidate could avoid.
bool ends_the_search(const Error& error) {
  return error.code == ErrorCode::io || error.code == ErrorCode::out_of_memory || error.code == ErrorCode::cancelled;
}

Status run_both(RunSide& a, RunSide& b, StreamComparer& comparer) {
  Status status_b;
  std::thread other([&, budget = MemoryBudget::current()] {
    const MemoryBudget::ThreadScope scope(budget);
    status_b = b.run(&comparer.side_b());
    if (!status_b.ok()) a.options.cancel.cancel();
  });
  Status status_a = a.run(&comparer.side_a());
  if (!status_a.ok()) b.options.cancel.cancel();
  other.join();
  const bool only_cancelled = !status_a.ok() && status_a.error().code == ErrorCode::cancelled;
  return only_cancelled && !status_b.ok() ? std::move(status_b)
         : status_a.ok()                  ? std::move(status_b)
                                          : std::move(status_a);
}

class ComparingCriterion : public FailureCriterion {
 public:
  explicit ComparingCriterion(const ReduceContext& context) : context_(context) {}

  Result<bool> fails(const Part& part) override {
    auto judged = judge(part);
    if (judged.ok()) return judged;
    if (ends_the_search(judged.error())) return std::move(judged).error();
    return false;
  }

 protected:
  virtual Result<bool> judge(const Part& part) = 0;

  Result<bool> diverges(std::shared_ptr<const Model> model_a, std::shared_ptr<const Model> model_b,
                        const PartData& data, const StreamOptions& options) const {
    RunRequest run = context_.request.run;
    run.options.cancel = {};  // this candidate's own: a side that fails stops the other, not the search
    StreamOptions stream = options;
    stream.on_value = [all = context_.request.run.options.cancel,
                       own = run.options.cancel](const ValueComparison&) mutable {
      if (all.is_cancelled()) own.cancel();
    };
    std::vector<std::string> notes;  // none: both parts have A's names
    const auto inputs_b =
        model_a == model_b ? data.inputs : PX_TRY(inputs_for_other(*model_a, data.inputs, *model_b, notes));
    RunSide a =
        PX_TRY(prepare_side(run, run.executors.front(), std::move(model_a), data.inputs, context_.make_executor));
    RunSide b = PX_TRY(prepare_side(run, run.executors.back(), std::move(model_b), inputs_b, context_.make_executor));
    StreamComparer comparer(run.policy, std::move(stream));
    PX_TRY(run_both(a, b, comparer));
    return are_mismatched(comparer.finish());
  }

  // `parallax run` on the files, with the options that were given.
  std::string run_command(const std::string& models) const {
    const RunRequest& run = context_.request.run;
    return fmt::format("\"$parallax\" run {} --with {} --inputs test_data_set_0{}", models,
                       shell_quoted(fmt::format("{}", fmt::join(run.executors, ","))), context_.request.script_options);
  }

  Result<std::string> write_script(const std::string& command, const std::vector<std::string>& models) const {
    const std::string path = context_.request.directory + "/repeat.sh";
    PX_TRY(write_program(path, repeat_script(command, models)));
    return path;
  }

  const ReduceContext& context_;
};

class ExecutorsDiffer final : public ComparingCriterion {
 public:
  using ComparingCriterion::ComparingCriterion;

  Result<std::vector<std::string>> write(const Part& part) override {
    const std::string& directory = context_.request.directory;
    const PartData data = PX_TRY(load_part_data(part, *context_.values));
    const auto model = PX_TRY(transform::extract_model(part, data));
    std::vector<std::string> written = {PX_TRY(transform::write_model(*model, directory, "model.onnx"))};
    written.push_back(PX_TRY(transform::write_data_set(part, data, directory)));
    written.push_back(PX_TRY(write_script(run_command("model.onnx"), {"model.onnx"})));
    return written;
  }

 protected:
  Result<bool> judge(const Part& part) override {
    const PartData data = PX_TRY(load_part_data(part, *context_.values));
    const std::shared_ptr<const Model> model = PX_TRY(transform::extract_model(part, data));
    return diverges(model, model, data, {});
  }
};

// The part of A and its counterpart in B.
class ModelsDiffer final : public ComparingCriterion {
 public:
  using ComparingCriterion::ComparingCriterion;

  Result<std::vector<std::string>> write(const Part& part) override {
    const std::string& directory = context_.request.directory;
    const Pair pair = PX_TRY(make_pair(part));
    PX_CHECK(pair.b != nullptr);
    std::vector<std::string> written = {PX_TRY(transform::write_model(*pair.a, directory, "A.onnx"))};
    written.push_back(PX_TRY(transform::write_model(*pair.b, directory, "B.onnx")));
    written.push_back(PX_TRY(transform::write_data_set(part, pair.data, directory)));
    written.push_back(PX_TRY(write_script(run_command("A.onnx --against B.onnx"), {"A.onnx", "B.onnx"})));
    return written;
  }

 protected:
  struct Pair {
    PartData data;
    std::shared_ptr<const Model> a, b;
  };

  Result<Pair> make_pair(const Part& part) const {
    Pair pair;
    pair.data = PX_TRY(load_part_data(part, *context_.values));
    pair.a = PX_TRY(transform::extract_model(part, pair.data));
    const auto computed_in_b = [&](const Part& part_b, const transform::PartValue& input) {
      return load_part_value(part_b, input, *context_.values_b);
    };
    pair.b = PX_TRY(transform::counterpart_of(part, pair.data, context_.matched, context_.model_b, computed_in_b));
    return pair;
  }

  Result<bool> judge(const Part& part) override {
    const Pair pair = PX_TRY(make_pair(part));
    if (pair.b == nullptr) return false;
    StreamOptions options;  // as `run --against` compares them, so that the script sees what is seen here
    options.matches = PX_TRY(match_paths(pair.a, pair.b));
    return diverges(pair.a, pair.b, pair.data, options);
  }
};

}  // namespace

std::unique_ptr<FailureCriterion> executors_differ(const ReduceContext& context) {
  return std::make_unique<ExecutorsDiffer>(context);
}

std::unique_ptr<FailureCriterion> models_differ(const ReduceContext& context) {
  return std::make_unique<ModelsDiffer>(context);
}

}  // namespace parallax
