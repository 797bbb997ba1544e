// SPDX-License-Identifier: Apache-2.0
// Convolution by plain loops over windows, for element types and ranks that the library does not have.
#pragma once

#include <vector>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/products/conv.h"
#include "runtime/device/cpu/window.h"

namespace parallax::runtime {

inline WindowGeometry window_of(const ConvProblem& problem) {
  return {problem.in_spatial, problem.out_spatial, problem.kernel,
          problem.strides,    problem.dilations,   problem.pads_begin};
}

// Each output plane on its own.
template <class T>
void conv_loops(const ConvProblem& problem, const T* x, const T* filters, const T* bias, T* y) {
  const WindowGeometry window = window_of(problem);
  const int64_t in_plane = product(problem.in_spatial);
  const int64_t out_plane = product(problem.out_spatial);
  const int64_t taps = product(problem.kernel);
  const int64_t in_per_group = problem.in_channels / problem.groups;
  const int64_t out_per_group = problem.out_channels / problem.groups;
  parallel_for(
      problem.batch * problem.out_channels, out_plane * taps * in_per_group * 4, [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
          const int64_t channel = plane % problem.out_channels;
          const int64_t first_input =
              plane / problem.out_channels * problem.in_channels + channel / out_per_group * in_per_group;
          int64_t position[Shape::kMaxRank] = {};
          for (int64_t location = 0; location < out_plane; ++location, advance(position, problem.out_spatial)) {
            T sum = bias == nullptr ? T(0) : bias[channel];
            for_each_tap(window, position, [&](int64_t offset, int64_t tap) {
              for (int64_t input = 0; input < in_per_group; ++input) {
                sum += x[(first_input + input) * in_plane + offset] *
                       filters[(channel * in_per_group + input) * taps + tap];
              }
            });
            y[plane * out_plane + location] = sum;
          }
        }
      });
}

// The transpose scatters: the window of input position p over the output has the positions that p contributes to.
template <class T>
void conv_transpose_loops(const ConvProblem& problem, const T* x, const T* filters, const T* bias, T* y) {
  const WindowGeometry window{problem.out_spatial, problem.in_spatial, problem.kernel,
                              problem.strides,     problem.dilations,  problem.pads_begin};
  const int64_t in_plane = product(problem.in_spatial);
  const int64_t out_plane = product(problem.out_spatial);
  const int64_t taps = product(problem.kernel);
  const int64_t in_per_group = problem.in_channels / problem.groups;
  const int64_t out_per_group = problem.out_channels / problem.groups;
  parallel_for(
      problem.batch * problem.out_channels, in_plane * taps * in_per_group * 4, [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
          const int64_t channel = plane % problem.out_channels;
          const int64_t group = channel / out_per_group;
          T* out = y + plane * out_plane;
          std::fill_n(out, out_plane, bias == nullptr ? T(0) : bias[channel]);
          for (int64_t input = group * in_per_group; input < (group + 1) * in_per_group; ++input) {
            const T* source = x + (plane / problem.out_channels * problem.in_channels + input) * in_plane;
            const T* filter = filters + (input * out_per_group + channel % out_per_group) * taps;
            int64_t position[Shape::kMaxRank] = {};
            for (int64_t location = 0; location < in_plane; ++location, advance(position, problem.in_spatial)) {
              for_each_tap(window, position,
                           [&](int64_t offset, int64_t tap) { out[offset] += source[location] * filter[tap]; });
            }
          }
        }
      });
}

}  // namespace parallax::runtime
