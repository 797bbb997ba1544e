// SPDX-License-Identifier: Apache-2.0
// Overflow-checked arithmetic on sizes: products of untrusted dimensions are formed here only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace parallax {

inline std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Product of all factors, 1 for none. A zero factor gives 0 even where the others alone would overflow.
inline std::optional<int64_t> checked_product(std::span<const int64_t> factors) {
  int64_t product = 1;
  bool overflow = false;
  for (int64_t factor : factors) {
    if (factor == 0) return 0;
    overflow = overflow || __builtin_mul_overflow(product, factor, &product);
  }
  if (overflow) return std::nullopt;
  return product;
}

}  // namespace parallax
