// SPDX-License-Identifier: Apache-2.0
// Runs of interventions on the reference, and the errors of values within.
#include "inspector/workbench/half_precision/audit_keep.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "inspector/transform/half_precision/to_half.h"
#include "inspector/workbench/half_precision/audit_classes.h"
#include "inspector/workbench/run_side.h"

namespace parallax::audit {
namespace {

std::string static_path(const ValueInfo& value_info) { return value_info.scope + value_info.escaped_name; }

bool is_watched(const ValueInfo& value_info) { return value_info.role == ValueInfo::Role::node_output; }

bool is_float_tensor(const Value& value) { return value.is_tensor() && is_floating(value.tensor().dtype()); }

// Keeps every floating tensor that a node gives, by its path.
class ValueKeeper final : public Observer {
 public:
  CaptureLevel wants(const ValueInfo& value_info) override {
    return is_watched(value_info) ? CaptureLevel::all : CaptureLevel::none;
  }
  Status observe(const Observation& observation) override {
    if (!is_float_tensor(observation.value)) return {};
    kept_[observation.path()] = PX_TRY(observation.value.tensor().clone());
    return {};
  }
  const Tensor* find(const std::string& path) const {
    const auto found = kept_.find(path);
    return found == kept_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, Tensor> kept_;
};

// The error of every value against the kept one of the same path.
class ErrorMeter final : public Observer {
 public:
  explicit ErrorMeter(const ValueKeeper& original) : original_(original) {}
  CaptureLevel wants(const ValueInfo& value_info) override {
    return is_watched(value_info) ? CaptureLevel::all : CaptureLevel::none;
  }
  Status observe(const Observation& observation) override {
    if (!is_float_tensor(observation.value)) return {};
    const Tensor* kept = original_.find(observation.path());
    if (kept == nullptr) return {};
    double& error = errors[static_path(observation.value_info)];
    error = std::max(error, relative_error(Value(*kept), observation.value));
    return {};
  }
  std::map<std::string, double, std::less<>> errors;

 private:
  const ValueKeeper& original_;
};

}  // namespace

Result<std::shared_ptr<const Model>> KeepSearch::convert(const std::vector<std::string>& keep) const {
  transform::HalfRequest half;
  half.to = request_.to;
  half.keep_io = keep_io_;
  half.keep = keep;
  transform::HalfConversion conversion = PX_TRY(transform::to_half(*model_, half));
  return std::shared_ptr<const Model>(std::move(conversion.model));
}

Result<std::vector<Value>> KeepSearch::converted_inputs(const Model& converted,
                                                        const std::vector<Value>& inputs) const {
  std::vector<std::string> notes;
  return inputs_for_other(*model_, inputs, converted, notes);
}

Result<HalfVerification> KeepSearch::verify(const std::vector<std::string>& keep, bool to_the_end) {
  const auto converted = PX_TRY(convert(keep));
  const auto session = PX_TRY_CONTEXT(converted->path, reference_->prepare(converted, {}));
  NullObserver observer;
  std::vector<OutputError> worst;
  for (size_t step = 0; step < sets_.size(); ++step) {
    const size_t set = (failing_set_ + step) % sets_.size();
    const auto inputs = PX_TRY(converted_inputs(*converted, sets_[set].inputs));
    const auto outputs = PX_TRY(session->run(inputs, observer));
    const auto errors = compare_outputs(model_->graph, sets_[set].outputs, outputs);
    keep_worst(worst, errors);
    if (judge_outputs(errors, request_.tolerance).passed || to_the_end) continue;
    failing_set_ = set;
    break;
  }
  return judge_outputs(std::move(worst), request_.tolerance);
}

Result<KeepSearch::Errors> KeepSearch::value_errors(const std::vector<std::string>& keep, size_t set) {
  ValueKeeper keeper;
  PX_TRY(watched_.run(sets_[set].inputs, keeper));
  const auto converted = PX_TRY(convert(keep));
  const auto session = PX_TRY_CONTEXT(converted->path, reference_->prepare(converted, {}));
  ErrorMeter meter(keeper);
  const auto inputs = PX_TRY(converted_inputs(*converted, sets_[set].inputs));
  PX_TRY(session->run(inputs, meter));
  return std::move(meter.errors);
}

Result<std::vector<std::string>> KeepSearch::extend(std::vector<std::string> keep,
                                                    const std::vector<NodeAudit>& candidates) {
  const Errors errors = PX_TRY(value_errors(keep, failing_set_));
  const AuditGraph graph = PX_TRY(AuditGraph::build(model_, request_.to));
  const auto error_of = [&](const std::vector<NodeValue>& values) {
    double worst = 0;
    for (const NodeValue& value : values) {
      const auto found = value.slot < 0 ? errors.end() : errors.find(graph.path_of(value.slot));
      if (found != errors.end()) worst = std::max(worst, found->second);
    }
    return worst;
  };
  struct Candidate {
    std::string path;
    double introduced;
  };
  std::vector<Candidate> ranked;
  for (size_t index = 0; index < candidates.size(); ++index) {
    const NodeAudit& node = candidates[index];
    if (node.half_class == HalfClass::not_float || node.op == "Constant" ||
        std::ranges::find(keep, node.path) != keep.end())
      continue;
    const double out = error_of(graph.nodes()[index].outputs), in = error_of(graph.nodes()[index].inputs);
    ranked.push_back({node.path, std::isinf(in) ? 0 : out - in});
  }
  std::ranges::stable_sort(ranked, std::greater<>(), &Candidate::introduced);
  const auto with = [&](size_t count) {
    std::vector<std::string> more = keep;
    for (size_t index = 0; index < count; ++index) more.push_back(ranked[index].path);
    return more;
  };
  size_t failed = 0, passed = 0;
  for (size_t count = 1; passed == 0 && failed < ranked.size(); count = std::min(count * 2, ranked.size())) {
    (PX_TRY(verify(with(count), false)).passed ? passed : failed) = count;
  }
  if (passed == 0) return with(ranked.size());
  while (passed - failed > 1) {
    const size_t middle = failed + (passed - failed) / 2;
    (PX_TRY(verify(with(middle), false)).passed ? passed : failed) = middle;
  }
  return with(passed);
}

Result<bool> KeepSearch::may_leave(const std::vector<std::string>& keep, const std::vector<std::string>& less,
                                   const std::vector<size_t>& sets) {
  constexpr double kWrong = 0.1;  // an error that no rounding to half precision makes at one node
  if (!PX_TRY(verify(less, false)).passed) return false;
  for (const size_t set : sets) {
    if (!usual_.contains(set)) usual_[set] = PX_TRY(value_errors(keep, set));
    const Errors& before = usual_[set];
    for (const auto& [path, error] : PX_TRY(value_errors(less, set))) {
      const auto known = before.find(path);
      const double usual = known == before.end() || std::isinf(known->second) ? 0 : known->second;
      if (std::isfinite(error) && error > kWrong + 2 * usual) return false;
    }
  }
  return true;
}

Result<std::vector<std::string>> KeepSearch::minimize(std::vector<std::string> keep,
                                                      const std::vector<NodeAudit>& nodes) {
  constexpr size_t kMostSets = 3;  // of those that gave the nodes their classes, in which values within are compared
  std::map<std::string_view, size_t> first_set;
  for (const NodeAudit& node : nodes)
    first_set[node.path] = static_cast<size_t>(std::max<int64_t>(node.first_input, 0));
  for (size_t length = std::max<size_t>(keep.size() / 2, 1); !keep.empty() && length > 0; length /= 2) {
    for (size_t begin = 0; begin < keep.size();) {
      const size_t end = std::min(begin + length, keep.size());
      std::vector<std::string> less = keep;
      less.erase(less.begin() + static_cast<std::ptrdiff_t>(begin), less.begin() + static_cast<std::ptrdiff_t>(end));
      std::set<size_t> sets;
      for (size_t index = begin; index < end; ++index) sets.insert(std::min(first_set[keep[index]], sets_.size() - 1));
      std::vector<size_t> tried(sets.begin(), sets.end());
      tried.resize(std::min(tried.size(), kMostSets));
      if (PX_TRY(may_leave(keep, less, tried))) {
        keep = std::move(less);
        usual_.clear();
      } else {
        begin = end;
      }
    }
  }
  return keep;
}

}  // namespace parallax::audit
