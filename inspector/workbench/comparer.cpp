// SPDX-License-Identifier: Apache-2.0
// Sides that stay prepared; a StreamComparer for each call.
#include "inspector/workbench/comparer.h"

#include <utility>

#include "inspector/workbench/blame.h"
#include "inspector/workbench/side_by_side.h"

namespace parallax {

Result<std::unique_ptr<Comparer>> Comparer::create(RunRequest request, ExecutorFactory make_executor) {
  PX_TRY(check_options(request, make_executor));
  request.options.cancel = {};
  std::unique_ptr<Comparer> comparer(new Comparer(std::move(request), std::move(make_executor)));
  const MemoryBudget::ThreadScope scope(comparer->budget_.get());
  comparer->model_a_ = PX_TRY(load_model(comparer->request_));
  comparer->model_b_ = PX_TRY(load_against(comparer->request_));
  if (comparer->model_b_ == nullptr) comparer->model_b_ = comparer->model_a_;
  comparer->pair_ = PX_TRY(pair_models(comparer->model_a_, comparer->model_b_));
  if (comparer->model_a_ != comparer->model_b_)
    comparer->matches_ = PX_TRY(match_paths(comparer->pair_.a, comparer->pair_.b));
  PX_TRY(comparer->prepare());
  return comparer;
}

Status Comparer::prepare() {
  const auto prepared = [&](const std::string& executor, const std::shared_ptr<const Model>& model) -> Result<RunSide> {
    RunSide side = PX_TRY(prepare_side(request_, executor, model, {}, make_executor_));
    side.generated.clear();  // a caller gives every input
    return side;
  };
  a_ = PX_TRY(prepared(request_.executors.front(), pair_.a));
  b_ = PX_TRY(prepared(request_.executors.back(), pair_.b));
  a_->origins = pair_.origins_a;
  b_->origins = pair_.origins_b;
  return {};
}

Result<ComparedCall> Comparer::run(const std::vector<Value>& inputs, bool find_causes) {
  const MemoryBudget::ThreadScope scope(budget_.get());
  if (!a_.has_value() || !b_.has_value()) PX_TRY(prepare());
  auto result = run_prepared(inputs, find_causes);
  for (RunSide* side : {&*a_, &*b_}) {  // what a call was given and has made is the caller's
    side->inputs.clear();
    side->outputs.clear();
  }
  if (request_.options.cancel.is_cancelled()) {  // sessions keep their token: the next call needs others
    a_.reset();
    b_.reset();
    request_.options.cancel = {};
  }
  return result;
}

Result<ComparedCall> Comparer::run_prepared(const std::vector<Value>& inputs, bool find_causes) {
  a_->inputs = inputs;
  std::vector<std::string> notes;  // of the first call alone, and reported by none: `match_paths` has settled the rest
  b_->inputs = model_a_ == model_b_ ? inputs : PX_TRY(inputs_for_other(*model_a_, inputs, *model_b_, notes));
  StreamOptions stream;
  stream.only = request_.only;
  stream.matches = matches_;
  stream.error_pictures = request_.error_pictures;
  stream.on_value = request_.on_value;
  StreamComparer comparer(request_.policy, std::move(stream));
  if (Status ran = run_side_by_side(*a_, *b_, comparer, {}); !ran.ok())
    return with_first_divergence(std::move(ran).error(), comparer, {});
  ComparedCall call;
  call.outputs_a = a_->outputs;
  call.outputs_b = b_->outputs;
  call.comparison = finish_comparison(*a_, *b_, comparer);
  if (find_causes) PX_TRY(blame_sides(request_, make_executor_, *a_, *b_, call.comparison));
  return call;
}

}  // namespace parallax
