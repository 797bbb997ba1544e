// SPDX-License-Identifier: Apache-2.0
// Each task makes some rows of the result, channels last, and turns them where y is not.
#include "runtime/device/cpu/products/int8_conv.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/products/int8_depthwise.h"
#include "runtime/device/cpu/products/int8_im2col.h"
#include "runtime/device/cpu/products/int8_panels.h"
#include "runtime/device/cpu/transpose_blocks.h"
#include "runtime/device/cpu/weight_cache.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kMostPanelTerms = 33000;   // 255 * 255 * 33000 < 2^31
constexpr int64_t kLeastPanelFilters = 4;    // of a group
constexpr int64_t kPanelRows = 192;          // of one task
constexpr int64_t kPanelsOfTask = 8;         // where there are few rows
constexpr int64_t kElementsTransposed = 64;  // of one task
constexpr int64_t kPanelProductsPerNanosecond = 200;

bool is_depthwise_of_bytes(const ConvProblem& problem) {
  return problem.groups == problem.in_channels && problem.groups == problem.out_channels;
}

bool are_finite(const std::vector<float>& scales) {
  return std::all_of(scales.begin(), scales.end(), [](float scale) { return std::isfinite(scale); });
}

// One scale for each column, filled up to whole panels.
std::vector<float> scales_of_columns(const Int8Result& result, int64_t n) {
  std::vector<float> scales(static_cast<size_t>((n + kInt8PanelColumns - 1) / kInt8PanelColumns * kInt8PanelColumns));
  if (result.scales.empty()) return scales;
  for (int64_t i = 0; i < n; ++i)
    scales[static_cast<size_t>(i)] = result.scales[result.scales.size() == 1 ? 0 : static_cast<size_t>(i)];
  return scales;
}

int64_t element_size(DType dtype) { return dtype == DType::int32 ? 4 : 1; }

// How rows and panels are split into tasks.
struct PanelTasks {
  PanelTasks(int64_t row_count, int64_t panel_count)
      : rows(row_count), panels(panel_count), chunks((row_count + kPanelRows - 1) / kPanelRows) {
    at_once = chunks < 4 * thread_count() ? std::min(panels, kPanelsOfTask) : panels;
    parts = at_once == 0 ? 0 : (panels + at_once - 1) / at_once;
  }
  // f(first row, last row, first panel, last panel)
  template <class F>
  void run(int64_t k, const F& f) const {
    const int64_t products = std::min(kPanelRows, rows) * at_once * kInt8PanelColumns * k;
    parallel_for(chunks * parts, products / kPanelProductsPerNanosecond + 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t row = task / parts * kPanelRows, panel = task % parts * at_once;
        f(row, std::min(rows, row + kPanelRows), panel, std::min(panels, panel + at_once));
      }
    });
  }

  int64_t rows, panels, chunks, at_once = 0, parts = 0;
};

// ---- Products of matrices ----

std::shared_ptr<Int8Panels> panels_of_matrix(Queue<Cpu>& queue, const GemmProblem& problem, const QuantizedValues& b) {
  CacheKey key("int8 panels");
  key.add(b.data).add(problem.n).add(problem.k).add(b.is_signed).add(b.zero);
  return queue.weights().get_shared<Int8Panels>(key.text(), [&] {
    ByteSource source{b.data, b.is_signed, b.zero, problem.n * problem.k};
    source.row_step = problem.n;
    source.column_step = 1;
    auto panels = pack_int8_panels(problem.n, 1, problem.k, source);
    queue.weights().add_bytes(panels->panel_count() * panels->panel_bytes());
    return panels;
  });
}

// The left side as uint8 with some bytes after it; `copy` owns it where it is one.
const uint8_t* unsigned_rows(const QuantizedValues& a, int64_t rows, int64_t k, std::unique_ptr<AlignedBytes>& copy) {
  const auto* const values = reinterpret_cast<const uint8_t*>(a.data);
  if (!a.is_signed && k % 4 == 0) return values;
  copy = std::make_unique<AlignedBytes>(rows * k + kByteSlack);
  const uint8_t flip = a.is_signed ? 0x80 : 0;
  uint8_t* const target = copy->data();
  for (int64_t i = 0; i < rows * k; ++i) target[i] = static_cast<uint8_t>(values[i] ^ flip);
  std::memset(target + rows * k, 0, static_cast<size_t>(kByteSlack));
  return target;
}

// ---- Convolutions ----

// The prepared form of a convolution for one shape, kept with its filters.
struct ReadyInt8Conv {
  explicit ReadyInt8Conv(const ConvProblem& problem) : im2col(problem) {}

  Int8Im2colShape im2col;
  std::vector<int64_t> segments;
  std::vector<std::shared_ptr<Int8Panels>> groups;
  std::shared_ptr<Int8Filters> filters;  // instead, where there is one for each channel
};

// The taps of a filter as runs of bytes of the im2col buffer: along the last axis all at once where they are
// contiguous.
struct TapRuns {
  explicit TapRuns(const ConvProblem& problem) {
    const int64_t rank = problem.spatial_rank();
    is_line = problem.groups == 1 && problem.dilations[rank - 1] == 1;
    outer = problem.kernel;
    if (is_line) outer[rank - 1] = 1;
    count = product(outer);
    taps = is_line ? problem.kernel[rank - 1] : 1;
  }
  bool is_line = false;
  Ints outer;         // taps along each axis, of which each is a run
  int64_t count = 0;  // of runs
  int64_t taps = 1;   // of a run
};

std::vector<int64_t> segments_of(const ConvProblem& problem, const Int8Im2colShape& im2col, const TapRuns& runs) {
  std::vector<int64_t> segments;
  int64_t position[Shape::kMaxRank] = {};
  for (int64_t run = 0; run < runs.count; ++run) {
    int64_t at = 0, rest = run;
    for (int64_t axis = problem.spatial_rank() - 1; axis >= 0; --axis) {
      position[axis] = rest % runs.outer[axis];
      rest /= runs.outer[axis];
      at += position[axis] * problem.dilations[axis] * im2col.steps[axis];
    }
    segments.push_back(at);
  }
  return segments;
}

std::shared_ptr<ReadyInt8Conv> make_ready_conv(Queue<Cpu>& queue, const ConvProblem& problem,
                                               const QuantizedValues& filters) {
  auto ready = std::make_shared<ReadyInt8Conv>(problem);
  if (is_depthwise_of_bytes(problem)) {
    ready->filters = pack_int8_filters(problem, ready->im2col, filters);
    return ready;
  }
  const TapRuns runs(problem);
  ready->segments = segments_of(problem, ready->im2col, runs);
  const int64_t channels = problem.in_channels / problem.groups, taps = product(problem.kernel);
  const int64_t n = problem.out_channels / problem.groups;
  for (int64_t group = 0; group < problem.groups; ++group) {
    // Row r of a segment is tap r / channels, channel r % channels.
    ByteSource source{filters.data + group * n * channels * taps, filters.is_signed, filters.zero, n * channels * taps};
    source.segment_step = runs.taps;
    source.row_step = 1;
    source.column_step = channels * taps;
    source.fine = channels;
    source.fine_step = taps;
    ready->groups.push_back(pack_int8_panels(n, runs.count, runs.taps * channels, source));
    queue.weights().add_bytes(ready->groups.back()->panel_count() * ready->groups.back()->panel_bytes());
  }
  return ready;
}

std::shared_ptr<ReadyInt8Conv> ready_conv(Queue<Cpu>& queue, const ConvProblem& problem,
                                          const QuantizedValues& filters) {
  CacheKey key("int8 conv");
  key.add(filters.data).add(filters.is_signed).add(filters.zero);
  key.add(problem.in_channels).add(problem.out_channels).add(problem.groups);
  key.add_all(problem.in_spatial).add_all(problem.out_spatial).add_all(problem.kernel).add_all(problem.strides);
  key.add_all(problem.dilations).add_all(problem.pads_begin).add_all(problem.pads_end);
  return queue.weights().get<ReadyInt8Conv>(key.text(), [&] { return make_ready_conv(queue, problem, filters); });
}

// Rows [first, last) of sums or quantized values, `columns` of them from channel `channel` on, to where y has them.
void transpose_rows(const ConvProblem& problem, const Int8Result& y, int64_t sample, int64_t channel, int64_t columns,
                    int64_t first, int64_t last, const std::byte* rows) {
  const int64_t locations = product(problem.out_spatial), size = element_size(y.dtype);
  std::byte* const target = y.data + ((sample * problem.out_channels + channel) * locations + first) * size;
  if (size == 1) {
    transpose(reinterpret_cast<uint8_t*>(target), locations, reinterpret_cast<const uint8_t*>(rows), columns, columns,
              last - first);
  } else {
    transpose(reinterpret_cast<int32_t*>(target), locations, reinterpret_cast<const int32_t*>(rows), columns, columns,
              last - first);
  }
}

void multiply_group(const ConvProblem& problem, const ReadyInt8Conv& ready, const Int8Rows& left, const Int8Result& y,
                    int64_t sample, int64_t group) {
  const Int8Panels& panels = *ready.groups[static_cast<size_t>(group)];
  const int64_t locations = product(problem.out_spatial), n = panels.n, size = element_size(y.dtype);
  Int8Result its = y;
  if (its.scales.size() > 1) its.scales.assign(y.scales.begin() + group * n, y.scales.begin() + (group + 1) * n);
  const std::vector<float> scales = scales_of_columns(its, n);
  const std::vector<int32_t> starts = byte_starts(panels, left.zero, y.bias == nullptr ? nullptr : y.bias + group * n);
  PanelTasks(locations, panels.panel_count())
      .run(panels.segments * panels.depth, [&](int64_t row, int64_t last_row, int64_t panel, int64_t last_panel) {
        const int64_t column = panel * kInt8PanelColumns,
                      columns = std::min(n, last_panel * kInt8PanelColumns) - column;
        Int8Sums sums{nullptr, columns, y.dtype, scales.data(), are_finite(scales), y.zero};
        if (problem.y_channels_last) {
          sums.row_step = problem.out_channels;
          sums.data = y.data + ((sample * locations + row) * problem.out_channels + group * n + column) * size;
          return multiply_bytes(left, panels, starts.data(), row, last_row, panel, last_panel, sums);
        }
        auto rows = AlignedBytes::of_task((last_row - row) * columns * size);
        sums.data = reinterpret_cast<std::byte*>(rows.data());
        multiply_bytes(left, panels, starts.data(), row, last_row, panel, last_panel, sums);
        transpose_rows(problem, y, sample, group * n + column, columns, row, last_row, sums.data);
      });
}

// ---- One filter a channel: lines of the result, transposed some at a time ----

void filter_im2col(const ConvProblem& problem, const ReadyInt8Conv& ready, const uint8_t* padded, int32_t zero,
                   const Int8Result& y, int64_t sample) {
  const int64_t channels = problem.in_channels, size = element_size(y.dtype);
  const std::vector<float> scales = scales_of_columns(y, channels);
  const Int8Filters& filters = *ready.filters;
  const std::vector<int32_t> starts = int8_filter_starts(filters, zero, y.bias);
  const int64_t width = problem.out_spatial.back(), lines = product(problem.out_spatial) / width;
  const int64_t at_once = (kElementsTransposed + width - 1) / width, groups = (lines + at_once - 1) / at_once;
  const bool finite = are_finite(scales);
  parallel_for(groups, at_once * width * channels * product(problem.kernel) / 32 + 1, [&](int64_t begin, int64_t end) {
    auto rows = AlignedBytes::of_task(problem.y_channels_last ? 0 : at_once * width * channels * size);
    Int8FilterLine line(filters, width);
    for (int64_t first = begin * at_once; first < std::min(lines, end * at_once); first += at_once) {
      const int64_t last = std::min(lines, first + at_once);
      std::byte* const target = problem.y_channels_last ? y.data + (sample * lines + first) * width * channels * size
                                                        : reinterpret_cast<std::byte*>(rows.data());
      for (int64_t index = first; index < last; ++index) {
        const Int8Sums sums{
            target + (index - first) * width * channels * size, channels, y.dtype, scales.data(), finite, y.zero};
        line.run(padded + ready.im2col.locations[static_cast<size_t>(index * width)], starts.data(), sums);
      }
      if (!problem.y_channels_last)
        transpose_rows(problem, y, sample, 0, channels, first * width, last * width, target);
    }
  });
}

}  // namespace

bool suits_int8_panels(const GemmProblem& problem, const QuantizedValues& b) {
  return has_int8_panels() && b.is_constant && problem.k <= kMostPanelTerms && problem.k > 0 && problem.n > 0;
}

bool suits_int8_panels(const ConvProblem& problem, const QuantizedValues& filters) {
  if (!has_int8_panels() || !filters.is_constant || problem.spatial_rank() < 1) return false;
  const int64_t terms = problem.in_channels / problem.groups * product(problem.kernel);
  const bool pads_fit =
      std::all_of(problem.pads_begin.begin(), problem.pads_begin.end(), [](int64_t pad) { return pad >= 0; }) &&
      std::all_of(problem.pads_end.begin(), problem.pads_end.end(), [](int64_t pad) { return pad >= 0; });
  if (!pads_fit || terms == 0 || terms > kMostPanelTerms || product(problem.out_spatial) == 0) return false;
  if (is_depthwise_of_bytes(problem)) return suits_int8_filters(problem, filters);
  return problem.out_channels / problem.groups >= (problem.groups == 1 ? kLeastPanelFilters : kInt8PanelColumns);
}

Status gemm(Queue<Cpu>& queue, const GemmProblem& problem, const QuantizedValues& a, const QuantizedValues& b,
            const Int8Result& c) {
  const int64_t m = problem.m, n = problem.n, k = problem.k;
  const std::vector<float> scales = scales_of_columns(c, n);
  const bool finite = are_finite(scales);
  std::vector<int64_t> locations(static_cast<size_t>(m));
  for (int64_t row = 0; row < m; ++row) locations[static_cast<size_t>(row)] = row * k;
  const int64_t segment = 0;
  for (int64_t i = 0; i < problem.batch(); ++i) {
    QuantizedValues left = a, right = b;
    left.data += problem.a_offsets[i];
    right.data += problem.b_offsets[i];
    const auto panels = panels_of_matrix(queue, problem, right);
    std::unique_ptr<AlignedBytes> copy;
    const Int8Rows rows{unsigned_rows(left, m, k, copy), a.is_signed ? a.zero + 128 : a.zero, locations.data(),
                        &segment};
    const std::vector<int32_t> starts = byte_starts(*panels, rows.zero, c.bias);
    std::byte* const target = c.data + i * m * n * element_size(c.dtype);
    PanelTasks(m, panels->panel_count()).run(k, [&](int64_t row, int64_t last_row, int64_t panel, int64_t last_panel) {
      const Int8Sums sums{target + (row * n + panel * kInt8PanelColumns) * element_size(c.dtype),
                          n,
                          c.dtype,
                          scales.data(),
                          finite,
                          c.zero};
      multiply_bytes(rows, *panels, starts.data(), row, last_row, panel, last_panel, sums);
    });
  }
  return {};
}

Status conv(Queue<Cpu>& queue, const ConvProblem& problem, const QuantizedValues& x, const QuantizedValues& filters,
            const Int8Result& y) {
  const auto ready = ready_conv(queue, problem, filters);
  const int64_t unpadded = ready->im2col.is_padded ? problem.in_channels * product(problem.in_spatial) : 0;
  const auto memory = PX_TRY(queue.pool().allocate(static_cast<size_t>(ready->im2col.bytes + kByteSlack + unpadded)));
  auto* const padded = reinterpret_cast<uint8_t*>(memory.get());
  uint8_t* const scratch = padded + ready->im2col.bytes + kByteSlack;
  std::memset(padded + ready->im2col.bytes, 0, static_cast<size_t>(kByteSlack));
  const int32_t zero = x.is_signed ? x.zero + 128 : x.zero;
  const int64_t channels = problem.in_channels / problem.groups;
  for (int64_t sample = 0; sample < problem.batch; ++sample) {
    fill_int8_im2col(problem, ready->im2col, x, sample, scratch, padded);
    if (ready->filters != nullptr) {
      filter_im2col(problem, *ready, padded, zero, y, sample);
      continue;
    }
    for (int64_t group = 0; group < problem.groups; ++group) {
      const Int8Rows left{padded + group * channels, zero, ready->im2col.locations.data(), ready->segments.data()};
      multiply_group(problem, *ready, left, y, sample, group);
    }
  }
  return {};
}

}  // namespace parallax::runtime
