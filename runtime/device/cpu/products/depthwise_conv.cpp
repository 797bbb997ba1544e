// SPDX-License-Identifier: Apache-2.0
// Four neighboring outputs by sixteen channels: eight sums, each tap's filters read once for four outputs. Taps in the
// padding read a run of zeros.
#include "runtime/device/cpu/products/depthwise_conv.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "inspector/base/check.h"
#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/products/conv_activations.h"
#include "runtime/device/cpu/products/float_panels.h"
#include "runtime/device/cpu/weight_cache.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define PX_DEPTHWISE __attribute__((target("avx2,fma")))
#define PX_DEPTHWISE_INLINE __attribute__((target("avx2,fma"), always_inline)) inline
#endif

#if defined(__clang__)
#define PX_EACH _Pragma("unroll")
#else
#define PX_EACH _Pragma("GCC unroll 8")
#endif

namespace parallax::runtime {

struct DepthwiseConv {
  ConvProblem problem;
  std::shared_ptr<const AlignedFloats> filters;  // [taps, channels]; the same for all shapes
  const float* bias = nullptr;
  // The taps of an output are those of its line and those of its column: offsets into x, below 0 in the padding.
  std::vector<int64_t> lines;    // [outputs of the axes before the last, their taps]
  std::vector<int64_t> columns;  // [outputs of the last axis, its taps]
  std::vector<float> zeros;      // [channels]
};

namespace {

constexpr int64_t kAtOnce = 4;  // outputs

AlignedFloats by_tap(int64_t channels, int64_t taps, const float* filters) {
  AlignedFloats ordered = AlignedFloats::of_weights(channels * taps);
  for (int64_t channel = 0; channel < channels; ++channel) {
    for (int64_t tap = 0; tap < taps; ++tap) ordered.data()[tap * channels + channel] = filters[channel * taps + tap];
  }
  return ordered;
}

// The offsets that the taps of each output along axes [first, end) read; below 0: in the padding.
std::vector<int64_t> offsets_along(const ConvProblem& problem, int64_t first, int64_t end, int64_t inner) {
  const int64_t outputs = product(problem.out_spatial, first, end), taps = product(problem.kernel, first, end);
  std::vector<int64_t> offsets;
  for (int64_t each = 0; each < outputs * taps; ++each) {
    int64_t output = each / taps, tap = each % taps, stride = inner, offset = 0;
    for (int64_t axis = end - 1; axis >= first; --axis) {
      const int64_t at = output % problem.out_spatial[axis] * problem.strides[axis] - problem.pads_begin[axis] +
                         tap % problem.kernel[axis] * problem.dilations[axis];
      if (at < 0 || at >= problem.in_spatial[axis]) offset = INT64_MIN / 2;
      offset += at * stride;
      stride *= problem.in_spatial[axis];
      output /= problem.out_spatial[axis];
      tap /= problem.kernel[axis];
    }
    offsets.push_back(std::max<int64_t>(-1, offset));
  }
  return offsets;
}

#if defined(__x86_64__)

// The sums of kOutputs outputs and kVectors * 8 channels. taps: [taps, kAtOnce] of what each reads, from channel 0 on.
template <size_t kOutputs, size_t kVectors>
PX_DEPTHWISE_INLINE void add_up(const float* const* taps, int64_t tap_count, const float* filters, int64_t channels,
                                int64_t channel, const float* bias, ActivationBounds bounds, float* y) {
  __m256 sums[kOutputs][kVectors];
  PX_EACH
  for (size_t v = 0; v < kVectors; ++v) {
    const __m256 first = bias == nullptr ? _mm256_setzero_ps() : _mm256_loadu_ps(bias + channel + v * 8);
    PX_EACH
    for (size_t output = 0; output < kOutputs; ++output) sums[output][v] = first;
  }
  const float* line = filters + channel;
  for (int64_t tap = 0; tap < tap_count; ++tap, line += channels, taps += kAtOnce) {
    __m256 factors[kVectors];
    PX_EACH
    for (size_t v = 0; v < kVectors; ++v) factors[v] = _mm256_loadu_ps(line + v * 8);
    PX_EACH
    for (size_t output = 0; output < kOutputs; ++output) {
      const float* const from = taps[output] + channel;
      PX_EACH
      for (size_t v = 0; v < kVectors; ++v)
        sums[output][v] = _mm256_fmadd_ps(_mm256_loadu_ps(from + v * 8), factors[v], sums[output][v]);
    }
  }
  // With one operand that is NaN and one that is not, minimum and maximum give the second.
  const __m256 lowest = _mm256_set1_ps(bounds.lowest), highest = _mm256_set1_ps(bounds.highest);
  PX_EACH
  for (size_t output = 0; output < kOutputs; ++output) {
    PX_EACH
    for (size_t v = 0; v < kVectors; ++v)
      _mm256_storeu_ps(y + static_cast<int64_t>(output) * channels + channel + v * 8,
                       _mm256_min_ps(highest, _mm256_max_ps(lowest, sums[output][v])));
  }
}

template <size_t kOutputs>
PX_DEPTHWISE void add_up_outputs(const float* const* taps, int64_t tap_count, const float* filters, int64_t channels,
                                 const float* bias, ActivationBounds bounds, float* y) {
  int64_t channel = 0;
  for (; channel + 16 <= channels; channel += 16)
    add_up<kOutputs, 2>(taps, tap_count, filters, channels, channel, bias, bounds, y);
  if (channel + 8 <= channels) {
    add_up<kOutputs, 1>(taps, tap_count, filters, channels, channel, bias, bounds, y);
    channel += 8;
  }
  for (size_t output = 0; output < kOutputs; ++output) {
    for (int64_t each = channel; each < channels; ++each) {
      float sum = bias == nullptr ? 0.0F : bias[each];
      for (int64_t tap = 0; tap < tap_count; ++tap)
        sum = __builtin_fmaf(taps[tap * kAtOnce + static_cast<int64_t>(output)][each], filters[tap * channels + each],
                             sum);
      sum = sum < bounds.lowest ? bounds.lowest : sum;
      y[static_cast<int64_t>(output) * channels + each] = sum > bounds.highest ? bounds.highest : sum;
    }
  }
}

#else

template <size_t kOutputs>
void add_up_outputs(const float* const*, int64_t, const float*, int64_t, const float*, ActivationBounds, float*) {
  PX_CHECK(has_float_panels());
}

#endif

using AddUp = void (*)(const float* const* taps, int64_t tap_count, const float* filters, int64_t channels,
                       const float* bias, ActivationBounds bounds, float* y);
constexpr AddUp kAddUp[kAtOnce] = {add_up_outputs<1>, add_up_outputs<2>, add_up_outputs<3>, add_up_outputs<4>};

// One line of outputs along the last axis.
class LineOfOutputs {
 public:
  explicit LineOfOutputs(const DepthwiseConv& conv)
      : conv_(conv),
        channels_(conv.problem.out_channels),
        row_taps_(product(conv.problem.kernel, 0, conv.problem.spatial_rank() - 1)),
        column_taps_(conv.problem.kernel.back()),
        taps_(static_cast<size_t>(row_taps_ * column_taps_ * kAtOnce)) {}

  template <class Apply>
  void run(int64_t line, const float* x, const float* addend, const Apply& apply, bool finishes,
           ActivationBounds bounds, float* y) {
    const int64_t width = conv_.problem.out_spatial.back();
    for (int64_t column = 0; column < width;) {
      const int64_t count = std::min(kAtOnce, width - column);
      find_taps(line, column, count, x);
      float* const to = y + column * channels_;
      kAddUp[count - 1](taps_.data(), row_taps_ * column_taps_, conv_.filters->data(), channels_, conv_.bias, bounds,
                        to);
      if (finishes)
        activate_rows<0>(1, count * channels_, 0, addend == nullptr ? nullptr : addend + column * channels_, apply, to);
      column += count;
    }
  }

 private:
  void find_taps(int64_t line, int64_t column, int64_t count, const float* x) {
    const float** tap = taps_.data();
    for (int64_t i = 0; i < row_taps_; ++i) {
      const int64_t above = conv_.lines[static_cast<size_t>(line * row_taps_ + i)];
      for (int64_t j = 0; j < column_taps_; ++j, tap += kAtOnce) {
        const int64_t* const next_to = conv_.columns.data() + column * column_taps_ + j;
        for (int64_t output = 0; output < count; ++output) {
          const int64_t across = next_to[output * column_taps_];
          tap[output] = above < 0 || across < 0 ? conv_.zeros.data() : x + above + across;
        }
      }
    }
  }

  const DepthwiseConv& conv_;
  const int64_t channels_, row_taps_, column_taps_;
  std::vector<const float*> taps_;
};

}  // namespace

std::shared_ptr<const DepthwiseConv> make_depthwise_conv(Queue<Cpu>& queue, const ConvProblem& problem,
                                                         const float* filters, const float* bias) {
  const int64_t channels = problem.in_channels, taps = product(problem.kernel), rank = problem.spatial_rank();
  const bool fits = has_float_panels() && problem.groups == channels && problem.out_channels == channels &&
                    problem.x_channels_last && problem.y_channels_last && problem.filters_are_constant;
  if (!fits || !std::all_of(filters, filters + channels * taps, [](float value) { return std::isfinite(value); }))
    return nullptr;
  auto conv = std::make_shared<DepthwiseConv>();
  conv->problem = problem;
  conv->bias = bias;
  conv->lines = offsets_along(problem, 0, rank - 1, problem.in_spatial.back() * channels);
  conv->columns = offsets_along(problem, rank - 1, rank, channels);
  conv->zeros.resize(static_cast<size_t>(channels));
  CacheKey key("depthwise filters");
  key.add(filters).add(channels).add(taps);
  conv->filters = queue.weights().get_shared<AlignedFloats>(key.text(), [&] {
    queue.weights().add_bytes(channels * taps * static_cast<int64_t>(sizeof(float)));
    return std::make_shared<AlignedFloats>(by_tap(channels, taps, filters));
  });
  return conv;
}

void run_depthwise_conv(const DepthwiseConv& conv, const float* x, const Addend& addend, float* y) {
  const ConvProblem& problem = conv.problem;
  const int64_t width = problem.out_spatial.back(), channels = problem.out_channels;
  const int64_t lines = product(problem.out_spatial) / width, inputs = product(problem.in_spatial) * channels;
  const bool has_addend = addend.values != nullptr;
  Activation activation = has_addend ? addend.activation : problem.activation;
  // Bounds follow the addend.
  const std::optional<ActivationBounds> bounds = has_addend ? std::nullopt : bounds_of(activation);
  if (bounds.has_value()) activation = {};
  const bool finishes = has_addend || activation.kind != Activation::Kind::none;
  visit_activation_of_conv(activation, [&](auto apply) {
    parallel_for(problem.batch * lines, width * channels * (product(problem.kernel) + 4) / 16,
                 [&](int64_t begin, int64_t end) {
                   LineOfOutputs outputs(conv);
                   for (int64_t line = begin; line < end; ++line) {
                     const int64_t at = line * width * channels;
                     const float* const others = addend.values == nullptr ? nullptr : addend.values + at;
                     outputs.run(line % lines, x + line / lines * inputs, others, apply, finishes,
                                 bounds.value_or(ActivationBounds{}), y + at);
                   }
                 });
  });
}

}  // namespace parallax::runtime
