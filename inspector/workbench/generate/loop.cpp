// SPDX-License-Identifier: Apache-2.0
// Greedy search and sampling, one token a row; beam search, K rows a prompt.
#include "inspector/workbench/generate/loop.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "inspector/workbench/generate/beams.h"
#include "inspector/workbench/generate/choice.h"
#include "inspector/workbench/generate/processors.h"

namespace parallax::generate {
namespace {

Error no_choice(int64_t step, int64_t row) {
  return execution_error(
      fmt::format("step {}: every logit of row {} is NaN or minus infinity, so that no token can be chosen; --against "
                  "or --with two "
                  "executors names the node that makes them",
                  step, row));
}

class Loop {
 public:
  Loop(StepRunner& runner, const LoopRequest& request) : runner_(runner), request_(request), set_(request.settings) {}

  Result<LoopResult> run() {
    if (set_.max_new_tokens == 0) return nothing();
    if (set_.beams > 1) PX_TRY(search());
    if (set_.beams <= 1) PX_TRY(choose());
    return std::move(result_);
  }

 private:
  // The choice of one side for one row's logits.
  struct Choice {
    int64_t token = -1;
    double logprob = 0, margin = 0;
  };

  Result<LoopResult> nothing() {
    result_.sequences.resize(request_.histories.size());
    result_.stopped.assign(request_.histories.size(), "length");
    return std::move(result_);
  }

  std::span<const double> processed(std::span<const float> logits, std::span<const int64_t> history, int64_t generated,
                                    bool as_logarithms) {
    scores_.assign(logits.begin(), logits.end());
    if (as_logarithms) log_softmax(scores_);
    process({set_, history, generated}, scores_);
    return scores_;
  }

  Choice choose_from(std::span<const double> scores, int64_t row, int64_t step) {
    const BestTwo two = best_two(scores);
    Choice choice;
    choice.token = two.best;
    if (two.best < 0) return choice;
    if (set_.sample && set_.beams <= 1)
      choice.token = draw_token(scores, uniform(set_.seed, static_cast<uint64_t>(row), static_cast<uint64_t>(step), 0));
    const auto at = [&](int64_t id) { return scores[static_cast<size_t>(id)]; };
    choice.margin = two.second < 0 ? 0 : at(two.best) - at(two.second);
    double sum = 0;
    for (const double score : scores) sum += std::exp(score - at(two.best));
    choice.logprob = at(choice.token) - at(two.best) - std::log(sum);
    return choice;
  }

  static std::span<const float> row_of(const std::vector<float>& logits, int64_t row, int64_t vocabulary) {
    return std::span(logits).subspan(static_cast<size_t>(row * vocabulary), static_cast<size_t>(vocabulary));
  }

  GenerationStep begin_step(const StepLogits& logits) {
    GenerationStep step;
    step.step = static_cast<int64_t>(result_.steps.size());
    step.ms = logits.ms;
    step.severity = logits.severity;
    step.worst = logits.worst;
    step.diverged = logits.diverged;
    has_diverged_ = has_diverged_ || logits.diverged;
    return step;
  }

  // The token that the second side would choose.
  void compare_choice(int64_t row, const Choice& a, const Choice& b, double preferred, GenerationStep& step) {
    if (a.token == b.token) return;
    step.near_tie = !has_diverged_;
    const TokenDivergence divergence{step.step, row, a.token, b.token, preferred, step.near_tie};
    // A fault is worth more than a tie that came before it.
    if (!result_.first_token_apart.has_value() || (result_.first_token_apart->near_tie && !divergence.near_tie))
      result_.first_token_apart = divergence;
  }

  Status end_step(GenerationStep step) {
    if (request_.on_step) request_.on_step(step);
    result_.steps.push_back(std::move(step));
    if (request_.cancel.is_cancelled()) return make_error(ErrorCode::cancelled, "cancelled between two tokens");
    return {};
  }

  Status choose();
  Status search();
  Result<std::vector<double>> beam_scores(const StepLogits& logits, const BeamSearch& beams, GenerationStep& step);
  void add_hypotheses(const BeamSearch& beams);

  StepRunner& runner_;
  const LoopRequest& request_;
  const UsedSettings& set_;
  LoopResult result_;
  std::vector<double> scores_;
  bool has_diverged_ = false;
};

Status Loop::choose() {
  const size_t rows = request_.histories.size();
  std::vector<std::vector<int64_t>> histories = request_.histories;
  std::vector<bool> has_ended(rows, false);
  result_.sequences.resize(rows);
  result_.stopped.assign(rows, "length");
  StepLogits logits = PX_TRY(runner_.start());
  while (true) {
    GenerationStep step = begin_step(logits);
    for (size_t row = 0; row < rows; ++row) {
      const auto index = static_cast<int64_t>(row);
      Choice choice{set_.pad, 0, 0};
      if (!has_ended[row]) {
        const auto scores = processed(row_of(logits.a, index, logits.vocabulary), histories[row], step.step, false);
        choice = choose_from(scores, index, step.step);
        if (choice.token < 0) return no_choice(step.step, index);
        const std::vector<double> in_a = logits.b.empty() ? std::vector<double>() : scores_;
        if (!logits.b.empty()) {
          const auto others = processed(row_of(logits.b, index, logits.vocabulary), histories[row], step.step, false);
          const Choice other = choose_from(others, index, step.step);
          const double preferred =
              other.token < 0 ? 0 : in_a[static_cast<size_t>(choice.token)] - in_a[static_cast<size_t>(other.token)];
          compare_choice(index, choice, other, preferred, step);
        }
        histories[row].push_back(choice.token);
        result_.sequences[row].push_back(choice.token);
        has_ended[row] = std::ranges::find(set_.eos, choice.token) != set_.eos.end();
        if (has_ended[row]) result_.stopped[row] = "eos";
      }
      step.tokens.push_back(choice.token);
      step.logprob.push_back(choice.logprob);
      step.margin.push_back(choice.margin);
    }
    const std::vector<int64_t> tokens = step.tokens;
    const bool is_last = step.step + 1 >= set_.max_new_tokens || std::ranges::find(has_ended, false) == has_ended.end();
    PX_TRY(end_step(std::move(step)));
    if (is_last) return {};
    logits = PX_TRY(runner_.next(tokens));
  }
}

Result<std::vector<double>> Loop::beam_scores(const StepLogits& logits, const BeamSearch& beams, GenerationStep& step) {
  const int64_t vocabulary = logits.vocabulary;
  const bool is_first = step.step == 0;  // the prompts alone have run
  std::vector<double> all;
  all.reserve(static_cast<size_t>(beams.rows() * vocabulary));
  for (int64_t row = 0; row < beams.rows(); ++row) {
    const int64_t prompt = row / set_.beams, source = is_first ? prompt : row;
    std::vector<int64_t> history = request_.histories[static_cast<size_t>(prompt)];
    history.insert(history.end(), beams.tokens(row).begin(), beams.tokens(row).end());
    const auto scores = processed(row_of(logits.a, source, vocabulary), history, step.step, true);
    const Choice choice = choose_from(scores, row, step.step);
    if (choice.token < 0) return no_choice(step.step, row);
    step.margin.push_back(choice.margin);
    step.logprob.push_back(choice.logprob);
    all.insert(all.end(), scores.begin(), scores.end());
    if (logits.b.empty()) continue;
    const auto others = processed(row_of(logits.b, source, vocabulary), history, step.step, true);
    const Choice other = choose_from(others, row, step.step);
    const auto in_a = std::span(all).last(static_cast<size_t>(vocabulary));
    compare_choice(
        row, choice, other,
        other.token < 0 ? 0 : in_a[static_cast<size_t>(choice.token)] - in_a[static_cast<size_t>(other.token)], step);
  }
  return all;
}

void Loop::add_hypotheses(const BeamSearch& beams) {
  for (const auto& of_prompt : beams.finished()) {
    for (const BeamSearch::Hypothesis& hypothesis : of_prompt) {
      const bool has_end = std::ranges::find(set_.eos, hypothesis.tokens.back()) != set_.eos.end();
      result_.sequences.push_back(hypothesis.tokens);
      result_.scores.push_back(hypothesis.score);
      result_.stopped.emplace_back(has_end ? "eos" : "length");
    }
  }
}

Status Loop::search() {
  const auto prompts = static_cast<int64_t>(request_.histories.size());
  BeamSearch beams(prompts, set_);
  StepLogits logits = PX_TRY(runner_.start());
  while (true) {
    GenerationStep step = begin_step(logits);
    const bool is_first = step.step == 0;
    const std::vector<double> scores = PX_TRY(beam_scores(logits, beams, step));
    BeamSearch::Advance advance = beams.advance(scores, logits.vocabulary);
    step.tokens = advance.tokens;
    PX_TRY(end_step(std::move(step)));
    if (advance.is_done) break;
    if (is_first) {
      for (int32_t& source : advance.sources) source /= static_cast<int32_t>(set_.beams);
    }
    std::vector<int32_t> same(advance.sources.size());
    std::iota(same.begin(), same.end(), 0);
    if (is_first || advance.sources != same) PX_TRY(runner_.reorder(advance.sources));
    logits = PX_TRY(runner_.next(advance.tokens));
  }
  add_hypotheses(beams);
  return {};
}

}  // namespace

Result<LoopResult> run_loop(StepRunner& runner, const LoopRequest& request) { return Loop(runner, request).run(); }

}  // namespace parallax::generate
