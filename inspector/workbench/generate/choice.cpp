// SPDX-License-Identifier: Apache-2.0
// Random numbers and choices.
#include "inspector/workbench/generate/choice.h"

#include <algorithm>
#include <cmath>

namespace parallax::generate {
namespace {

double largest_of(std::span<const double> scores) {
  double largest = -HUGE_VAL;
  for (const double score : scores) largest = score > largest ? score : largest;
  return largest;
}

}  // namespace

std::array<uint32_t, 4> philox(uint64_t key, std::array<uint32_t, 4> counter) {
  constexpr uint64_t kMultiplyA = 0xD2511F53, kMultiplyB = 0xCD9E8D57;
  constexpr uint32_t kWeylA = 0x9E3779B9, kWeylB = 0xBB67AE85;
  auto key_a = static_cast<uint32_t>(key), key_b = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = kMultiplyA * counter[0], b = kMultiplyB * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key_a, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key_b, static_cast<uint32_t>(a)};
    key_a += kWeylA;
    key_b += kWeylB;
  }
  return counter;
}

double uniform(uint64_t seed, uint64_t row, uint64_t step, uint64_t draw) {
  const auto bits = philox(seed, {static_cast<uint32_t>(draw), static_cast<uint32_t>(row), static_cast<uint32_t>(step),
                                  static_cast<uint32_t>(draw >> 32)});
  const uint64_t mantissa = (uint64_t{bits[0]} << 32 | bits[1]) >> 11;
  return (static_cast<double>(mantissa) + 0.5) / 9007199254740992.0;  // 2^53
}

void log_softmax(std::span<double> scores) {
  const double largest = largest_of(scores);
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - largest);
  const double shift = largest + std::log(sum);
  for (double& score : scores) score -= shift;
}

BestTwo best_two(std::span<const double> scores) {
  BestTwo two;
  const auto is_better = [&](size_t id, int64_t than) {
    return than < 0 || scores[id] > scores[static_cast<size_t>(than)];
  };
  for (size_t id = 0; id < scores.size(); ++id) {
    if (!(scores[id] > -HUGE_VAL)) continue;
    if (is_better(id, two.best)) {
      two.second = two.best;
      two.best = static_cast<int64_t>(id);
    } else if (is_better(id, two.second)) {
      two.second = static_cast<int64_t>(id);
    }
  }
  return two;
}

int64_t draw_token(std::span<const double> scores, double drawn) {
  const double largest = largest_of(scores);
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - largest);
  double rest = drawn * sum;
  int64_t last = -1;
  for (size_t id = 0; id < scores.size(); ++id) {
    const double share = std::exp(scores[id] - largest);
    if (!(share > 0)) continue;
    last = static_cast<int64_t>(id);
    rest -= share;
    if (rest < 0) break;
  }
  return last;
}

}  // namespace parallax::generate
