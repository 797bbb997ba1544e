// SPDX-License-Identifier: Apache-2.0
// Executors that are programs of their own: limits, crashes, what is wrong with an answer, and names.
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "inspector/exec/executor_names.h"
#include "inspector/exec/reported_times.h"
#include "inspector/executors/default_executors.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/io/import.h"
#include "inspector/tensor/elements.h"
#include "tests/inspector/executors/recording_observer.h"

namespace parallax {
namespace {

constexpr int kNodes = 40;

// A chain of Neg: v1 = -x, v2 = -v1, ... The node of value vN is called nN; v40 is the output.
std::shared_ptr<const Model> chain() {
  const std::string type = "type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } }";
  std::string text = "ir_version: 8 opset_import { version: 17 } graph { name: 'g' input { name: 'v0' " + type + " } ";
  for (int index = 1; index <= kNodes; ++index)
    text += fmt::format("node {{ op_type: 'Neg' name: 'n{}' input: 'v{}' output: 'v{}' }} ", index, index - 1, index);
  text += fmt::format("output {{ name: 'v{}' {} }} }}", kNodes, type);
  auto model = import_model(std::as_bytes(std::span(text)), "", "chain");
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.take();
}

std::vector<Value> inputs() {
  const float x[] = {1, 2};
  return {Tensor::vector<float>(x)};
}

std::string folder_of_test() {
  const std::string path = fmt::format("{}/px-foreign-{}", testing::TempDir(), ::getpid());
  std::filesystem::create_directories(path);
  return path;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The executor of the runner with these options, which writes the number of its process to a file.
std::shared_ptr<Executor> runner(const std::string& options) {
  return make_executor(fmt::format("cmd:echo $$ > '{}/pid'; exec " PX_RUNNER " {}", folder_of_test(), options)).take();
}

// True where the last program of `runner` has ended and was waited for.
bool is_gone() {
  const int pid = std::stoi(text_of(folder_of_test() + "/pid"));
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

struct Outcome {
  Result<std::vector<Value>> outputs;
  RecordingObserver seen;
  std::shared_ptr<Executor> executor;  // which still lives, as its programs may
};

// One run of the chain on the runner with these options.
Outcome run_chain(const std::string& runner_options, const RunOptions& options = {}) {
  RecordingObserver seen;
  auto executor = runner(runner_options);
  auto session = executor->prepare(chain(), options);
  if (!session.ok()) return {std::move(session).error(), seen, executor};
  auto outputs = (*session)->run(inputs(), seen);
  return {std::move(outputs), std::move(seen), executor};
}

// Returns when that program has ended, waited for or not.
void wait_for_end() {
  const auto stat = [] { return text_of(fmt::format("/proc/{}/stat", std::stoi(text_of(folder_of_test() + "/pid")))); };
  while (stat().find(") Z ") == std::string::npos && !stat().empty()) std::this_thread::yield();
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Foreign, GivesEveryValueThatIsWanted) {
  RunOptions options;
  options.observe_all = true;
  for (const char* answer : {"", "--observes"}) {
    const Outcome outcome = run_chain(answer, options);
    ASSERT_TRUE(outcome.outputs.ok()) << outcome.outputs.error().message;
    EXPECT_EQ(outcome.seen.values.size(), kNodes + 1U);
    EXPECT_EQ(outcome.outputs->front().tensor().as<float>()[1], 2);
    EXPECT_EQ(outcome.seen.values.at("v7").tensor().as<float>()[1], -2);
  }
}

TEST(Foreign, AnUnwantedValueIsNotAskedFor) {
  const auto executor = make_executor("cmd:" PX_RUNNER).take();
  const auto session = executor->prepare(chain(), {}).take();
  RecordingObserver few;
  for (int index = 1; index < kNodes; ++index) few.unwanted.insert(fmt::format("v{}", index));
  ASSERT_TRUE(session->run(inputs(), few).ok());
  EXPECT_EQ(few.values.size(), 2U);
  RecordingObserver all;
  ASSERT_TRUE(session->run(inputs(), all).ok());
  EXPECT_EQ(all.values.size(), kNodes + 1U);
}

// The runner computes with cpu, which makes one kernel of a chain of Neg.
TEST(Foreign, TheDumpSaysWhatIsFused) {
  const Outcome fused = run_chain("--observes");
  ASSERT_TRUE(fused.outputs.ok());
  EXPECT_TRUE(fused.seen.saw("absent v7"));
  EXPECT_FALSE(fused.seen.values.contains("v7"));
  EXPECT_EQ(fused.seen.absences.at("v7").kind, Absence::Kind::fused);
  EXPECT_FALSE(fused.seen.absences.at("v7").into.empty());
}

// ---- A program that ends ----

TEST(Foreign, ACrashNamesTheNodeAndKeepsTheValuesBefore) {
  for (const std::string answer : {"", " --observes"}) {
    const Outcome outcome = run_chain("--crash-at n23" + answer);
    ASSERT_FALSE(outcome.outputs.ok());
    const Error& error = outcome.outputs.error();
    EXPECT_EQ(error.code, ErrorCode::execution);
    EXPECT_EQ(error.node, "n23");
    EXPECT_EQ(error.op, "Neg-13");
    EXPECT_NE(error.message.find("signal 11 (Segmentation fault)"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("reading beyond the end | about to fall"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("the first 23 of 40 nodes"), std::string::npos) << error.message;
    EXPECT_TRUE(outcome.seen.values.contains("v22"));
    EXPECT_FALSE(outcome.seen.values.contains("v23"));
    EXPECT_TRUE(outcome.seen.saw("failed n23"));
    EXPECT_EQ(outcome.seen.events.back(), "end_call");
  }
}

TEST(Foreign, TheFirstAndTheLastNodeAreFoundToo) {
  for (const char* node : {"n1", "n40"}) {
    const Outcome outcome = run_chain(fmt::format("--exit-at {}", node));
    ASSERT_FALSE(outcome.outputs.ok());
    EXPECT_EQ(outcome.outputs.error().node, node);
    EXPECT_NE(outcome.outputs.error().message.find("exit code 3"), std::string::npos);
    EXPECT_EQ(outcome.seen.values.size(), std::string(node) == "n1" ? 1U : 40U);
  }
}

TEST(Foreign, AFailureWithoutANodeIsLocatedLikeACrash) {
  const Outcome outcome = run_chain("--refuse-at n5");
  ASSERT_FALSE(outcome.outputs.ok());
  EXPECT_EQ(outcome.outputs.error().node, "n5");
  EXPECT_NE(outcome.outputs.error().message.find("a kernel failed"), std::string::npos);
  EXPECT_TRUE(outcome.seen.values.contains("v4"));
}

TEST(Foreign, ACrashThatDoesNotComeAgainNamesNoNode) {
  const std::string mark = folder_of_test() + "/crashed";
  std::filesystem::remove(mark);
  const Outcome outcome = run_chain(fmt::format("--crash-at n9 --crash-once '{}'", mark));
  ASSERT_FALSE(outcome.outputs.ok());
  EXPECT_EQ(outcome.outputs.error().node, "");
  EXPECT_NE(outcome.outputs.error().message.find("a second run of the same model did not fail"), std::string::npos)
      << outcome.outputs.error().message;
}

TEST(Foreign, TheSessionGoesOnAfterACrash) {
  const std::string mark = folder_of_test() + "/crashed-before";
  std::filesystem::remove(mark);
  const auto executor = make_executor(fmt::format("cmd:" PX_RUNNER " --crash-at n9 --crash-once '{}'", mark)).take();
  const auto session = executor->prepare(chain(), {}).take();
  RecordingObserver seen;
  EXPECT_FALSE(session->run(inputs(), seen).ok());
  EXPECT_TRUE(session->run(inputs(), seen).ok());
}

TEST(Foreign, ACrashWhileAModelIsLoadedIsLocatedByTheRun) {
  for (const std::string answer : {"", " --observes"}) {
    const Outcome outcome = run_chain("--crash-at-load n23" + answer);
    ASSERT_FALSE(outcome.outputs.ok());
    EXPECT_EQ(outcome.outputs.error().node, "n23");
    EXPECT_TRUE(outcome.seen.values.contains("v22"));
    EXPECT_FALSE(outcome.seen.values.contains("v23"));
  }
}

TEST(Foreign, AProgramThatEndsBetweenRequestsIsReplaced) {
  const ExecutorSource source = executor_source();
  const std::string name =
      fmt::format("cmd:echo $$ > '{}/pid'; exec " PX_RUNNER " --exit-after-answer", folder_of_test());
  for (int session = 0; session < 2; ++session) {
    NullObserver observer;
    const auto prepared = source(name).take()->prepare(chain(), {});
    ASSERT_TRUE(prepared.ok()) << prepared.error().message;
    for (int run = 0; run < 2; ++run) {
      const auto outputs = (*prepared)->run(inputs(), observer);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message;
      wait_for_end();
    }
  }
}

// Each part that the search tries is written: their files must not pile up.
TEST(Foreign, TheModelThatWasLoadedBeforeIsRemoved) {
  const std::string list = folder_of_test() + "/models";
  std::filesystem::remove(list);
  const Outcome outcome = run_chain(fmt::format("--crash-at n23 --list-models '{}'", list));
  ASSERT_FALSE(outcome.outputs.ok());
  const std::string counts = text_of(list);
  EXPECT_GT(counts.size(), 8U);
  EXPECT_EQ(counts.find_first_not_of("12\n"), std::string::npos) << counts;
}

// ---- Limits ----

TEST(Foreign, AHangingProgramEndsAtTheLimitOfTime) {
  RunOptions options;
  options.time_limit_s = 0.5;
  const Outcome outcome = run_chain("--hang-at n3", options);
  ASSERT_FALSE(outcome.outputs.ok());
  EXPECT_EQ(outcome.outputs.error().code, ErrorCode::execution);
  EXPECT_NE(outcome.outputs.error().message.find("did not answer within 0.5 s"), std::string::npos);
  EXPECT_TRUE(is_gone());
}

TEST(Foreign, ALeakingProgramEndsAtTheLimitOfMemory) {
  RunOptions options;
  options.memory_limit_bytes = int64_t{128} << 20;
  const Outcome outcome = run_chain("--leak-at n3", options);
  ASSERT_FALSE(outcome.outputs.ok());
  EXPECT_EQ(outcome.outputs.error().code, ErrorCode::out_of_memory);
  EXPECT_NE(outcome.outputs.error().message.find("the limit is 128 MiB"), std::string::npos)
      << outcome.outputs.error().message;
  EXPECT_TRUE(is_gone());
  const Outcome within = run_chain("", options);
  EXPECT_TRUE(within.outputs.ok());
  EXPECT_FALSE(is_gone());
}

TEST(Foreign, CancelEndsTheProgram) {
  const std::string log = folder_of_test() + "/log-of-cancel";
  std::filesystem::remove(log);
  RunOptions options;
  const auto executor = runner(fmt::format("--hang-at n3 --log '{}'", log));
  const auto session = executor->prepare(chain(), options).take();
  std::thread canceller([&] {
    while (text_of(log).find("run") == std::string::npos) std::this_thread::yield();
    options.cancel.cancel();
  });
  NullObserver observer;
  const auto outputs = session->run(inputs(), observer);
  canceller.join();
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code, ErrorCode::cancelled);
  EXPECT_TRUE(is_gone());
}

// ---- Answers ----

TEST(Foreign, WhatIsNoJsonIsShown) {
  const Outcome outcome = run_chain("--garbage");
  ASSERT_FALSE(outcome.outputs.ok());
  EXPECT_EQ(outcome.outputs.error().code, ErrorCode::execution);
  EXPECT_NE(outcome.outputs.error().message.find("it wrote 'loading plugins ...' on stdout"), std::string::npos)
      << outcome.outputs.error().message;
}

TEST(Foreign, ALineThatNoRequestAskedForEndsTheProgram) {
  const Outcome outcome = run_chain("--twice");
  ASSERT_FALSE(outcome.outputs.ok());
  EXPECT_EQ(outcome.outputs.error().code, ErrorCode::execution);
  EXPECT_TRUE(holds(outcome.outputs.error().message, "on stdout without a request; it must write one line for each"));
  EXPECT_TRUE(is_gone());
}

TEST(Foreign, AnAnswerInAnotherFileIsRefusedAndStays) {
  const std::string kept = folder_of_test() + "/kept.npz";
  std::ofstream(kept) << "a file of the user's";
  for (const std::string& answer : {kept, std::string("inputs-0.npz")}) {
    const Outcome outcome = run_chain(fmt::format("--answer '{}'", answer));
    ASSERT_FALSE(outcome.outputs.ok());
    EXPECT_EQ(outcome.outputs.error().code, ErrorCode::execution);
    const std::string& message = outcome.outputs.error().message;
    EXPECT_TRUE(holds(message, fmt::format("its answer is the file '{}'; it must be '", answer))) << message;
  }
  EXPECT_EQ(text_of(kept), "a file of the user's");
}

TEST(Foreign, AMissingOutputIsNamedAndAMissingValueIsAbsent) {
  const Outcome without_output = run_chain("--without v40");
  ASSERT_FALSE(without_output.outputs.ok());
  EXPECT_NE(without_output.outputs.error().message.find("its answer lacks 'v40', an output of the graph"),
            std::string::npos);
  const Outcome without_value = run_chain("--without v7");
  ASSERT_TRUE(without_value.outputs.ok());
  EXPECT_TRUE(without_value.seen.saw("absent v7"));
  EXPECT_FALSE(without_value.seen.values.contains("v7"));
}

TEST(Foreign, ACommandThatIsNoneIsShownWithItsStderr) {
  const auto executor = make_executor("cmd:/nowhere/runner").take();
  const auto session = executor->prepare(chain(), {});
  ASSERT_FALSE(session.ok());
  EXPECT_NE(session.error().message.find("ended with exit code 127"), std::string::npos);
  EXPECT_NE(session.error().message.find("/nowhere/runner: not found"), std::string::npos) << session.error().message;
}

class Times final : public Observer {
 public:
  CaptureLevel wants(const ValueInfo&) override { return CaptureLevel::none; }
  bool wants_node_times() const override { return true; }
  Status node_done(const NodeLocation& node, double) override {
    nodes.emplace_back(node.node);
    return {};
  }
  std::vector<std::string> nodes;
};

TEST(Foreign, TheProgramsOwnTimesAreReported) {
  const auto executor = make_executor("cmd:" PX_RUNNER).take();
  RunOptions options;
  options.observe_all = true;
  const auto session = executor->prepare(chain(), options).take();
  Times times;
  ASSERT_TRUE(session->run(inputs(), times).ok());
  EXPECT_EQ(times.nodes.size(), static_cast<size_t>(kNodes));
  EXPECT_EQ(reported_run_ms(*session), 0.25);
}

// ---- Programs and names ----

TEST(Foreign, NothingStartsBeforeASession) {
  const std::string log = folder_of_test() + "/log";
  std::filesystem::remove(log);
  const auto executor = make_executor(fmt::format("cmd:" PX_RUNNER " --log '{}'", log)).take();
  EXPECT_TRUE(executor->check_options({}).ok());
  EXPECT_FALSE(default_executors(false).empty());
  EXPECT_FALSE(std::filesystem::exists(log));
  EXPECT_EQ(executor->device(), "a device of the test");
  EXPECT_TRUE(std::filesystem::exists(log));
}

TEST(Foreign, OneProgramServesOneSessionAfterTheOther) {
  const std::string log = folder_of_test() + "/log-of-sessions";
  std::filesystem::remove(log);
  const ExecutorSource source = executor_source();
  const std::string name = fmt::format("cmd:" PX_RUNNER " --log '{}'", log);
  for (int session = 0; session < 3; ++session) {
    NullObserver observer;
    ASSERT_TRUE(source(name).take()->prepare(chain(), {}).take()->run(inputs(), observer).ok());
  }
  EXPECT_EQ(text_of(log), "describe\nload\nrun\nload\nrun\nload\nrun\n");
}

TEST(Foreign, OptionsThatAProgramCannotHonorAreRefused) {
  const auto executor = make_executor("cmd:" PX_RUNNER).take();
  const auto message_of = [&](auto change) {
    RunOptions options;
    change(options);
    const Status status = executor->check_options(options);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.ok() ? ErrorCode::io : status.error().code, ErrorCode::usage);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_NE(message_of([](RunOptions& options) { options.tf32 = true; }).find("--tf32"), std::string::npos);
  message_of([](RunOptions& options) { options.accumulate = Accumulate::fp32; });
  message_of([](RunOptions& options) { options.keep_casts = true; });
  message_of([](RunOptions& options) { options.rewrite.changes.emplace_back("fuse_gelu", false); });
  message_of([](RunOptions& options) { options.rewrite.base = RewriteChoice::Base::all; });
  message_of([](RunOptions& options) { options.states.push_back({"past", "present", 2}); });
  RunOptions plain;
  plain.rewrite.base = RewriteChoice::Base::none;
  EXPECT_TRUE(executor->check_options(plain).ok());
}

TEST(Foreign, NamesOfExecutors) {
  for (const char* name : {"cmd:", "torch", "tensorrt:1", "onnxruntime:"}) {
    const auto executor = make_executor(name);
    ASSERT_FALSE(executor.ok()) << name;
    EXPECT_EQ(executor.error().code, ErrorCode::usage);
  }
  const auto unknown = make_executor("onxruntime");
  EXPECT_NE(unknown.error().message.find("did you mean 'onnxruntime'?"), std::string::npos) << unknown.error().message;
  using Names = std::vector<std::string>;
  EXPECT_EQ(split_executors("reference,cpu"), (Names{"reference", "cpu"}));
  EXPECT_EQ(split_executors("cmd:./r 'a,b' \"c,d\" e\\,f,cpu"), (Names{"cmd:./r 'a,b' \"c,d\" e\\,f", "cpu"}));
  EXPECT_EQ(split_executors("a,,"), (Names{"a", "", ""}));
  EXPECT_EQ(file_name_of("reference:double"), "reference:double");
  EXPECT_EQ(file_name_of("cmd:./my runner x"), "cmd:my-runner-x");
  EXPECT_EQ(file_name_of("torch:m.pt2"), "torch:m.pt2");
  EXPECT_EQ(file_name_of(std::string(500, 'x')).size(), 80U);
  EXPECT_TRUE(is_foreign_executor("cmd:cpu"));
  EXPECT_FALSE(is_foreign_executor("reference:double"));
}

}  // namespace
}  // namespace parallax
