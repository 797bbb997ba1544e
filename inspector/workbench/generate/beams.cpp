// SPDX-License-Identifier: Apache-2.0
// One step of the search.
#include "inspector/workbench/generate/beams.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "inspector/workbench/generate/choice.h"

namespace parallax::generate {
namespace {

// Added to what must not be chosen, so that it sorts after all allowed tokens.
constexpr double kFarBelow = -1e9;

double with_penalty(double sum, int64_t length, double penalty) {
  return sum / std::pow(static_cast<double>(length), penalty);
}

// The `count` largest of `values`, largest first; the lower index first among equals.
std::vector<size_t> largest(std::span<const double> values, size_t count) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  count = std::min(count, order.size());
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(order.begin(), middle, order.end(),
                    [&](size_t x, size_t y) { return values[x] != values[y] ? values[x] > values[y] : x < y; });
  order.resize(count);
  return order;
}

}  // namespace

BeamSearch::BeamSearch(int64_t prompts, const UsedSettings& settings)
    : settings_(settings),
      running_(static_cast<size_t>(prompts * settings.beams)),
      finished_(running_.size()),
      open_(static_cast<size_t>(prompts), true) {
  // All beams are equal at first: only the first of each prompt counts.
  for (size_t row = 0; row < running_.size(); ++row) {
    running_[row].score = static_cast<int64_t>(row) % settings.beams == 0 ? 0 : kFarBelow;
    finished_[row].score = kFarBelow;
  }
}

bool BeamSearch::is_end(int64_t token) const {
  return std::ranges::find(settings_.eos, token) != settings_.eos.end() || generated_ + 1 >= settings_.max_new_tokens;
}

std::vector<BeamSearch::Candidate> BeamSearch::candidates(int64_t prompt, std::span<const double> scores,
                                                          int64_t vocabulary) const {
  const int64_t beams = settings_.beams, first = prompt * beams;
  std::vector<double> sums(static_cast<size_t>(beams * vocabulary));
  for (int64_t beam = 0; beam < beams; ++beam) {
    const double before = running_[static_cast<size_t>(first + beam)].score;
    for (int64_t token = 0; token < vocabulary; ++token) {
      double sum = scores[static_cast<size_t>((first + beam) * vocabulary + token)] + before;
      if (!(sum > -HUGE_VAL)) sum = -HUGE_VAL;  // NaN is never chosen before a number
      sums[static_cast<size_t>(beam * vocabulary + token)] = sum;
    }
  }
  const auto count = static_cast<size_t>(std::max<int64_t>(2, 1 + static_cast<int64_t>(settings_.eos.size())) * beams);
  std::vector<size_t> order;
  if (settings_.sample) {  // without replacement: the largest of sums with Gumbel noise (Kool et al., 2019)
    std::vector<double> drawn(sums.size());
    for (size_t index = 0; index < sums.size(); ++index) {
      const double noise = uniform(settings_.seed, static_cast<uint64_t>(prompt), static_cast<uint64_t>(generated_),
                                   static_cast<uint64_t>(index));
      drawn[index] = sums[index] - std::log(-std::log(noise));
    }
    order = largest(drawn, count);
    std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return sums[x] > sums[y]; });
  } else {
    order = largest(sums, count);
  }
  std::vector<Candidate> best;
  for (const size_t index : order) {
    const auto at = static_cast<int64_t>(index);
    const int64_t token = at % vocabulary;
    best.push_back({sums[index], static_cast<int32_t>(first + at / vocabulary), token, is_end(token)});
  }
  return best;
}

void BeamSearch::keep_finished(int64_t prompt, const std::vector<Candidate>& candidates) {
  const auto beams = static_cast<size_t>(settings_.beams), first = static_cast<size_t>(prompt) * beams;
  const std::span<Hypothesis> kept(finished_.data() + first, beams);
  const bool is_full = std::ranges::all_of(kept, &Hypothesis::is_finished);
  const bool is_closed =
      !open_[static_cast<size_t>(prompt)] || (is_full && settings_.early_stopping == EarlyStopping::yes);
  std::vector<Hypothesis> merged(kept.begin(), kept.end());
  for (size_t index = 0; index < std::min(beams, candidates.size()); ++index) {
    const Candidate& candidate = candidates[index];
    if (!candidate.hits || is_closed) continue;
    Hypothesis hypothesis{running_[static_cast<size_t>(candidate.source)].tokens,
                          with_penalty(candidate.score, generated_ + 1, settings_.length_penalty), true};
    hypothesis.tokens.push_back(candidate.token);
    merged.push_back(std::move(hypothesis));
  }
  std::vector<double> scores;
  for (const Hypothesis& hypothesis : merged) scores.push_back(hypothesis.score);
  const std::vector<size_t> order = largest(scores, beams);
  for (size_t index = 0; index < beams; ++index) kept[index] = merged[order[index]];
}

std::vector<BeamSearch::Hypothesis> BeamSearch::go_on(int64_t prompt, const std::vector<Candidate>& candidates,
                                                      Advance& advance) const {
  std::vector<double> scores;
  for (const Candidate& candidate : candidates) scores.push_back(candidate.score + (candidate.hits ? kFarBelow : 0));
  std::vector<Hypothesis> next;
  for (const size_t index : largest(scores, static_cast<size_t>(settings_.beams))) {
    const Candidate& candidate = candidates[index];
    Hypothesis hypothesis{running_[static_cast<size_t>(candidate.source)].tokens, scores[index], false};
    hypothesis.tokens.push_back(candidate.token);
    advance.tokens.push_back(candidate.token);
    advance.sources.push_back(candidate.source);
    next.push_back(std::move(hypothesis));
  }
  // A vocabulary of fewer tokens than beams: rows that cannot be told from the first.
  while (static_cast<int64_t>(next.size()) < settings_.beams) {
    next.push_back(next.front());
    next.back().score = kFarBelow;
    advance.tokens.push_back(next.front().tokens.back());
    advance.sources.push_back(static_cast<int32_t>(prompt * settings_.beams));
  }
  return next;
}

// Checks whether the best running beam could still exceed the worst finished one.
void BeamSearch::check_improvement(int64_t prompt) {
  const auto beams = static_cast<size_t>(settings_.beams), first = static_cast<size_t>(prompt) * beams;
  const bool spins_first = settings_.early_stopping == EarlyStopping::never && settings_.length_penalty > 0;
  const int64_t length = spins_first ? settings_.max_new_tokens : generated_;
  const double best = with_penalty(running_[first].score, length, settings_.length_penalty);
  const std::span<const Hypothesis> kept(finished_.data() + first, beams);
  const double worst = std::ranges::min_element(kept, {}, &Hypothesis::score)->score;
  const bool may_improve = std::ranges::any_of(
      kept, [&](const Hypothesis& hypothesis) { return best > (hypothesis.is_finished ? worst : kFarBelow); });
  if (!may_improve) open_[static_cast<size_t>(prompt)] = false;
}

BeamSearch::Advance BeamSearch::advance(std::span<const double> scores, int64_t vocabulary) {
  Advance result;
  std::vector<Hypothesis> running;
  bool all_hit = true;
  for (int64_t prompt = 0; prompt < prompts(); ++prompt) {
    const std::vector<Candidate> best = candidates(prompt, scores, vocabulary);
    all_hit = all_hit && std::ranges::all_of(best, &Candidate::hits);
    std::ranges::move(go_on(prompt, best, result), std::back_inserter(running));
    keep_finished(prompt, best);
  }
  running_ = std::move(running);
  ++generated_;
  for (int64_t prompt = 0; prompt < prompts(); ++prompt) check_improvement(prompt);
  const bool is_any_open = std::ranges::find(open_, true) != open_.end();
  const bool is_full = std::ranges::all_of(finished_, &Hypothesis::is_finished);
  result.is_done = !is_any_open || all_hit || (is_full && settings_.early_stopping == EarlyStopping::yes);
  return result;
}

std::vector<std::vector<BeamSearch::Hypothesis>> BeamSearch::finished() const {
  std::vector<std::vector<Hypothesis>> result;
  for (int64_t prompt = 0; prompt < prompts(); ++prompt) {
    std::vector<Hypothesis>& best = result.emplace_back();
    for (int64_t beam = 0; beam < settings_.returned; ++beam) {
      const Hypothesis& hypothesis = finished_[static_cast<size_t>(prompt * settings_.beams + beam)];
      if (hypothesis.is_finished) best.push_back(hypothesis);
    }
  }
  return result;
}

}  // namespace parallax::generate
