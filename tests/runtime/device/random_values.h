// SPDX-License-Identifier: Apache-2.0
// Reproducible data for the tests of primitives.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace parallax::runtime {

template <class T>
std::vector<T> random_values(int64_t count, uint32_t seed, double low = -2.0, double high = 2.0) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> distribution(low, high);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) value = static_cast<T>(distribution(generator));
  return values;
}

}  // namespace parallax::runtime
