// SPDX-License-Identifier: Apache-2.0
// One side of a run: a model on an executor with its inputs, its session, and the observers that watch it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inspector/diff/matching/path_links.h"
#include "inspector/dump/dump_writer.h"
#include "inspector/exec/executor.h"
#include "inspector/exec/tee_observer.h"
#include "inspector/transform/lower_quantized.h"
#include "inspector/workbench/run.h"

namespace parallax {

inline bool carries_doubles(const Executor& executor) { return executor.name() == "reference:double"; }

struct RunSide {
  std::shared_ptr<Executor> executor;
  std::shared_ptr<const Model> model;
  RunOptions options;
  std::vector<Value> inputs;
  std::vector<std::string> generated;  // inputs of integers that were, without --range
  std::unique_ptr<Session> session;
  std::unique_ptr<DumpWriter> dump;  // or null
  RunInfo info;                      // made once: it hashes the model file
  transform::NodeOrigins origins;    // of a model that was lowered to be compared
  std::vector<Value> outputs;        // after run()
  double prepare_ms = 0;
  double wall_ms = 0;

  // Runs the session once, for `watcher` (may be null) and the dump. end_run is always called, also after a failure.
  Status run(Observer* watcher);
};

// The model of the request, and the second one (null: there is none). Of a model with nodes that cannot be executed:
// the part that request.only asks for, or the model with what the request's inputs give instead of them. Errors: as of
// import_model.
Result<std::shared_ptr<const Model>> load_model(const RunRequest& request, const ImportOptions& options = {});
Result<std::shared_ptr<const Model>> load_against(const RunRequest& request, const ImportOptions& options = {});

// Loads as load_model does, or else as much of the model as can be executed; `notes` then say what is left out.
Result<std::shared_ptr<const Model>> load_runnable(const RunRequest& request, std::vector<std::string>& notes);

// Two models as they are compared: where one has operators on quantized values that the other has not, both have them
// as DequantizeLinear, the operator on floats and QuantizeLinear, so that their values have counterparts.
struct ModelPair {
  std::shared_ptr<const Model> a, b;
  transform::NodeOrigins origins_a = {}, origins_b = {};
};
Result<ModelPair> pair_models(std::shared_ptr<const Model> a, std::shared_ptr<const Model> b);

// Two sides differ in the executor or in the model, or nothing is compared. Errors: usage.
Status check_sides(const std::vector<std::string>& executors, bool has_against);
// Checks that need no model: the executors exist, and each option means something to one of them. Errors: usage.
Status check_options(const RunRequest& request, const ExecutorFactory& make_executor);
// The options this executor understands.
RunOptions options_for(const RunRequest& request, const std::string& executor_name);

// The inputs that the request asks for, of sizes that suit `other`, too (null: there is none). What was chosen
// for them goes to request.message where that is set, at once: a run that fails has no result that could tell. Else it
// stays in the notes.
Result<InputSet> make_reported_inputs(const Model& model, const RunRequest& request, const Model* other = nullptr);

Result<RunSide> prepare_side(const RunRequest& request, const std::string& executor_name,
                             std::shared_ptr<const Model> model, std::vector<Value> inputs,
                             const ExecutorFactory& make_executor);

// The values of A's inputs in the order of B's: by name, or by type and order where no name is known to both, and
// floats in the type that B declares; `notes` then say so. Errors: usage, when B has an input that A lacks.
Result<std::vector<Value>> inputs_for_other(const Model& a, const std::vector<Value>& values, const Model& b,
                                            std::vector<std::string>& notes);

// Which values of two models stand for each other.
Result<std::vector<PathMatch>> match_paths(const std::shared_ptr<const Model>& a,
                                           const std::shared_ptr<const Model>& b);

ComparedExecution describe_side(const RunSide& side, Side which);
// How the values of a device came to the observers, where the run had to wait for them.
void add_capture_note(const ComparedExecution& execution, std::vector<std::string>& notes);
// A float64 that stands for a narrower declared float (reference:double carries all floats so), rounded to that type;
// within sequences and optionals too.
Value round_to_declared(const Value& value, const TypeInfo& declared);
// Outputs under their names; with `carries_doubles` (reference:double) floats rounded to their declared types, as
// expected ones are.
std::vector<NamedValue> named_outputs(const Graph& graph, const std::vector<Value>& outputs, bool carries_doubles);
std::vector<OutputSummary> summarize_outputs(const Graph& graph, const std::vector<Value>& outputs);

}  // namespace parallax
