// SPDX-License-Identifier: Apache-2.0
// The loop over a decoder that is a table: the next token's logits follow from the last token.
#include "inspector/workbench/generate/loop.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace parallax::generate {
namespace {

// Row r has the logits table[last token of r]; what the rows hold is checked by their whole histories.
class TableRunner final : public StepRunner {
 public:
  TableRunner(std::vector<std::vector<float>> table, std::vector<int64_t> last)
      : table_(std::move(table)), last_(std::move(last)) {}

  Result<StepLogits> start() override { return logits(); }
  Result<StepLogits> next(std::span<const int64_t> tokens) override {
    last_.assign(tokens.begin(), tokens.end());
    return logits();
  }
  Status reorder(std::span<const int32_t> rows) override {
    reorders.emplace_back(rows.begin(), rows.end());
    return {};
  }
  std::vector<std::vector<int32_t>> reorders;

 private:
  StepLogits logits() const {
    StepLogits step;
    step.vocabulary = static_cast<int64_t>(table_.front().size());
    for (const int64_t token : last_) {
      const auto& row = table_[static_cast<size_t>(token)];
      step.a.insert(step.a.end(), row.begin(), row.end());
    }
    return step;
  }

  std::vector<std::vector<float>> table_;
  std::vector<int64_t> last_;
};

std::vector<float> logs(std::vector<double> probabilities) {
  std::vector<float> scores;
  for (const double probability : probabilities) scores.push_back(static_cast<float>(std::log(probability)));
  return scores;
}

LoopRequest request_of(std::vector<std::vector<int64_t>> histories, int64_t tokens, std::vector<int64_t> eos = {}) {
  LoopRequest request;
  request.histories = std::move(histories);
  request.settings.max_new_tokens = tokens;
  request.settings.eos = std::move(eos);
  return request;
}

TEST(Loop, GreedyTakesTheBestTokenAndTellsItsMargin) {
  TableRunner runner({{0, 2, 1}, {0, 1, 3}, {5, 1, 0}}, {0});
  const auto result = run_loop(runner, request_of({{0}}, 4)).take();
  EXPECT_EQ(result.sequences, (std::vector<std::vector<int64_t>>{{1, 2, 0, 1}}));
  EXPECT_EQ(result.stopped, std::vector<std::string>{"length"});
  ASSERT_EQ(result.steps.size(), 4U);
  EXPECT_DOUBLE_EQ(result.steps[1].margin[0], 2);
  EXPECT_LT(result.steps[1].logprob[0], 0);
}

TEST(Loop, RowsEndAtDifferentStepsAndArePaddedUntilAllHave) {
  TableRunner runner({{0, 2, 1}, {0, 1, 3}, {5, 1, 0}}, {1, 0});
  LoopRequest request = request_of({{1}, {0}}, 9, {2});
  request.settings.pad = 0;
  const auto result = run_loop(runner, request).take();
  EXPECT_EQ(result.sequences, (std::vector<std::vector<int64_t>>{{2}, {1, 2}}));
  EXPECT_EQ(result.stopped, (std::vector<std::string>{"eos", "eos"}));
  EXPECT_EQ(result.steps[1].tokens, (std::vector<int64_t>{0, 2}));
}

TEST(Loop, AllNaNIsAnErrorThatNamesStepAndRow) {
  TableRunner runner({{NAN, NAN}, {NAN, NAN}}, {0});
  const auto result = run_loop(runner, request_of({{0}}, 2));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::execution);
  EXPECT_NE(result.error().message.find("step 0: every logit of row 0"), std::string::npos);
}

TEST(Loop, BeamsFindWhatGreedyMisses) {
  // From 0, token 1 is the best (0.5), but after it all are equal; token 2 (0.4) leads to 0.9 for token 0.
  TableRunner greedy({logs({0.1, 0.5, 0.4}), logs({0.34, 0.33, 0.33}), logs({0.9, 0.05, 0.05})}, {0});
  TableRunner runner = greedy;
  LoopRequest request = request_of({{0}}, 2);
  EXPECT_EQ(run_loop(greedy, request).take().sequences.front(), (std::vector<int64_t>{1, 0}));
  request.settings.beams = 2;
  const auto result = run_loop(runner, request).take();
  EXPECT_EQ(result.sequences.front(), (std::vector<int64_t>{2, 0}));
  ASSERT_EQ(result.scores.size(), 1U);
  EXPECT_NEAR(result.scores[0], std::log(0.4 * 0.9) / 2, 1e-6);
  ASSERT_EQ(runner.reorders.size(), 1U);
  EXPECT_EQ(runner.reorders[0], (std::vector<int32_t>{0, 0}));
}

TEST(Loop, AnEndOutsideOfTheFirstKCandidatesDoesNotCount) {
  // Two beams; the end token (3) is the third best at once: it must not become a hypothesis of one token.
  TableRunner runner({logs({0.4, 0.35, 0.05, 0.2}), logs({0.4, 0.35, 0.05, 0.2}), logs({0.4, 0.35, 0.05, 0.2}),
                      logs({0.4, 0.35, 0.05, 0.2})},
                     {0});
  LoopRequest request = request_of({{0}}, 3, {3});
  request.settings.beams = 2;
  const auto result = run_loop(runner, request).take();
  EXPECT_EQ(result.sequences.front(), (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(result.stopped.front(), "length");
}

TEST(Loop, LengthPenaltyDecidesBetweenShortAndLong) {
  const std::vector<std::vector<float>> table = {logs({0.1, 0.3, 0.6}), logs({0.1, 0.8, 0.1}), logs({0.3, 0.3, 0.4})};
  LoopRequest request = request_of({{0}}, 6, {2});
  request.settings.beams = 2;
  request.settings.length_penalty = 0;
  TableRunner shorter(table, {0}), longer(table, {0});
  EXPECT_EQ(run_loop(shorter, request).take().sequences.front(), (std::vector<int64_t>{2}));
  request.settings.length_penalty = 3;
  request.settings.early_stopping = EarlyStopping::never;
  EXPECT_GT(run_loop(longer, request).take().sequences.front().size(), 3U);
}

TEST(Loop, EarlyStoppingEndsWithAsManyHypothesesAsBeams) {
  const std::vector<std::vector<float>> table(3, logs({0.3, 0.3, 0.4}));
  LoopRequest request = request_of({{0}}, 50, {2});
  request.settings.beams = 2;
  request.settings.early_stopping = EarlyStopping::yes;
  request.settings.returned = 2;
  TableRunner runner(table, {0});
  const auto result = run_loop(runner, request).take();
  EXPECT_EQ(result.sequences.size(), 2U);
  EXPECT_LT(result.steps.size(), 5U);
  EXPECT_EQ(result.stopped, (std::vector<std::string>{"eos", "eos"}));
}

TEST(Loop, SamplingRepeatsWithItsSeedAndRowsDiffer) {
  const std::vector<std::vector<float>> table(4, std::vector<float>(4, 0.0F));
  LoopRequest request = request_of({{0}, {0}}, 24);
  request.settings.sample = true;
  request.settings.seed = 7;
  TableRunner first(table, {0, 0}), second(table, {0, 0});
  const auto a = run_loop(first, request).take(), b = run_loop(second, request).take();
  EXPECT_EQ(a.sequences, b.sequences);
  EXPECT_NE(a.sequences[0], a.sequences[1]);
}

}  // namespace
}  // namespace parallax::generate
