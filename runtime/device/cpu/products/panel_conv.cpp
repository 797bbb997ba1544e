// SPDX-License-Identifier: Apache-2.0
// The element offset of each output's taps is worked out once for each shape; taps in the padding read a run of zeros.
// Where the channels are few, a padded NHWC copy of x makes the taps of one line of the filter a single segment.
#include "runtime/device/cpu/products/panel_conv.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/library_threads.h"
#include "runtime/device/cpu/products/conv_activations.h"
#include "runtime/device/cpu/products/float_panels.h"
#include "runtime/device/cpu/weight_cache.h"

namespace parallax::runtime {

struct PanelConv {
  ConvProblem problem;
  std::shared_ptr<const AlignedFloats> filters;  // the same for all shapes
  std::vector<float> bias;                       // of all panels; none: 0
  PanelRows rows;                                // but for its base; its arrays are the two below
  std::vector<int32_t> offsets;  // [segments, outputs of one batch element]; none where rows have an even stride
  std::vector<float> zeros;
  int64_t padded_lines = 0;  // of the padded copy; 0: there is none
  int64_t padded_width = 0;
};

namespace {

constexpr int64_t kFewChannels = 16;  // below, segments of single taps are too short to be walked one by one

int64_t taps_of(const ConvProblem& problem) { return product(problem.kernel); }
int64_t depth_of(const ConvProblem& problem) { return problem.in_channels / problem.groups; }
int64_t columns_of(const ConvProblem& problem) { return problem.out_channels / problem.groups; }

bool needs_padded_copy(const ConvProblem& problem) {
  return problem.groups == 1 && problem.in_channels < kFewChannels && taps_of(problem) > 1;
}

bool suits_padded_copy(const ConvProblem& problem) {
  return problem.spatial_rank() == 2 && problem.dilations[1] == 1 && problem.out_channels >= 8;
}

bool suits_segments(const ConvProblem& problem) {
  constexpr int64_t kFewestOfGroup = 4;
  const int64_t fewest = problem.groups == 1 ? 8 : kFewestOfGroup;
  return problem.x_channels_last && depth_of(problem) >= fewest && columns_of(problem) >= fewest;
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

// True where row i is the channels at position i of x.
bool rows_are_positions(const ConvProblem& problem) {
  const auto all_are = [](const Ints& values, int64_t wanted) {
    return std::all_of(values.begin(), values.end(), [=](int64_t value) { return value == wanted; });
  };
  return taps_of(problem) == 1 && all_are(problem.strides, 1) && all_are(problem.pads_begin, 0) &&
         all_are(problem.pads_end, 0);
}

// [group, out_channels / groups, in_channels / groups, taps] as the right side of each group's product: [taps,
// in_channels / groups, out_channels / groups].
AlignedFloats packed_filters(const ConvProblem& problem, const float* filters) {
  const int64_t taps = taps_of(problem), depth = depth_of(problem), columns = columns_of(problem);
  const int64_t numbers = float_panel_numbers(columns, taps * depth);
  AlignedFloats panels = AlignedFloats::of_weights(problem.groups * numbers);
  std::vector<float> ordered(static_cast<size_t>(taps * depth * columns));
  for (int64_t group = 0; group < problem.groups; ++group) {
    const float* const own = filters + group * columns * depth * taps;
    parallel_for(depth, taps * columns, [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) {
        for (int64_t tap = 0; tap < taps; ++tap) {
          float* const line = ordered.data() + (tap * depth + channel) * columns;
          for (int64_t column = 0; column < columns; ++column)
            line[column] = own[(column * depth + channel) * taps + tap];
        }
      }
    });
    pack_float_panels(columns, taps * depth, ordered.data(), columns, 1, panels.data() + group * numbers);
  }
  return panels;
}

std::shared_ptr<const AlignedFloats> kept_filters(Queue<Cpu>& queue, const ConvProblem& problem, const float* filters) {
  CacheKey key("conv panels");
  key.add(filters).add(problem.out_channels).add(problem.in_channels).add(problem.groups).add(taps_of(problem));
  return queue.weights().get_shared<AlignedFloats>(key.text(), [&] {
    const int64_t numbers = float_panel_numbers(columns_of(problem), depth_of(problem) * taps_of(problem));
    queue.weights().add_bytes(problem.groups * numbers * static_cast<int64_t>(sizeof(float)));
    return std::make_shared<AlignedFloats>(packed_filters(problem, filters));
  });
}

// y = activation(y + addend), in place, for a part of y that has just been made.
class Finish {
 public:
  Finish(int64_t pitch, const float* addend, const Activation& activation, float* y)
      : pitch_(pitch), addend_(addend), activation_(activation), y_(y) {}

  bool is_needed() const { return addend_ != nullptr || activation_.kind != Activation::Kind::none; }

  void operator()(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    float* const first = y_ + row * pitch_ + column;
    const float* const others = addend_ == nullptr ? nullptr : addend_ + row * pitch_ + column;
    visit_activation_of_conv(activation_, [&](auto apply) {
      if (columns == 24) return activate_rows<24>(rows, columns, pitch_, others, apply, first);
      if (columns == 16) return activate_rows<16>(rows, columns, pitch_, others, apply, first);
      if (columns == 8) return activate_rows<8>(rows, columns, pitch_, others, apply, first);
      activate_rows<0>(rows, columns, pitch_, others, apply, first);
    });
  }

 private:
  int64_t pitch_;
  const float* addend_;
  Activation activation_;
  float* y_;
};

// The activation in registers; `rest` is what is left of it.
PanelEpilogue epilogue_of(const PanelConv& conv, const Activation& activation, Activation& rest) {
  PanelEpilogue epilogue;
  epilogue.bias = conv.bias.empty() ? nullptr : conv.bias.data();
  const std::optional<ActivationBounds> bounds = bounds_of(activation);
  rest = bounds.has_value() ? Activation{} : activation;
  if (bounds.has_value()) epilogue.lowest = bounds->lowest, epilogue.highest = bounds->highest;
  return epilogue;
}

void lay_segments(PanelConv& conv) {
  const ConvProblem& problem = conv.problem;
  conv.rows.segments = taps_of(problem);
  conv.rows.depth = depth_of(problem);
  conv.rows.groups = problem.groups;
  conv.rows.step = problem.in_channels;
  if (rows_are_positions(problem)) return;
  conv.offsets = offsets_of(problem);
  const bool pads = std::any_of(conv.offsets.begin(), conv.offsets.end(), [](int32_t offset) { return offset < 0; });
  if (pads) conv.zeros.resize(static_cast<size_t>(problem.in_channels));
}

void lay_padded_copy(PanelConv& conv) {
  const ConvProblem& problem = conv.problem;
  const Ints &out = problem.out_spatial, &strides = problem.strides, &kernel = problem.kernel;
  conv.padded_lines = (out[0] - 1) * strides[0] + (kernel[0] - 1) * problem.dilations[0] + 1;
  conv.padded_width = (out[1] - 1) * strides[1] + kernel[1];
  conv.rows.segments = kernel[0];
  conv.rows.depth = kernel[1] * problem.in_channels;
  for (int64_t tap = 0; tap < kernel[0]; ++tap) {
    for (int64_t output = 0; output < product(out); ++output) {
      const int64_t line = output / out[1] * strides[0] + tap * problem.dilations[0];
      const int64_t offset = (line * conv.padded_width + output % out[1] * strides[1]) * problem.in_channels;
      conv.offsets.push_back(static_cast<int32_t>(offset));
    }
  }
}

// x of one batch element, in either order, as [padded_lines, padded_width, channels].
void copy_padded(const PanelConv& conv, const float* x, float* padded) {
  const ConvProblem& problem = conv.problem;
  const int64_t channels = problem.in_channels, height = problem.in_spatial[0], width = problem.in_spatial[1];
  const int64_t left = std::min(problem.pads_begin[1], conv.padded_width);
  const int64_t used = std::min(width, conv.padded_width - left);
  const bool is_last = problem.x_channels_last;
  const int64_t channel_step = is_last ? 1 : height * width, column_step = is_last ? channels : 1;
  parallel_for(conv.padded_lines, conv.padded_width * channels, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      float* const target = padded + line * conv.padded_width * channels;
      std::fill_n(target, conv.padded_width * channels, 0.0F);
      const int64_t row = line - problem.pads_begin[0];
      if (row < 0 || row >= height) continue;
      const float* const source = x + row * width * column_step;
      float* const to = target + left * channels;
      if (channels == 3) {  // pictures
        vectorized(0, used, [=](int64_t first, int64_t last) {
          const float *const red = source, *const green = red + channel_step, *const blue = green + channel_step;
          PX_INDEPENDENT_ITERATIONS
          for (int64_t column = first; column < last; ++column) {
            to[3 * column] = red[column * column_step];
            to[3 * column + 1] = green[column * column_step];
            to[3 * column + 2] = blue[column * column_step];
          }
        });
        continue;
      }
      for (int64_t channel = 0; channel < channels; ++channel) {
        for (int64_t column = 0; column < used; ++column)
          to[column * channels + channel] = source[channel * channel_step + column * column_step];
      }
    }
  });
}

}  // namespace

bool suits_panels(const ConvProblem& problem) {
  if (!has_float_panels() || !problem.filters_are_constant || !problem.y_channels_last) return false;
  if (product(problem.in_spatial) * problem.in_channels > INT32_MAX / 2) return false;
  if (product(problem.out_spatial) * taps_of(problem) > INT32_MAX) return false;
  return needs_padded_copy(problem) ? suits_padded_copy(problem) : suits_segments(problem);
}

std::shared_ptr<const PanelConv> make_panel_conv(Queue<Cpu>& queue, const ConvProblem& problem, const float* filters,
                                                 const float* bias) {
  if (!suits_panels(problem)) return nullptr;
  auto conv = std::make_shared<PanelConv>();
  conv->problem = problem;
  if (bias != nullptr) {
    conv->bias.assign(bias, bias + problem.out_channels);
    conv->bias.resize(static_cast<size_t>(problem.out_channels + kFloatPanelColumns));
  }
  const bool is_padded = needs_padded_copy(problem);
  is_padded ? lay_padded_copy(*conv) : lay_segments(*conv);
  const bool pads = is_padded || !conv->zeros.empty();
  const int64_t count = problem.out_channels * depth_of(problem) * taps_of(problem);
  if (pads && !std::all_of(filters, filters + count, [](float value) { return std::isfinite(value); })) return nullptr;
  conv->filters = kept_filters(queue, problem, filters);
  conv->rows.count = product(problem.out_spatial);
  conv->rows.offsets = conv->offsets.empty() ? nullptr : conv->offsets.data();
  conv->rows.zeros = conv->zeros.data();
  return conv;
}

Status run_panel_conv(Queue<Cpu>& queue, const PanelConv& conv, const float* x, const Addend& addend, float* y) {
  const ConvProblem& problem = conv.problem;
  const int64_t outputs = conv.rows.count, inputs = product(problem.in_spatial), columns = columns_of(problem);
  const double depth = static_cast<double>(conv.rows.segments * conv.rows.depth);
  const int threads = library_thread_count(static_cast<double>(outputs * problem.out_channels) * depth);
  const bool has_addend = addend.values != nullptr;
  const Activation& activation = has_addend ? addend.activation : problem.activation;
  Activation rest;
  const PanelEpilogue epilogue = epilogue_of(conv, activation, rest);
  const bool is_row = outputs == 1 && conv.rows.offsets == nullptr && conv.rows.groups == 1;
  std::shared_ptr<std::byte> padded;
  if (conv.padded_lines > 0) {
    const int64_t numbers = conv.padded_lines * conv.padded_width * problem.in_channels;
    padded = PX_TRY(queue.pool().allocate(static_cast<size_t>(numbers) * sizeof(float)));
  }
  for (int64_t element = 0; element < problem.batch; ++element) {
    const int64_t at = element * outputs * problem.out_channels;
    PanelRows rows = conv.rows;
    rows.base = x + element * inputs * problem.in_channels;
    if (padded != nullptr) {
      float* const copy = reinterpret_cast<float*>(padded.get());
      copy_padded(conv, rows.base, copy);
      rows.base = copy;
    }
    const float* const others = has_addend ? addend.values + at : nullptr;
    if (is_row) {
      multiply_row_by_float_panels(rows.base, columns, rows.depth, conv.filters->data(), y + at);
      for (size_t column = 0; !conv.bias.empty() && column < static_cast<size_t>(columns); ++column)
        y[at + static_cast<int64_t>(column)] += conv.bias[column];
      const Finish finish(columns, others, activation, y + at);
      if (finish.is_needed()) finish(0, 1, 0, columns);
      continue;
    }
    // Bounds follow the addend; any other activation comes after both.
    const bool is_whole = rest.kind == Activation::Kind::none;
    PanelEpilogue own = epilogue;
    own.addend = is_whole ? others : nullptr;
    const Finish finish(problem.out_channels, is_whole ? nullptr : others, rest, y + at);
    multiply_float_panels(rows, columns, conv.filters->data(), threads,
                          finish.is_needed() ? FinishTile(finish) : FinishTile(), y + at, own);
  }
  return {};
}

}  // namespace parallax::runtime
