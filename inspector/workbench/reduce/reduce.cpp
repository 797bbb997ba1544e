// SPDX-License-Identifier: Apache-2.0
// Runs what fails, looks where it may come from, and lets the search of inspector/transform make that small.
#include "inspector/workbench/reduce/reduce.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "inspector/base/hash.h"
#include "inspector/base/log.h"
#include "inspector/base/memory_budget.h"
#include "inspector/base/output_group.h"
#include "inspector/base/signal_cleanup.h"
#include "inspector/model/link.h"
#include "inspector/transform/part_files.h"
#include "inspector/transform/reduce.h"
#include "inspector/workbench/dump_size.h"
#include "inspector/workbench/reduce/reduce_criteria.h"
#include "inspector/workbench/reduce/reduce_journal.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;
using transform::Location;
using transform::Part;

// The largest number of locations where a difference is first searched.
constexpr size_t kMostSuspects = 16;

struct Suspect {
  Location location;
  NodeId node = kNoNode;
};

// The node a path speaks of: the one of that name where the path leads, else the value's producer, else its first
// reader.
std::optional<Suspect> suspect_at(const std::shared_ptr<const Model>& model, const std::string& path,
                                  const std::string& node_name) {
  auto located = transform::locate_value(model, path);
  if (!located.ok()) return std::nullopt;
  const Graph& graph = located->location.graph();
  const ValueDef& value = graph.values[static_cast<size_t>(located->id)];
  NodeId node = graph.find_node(node_name);
  if (node == kNoNode) node = value.producer;
  if (node == kNoNode && !value.readers.empty()) node = value.readers.front();
  if (node == kNoNode) return std::nullopt;
  return Suspect{std::move(located->location), node};
}

std::string key_of(const Part& part) {
  std::string text = part.location.prefix();
  for (const NodeId id : part.nodes) text += "\n" + part.location.graph().nodes[static_cast<size_t>(id)].display_name;
  const Hash128 hash = hash128(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

Part whole_of(const Location& location) {
  std::vector<NodeId> nodes;
  for (size_t id = 0; id < location.graph().nodes.size(); ++id) nodes.push_back(static_cast<NodeId>(id));
  return transform::part_of_nodes(location, std::move(nodes));
}

class Reduction {
 public:
  Reduction(const ReduceRequest& request, const ExecutorFactory& make_executor)
      : request_(request), context_{request, make_executor, nullptr, nullptr, nullptr, nullptr, {}} {}

  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  Result<ReduceResult> run() {
    const MemoryBudget::Scope budget(request_.run.options.memory_limit_bytes);
    PX_TRY(open());
    std::optional<Part> part = request_.candidate_check      ? PX_TRY(find_by_candidate_check())
                               : request_.check.text.empty() ? PX_TRY(find_difference())
                                                             : PX_TRY(find_by_command());
    if (!part.has_value()) {
      result_.fails = false;
      return std::move(result_);
    }
    *part = PX_TRY(transform::shrink_part(std::move(*part), check()));
    *part = PX_TRY(look_into_bodies(std::move(*part)));
    OutputGroup group;
    std::vector<std::string> written = PX_TRY(criterion_->write(*part));
    PX_TRY(group.finish());
    result_.part = summarize_part(*part);
    result_.part.directory = request_.directory;
    result_.part.written = std::move(written);
    result_.location = part->location.prefix();
    return std::move(result_);
  }

 private:
  Status open() {
    PX_TRY(check_options(request_.run, context_.make_executor));
    context_.model_a = PX_TRY(load_model(request_.run));
    context_.model_b = PX_TRY(load_against(request_.run));
    name_ = request_.run.model.empty() ? context_.model_a->path : request_.run.model;
    InputSet inputs = PX_TRY(make_reported_inputs(*context_.model_a, request_.run, context_.model_b.get()));
    result_.notes = inputs.notes;
    inputs_ = std::move(inputs.values);
    const bool has_two = context_.model_b != nullptr;
    PX_TRY(transform::admit_part(request_.directory,
                                 {has_two ? "A.onnx" : "model.onnx", has_two ? "B.onnx" : "model.onnx", "repeat.sh"}));
    PX_TRY(make_output_folder(request_.directory));
    context_.scratch = PX_TRY(TemporaryPath::make_folder(fs::absolute(request_.directory).string() + "/.reduce"));
    journal_ = PX_TRY(ReduceJournal::open(request_.directory + "/journal.jsonl", subject()));
    if (!journal_->remark().empty()) result_.notes.push_back(journal_->remark());
    return {};
  }

  // All that decides a verdict. A function cannot be told from another by what it does: its verdicts are forgotten.
  std::string subject() const {
    const RunRequest& run = request_.run;
    const CheckCommand& check = request_.check;
    std::string text =
        fmt::format("{} {} {} {} {} {} {} {} {}", model_sha256(*context_.model_a),
                    context_.model_b == nullptr ? "" : model_sha256(*context_.model_b), fmt::join(run.executors, ","),
                    request_.script_options, check.text, fmt::join(check.fail_codes, ","), check.fail_regex,
                    check.timeout_s, run.inputs.seed);
    if (request_.candidate_check)
      text += fmt::format(" {}", std::chrono::steady_clock::now().time_since_epoch().count());
    for (const Value& value : inputs_) {
      if (!value.is_tensor() || value.tensor().dtype() == DType::string) continue;
      const auto bytes = value.tensor().view().bytes();
      const Hash128 hash = hash128(bytes.data(), bytes.size());
      text += fmt::format(" {:x}{:x}", hash.high, hash.low);
    }
    return sha256_hex(text.data(), text.size());
  }

  // Every value of one side's run, in a file.
  Result<std::shared_ptr<const DumpReader>> values_of(const std::shared_ptr<const Model>& model,
                                                      const std::string& executor, std::vector<Value> inputs,
                                                      const std::string& file) {
    RunRequest run = request_.run;
    run.options.observe_all = true;
    RunSide side = PX_TRY(prepare_side(run, executor, model, std::move(inputs), context_.make_executor));
    const std::string path = context_.scratch->file(file);
    reserved_.push_back(PX_TRY(reserve_capture(context_.scratch->path(), side.model->graph, side.inputs)));
    const Status captured = capture_values(side, {}, path);
    const bool has_check = !request_.check.text.empty() || request_.candidate_check;
    const bool may_go_on = has_check && !captured.ok() && captured.error().code == ErrorCode::execution;
    if (!captured.ok() && !may_go_on) return captured.error();
    if (may_go_on) log_warning(captured.error().message + "; going on with the values that were computed before");
    return DumpReader::open(path);
  }

  Status capture_sides() {
    std::vector<Value> inputs = inputs_;
    const RunRequest& run = request_.run;
    if (context_.model_b != nullptr) {
      auto inputs_b = PX_TRY(inputs_for_other(*context_.model_a, inputs, *context_.model_b, result_.notes));
      context_.model_b = with_given_defaults(context_.model_b, inputs_b);
      context_.values_b = PX_TRY(values_of(context_.model_b, run.executors.back(), inputs_b, "values-b.plx"));
    }
    context_.model_a = with_given_defaults(context_.model_a, inputs);
    context_.values = PX_TRY(values_of(context_.model_a, run.executors.front(), inputs, "values.plx"));
    return {};
  }

  // ---- what fails is the comparison ----

  Result<std::optional<Part>> find_difference() {
    RunRequest run = request_.run;
    if (run.executors.size() == 1) run.executors.push_back(run.executors.front());
    const RunResult ran = PX_TRY(run_models(run, context_.make_executor));
    comparison_ = *ran.comparison;
    if (!are_mismatched(comparison_)) {
      const bool is_pass = comparison_.verdict == OverallVerdict::pass;
      const std::string why =
          comparison_.reason.empty() ? "outputs are not as the data set expects" : comparison_.reason;
      return nothing(
          fmt::format("'{}' does not fail: no value diverges{}", name_, is_pass ? "" : fmt::format(" (yet {})", why)));
    }
    for (const ValueComparison& value : comparison_.values) {
      const bool is_matched = !value.a.empty() && !value.b.empty();
      if (value.verdict == Verdict::pass) sound_.insert(value.path);
      if (is_matched) context_.matched.b_of_a.emplace(value.a, value.b);
      if (is_matched && value.verdict == Verdict::pass) context_.matched.equal_in_b.insert(value.b);
    }
    PX_TRY(capture_sides());
    criterion_ = context_.model_b == nullptr ? executors_differ(context_) : models_differ(context_);
    const std::vector<Suspect> suspects = find_suspects();
    for (const Suspect& suspect : suspects) {
      Part alone = transform::part_of_nodes(suspect.location, {suspect.node});
      if (PX_TRY(judge(alone))) return std::optional(std::move(alone));
    }
    for (const Suspect& suspect : suspects) {
      auto found = PX_TRY(transform::find_failing_part(suspect.location, suspect.node, sound_, check()));
      if (found.has_value()) return found;
    }
    Part whole = whole_of(PX_TRY(transform::find_location(context_.model_a, {})));
    if (PX_TRY(judge(whole))) return std::optional(std::move(whole));
    return nothing(fmt::format("'{}' fails as a whole, but no part of it fails on its own", name_));
  }

  // Causes by rank, then where the sides part, in execution order.
  std::vector<Suspect> find_suspects() const {
    std::vector<Suspect> suspects;
    std::set<std::pair<std::string, NodeId>> known;
    const auto add = [&](const std::string& path, const std::string& node) {
      if (suspects.size() >= kMostSuspects) return;
      auto suspect = suspect_at(context_.model_a, path, node);
      if (suspect.has_value() && known.emplace(suspect->location.prefix(), suspect->node).second)
        suspects.push_back(std::move(*suspect));
    };
    for (const Cause& cause : comparison_.causes) add(cause.path, cause.node);
    for (const ValueComparison& value : comparison_.values) {
      if (are_mismatched(value)) add(value.path, value.node);
    }
    return suspects;
  }

  // ---- what fails is a command ----

  Result<std::optional<Part>> find_by_command() {
    PX_TRY(capture_sides());
    criterion_ = command_fails(context_);
    Part whole = whole_of(PX_TRY(transform::find_location(context_.model_a, {})));
    if (!PX_TRY(command_fails_on_model(context_, whole)))
      return nothing(fmt::format("'{}' does not fail: the command passes on it, or takes too long", name_));
    if (PX_TRY(judge(whole))) return std::optional(std::move(whole));
    return nothing(fmt::format(
        "the command fails on '{}', but not on the same model written with the shapes of these inputs", name_));
  }

  // ---- what fails is judged by a function ----

  Result<std::optional<Part>> find_by_candidate_check() {
    PX_TRY(capture_sides());
    criterion_ = candidate_check_fails(context_);
    Part whole = whole_of(PX_TRY(transform::find_location(context_.model_a, {})));
    if (!PX_TRY(candidate_check_fails_on_model(context_, whole)))
      return nothing(fmt::format("'{}' does not fail: the check passes on it", name_));
    if (PX_TRY(judge(whole))) return std::optional(std::move(whole));
    return nothing(fmt::format(
        "the check fails on '{}', but not on the same model written with the shapes of these inputs", name_));
  }

  // ---- all of them ----

  std::optional<Part> nothing(std::string explanation) {
    result_.explanation = std::move(explanation);
    return std::nullopt;
  }

  Result<bool> judge(const Part& part) {
    if (request_.run.options.cancel.is_cancelled())
      return make_error(ErrorCode::cancelled, "the search for a smaller part was cancelled");
    const std::string key = key_of(part);
    if (const auto known = verdicts_.find(key); known != verdicts_.end()) return known->second;
    if (result_.checks >= request_.max_checks) {
      result_.is_minimal = false;
      return false;
    }
    ++result_.checks;
    const auto remembered = journal_->find(key);
    if (remembered.has_value()) ++result_.remembered;
    const bool fails = remembered.has_value() ? *remembered : PX_TRY(criterion_->fails(part));
    if (!remembered.has_value()) PX_TRY(journal_->add(key, part.nodes.size(), fails));
    verdicts_[key] = fails;
    return fails;
  }

  transform::PartCheck check() {
    return [this](const Part& part) { return judge(part); };
  }

  // A single node that holds or calls a graph: the failure may be in there.
  Result<Part> look_into_bodies(Part part) {
    for (bool is_smaller = true; is_smaller && part.nodes.size() == 1;) {
      is_smaller = false;
      for (const Frame& frame : frames_below(part)) {
        ValuePath path = PX_TRY(parse_value_path(part.location.prefix() + "inside"));
        path.frames.push_back(frame);
        const auto location = transform::find_location(context_.model_a, path.frames);
        if (!location.ok()) continue;
        Part body = whole_of(*location);
        if (body.nodes.empty() || !PX_TRY(judge(body))) continue;
        part = PX_TRY(transform::shrink_part(std::move(body), check()));
        is_smaller = true;
        break;
      }
    }
    return part;
  }

  // The executions of the node's bodies: one where values diverged, the first, the last.
  std::vector<Frame> frames_below(const Part& part) const {
    const Node& node = part.location.graph().nodes[static_cast<size_t>(part.nodes.front())];
    std::vector<Frame> all, chosen;
    if (node.function == nullptr && bodies_of(node).empty()) return chosen;
    for (const DumpEvent& event : context_.values->events()) {
      if (event.kind != DumpEvent::Kind::enter_body || event.node != node.display_name) continue;
      const auto path = parse_value_path(event.text + "//inside");
      if (path.ok() && !path->frames.empty()) all.push_back(path->frames.back());
    }
    const auto add = [&](const Frame& frame) {
      if (std::ranges::find(chosen, frame) == chosen.end()) chosen.push_back(frame);
    };
    for (const Frame& frame : all) {
      const std::string prefix = part.location.prefix() + to_string(frame) + "//";
      const auto is_inside = [&](const ValueComparison& value) {
        return are_mismatched(value) && value.path.starts_with(prefix);
      };
      if (std::ranges::any_of(comparison_.values, is_inside)) {
        add(frame);
        break;
      }
    }
    if (!all.empty()) {
      add(all.front());
      add(all.back());
    }
    return chosen;
  }

  const ReduceRequest& request_;
  std::string name_;  // of the model, in sentences
  std::vector<MemoryBudget::Reservation> reserved_;
  ReduceContext context_;
  ReduceResult result_;
  std::vector<Value> inputs_;
  Comparison comparison_;
  std::set<std::string> sound_;
  std::unique_ptr<FailureCriterion> criterion_;
  std::unique_ptr<ReduceJournal> journal_;
  std::map<std::string, bool> verdicts_;
};

Status check_request(const ReduceRequest& request) {
  PX_TRY(check_fail_regex(request.check.fail_regex));
  if (request.candidate_check && !request.check.text.empty())
    return usage_error("a function and a command exclude each other as --check");
  const bool has_check = !request.check.text.empty() || request.candidate_check;
  const size_t executors = request.run.executors.size();
  if (has_check && request.run.has_against()) return usage_error("--check and --against exclude each other");
  if (has_check && executors != 1) return usage_error("--check takes one executor by --with: it computes the values");
  if (!request.check.text.empty() && request.check.text.find("{model}") == std::string::npos)
    return usage_error("--check: the command must hold {model}, which stands for the candidate's file");
  if (!has_check && !request.run.has_against() && executors != 2)
    return usage_error("say what fails: --check 'CMD {model}', --with A,B or --against B.onnx");
  return {};
}

}  // namespace

Result<ReduceResult> reduce_model(const ReduceRequest& request, const ExecutorFactory& make_executor) {
  PX_TRY(check_request(request));
  return Reduction(request, make_executor).run();
}

}  // namespace parallax
