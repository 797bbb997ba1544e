// Comparing two dumps: matches their entries, then loads, compares and drops pair by pair.
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "inspector/diff/compare.h"
#include "inspector/diff/error_picture.h"
#include "inspector/diff/judge.h"
#include "inspector/diff/value_compare.h"

namespace parallax {
namespace {

using diff::Judge;
using diff::Placed;
using diff::SiteIndex;

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
    sites_ = std::make_unique<SiteIndex>(std::move(model));
    const auto entries = dump.entries();
    for (size_t index = 0; index < entries.size(); ++index) {
      const DumpEntry& entry = entries[index];
      if (entry.execution > 0) continue;
      if (entry.absence.has_value()) {
        absent_.emplace(diff::static_path(entry.path), static_cast<int32_t>(index));
      } else {
        by_path_[entry.path].push_back(static_cast<int32_t>(index));
        order_.push_back(static_cast<int32_t>(index));
      }
    }
  }

  const DumpEntry& entry(int32_t index) const { return dump_.entries()[static_cast<size_t>(index)]; }
  const std::vector<int32_t>& order() const { return order_; }
  const std::unordered_map<std::string, std::vector<int32_t>>& by_path() const { return by_path_; }
  const ValueSite* site(std::string_view path) const { return sites_->find(path); }
  const DumpReader& dump() const { return dump_; }

  const Absence* absence(std::string_view path) const {
    const auto found = absent_.find(diff::static_path(path));
    return found == absent_.end() ? nullptr : &*entry(found->second).absence;
  }

  // Why a value of the other side is not here.
  std::string reason_for(std::string_view path, std::string_view side) const {
    if (const Absence* absence = this->absence(path)) return diff::reason_of(*absence);
    const bool is_complete = dump_.is_complete() && !dump_.executions().empty() && dump_.executions().front().completed;
    const bool in_main_graph = diff::static_path(path).find("//") == std::string::npos;
    if (site(path) != nullptr && (in_main_graph || !is_complete)) return "not captured";
    return fmt::format("absent in {}", side);
  }

  const std::unordered_map<std::string, int32_t>& absent() const { return absent_; }

 private:
  const DumpReader& dump_;
  std::unique_ptr<SiteIndex> sites_;
  std::vector<int32_t> order_;
  std::unordered_map<std::string, std::vector<int32_t>> by_path_;
  std::unordered_map<std::string, int32_t> absent_;
};

// Entry of B for each entry of A, by path, then by name.
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

using Named = std::unordered_map<std::string, std::vector<int32_t>>;

Named unmatched_by_name(const DumpSide& side, const std::unordered_map<int32_t, int32_t>& matched) {
  Named named;
  for (const int32_t index : side.order()) {
    if (!matched.contains(index)) named[side.entry(index).name].push_back(index);
  }
  return named;
}

Matching match(const DumpSide& a, const DumpSide& b, bool by_name) {
  Matching matching;
  for (const auto& [path, in_a] : a.by_path()) {
    const auto in_b = b.by_path().find(path);
    if (in_b == b.by_path().end()) continue;
    const size_t count = std::min(in_a.size(), in_b->second.size());  // repeated calls pair up in order
    for (size_t k = 0; k < count; ++k) matching.link(in_a[k], in_b->second[k], MatchedBy::path);
  }
  if (!by_name) return matching;
  const Named named_a = unmatched_by_name(a, matching.b_of_a), named_b = unmatched_by_name(b, matching.a_of_b);
  for (const auto& [name, in_a] : named_a) {
    const auto in_b = named_b.find(name);
    if (in_b == named_b.end() || in_a.size() != in_b->second.size()) continue;
    for (size_t k = 0; k < in_a.size(); ++k) matching.link(in_a[k], in_b->second[k], MatchedBy::name);
  }
  return matching;
}

void describe(const DumpSide& side, const DumpEntry& entry, ValueComparison& result) {
  result.path = entry.path;
  result.node = entry.node;
  result.op = entry.op;
  if (const ValueSite* site = side.site(entry.path)) diff::describe_producer(*site, result);
  result.is_graph_output = entry.is_graph_output;
  diff::describe_type(entry.type, result);
}

bool is_exact_tensor(const TypeInfo& type) { return !is_floating(type.dtype) && !is_complex(type.dtype); }

class DumpComparer {
 public:
  DumpComparer(const DumpReader& a, const DumpReader& b, const Policy& policy, const CompareOptions& options)
      : a_(a), b_(b), judge_(policy), options_(options), widen_(carries_double(a) || carries_double(b)) {}

  Result<std::vector<ValueComparison>> run() {
    const Matching matching = match(a_, b_, options_.match_by_name);
    for (const int32_t index : a_.order()) {
      if (options_.cancel.is_cancelled()) return make_error(ErrorCode::cancelled, "the comparison was cancelled");
      Placed& placed = add(a_, index);
      placed.order_in_a = index;
      placed.comparison.a = placed.comparison.path;
      const auto found = matching.b_of_a.find(index);
      const int32_t in_b = found == matching.b_of_a.end() ? kNone : found->second;
      if (in_b != kNone) {
        placed.order_in_b = in_b;
        placed.comparison.b = b_.entry(in_b).path;
        placed.comparison.matched_by = matching.how.at(index);
      }
      PX_TRY(compare(index, in_b, placed.comparison));
    }
    for (const int32_t index : b_.order()) {
      if (matching.a_of_b.contains(index)) continue;
      Placed& placed = add(b_, index);
      placed.order_in_b = index;
      placed.comparison.b = placed.comparison.path;
      diff::set_not_compared(placed.comparison, a_.reason_for(placed.comparison.path, "A"));
    }
    add_absent_in_both();
    return diff::in_order(std::move(values_));
  }

 private:
  Placed& add(const DumpSide& side, int32_t index) {
    Placed& placed = values_.emplace_back();
    describe(side, side.entry(index), placed.comparison);
    return placed;
  }

  // Values that neither plan has: each once, so that nothing of the source graph goes unsaid.
  void add_absent_in_both() {
    for (const auto& [path, index] : a_.absent()) {
      if (b_.absence(path) == nullptr) continue;
      Placed& placed = add(a_, index);
      placed.order_in_a = index;
      placed.comparison.a = placed.comparison.b = placed.comparison.path;
      diff::set_not_compared(placed.comparison, diff::reason_of(*a_.entry(index).absence));
    }
  }

  Status compare(int32_t in_a, int32_t in_b, ValueComparison& result) {
    const DumpEntry& a = a_.entry(in_a);
    const ValueSite* site = a_.site(a.path);
    const bool has_payload = a.level == CaptureLevel::all || a.level == CaptureLevel::sample;
    if (!has_payload || in_b == kNone || b_.entry(in_b).level != a.level)
      return compare_statistics(a, in_b, site, result);
    const Value value_a = PX_TRY(a_.dump().load(in_a));
    const Value value_b = PX_TRY(b_.dump().load(in_b));
    const DType fallback = value_a.is_tensor() ? value_a.tensor().dtype() : DType::undefined;
    const DType declared = widen_ ? diff::declared_type(site, fallback) : fallback;
    const int64_t number = judge_.add(a.path, site, value_a, declared);
    diff::CompareContext context{judge_.limit_of(number, a.path), is_exempt(a), widen_};
    if (!same_type(a.type, b_.entry(in_b).type, result)) return {};
    diff::judge_values(value_a, value_b, context, result);
    if (result.metrics.has_value()) judge_.found_difference(a.path, result.metrics->rmse);
    if (a.level == CaptureLevel::all) gallery_.consider(value_a, value_b, result);
    if (a.level == CaptureLevel::sample) {
      diff::describe_type(a.type, result);
      if (result.metrics.has_value())
        result.metrics->worst_index.clear();  // an index into the sample, not into the tensor
      if (result.verdict == Verdict::pass || result.verdict == Verdict::diverged)
        result.reason = "compared by a sample of elements";
    }
    return {};
  }

  // Shapes and, unless floats may be widened, types must be equal; otherwise says so.
  bool same_type(const TypeInfo& a, const TypeInfo& b, ValueComparison& result) const {
    const bool both_tensors = a.kind == TypeInfo::Kind::tensor && b.kind == TypeInfo::Kind::tensor;
    const bool may_widen = widen_ && both_tensors && is_floating(a.dtype) && is_floating(b.dtype);
    if (a.kind != b.kind || (both_tensors && a.dtype != b.dtype && !may_widen))
      return diff::set_not_compared(result, "dtype differs"), false;
    if (both_tensors && a.dims != b.dims) return diff::set_not_compared(result, "shape differs"), false;
    return true;
  }

  Status compare_statistics(const DumpEntry& a, int32_t in_b, const ValueSite* site, ValueComparison& result) {
    Limit limit;
    if (a.statistics.has_value()) limit = judge_.limit_of(judge_.add(a.path, site, a.type, *a.statistics), a.path);
    if (in_b == kNone) return diff::set_not_compared(result, b_.reason_for(a.path, "B")), Status{};
    const DumpEntry& b = b_.entry(in_b);
    if (!same_type(a.type, b.type, result)) return {};
    if (!a.statistics.has_value() || !b.statistics.has_value() || a.type.dtype == DType::string) {
      return diff::set_not_compared(result, "not captured"), Status{};
    }
    diff::judge_statistics(*a.statistics, *b.statistics, is_exact_tensor(a.type), {limit, is_exempt(a), widen_},
                           result);
    return {};
  }

  static bool is_exempt(const DumpEntry& entry) {
    return entry.is_constant_like || entry.role != ValueSite::Role::node_output;
  }

  DumpSide a_, b_;
  Judge judge_;
  PictureGallery gallery_;
  const CompareOptions& options_;
  bool widen_;
  std::vector<Placed> values_;
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
  comparison.values = PX_TRY(DumpComparer(a, b, policy, options).run());
  conclude(comparison);
  return comparison;
}

}  // namespace parallax
