// SPDX-License-Identifier: Apache-2.0
// Judging node after node, each on its own side's inputs.
#include "inspector/diff/localize/blame_roots.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include <fmt/format.h>

#include "inspector/diff/tolerance/paths.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/exec/value_path.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

// Bit by bit, where that is cheap.
bool same_payload(const Value& a, const Value& b) {
  const bool are_plain = a.is_tensor() && b.is_tensor() && a.tensor().dtype() == b.tensor().dtype() &&
                         a.tensor().dtype() != DType::string && a.tensor().shape() == b.tensor().shape();
  if (!are_plain) return distance_between(a, b, {}).severity == 0;
  const size_t bytes = a.tensor().size_bytes();
  return bytes == 0 || std::memcmp(a.tensor().view().data, b.tensor().view().data, bytes) == 0;
}

bool same_inputs(const CapturedSide::Computed& a, const CapturedSide::Computed& b) {
  for (size_t index = 0; index < a.inputs.size(); ++index) {
    if (!same_payload(a.inputs[index].value, b.inputs[index].value)) return false;
  }
  return true;
}

// Both sides are off the oracle, but alike: then it is the oracle that means something else (a rounding that the model
// declares inside, say), and neither side is to blame.
bool err_alike(const NodeJudgement& a, const NodeJudgement& b) {
  if (a.output != b.output || !a.actual.is_tensor() || !b.actual.is_tensor()) return false;
  if (!(a.actual.tensor().shape() == b.actual.tensor().shape())) return false;
  if (!is_floating(a.actual.tensor().dtype())) {
    return same_payload(a.expected, b.expected) && same_payload(a.actual, b.actual);
  }
  const auto doubles = [](const Value& value) {
    std::vector<double> elements(static_cast<size_t>(value.tensor().element_count()));
    load_doubles(value.tensor(), 0, elements);
    return elements;
  };
  const auto expected_a = doubles(a.expected), actual_a = doubles(a.actual), expected_b = doubles(b.expected);
  auto moved = Tensor::allocate(DType::float64, a.actual.tensor().shape());
  if (!moved.ok()) return false;
  const std::span<double> elements = moved->mutable_as<double>();
  for (size_t index = 0; index < elements.size(); ++index) {
    elements[index] = actual_a[index] - expected_a[index] + expected_b[index];
  }
  const Limit limit{a.limit.rtol + b.limit.rtol, a.limit.atol + b.limit.atol, LimitSource::table};
  return distance_between(moved.take(), b.actual, limit).severity <= 1;
}

bool differs(const ValueComparison& value) {
  if (value.verdict == Verdict::not_compared) return are_mismatched(value);
  return value.severity > 0;
}

}  // namespace

RootFinder::RootFinder(const BlameRequest& request, const Comparison& comparison, std::shared_ptr<const Model> model,
                       const ValueTable& value_infos)
    : request_(request),
      comparison_(comparison),
      a_(request.a, model, request.oracle),
      b_(request.b, std::move(model), request.oracle) {
  add_locations(value_infos.main());
}

void RootFinder::add_locations(const GraphValues& location) {
  locations_.emplace(location.scope, &location);
  for (const GraphValues::Child& child : location.children) add_locations(*child.value_infos);
}

const GraphValues* RootFinder::location_of(std::string_view path) const {
  const auto found = locations_.find(static_path(prefix_of(path)));
  return found == locations_.end() ? nullptr : found->second;
}

std::vector<RootFinder::Candidate> RootFinder::candidates(bool only_diverged) const {
  std::vector<Candidate> candidates;
  std::unordered_map<std::string, size_t> known;  // by the instance's path
  for (size_t index = 0; index < comparison_.values.size(); ++index) {
    const ValueComparison& value = comparison_.values[index];
    const bool has_diverged = value.verdict == Verdict::diverged || value.verdict == Verdict::not_compared;
    if (!differs(value) || (only_diverged && !has_diverged)) continue;
    const GraphValues* location = location_of(value.path);
    if (location == nullptr) continue;
    const std::string prefix(prefix_of(value.path));
    const ValueId id = location->find_value(unescape_name(std::string_view(value.path).substr(prefix.size())));
    if (id == kNoValue) continue;
    const ValueDef& definition = location->graph->values[static_cast<size_t>(id)];
    if (definition.producer == kNoNode) continue;
    const auto [entry, is_new] = known.emplace(fmt::format("{}\n{}", prefix, definition.producer), candidates.size());
    if (is_new) candidates.push_back({{location, definition.producer, prefix}, {}, static_cast<int64_t>(index)});
    Candidate& candidate = candidates[entry->second];
    if (!has_body(candidate.instance.definition())) continue;
    candidate.carried.resize(candidate.instance.definition().outputs.size());
    candidate.carried[static_cast<size_t>(definition.output_index)] = value.limit;
  }
  return candidates;
}

Status RootFinder::run() {
  for (const ValueComparison& value : comparison_.values) {
    if (differs(value) && location_of(value.path) == nullptr && unjudged_.empty())
      unjudged_ = fmt::format("the graph at hand has no value '{}'", value.path);
  }
  PX_TRY(judge_all(candidates(true)));
  return roots_.empty() ? judge_all(candidates(false)) : Status{};
}

Status RootFinder::judge_both_sides() {
  is_strict_ = true;
  return judge_all(candidates(true));
}

Status RootFinder::judge_all(const std::vector<Candidate>& candidates) {
  for (const Candidate& candidate : candidates) {
    if (request_.cancel.is_cancelled()) return make_error(ErrorCode::cancelled, "the search for causes was cancelled");
    PX_TRY(judge(candidate));
  }
  return {};
}

// A node in whose bodies something is wrong is no root of its own.
bool RootFinder::holds_root(const Candidate& candidate) const {
  if (!has_body(candidate.instance.definition())) return false;
  const std::string inside =
      candidate.instance.prefix + escape_name(candidate.instance.definition().display_name) + ".";
  return std::ranges::any_of(root_paths_, [&](const std::string& path) { return path.starts_with(inside); });
}

Status RootFinder::judge(const Candidate& candidate) {
  const std::pair key{candidate.instance.location, candidate.instance.node};
  if (holds_root(candidate)) return {};
  const auto earlier = roots_.find(key);
  if (earlier != roots_.end() && earlier->second.wrong >= thresholds::kJudgedInstances) return {};
  const Finding finding = PX_TRY(find(candidate));
  const auto known = roots_.find(key);
  if (known != roots_.end()) ++known->second.judged;
  if (!(finding.introduced > 1)) return {};
  root_paths_.push_back(candidate.instance.prefix);
  if (known == roots_.end()) {
    roots_[key] = {
        candidate.instance, finding.output, finding.side, finding.introduced, finding.inherited, candidate.order, 1, 1};
    return {};
  }
  known->second.introduced = std::max(known->second.introduced, finding.introduced);
  ++known->second.wrong;
  if (known->second.side != finding.side) known->second.side = Side::both;
  return {};
}

void RootFinder::note_unjudged(const NodeInstance& instance, const NodeJudgement& judgement) {
  if (!unjudged_.empty()) return;
  unjudged_ =
      fmt::format("'{}' ({}): {}", instance.definition().display_name, instance.definition().op_type, judgement.reason);
}

Result<RootFinder::Finding> RootFinder::find(const Candidate& candidate) {
  const NodeInstance& instance = candidate.instance;
  // The side that is more likely wrong is judged first; the other where that one is right and is no oracle itself.
  const bool begins_with_a = b_.is_reference() && !a_.is_reference();
  const CapturedSide& first_side = begins_with_a ? a_ : b_;
  const CapturedSide& second_side = begins_with_a ? b_ : a_;
  const NodeJudgement first = PX_TRY(judge_node(first_side, instance, candidate.carried));
  if (!first.is_judged) note_unjudged(instance, first);
  judged_ += first.is_judged ? 1 : 0;
  const bool is_wrong = first.introduced > 1;
  if (!is_wrong && first.is_judged && second_side.is_reference() && !is_strict_) {
    auto inputs = second_side.gather(instance);
    if (!inputs.ok() || first.computed.inputs.empty() || !same_inputs(first.computed, *inputs)) return Finding{};
  }
  const NodeJudgement second = PX_TRY(judge_node(second_side, instance, candidate.carried));
  if (is_strict_ && !second.is_judged) note_unjudged(instance, second);
  const Side first_letter = begins_with_a ? Side::a : Side::b, second_letter = begins_with_a ? Side::b : Side::a;
  const bool is_second_wrong = second.introduced > 1;
  if (is_wrong && is_second_wrong && err_alike(first, second)) return Finding{};
  if (!is_wrong && !is_second_wrong) return Finding{};
  const NodeJudgement& worse = is_wrong ? first : second;
  Finding finding;
  finding.side = is_wrong && is_second_wrong ? Side::both : is_wrong ? first_letter : second_letter;
  finding.introduced = std::max(first.introduced, second.introduced);
  finding.output = worse.output;
  const size_t output = worse.output;
  if (output < first.computed.outputs.size() && output < second.computed.outputs.size()) {
    finding.inherited = distance_between(rounded_like(first.computed.outputs[output], worse.actual),
                                         rounded_like(second.computed.outputs[output], worse.actual), worse.limit)
                            .severity;
  }
  return finding;
}

std::vector<Root> RootFinder::take_roots() {
  std::vector<Root> roots;
  for (auto& [key, root] : roots_) roots.push_back(std::move(root));
  roots_.clear();
  // By what was introduced; among equals (exact values, NaN) the earlier.
  std::sort(roots.begin(), roots.end(), [](const Root& x, const Root& y) {
    return x.introduced != y.introduced ? x.introduced > y.introduced : x.order < y.order;
  });
  return roots;
}

}  // namespace parallax::diff
