// SPDX-License-Identifier: Apache-2.0
// Each processor alone on scores that are written down, and their order.
#include "inspector/workbench/generate/processors.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/workbench/generate/choice.h"

namespace parallax::generate {
namespace {

constexpr double kNever = -HUGE_VAL;

std::vector<double> processed(const UsedSettings& settings, std::vector<double> scores,
                              const std::vector<int64_t>& history = {}, int64_t generated = 0) {
  process({settings, history, generated}, scores);
  return scores;
}

TEST(Processors, StandInTheOrderOfTransformers) {
  std::vector<std::string> names;
  for (const Processor& processor : processors()) names.emplace_back(processor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"repetition_penalty", "no_repeat_ngram", "min_new_tokens", "temperature",
                                             "top_k", "top_p", "min_p"}));
}

TEST(Processors, ChangeNothingWithoutSettings) {
  EXPECT_EQ(processed({}, {1, -2, 3}, {0, 1, 2}, 3), (std::vector<double>{1, -2, 3}));
}

TEST(Processors, PenalizeEachTokenOfTheHistoryOnce) {
  UsedSettings settings;
  settings.repetition_penalty = 2;
  EXPECT_EQ(processed(settings, {4, -3, 5, 1}, {0, 1, 0, 0, 99}), (std::vector<double>{2, -6, 5, 1}));
}

TEST(Processors, ForbidWhatWouldRepeatAnNgram) {
  UsedSettings settings;
  settings.no_repeat_ngram = 2;
  EXPECT_EQ(processed(settings, {0, 0, 0, 0}, {1, 2, 1, 3, 1}), (std::vector<double>{0, 0, kNever, kNever}));
  EXPECT_EQ(processed(settings, {0, 0}, {1}), (std::vector<double>{0, 0}));
  settings.no_repeat_ngram = 1;
  EXPECT_EQ(processed(settings, {0, 0, 0}, {1, 2}), (std::vector<double>{0, kNever, kNever}));
}

TEST(Processors, ForbidTheEndBeforeSoManyTokens) {
  UsedSettings settings;
  settings.min_new_tokens = 2;
  settings.eos = {1};
  EXPECT_EQ(processed(settings, {0, 9}, {}, 1), (std::vector<double>{0, kNever}));
  EXPECT_EQ(processed(settings, {0, 9}, {}, 2), (std::vector<double>{0, 9}));
}

TEST(Processors, SamplingOnesWorkWithSamplingAlone) {
  UsedSettings settings;
  settings.top_k = 1;
  EXPECT_EQ(processed(settings, {1, 2}), (std::vector<double>{1, 2}));
  settings.sample = true;
  EXPECT_EQ(processed(settings, {1, 2}), (std::vector<double>{kNever, 2}));
}

TEST(Processors, TopKKeepsTiesOfItsLastToken) {
  UsedSettings settings;
  settings.sample = true;
  settings.top_k = 2;
  EXPECT_EQ(processed(settings, {1, 3, 2, 2}), (std::vector<double>{kNever, 3, 2, 2}));
}

TEST(Processors, TopPRemovesTheLeastLikelyShare) {
  UsedSettings settings;
  settings.sample = true;
  settings.top_k = 0;
  settings.top_p = 0.7;
  // Probabilities 0.1, 0.2, 0.7: 0.1 + 0.2 is no more than 0.3.
  const auto kept = processed(settings, {std::log(0.1), std::log(0.2), std::log(0.701)});
  EXPECT_EQ(kept[0], kNever);
  EXPECT_EQ(kept[1], kNever);
  EXPECT_GT(kept[2], kNever);
}

TEST(Processors, MinPRemovesWhatIsFarBelowTheBest) {
  UsedSettings settings;
  settings.sample = true;
  settings.top_k = 0;
  settings.min_p = 0.5;
  const auto kept = processed(settings, {std::log(0.1), std::log(0.3), std::log(0.5)});
  EXPECT_EQ(kept[0], kNever);
  EXPECT_GT(kept[1], kNever);
}

TEST(Processors, TemperatureDividesBeforeTopP) {
  UsedSettings settings;
  settings.sample = true;
  settings.top_k = 0;
  settings.temperature = 0.01;
  settings.top_p = 0.5;
  EXPECT_EQ(processed(settings, {1, 1.1, 0}), (std::vector<double>{kNever, 1.1 / 0.01, kNever}));
}

// Known answers of Random123 (kat_vectors): philox4x32 10.
TEST(Choice, PhiloxGivesTheKnownNumbers) {
  EXPECT_EQ(philox(0, {0, 0, 0, 0}), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~uint64_t{0}, {~0U, ~0U, ~0U, ~0U}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Choice, DrawsByProbability) {
  const std::vector<double> scores = {std::log(0.25), kNever, std::log(0.75)};
  EXPECT_EQ(draw_token(scores, 0.2), 0);
  EXPECT_EQ(draw_token(scores, 0.3), 2);
  EXPECT_EQ(draw_token(scores, 0.9999999), 2);
  EXPECT_NE(uniform(1, 0, 0, 0), uniform(1, 0, 1, 0));
  EXPECT_NE(uniform(1, 0, 0, 0), uniform(1, 1, 0, 0));
  EXPECT_NE(uniform(1, 0, 0, 0), uniform(2, 0, 0, 0));
}

TEST(Choice, BestTwoPreferLowerIndicesAndSkipWhatCannotBeChosen) {
  const BestTwo two = best_two(std::vector<double>{NAN, 1, 2, 2, kNever});
  EXPECT_EQ(two.best, 2);
  EXPECT_EQ(two.second, 3);
  EXPECT_EQ(best_two(std::vector<double>{NAN, kNever}).best, -1);
}

}  // namespace
}  // namespace parallax::generate
