// SPDX-License-Identifier: Apache-2.0
// The steps of an audit: inputs, runs, classes, the nodes to keep, and the proof on the reference.
#include "inspector/workbench/half_precision/audit.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "inspector/base/text.h"
#include "inspector/model/io/import.h"
#include "inspector/model/link.h"
#include "inspector/workbench/half_precision/audit_classes.h"
#include "inspector/workbench/half_precision/audit_keep.h"
#include "inspector/workbench/request_options.h"
#include "inspector/workbench/run_side.h"

namespace parallax {
namespace {

using audit::AuditGraph;
using audit::AuditSet;
using audit::KeepSearch;
using audit::RangeObserver;

// One feeding model, ready to run.
struct Feeder {
  const AuditFeed* feed = nullptr;
  std::shared_ptr<const Model> model;
  std::unique_ptr<Session> session;
};

bool has_input(const Graph& graph, std::string_view name) {
  return std::ranges::any_of(graph.inputs, [&](ValueId id) { return value_at(graph, id).name == name; });
}

std::string names_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::string names;
  for (const ValueId id : ids) names += (names.empty() ? "'" : ", '") + value_at(graph, id).name + "'";
  return names;
}

// A node without a name is called by its position, which casts shift: here all have the names that paths show.
void name_nodes(Graph& graph) {
  for (Node& node : graph.nodes) {
    node.name = node.display_name;
    for (const Graph* body : bodies_of(node)) name_nodes(const_cast<Graph&>(*body));
  }
}

std::shared_ptr<const Model> with_node_names(const Model& model) {
  const auto named = copy_model(model);
  named->unparsed = model.unparsed;
  name_nodes(named->graph);
  for (const auto& function : named->functions) name_nodes(function->body);
  return named;
}

class Audit {
 public:
  Audit(const AuditRequest& request, const ExecutorFactory& make_executor)
      : request_(request), make_executor_(make_executor) {}

  Result<HalfAudit> run() {
    PX_TRY(prepare());
    AuditGraph graph = PX_TRY(AuditGraph::build(model_, request_.to));
    PX_TRY(watch(graph));
    result_.to = request_.to;
    result_.tolerance = request_.tolerance;
    result_.inputs = static_cast<int64_t>(sets_.size());
    result_.keep_io = graph.edge_overflows();
    if (result_.keep_io)
      result_.notes.push_back(
          fmt::format("an input or output of the model leaves the range of {}: it is verified with "
                      "both in float32; convert it with --keep-io",
                      name_of(request_.to)));
    result_.nodes = graph.take_results();
    PX_TRY(choose());
    return std::move(result_);
  }

 private:
  Status prepare() {
    if (request_.executor != "cpu" && request_.executor != "reference")
      return usage_error(
          fmt::format("--with is '{}'; an audit watches every value on the host: cpu or reference", request_.executor));
    const auto model =
        request_.model_in_memory != nullptr ? request_.model_in_memory : PX_TRY(import_model(request_.model));
    model_ = with_node_names(*model);
    const auto executor = PX_TRY(make_executor_(request_.executor));
    RunOptions options;
    options.observe_all = true;
    session_ = PX_TRY_CONTEXT(model_->path, executor->prepare(model_, options));
    for (const AuditFeed& feed : request_.feeds) {
      Feeder feeder{&feed, PX_TRY(import_model(feed.model)), nullptr};
      PX_TRY(check_feed(feeder));
      feeder.session = PX_TRY_CONTEXT(feed.model, executor->prepare(feeder.model, {}));
      feeders_.push_back(std::move(feeder));
    }
    return {};
  }

  Status check_feed(const Feeder& feeder) const {
    const Graph& graph = feeder.model->graph;
    for (const auto& [output, input] : feeder.feed->edges) {
      const std::string& wanted = output;  // clang 14 captures no structured binding
      const bool is_output =
          std::ranges::any_of(graph.outputs, [&](ValueId id) { return value_at(graph, id).name == wanted; });
      if (!is_output)
        return usage_error(fmt::format("--feed: '{}' is no output of '{}' (outputs: {})", output, feeder.feed->model,
                                       names_of(graph, graph.outputs)));
      if (!has_input(model_->graph, input))
        return usage_error(fmt::format("--feed: '{}' is no input of '{}' (inputs: {})", input, model_->path,
                                       names_of(model_->graph, model_->graph.inputs)));
    }
    return {};
  }

  // ---- the sets ----

  Status watch(AuditGraph& graph) {
    constexpr int64_t kMostSets = 10'000;
    RangeObserver observer(audit::limits_of(request_.to), graph.wanted());
    int64_t quiet = 0;
    for (int64_t index = 0; index < kMostSets; ++index) {
      auto next = PX_TRY(request_.next_inputs(index));
      if (!next.has_value()) break;
      AuditSet set;
      set.inputs = PX_TRY_CONTEXT(fmt::format("input set {}", index), inputs_of(std::move(*next)));
      const auto start = std::chrono::steady_clock::now();
      set.outputs = PX_TRY_CONTEXT(fmt::format("input set {}", index), session_->run(set.inputs, observer));
      const bool keeps_more = graph.add_set(index, observer.take(), request_.half_sums);
      result_.observed_ms +=
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
      sets_.push_back(std::move(set));
      quiet = keeps_more ? 0 : quiet + 1;
      if (request_.until_stable > 0 && quiet >= request_.until_stable) {
        result_.stable_after = index + 1 - quiet;
        break;
      }
    }
    if (sets_.empty()) return usage_error("there is no input set; an audit watches the model on one or more");
    if (request_.until_stable > 0 && !result_.stable_after.has_value())
      result_.notes.push_back(fmt::format("the last {} input sets still gave nodes to keep, or there were no more sets",
                                          request_.until_stable));
    return {};
  }

  Result<std::vector<Value>> inputs_of(InputRequest request) {
    std::map<std::string, Value> of_feeders;
    std::erase_if(request.values, [&](auto& entry) {
      if (has_input(model_->graph, entry.first)) return false;
      const bool is_fed = std::ranges::any_of(
          feeders_, [&](const Feeder& feeder) { return has_input(feeder.model->graph, entry.first); });
      if (is_fed) of_feeders.insert(entry);
      return is_fed;
    });
    for (Feeder& feeder : feeders_) PX_TRY(run_feeder(feeder, of_feeders, request));
    InputSet set = PX_TRY(make_inputs(*model_, request));
    if (!reported_) tell(set.notes);
    reported_ = true;
    return std::move(set.values);
  }

  Status run_feeder(Feeder& feeder, const std::map<std::string, Value>& values, InputRequest& request) {
    InputRequest own;
    own.seed = request.seed;
    const Graph& graph = feeder.model->graph;
    for (const auto& [name, value] : values) {
      if (has_input(graph, name)) own.values[name] = value;
    }
    for (const ValueId id : graph.inputs) {
      for (const Dim& dim : value_at(graph, id).type.dims.value_or(std::vector<Dim>{})) {
        const auto size = request.dims.find(dim.name);
        if (size != request.dims.end()) own.dims.insert(*size);
      }
    }
    const InputSet set = PX_TRY_CONTEXT(feeder.feed->model, make_inputs(*feeder.model, own));
    if (!reported_) tell(set.notes);
    NullObserver observer;
    const auto outputs = PX_TRY_CONTEXT(feeder.feed->model, feeder.session->run(set.values, observer));
    for (const auto& [output, input] : feeder.feed->edges) {
      for (size_t index = 0; index < graph.outputs.size(); ++index) {
        if (value_at(graph, graph.outputs[index]).name == output) request.values[input] = outputs[index];
      }
    }
    return {};
  }

  void tell(const std::vector<std::string>& notes) const {
    for (const std::string& note : notes) {
      if (request_.message) request_.message(note);
    }
  }

  // ---- the nodes to keep ----

  Status choose() {
    const HalfClass last = request_.half_sums ? HalfClass::wide_sum : HalfClass::must;
    for (const NodeAudit& node : result_.nodes) {
      if (node.half_class <= last && node.op != "Constant") result_.keep.push_back(node.path);
    }
    KeepSearch search(model_, request_, sets_, *session_, PX_TRY(make_executor_("reference")));
    search.keep_io(result_.keep_io);
    result_.nothing_kept = PX_TRY(search.verify({}, true));
    result_.kept = result_.keep.empty() ? result_.nothing_kept : PX_TRY(search.verify(result_.keep, false));
    if (!result_.kept.passed) {
      result_.keep = PX_TRY(search.extend(std::move(result_.keep), result_.nodes));
      result_.kept = PX_TRY(search.verify(result_.keep, false));
    }
    if (request_.minimize && result_.kept.passed)
      result_.keep = PX_TRY(search.minimize(std::move(result_.keep), result_.nodes));
    result_.kept = PX_TRY(search.verify(result_.keep, true));
    return {};
  }

  const AuditRequest& request_;
  const ExecutorFactory& make_executor_;
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> session_;
  std::vector<Feeder> feeders_;
  std::vector<AuditSet> sets_;
  HalfAudit result_;
  bool reported_ = false;
};

}  // namespace

Result<AuditFeed> parse_feed(const std::string& text) {
  const Error wrong =
      usage_error(fmt::format("--feed is '{}'; it must be OTHER.onnx:OUT=IN, with further OUT=IN after commas", text));
  const size_t equals = text.find('=');
  const size_t colon = equals == std::string::npos ? equals : text.rfind(':', equals);
  if (colon == std::string::npos || colon == 0) return wrong;
  AuditFeed feed;
  feed.model = text.substr(0, colon);
  const std::string rest = text.substr(colon + 1);
  for (const std::string_view edge : split(rest, ',')) {
    const size_t middle = edge.find('=');
    if (middle == std::string_view::npos || middle == 0 || middle + 1 == edge.size()) return wrong;
    feed.edges.emplace_back(edge.substr(0, middle), edge.substr(middle + 1));
  }
  return feed;
}

int64_t HalfAudit::count(HalfClass half_class) const {
  return std::ranges::count(nodes, half_class, &NodeAudit::half_class);
}

Result<HalfAudit> audit_half(const AuditRequest& request, const ExecutorFactory& make_executor) {
  return Audit(request, make_executor).run();
}

}  // namespace parallax
