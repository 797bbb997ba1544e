// SPDX-License-Identifier: Apache-2.0
// Beam search on rows of scores, without models: candidates, finished hypotheses, when to stop.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "inspector/workbench/generate/generation.h"

namespace parallax::generate {

// The semantics are transformers' (5.x): of each prompt the best 2K continuations (more with several end tokens) of its
// K beams; those that end count only among the first K; the best K that have not ended go on; of what has ended the
// best K by sum of log-probabilities / length^penalty are kept. Sums are float64; the lower index wins ties.
class BeamSearch {
 public:
  BeamSearch(int64_t prompts, const UsedSettings& settings);

  int64_t rows() const { return prompts() * settings_.beams; }
  // New tokens of a row so far; row = prompt * beams + beam.
  const std::vector<int64_t>& tokens(int64_t row) const { return running_[static_cast<size_t>(row)].tokens; }

  struct Advance {
    std::vector<int64_t> tokens;   // the last one of each row
    std::vector<int32_t> sources;  // the row that each row was
    bool is_done = false;
  };
  // `scores`: processed log-probabilities, rows() x vocabulary.
  Advance advance(std::span<const double> scores, int64_t vocabulary);

  struct Hypothesis {
    std::vector<int64_t> tokens;
    double score = 0;
    bool is_finished = false;
  };
  // The best `returned` of each prompt, best first. Fewer where fewer have ended.
  std::vector<std::vector<Hypothesis>> finished() const;

 private:
  struct Candidate {
    double score = 0;
    int32_t source = 0;  // row
    int64_t token = 0;
    bool hits = false;  // it ends here
  };
  int64_t prompts() const { return static_cast<int64_t>(open_.size()); }
  std::vector<Candidate> candidates(int64_t prompt, std::span<const double> scores, int64_t vocabulary) const;
  void keep_finished(int64_t prompt, const std::vector<Candidate>& candidates);
  std::vector<Hypothesis> go_on(int64_t prompt, const std::vector<Candidate>& candidates, Advance& advance) const;
  void check_improvement(int64_t prompt);
  bool is_end(int64_t token) const;

  UsedSettings settings_;
  int64_t generated_ = 0;
  std::vector<Hypothesis> running_;   // by row
  std::vector<Hypothesis> finished_;  // by row: the best K of each prompt, unfinished ones far below all others
  std::vector<bool> open_;            // by prompt: a running beam may still be better than a finished one
};

}  // namespace parallax::generate
