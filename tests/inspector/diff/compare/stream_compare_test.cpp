// SPDX-License-Identifier: Apache-2.0
// Two executions meeting value by value, in two threads, whatever their order and whatever they lack.
#include "inspector/diff/compare/stream_compare.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "tests/inspector/diff/compare/player.h"

namespace parallax {
namespace {

struct Pair {
  explicit Pair(StreamOptions options = {}, Policy policy = {Tolerance{0, 0.25}, {}})
      : comparer(std::move(policy), std::move(options)),
        a(comparer.side_a(), "reference"),
        b(comparer.side_b(), "cpu") {}

  Comparison play(bool a_completes = true, bool b_completes = true) {
    std::thread other([&] { b.play(b_completes); });
    a.play(a_completes);
    other.join();
    return comparer.finish();
  }

  StreamComparer comparer;
  Player a, b;
};

std::vector<std::string> paths_of(const Comparison& comparison) {
  std::vector<std::string> paths;
  for (const ValueComparison& value : comparison.values) paths.push_back(value.path);
  return paths;
}

TEST(StreamComparer, NamesTheFirstThatDiverges) {
  Pair pair;
  for (const char* name : {"x", "y", "z"}) {
    pair.a.sees(name, tensor_of(1));
    pair.b.sees(name, tensor_of(name[0] == 'x' ? 1.125F : 2));
  }
  const Comparison comparison = pair.play();
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
  EXPECT_EQ(comparison.first_divergence->path, "y");
  EXPECT_EQ(comparison.first_divergence->node, "y");
  EXPECT_EQ(paths_of(comparison), (std::vector<std::string>{"x", "y", "z"}));
  EXPECT_EQ(comparison.values[0].severity, 0.5);
  EXPECT_EQ(comparison.values[1].severity, 4);
  EXPECT_EQ(comparison.values[1].metrics->mismatches, 8);
  EXPECT_EQ(comparison.summary.passed, 1);
  ASSERT_EQ(comparison.executions.size(), 2U);
  EXPECT_EQ(comparison.executions[1].name, "cpu");
}

TEST(StreamComparer, DoublesWithoutADeclaredTypeHaveTheLimitOfTheOtherSide) {
  for (const double factor : {1.0, 1.001}) {
    std::vector<double> wide(64);
    for (size_t index = 0; index < wide.size(); ++index) wide[index] = static_cast<double>(index) / 3;
    std::vector<float> narrow(64);
    for (size_t index = 0; index < wide.size(); ++index) narrow[index] = static_cast<float>(factor * wide[index]);
    StreamComparer comparer({}, {});
    Player a(comparer.side_a(), "reference:double"), b(comparer.side_b(), "cpu");
    // Whichever comes first.
    a.sees("early", Tensor::vector<double>(wide)).sees("y", Tensor::vector<double>(wide));
    b.sees("early", Tensor::vector<float>(narrow)).sees("y", Tensor::vector<float>(narrow));
    std::thread other([&] { b.play(); });
    a.play();
    other.join();
    EXPECT_EQ(comparer.finish().verdict, factor == 1 ? OverallVerdict::pass : OverallVerdict::diverged) << factor;
  }
}

TEST(StreamComparer, AnyOrderAndATinyBufferEndWithoutDeadlock) {
  StreamOptions options;
  options.buffer_bytes = 1;
  for (int round = 0; round < 20; ++round) {
    Pair pair(options);
    constexpr int kValues = 60;
    for (int index = 0; index < kValues; ++index) {
      pair.a.sees("v" + std::to_string(index), tensor_of(static_cast<float>(index)));
      pair.b.sees("v" + std::to_string(kValues - 1 - index), tensor_of(static_cast<float>(kValues - 1 - index)));
    }
    const Comparison comparison = pair.play();
    EXPECT_EQ(comparison.verdict, OverallVerdict::pass);
    EXPECT_EQ(comparison.summary.compared, kValues);
    EXPECT_EQ(comparison.values[7].path, "v7");
  }
}

TEST(StreamComparer, SaysWhyAValueWasNotCompared) {
  Pair pair;
  pair.a.sees("x", tensor_of(1)).sees("gone", tensor_of(1)).sees("constant", tensor_of(1)).sees("only_a", tensor_of(1));
  pair.a.sees("shape", tensor_of(1, 4)).sees("dtype", Tensor::scalar(1.0)).sees("end", tensor_of(1));
  pair.b.sees("x", tensor_of(1))
      .sees("only_b", tensor_of(1))
      .sees("shape", tensor_of(1, 5))
      .sees("dtype", Tensor::scalar(1.0F));
  pair.b.lacks("gone", {Absence::Kind::fused, "conv_relu"}).lacks("constant", {Absence::Kind::folded, ""});
  pair.b.sees("end", tensor_of(1));
  const Comparison comparison = pair.play();
  EXPECT_EQ(paths_of(comparison),
            (std::vector<std::string>{"x", "only_b", "gone", "constant", "only_a", "shape", "dtype", "end"}));
  const std::vector<std::string> reasons = {
      "", "absent in A", "fused into conv_relu", "folded", "absent in B", "shape differs", "dtype differs", ""};
  for (size_t index = 0; index < reasons.size(); ++index) {
    EXPECT_EQ(comparison.values[index].reason, reasons[index]) << comparison.values[index].path;
    EXPECT_EQ(comparison.values[index].verdict == Verdict::not_compared, !reasons[index].empty());
  }
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass);
  EXPECT_EQ(comparison.summary.not_compared, 6);
}

TEST(StreamComparer, WhatNeitherSideMadeStandsWhereItsNodeDoes) {
  Pair pair;
  for (Player* side : {&pair.a, &pair.b}) {
    side->sees("x", tensor_of(1))
        .lacks("first", {Absence::Kind::fused, "y"})
        .lacks("second", {Absence::Kind::fused, "y"});
    side->sees("y", tensor_of(1)).sees("z", tensor_of(1)).lacks("last", {Absence::Kind::removed, ""});
  }
  EXPECT_EQ(paths_of(pair.play()), (std::vector<std::string>{"x", "first", "second", "y", "z", "last"}));
}

TEST(StreamComparer, AnOutputThatNeverCameIsInconclusive) {
  Pair pair;
  pair.a.output("y").sees("x", tensor_of(1)).sees("y", tensor_of(1));
  pair.b.output("y").sees("x", tensor_of(1));
  const Comparison comparison = pair.play(true, false);
  EXPECT_EQ(comparison.verdict, OverallVerdict::inconclusive);
  EXPECT_EQ(comparison.values[1].reason, "not captured");
  Pair neither;
  neither.a.output("y").sees("x", tensor_of(1));
  neither.b.output("y").sees("x", tensor_of(1));
  EXPECT_EQ(neither.play(false, false).verdict, OverallVerdict::inconclusive);
}

TEST(StreamComparer, IterationsMatchOneByOne) {
  Pair pair;
  for (int64_t iteration = 0; iteration < 4; ++iteration) {
    const std::vector<Frame> frames = {{Frame::Kind::body, "loop", iteration}};
    pair.a.sees("h", tensor_of(static_cast<float>(iteration)), "loop.body[*]//", frames);
    if (iteration < 3)
      pair.b.sees("h", tensor_of(static_cast<float>(iteration == 2 ? 9 : iteration)), "loop.body[*]//", frames);
  }
  const Comparison comparison = pair.play();
  EXPECT_EQ(comparison.first_divergence->path, "loop.body[2]//h");
  EXPECT_EQ(comparison.values[3].reason, "absent in B");
}

TEST(StreamComparer, ValuesOfOtherGraphsMatchByName) {
  Pair pair;
  const std::vector<Frame> frames = {{Frame::Kind::call, "fn", -1}};
  pair.a.sees("h", tensor_of(1)).sees("twice", tensor_of(1));
  pair.b.sees("h", tensor_of(1), "fn.call//", frames);
  pair.b.sees("twice", tensor_of(1), "fn.call//", frames)
      .sees("twice", tensor_of(1), "gn.call//", {{Frame::Kind::call, "gn", -1}});
  const Comparison comparison = pair.play();
  ASSERT_GE(comparison.values.size(), 2U);
  EXPECT_EQ(comparison.values[0].matched_by, MatchedBy::name);
  EXPECT_EQ(comparison.values[0].b, "fn.call//h");
  EXPECT_EQ(comparison.values[0].verdict, Verdict::pass);
  const auto twice = std::find_if(comparison.values.begin(), comparison.values.end(),
                                  [](const ValueComparison& value) { return value.path == "twice"; });
  ASSERT_NE(twice, comparison.values.end());
  EXPECT_EQ(twice->reason, "absent in B");  // two of that name: no telling which
}

TEST(StreamComparer, ConstantValuesAreMistrusted) {
  const std::vector<float> zeros(16, 0.0F), few(15, 0.0F);
  Pair pair;
  for (Player* player : {&pair.a, &pair.b}) {
    player->value_info("fill").is_constant_like = true;
    player->sees("zeros", Tensor::vector<float>(zeros))
        .sees("few", Tensor::vector<float>(few))
        .sees("fill", Tensor::vector<float>(zeros));
  }
  const Comparison comparison = pair.play();
  EXPECT_EQ(comparison.values[0].verdict, Verdict::mistrusted);
  EXPECT_EQ(comparison.values[1].verdict, Verdict::pass);
  EXPECT_EQ(comparison.values[2].verdict, Verdict::pass);
  EXPECT_EQ(comparison.summary.mistrusted, 1);
}

TEST(StreamComparer, SequencesCompareElementByElement) {
  SequenceValue three{TypeInfo::tensor(DType::float32), {tensor_of(1), tensor_of(2), tensor_of(3)}};
  SequenceValue other = three, shorter = three;
  other.items[1] = tensor_of(9);
  shorter.items.pop_back();
  Pair pair;
  pair.a.sees("same", three).sees("other", three).sees("shorter", three);
  pair.b.sees("same", three).sees("other", other).sees("shorter", shorter);
  const Comparison comparison = pair.play();
  EXPECT_EQ(comparison.values[0].verdict, Verdict::pass);
  EXPECT_EQ(comparison.values[1].verdict, Verdict::diverged);
  EXPECT_EQ(comparison.values[1].metrics->max_abs, 7);
  EXPECT_EQ(comparison.values[1].metrics->count, 24);
  EXPECT_EQ(comparison.values[2].reason, "shape differs");
}

TEST(StreamComparer, OneSideAfterTheOther) {
  StreamOptions options;
  options.buffer_bytes = 1 << 20;
  Pair pair(options);
  pair.a.sees("x", tensor_of(1)).sees("y", tensor_of(2));
  pair.b.sees("x", tensor_of(1)).sees("y", tensor_of(2));
  pair.a.play();
  pair.b.play();
  EXPECT_EQ(pair.comparer.finish().summary.passed, 2);
}

}  // namespace
}  // namespace parallax
