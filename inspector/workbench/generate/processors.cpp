// SPDX-License-Identifier: Apache-2.0
// The table of processors. Formulas follow the documentation of transformers' generation options.
#include "inspector/workbench/generate/processors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

namespace parallax::generate {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

bool is_token(int64_t id, std::span<const double> scores) {
  return id >= 0 && id < static_cast<int64_t>(scores.size());
}

double& score_of(std::span<double> scores, int64_t id) { return scores[static_cast<size_t>(id)]; }

// Keskar et al., CTRL (2019), section 4.1: each token of the history once.
void penalize_repetition(const ProcessorContext& context, std::span<double> scores) {
  const double penalty = context.settings.repetition_penalty;
  for (const int64_t id : std::set<int64_t>(context.history.begin(), context.history.end())) {
    if (!is_token(id, scores)) continue;
    double& score = score_of(scores, id);
    score = score < 0 ? score * penalty : score / penalty;
  }
}

// A token that would complete an n-gram of the history a second time.
void forbid_ngrams(const ProcessorContext& context, std::span<double> scores) {
  const auto size = static_cast<size_t>(context.settings.no_repeat_ngram);
  const std::span<const int64_t> history = context.history;
  if (history.size() < size) return;
  const auto prefix = history.subspan(history.size() + 1 - size);
  for (size_t begin = 0; begin + size <= history.size(); ++begin) {
    const auto window = history.subspan(begin, size);
    const int64_t last = window.back();
    if (std::ranges::equal(window.first(size - 1), prefix) && is_token(last, scores)) score_of(scores, last) = kNever;
  }
}

void forbid_early_end(const ProcessorContext& context, std::span<double> scores) {
  if (context.generated >= context.settings.min_new_tokens) return;
  for (const int64_t id : context.settings.eos) {
    if (is_token(id, scores)) score_of(scores, id) = kNever;
  }
}

void apply_temperature(const ProcessorContext& context, std::span<double> scores) {
  for (double& score : scores) score /= context.settings.temperature;
}

// With beams, so many candidates that one at least ends no sequence.
size_t least_kept(const UsedSettings& settings) { return settings.beams > 1 ? settings.eos.size() + 1 : 1; }

// Tokens as good as the last one that is kept are kept, too.
void keep_top_k(const ProcessorContext& context, std::span<double> scores) {
  const size_t count =
      std::min(std::max(static_cast<size_t>(context.settings.top_k), least_kept(context.settings)), scores.size());
  std::vector<double> sorted(scores.begin(), scores.end());
  std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(count) - 1, std::greater<>());
  const double least = sorted[count - 1];
  for (double& score : scores) {
    if (score < least) score = kNever;
  }
}

std::vector<double> probabilities(std::span<const double> scores) {
  const double largest = *std::ranges::max_element(scores);
  std::vector<double> result(scores.size());
  double sum = 0;
  for (size_t id = 0; id < scores.size(); ++id) sum += result[id] = std::exp(scores[id] - largest);
  for (double& probability : result) probability /= sum;
  return result;
}

// Indices from the least likely token to the most likely one; the lower index first among equals.
std::vector<size_t> ascending(std::span<const double> scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return scores[x] < scores[y]; });
  return order;
}

// Holtzman et al., The Curious Case of Neural Text Degeneration (2020): the least likely tokens whose probabilities sum
// up to no more than 1 - p are removed.
void keep_top_p(const ProcessorContext& context, std::span<double> scores) {
  const std::vector<double> probability = probabilities(scores);
  const std::vector<size_t> order = ascending(scores);
  double sum = 0;
  for (size_t location = 0; location + least_kept(context.settings) < order.size(); ++location) {
    sum += probability[order[location]];
    if (sum > 1 - context.settings.top_p) break;
    scores[order[location]] = kNever;
  }
}

// Tokens less likely than this share of the most likely one's probability are removed.
void keep_min_p(const ProcessorContext& context, std::span<double> scores) {
  const std::vector<double> probability = probabilities(scores);
  const double least = context.settings.min_p * *std::ranges::max_element(probability);
  const std::vector<size_t> order = ascending(scores);
  for (size_t location = 0; location + least_kept(context.settings) < order.size(); ++location) {
    if (probability[order[location]] < least) scores[order[location]] = kNever;
  }
}

constexpr std::array kProcessors = {
    Processor{"repetition_penalty", false,
              [](const UsedSettings& settings) { return settings.repetition_penalty != 1; }, penalize_repetition},
    Processor{"no_repeat_ngram", false, [](const UsedSettings& settings) { return settings.no_repeat_ngram > 0; },
              forbid_ngrams},
    Processor{"min_new_tokens", false, [](const UsedSettings& settings) { return settings.min_new_tokens > 0; },
              forbid_early_end},
    Processor{"temperature", true, [](const UsedSettings& settings) { return settings.temperature != 1; },
              apply_temperature},
    Processor{"top_k", true, [](const UsedSettings& settings) { return settings.top_k > 0; }, keep_top_k},
    Processor{"top_p", true, [](const UsedSettings& settings) { return settings.top_p < 1; }, keep_top_p},
    Processor{"min_p", true, [](const UsedSettings& settings) { return settings.min_p > 0; }, keep_min_p},
};

}  // namespace

std::span<const Processor> processors() { return kProcessors; }

void process(const ProcessorContext& context, std::span<double> scores) {
  for (const Processor& processor : kProcessors) {
    if (processor.is_for_sampling && !context.settings.sample) continue;
    if (processor.is_on(context.settings)) processor.apply(context, scores);
  }
}

}  // namespace parallax::generate
