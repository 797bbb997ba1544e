// SPDX-License-Identifier: Apache-2.0
// Choosing tokens from scores: the best one, or one drawn by a counter-based generator.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace parallax::generate {

// Philox 4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011).
std::array<uint32_t, 4> philox(uint64_t key, std::array<uint32_t, 4> counter);

// Uniform in (0, 1), by seed, row, step and how many were drawn before in that step.
double uniform(uint64_t seed, uint64_t row, uint64_t step, uint64_t draw);

// In place; float64 throughout.
void log_softmax(std::span<double> scores);

// The best two: lower indices win among equals. -1 where there is none, or none that may be chosen (-inf, NaN).
struct BestTwo {
  int64_t best = -1, second = -1;
};
BestTwo best_two(std::span<const double> scores);

// A token with the probabilities that the scores stand for. `drawn` in (0, 1).
int64_t draw_token(std::span<const double> scores, double drawn);

}  // namespace parallax::generate
