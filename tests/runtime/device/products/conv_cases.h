// SPDX-License-Identifier: Apache-2.0
// Convolutions in short, and those that libraries are tried with: one for each thing that can be described wrongly.
#pragma once

#include <ostream>
#include <vector>

#include "runtime/device/cpu/products/conv.h"

namespace parallax::runtime {

struct ConvCase {
  const char* name;
  int64_t batch, in_channels, out_channels, groups;
  std::vector<int64_t> in_spatial, kernel, strides, dilations, pads_begin, pads_end;
  bool has_bias = false;
  bool is_transposed = false;
  std::vector<int64_t> output_padding = {};  // of the transpose
};

inline std::ostream& operator<<(std::ostream& out, const ConvCase& given) { return out << given.name; }

// clang-format off
inline const std::vector<ConvCase> kConvCases = {
    {"plain", 2, 3, 4, 1, {5, 7}, {3, 2}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {"bias", 2, 3, 4, 1, {5, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, true},
    {"strides", 1, 2, 3, 1, {9, 8}, {3, 2}, {2, 3}, {1, 1}, {1, 0}, {1, 0}, true},
    {"dilations", 1, 2, 3, 1, {9, 11}, {3, 2}, {1, 1}, {2, 3}, {1, 2}, {1, 2}},
    {"uneven_pads", 1, 2, 3, 1, {6, 5}, {3, 4}, {1, 1}, {1, 1}, {0, 3}, {2, 1}, true},
    {"groups", 2, 6, 4, 2, {5, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, true},
    {"depthwise", 1, 4, 8, 4, {6, 6}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {0, 0}},
    {"pointwise", 3, 5, 2, 1, {4, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, true},
    {"one_axis", 2, 3, 4, 1, {11}, {3}, {2}, {2}, {1}, {2}, true},
    {"three_axes", 1, 2, 3, 1, {4, 5, 6}, {2, 3, 2}, {1, 2, 1}, {1, 1, 2}, {1, 0, 1}, {0, 1, 1}, true},
    {"back", 2, 3, 4, 1, {4, 5}, {3, 2}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, false, true, {0, 0}},
    {"back_strides", 1, 3, 2, 1, {4, 3}, {4, 3}, {2, 3}, {1, 1}, {1, 0}, {1, 1}, true, true, {0, 0}},
    {"back_groups", 1, 4, 6, 2, {3, 4}, {3, 2}, {2, 1}, {1, 2}, {1, 0}, {0, 1}, true, true, {0, 0}},
    {"back_beyond", 1, 2, 3, 1, {4, 3}, {2, 2}, {3, 2}, {1, 1}, {0, 0}, {0, 0}, true, true, {2, 1}},
    {"back_one_axis", 1, 2, 3, 1, {7}, {4}, {2}, {1}, {1}, {1}, false, true, {0}},
    {"back_three_axes", 1, 2, 2, 1, {3, 2, 3}, {2, 2, 3}, {2, 1, 2}, {1, 1, 1}, {0, 1, 1}, {0, 0, 1}, true, true, {0, 0, 0}},
};
// clang-format on

struct ConvShapes {
  Shape x, filters, y;
};

inline int64_t out_positions(const ConvCase& given, size_t axis) {
  const int64_t extent = (given.kernel[axis] - 1) * given.dilations[axis] + 1;
  const int64_t pads = given.pads_begin[axis] + given.pads_end[axis];
  if (!given.is_transposed) return (given.in_spatial[axis] + pads - extent) / given.strides[axis] + 1;
  return given.strides[axis] * (given.in_spatial[axis] - 1) + given.output_padding[axis] + extent - pads;
}

inline ConvProblem problem_of(const ConvCase& given) {
  ConvProblem problem;
  problem.batch = given.batch;
  problem.in_channels = given.in_channels;
  problem.out_channels = given.out_channels;
  problem.groups = given.groups;
  problem.in_spatial = given.in_spatial;
  problem.kernel = given.kernel;
  problem.strides = given.strides;
  problem.dilations = given.dilations;
  problem.pads_begin = given.pads_begin;
  problem.pads_end = given.pads_end;
  for (size_t axis = 0; axis < given.kernel.size(); ++axis) {
    problem.out_spatial.push_back(out_positions(given, axis));
    // as ops/conv_problem.cpp has it: padding such that the sizes come out
    if (given.is_transposed) problem.pads_end[static_cast<int64_t>(axis)] -= given.output_padding[axis];
  }
  return problem;
}

inline ConvShapes shapes_of(const ConvCase& given) {
  Ints x{given.batch, given.in_channels}, y{given.batch, given.out_channels};
  Ints filters = given.is_transposed ? Ints{given.in_channels, given.out_channels / given.groups}
                                     : Ints{given.out_channels, given.in_channels / given.groups};
  for (size_t axis = 0; axis < given.kernel.size(); ++axis) {
    x.push_back(given.in_spatial[axis]);
    filters.push_back(given.kernel[axis]);
    y.push_back(out_positions(given, axis));
  }
  return {shape_of(x).take(), shape_of(filters).take(), shape_of(y).take()};
}

}  // namespace parallax::runtime
