// SPDX-License-Identifier: Apache-2.0
// The languages of arguments: what they make of text, and the sentences about what they refuse.
#include "inspector/workbench/request_options.h"

#include <filesystem>
#include <limits>

#include <gtest/gtest.h>

namespace parallax {
namespace {

TEST(InputArguments, BecomeARequest) {
  InputArguments arguments;
  arguments.sources = {"data"};
  arguments.files = {"x=a=b.npy"};
  arguments.shapes = {"x=1x3", "scalar=", "a=b=2"};
  arguments.dims = {"batch=4"};
  arguments.ranges = {"x=-1e-3..2.5"};
  arguments.seed = 7;
  EXPECT_TRUE(arguments.is_given());
  const auto request = arguments.request();
  ASSERT_TRUE(request.ok()) << request.error().message;
  EXPECT_EQ(request->source, "data");
  EXPECT_EQ(request->files, (std::vector<std::pair<std::string, std::string>>{{"x", "a=b.npy"}}));
  EXPECT_EQ(request->shapes.at("x"), (std::vector<int64_t>{1, 3}));
  EXPECT_TRUE(request->shapes.at("scalar").empty());
  EXPECT_EQ(request->shapes.at("a=b"), std::vector<int64_t>{2});
  EXPECT_EQ(request->dims.at("batch"), 4);
  EXPECT_EQ(request->ranges.at("x"), std::pair(-1e-3, 2.5));
  EXPECT_EQ(request->seed, 7U);
}

struct Refusal {
  InputArguments arguments;
  std::string sentence;
};

TEST(InputArguments, RefuseWhatIsMistyped) {
  std::vector<Refusal> refusals(8);
  refusals[0] = {{}, "--input 'x': expected NAME=F.npy"};
  refusals[0].arguments.files = {"x"};
  refusals[1] = {{}, "--shape: '2y' is not a whole number"};
  refusals[1].arguments.shapes = {"x=2y"};
  refusals[2] = {{}, "--shape: '-1' has a negative dimension"};
  refusals[2].arguments.shapes = {"x=-1"};
  refusals[3] = {{}, "--dim 'batch': expected NAME=N"};
  refusals[3].arguments.dims = {"batch"};
  refusals[4] = {{}, "--dim 'batch=-2': a dimension cannot be negative"};
  refusals[4].arguments.dims = {"batch=-2"};
  refusals[5] = {{}, "--range 'x=2..1': the lower end is above the upper one"};
  refusals[5].arguments.ranges = {"x=2..1"};
  refusals[6] = {{}, "--range: 'inf' is not a number"};
  refusals[6].arguments.ranges = {"x=0..inf"};
  refusals[7] = {{}, "--dim gives two values of 'batch': leave one of them out"};
  refusals[7].arguments.dims = {"batch=2", "batch=3"};
  for (const Refusal& refusal : refusals) {
    const auto request = refusal.arguments.request();
    ASSERT_FALSE(request.ok()) << refusal.sentence;
    EXPECT_EQ(request.error().code, ErrorCode::usage);
    EXPECT_EQ(request.error().message, refusal.sentence);
  }
}

TEST(ModeArguments, ApplyToARequest) {
  ModeArguments mode;
  EXPECT_FALSE(mode.is_given());
  mode.tf32 = "on";
  mode.accumulate = "fp32";
  mode.rewrite = "none,+fold";
  mode.memory_limit = "2MiB";
  mode.fallback = "reference";
  mode.observe_all = mode.keep_casts = true;
  EXPECT_TRUE(mode.is_given());
  RunRequest request;
  const Status applied = mode.apply(request);
  ASSERT_TRUE(applied.ok()) << applied.error().message;
  EXPECT_TRUE(request.options.tf32 && request.options.observe_all && request.options.keep_casts);
  EXPECT_EQ(request.options.accumulate, Accumulate::fp32);
  EXPECT_EQ(request.options.memory_limit_bytes, 2 << 20);
  EXPECT_EQ(request.fallback, "reference");
  EXPECT_EQ(request.options.rewrite.changes.size(), 1U);
}

TEST(ModeArguments, RefuseWhatTheyDoNotKnow) {
  const auto message_of = [](void (*change)(ModeArguments&)) {
    ModeArguments mode;
    change(mode);
    RunRequest request;
    const Status applied = mode.apply(request);
    EXPECT_FALSE(applied.ok());
    return applied.ok() ? "" : applied.error().message;
  };
  EXPECT_EQ(message_of([](ModeArguments& mode) { mode.tf32 = "yes"; }), "--tf32: expected on or off, got 'yes'");
  EXPECT_EQ(message_of([](ModeArguments& mode) { mode.accumulate = "fp16"; }),
            "--accumulate: expected default or fp32, got 'fp16'");
  EXPECT_EQ(message_of([](ModeArguments& mode) { mode.memory_limit = "0"; }),
            "--memory-limit: nothing runs in 0 bytes; without the option there is no limit");
  EXPECT_EQ(message_of([](ModeArguments& mode) { mode.memory_limit = "9999999999G"; }),
            "--memory-limit: '9999999999G' is no number of bytes (1000000, 512M, 2GiB)");
  EXPECT_EQ(message_of([](ModeArguments& mode) { mode.fallback = "cpu"; }),
            "--fallback: only 'reference' can be asked for, got 'cpu'");
}

TEST(PolicyArguments, MakeAPolicy) {
  PolicyArguments arguments;
  arguments.rtol = "1e-3";
  arguments.per = {"a*@rtol=inf,atol=2", "b@atol=1"};
  const auto policy = arguments.make();
  ASSERT_TRUE(policy.ok()) << policy.error().message;
  EXPECT_EQ(policy->tolerance->rtol, 1e-3);
  EXPECT_EQ(policy->tolerance->atol, 0);
  ASSERT_EQ(policy->rules.size(), 2U);
  EXPECT_EQ(policy->rules[0].tolerance.rtol, std::numeric_limits<double>::infinity());
  arguments.policy = "auto";
  EXPECT_EQ(arguments.make().error().message, "--policy auto excludes --rtol and --atol");
  arguments.policy = "strict";
  EXPECT_EQ(arguments.make().error().message, "--policy: only 'auto' is known, got 'strict'");
}

TEST(ScriptOptions, LeaveDefaultsOutAndQuoteTheRest) {
  EXPECT_EQ(script_options(0, {}, {}), "");
  ModeArguments mode;
  mode.rewrite = "none";
  mode.observe_all = true;
  PolicyArguments policy;
  policy.per = {"a b@atol=1"};
  EXPECT_EQ(script_options(3, mode, policy), " --seed '3' --rewrite 'none' --observe-all --per 'a b@atol=1'");
  policy.file = "p.json";
  EXPECT_NE(script_options(0, {}, policy).find(std::filesystem::absolute("p.json").string()), std::string::npos);
}

TEST(ExecutorNames, AreOneOrTwo) {
  EXPECT_EQ(parse_executors("reference,cpu").take(), (std::vector<std::string>{"reference", "cpu"}));
  EXPECT_EQ(parse_executors("a,b,c").error().message, "--with 'a,b,c': one or two executors");
  EXPECT_EQ(parse_executor("bench", "a,b").error().message, "--with 'a,b': bench runs one executor, so name one");
  EXPECT_EQ(parse_executor("bench", "").take(), "");
}

TEST(Effects, OptionsThatWouldChangeNothingAreRefused) {
  RunRequest request;
  request.executors = {"cpu"};
  request.only = {"x"};
  EXPECT_FALSE(check_effects(request).ok());
  request.dump_directory = "out";
  EXPECT_TRUE(check_effects(request).ok());
  request = {};
  request.executors = {"reference", "cpu"};
  request.only = {"x"};
  EXPECT_TRUE(check_effects(request).ok());
  request.capture_limit_bytes = 1;
  EXPECT_FALSE(check_effects(request).ok());
}

TEST(CaptureLevels, AreKnownByName) {
  EXPECT_EQ(parse_capture("stats").take(), CaptureLevel::stats);
  EXPECT_EQ(parse_capture("some").error().message, "--capture: 'some' is none of none, shape, stats, sample, all");
}

}  // namespace
}  // namespace parallax
