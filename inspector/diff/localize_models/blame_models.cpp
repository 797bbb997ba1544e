// SPDX-License-Identifier: Apache-2.0
// Walks the pairs of matched values that differ, runs both definitions of each on A's values, and names the node whose
// definition makes the difference.
#include "inspector/diff/localize_models/blame_models.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "inspector/diff/localize_models/blame_models_constants.h"
#include "inspector/diff/localize_models/blame_models_counterfactuals.h"
#include "inspector/diff/localize_models/blame_models_culprits.h"
#include "inspector/diff/localize_models/blame_models_effects.h"
#include "inspector/diff/localize_models/blame_models_explain.h"
#include "inspector/diff/localize_models/blame_models_quantized.h"
#include "inspector/diff/localize_models/blame_models_ranking.h"
#include "inspector/diff/localize_models/blame_models_regions.h"
#include "inspector/diff/localize_models/blame_models_rounding.h"
#include "inspector/diff/localize_models/blame_models_suspects.h"
#include "inspector/diff/localize_models/blame_models_swaps.h"
#include "inspector/diff/localize_models/blame_models_ties.h"
#include "inspector/diff/localize_models/blame_models_unmatch.h"
#include "inspector/diff/matching/definition_distance.h"
#include "inspector/diff/matching/path_links.h"
#include "inspector/diff/matching/unmatch.h"
#include "inspector/diff/tolerance/judge.h"
#include "inspector/diff/tolerance/paths.h"
#include "inspector/diff/tolerance/quantization.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/link.h"

namespace parallax {
namespace {

using diff::Instance;
using diff::LocatedNode;
using diff::ModelRoot;
using diff::ModelSide;
using diff::Region;

class ModelBlame {
 public:
  ModelBlame(const BlameRequest& request, const Comparison& comparison, std::unique_ptr<ModelSide> a,
             std::unique_ptr<ModelSide> b, Diagnosis& diagnosis)
      : request_(request),
        view_(comparison),
        diagnosis_(diagnosis),
        a_(std::move(a)),
        b_(std::move(b)),
        matching_(match_models(a_->value_infos(), b_->value_infos())),
        regions_(*a_, *b_, matching_),
        values_(*a_, view_, diagnosis),
        effects_(*a_, [this](int32_t id) { return values_.difference_of(id); }),
        unmatching_(*a_, *b_, matching_, values_, effects_),
        suspects_(*a_, *b_, matching_, values_, regions_),
        are_of_two_types_(diff::are_of_two_types(*a_, *b_)),
        is_one_quantized_(diff::is_quantized(a_->value_infos()) != diff::is_quantized(b_->value_infos())),
        is_one_dynamic_(diff::quantizes_dynamically(a_->value_infos()) !=
                        diff::quantizes_dynamically(b_->value_infos())) {
    for (const PathMatch& match : matched_paths(a_->value_infos(), b_->value_infos(), matching_)) links_.link(match);
  }

  Status run() {
    PX_TRY(diff::lay_out_pairs(*a_, *b_, matching_, values_, effects_, links_, regions_));
    diagnosis_.causes = PX_TRY(find());
    split_matches();
    return {};
  }

 private:
  Result<std::vector<Cause>> find() {
    unmatching_.unmatch_counted_from_end(links_);
    if (values_.is_any_unmatched() && values_.outcome() == OverallVerdict::pass) return std::vector<Cause>{};
    if (!is_any_output_diverged(view_) && unmatching_.unmatch_wrong_pairs()) return std::vector<Cause>{};
    for (const ValueMatch& match : matching_.values) {
      const bool is_pair = !values_.is_unmatched(match.a) && !values_.was_unmatched(match.a);
      if (!is_pair && !a_->follows_from_constants(match.a)) regions_.part(match.a);
    }
    find_swapped_branches();
    if (is_one_quantized_) find_wrong_held();
    for (const ValueMatch& match : matching_.values) {
      if (request_.cancel.is_cancelled())
        return make_error(ErrorCode::cancelled, "the search for causes was cancelled");
      if (match.is_extra || is_settled(match) || values_.is_unmatched(match.a) || regions_.is_parted(match.a)) continue;
      if (suspects_.is_suspect(match) && may_look_at(match)) PX_TRY(look_at(match));
      if (is_held_in_body(match)) add_held(match);
    }
    // Nothing is called rounding before what makes it has been seen to be the same.
    for (const ValueMatch& match : matching_.values) {
      if (roots_.empty() && !match.is_extra && suspects_.has_diverged(match) && !suspects_.are_held(match))
        PX_TRY(look_at(match));
    }
    if (roots_.empty()) PX_TRY(look_at_unseen());
    if (roots_.empty() && unjudged_.empty()) {
      std::vector<Cause> unobservable = diff::unobservable_constants(*a_, *b_, matching_, effects_, values_);
      if (unobservable.empty())
        PX_TRY(diff::judge_same_models(request_, *a_, *b_, matching_, effects_, view_, diagnosis_));
      std::vector<Cause> causes = unobservable.empty() ? std::move(diagnosis_.causes) : std::move(unobservable);
      diff::name_nodes_in_b(*a_, *b_, matching_, causes);
      return causes;
    }
    unmatching_.unmatch_unobserved_constants(same_);
    if (values_.outcome() == OverallVerdict::pass) return std::vector<Cause>{};
    diff::join_swapped_outputs(*a_, matching_.names_agree, roots_);
    std::vector<Cause> causes = diff::ranked_causes(std::move(roots_), *a_, *b_, matching_, view_);
    const size_t ranked = causes.size();
    diff::add_unexplained_constants(*a_, *b_, matching_, effects_, values_, causes);
    diff::name_nodes_in_b(*a_, *b_, matching_, std::span(causes).subspan(ranked));  // no root names theirs
    if (const ValueComparison* first = first_diverged(view_); causes.empty() && first != nullptr)
      causes.push_back(cause_at(*first, "the first value that differs; not every node could be judged: " + unjudged_));
    return causes;
  }

  // Each of two values that were unmatched is an entry of its own.
  void split_matches() {
    std::unordered_map<std::string, const ValueInfo*> value_infos;
    for (const ValueInfo& value_info : b_->value_infos().value_infos())
      value_infos.emplace(value_info.scope + value_info.escaped_name, &value_info);
    for (UnmatchedValue& value : diagnosis_.unmatched) {
      value.in_b = counterpart_in_b(*values_.find(value.path));
      if (const auto value_info = value_infos.find(diff::static_path(value.in_b->path));
          value_info != value_infos.end())
        diff::describe_producer(*value_info->second, *value.in_b);
    }
  }

  bool is_held_in_body(const ValueMatch& match) const;
  void add_held(const ValueMatch& match);
  bool may_look_at(const ValueMatch& match);
  Status look_at_unseen();
  bool is_stored_alike(int32_t in_a, int32_t in_b, const Region& region) const;
  bool holds_root(const LocatedNode& node) const;
  Status look_at_inputs(const ValueMatch& match, const std::string& path);
  Status look_at(const ValueMatch& match);
  Result<bool> look_at(const ValueMatch& match, const std::string& path);
  void unmatch_compensated(const ValueMatch& match, const Instance& instance);
  void add_roots(const ValueMatch& match, const Region& region, const std::string& path, ModelRoot root,
                 const diff::RegionRunner& runner);
  void add_roots_of_quantized(const ValueMatch& match, const std::string& path,
                              const diff::WithoutQuantization& without);
  void add_culprits(const ValueMatch& match, const std::string& path, const std::vector<diff::Culprit>& nodes,
                    ModelRoot root);
  bool may_agree_by_chance(const ValueMatch& match, const Value& value) const;
  std::optional<Limit> known_limit(const std::string& path) const;
  std::optional<Limit> limit_of_steps(const std::string& path) const;
  Limit limit_at(const std::string& path) const {
    constexpr thresholds::ExpectedTolerance kHalf = thresholds::kExpectedFloat16;
    return known_limit(path).value_or(are_of_two_types_ ? Limit{kHalf.rtol, kHalf.rtol, LimitSource::table}
                                                        : Limit{1e-5, 1e-7, LimitSource::table});
  }
  void find_swapped_branches();
  void find_wrong_held();
  bool is_settled(const ValueMatch& match) const;
  bool has_diverged(int32_t id) const { return values_.has_diverged(id); }

  const BlameRequest& request_;
  Comparison view_;  // what the search has unmatched is not compared in it
  Diagnosis& diagnosis_;
  std::unique_ptr<ModelSide> a_, b_;
  ModelMatching matching_;
  diff::RegionRunner regions_;
  diff::ComparedValues values_;
  diff::Effects effects_;
  diff::Unmatching unmatching_;
  diff::Suspects suspects_;
  diff::PathLinks links_;
  std::vector<ModelRoot> roots_;
  std::unordered_set<int32_t> same_;  // values of A that both definitions make alike
  std::vector<std::string> settled_;  // beginnings of static paths whose causes are known
  std::string unjudged_;
  bool are_of_two_types_ = false;  // one model in half precision, the other not
  bool is_one_quantized_ = false;
  bool is_one_dynamic_ = false;  // quantized while it runs
  size_t uncaptured_ = 0;        // values looked at that were not captured
};

// Data that a body or a function hands out as it is: its node would be named, which does nothing else.
bool ModelBlame::is_held_in_body(const ValueMatch& match) const {
  return suspects_.are_held(match) && has_diverged(match.a) && suspects_.is_output(match.a) &&
         !a_->value_info(match.a).scope.empty() && a_->producer(match.a).id != kNoNode;
}

void ModelBlame::add_held(const ValueMatch& match) {
  ModelRoot root;
  root.node = a_->producer(match.a);
  root.path = a_->captured_paths(match.a).front();
  root.introduced = values_.find(root.path)->severity;
  root.confidence = match.confidence;
  root.order = static_cast<int64_t>(roots_.size());
  root.why = "it is another constant in B" + diff::difference_text(a_->constant(match.a), b_->constant(match.b));
  roots_.push_back(std::move(root));
}

// A value that was fused away was not compared: it is examined where a value computed from it differs.
bool ModelBlame::may_look_at(const ValueMatch& match) {
  if (!a_->captured_paths(match.a).empty()) return true;
  if (effects_.readers(match.a).empty() || effects_.leaves_nothing(match.a, thresholds::kUnseenDifference))
    return false;
  return ++uncaptured_ <= thresholds::kMostUncaptured;
}

// Examines values whose influence seemed to be absorbed, where a differing value is computed from them in either model:
// a node that was not found to be defined alike may cause the difference.
Status ModelBlame::look_at_unseen() {
  constexpr double kAnyCompared = std::numeric_limits<double>::infinity();
  const auto differs = [&](int32_t id) { return id >= 0 && has_diverged(id); };
  const auto in_a = [&](int32_t id) { return matching_.a_of_b[static_cast<size_t>(id)]; };
  const std::vector<bool> leads_a = effects_.leading_to(differs, kAnyCompared);
  const diff::Effects effects_b(
      *b_, [&](int32_t id) { return in_a(id) < 0 ? std::optional<double>() : values_.difference_of(in_a(id)); });
  const std::vector<bool> leads_b = effects_b.leading_to([&](int32_t id) { return differs(in_a(id)); }, kAnyCompared);
  for (const ValueMatch& match : matching_.values) {
    if (!leads_a[static_cast<size_t>(match.a)] && !leads_b[static_cast<size_t>(match.b)]) continue;
    if (match.is_extra || is_settled(match) || same_.contains(match.a) || !suspects_.is_suspect(match)) continue;
    const bool is_captured = !a_->captured_paths(match.a).empty();
    if (is_captured && !values_.is_unmatched(match.a)) continue;  // it was looked at
    if (!is_captured && ++uncaptured_ > thresholds::kMostUncaptured) {
      unjudged_ = "too many values were fused away";
      break;
    }
    PX_TRY(look_at(match));
  }
  return {};
}

// True where a root was found inside a body of `node`, in any iteration: then that is the node's own fault, apart from
// its inputs.
bool ModelBlame::holds_root(const LocatedNode& node) const {
  if (node.id == kNoNode) return false;  // a graph's input: nothing makes it
  const std::string frame = node.location->scope + escape_name(node.node().display_name) + ".";
  return std::ranges::any_of(roots_,
                             [&](const ModelRoot& root) { return diff::static_path(root.path).starts_with(frame); });
}

// The two hold the same, each in its own float type.
bool ModelBlame::is_stored_alike(int32_t in_a, int32_t in_b, const Region& region) const {
  const DType a = diff::declared_type(&a_->value_info(in_a), DType::undefined),
              b = diff::declared_type(&b_->value_info(in_b), DType::undefined);
  if (a == b || a == DType::undefined || b == DType::undefined) return false;
  if (!region.expected.is_tensor() || !region.found.is_tensor()) return false;
  return diff::differ_by_storing(region.expected.tensor(), region.found.tensor(), diff::narrower(a, b));
}

// A node with bodies is given what it reads, whatever its bodies make of it.
Status ModelBlame::look_at_inputs(const ValueMatch& match, const std::string& path) {
  const LocatedNode a = a_->producer(match.a);
  LocatedNode b = b_->producer(match.b);
  if (a.id == kNoNode) return {};
  // A node between casts in B is found after them.
  while (b.id != kNoNode && b.node().op_type != a.node().op_type && diff::only_moves(b)) {
    const int32_t read =
        b.node().inputs.empty() ? -1 : ModelSide::value_info_read(*b.location, b.node().inputs.front());
    b = read < 0 ? LocatedNode{} : b_->producer(read);
  }
  if (b.id == kNoNode || a.node().op_type != b.node().op_type) return {};
  const Instance instance = diff::instance_of(path);
  for (size_t port = 0; port < std::min(a.node().inputs.size(), b.node().inputs.size()); ++port) {
    const int32_t in_a = ModelSide::value_info_read(*a.location, a.node().inputs[port]);
    const int32_t in_b = ModelSide::value_info_read(*b.location, b.node().inputs[port]);
    if (in_a < 0 || in_b < 0) continue;
    Region region = PX_TRY(regions_.read(in_a, in_b, instance));
    const Limit limit = limit_at(diff::path_in(instance, a_->static_path(in_a)));
    const diff::RelativeDistance introduced = diff::relative_distance(region.expected, region.found, limit);
    if (!(introduced.relative_rms > thresholds::kSameDefinition) || is_stored_alike(in_a, in_b, region)) continue;
    region.nodes_a.push_back(a);
    region.nodes_b.push_back(b);
    ModelRoot root;
    root.introduced = introduced.severity;
    root.is_users_limit = limit.from == LimitSource::user;
    root.size = introduced.relative_rms;
    add_roots(match, region, path, std::move(root), regions_);
  }
  return {};
}

std::optional<Limit> ModelBlame::known_limit(const std::string& path) const {
  const ValueComparison* const found = values_.find(path);
  const bool is_known = found != nullptr && found->verdict != Verdict::not_compared;
  if (is_known && (found->limit.rtol > 0 || found->limit.atol > 0)) return found->limit;
  return request_.policy.limit_of(path);
}

// The limit of a quantized value; nothing where a side has lost its numbers, and its magnitude with them: then it is
// narrower than that of any steps.
std::optional<Limit> ModelBlame::limit_of_steps(const std::string& path) const {
  const std::optional<Limit> limit = known_limit(path);
  const bool is_lost =
      limit.has_value() && limit->from == LimitSource::table && limit->rtol < float_limits(DType::float16).epsilon;
  return is_lost ? std::nullopt : limit;
}

// Another comparison gives the same answer half of the time.
bool ModelBlame::may_agree_by_chance(const ValueMatch& match, const Value& value) const {
  const LocatedNode a = a_->producer(match.a), b = b_->producer(match.b);
  return value.is_tensor() && value.tensor().dtype() == DType::bool_ && a.id != kNoNode && b.id != kNoNode &&
         a.node().inputs.size() == b.node().inputs.size() && !diff::is_same_operation(a, b);
}

Status ModelBlame::look_at(const ValueMatch& match) {
  size_t seen = 0;
  for (const std::string& path : a_->instance_paths(match.a)) {
    if (++seen > thresholds::kMostModelInstances) break;
    auto is_root = look_at(match, path);
    if (is_root.ok() && !*is_root) continue;
    if (is_root.ok()) break;
    const ErrorCode code = is_root.error().code;
    if (code == ErrorCode::cancelled || code == ErrorCode::corrupt_file) return Status(is_root.error());
    unjudged_ = is_root.error().message;
    break;
  }
  return {};
}

Result<bool> ModelBlame::look_at(const ValueMatch& match, const std::string& path) {
  const Value value_a = PX_TRY(a_->captured(path));
  const Value value_b = regions_.as_a_has_it(match.a, PX_TRY(b_->captured(links_.b_path_of(path))));
  const Limit limit = limit_at(path);
  const bool is_known = !value_a.is_absent() && !value_b.is_absent();
  if (is_known && !may_agree_by_chance(match, value_a) &&
      diff::relative_distance(value_a, value_b, limit).severity == 0) {
    unmatch_compensated(match, diff::instance_of(path));
    return false;
  }
  const Instance instance = diff::instance_of(path);
  if (holds_root(a_->producer(match.a))) {
    PX_TRY(look_at_inputs(match, path));
    return true;
  }
  Region region = PX_TRY(regions_.run(match.a, match.b, instance));
  const std::optional<Limit> steps = limit_of_steps(path);
  const std::optional<diff::WithoutQuantization> plain =
      is_one_quantized_ ? diff::without_quantization(*a_, *b_, matching_, regions_, match, instance, region, steps)
                        : std::nullopt;
  const bool is_judged = steps.has_value() || !known_limit(path).has_value() ||
                         (plain.has_value() && plain->severity > thresholds::kNearQuantization);
  if (plain.has_value() && !plain->culprits.empty() && is_judged)
    return add_roots_of_quantized(match, path, *plain), true;
  if (plain.has_value()) region = plain->region;
  diff::RelativeDistance introduced = diff::relative_distance(region.expected, region.found, limit);
  if (!(introduced.relative_rms > thresholds::kSameDefinition) && introduced.severity > 1)
    introduced.relative_rms = diff::diverged_in_some_elements(regions_, match, instance, region, limit);
  same_.erase(match.a);
  // The steps that such a region rounds to are in the limit; a value that was not compared has none.
  const bool is_within =
      steps.has_value() ? introduced.severity <= 1 : introduced.relative_rms <= thresholds::kLargestQuantizationShare;
  const bool is_rounded =
      is_one_quantized_ && (plain.has_value() ? plain->keeps_steps : diff::quantizes(*a_, *b_, region));
  if (is_within && (is_rounded || (is_one_dynamic_ && diff::quantizes_dynamically(region)))) return false;
  if (!(introduced.relative_rms > thresholds::kSameDefinition)) {
    same_.insert(match.a);
    unmatching_.unmatch_compensated(regions_, match, instance, region);
    return false;
  }
  if (diff::quantize_alike(region, a_->producer(match.a), b_->producer(match.b))) return false;
  const bool is_rewired = unmatching_.reads_other_operands(match);
  if ((is_rewired || (std::isinf(introduced.severity) && unmatching_.may_be_no_pair(match, region))) &&
      unmatching_.agrees_past(regions_, match, instance)) {
    regions_.part(match.a);
    if (is_rewired) values_.unmatch(match.a, kPairedWrongly);
    return false;
  }
  // B's counterpart compensates it: it was paired wrongly.
  const ValueComparison* const seen = values_.find(path);
  if (introduced.severity > 1 && seen != nullptr && seen->verdict == Verdict::pass) return false;
  // Bodies hold their constants rounded to the type that the other model is in.
  const LocatedNode made_by = a_->producer(match.a);
  const bool holds_body = made_by.id != kNoNode && !bodies_of(made_by.node()).empty();
  if (are_of_two_types_ && holds_body && introduced.severity <= 1) return false;
  ModelRoot root;
  root.introduced = introduced.severity;
  root.is_users_limit = limit.from == LimitSource::user;
  root.inherited = value_b.is_absent() ? 0 : diff::relative_distance(region.found, value_b, limit).severity;
  root.size = introduced.relative_rms;
  add_roots(match, region, path, std::move(root), plain.has_value() ? plain->runner : regions_);
  return true;
}

// Equal to the last bit by another constant: another node may compensate it.
void ModelBlame::unmatch_compensated(const ValueMatch& match, const Instance& instance) {
  const LocatedNode a = a_->producer(match.a);
  if (a.id == kNoNode || !suspects_.reads_another_constant(a)) return;
  const auto region = regions_.run(match.a, match.b, instance);
  if (region.ok()) unmatching_.unmatch_compensated(regions_, match, instance, *region);
}

void ModelBlame::add_roots(const ValueMatch& match, const Region& region, const std::string& path, ModelRoot root,
                           const diff::RegionRunner& runner) {
  const Instance instance = diff::instance_of(path);
  if (!instance.iterations.empty()) root.first_iteration = instance.iterations.back();
  const diff::Interventions interventions(runner, match, instance, region, limit_at(path));
  add_culprits(match, path, diff::culprit_nodes(*a_, *b_, matching_, match, region, interventions), std::move(root));
}

void ModelBlame::add_roots_of_quantized(const ValueMatch& match, const std::string& path,
                                        const diff::WithoutQuantization& without) {
  ModelRoot root;
  root.introduced = without.severity;
  root.is_quantization = true;
  add_culprits(match, path, without.culprits, std::move(root));
}

void ModelBlame::add_culprits(const ValueMatch& match, const std::string& path, const std::vector<diff::Culprit>& nodes,
                              ModelRoot root) {
  root.path = path;
  root.confidence = match.confidence;
  for (const diff::Culprit& culprits : nodes) {
    root.node = culprits.node;
    root.why = culprits.why;
    root.wanted = culprits.wanted;
    root.instead = culprits.instead;
    root.b_reads = culprits.b_reads;
    root.is_draw = culprits.is_draw;
    root.node_b = culprits.node_b;
    root.is_missing_in_b = culprits.is_missing_in_b;
    root.is_of_stored_values = culprits.is_of_stored_values;
    root.order = static_cast<int64_t>(roots_.size());
    // Another output of the same node, or the same node seen from another value.
    const auto known = std::ranges::find(roots_, root.node, &ModelRoot::node);
    if (known == roots_.end()) {
      roots_.push_back(root);
    } else {
      known->introduced = std::max(known->introduced, root.introduced);
      known->also_seen_at.push_back(root.path);
    }
  }
}

// An If whose branches are swapped explains all that its bodies hold.
void ModelBlame::find_swapped_branches() {
  for (const LocatedNode& a : diff::find_swapped_branches(*a_, *b_)) {
    const ValueInfo* output = a.location->values[static_cast<size_t>(a.node().outputs.front())];
    if (output == nullptr) continue;
    settled_.push_back(a.location->scope + escape_name(a.node().display_name) + ".");
    for (const std::string& path : a_->captured_paths(output->id)) {
      const ValueComparison* const value = values_.find(path);
      if (value != nullptr && value->verdict == Verdict::pass) continue;
      ModelRoot root;
      root.node = a;
      root.path = path;
      root.why = "its branches are swapped in B";
      root.introduced = value == nullptr ? 0 : value->severity;
      root.always_counts = true;
      roots_.push_back(std::move(root));
      break;
    }
  }
}

// Constants that are stored quantized and are not the floats that they stand for.
void ModelBlame::find_wrong_held() {
  for (const ValueMatch& match : matching_.values) {
    if (match.is_extra || !has_diverged(match.a) || is_settled(match)) continue;
    const auto culprit = diff::explain_held(*a_, *b_, matching_, match);
    if (!culprit.has_value() || a_->captured_paths(match.a).empty()) continue;
    const std::string& path = a_->captured_paths(match.a).front();
    ModelRoot root;
    root.introduced = values_.find(path)->severity;
    add_culprits(match, path, {*culprit}, std::move(root));
  }
}

bool ModelBlame::is_settled(const ValueMatch& match) const {
  return std::ranges::any_of(settled_,
                             [&](const auto& frame) { return a_->value_info(match.a).scope.starts_with(frame); });
}

}  // namespace

Status blame_models(const BlameRequest& request, const Comparison& comparison, Diagnosis& diagnosis) {
  if (request.oracle == nullptr) return {};
  auto a = PX_TRY(ModelSide::create(request.a, request.oracle));
  auto b = PX_TRY(ModelSide::create(request.b, request.oracle));
  // One model in two types: where it is taken to the narrower one, no definition changes.
  if (diff::are_of_two_types(*a, *b)) {
    a->ignore_casts();
    b->ignore_casts();
  }
  return ModelBlame(request, comparison, std::move(a), std::move(b), diagnosis).run();
}

}  // namespace parallax
