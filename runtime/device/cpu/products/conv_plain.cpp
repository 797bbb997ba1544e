// SPDX-License-Identifier: Apache-2.0
// Each output is one sum in the order of the filter's taps, whatever the vector width and the number of threads.
#include "runtime/device/cpu/products/conv_plain.h"

#include <cmath>
#include <cstring>

#include "runtime/device/cpu/products/gemm.h"

namespace parallax::runtime {
namespace {

bool is_all(const Ints& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [=](int64_t each) { return each == value; });
}

// y = activation(y + bias of the plane).
void finish_planes(int64_t channels, int64_t size, const float* bias, const Activation& activation, float* y,
                   int64_t planes) {
  visit_activation(activation, [&](auto apply) {
    parallel_for(planes, size * 2, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const float shift = bias == nullptr ? 0.0F : bias[plane % channels];
        float* values = y + plane * size;
        vectorized(0, size, [=](int64_t first, int64_t last) {
          PX_INDEPENDENT_ITERATIONS
          for (int64_t i = first; i < last; ++i) values[i] = apply(values[i] + shift);
        });
      }
    });
  });
}

// ---- Depthwise ----

// One channel with zeros around it; with steps of 2 the even and the odd columns are separate, so that neighboring
// outputs read neighbors.
struct PaddedPlane {
  int64_t step = 1;
  int64_t row_width = 0;  // of one half where step is 2
  std::vector<float> values;

  void fill(const ConvProblem& problem, const float* x) {
    const int64_t height = problem.in_spatial[0], width = problem.in_spatial[1];
    const int64_t top = problem.pads_begin[0], left = problem.pads_begin[1];
    for (int64_t row = 0; row < height; ++row) {
      float* target = values.data() + (row + top) * row_width * step;
      const float* source = x + row * width;
      if (step == 1) {
        std::memcpy(target + left, source, static_cast<size_t>(width) * sizeof(float));
        continue;
      }
      for (int64_t column = 0; column < width; ++column) {
        const int64_t at = column + left;
        target[at % 2 * row_width + at / 2] = source[column];
      }
    }
  }
};

PaddedPlane padded_plane(const ConvProblem& problem) {
  PaddedPlane plane;
  plane.step = problem.strides[0];
  const int64_t height = problem.in_spatial[0] + problem.pads_begin[0] + problem.pads_end[0] + problem.kernel[0];
  const int64_t width = problem.in_spatial[1] + problem.pads_begin[1] + problem.pads_end[1] + problem.kernel[1];
  plane.row_width = (width + plane.step - 1) / plane.step;
  plane.values.resize(static_cast<size_t>(height * plane.row_width * plane.step), 0.0F);
  return plane;
}

template <int kSize, int kStep, class Apply>
void filter_plane(const PaddedPlane& plane, const ConvProblem& problem, const float* filter, float bias,
                  const Apply& apply, float* y) {
  const int64_t width = problem.out_spatial[1];
  const int64_t stride = plane.row_width * kStep;
  const int64_t half = plane.row_width;
  for (int64_t row = 0; row < problem.out_spatial[0]; ++row) {
    const float* source = plane.values.data() + row * kStep * stride;
    float* out = y + row * width;
    vectorized(0, width, [=](int64_t begin, int64_t end) {
      float taps[kSize * kSize];
      for (int tap = 0; tap < kSize * kSize; ++tap) taps[tap] = filter[tap];
      PX_INDEPENDENT_ITERATIONS
      for (int64_t i = begin; i < end; ++i) {
        float sum = bias;
        for (int ky = 0; ky < kSize; ++ky) {
          for (int kx = 0; kx < kSize; ++kx) {
            const float* line = source + ky * stride + (kStep == 1 ? kx : kx % 2 * half + kx / 2);
            sum += taps[ky * kSize + kx] * line[i];
          }
        }
        out[i] = apply(sum);
      }
    });
  }
}

template <int kSize, int kStep>
void depthwise(const ConvProblem& problem, const float* x, const float* filters, const float* bias, float* y) {
  const int64_t in_size = product(problem.in_spatial);
  const int64_t out_size = product(problem.out_spatial);
  visit_activation(problem.activation, [&](auto apply) {
    parallel_for(problem.batch * problem.in_channels, out_size * kSize * 2, [&](int64_t begin, int64_t end) {
      PaddedPlane plane = padded_plane(problem);
      for (int64_t index = begin; index < end; ++index) {
        const int64_t channel = index % problem.in_channels;
        plane.fill(problem, x + index * in_size);
        filter_plane<kSize, kStep>(plane, problem, filters + channel * kSize * kSize,
                                   bias == nullptr ? 0.0F : bias[channel], apply, y + index * out_size);
      }
    });
  });
}

}  // namespace

bool is_pointwise_conv(const ConvProblem& problem) {
  return problem.groups == 1 && is_all(problem.kernel, 1) && is_all(problem.strides, 1) &&
         is_all(problem.pads_begin, 0) && is_all(problem.pads_end, 0) && problem.batch > 0 && problem.in_channels > 0 &&
         product(problem.in_spatial) > 0;
}

Status pointwise_conv(Queue<Cpu>& queue, const ConvProblem& problem, const float* x, const float* filters,
                      const float* bias, float* y) {
  const int64_t size = product(problem.in_spatial);
  GemmProblem gemm_problem;
  gemm_problem.k = problem.in_channels;
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    const float* source = x + batch * problem.in_channels * size;
    float* target = y + batch * problem.out_channels * size;
    if (size == 1) {  // a matrix times a vector
      gemm_problem.m = 1;
      gemm_problem.n = problem.out_channels;
      gemm_problem.transpose_b = true;
      PX_TRY(gemm(queue, gemm_problem, source, filters, target));
    } else {
      gemm_problem.m = problem.out_channels;
      gemm_problem.n = size;
      PX_TRY(gemm(queue, gemm_problem, filters, source, target));
    }
  }
  if (bias != nullptr || problem.activation.kind != Activation::Kind::none) {
    finish_planes(problem.out_channels, size, bias, problem.activation, y, problem.batch * problem.out_channels);
  }
  return {};
}

bool is_depthwise_conv(const ConvProblem& problem, const float* filters) {
  if (problem.spatial_rank() != 2 || problem.groups != problem.in_channels ||
      problem.out_channels != problem.in_channels || problem.groups < 2 || !is_all(problem.dilations, 1))
    return false;
  const bool is_known_size = is_all(problem.kernel, 3) || is_all(problem.kernel, 5);
  const bool is_known_step = is_all(problem.strides, 1) || is_all(problem.strides, 2);
  bool pads_fit = true;  // negative ones crop
  for (int64_t axis = 0; axis < 2; ++axis)
    pads_fit = pads_fit && problem.pads_begin[axis] >= 0 && problem.pads_end[axis] >= 0;
  if (!is_known_size || !is_known_step || !pads_fit || product(problem.in_spatial) == 0) return false;
  const float* end = filters + problem.groups * product(problem.kernel);
  return std::all_of(filters, end, [](float weight) { return std::isfinite(weight); });
}

void depthwise_conv(const ConvProblem& problem, const float* x, const float* filters, const float* bias, float* y) {
  const bool is_three = problem.kernel[0] == 3;
  const bool is_single_step = problem.strides[0] == 1;
  if (is_three && is_single_step) return depthwise<3, 1>(problem, x, filters, bias, y);
  if (is_three) return depthwise<3, 2>(problem, x, filters, bias, y);
  if (is_single_step) return depthwise<5, 1>(problem, x, filters, bias, y);
  return depthwise<5, 2>(problem, x, filters, bias, y);
}

}  // namespace parallax::runtime
