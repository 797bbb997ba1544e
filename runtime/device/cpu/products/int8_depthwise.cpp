// SPDX-License-Identifier: Apache-2.0
// Lacing leaves channel 16 l + 4 v + i of a block in vector v, lane 4 l + i.
#include "runtime/device/cpu/products/int8_depthwise.h"

#include <algorithm>
#include <cstring>

#include "inspector/base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define PX_INT8_LINES __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#endif

namespace parallax::runtime {
namespace {

constexpr int64_t kChannelBlock = 64;                // channels
constexpr int64_t kInterleaved = 4 * kChannelBlock;  // bytes of four lines

int32_t number_of(const QuantizedValues& quantized, int64_t index) {
  const std::byte element = quantized.data[index];
  return (quantized.is_signed ? static_cast<int8_t>(element) : static_cast<uint8_t>(element)) - quantized.zero;
}

}  // namespace

bool suits_int8_filters(const ConvProblem& problem, const QuantizedValues& filters) {
  if (problem.spatial_rank() > 2) return false;
  if (filters.is_signed && filters.zero == 0) return true;
  for (int64_t i = 0; i < problem.out_channels * product(problem.kernel); ++i) {
    const int32_t number = number_of(filters, i);
    if (number < INT8_MIN || number > INT8_MAX) return false;
  }
  return true;
}

std::shared_ptr<Int8Filters> pack_int8_filters(const ConvProblem& problem, const Int8Im2colShape& im2col,
                                               const QuantizedValues& filters) {
  auto made = std::make_shared<Int8Filters>(Int8Filters{problem.out_channels, 1, 1, 0, 0, 1, 1, AlignedBytes(0), {}});
  const int64_t last = problem.spatial_rank() - 1;
  made->columns = problem.kernel[last];
  made->column_bytes = im2col.steps[last];
  made->column_step = problem.strides[last];
  made->column_reach = problem.dilations[last];
  if (last == 1) {
    made->lines = problem.kernel[0];
    made->line_bytes = im2col.steps[0] * problem.dilations[0];
  }
  const int64_t fours = made->fours(), columns = made->columns;
  const int64_t bytes = made->blocks() * fours * columns * kInterleaved;
  made->numbers = AlignedBytes(bytes);
  std::memset(made->numbers.data(), 0, static_cast<size_t>(bytes));
  made->sums.assign(static_cast<size_t>(made->channels), 0);
  for (int64_t channel = 0; channel < made->channels; ++channel) {
    const int64_t within = channel % kChannelBlock, vector = within % 16 / 4, lane = within / 16 * 4 + within % 4;
    for (int64_t tap = 0; tap < made->lines * columns; ++tap) {
      const int64_t line = tap / columns, column = tap % columns;
      const int32_t number = number_of(filters, channel * made->lines * columns + tap);
      const int64_t four = (channel / kChannelBlock * fours + line / 4) * columns + column;
      made->numbers.data()[four * kInterleaved + vector * kChannelBlock + lane * 4 + line % 4] =
          static_cast<uint8_t>(number);
      made->sums[static_cast<size_t>(channel)] += number;
    }
  }
  return made;
}

std::vector<int32_t> int8_filter_starts(const Int8Filters& filters, int32_t zero, const int64_t* bias) {
  std::vector<int32_t> starts(static_cast<size_t>(filters.blocks() * kChannelBlock));
  for (int64_t i = 0; i < filters.channels; ++i) {
    const int64_t more = bias == nullptr ? 0 : bias[i];
    starts[static_cast<size_t>(i)] = static_cast<int32_t>(more - int64_t{zero} * filters.sums[static_cast<size_t>(i)]);
  }
  return starts;
}

Int8FilterLine::Int8FilterLine(const Int8Filters& filters, int64_t width)
    : filters_(filters),
      width_(width),
      im2col_columns_((width - 1) * filters.column_step + (filters.columns - 1) * filters.column_reach + 1),
      interleaved_(AlignedBytes::of_task(filters.fours() * im2col_columns_ * kInterleaved)),
      sums_(AlignedNumbers<int32_t>::of_task(width * filters.blocks() * kChannelBlock)) {}

#if defined(__x86_64__)

namespace {

// GCC 12 warns of what the intrinsics without a mask leave undefined.
constexpr __mmask64 kAllBytes = ~uint64_t{0};
constexpr __mmask32 kAllPairs = ~uint32_t{0};
constexpr __mmask16 kAllFours = 0xFFFF;

// Columns of four lines, each of 64 channels.
PX_INT8_LINES void lace(const uint8_t* const (&lines)[4], int64_t columns, int64_t step, uint8_t* to) {
  for (int64_t column = 0; column < columns; ++column, to += kInterleaved) {
    const __m512i a = _mm512_loadu_si512(lines[0] + column * step), b = _mm512_loadu_si512(lines[1] + column * step);
    const __m512i c = _mm512_loadu_si512(lines[2] + column * step), d = _mm512_loadu_si512(lines[3] + column * step);
    const __m512i low_ab = _mm512_maskz_unpacklo_epi8(kAllBytes, a, b),
                  high_ab = _mm512_maskz_unpackhi_epi8(kAllBytes, a, b);
    const __m512i low_cd = _mm512_maskz_unpacklo_epi8(kAllBytes, c, d),
                  high_cd = _mm512_maskz_unpackhi_epi8(kAllBytes, c, d);
    _mm512_store_si512(to, _mm512_maskz_unpacklo_epi16(kAllPairs, low_ab, low_cd));
    _mm512_store_si512(to + kChannelBlock, _mm512_maskz_unpackhi_epi16(kAllPairs, low_ab, low_cd));
    _mm512_store_si512(to + 2 * kChannelBlock, _mm512_maskz_unpacklo_epi16(kAllPairs, high_ab, high_cd));
    _mm512_store_si512(to + 3 * kChannelBlock, _mm512_maskz_unpackhi_epi16(kAllPairs, high_ab, high_cd));
  }
}

// Lanes of 128 bits of four vectors transposed: channels in their order.
PX_INT8_LINES void store_in_order(const __m512i (&sums)[4], int32_t* to) {
  const __m512i a = _mm512_maskz_shuffle_i32x4(kAllFours, sums[0], sums[1], 0x44);
  const __m512i b = _mm512_maskz_shuffle_i32x4(kAllFours, sums[0], sums[1], 0xEE);
  const __m512i c = _mm512_maskz_shuffle_i32x4(kAllFours, sums[2], sums[3], 0x44);
  const __m512i d = _mm512_maskz_shuffle_i32x4(kAllFours, sums[2], sums[3], 0xEE);
  _mm512_store_si512(to, _mm512_maskz_shuffle_i32x4(kAllFours, a, c, 0x88));
  _mm512_store_si512(to + 16, _mm512_maskz_shuffle_i32x4(kAllFours, a, c, 0xDD));
  _mm512_store_si512(to + 32, _mm512_maskz_shuffle_i32x4(kAllFours, b, d, 0x88));
  _mm512_store_si512(to + 48, _mm512_maskz_shuffle_i32x4(kAllFours, b, d, 0xDD));
}

struct InterleavedLine {
  const uint8_t* interleaved;
  int64_t im2col_columns, step, reach;
  const uint8_t* numbers;
  int64_t fours, columns;
  const int32_t* starts;
  int64_t width;
  int32_t* sums;
  int64_t sum_step;
};

template <int kColumns, int kFours>  // 0: any
PX_INT8_LINES void filter_line(const InterleavedLine& line) {
  const int64_t columns = kColumns == 0 ? line.columns : kColumns, fours = kFours == 0 ? line.fours : kFours;
  for (int64_t location = 0; location < line.width; ++location) {
    __m512i sums[4];
#pragma GCC unroll 4
    for (int vector = 0; vector < 4; ++vector) sums[vector] = _mm512_load_si512(line.starts + 16 * vector);
    const uint8_t* numbers = line.numbers;
    for (int64_t four = 0; four < fours; ++four) {
      const uint8_t* interleaved =
          line.interleaved + (four * line.im2col_columns + location * line.step) * kInterleaved;
      for (int64_t column = 0; column < columns;
           ++column, interleaved += line.reach * kInterleaved, numbers += kInterleaved) {
#pragma GCC unroll 4
        for (int vector = 0; vector < 4; ++vector)
          sums[vector] = _mm512_dpbusd_epi32(sums[vector], _mm512_load_si512(interleaved + vector * kChannelBlock),
                                             _mm512_load_si512(numbers + vector * kChannelBlock));
      }
    }
    store_in_order(sums, line.sums + location * line.sum_step);
  }
}

}  // namespace

void Int8FilterLine::run(const uint8_t* first, const int32_t* starts, const Int8Sums& target) {
  const Int8Filters& filters = filters_;
  const int64_t fours = filters.fours(), padded = filters.blocks() * kChannelBlock;
  int32_t* const sums = sums_.data();
  for (int64_t block = 0; block < filters.blocks(); ++block) {
    for (int64_t four = 0; four < fours; ++four) {
      const uint8_t* lines[4];
      for (int64_t line = 0; line < 4; ++line) {  // those after the filter meet zeros in it
        const int64_t tap = 4 * four + line < filters.lines ? 4 * four + line : 0;
        lines[line] = first + block * kChannelBlock + tap * filters.line_bytes;
      }
      lace(lines, im2col_columns_, filters.column_bytes, interleaved_.data() + four * im2col_columns_ * kInterleaved);
    }
    alignas(64) int32_t interleaved_starts[kChannelBlock];
    for (int64_t i = 0; i < kChannelBlock; ++i)
      interleaved_starts[i % 16 / 4 * 16 + i / 16 * 4 + i % 4] = starts[block * kChannelBlock + i];
    const InterleavedLine line{interleaved_.data(),
                               im2col_columns_,
                               filters.column_step,
                               filters.column_reach,
                               filters.numbers.data() + block * fours * filters.columns * kInterleaved,
                               fours,
                               filters.columns,
                               interleaved_starts,
                               width_,
                               sums + block * kChannelBlock,
                               padded};
    if (filters.columns == 3 && fours == 1) {
      filter_line<3, 1>(line);
    } else {
      filter_line<0, 0>(line);
    }
  }
  finish_int8_sums(width_, filters.channels, padded, sums, target.scales, target);
}

#else

void Int8FilterLine::run(const uint8_t*, const int32_t*, const Int8Sums&) { PX_CHECK(false); }

#endif

}  // namespace parallax::runtime
