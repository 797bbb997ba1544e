// SPDX-License-Identifier: Apache-2.0
// An observer of shapes and times, and the tables made of what it saw.
#include "inspector/workbench/profile.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/memory_budget.h"
#include "inspector/base/shown_text.h"
#include "inspector/exec/reported_times.h"
#include "inspector/model/value_names.h"
#include "inspector/render/report_json.h"
#include "inspector/workbench/node_cost.h"
#include "inspector/workbench/run_side.h"

namespace parallax {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

// A node that ran, for the trace.
struct TraceEvent {
  size_t node = 0;
  size_t body = 0;  // of RunBodies
  double end_us = 0;
  double ms = 0;
};

// The bodies that a run has entered, each with the one around it: what tells iterations apart, at the price of two
// numbers an iteration.
class RunBodies {
 public:
  void restart() {
    bodies_.assign(1, {0, -1});
    current_ = 0;
  }
  void enter(int64_t index) {
    bodies_.push_back({current_, index});
    current_ = bodies_.size() - 1;
  }
  void leave() { current_ = bodies_[current_].around; }
  size_t current() const { return current_; }
  // The iterations of the frames on the way into `body`, the outermost first; -1 where a frame is not repeated.
  std::vector<int64_t> indices_of(size_t body) const {
    std::vector<int64_t> indices;
    for (; body != 0; body = bodies_[body].around) indices.insert(indices.begin(), bodies_[body].index);
    return indices;
  }

 private:
  struct Body {
    size_t around = 0;
    int64_t index = -1;
  };
  std::vector<Body> bodies_ = std::vector<Body>(1);
  size_t current_ = 0;
};

// "outer.body[*]//inner.body[*]//" with these iterations.
std::string scope_of(std::string_view all, const std::vector<int64_t>& indices) {
  constexpr std::string_view kAny = "[*]";
  std::string scope;
  for (const int64_t index : indices) {
    const size_t end = std::min(all.find("//"), all.size());
    std::string_view frame = all.substr(0, end);
    if (index >= 0 && frame.ends_with(kAny)) {
      frame.remove_suffix(kAny.size());
      scope += fmt::format("{}[{}]//", frame, index);
    } else {
      scope += fmt::format("{}//", frame);
    }
    all.remove_prefix(std::min(end + 2, all.size()));
  }
  return scope;
}

// Follows the frames of a run as a tree of static locations, each with its nodes.
class LocationTree {
 public:
  void restart() { path_.assign(1, 0); }

  void enter(const NodeLocation& value_info, const Frame& frame) {
    const Key key{value_info.graph, value_info.id, frame.kind};
    const auto [found, is_new] = locations_[path_.back()].children.try_emplace(key, locations_.size());
    const size_t child = found->second;
    if (is_new) {
      std::string text = to_string(frame);
      if (const size_t bracket = text.rfind('['); frame.kind == Frame::Kind::body && bracket != std::string::npos)
        text.replace(bracket, std::string::npos, "[*]");
      const std::string scope = locations_[path_.back()].scope + text + "//";
      locations_.push_back({scope, value_info.graph, {}, {}});
    }
    path_.push_back(child);
  }
  void leave() { path_.pop_back(); }

  // The number of a node at the run's current location, made by `make` the first time.
  template <class Make>
  size_t number_of(const NodeLocation& value_info, const Make& make) {
    std::vector<int64_t>& numbers = locations_[path_.back()].numbers;
    const auto id = static_cast<size_t>(value_info.id);
    if (numbers.size() <= id) numbers.resize(value_info.graph->nodes.size(), -1);
    if (numbers[id] < 0) numbers[id] = static_cast<int64_t>(make(locations_[path_.back()].scope));
    return static_cast<size_t>(numbers[id]);
  }

  // Graphs around the run's current location, the innermost first.
  template <class Visit>
  void visit_enclosing(const Visit& visit) const {
    for (auto location = path_.rbegin(); location != path_.rend(); ++location) {
      if (locations_[*location].enclosing != nullptr && visit(*locations_[*location].enclosing)) return;
    }
  }

 private:
  using Key = std::tuple<const Graph*, NodeId, Frame::Kind>;
  struct Location {
    std::string scope;
    const Graph* enclosing = nullptr;
    std::map<Key, size_t> children;
    std::vector<int64_t> numbers;  // by NodeId
  };
  std::vector<Location> locations_{1};
  std::vector<size_t> path_{0};
};

// "SkipLayerNormalization" of "com.microsoft.SkipLayerNormalization-1".
std::string plain_name(const std::string& versioned) {
  const size_t dot = versioned.rfind('.');
  const size_t begin = dot == std::string::npos ? 0 : dot + 1;
  return versioned.substr(begin, versioned.find('-', begin) - begin);
}

// The operators whose work is done: a few by name, a crowd by what it became.
std::string operator_of(const NodeLocation& value_info) {
  constexpr size_t kMostNamed = 3;
  std::vector<std::string> ops;
  for (const NodeId id : value_info.sources) {
    const std::string& op = value_info.graph->nodes[static_cast<size_t>(id)].op_type;
    if (std::ranges::find(ops, op) == ops.end()) ops.push_back(op);
  }
  if (ops.empty()) return value_info.graph->nodes[static_cast<size_t>(value_info.id)].op_type;
  return ops.size() <= kMostNamed ? fmt::format("{}", fmt::join(ops, "+")) : plain_name(value_info.op);
}

// Sees one run with all its shapes for what the nodes have to do; then, wanting no value, runs for their times.
class ProfileObserver final : public Observer {
 public:
  // reported_times: another program says them after its run, so that nodes follow each other in the trace without gaps.
  enum class Mode : uint8_t { costs, times, reported_times };
  explicit ProfileObserver(Mode mode) : mode_(mode) {}

  CaptureLevel wants(const ValueInfo&) override {
    return mode_ == Mode::costs ? CaptureLevel::shape : CaptureLevel::none;
  }
  bool wants_node_times() const override { return true; }

  void begin_timed_run() {
    run_begin_ = Clock::now();
    tree_.restart();
    bodies_.restart();
    events_.clear();
    levels_.assign(1, {});
  }

  Status observe(const Observation& observation) override {
    types_[observation.value_info.graph][observation.value_info.value] = type_of(observation.value);
    return {};
  }

  Status enter_body(const NodeLocation& value_info, const Frame& frame) override {
    tree_.enter(value_info, frame);
    bodies_.enter(frame.index);
    levels_.emplace_back();
    return {};
  }

  Status leave_body(const NodeLocation&, const Frame&) override {
    const double inside = levels_.back().nodes_ms;
    levels_.pop_back();
    levels_.back().bodies_ms += inside;
    tree_.leave();
    bodies_.leave();
    return {};
  }

  Status node_done(const NodeLocation& value_info, double elapsed_ms) override {
    Level& level = levels_.back();
    const double alone = std::max(0.0, elapsed_ms - level.bodies_ms);
    level.bodies_ms = 0;
    level.nodes_ms += elapsed_ms;
    const size_t number = tree_.number_of(value_info, [&](const std::string& scope) {
      NodeProfile& made =
          nodes_.emplace_back(NodeProfile{scope, std::string(value_info.node), operator_of(value_info)});
      for (const NodeId id : value_info.sources)
        made.sources.push_back(value_info.graph->nodes[static_cast<size_t>(id)].display_name);
      return nodes_.size() - 1;
    });
    NodeProfile& node = nodes_[number];
    node.calls += 1;
    if (mode_ != Mode::costs) {
      node.ms += alone;
      const double now_us = std::chrono::duration<double, std::micro>(Clock::now() - run_begin_).count();
      const double begin_us = events_.empty() ? 0 : events_.back().end_us;
      events_.push_back({number, bodies_.current(),
                         mode_ == Mode::reported_times ? begin_us + 1e3 * elapsed_ms : now_us, elapsed_ms});
    } else {
      const NodeCost cost = value_info.sources.empty() ? cost_of(value_info) : traffic_of(value_info);
      node.bytes += cost.bytes;
      node.flops += cost.flops;
    }
    return {};
  }

  const std::vector<NodeProfile>& nodes() const { return nodes_; }
  const std::vector<TraceEvent>& events() const { return events_; }  // of the last run
  const RunBodies& bodies() const { return bodies_; }

 private:
  struct Level {
    double nodes_ms = 0;   // of the nodes that ran here
    double bodies_ms = 0;  // of the bodies of the node that is running here
  };

  TypeInfo type_of_value(const Graph& graph, ValueId value) const {
    if (value == kNoValue) return {};
    if (const auto types = types_.find(&graph); types != types_.end()) {
      if (const auto type = types->second.find(value); type != types->second.end()) return type->second;
    }
    const ValueDef& def = graph.values[static_cast<size_t>(value)];
    TypeInfo type = def.type;
    if (!def.is_outer) return type;
    tree_.visit_enclosing([&](const Graph& enclosing) {
      if (&enclosing == &graph) return false;
      const auto [names, is_new] = names_.try_emplace(&enclosing);
      if (is_new) names->second = values_by_name(enclosing);
      const ValueId outer = find_value(names->second, def.name);
      if (outer != kNoValue) type = type_of_value(enclosing, outer);
      return outer != kNoValue;
    });
    return type;
  }

  NodeCost cost_of(const NodeLocation& value_info) const {
    const Node& node = value_info.graph->nodes[static_cast<size_t>(value_info.id)];
    std::vector<TypeInfo> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(type_of_value(*value_info.graph, id));
    for (const ValueId id : node.outputs) outputs.push_back(type_of_value(*value_info.graph, id));
    return cost_of_node(node, inputs, outputs);
  }

  // The traffic of a fused node: the values that its parts read from others, and those that others may read. Their
  // operations are counted where each part runs by itself.
  NodeCost traffic_of(const NodeLocation& value_info) const {
    std::set<ValueId> read, made;
    for (const NodeId id : value_info.sources) {
      const Node& node = value_info.graph->nodes[static_cast<size_t>(id)];
      read.insert(node.inputs.begin(), node.inputs.end());
      made.insert(node.outputs.begin(), node.outputs.end());
    }
    const auto seen = types_.find(value_info.graph);
    std::vector<TypeInfo> types;
    for (const ValueId id : made) {
      read.erase(id);
      if (seen != types_.end() && seen->second.contains(id)) types.push_back(type_of_value(*value_info.graph, id));
    }
    for (const ValueId id : read) types.push_back(type_of_value(*value_info.graph, id));
    return {bytes_of(types), 0};
  }

  Mode mode_;
  LocationTree tree_;
  RunBodies bodies_;
  std::vector<Level> levels_{1};
  std::vector<NodeProfile> nodes_;
  std::vector<TraceEvent> events_;
  std::unordered_map<const Graph*, std::unordered_map<ValueId, TypeInfo>> types_;
  mutable std::unordered_map<const Graph*, ValueNames> names_;  // of graphs around bodies
  Clock::time_point run_begin_;
};

using NodesByName = std::map<std::pair<std::string_view, std::string_view>, const NodeProfile*>;
NodesByName by_name(const std::vector<NodeProfile>& nodes) {
  NodesByName found;
  for (const NodeProfile& node : nodes) found[{node.scope, node.node}] = &node;
  return found;
}

// Gives fused nodes the operations of their parts, counted in a session in which each runs for itself.
Status count_parts(const RunRequest& request, const RunSide& side, const ExecutorFactory& make_executor,
                   std::vector<NodeProfile>& nodes) {
  RunRequest unfused = request;
  unfused.options.observe_all = true;
  const RunSide parts =
      PX_TRY(prepare_side(unfused, request.executors.front(), side.model, side.inputs, make_executor));
  ProfileObserver costs(ProfileObserver::Mode::costs);
  PX_TRY(parts.session->run(parts.inputs, costs));
  const NodesByName named = by_name(costs.nodes());
  for (NodeProfile& node : nodes) {
    for (const std::string& source : node.sources) {
      if (const auto part = named.find({node.scope, source}); part != named.end()) node.flops += part->second->flops;
    }
  }
  return {};
}

// Counts the work of each node in one run. Running out of memory for this is no error of the profile.
Result<std::vector<NodeProfile>> count_costs(const RunRequest& request, const RunSide& side,
                                             const ExecutorFactory& make_executor, std::vector<std::string>& notes) {
  ProfileObserver costs(ProfileObserver::Mode::costs);
  PX_TRY(side.session->run(side.inputs, costs));
  std::vector<NodeProfile> nodes = costs.nodes();
  if (std::ranges::all_of(nodes, [](const NodeProfile& node) { return node.sources.empty(); })) return nodes;
  const Status counted = count_parts(request, side, make_executor, nodes);
  if (!counted.ok()) notes.push_back("the operations of fused nodes are not counted: " + counted.error().message);
  return nodes;
}

// Times per run, with the costs of the same nodes.
std::vector<NodeProfile> merged(std::vector<NodeProfile> times, const std::vector<NodeProfile>& costs, int64_t runs) {
  const NodesByName named = by_name(costs);
  for (NodeProfile& node : times) {
    node.ms /= static_cast<double>(runs);
    node.calls /= runs;
    const auto cost = named.find({node.scope, node.node});
    if (cost == named.end()) continue;
    node.bytes = cost->second->bytes;
    node.flops = cost->second->flops;
  }
  return times;
}

// Complete events ("X") of the trace event format, in microseconds. Their names hold of all iterations, so that viewers
// sum these up; which one it was stands in the arguments, with figures of one call.
std::string trace_of(const ProfileObserver& seen, const std::vector<NodeProfile>& nodes) {
  ordered_json list = ordered_json::array();
  for (const TraceEvent& event : seen.events()) {
    const NodeProfile& node = nodes[event.node];
    const std::vector<int64_t> indices = seen.bodies().indices_of(event.body);
    const auto innermost =
        std::ranges::find_if(indices.rbegin(), indices.rend(), [](int64_t index) { return index >= 0; });
    const int64_t calls = std::max<int64_t>(1, node.calls);
    ordered_json args{{"op", node.op}, {"bytes", node.bytes / calls}, {"flops", node.flops / calls}};
    if (!indices.empty()) args["path"] = scope_of(node.scope, indices) + node.node;
    if (innermost != indices.rend()) args["iteration"] = *innermost;
    list.push_back({{"name", node.scope + node.node},
                    {"cat", node.op},
                    {"ph", "X"},
                    {"ts", std::max(0.0, event.end_us - 1e3 * event.ms)},
                    {"dur", 1e3 * event.ms},
                    {"pid", 1},
                    {"tid", 1},
                    {"args", std::move(args)}});
  }
  return json_text({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(list)}});
}

std::vector<OperatorProfile> by_operator(const std::vector<NodeProfile>& nodes) {
  std::map<std::string, OperatorProfile> rows;
  double total = 0;
  for (const NodeProfile& node : nodes) {
    OperatorProfile& row = rows[node.op];
    row.op = node.op;
    row.count += node.calls;
    row.ms += node.ms;
    total += node.ms;
  }
  std::vector<OperatorProfile> ops;
  for (auto& [op, row] : rows) {
    row.share = total > 0 ? row.ms / total : 0;
    ops.push_back(std::move(row));
  }
  std::ranges::stable_sort(ops, std::ranges::greater(), &OperatorProfile::ms);
  return ops;
}

// Tenths of a percent that add up to 100 %: what rounding down leaves goes to the largest remainders.
std::vector<int64_t> permille_of(const std::vector<OperatorProfile>& ops) {
  std::vector<int64_t> parts;
  std::vector<std::pair<double, size_t>> rests;
  double all = 0;
  for (size_t index = 0; index < ops.size(); ++index) {
    const double exact = 1000 * ops[index].share;
    parts.push_back(static_cast<int64_t>(exact));
    rests.emplace_back(exact - static_cast<double>(parts.back()), index);
    all += exact;
  }
  if (all == 0) return parts;
  std::ranges::stable_sort(rests, std::ranges::greater(), &std::pair<double, size_t>::first);
  const int64_t left = 1000 - std::accumulate(parts.begin(), parts.end(), int64_t{0});
  for (size_t index = 0; index < rests.size() && static_cast<int64_t>(index) < left; ++index)
    ++parts[rests[index].second];
  return parts;
}

double per_second(int64_t count, double ms) { return ms > 0 ? static_cast<double>(count) / (ms * 1e6) : 0; }

}  // namespace

Result<ProfileResult> profile_model(const RunRequest& request, int64_t iterations,
                                    const ExecutorFactory& make_executor) {
  PX_TRY(check_options(request, make_executor));
  const MemoryBudget::Scope budget(request.options.memory_limit_bytes);
  ProfileResult result;
  const auto model = PX_TRY(load_runnable(request, result.notes));
  InputSet inputs = PX_TRY(make_reported_inputs(*model, request));
  RunSide side = PX_TRY(prepare_side(request, request.executors.front(), model, inputs.values, make_executor));
  result.notes.insert(result.notes.end(), inputs.notes.begin(), inputs.notes.end());
  result.executor = side.executor->name();
  result.device = side.executor->device();
  result.iterations = iterations;
  const std::vector<NodeProfile> costs =
      PX_TRY(count_costs(request, side, make_executor, result.notes));  // plans and packs, too
  const bool reports = dynamic_cast<const ReportedTimes*>(side.session.get()) != nullptr;
  ProfileObserver times(reports ? ProfileObserver::Mode::reported_times : ProfileObserver::Mode::times);
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    times.begin_timed_run();
    const auto begin = Clock::now();
    PX_TRY(side.session->run(side.inputs, times));
    const double elapsed_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    result.total_ms += reported_run_ms(*side.session).value_or(elapsed_ms);
  }
  result.total_ms /= static_cast<double>(iterations);
  result.nodes = merged(times.nodes(), costs, iterations);
  result.ops = by_operator(result.nodes);
  result.trace = trace_of(times, result.nodes);
  if (result.nodes.empty() && !model->graph.nodes.empty())
    result.notes.push_back(fmt::format("{} does not tell the times of its nodes", result.executor));
  return result;
}

std::string profile_to_text(const ProfileResult& result, int64_t top) {
  std::string text = fmt::format("{} on {}: {:.3f} ms a run, mean of {}\n\n", result.executor, result.device,
                                 result.total_ms, result.iterations);
  size_t op_width = 20;
  for (const OperatorProfile& op : result.ops) op_width = std::max(op_width, printable(op.op).size());
  text += fmt::format("{:<{}} {:>7} {:>12} {:>7}\n", "operator", op_width, "count", "ms", "share");
  const std::vector<int64_t> permille = permille_of(result.ops);
  double nodes_ms = 0;
  for (size_t index = 0; index < result.ops.size(); ++index) {
    const OperatorProfile& op = result.ops[index];
    nodes_ms += op.ms;
    text += fmt::format("{:<{}} {:>7} {:>12.4f} {:>5}.{}%\n", printable(op.op), op_width, op.count, op.ms,
                        permille[index] / 10, permille[index] % 10);
  }
  text += fmt::format("percentages are of node time, {:.4f} ms a run; overhead between nodes: {:.4f} ms a run\n",
                      nodes_ms, std::max(0.0, result.total_ms - nodes_ms));
  std::vector<const NodeProfile*> nodes;
  for (const NodeProfile& node : result.nodes) nodes.push_back(&node);
  std::ranges::stable_sort(nodes, [](const auto* a, const auto* b) { return a->ms > b->ms; });
  const size_t shown = top < 0 ? nodes.size() : std::min(nodes.size(), static_cast<size_t>(top));
  const auto name_of_node = [](const NodeProfile& node) { return printable(node.scope + node.node); };
  size_t width = 20;
  for (size_t index = 0; index < shown; ++index) width = std::max(width, name_of_node(*nodes[index]).size());
  text += fmt::format("\n{:<{}} {:<{}} {:>7} {:>12} {:>9} {:>9}\n", "node", width, "op", op_width, "calls", "ms",
                      "GB/s", "GFLOP/s");
  for (size_t index = 0; index < shown; ++index) {
    const NodeProfile& node = *nodes[index];
    text +=
        fmt::format("{:<{}} {:<{}} {:>7} {:>12.4f} {:>9.2f} {:>9.2f}\n", name_of_node(node), width, printable(node.op),
                    op_width, node.calls, node.ms, per_second(node.bytes, node.ms), per_second(node.flops, node.ms));
  }
  if (shown < nodes.size()) text += fmt::format("... and {} nodes more (--top -1 lists all)\n", nodes.size() - shown);
  return text;
}

std::string profile_to_json(const ProfileResult& result) {
  ordered_json json{{"exec", result.executor},
                    {"device", result.device},
                    {"iterations", result.iterations},
                    {"total_ms", result.total_ms}};
  json["ops"] = ordered_json::array();
  for (const OperatorProfile& op : result.ops)
    json["ops"].push_back({{"op", op.op}, {"count", op.count}, {"ms", op.ms}, {"share", op.share}});
  json["nodes"] = ordered_json::array();
  for (const NodeProfile& node : result.nodes) {
    json["nodes"].push_back({{"node", node.node},
                             {"op", node.op},
                             {"sources", node.sources},
                             {"scope", node.scope},
                             {"calls", node.calls},
                             {"ms", node.ms},
                             {"bytes", node.bytes},
                             {"flops", node.flops}});
  }
  return json_text(json);
}

}  // namespace parallax
