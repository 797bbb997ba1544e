// SPDX-License-Identifier: Apache-2.0
// Merges, writes, reads back, and runs both branches and both models.
#include "inspector/workbench/transforms/merge_decoders.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "inspector/diff/comparison.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "inspector/workbench/inputs/inputs.h"
#include "inspector/workbench/request_options.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;

using ValuesByInput = std::map<std::string, Value, std::less<>>;

bool have_equal_bits(const Value& a, const Value& b) {
  if (!a.is_tensor() || !b.is_tensor()) return a.is_absent() && b.is_absent();
  const Tensor &x = a.tensor(), &y = b.tensor();
  return x.dtype() == y.dtype() && x.shape() == y.shape() &&
         (x.size_bytes() == 0 || std::memcmp(x.view().data, y.view().data, x.size_bytes()) == 0);
}

ValuesByInput by_name(const Graph& graph, const std::vector<ValueId>& ids, const std::vector<Value>& values) {
  ValuesByInput named;
  for (size_t index = 0; index < ids.size(); ++index) named[value_at(graph, ids[index]).name] = values[index];
  return named;
}

// Sizes that given values fix for the named dimensions of the merged model.
std::map<std::string, int64_t> sizes_of(const Graph& graph, const ValuesByInput& given) {
  std::map<std::string, int64_t> sizes;
  for (const ValueId id : graph.inputs) {
    const ValueDef& input = value_at(graph, id);
    const auto found = given.find(input.name);
    if (found == given.end() || !found->second.is_tensor() || !input.type.dims) continue;
    const Shape& shape = found->second.tensor().shape();
    for (size_t axis = 0; axis < std::min(shape.rank(), input.type.dims->size()); ++axis)
      sizes.emplace((*input.type.dims)[axis].name, shape[axis]);
  }
  return sizes;
}

// The inputs of the merged model: those given, the condition, and for others tensors without elements, as a decoder's
// first step has them for its cache.
Result<std::vector<Value>> merged_inputs(const Graph& graph, const ValuesByInput& given, const std::string& condition,
                                         bool truth) {
  const std::map<std::string, int64_t> sizes = sizes_of(graph, given);
  std::vector<Value> values;
  for (const ValueId id : graph.inputs) {
    const ValueDef& input = value_at(graph, id);
    if (input.name == condition) {
      Tensor tensor = PX_TRY(Tensor::allocate(DType::bool_, Shape{1}));
      tensor.mutable_as<bool>()[0] = truth;
      values.emplace_back(std::move(tensor));
      continue;
    }
    const auto found = given.find(input.name);
    if (found != given.end() || input.initializer_index >= 0) {
      values.push_back(found == given.end() ? Value() : found->second);
      continue;
    }
    if (input.type.kind != TypeInfo::Kind::tensor || !input.type.dims)
      return unsupported(fmt::format("input '{}' is {}; verification needs a tensor of known rank", input.name,
                                     to_string(input.type)));
    std::vector<int64_t> dims;
    for (const Dim& dim : *input.type.dims) {
      const auto size = sizes.find(dim.name);
      dims.push_back(dim.is_known() ? dim.value : !dim.name.empty() && size != sizes.end() ? size->second : 0);
    }
    const Shape shape = PX_TRY(Shape::create(dims));
    values.emplace_back(PX_TRY(Tensor::zeros(input.type.dtype, shape)));
  }
  return values;
}

Result<std::vector<Value>> run_once(const ExecutorFactory& make_executor, const std::string& name,
                                    std::shared_ptr<const Model> model, const std::vector<Value>& inputs) {
  const auto executor = PX_TRY(make_executor(name));
  const auto session = PX_TRY(executor->prepare(model, {}));
  NullObserver observer;
  return session->run(inputs, observer);
}

Result<std::shared_ptr<const Model>> open_decoder(const std::string& file, const std::shared_ptr<const Model>& model) {
  if (model != nullptr) return model;
  PX_TRY(refuse_dump(file));
  return import_model(file);
}

class Verifier {
 public:
  Verifier(const MergeRequest& request, const MergeResult& result, const ExecutorFactory& make_executor)
      : request_(request), result_(result), make_executor_(make_executor) {}

  // Checks that the data are those of the merged model, which is not written yet.
  Status check_data() {
    folders_ = PX_TRY(data_sets());
    for (const std::string& folder : folders_) {
      const InputSet set = PX_TRY(make_inputs(*result_.merged.model, data_request(folder)));
      if (set.expected.empty())
        return usage_error(fmt::format(
            "--verify: '{}' holds no outputs; it must hold those of the merged model, for its inputs", folder));
    }
    return {};
  }

  Result<std::vector<MergeCheck>> verify(const std::shared_ptr<const Model>& first,
                                         const std::shared_ptr<const Model>& later) {
    merged_ = PX_TRY(import_model(request_.output));
    PX_TRY_CONTEXT(first->path, compare_branch(first, false));
    PX_TRY_CONTEXT(later->path, compare_branch(later, true));
    for (const std::string& folder : folders_) PX_TRY_CONTEXT(folder, compare_data(folder));
    return std::move(checks_);
  }

 private:
  Status compare_branch(const std::shared_ptr<const Model>& model, bool condition) {
    InputRequest wanted;
    wanted.seed = request_.seed;
    const InputSet set = PX_TRY(make_inputs(*model, wanted));
    const ValuesByInput given = by_name(model->graph, model->graph.inputs, set.values);
    const auto inputs = PX_TRY(merged_inputs(merged_->graph, given, result_.merged.condition, condition));
    for (const std::string& executor : request_.executors) {
      const auto expected = PX_TRY(run_once(make_executor_, executor, model, set.values));
      const auto outputs = PX_TRY(run_once(make_executor_, executor, merged_, inputs));
      const ValuesByInput by_output = by_name(merged_->graph, merged_->graph.outputs, outputs);
      MergeCheck check{executor, model->path, condition, 0, {}};
      for (size_t index = 0; index < expected.size(); ++index) {
        const std::string& name = value_at(model->graph, model->graph.outputs[index]).name;
        ++check.outputs;
        if (!have_equal_bits(expected[index], by_output.at(name))) check.different.push_back(name);
      }
      checks_.push_back(std::move(check));
    }
    return {};
  }

  static InputRequest data_request(const std::string& folder) {
    InputRequest request;
    request.source = folder;
    request.source_option = "--verify";
    return request;
  }

  Result<std::vector<std::string>> data_sets() const {
    std::vector<std::string> folders;
    if (request_.data.empty()) return folders;
    std::error_code error;
    if (!fs::is_directory(request_.data, error))
      return io_error(fmt::format("--verify: there is no folder '{}'", request_.data));
    for (fs::directory_iterator entry(request_.data, error), end; !error && entry != end; entry.increment(error)) {
      if (entry->is_directory() && entry->path().filename().string().starts_with("test_data_set"))
        folders.push_back(entry->path().string());
    }
    if (error) return io_error(fmt::format("cannot read folder '{}': {}", request_.data, error.message()));
    if (folders.empty()) folders.push_back(request_.data);
    std::ranges::sort(folders);
    return folders;
  }

  Status compare_data(const std::string& folder) {
    for (const std::string& executor : request_.executors) {
      RunRequest run;
      run.model = request_.output;
      run.model_in_memory = merged_;
      run.executors = {executor};
      run.inputs = data_request(folder);
      const RunResult result = PX_TRY(run_models(run, make_executor_));
      MergeCheck check{executor, folder, false, 0, {}};
      for (const auto& value : result.comparison->expected) {
        ++check.outputs;
        if (value.verdict == Verdict::diverged) check.different.push_back(value.path);
      }
      checks_.push_back(std::move(check));
    }
    return {};
  }

  const MergeRequest& request_;
  const MergeResult& result_;
  const ExecutorFactory& make_executor_;
  std::shared_ptr<const Model> merged_;
  std::vector<std::string> folders_;
  std::vector<MergeCheck> checks_;
};

}  // namespace

bool MergeResult::passed() const {
  return !checks || std::ranges::all_of(
                        *checks, [](const MergeCheck& check) { return check.outputs > 0 && check.different.empty(); });
}

Result<MergeResult> merge_decoder_files(const MergeRequest& request, const ExecutorFactory& make_executor) {
  if (request.condition.empty()) return usage_error("the condition's name is empty; it must be that of a new input");
  const auto first = PX_TRY(open_decoder(request.first, request.first_in_memory));
  const auto later = PX_TRY(open_decoder(request.later, request.later_in_memory));
  PX_TRY(admit_model(request.output));
  MergeResult result;
  result.output = request.output;
  result.merged = PX_TRY(transform::merge_decoders(*first, *later, request.condition));
  Verifier verifier(request, result, make_executor);
  if (request.verify) PX_TRY(verifier.check_data());
  PX_TRY(export_model(*result.merged.model, request.output));
  if (request.verify) result.checks = PX_TRY(verifier.verify(first, later));
  return result;
}

}  // namespace parallax
