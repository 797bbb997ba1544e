// SPDX-License-Identifier: Apache-2.0
// Comparing two dumps: matches their entries, then loads, compares and drops pair by pair.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspector/diff/compare/captured_weights.h"
#include "inspector/diff/compare/carried_errors.h"
#include "inspector/diff/compare/compare.h"
#include "inspector/diff/compare/error_picture.h"
#include "inspector/diff/compare/model_differences.h"
#include "inspector/diff/compare/sampled_elements.h"
#include "inspector/diff/matching/matching.h"
#include "inspector/diff/matching/path_links.h"
#include "inspector/diff/tolerance/judge.h"
#include "inspector/diff/tolerance/value_compare.h"
#include "inspector/diff/tolerance/value_origin.h"
#include "inspector/dump/statistics/statistics.h"

namespace parallax {
namespace {

using diff::Judge;
using diff::Located;
using diff::ValueInfoIndex;

constexpr int32_t kNone = -1;

bool carries_double(const DumpReader& dump) {
  return !dump.executions().empty() && dump.executions().front().executor.ends_with(":double");
}

// One dump's values of its first execution, findable by path, static path and name.
class DumpSide {
 public:
  explicit DumpSide(const DumpReader& dump) : dump_(dump) {
    std::shared_ptr<const Model> model;
    for (size_t graph = 0; graph < dump.graphs().size() && model == nullptr; ++graph) {
      if (dump.graphs()[graph].is_executed) continue;
      if (Result<std::shared_ptr<const Model>> loaded = dump.model(static_cast<int32_t>(graph)); loaded.ok())
        model = loaded.take();
    }
    model_ = model;
    value_infos_ = std::make_unique<ValueInfoIndex>(std::move(model));
    const auto entries = dump.entries();
    for (size_t index = 0; index < entries.size(); ++index) {
      const DumpEntry& entry = entries[index];
      if (entry.execution > 0) continue;
      if (entry.absence.has_value()) {
        const bool is_new = absent_.emplace(diff::static_path(entry.path), static_cast<int32_t>(index)).second;
        if (is_new) absent_in_order_.push_back(static_cast<int32_t>(index));
      } else {
        by_path_[entry.path].push_back(static_cast<int32_t>(index));
        if (entry.is_graph_output) outputs_.insert(entry.path.substr(diff::prefix_of(entry.path).size()));
        order_.push_back(static_cast<int32_t>(index));
      }
    }
  }

  const DumpEntry& entry(int32_t index) const { return dump_.entries()[static_cast<size_t>(index)]; }
  const std::vector<int32_t>& order() const { return order_; }
  const std::unordered_map<std::string, std::vector<int32_t>>& by_path() const { return by_path_; }
  const ValueInfo* value_info(std::string_view path) const { return value_infos_->find(path); }
  template <class Visit>
  void each_value_info(Visit&& visit) const {
    value_infos_->each(std::forward<Visit>(visit));
  }
  const DumpReader& dump() const { return dump_; }
  const std::shared_ptr<const Model>& model() const { return model_; }

  const Absence* absence(std::string_view path) const {
    const auto found = absent_.find(diff::static_path(path));
    return found == absent_.end() ? nullptr : &*entry(found->second).absence;
  }

  // Why a value of the other side is not here.
  std::string reason_for(std::string_view path, std::string_view side) const {
    if (const Absence* absence = this->absence(path)) return diff::reason_of(*absence);
    const bool in_main_graph = diff::static_path(path).find("//") == std::string::npos;
    if (value_info(path) != nullptr && (in_main_graph || !is_complete())) return "not captured";
    return fmt::format("{}{}", diff::kAbsentIn, side);
  }

  // True where its run came to its end.
  bool is_complete() const {
    return dump_.is_complete() && !dump_.executions().empty() && dump_.executions().front().completed;
  }
  // In any call.
  bool holds_output(const std::string& path) const {
    return by_path_.contains(path) || outputs_.contains(path) || absence(path) != nullptr;
  }

  const std::vector<int32_t>& absent() const { return absent_in_order_; }

 private:
  const DumpReader& dump_;
  std::shared_ptr<const Model> model_;
  std::unique_ptr<ValueInfoIndex> value_infos_;
  std::vector<int32_t> order_;
  std::unordered_map<std::string, std::vector<int32_t>> by_path_;
  std::unordered_set<std::string> outputs_;          // of the graph, escaped names
  std::unordered_map<std::string, int32_t> absent_;  // by static path
  std::vector<int32_t> absent_in_order_;
};

// Entry of B for each entry of A.
struct Matching {
  std::unordered_map<int32_t, int32_t> b_of_a;
  std::unordered_map<int32_t, int32_t> a_of_b;
  std::unordered_map<int32_t, MatchedBy> how;

  void link(int32_t a, int32_t b, MatchedBy matched_by) {
    b_of_a[a] = b;
    a_of_b[b] = a;
    how[a] = matched_by;
  }
};

bool runs_one_model(const DumpReader& a, const DumpReader& b) {
  if (a.executions().empty() || b.executions().empty()) return false;
  const std::string& sha256 = a.executions().front().model_sha256;
  return !sha256.empty() && sha256 == b.executions().front().model_sha256;
}

// Two dumps of different graphs: what the graphs say of each other.
diff::PathLinks links_between(const DumpSide& a, const DumpSide& b) {
  diff::PathLinks links;
  if (a.model() == nullptr || b.model() == nullptr || runs_one_model(a.dump(), b.dump())) return links;
  const auto infos_a = ValueTable::build(diff::with_captured_weights(a.dump(), a.model()));
  const auto infos_b = ValueTable::build(diff::with_captured_weights(b.dump(), b.model()));
  if (!infos_a.ok() || !infos_b.ok()) return links;
  for (const PathMatch& match : matched_paths(*infos_a, *infos_b, match_models(*infos_a, *infos_b))) links.link(match);
  links.close();
  return links;
}

void match_by_path(const DumpSide& a, const DumpSide& b, const diff::PathLinks& links, Matching& matching) {
  for (const auto& [path, in_a] : a.by_path()) {
    const bool is_linked = links.is_closed() && a.value_info(path) != nullptr;
    const auto in_b = b.by_path().find(is_linked ? links.b_path_of(path) : path);
    if (in_b == b.by_path().end()) continue;
    if (links.is_closed() && !is_linked && b.value_info(path) != nullptr) continue;
    const size_t count = std::min(in_a.size(), in_b->second.size());  // repeated calls pair up in order
    const MatchedBy how = in_b->first == path ? MatchedBy::path : links.how(path);
    for (size_t k = 0; k < count; ++k) matching.link(in_a[k], in_b->second[k], how);
  }
}

using Groups = std::unordered_map<std::string, std::vector<int32_t>>;

// Unmatched entries by a key; an empty key leaves one out.
template <class KeyOf>
Groups unmatched(const DumpSide& side, const std::unordered_map<int32_t, int32_t>& matched, KeyOf&& key_of) {
  Groups groups;
  for (const int32_t index : side.order()) {
    if (matched.contains(index)) continue;
    if (std::string key = key_of(side.entry(index)); !key.empty()) groups[std::move(key)].push_back(index);
  }
  return groups;
}

std::string name_key(const DumpEntry& entry) { return entry.name; }

// Type, shape and statistics: values that agree in all of them are one value. Nothing for what is small or uniform.
std::string content_key(const DumpEntry& entry) {
  constexpr int64_t kEnough = 8;
  if (!entry.statistics.has_value() || entry.statistics->count < kEnough) return "";
  if (!(entry.statistics->min < entry.statistics->max) || !is_floating(entry.type.dtype)) return "";
  const TensorStatistics& s = *entry.statistics;
  return fmt::format("{} {} {} {} {} {}", to_string(entry.type), s.min, s.max, s.l2, s.nan,
                     fmt::join(s.projections, " "));
}

void match_groups(const Groups& in_a, const Groups& in_b, MatchedBy how, bool only_single, Matching& matching) {
  for (const auto& [key, entries_a] : in_a) {
    const auto entries_b = in_b.find(key);
    if (entries_b == in_b.end() || entries_a.size() != entries_b->second.size()) continue;
    if (only_single && entries_a.size() != 1) continue;
    for (size_t k = 0; k < entries_a.size(); ++k) matching.link(entries_a[k], entries_b->second[k], how);
  }
}

Matching match(const DumpSide& a, const DumpSide& b, const diff::PathLinks& links, bool by_name) {
  Matching matching;
  match_by_path(a, b, links, matching);
  if (!by_name) return matching;
  // An equal name or content is chance where the graphs of two models determine the counterparts.
  if (links.is_closed()) return matching;
  match_groups(unmatched(a, matching.b_of_a, name_key), unmatched(b, matching.a_of_b, name_key), MatchedBy::name, false,
               matching);
  if (!runs_one_model(a.dump(), b.dump())) {
    match_groups(unmatched(a, matching.b_of_a, content_key), unmatched(b, matching.a_of_b, content_key),
                 MatchedBy::content, true, matching);
  }
  return matching;
}

Origin origin_of(ValueInfo::Role role) {
  return role == ValueInfo::Role::input         ? Origin::input
         : role == ValueInfo::Role::initializer ? Origin::constant
                                                : Origin::computed;
}

void describe(const DumpSide& side, const DumpEntry& entry, ValueComparison& result) {
  result.path = entry.path;
  result.origin = origin_of(entry.role);
  result.node = entry.node;
  result.op = entry.op;
  if (const ValueInfo* value_info = side.value_info(entry.path)) {
    diff::describe_producer(*value_info, result);
    result.origin = diff::origin_of(*value_info);
  }
  result.is_graph_output = entry.is_graph_output;
  diff::describe_type(entry.type, result);
}

class DumpComparer {
 public:
  DumpComparer(const DumpReader& a, const DumpReader& b, const Policy& policy, const CompareOptions& options)
      : a_(a),
        b_(b),
        judge_(policy),
        judge_b_(policy),
        gallery_(options.error_pictures),
        options_(options),
        links_(options.match_by_name ? links_between(a_, b_) : diff::PathLinks{}),
        widen_(carries_double(a) || carries_double(b) || links_.is_closed()) {
    if (diff::has_foreign_values(a) || diff::has_foreign_values(b)) {
      for (Judge* judge : {&judge_, &judge_b_}) judge->count_foreign_kernels();
    }
    if (!links_.is_closed()) return;
    a_.each_value_info([&](const ValueInfo& value_info) { differences_.add(true, value_info); });
    b_.each_value_info([&](const ValueInfo& value_info) { differences_.add(false, value_info); });
    for (Judge* judge : {&judge_, &judge_b_}) {
      if (differences_.is_one_quantized()) judge->count_quantization();
      if (differences_.are_of_two_types()) judge->count_casts();
    }
  }

  Result<std::vector<ValueComparison>> run() {
    const Matching matching = match(a_, b_, links_, options_.match_by_name);
    for (const int32_t index : a_.order()) {
      if (options_.cancel.is_cancelled()) return make_error(ErrorCode::cancelled, "the comparison was cancelled");
      Located& placed = add(a_, index);
      placed.order_in_a = index;
      placed.node_index = node_index(placed.comparison.path);
      placed.comparison.a = placed.comparison.path;
      const auto found = matching.b_of_a.find(index);
      const int32_t in_b = found == matching.b_of_a.end() ? kNone : found->second;
      if (in_b != kNone) {
        placed.order_in_b = in_b;
        placed.comparison.b = b_.entry(in_b).path;
        placed.comparison.matched_by = matching.how.at(index);
        if (links_.is_closed()) add_b_up_to(in_b);
      }
      if (in_b != kNone) carried_.expect(a_.entry(index), b_.entry(in_b), judge_, judge_b_);
      PX_TRY(compare(index, in_b, placed.comparison));
      carried_.remember(a_.entry(index), placed.comparison);
    }
    for (const int32_t index : b_.order()) {
      if (matching.a_of_b.contains(index)) continue;
      Located& placed = add(b_, index);
      placed.order_in_b = index;
      placed.comparison.b = placed.comparison.path;
      diff::set_not_compared(placed.comparison, a_.reason_for(links_.a_path_of(placed.comparison.path), "A"));
    }
    add_absent_in_both();
    add_unreached();
    std::vector<ValueComparison> values = diff::in_order(std::move(values_));
    if (links_.is_closed()) differences_.excuse_constants(values);
    std::erase_if(values, [&](const ValueComparison& value) { return links_.is_repeated(value); });
    return values;
  }

  std::vector<DamagedValue> take_damages() { return std::move(damages_); }

 private:
  int32_t node_index(const std::string& path_in_a) const {
    const ValueInfo* value_info = a_.value_info(path_in_a);
    return value_info == nullptr ? -1 : value_info->node_index;
  }

  Located& add(const DumpSide& side, int32_t index) {
    Located& placed = values_.emplace_back();
    describe(side, side.entry(index), placed.comparison);
    return placed;
  }

  // A value's size and type, from whatever was kept of it. What only this side has counts as well: it rounds, and what
  // follows carries that on.
  int64_t add_to(Judge& judge, const DumpSide& side, int32_t index) {
    const DumpEntry& entry = side.entry(index);
    const ValueInfo* value_info = side.value_info(entry.path);
    const bool is_a = &side == &a_;
    const auto rounding = [&](DType dtype) {
      if (carries_double(side.dump())) dtype = diff::declared_type(value_info, dtype);
      return is_a ? dtype : differences_.type_that_rounds(dtype);
    };
    const bool has_payload = diff::has_payload(entry);
    const auto loaded = has_payload ? side.dump().load(index) : Result<Value>(Value());
    if (loaded.ok() && has_payload) {
      const DType dtype = diff::innermost(type_of(*loaded)).dtype;
      if (entry.level == CaptureLevel::sample && loaded->is_tensor())
        return judge.add_sample(entry.path, value_info, entry.type, loaded->tensor(), rounding(dtype));
      return judge.add(entry.path, value_info, *loaded, rounding(dtype));
    }
    if (!entry.statistics.has_value()) return -1;
    return judge.add(entry.path, value_info, entry.type, *entry.statistics,
                     rounding(diff::innermost(entry.type).dtype));
  }

  // Carried in double, and no type is declared.
  static bool has_open_type(const DumpSide& side, const DumpEntry& entry) {
    const DType declared = diff::declared_type(side.value_info(entry.path), DType::undefined);
    return carries_double(side.dump()) && declared == DType::undefined;
  }

  void add_b_up_to(int32_t in_b) {
    for (; added_b_ < b_.order().size() && b_.order()[added_b_] <= in_b; ++added_b_) {
      const int32_t index = b_.order()[added_b_];
      numbers_b_[index] = add_to(judge_b_, b_, index);
    }
  }

  // A's position for values that were not reached.
  int64_t after_all() const { return static_cast<int64_t>(a_.dump().entries().size()); }

  // Values that neither plan has: each once, so that nothing of the source graph goes unsaid.
  void add_absent_in_both() {
    for (const int32_t index : a_.absent()) {
      const std::string path_b = links_.b_path_of(diff::static_path(a_.entry(index).path));
      if (b_.absence(path_b) == nullptr) continue;
      Located& placed = add(a_, index);
      placed.order_in_a = after_all() + 1 + index;
      placed.node_index = node_index(a_.entry(index).path);
      placed.stands_by_node = true;
      placed.comparison.a = placed.comparison.path;
      placed.comparison.b = path_b;
      diff::set_not_compared(placed.comparison, diff::reason_of(*a_.entry(index).absence));
    }
  }

  // Outputs that neither run came to, or neither dump kept: without them, two runs that broke off would seem to agree.
  void add_unreached() {
    a_.each_value_info([&](const ValueInfo& value_info) {
      const std::string path = value_info.scope + value_info.escaped_name;
      if (!value_info.is_graph_output || a_.holds_output(path) || b_.holds_output(links_.b_path_of(path))) return;
      Located& placed = values_.emplace_back();
      placed.order_in_a = after_all();
      ValueComparison& value = placed.comparison;
      value.path = value.a = path;
      value.b = links_.b_path_of(path);
      value.is_graph_output = true;
      diff::describe_producer(value_info, value);
      diff::describe_type(value_info.graph->values[static_cast<size_t>(value_info.value)].type, value);
      diff::set_not_compared(value, "not captured");
    });
  }

  Status compare(int32_t in_a, int32_t in_b, ValueComparison& result) {
    const DumpEntry& a = a_.entry(in_a);
    const int64_t number = add_to(judge_, a_, in_a);
    if (in_b == kNone) return diff::set_not_compared(result, b_.reason_for(links_.b_path_of(a.path), "B")), Status{};
    const DumpEntry& b = b_.entry(in_b);
    if (!diff::has_payload(a) || !diff::has_payload(b))
      return compare_statistics(in_a, in_b, context_of(a, number, in_b), result), Status{};
    auto loaded_a = a_.dump().load(in_a), loaded_b = b_.dump().load(in_b);
    if (!loaded_a.ok() || !loaded_b.ok()) return leave_out(in_a, loaded_a, in_b, loaded_b, result);
    const diff::CompareContext context = context_of(a, number, in_b);
    if (!same_type(a.type, b.type, result)) return {};
    diff::CommonElements both =
        PX_TRY(diff::common_elements(a, std::move(loaded_a).take(), b, std::move(loaded_b).take()));
    double cut_off = 0;
    if (links_.is_closed()) {
      auto held = differences_.as_held_by_both({both.a, both.b}, a.path, b.path);
      both.a = std::move(held.a), both.b = std::move(held.b), cut_off = held.cut_off;
    }
    diff::judge_values(both.a, both.b, context, result);
    if (result.metrics.has_value()) {
      const double found = std::hypot(result.metrics->rmse, cut_off);
      judge_.found_difference(a.path, found);
      if (links_.is_closed()) judge_b_.found_difference(b.path, found);
    }
    if (both.locations.has_value())
      diff::conclude_sample(a, b, *both.locations, context, result);
    else
      gallery_.consider(both.a, both.b, result);
    return {};
  }

  diff::CompareContext context_of(const DumpEntry& a, int64_t number, int32_t in_b) {
    const DumpEntry& b = b_.entry(in_b);
    const DType dtype_a = diff::innermost(a.type).dtype, dtype_b = diff::innermost(b.type).dtype;
    if (has_open_type(a_, a)) judge_.rounds_as(number, dtype_b);
    Limit limit = judge_.limit_of(number, a.path);
    if (links_.is_closed()) {
      const int64_t number_b = numbers_b_.at(in_b);
      if (has_open_type(b_, b)) judge_b_.rounds_as(number_b, dtype_a);
      limit = diff::wider(limit, judge_b_.limit_of(number_b, b.path));
      limit = differences_.with_storing(limit, {a.path, dtype_a}, {b.path, dtype_b});
    }
    return {limit, diff::is_exempt_from_mistrust(a) || diff::is_exempt_from_mistrust(b), widen_,
            links_.is_closed() && differences_.is_one_quantized()};
  }

  // A pair whose payload is damaged on a side: nothing is said of it but that, and all else is compared. What follows
  // it carries its rounding all the same.
  Status leave_out(int32_t in_a, const Result<Value>& value_a, int32_t in_b, const Result<Value>& value_b,
                   ValueComparison& result) {
    const DumpEntry& a = a_.entry(in_a);
    const DumpEntry& b = b_.entry(in_b);
    std::string sides;
    for (const auto& [value, side, path] : {std::tuple(&value_a, Side::a, &a.path), {&value_b, Side::b, &b.path}}) {
      if (value->ok()) continue;
      if (value->error().code != ErrorCode::corrupt_file) return Error(value->error());
      sides += fmt::format("{}{}", sides.empty() ? "" : " and ", name_of(side));
      damages_.push_back({side, *path, value->error().message});
    }
    diff::set_not_compared(result, "not captured");
    result.note = "damaged in " + sides;
    return {};
  }

  // Shapes and, unless floats may be widened, types must be equal; otherwise says so.
  bool same_type(const TypeInfo& a, const TypeInfo& b, ValueComparison& result) const {
    const bool both_tensors = a.kind == TypeInfo::Kind::tensor && b.kind == TypeInfo::Kind::tensor;
    const bool may_widen = widen_ && both_tensors && is_floating(a.dtype) && is_floating(b.dtype);
    if (a.kind != b.kind || (both_tensors && a.dtype != b.dtype && !may_widen))
      return diff::set_not_compared(result, "dtype differs"), false;
    if (!both_tensors || a.dims == b.dims) return true;
    result.is_same_count = diff::shape_of(a).element_count() == diff::shape_of(b).element_count();
    return diff::set_shapes_differ(result, diff::shape_text(a), diff::shape_text(b)), false;
  }

  // The statistics of a value, counted as the other side's are where its elements are at hand.
  static TensorStatistics statistics_across(const DumpSide& side, int32_t index, const TensorStatistics& other) {
    const DumpEntry& entry = side.entry(index);
    const TensorStatistics& own = *entry.statistics;
    if (entry.level != CaptureLevel::all || have_comparable_projections(own, other) || !other.has_projections)
      return own;
    const auto loaded = side.dump().load(index);
    return loaded.ok() && loaded->is_tensor() ? compute_statistics(loaded->tensor(), other.order) : own;
  }

  void compare_statistics(int32_t in_a, int32_t in_b, const diff::CompareContext& context,
                          ValueComparison& result) const {
    const DumpEntry &a = a_.entry(in_a), &b = b_.entry(in_b);
    if (!same_type(a.type, b.type, result)) return;
    if (!diff::can_tell_apart(a, b)) return diff::set_not_compared(result, "not captured");
    const int64_t count_a = a.statistics->count, count_b = b.statistics->count;
    if (count_a != count_b)
      return diff::set_shapes_differ(result, fmt::format("{} elements", count_a), fmt::format("{} elements", count_b));
    const TensorStatistics of_a = statistics_across(a_, in_a, *b.statistics);
    diff::judge_statistics(of_a, statistics_across(b_, in_b, of_a), diff::is_exact_type(a.type), context, result);
  }

  DumpSide a_, b_;
  Judge judge_, judge_b_;
  PictureGallery gallery_;
  const CompareOptions& options_;
  diff::PathLinks links_;
  diff::ModelDifferences differences_;
  bool widen_;
  size_t added_b_ = 0;                              // of B's entries, in order
  std::unordered_map<int32_t, int64_t> numbers_b_;  // of those, in B's judge
  std::vector<Located> values_;
  diff::CarriedErrors carried_;
  std::vector<DamagedValue> damages_;
};

void add_executions(const DumpReader& dump, Side side, Comparison& comparison) {
  if (dump.executions().empty()) {
    comparison.executions.push_back({"imported", side, "", {}, "", 0, ""});
    return;
  }
  const DumpExecution& execution = dump.executions().front();
  comparison.executions.push_back({execution.executor, side, execution.device, execution.settings,
                                   execution.model_sha256, std::max(0.0, execution.wall_ms), execution.model_path});
}

}  // namespace

Result<Comparison> compare_dumps(const DumpReader& a, const DumpReader& b, const Policy& policy,
                                 const CompareOptions& options) {
  Comparison comparison;
  add_executions(a, Side::a, comparison);
  add_executions(b, Side::b, comparison);
  DumpComparer comparer(a, b, policy, options);
  comparison.values = PX_TRY(comparer.run());
  comparison.damages = comparer.take_damages();
  conclude(comparison);
  return comparison;
}

}  // namespace parallax
