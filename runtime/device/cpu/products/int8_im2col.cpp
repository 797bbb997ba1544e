// SPDX-License-Identifier: Apache-2.0
// Transposed as a whole, then copied line by line into its frame.
#include "runtime/device/cpu/products/int8_im2col.h"

#include <algorithm>
#include <cstring>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/transpose_blocks.h"
#include "runtime/device/cpu/window.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kPositionsAtOnce = 64;

void move_up(uint8_t* values, int64_t count) {
  vectorized(0, count, [=](int64_t first, int64_t last) {
    uint8_t* const target = values;
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = first; i < last; ++i) target[i] = static_cast<uint8_t>(target[i] ^ 0x80U);
  });
}

// [positions, channels] of an input that is [channels, positions] or so already.
void transpose_activations(const ConvProblem& problem, const uint8_t* activations, bool is_signed, uint8_t* to) {
  const int64_t channels = problem.in_channels, locations = product(problem.in_spatial);
  parallel_for((locations + kPositionsAtOnce - 1) / kPositionsAtOnce, channels * kPositionsAtOnce / 16 + 1,
               [=, &problem](int64_t begin, int64_t end) {
                 for (int64_t first = begin * kPositionsAtOnce; first < std::min(locations, end * kPositionsAtOnce);
                      first += kPositionsAtOnce) {
                   const int64_t count = std::min(kPositionsAtOnce, locations - first);
                   uint8_t* const target = to + first * channels;
                   if (problem.x_channels_last) {
                     std::memcpy(target, activations + first * channels, static_cast<size_t>(count * channels));
                   } else {
                     transpose(target, channels, activations + first, locations, count, channels);
                   }
                   if (is_signed) move_up(target, count * channels);
                 }
               });
}

}  // namespace

Int8Im2colShape::Int8Im2colShape(const ConvProblem& problem) {
  const int64_t rank = problem.spatial_rank();
  steps = Ints(rank, 0);
  bytes = problem.in_channels;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t pads = problem.pads_begin[axis] + problem.pads_end[axis];
    is_padded = is_padded || pads > 0;
    dims.push_back(problem.in_spatial[axis] + pads);
  }
  for (int64_t axis = rank - 1; axis >= 0; --axis) {
    steps[axis] = bytes;
    bytes *= dims[axis];
  }
  int64_t position[Shape::kMaxRank] = {};
  const int64_t count = product(problem.out_spatial);
  locations.reserve(static_cast<size_t>(count));
  for (int64_t location = 0; location < count; ++location, advance(position, problem.out_spatial)) {
    int64_t at = 0;
    for (int64_t axis = 0; axis < rank; ++axis) at += position[axis] * problem.strides[axis] * steps[axis];
    locations.push_back(at);
  }
}

void fill_int8_im2col(const ConvProblem& problem, const Int8Im2colShape& shape, const QuantizedValues& x,
                      int64_t sample, uint8_t* scratch, uint8_t* to) {
  const int64_t size = problem.in_channels * product(problem.in_spatial);
  const auto* const source = reinterpret_cast<const uint8_t*>(x.data) + sample * size;
  if (!shape.is_padded) return transpose_activations(problem, source, x.is_signed, to);
  const uint8_t* permuted = source;
  if (!problem.x_channels_last || x.is_signed) {
    transpose_activations(problem, source, x.is_signed, scratch);
    permuted = scratch;
  }
  std::memset(to, x.is_signed ? x.zero + 128 : x.zero, static_cast<size_t>(shape.bytes));
  const int64_t rank = problem.spatial_rank(), line = problem.in_spatial.back() * problem.in_channels;
  const int64_t lines = product(problem.in_spatial, 0, rank - 1);
  int64_t position[Shape::kMaxRank] = {};
  Ints outer = problem.in_spatial;
  outer.truncate(rank - 1);
  for (int64_t index = 0; index < lines; ++index, advance(position, outer)) {
    int64_t at = problem.pads_begin[rank - 1] * shape.steps[rank - 1];
    for (int64_t axis = 0; axis + 1 < rank; ++axis)
      at += (position[axis] + problem.pads_begin[axis]) * shape.steps[axis];
    std::memcpy(to + at, permuted + index * line, static_cast<size_t>(line));
  }
}

}  // namespace parallax::runtime
