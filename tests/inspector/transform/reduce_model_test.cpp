// SPDX-License-Identifier: Apache-2.0
// Whole reductions: what is left of models that fail between executors, between models, and by a command's word; what
// is left must still fail.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "inspector/base/mapped_file.h"
#include "inspector/base/shell.h"
#include "inspector/model/io/export.h"
#include "inspector/workbench/reduce/reduce.h"
#include "tests/inspector/transform/faulty_executor.h"

namespace parallax {
namespace {

using testing::executors;
using testing::executors_with;
using testing::Folder;
using testing::Mistake;
using testing::sample;
using testing::swapped;

ReduceRequest request_for(const std::string& model, const std::string& data_set, const Folder& folder) {
  ReduceRequest request;
  request.run.model = model;
  request.run.inputs.source = data_set;
  request.directory = folder.file("small");
  return request;
}

ReduceRequest request_for_sample(const std::string& name, const Folder& folder) {
  return request_for(sample(name) + "/model.onnx", sample(name) + "/test_data_set_0", folder);
}

// The reduced model must fail as the whole did.
void expect_still_fails(const ReduceRequest& request, const ExecutorFactory& factory) {
  RunRequest run = request.run;
  const bool is_pair = !run.against.empty();
  run.model = request.directory + (is_pair ? "/A.onnx" : "/model.onnx");
  if (is_pair) run.against = request.directory + "/B.onnx";
  run.inputs = {};
  run.inputs.source = request.directory + "/test_data_set_0";
  const auto result = run_models(run, factory);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const auto& values = result->comparison->values;
  EXPECT_TRUE(std::ranges::any_of(values, [](const auto& value) { return value.verdict == Verdict::diverged; }));
}

// ---- two executors ----

struct KernelFault {
  const char* sample;
  const char* op;
  const char* other;
};

class ReduceKernelFaults : public ::testing::TestWithParam<KernelFault> {};

TEST_P(ReduceKernelFaults, EndAtOneNodeOfTheOperator) {
  const auto& [name, op, other] = GetParam();
  const Folder folder("kernel");
  ReduceRequest request = request_for_sample(name, folder);
  request.run.executors = {"reference", "faulty"};
  const ExecutorFactory factory = executors_with(swapped(op, other));
  const auto result = reduce_model(request, factory);
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_TRUE(result->fails) << result->explanation;
  ASSERT_EQ(result->part.nodes.size(), 1U);
  const auto model = import_model(folder.file("small/model.onnx"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ((*model)->graph.nodes[0].op_type, op);
  expect_still_fails(request, factory);
}

INSTANTIATE_TEST_SUITE_P(Samples, ReduceKernelFaults,
                         ::testing::Values(KernelFault{"resnet", "Relu", "Neg"}, KernelFault{"cnn", "Sigmoid", "Tanh"},
                                           KernelFault{"mobilenet", "Add", "Sub"},
                                           KernelFault{"llama_layer", "Softmax", "LogSoftmax"},
                                           KernelFault{"greedy_decoder", "Tanh", "Sigmoid"},
                                           KernelFault{"greedy_decoder", "Softmax", "LogSoftmax"},
                                           KernelFault{"scan_filter", "Sigmoid", "Tanh"}));

TEST(Reduce, FindsTheBodysIteration) {
  const Folder folder("iteration");
  ReduceRequest request = request_for_sample("greedy_decoder", folder);
  request.run.executors = {"reference", "faulty"};
  const auto result = reduce_model(request, executors_with(swapped("Tanh", "Sigmoid")));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->location, "decode.body[0]//");
  EXPECT_EQ(result->part.nodes, std::vector<std::string>({"squash"}));
}

// Wrong only where two nodes meet: each alone is right.
TEST(Reduce, GrowsWhereNoNodeFailsAlone) {
  const Mistake fusion = [](Graph& graph) {
    for (Node& node : graph.nodes) {
      if (node.op_type != "Relu") continue;
      const NodeId before = graph.values[static_cast<size_t>(node.inputs[0])].producer;
      if (before != kNoNode && graph.nodes[static_cast<size_t>(before)].op_type == "Add") node.op_type = "Abs";
    }
  };
  const Folder folder("fusion");
  ReduceRequest request = request_for_sample("resnet", folder);
  request.run.executors = {"reference", "faulty"};
  const ExecutorFactory factory = executors_with(fusion);
  const auto result = reduce_model(request, factory);
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_TRUE(result->fails) << result->explanation;
  EXPECT_EQ(result->part.nodes.size(), 2U);
  expect_still_fails(request, factory);
}

TEST(Reduce, SaysThatAHealthyModelDoesNotFail) {
  const Folder folder("healthy");
  ReduceRequest request = request_for_sample("cnn", folder);
  request.run.executors = {"reference", "cpu"};
  const auto result = reduce_model(request, executors());
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_FALSE(result->fails);
  EXPECT_NE(result->explanation.find("does not fail"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder.file("small/model.onnx")));
}

// ---- two models ----

TEST(Reduce, CutsBothModelsOfThePair) {
  const Folder folder("pair");
  ReduceRequest request = request_for(sample("fault_pair/A.onnx"), sample("fault_pair/test_data_set_0"), folder);
  request.run.against = sample("fault_pair/B.onnx");
  request.run.executors = {"reference"};
  const auto result = reduce_model(request, executors());
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_TRUE(result->fails) << result->explanation;
  EXPECT_LE(result->part.nodes.size(), 3U);
  expect_still_fails(request, executors());
}

// The first float weight with more than one element, and the `skip` after it, moved in one element.
std::string write_with_changed_weight(const std::string& name, size_t skip, const Folder& folder) {
  const auto model = import_model(sample(name) + "/model.onnx").take();
  auto copy = copy_model(*model);
  for (StoredTensor& stored : copy->graph.initializers) {
    if (stored.tensor.dtype() != DType::float32 || stored.tensor.element_count() < 2 || skip-- > 0) continue;
    stored.tensor = stored.tensor.clone().take();
    stored.tensor.mutable_as<float>()[1] += 1.5F;
    break;
  }
  const std::string path = folder.file("changed.onnx");
  EXPECT_TRUE(export_model(*copy, path).ok());
  return path;
}

class ReduceWeightFaults : public ::testing::TestWithParam<std::pair<const char*, size_t>> {};

TEST_P(ReduceWeightFaults, EndAtFewNodes) {
  const auto& [name, skip] = GetParam();
  const Folder folder("weight");
  ReduceRequest request = request_for_sample(name, folder);
  request.run.against = write_with_changed_weight(name, skip, folder);
  request.run.executors = {"reference"};
  const auto result = reduce_model(request, executors());
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_TRUE(result->fails) << result->explanation;
  EXPECT_LE(result->part.nodes.size(), 3U) << result->location;
  expect_still_fails(request, executors());
}

INSTANTIATE_TEST_SUITE_P(Samples, ReduceWeightFaults,
                         ::testing::Values(std::pair("cnn", size_t{1}), std::pair("cnn", size_t{6}),
                                           std::pair("resnet", size_t{2}), std::pair("mobilenet", size_t{4}),
                                           std::pair("recurrent", size_t{0}), std::pair("llama_layer", size_t{3}),
                                           std::pair("greedy_decoder", size_t{1})));

// Everything but inputs and outputs is called otherwise.
void rename_all(Graph& graph) {
  for (size_t index = 0; index < graph.values.size(); ++index) {
    ValueDef& value = graph.values[index];
    if (value.input_index >= 0 || value.is_graph_output) continue;
    value.name = "r" + std::to_string(graph.values.size() - index);
    if (value.initializer_index >= 0)
      graph.initializers[static_cast<size_t>(value.initializer_index)].name = value.name;
  }
  for (size_t index = 0; index < graph.nodes.size(); ++index) graph.nodes[index].name = "m" + std::to_string(index);
}

TEST(Reduce, GivesTheCounterpartTheFirstModelsNames) {
  const Folder folder("renamed");
  const auto model = import_model(sample("resnet") + "/model.onnx").take();
  std::string changed_node;
  auto copy = testing::changed_copy(*model, [&](Graph& graph) {
    for (Node& node : graph.nodes) {
      if (node.op_type != "Relu" || !changed_node.empty()) continue;
      node.op_type = "Abs";
      changed_node = node.display_name;
    }
  });
  rename_all(copy->graph);
  const std::string path = folder.file("changed.onnx");
  ASSERT_TRUE(export_model(*copy, path).ok());
  ReduceRequest request = request_for_sample("resnet", folder);
  request.run.against = path;
  request.run.executors = {"reference"};
  const auto result = reduce_model(request, executors());
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->part.nodes, std::vector<std::string>({changed_node}));
  const auto b = import_model(folder.file("small/B.onnx"));
  ASSERT_TRUE(b.ok()) << b.error().message;
  EXPECT_EQ((*b)->graph.nodes[0].op_type, "Abs");
  const auto a = import_model(folder.file("small/A.onnx")).take();
  const auto output_of = [](const Model& part) {
    return part.graph.values[static_cast<size_t>(part.graph.outputs[0])].name;
  };
  const auto input_of = [](const Model& part) {
    return part.graph.values[static_cast<size_t>(part.graph.inputs[0])].name;
  };
  EXPECT_EQ(output_of(**b), output_of(*a));
  EXPECT_EQ(input_of(**b), input_of(*a));
  expect_still_fails(request, executors());
}

// ---- a command ----

ReduceRequest command_request(const Folder& folder, const std::string& command) {
  ReduceRequest request = request_for_sample("greedy_decoder", folder);
  request.run.executors = {"reference"};
  request.check.text = command;
  return request;
}

size_t lines_in(const std::string& path) {
  std::ifstream file(path);
  return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}

TEST(ReduceByCommand, EndsAtTheNodeThatTheCommandFinds) {
  const Folder folder("grep");
  const auto result =
      reduce_model(command_request(folder, "! grep -q Tanh {model} && test -f {inputs}/input_0.pb"), executors());
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_TRUE(result->fails) << result->explanation;
  EXPECT_EQ(result->part.nodes, std::vector<std::string>({"squash"}));
  EXPECT_EQ(result->location, "decode.body[0]//");
  EXPECT_TRUE(std::filesystem::exists(folder.file("small/test_data_set_0/output_0.pb")));
}

TEST(ReduceByCommand, KnowsQuantizedValuesAndPatterns) {
  const Folder folder("code");
  ReduceRequest request =
      command_request(folder, "if grep -q Concat {model}; then echo 'bad: join'; exit 7; else exit 3; fi");
  request.check.fail_codes = {7};
  auto result = reduce_model(request, executors());
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->part.nodes, std::vector<std::string>({"join"}));
  request.check.fail_codes.clear();
  request.check.fail_regex = "^bad: +join$";
  result = reduce_model(request, executors());
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->part.nodes, std::vector<std::string>({"join"}));
  request.check.fail_regex = "((";
  EXPECT_EQ(reduce_model(request, executors()).error().code, ErrorCode::usage);
}

TEST(ReduceByCommand, GoesOnFromItsJournal) {
  const Folder folder("journal");
  const std::string log = folder.file("asked");
  const ReduceRequest request = command_request(folder, "echo x >> " + shell_quoted(log) + "; ! grep -q Tanh {model}");
  const auto first = reduce_model(request, executors());
  ASSERT_TRUE(first.ok()) << first.error().message;
  const size_t asked = lines_in(log);
  EXPECT_EQ(asked, static_cast<size_t>(first->checks) + 1);  // once more for the model as it is

  // Killed half-way: the last line is not finished.
  const std::string journal = folder.file("small/journal.jsonl");
  std::string text = read_file(journal).take();
  size_t cut = 0;
  for (int line = 0; line < 4; ++line) cut = text.find('\n', cut) + 1;
  ASSERT_TRUE(write_file(journal, text.substr(0, cut + 9)).ok());
  const auto second = reduce_model(request, executors());
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_TRUE(std::ranges::any_of(
      second->notes, [](const std::string& note) { return note.find("is cut off") != std::string::npos; }));
  EXPECT_EQ(second->part.nodes, first->part.nodes);
  EXPECT_EQ(second->remembered, 3);
  EXPECT_EQ(lines_in(log), asked + 1 + static_cast<size_t>(first->checks) - 3);

  // Another command: nothing that was found before holds.
  ReduceRequest other = request;
  other.check.text = "! grep -q Softmax {model}";
  const auto third = reduce_model(other, executors());
  ASSERT_TRUE(third.ok()) << third.error().message;
  EXPECT_EQ(third->remembered, 0);
  EXPECT_EQ(third->part.nodes, std::vector<std::string>({"softmax"}));
}

TEST(ReduceByCommand, TellsWhatIsWrong) {
  const Folder folder("wrong");
  const auto passing = reduce_model(command_request(folder, "true {model}"), executors());
  ASSERT_TRUE(passing.ok());
  EXPECT_FALSE(passing->fails);
  const auto unfilled = reduce_model(command_request(folder, "false"), executors());
  EXPECT_EQ(unfilled.error().code, ErrorCode::usage);
  const auto missing = reduce_model(command_request(folder, "no-such-program {model}"), executors());
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("cannot be run"), std::string::npos);
  ReduceRequest nothing = command_request(folder, "");
  EXPECT_EQ(reduce_model(nothing, executors()).error().code, ErrorCode::usage);
}

TEST(RunShell, KillsWhatTakesTooLong) {
  const Folder folder("shell");
  const auto outcome = run_shell("echo begun; tail -f /dev/null", 0.2, folder.file("log"));
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->timed_out);
  EXPECT_EQ(outcome->output, "begun\n");
  EXPECT_EQ(run_shell("exit 9", 5, folder.file("log"))->exit_code, 9);
  EXPECT_EQ(run_shell("printf %s " + shell_quoted("it's $HOME"), 0, folder.file("log"))->output, "it's $HOME");
}

// A session that runs no graph of fewer than three nodes.
class BrittleSession final : public Session {
 public:
  BrittleSession(std::unique_ptr<Session> inner, size_t nodes) : inner_(std::move(inner)), nodes_(nodes) {}
  Result<std::vector<Value>> run(std::span<const Value> inputs, Observer& observer, const CallInfo& call) override {
    if (nodes_ < 3) return execution_error("too few nodes");
    return inner_->run(inputs, observer, call);
  }
  SessionStatistics statistics() const override { return inner_->statistics(); }

 private:
  std::unique_ptr<Session> inner_;
  size_t nodes_;
};

class BrittleExecutor final : public Executor {
 public:
  explicit BrittleExecutor(std::shared_ptr<Executor> inner) : inner_(std::move(inner)) {}
  std::string name() const override { return inner_->name(); }
  std::string device() const override { return inner_->device(); }
  std::map<std::string, std::string> settings(const RunOptions& options) const override {
    return inner_->settings(options);
  }
  Result<std::unique_ptr<Session>> prepare(std::shared_ptr<const Model> model, const RunOptions& options) override {
    const size_t nodes = model->graph.nodes.size();
    auto session = PX_TRY(inner_->prepare(std::move(model), options));
    return std::unique_ptr<Session>(std::make_unique<BrittleSession>(std::move(session), nodes));
  }

 private:
  std::shared_ptr<Executor> inner_;
};

TEST(Reduce, GoesOnAfterACandidateThatOneSideCannotRun) {
  const Folder folder("brittle");
  ReduceRequest request = request_for_sample("resnet", folder);
  request.run.executors = {"reference", "faulty"};
  const ExecutorFactory faulty = executors_with(swapped("Relu", "Neg"));
  const ExecutorFactory factory = [&](const std::string& name) -> Result<std::shared_ptr<Executor>> {
    auto executor = PX_TRY(faulty(name));
    if (name != "faulty") return executor;
    return std::shared_ptr<Executor>(std::make_shared<BrittleExecutor>(std::move(executor)));
  };
  const auto result = reduce_model(request, factory);
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_TRUE(result->fails) << result->explanation;
  EXPECT_EQ(result->part.nodes.size(), 3U);
}

// ---- a function says what fails ----

TEST(Reduce, AsksAFunctionAboutCandidatesInMemory) {
  const Folder folder("function");
  ReduceRequest request = request_for_sample("cnn", folder);
  request.run.model_in_memory = import_model(request.run.model).take();
  request.run.model.clear();
  request.run.executors = {"reference"};
  size_t largest = 0;
  request.candidate_check = [&](const std::shared_ptr<const Model>& candidate,
                                const std::vector<NamedValue>& inputs) -> Result<bool> {
    largest = std::max(largest, candidate->graph.nodes.size());
    EXPECT_FALSE(inputs.empty());
    return std::ranges::any_of(candidate->graph.nodes, [](const Node& node) { return node.op_type == "Sigmoid"; });
  };
  const auto result = reduce_model(request, executors());
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_TRUE(result->fails) << result->explanation;
  EXPECT_EQ(result->part.nodes.size(), 1U);
  EXPECT_EQ(largest, request.run.model_in_memory->graph.nodes.size());
  EXPECT_FALSE(std::filesystem::exists(folder.file("small/repeat.sh")));
  // Another function on the same model: the journal's verdicts are not its own.
  request.candidate_check = [](const auto&, const auto&) -> Result<bool> { return false; };
  const auto passes = reduce_model(request, executors());
  ASSERT_TRUE(passes.ok()) << passes.error().message;
  EXPECT_FALSE(passes->fails);
}

TEST(Reduce, EndsWhereItIsCancelled) {
  const Folder folder("cancelled");
  ReduceRequest request = request_for_sample("cnn", folder);
  request.run.executors = {"reference"};
  CancelToken cancel = request.run.options.cancel;
  request.candidate_check = [&](const auto&, const auto&) -> Result<bool> {
    cancel.cancel();
    return true;
  };
  EXPECT_EQ(reduce_model(request, executors()).error().code, ErrorCode::cancelled);
  const auto shell = run_shell("sleep 600", 0, folder.file("log"), cancel);
  ASSERT_FALSE(shell.ok());
  EXPECT_EQ(shell.error().code, ErrorCode::cancelled);
}

}  // namespace
}  // namespace parallax
