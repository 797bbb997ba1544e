// SPDX-License-Identifier: Apache-2.0
// The meeting point of two executions: whoever comes second compares, with nothing locked.
#include "inspector/diff/compare/stream_compare.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#include "inspector/diff/compare/compare.h"
#include "inspector/diff/compare/error_picture.h"
#include "inspector/diff/compare/model_differences.h"
#include "inspector/diff/compare/stream_side.h"
#include "inspector/diff/tolerance/value_compare.h"
#include "inspector/diff/tolerance/value_origin.h"
#include "inspector/exec/executor_names.h"
#include "inspector/exec/value_path.h"

namespace parallax {
namespace {

using diff::Located;
using diff::Seen;
using diff::StreamSide;

// A copy that outlives the event; nothing for payloads that are not on the host.
Result<Value> keep(const Value& value, bool is_constant) {
  if (value.is_tensor()) {
    const Tensor& tensor = value.tensor();
    if (!tensor.defined() || is_constant) return value;  // constants belong to the model and stay as they are
    return Value(PX_TRY(tensor.clone()));
  }
  const auto keep_all = [&](std::vector<Value>& items) -> Status {
    for (Value& item : items) item = PX_TRY(keep(item, is_constant));
    return {};
  };
  if (value.is_sequence()) {
    SequenceValue sequence = value.sequence();
    PX_TRY(keep_all(sequence.items));
    return Value(std::move(sequence));
  }
  if (value.is_optional()) {
    OptionalValue optional = value.optional();
    PX_TRY(keep_all(optional.item));
    return Value(std::move(optional));
  }
  if (value.is_map()) {
    MapValue map = value.map();
    map.keys = PX_TRY(map.keys.clone());
    PX_TRY(keep_all(map.values));
    return Value(std::move(map));
  }
  return value;
}

}  // namespace

class StreamComparer::Impl {
 public:
  Impl(const Policy& policy, StreamOptions options)
      : options_(std::move(options)), judge_(policy), gallery_(options_.error_pictures), judge_b_(policy) {
    options_.follows_rest = options_.follows_rest && !policy.tolerance.has_value();
    if (options_.matches.has_value()) {
      for (const PathMatch& match : *options_.matches) links_.link(match);
      links_.close();
    }
    for (const auto& [path, error] : options_.inherited) {
      judge_.expect_error(path, error);
      judge_b_.expect_error(links_.b_path_of(path), error);
    }
  }

  Observer& observer(bool is_a) { return is_a ? observer_a_ : observer_b_; }
  Comparison finish();
  void count_foreign_kernels() { judge_.count_foreign_kernels(), judge_b_.count_foreign_kernels(); }

 private:
  class SideObserver final : public Observer {
   public:
    SideObserver(Impl& impl, bool is_a) : impl_(impl), is_a_(is_a) {}
    CaptureLevel wants(const ValueInfo& value_info) override { return impl_.wants(is_a_, value_info); }
    Status begin_run(const RunInfo& run) override { return impl_.begin_run(is_a_, run); }
    Status begin_call(const CallInfo&, std::span<const Value>) override { return impl_.begin_call(is_a_); }
    Status absent(const ValueInfo& value_info, const Absence& absence) override {
      return impl_.add_absent(is_a_, value_info, absence);
    }
    Status observe(const Observation& observation) override { return impl_.observe(is_a_, observation); }
    Status end_run(bool completed) override { return impl_.end_run(is_a_, completed); }

   private:
    Impl& impl_;
    bool is_a_;
  };

  StreamSide& side(bool is_a) { return is_a ? a_ : b_; }

  CaptureLevel wants(bool is_a, const ValueInfo& value_info);
  bool is_wanted(const Observation& observation) const;
  bool is_reported(const ValueComparison& value) const;
  Status begin_run(bool is_a, const RunInfo& run);
  Status begin_call(bool is_a);
  Status add_absent(bool is_a, const ValueInfo& value_info, const Absence& absence);
  Status observe(bool is_a, const Observation& observation);
  Status end_run(bool is_a, bool completed);

  Seen describe(bool is_a, const Observation& observation);
  void link_names();
  void compare(bool is_a, Seen seen, const Value& value, Seen counterpart);
  void add_unmatched(bool is_a, Seen seen);
  void add_unseen_outputs();
  void add_absent_in_both();

  StreamOptions options_;
  diff::Judge judge_;
  PictureGallery gallery_;
  diff::Judge judge_b_;  // of two models: B's own rounding counts as well
  diff::ModelDifferences differences_;
  std::mutex mutex_;
  std::condition_variable moved_;
  // Positions in A of the values that are being compared, on either thread. A limit follows from what was found before
  // it: a comparison waits for those before it, so that the document does not depend on which thread is quicker.
  std::set<int64_t> comparing_;
  std::condition_variable compared_;
  StreamSide a_, b_;
  diff::PathLinks links_;
  std::vector<Located> results_;
  bool widen_ = false;  // a side carries floats as double
  SideObserver observer_a_{*this, true}, observer_b_{*this, false};
};

CaptureLevel StreamComparer::Impl::wants(bool is_a, const ValueInfo& value_info) {
  const std::string path = value_info.scope + value_info.escaped_name;
  const auto matches = [&](const std::string& glob) { return glob_matches(static_glob(glob), path); };
  const bool is_wanted = options_.only.empty() || value_info.is_graph_output ||
                         std::any_of(options_.only.begin(), options_.only.end(), matches);
  if (!is_wanted && !options_.follows_rest) return CaptureLevel::none;
  StreamSide::Entry entry;
  entry.name = value_info.name;
  entry.description.path = path;
  entry.node_index = value_info.node_index;
  diff::describe_producer(value_info, entry.description);
  const std::lock_guard lock(mutex_);
  if (links_.is_closed()) differences_.add(is_a, value_info);
  side(is_a).value_infos.insert_or_assign(path, std::move(entry));
  return CaptureLevel::all;
}

Status StreamComparer::Impl::begin_run(bool is_a, const RunInfo& run) {
  const std::lock_guard lock(mutex_);
  side(is_a).run = run;
  side(is_a).run.model.reset();
  side(is_a).begin = std::chrono::steady_clock::now();
  widen_ = widen_ || run.executor.ends_with(":double");
  if (is_foreign_executor(run.executor)) count_foreign_kernels();  // no limit is asked for before both sides run
  return {};
}

Status StreamComparer::Impl::begin_call(bool is_a) {
  const std::lock_guard lock(mutex_);
  ++side(is_a).calls_begun;
  if (a_.calls_begun > 0 && b_.calls_begun > 0) link_names();
  moved_.notify_all();
  return {};
}

// Both sides' values are known: values of B that came early get the keys that A's will have.
void StreamComparer::Impl::link_names() {
  if (!options_.match_by_name || links_.is_closed()) return;
  diff::link_names(a_, b_, links_);
  std::vector<std::string> renamed;
  for (const auto& [key, seen] : b_.waiting) {
    if (links_.a_path_of(seen.placed.comparison.path) != seen.placed.comparison.path) renamed.push_back(key);
  }
  for (const std::string& key : renamed) {
    Seen seen = b_.take(key);
    const std::string suffix = key.substr(seen.placed.comparison.path.size());
    seen.key = links_.a_path_of(seen.placed.comparison.path) + suffix;
    b_.put(std::move(seen));
  }
}

Status StreamComparer::Impl::add_absent(bool is_a, const ValueInfo& value_info, const Absence& absence) {
  const std::lock_guard lock(mutex_);
  StreamSide& own = side(is_a);
  const std::string path = value_info.scope + value_info.escaped_name;
  if (own.absent.insert_or_assign(path, absence).second) own.absent_in_order.push_back(path);
  StreamSide::Entry& entry = own.value_infos[path];
  entry.name = value_info.name;
  entry.description.path = path;
  diff::describe_producer(value_info, entry.description);
  return {};
}

Seen StreamComparer::Impl::describe(bool is_a, const Observation& observation) {
  Seen seen;
  ValueComparison& comparison = seen.placed.comparison;
  comparison.path = observation.path();
  (is_a ? comparison.a : comparison.b) = comparison.path;
  diff::describe_producer(observation.value_info, comparison);
  comparison.origin = diff::origin_of(observation.value_info);
  diff::describe_type(type_of(observation.value), comparison);
  seen.is_exempt = diff::is_exempt_from_mistrust(observation.value_info);
  seen.bytes = payload_bytes(observation.value);
  DType dtype = diff::innermost(type_of(observation.value)).dtype;
  seen.dtype = dtype;
  if (!is_a && !links_.is_closed()) return seen;
  if (side(is_a).run.executor.ends_with(":double")) {
    const DType declared = diff::declared_type(&observation.value_info, DType::undefined);
    seen.has_open_type = declared == DType::undefined;
    if (!seen.has_open_type) dtype = declared;
  }
  if (!is_a) dtype = differences_.type_that_rounds(dtype);
  seen.number = (is_a ? judge_ : judge_b_).add(comparison.path, &observation.value_info, observation.value, dtype);
  return seen;
}

// True for an iteration or step that the globs name.
bool StreamComparer::Impl::is_wanted(const Observation& observation) const {
  if (options_.only.empty() || options_.follows_rest || observation.value_info.is_graph_output) return true;
  const std::string path = observation.path();
  return std::ranges::any_of(options_.only, [&](const std::string& glob) { return glob_matches(glob, path); });
}

// True where a value is part of the document; others were compared for the sake of limits.
bool StreamComparer::Impl::is_reported(const ValueComparison& value) const {
  if (options_.only.empty() || value.is_graph_output) return true;
  return std::ranges::any_of(options_.only, [&](const std::string& glob) {
    return glob_matches(glob, value.path) || glob_matches(glob, value.b);
  });
}

Status StreamComparer::Impl::observe(bool is_a, const Observation& observation) {
  if (!diff::is_on_host(observation.value)) return {};  // said as "not captured" when all has ended
  if (!is_wanted(observation)) return {};
  Seen seen = describe(is_a, observation);
  StreamSide& own = side(is_a);
  StreamSide& other = side(!is_a);
  std::unique_lock lock(mutex_);
  const std::string& path = seen.placed.comparison.path;
  if (const auto value_info = own.value_infos.find(diff::static_path(path)); value_info != own.value_infos.end())
    value_info->second.was_seen = true;
  (is_a ? seen.placed.order_in_a : seen.placed.order_in_b) = own.next_order++;
  if (is_a) seen.placed.node_index = observation.value_info.node_index;
  const int64_t occurrence = own.occurrences[path]++;
  const std::string suffix = occurrence == 0 ? "" : "\n" + std::to_string(occurrence);
  const auto key = [&] { return (is_a ? path : links_.a_path_of(path)) + suffix; };
  const auto counterpart_path = [&] { return is_a ? links_.b_path_of(path) : links_.a_path_of(path); };
  const auto may_come = [&] { return other.may_deliver(counterpart_path(), own.calls_begun); };
  own.is_waiting = true;
  moved_.wait(lock, [&] {
    return other.waiting.contains(key()) || !may_come() || own.has_room_for(seen.bytes, options_.buffer_bytes) ||
           other.is_waiting;
  });
  own.is_waiting = false;
  seen.key = key();
  if (other.waiting.contains(seen.key)) {
    Seen counterpart = other.take(seen.key);
    moved_.notify_all();
    comparing_.insert(is_a ? seen.placed.order_in_a : counterpart.placed.order_in_a);
    lock.unlock();
    compare(is_a, std::move(seen), observation.value, std::move(counterpart));
    return {};
  }
  if (!may_come()) {
    own.unmatched.push_back(std::move(seen));
    return {};
  }
  // Copied under the lock: the other side must not miss it between the search and the storing. A copy is quick compared
  // with a comparison.
  seen.value = PX_TRY(keep(observation.value, observation.value_info.role == ValueInfo::Role::initializer));
  own.put(std::move(seen));
  moved_.notify_all();
  return {};
}

void StreamComparer::Impl::compare(bool is_a, Seen seen, const Value& value, Seen counterpart) {
  Seen& in_a = is_a ? seen : counterpart;
  Seen& in_b = is_a ? counterpart : seen;
  in_a.placed.order_in_b = in_b.placed.order_in_b;
  ValueComparison& comparison = in_a.placed.comparison;
  comparison.b = in_b.placed.comparison.path;
  comparison.matched_by = comparison.path == comparison.b ? MatchedBy::path : links_.how(comparison.path);
  comparison.is_graph_output = comparison.is_graph_output || in_b.placed.comparison.is_graph_output;
  const int64_t location = in_a.placed.order_in_a;
  {
    std::unique_lock lock(mutex_);
    compared_.wait(lock, [&] { return *comparing_.begin() == location; });
  }
  for (diff::Judge* judge : {&judge_, &judge_b_}) {
    if (links_.is_closed() && differences_.are_of_two_types()) judge->count_casts();
    if (links_.is_closed() && differences_.is_one_quantized()) judge->count_quantization();
  }
  if (in_a.has_open_type) judge_.rounds_as(in_a.number, in_b.dtype);
  if (in_b.has_open_type) judge_b_.rounds_as(in_b.number, in_a.dtype);
  Limit limit = judge_.limit_of(in_a.number, comparison.path);
  if (links_.is_closed()) {
    limit = diff::wider(limit, judge_b_.limit_of(in_b.number, comparison.b));
    limit = differences_.with_storing(limit, {comparison.path, in_a.dtype}, {comparison.b, in_b.dtype});
  }
  const diff::CompareContext context{limit, in_a.is_exempt || in_b.is_exempt, widen_ || links_.is_closed(),
                                     links_.is_closed() && differences_.is_one_quantized()};
  Value value_a = is_a ? value : counterpart.value, value_b = is_a ? counterpart.value : value;
  double cut_off = 0;
  if (links_.is_closed()) {
    auto held = differences_.as_held_by_both({value_a, value_b}, comparison.path, comparison.b);
    value_a = std::move(held.a), value_b = std::move(held.b), cut_off = held.cut_off;
  }
  diff::judge_values(value_a, value_b, context, comparison);
  if (is_reported(comparison)) gallery_.consider(value_a, value_b, comparison);
  if (comparison.metrics.has_value()) {
    const double found = std::hypot(comparison.metrics->rmse, cut_off);
    judge_.found_difference(comparison.path, found);
    if (links_.is_closed()) judge_b_.found_difference(comparison.b, found);
  }
  const std::lock_guard lock(mutex_);
  comparing_.erase(location);
  compared_.notify_all();
  if (options_.on_value && is_reported(comparison)) options_.on_value(comparison);
  results_.push_back(std::move(in_a.placed));
}

Status StreamComparer::Impl::end_run(bool is_a, bool completed) {
  const std::lock_guard lock(mutex_);
  StreamSide& own = side(is_a);
  own.has_ended = true;
  own.has_completed = completed;
  own.wall_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - own.begin).count();
  moved_.notify_all();
  return {};
}

void StreamComparer::Impl::add_unmatched(bool is_a, Seen seen) {
  const std::string& path = seen.placed.comparison.path;
  const std::string other_path = is_a ? links_.b_path_of(path) : links_.a_path_of(path);
  diff::set_not_compared(seen.placed.comparison, side(!is_a).reason_for(other_path, is_a ? "B" : "A"));
  results_.push_back(std::move(seen.placed));
}

// Outputs that neither side came to: a run that failed half-way must not look as if it had passed.
void StreamComparer::Impl::add_unseen_outputs() {
  for (const auto& [path, value_info] : a_.value_infos) {
    if (!value_info.description.is_graph_output || value_info.was_seen || a_.absent.contains(path)) continue;
    const auto in_b = b_.value_infos.find(links_.b_path_of(path));
    if (in_b != b_.value_infos.end() && in_b->second.was_seen) continue;  // stands among B's own
    Located& placed = results_.emplace_back();
    placed.comparison = value_info.description;
    placed.order_in_a = a_.next_order++;
    diff::set_not_compared(placed.comparison, "not captured");
  }
}

void StreamComparer::Impl::add_absent_in_both() {
  for (const std::string& path : a_.absent_in_order) {
    const std::string path_b = links_.b_path_of(path);
    if (!b_.absent.contains(path_b)) continue;
    Located& placed = results_.emplace_back();
    placed.comparison = a_.value_infos[path].description;
    placed.comparison.a = path;
    placed.comparison.b = path_b;
    placed.order_in_a = a_.next_order++;
    placed.node_index = a_.value_infos[path].node_index;
    placed.stands_by_node = true;
    diff::set_not_compared(placed.comparison, diff::reason_of(a_.absent.at(path)));
  }
}

Comparison StreamComparer::Impl::finish() {
  const std::lock_guard lock(mutex_);
  for (const bool is_a : {true, false}) {
    StreamSide& own = side(is_a);
    for (Seen& seen : own.unmatched) add_unmatched(is_a, std::move(seen));
    for (auto& [key, seen] : own.waiting) add_unmatched(is_a, std::move(seen));
    own.unmatched.clear();
    own.waiting.clear();
    own.waiting_bytes = 0;
  }
  add_unseen_outputs();
  add_absent_in_both();
  Comparison comparison;
  comparison.executions = {describe_execution(a_.run, Side::a, a_.wall_ms),
                           describe_execution(b_.run, Side::b, b_.wall_ms)};
  comparison.values = diff::in_order(std::exchange(results_, {}));
  if (links_.is_closed()) differences_.excuse_constants(comparison.values);
  std::erase_if(comparison.values,
                [&](const ValueComparison& value) { return !is_reported(value) || links_.is_repeated(value); });
  conclude(comparison);
  return comparison;
}

StreamComparer::StreamComparer(Policy policy, StreamOptions options)
    : impl_(std::make_unique<Impl>(policy, std::move(options))) {}
StreamComparer::~StreamComparer() = default;

Observer& StreamComparer::side_a() { return impl_->observer(true); }
Observer& StreamComparer::side_b() { return impl_->observer(false); }
void StreamComparer::count_foreign_kernels() { impl_->count_foreign_kernels(); }
Comparison StreamComparer::finish() { return impl_->finish(); }

}  // namespace parallax
