// SPDX-License-Identifier: Apache-2.0
// Products with weights of few bits in blocks that share a scale, on a GPU: the weights are decoded where they are
// used.
#pragma once

#include <cmath>

#include "runtime/device/gpu/block.h"
#include "runtime/device/gpu/memory.h"

namespace parallax::runtime::gpu {

// Row n of the weights: quantized values of `bits` next to each other, (value - zero) * scale with those of the value's
// block.
template <class Device>
struct BlockWeights {
  Elements<Device, const uint8_t> quantized;
  Elements<Device, const float> scales;
  Elements<Device, const uint8_t> packed_zeros;  // one of the two, or none: the middle of the range
  Elements<Device, const float> zeros;
  Elements<Device, const int64_t> groups;  // the block of each of k; none: its own
  int64_t k = 0, size = 0, count = 0;      // `count` blocks of `size`
  int bits = 4;

  PX_HD int quantized_at(const Elements<Device, const uint8_t>& bytes, int64_t row_bytes, int64_t row,
                         int64_t i) const {
    const int64_t bit = i * bits;
    return (bytes[row * row_bytes + bit / 8] >> (bit % 8)) & ((1 << bits) - 1);
  }
  PX_HD float at(int64_t row, int64_t i) const {
    const int64_t block = groups ? groups[i] : i / size;
    float zero = static_cast<float>(1 << (bits - 1));
    if (packed_zeros) zero = static_cast<float>(quantized_at(packed_zeros, (count * bits + 7) / 8, row, block));
    if (zeros) zero = zeros[row * count + block];
    const auto value = static_cast<float>(quantized_at(quantized, count * (size * bits / 8), row, i));
    return (value - zero) * scales[row * count + block];
  }
  PX_HD float operator()(int64_t element) const { return at(element / k, element % k); }
};

// y[m, n] = a[m, k] times the rows of weights, plus a bias: a block of threads for each column, for few rows of a.
// Weights have `k` and at(row, i).
template <class Device, class Weights>
struct BlockWeightsProductKernel {
  static constexpr const char* kName = "block_weights";
  Weights weights;
  Elements<Device, const float> a, bias;
  Target y;
  int64_t m, n;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    const auto slots = launch.template shared<Slot>(launch.threads());
    for (int64_t column = launch.block(); column < n; column += launch.blocks()) {
      for (int64_t row = 0; row < m; ++row) {
        float sum = 0;
        for (int64_t i = launch.thread(); i < weights.k; i += launch.threads()) {
          sum = std::fma(a[row * weights.k + i], weights.at(column, i), sum);
        }
        sum = merge_block(launch, slots, sum, [](float left, float right) { return left + right; });
        if (launch.thread() == 0) store<Device, float>(y, row * n + column, bias ? sum + bias[column] : sum);
      }
    }
  }
};

}  // namespace parallax::runtime::gpu
