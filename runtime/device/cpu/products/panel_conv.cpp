// SPDX-License-Identifier: Apache-2.0
// Where the taps of each output lie is worked out once for each shape; taps in the padding read a run of zeros.
#include "runtime/device/cpu/products/panel_conv.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/library_threads.h"
#include "runtime/device/cpu/products/float_panels.h"
#include "runtime/device/cpu/weight_cache.h"

namespace parallax::runtime {

struct PanelConv {
  ConvProblem problem;
  std::shared_ptr<const AlignedFloats> filters;  // the same for all shapes
  const float* bias = nullptr;
  std::vector<int32_t> offsets;  // [taps, outputs of one image]
  std::vector<float> zeros;
};

namespace {

int64_t taps_of(const ConvProblem& problem) { return product(problem.kernel); }

bool suits_panels(const ConvProblem& problem) {
  constexpr int64_t kFewestChannels = 16;  // with fewer, and with one tap, storing sums weighs more: oneDNN is faster
  const int64_t inputs = product(problem.in_spatial) * problem.in_channels;
  const int64_t outputs = product(problem.out_spatial) * taps_of(problem);
  return has_float_panels() && taps_of(problem) > 1 && problem.x_channels_last && problem.y_channels_last &&
         problem.groups == 1 && problem.in_channels >= kFewestChannels && problem.out_channels >= kFewestChannels &&
         inputs <= INT32_MAX && outputs <= INT32_MAX;
}

// The index along one axis that a tap of an output reads; below 0: in the padding.
int64_t input_index(const ConvProblem& problem, int axis, int64_t output, int64_t tap) {
  const int64_t at = output * problem.strides[axis] - problem.pads_begin[axis] + tap * problem.dilations[axis];
  return at < problem.in_spatial[axis] ? at : -1;
}

int64_t offset_of(const ConvProblem& problem, int64_t output, int64_t tap) {
  int64_t offset = 0, stride = problem.in_channels;
  for (int axis = static_cast<int>(problem.spatial_rank()) - 1; axis >= 0; --axis) {
    const int64_t index = input_index(problem, axis, output % problem.out_spatial[axis], tap % problem.kernel[axis]);
    if (index < 0) return -1;
    offset += index * stride;
    stride *= problem.in_spatial[axis];
    output /= problem.out_spatial[axis];
    tap /= problem.kernel[axis];
  }
  return offset;
}

std::vector<int32_t> offsets_of(const ConvProblem& problem) {
  const int64_t outputs = product(problem.out_spatial);
  std::vector<int32_t> offsets;
  offsets.reserve(static_cast<size_t>(taps_of(problem) * outputs));
  for (int64_t tap = 0; tap < taps_of(problem); ++tap) {
    for (int64_t output = 0; output < outputs; ++output)
      offsets.push_back(static_cast<int32_t>(offset_of(problem, output, tap)));
  }
  return offsets;
}

// [out_channels, in_channels, taps] as the right side of the product: [taps, in_channels, out_channels].
AlignedFloats packed_filters(const ConvProblem& problem, const float* filters) {
  const int64_t taps = taps_of(problem), depth = problem.in_channels, columns = problem.out_channels;
  std::vector<float> ordered(static_cast<size_t>(taps * depth * columns));
  parallel_for(depth, taps * columns, [&](int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; ++channel) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        float* const line = ordered.data() + (tap * depth + channel) * columns;
        for (int64_t column = 0; column < columns; ++column)
          line[column] = filters[(column * depth + channel) * taps + tap];
      }
    }
  });
  AlignedFloats panels(float_panel_numbers(columns, taps * depth));
  pack_float_panels(columns, taps * depth, ordered.data(), columns, 1, panels.data());
  return panels;
}

std::shared_ptr<const AlignedFloats> kept_filters(Queue<Cpu>& queue, const ConvProblem& problem, const float* filters) {
  CacheKey key("conv panels");
  key.add(filters).add(problem.out_channels).add(problem.in_channels).add(taps_of(problem));
  return queue.weights().get_shared<AlignedFloats>(key.text(), [&] {
    const int64_t numbers = float_panel_numbers(problem.out_channels, problem.in_channels * taps_of(problem));
    queue.weights().add_bytes(numbers * static_cast<int64_t>(sizeof(float)));
    return std::make_shared<AlignedFloats>(packed_filters(problem, filters));
  });
}

// y = activation(y + bias + addend), in place, for a part of y that has just been made.
class Finish {
 public:
  Finish(int64_t pitch, const float* bias, const float* addend, const Activation& activation, float* y)
      : pitch_(pitch), bias_(bias), addend_(addend), activation_(activation), y_(y) {}

  void operator()(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    if (bias_ == nullptr && addend_ == nullptr && activation_.kind == Activation::Kind::none) return;
    float shifts[kMostColumns] = {};
    if (bias_ != nullptr) std::copy_n(bias_ + column, columns, shifts);
    visit_activation(activation_, [&](auto apply) {
      vectorised(row, row + rows, [&, apply](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          float* const line = y_ + i * pitch_ + column;
          const float* const other = addend_ == nullptr ? nullptr : addend_ + i * pitch_ + column;
          if (other == nullptr) {
            PX_INDEPENDENT_ITERATIONS
            for (int64_t j = 0; j < columns; ++j) line[j] = apply(line[j] + shifts[j]);
          } else {
            PX_INDEPENDENT_ITERATIONS
            for (int64_t j = 0; j < columns; ++j) line[j] = apply(line[j] + shifts[j] + other[j]);
          }
        }
      });
    });
  }

 private:
  static constexpr int64_t kMostColumns = 24;
  int64_t pitch_;
  const float* bias_;
  const float* addend_;
  const Activation& activation_;
  float* y_;
};

}  // namespace

std::shared_ptr<const PanelConv> make_panel_conv(Queue<Cpu>& queue, const ConvProblem& problem, const float* filters,
                                                 const float* bias) {
  if (!suits_panels(problem)) return nullptr;
  std::vector<int32_t> offsets = offsets_of(problem);
  const bool pads = std::any_of(offsets.begin(), offsets.end(), [](int32_t offset) { return offset < 0; });
  const int64_t count = problem.out_channels * problem.in_channels * taps_of(problem);
  if (pads && !std::all_of(filters, filters + count, [](float value) { return std::isfinite(value); })) return nullptr;
  std::vector<float> zeros(pads ? static_cast<size_t>(problem.in_channels) : 0);
  return std::make_shared<const PanelConv>(
      PanelConv{problem, kept_filters(queue, problem, filters), bias, std::move(offsets), std::move(zeros)});
}

void run_panel_conv(const PanelConv& conv, const float* x, const Addend& addend, float* y) {
  const ConvProblem& problem = conv.problem;
  const int64_t outputs = product(problem.out_spatial), inputs = product(problem.in_spatial);
  PanelRows rows;
  rows.count = outputs;
  rows.segments = taps_of(problem);
  rows.depth = problem.in_channels;
  rows.offsets = conv.offsets.data();
  rows.zeros = conv.zeros.data();
  const double work =
      static_cast<double>(rows.count * problem.out_channels) * static_cast<double>(rows.segments * rows.depth);
  const Activation& activation = addend.values == nullptr ? problem.activation : addend.activation;
  for (int64_t image = 0; image < problem.batch; ++image) {
    const int64_t at = image * outputs * problem.out_channels;
    rows.base = x + image * inputs * problem.in_channels;
    const float* const others = addend.values == nullptr ? nullptr : addend.values + at;
    multiply_float_panels(rows, problem.out_channels, conv.filters->data(), library_thread_count(work),
                          Finish(problem.out_channels, conv.bias, others, activation, y + at), y + at);
  }
}

}  // namespace parallax::runtime
