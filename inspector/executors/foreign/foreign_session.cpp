// SPDX-License-Identifier: Apache-2.0
// Runs, and the search for the node that ends one.
#include "inspector/executors/foreign/foreign_session.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "inspector/base/log.h"
#include "inspector/base/shown_text.h"
#include "inspector/base/thread_pool.h"
#include "inspector/executors/foreign/replay.h"
#include "inspector/transform/graph_location.h"

namespace parallax::foreign {
namespace {

namespace fs = std::filesystem;

bool wants_some_of(const GraphValues& body, const std::vector<CaptureLevel>& levels) {
  const auto is_wanted = [&](const ValueInfo* value_info) {
    return value_info != nullptr && levels[static_cast<size_t>(value_info->id)] != CaptureLevel::none;
  };
  return std::ranges::any_of(body.values, is_wanted) ||
         std::ranges::any_of(
             body.children, [&](const GraphValues::Child& child) { return wants_some_of(*child.value_infos, levels); });
}

}  // namespace

bool keeps_graph(const RunOptions& options) {
  return options.observe_all || options.rewrite.base == RewriteChoice::Base::none;
}

ForeignSession::ForeignSession(std::shared_ptr<ProgramPool> pool, std::shared_ptr<const Model> model,
                               ValueTable value_infos, const RunOptions& options, std::unique_ptr<TemporaryPath> folder)
    : pool_(std::move(pool)),
      model_(std::move(model)),
      value_infos_(std::move(value_infos)),
      options_(options),
      folder_(std::move(folder)) {}

Result<std::unique_ptr<Session>> ForeignSession::prepare(std::shared_ptr<ProgramPool> pool,
                                                         std::shared_ptr<const Model> model,
                                                         const RunOptions& options) {
  ValueTable value_infos = PX_TRY(ValueTable::build(model));
  auto folder = PX_TRY(TemporaryPath::make_folder("parallax-program"));
  auto session = std::unique_ptr<ForeignSession>(
      new ForeignSession(std::move(pool), std::move(model), std::move(value_infos), options, std::move(folder)));
  session->program_ = PX_TRY(session->pool_->take(options.cancel));
  if (session->program_->description().observes) {
    Status loaded = session->load(session->model_);
    if (!loaded.ok() && !session->is_failure(loaded.error(), true)) return std::move(loaded).error();
  }
  return std::unique_ptr<Session>(std::move(session));
}

// ---- One run ----

Status ForeignSession::load(const std::shared_ptr<const Model>& model) {
  if (loaded_ == model) return {};
  loaded_ = nullptr;
  auto folder = PX_TRY(TemporaryPath::make_folder(folder_->file("model")));
  LoadRequest request;
  request.model = PX_TRY(model_file(*model, folder->file("model.onnx")));
  std::error_code none;  // a path that cannot be looked at is no file that the user named
  if (fs::is_regular_file(model_->path, none)) request.source = model_->path;
  request.folder = folder_->path();
  request.optimize = !keeps_graph(options_);
  const int threads = thread_count();
  request.threads = threads == static_cast<int>(std::thread::hardware_concurrency()) ? 0 : threads;
  request.seed = options_.seed;
  request.memory_limit_bytes = options_.memory_limit_bytes;
  PX_TRY(program_->load(request, limits(), options_.cancel));
  loaded_folder_ = std::move(folder);
  loaded_ = model;
  return {};
}

// The outputs of nodes that the observer wants, and those of nodes within whose bodies it wants some.
std::vector<std::string> ForeignSession::wanted_names(size_t count) const {
  const GraphValues& main = value_infos_.main();
  std::vector<std::string> names;
  for (size_t position = 0; position < count; ++position) {
    const NodeId id = main.graph->order[position];
    const bool has_wanted_body = std::ranges::any_of(main.children_of(id), [&](const GraphValues::Child& child) {
      return wants_some_of(*child.value_infos, *wanted_);
    });
    for (const ValueId output : main.graph->nodes[static_cast<size_t>(id)].outputs) {
      if (output == kNoValue) continue;
      const ValueInfo& value_info = *main.values[static_cast<size_t>(output)];
      if (has_wanted_body || (*wanted_)[static_cast<size_t>(value_info.id)] != CaptureLevel::none)
        names.emplace_back(value_info.name);
    }
  }
  return names;
}

Result<ForeignSession::Computed> ForeignSession::compute(size_t count) {
  std::shared_ptr<const Model> model = model_;
  if (count < node_count()) model = PX_TRY(first_nodes(model_, count, named_));
  std::vector<std::string> wanted = wanted_names(count);
  if (program_ == nullptr || !program_->is_running()) {
    program_.reset();
    loaded_ = nullptr;
    program_ = PX_TRY(pool_->take(options_.cancel));
  }
  if (!program_->description().observes) model = given(model, wanted);
  PX_TRY(load(model));
  return ask(*model, std::move(wanted));
}

// The model with the wanted values as outputs, made once as long as the same ones are wanted.
std::shared_ptr<const Model> ForeignSession::given(const std::shared_ptr<const Model>& model,
                                                   const std::vector<std::string>& wanted) {
  if (given_of_ != model || given_wanted_ != wanted) {
    given_ = with_outputs(model, wanted);
    given_of_ = model;
    given_wanted_ = wanted;
  }
  return given_;
}

Result<ForeignSession::Computed> ForeignSession::ask(const Model& model, std::vector<std::string> wanted) {
  const int number = files_++;
  const InputFiles files = PX_TRY(write_inputs(model.graph, named_, folder_->path(), number));
  ProgramRun request{files.archive, files.data_set, std::move(wanted), folder_->file(fmt::format("answer-{}", number)),
                     wants_times_};
  for (const ValueId output : model.graph.outputs) {
    const std::string& name = value_at(model.graph, output).name;
    if (std::ranges::find(request.wanted, name) == request.wanted.end()) request.wanted.push_back(name);
  }
  auto reply = program_->run(request, limits(), options_.cancel);
  std::error_code none;  // the folder goes in any case
  fs::remove_all(files.data_set, none);
  if (!files.archive.empty()) fs::remove(files.archive, none);
  Computed computed;
  computed.reply = PX_TRY(std::move(reply));
  const std::string& file = computed.reply.file;
  if (!file.starts_with(request.answer + ".") || file.find('/', request.answer.size()) != std::string::npos)
    return execution_error(fmt::format("{}: its answer is the file '{}'; it must be '{}' with an ending",
                                       pool_->executor(), one_safe_line(file), request.answer));
  computed.answer = PX_TRY_CONTEXT(pool_->executor(), Answer::open(file, model_->graph));
  fs::remove_all(file, none);  // it is mapped, and stays as long as its values do
  if (computed.answer.has_bodies()) {
    if (!order_.has_value()) order_ = PX_TRY(dump::ExecutionOrder::of(model_));
    computed.answer.sort_bodies(*order_);
  }
  pool_->show_notes(computed.reply.notes);
  return computed;
}

Result<std::vector<Value>> ForeignSession::run(std::span<const Value> inputs, Observer& observer,
                                               const CallInfo& call) {
  if (options_.cancel.is_cancelled())
    return make_error(ErrorCode::cancelled, fmt::format("cancelled before {} ran", pool_->executor()));
  const Graph& graph = model_->graph;
  PX_TRY(check_inputs(graph, inputs));
  wanted_ = &levels_.of(observer, value_infos_);
  wants_times_ = observer.wants_node_times();
  inputs_.assign(inputs.begin(), inputs.end());
  named_.clear();
  for (size_t index = 0; index < inputs.size(); ++index)
    named_[value_at(graph, graph.inputs[index]).name] = inputs[index];
  FrameStack frames;
  if (!call.graph.empty()) frames.push({Frame::Kind::graph, call.graph, -1});
  if (call.step >= 0) frames.push({Frame::Kind::step, "", call.step});
  observer_failed_ = false;
  PX_TRY(observer.begin_call(call, inputs));
  auto outputs = run_call(observer, frames);
  inputs_.clear();
  named_.clear();
  if (observer_failed_) return outputs;
  Status ended = observer.end_call(call);
  if (outputs.ok() && !ended.ok()) return std::move(ended).error();
  return outputs;
}

Result<std::vector<Value>> ForeignSession::run_call(Observer& observer, FrameStack& frames) {
  run_ms_.reset();
  auto computed = compute(node_count());
  if (!computed.ok()) return show_failure(locate(std::move(computed).error()), observer, frames);
  run_ms_ = computed->reply.milliseconds;
  PX_TRY(show(*computed, node_count(), observer, frames));
  const Replayed replayed{value_infos_, *wanted_, inputs_, computed->answer, {}, node_count()};
  return add_context(Replay(replayed, observer, frames).outputs(), pool_->executor());
}

Status ForeignSession::show(const Computed& computed, size_t count, Observer& observer, FrameStack& frames) {
  const Replayed replayed{value_infos_, *wanted_, inputs_, computed.answer, computed.reply.node_milliseconds, count};
  Replay replay(replayed, observer, frames);
  Status status;
  if (absent_shown_to_ != observer.identity()) status = replay.announce_absent();
  absent_shown_to_ = observer.identity();
  if (status.ok()) status = replay.show();
  observer_failed_ = observer_failed_ || !status.ok();
  return status;
}

// ---- A run that failed ----

// True for a failure that a smaller part of the model may show, too: the program ended, or said that a run failed.
bool ForeignSession::is_failure(const Error& error, bool is_crash) const {
  if (program_ == nullptr || error.code != ErrorCode::execution) return false;
  return is_crash ? program_->has_ended() : program_->has_refused();
}

ForeignSession::Failure ForeignSession::locate(Error error) {
  const bool is_crash = is_failure(error, true);
  if (is_crash || (is_failure(error, false) && error.node.empty())) return search(std::move(error), is_crash);
  if (!error.node.empty()) return before_named_node(std::move(error));
  return {std::move(error)};
}

ForeignSession::Failure ForeignSession::before_named_node(Error error) {
  const Graph& graph = model_->graph;
  const auto found = std::ranges::find_if(
      graph.order, [&](NodeId id) { return graph.nodes[static_cast<size_t>(id)].display_name == error.node; });
  if (found == graph.order.end()) return {std::move(error)};
  Failure failure{std::move(error), static_cast<size_t>(found - graph.order.begin())};
  if (*failure.node == 0 || failure.error.code != ErrorCode::execution) return failure;
  // Values that cannot be had are left out: the failure is the result.
  if (auto before = compute(*failure.node); before.ok()) failure.before = before.take();
  return failure;
}

// Bisection for the smallest number of nodes, in execution order, with which the run fails.
ForeignSession::Failure ForeignSession::search(Error error, bool is_crash) {
  log_info(fmt::format("{}; looking for the node: smaller parts of the model run", error.message));
  size_t passes = 0, fails = node_count();
  Failure failure{std::move(error)};
  while (fails > passes + 1) {
    const size_t middle = passes + (fails - passes) / 2;
    auto computed = compute(middle);
    if (computed.ok()) {
      passes = middle;
      failure.before = computed.take();
    } else if (is_failure(computed.error(), is_crash)) {
      fails = middle;
    } else if (computed.error().code == ErrorCode::cancelled) {
      return {std::move(computed).error()};
    } else {
      failure.error.message += fmt::format("; its first {} nodes cannot be run by themselves to find which one: {}",
                                           middle, computed.error().message);
      return {std::move(failure.error)};
    }
  }
  if (fails == node_count() && compute(fails).ok()) {
    failure.error.message += "; a second run of the same model did not fail, and neither does a smaller part";
    return {std::move(failure.error)};
  }
  if (fails == 0) return failure;
  failure.node = fails - 1;
  failure.error.message += fmt::format("; it takes the first {} of {} nodes to make it fail", fails, node_count());
  return failure;
}

Error ForeignSession::show_failure(Failure failure, Observer& observer, FrameStack& frames) {
  if (!failure.node.has_value()) return std::move(failure.error);
  const Computed nothing;
  const Status shown = show(failure.before.has_value() ? *failure.before : nothing,
                            failure.before.has_value() ? *failure.node : 0, observer, frames);
  if (!shown.ok()) return shown.error();
  const Graph& graph = model_->graph;
  const NodeId id = graph.order[*failure.node];
  const NodeLocation location = location_of(graph, id);
  failure.error.node.clear();
  Error named = at_location(std::move(failure.error), frames.prefix(), location);
  const Status reported = observer.node_failed(location, frames, named);
  observer_failed_ = observer_failed_ || !reported.ok();
  return named;
}

}  // namespace parallax::foreign
