// SPDX-License-Identifier: Apache-2.0
// The criterion of a function of the caller's, which judges candidates in memory.
#include "inspector/transform/part_files.h"
#include "inspector/workbench/reduce/reduce_criteria.h"

namespace parallax {
namespace {

using transform::Part;
using transform::PartData;

std::vector<NamedValue> named_inputs(const Part& part, const PartData& data) {
  std::vector<NamedValue> inputs;
  for (size_t index = 0; index < part.inputs.size(); ++index)
    inputs.push_back({part.inputs[index].name, data.inputs[index]});
  return inputs;
}

class CandidateCheckFails final : public FailureCriterion {
 public:
  explicit CandidateCheckFails(const ReduceContext& context) : context_(context) {}

  Result<bool> fails(const Part& part) override {
    const auto data = load_part_data(part, *context_.values);
    if (!data.ok()) return false;
    const auto model = transform::extract_model(part, *data);
    if (!model.ok()) return false;
    return context_.request.candidate_check(*model, named_inputs(part, *data));
  }

  Result<std::vector<std::string>> write(const Part& part) override {
    const std::string& directory = context_.request.directory;
    const PartData data = PX_TRY(load_part_data(part, *context_.values));
    const auto model = PX_TRY(transform::extract_model(part, data));
    std::vector<std::string> written = {PX_TRY(transform::write_model(*model, directory, "model.onnx"))};
    written.push_back(PX_TRY(transform::write_data_set(part, data, directory)));
    return written;
  }

 private:
  const ReduceContext& context_;
};

}  // namespace

std::unique_ptr<FailureCriterion> candidate_check_fails(const ReduceContext& context) {
  return std::make_unique<CandidateCheckFails>(context);
}

Result<bool> candidate_check_fails_on_model(const ReduceContext& context, const Part& part) {
  const PartData data = PX_TRY(load_part_data(part, *context.values));
  return context.request.candidate_check(context.model_a, named_inputs(part, data));
}

}  // namespace parallax
