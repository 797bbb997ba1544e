// SPDX-License-Identifier: Apache-2.0
// Tiles of few rows by up to four panels, whose sums stay in registers along all of a row.
#include "runtime/device/cpu/products/int8_panels.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "inspector/base/check.h"
#include "inspector/base/cpu_features.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/products/quantize_lines.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define PX_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#endif

namespace parallax::runtime {
namespace {

constexpr int kMostTilePanels = 4;
constexpr int64_t kTileColumns = kInt8PanelColumns;

// The number that is subtracted from each value, so that the difference is an int8: its zero point where all
// differences from that are.
int32_t taken_from(const ByteSource& b) {
  if (b.is_signed && b.zero == 0) return 0;
  const auto number = [&](int64_t i) {
    return b.is_signed ? static_cast<int32_t>(static_cast<int8_t>(b.quantized[i]))
                       : static_cast<int32_t>(b.quantized[i]);
  };
  int32_t least = b.zero, most = b.zero;
  for (int64_t i = 0; i < b.count; ++i) {
    least = std::min(least, number(i));
    most = std::max(most, number(i));
  }
  if (least - b.zero >= INT8_MIN && most - b.zero <= INT8_MAX) return b.zero;
  return b.is_signed ? 0 : -INT8_MIN;
}

// One panel: `fours` rows of four numbers for each column.
void pack_int8_panel(const Int8Panels& panels, const ByteSource& b, int32_t taken, int64_t panel, int8_t* to,
                     int32_t* sums) {
  const int64_t column = panel * kTileColumns, columns = std::min(kTileColumns, panels.n - column);
  for (int64_t segment = 0; segment < panels.segments; ++segment) {
    for (int64_t row = 0; row < panels.depth; ++row) {
      const std::byte* const row_begin = b.quantized + segment * b.segment_step + row / b.fine * b.row_step +
                                         row % b.fine * b.fine_step + column * b.column_step;
      int8_t* const target = to + row / 4 * 4 * kTileColumns + row % 4;
      for (int64_t i = 0; i < columns; ++i) {
        const std::byte element = row_begin[i * b.column_step];
        const int32_t number = b.is_signed ? static_cast<int8_t>(element) : static_cast<uint8_t>(element);
        target[4 * i] = static_cast<int8_t>(number - taken);
        sums[i] += number - taken;
      }
    }
    to += (panels.depth + 3) / 4 * 4 * kTileColumns;
  }
}

}  // namespace

std::shared_ptr<Int8Panels> pack_int8_panels(int64_t n, int64_t segments, int64_t depth, const ByteSource& b) {
  auto panels = std::make_shared<Int8Panels>(Int8Panels{n, segments, depth, 0, AlignedBytes(0), {}});
  const int64_t bytes = panels->panel_count() * panels->panel_bytes();
  panels->numbers = AlignedBytes(bytes);
  std::memset(panels->numbers.data(), 0, static_cast<size_t>(bytes));
  panels->column_sums.assign(static_cast<size_t>(panels->panel_count() * kTileColumns), 0);
  const int32_t taken = taken_from(b);
  panels->zero = b.zero - taken;
  for (int64_t panel = 0; panel < panels->panel_count(); ++panel) {
    pack_int8_panel(*panels, b, taken, panel,
                    reinterpret_cast<int8_t*>(panels->numbers.data() + panel * panels->panel_bytes()),
                    panels->column_sums.data() + panel * kTileColumns);
  }
  return panels;
}

std::vector<int32_t> byte_starts(const Int8Panels& b, int32_t left_zero, const int64_t* bias) {
  // The sum of (x - l)(w - r) is that of x w, less l times the column's sum, less r times the row's, plus l r k. Parts
  // may leave int32, the whole does not: they wrap.
  std::vector<int32_t> starts(b.column_sums.size());
  const auto k = static_cast<uint32_t>(b.segments * b.depth);
  const auto zeros = static_cast<uint32_t>(left_zero) * static_cast<uint32_t>(b.zero) * k;
  for (size_t i = 0; i < starts.size(); ++i) {
    const bool has_bias = bias != nullptr && static_cast<int64_t>(i) < b.n;
    const auto more = has_bias ? static_cast<uint32_t>(bias[i]) : 0U;
    starts[i] =
        static_cast<int32_t>(more + zeros - static_cast<uint32_t>(left_zero) * static_cast<uint32_t>(b.column_sums[i]));
  }
  return starts;
}

void finish_int8_sums(int64_t rows, int64_t columns, int64_t step, const int32_t* sums, const float* scales,
                      const Int8Sums& target) {
  if (target.dtype != DType::int32) {
    const QuantizedColumns lines{rows, columns, step, target.row_step, scales, target.are_finite, target.zero};
    return requantize_columns(lines, sums, target.dtype, target.data);
  }
  constexpr auto kBytes = static_cast<int64_t>(sizeof(int32_t));
  for (int64_t row = 0; row < rows; ++row) {
    std::memcpy(target.data + row * target.row_step * kBytes, sums + row * step, static_cast<size_t>(columns * kBytes));
  }
}

#if defined(__x86_64__)

bool has_int8_panels() { return has_feature(CpuFeature::avx512_vnni); }

namespace {

struct Int8Tile {
  const uint8_t* base;
  const int64_t* locations;  // of the tile's rows
  const int64_t* segments;
  int64_t segment_count;
  int64_t fours;      // of a segment
  int32_t last_ones;  // a byte of 1 for each row of the last four
  const uint8_t* panels;
  int64_t panel_bytes;
  const int32_t* starts;
  int32_t right_zero;
  int32_t* sums;  // [rows, panels * 16]
};

template <int kRows, int kPanels, bool kTotals>
PX_VNNI void multiply_int8_tile(const Int8Tile& tile) {
  __m512i sums[kRows][kPanels], totals[kRows];
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
    totals[row] = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int panel = 0; panel < kPanels; ++panel)
      sums[row][panel] = _mm512_loadu_si512(tile.starts + panel * kTileColumns);
  }
  const uint8_t* numbers = tile.panels;
  for (int64_t segment = 0; segment < tile.segment_count; ++segment) {
    const uint8_t* rows[kRows];
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) rows[row] = tile.base + tile.locations[row] + tile.segments[segment];
    for (int64_t four = 0; four < tile.fours; ++four, numbers += 4 * kTileColumns) {
      __m512i right[kPanels];
#pragma GCC unroll 4
      for (int panel = 0; panel < kPanels; ++panel)
        right[panel] = _mm512_load_si512(numbers + panel * tile.panel_bytes);
      const __m512i ones = _mm512_set1_epi32(four + 1 < tile.fours ? 0x01010101 : tile.last_ones);
#pragma GCC unroll 16
      for (int row = 0; row < kRows; ++row) {
        int32_t left_four;
        std::memcpy(&left_four, rows[row] + 4 * four, sizeof(left_four));
        const __m512i left = _mm512_set1_epi32(left_four);
#pragma GCC unroll 4
        for (int panel = 0; panel < kPanels; ++panel)
          sums[row][panel] = _mm512_dpbusd_epi32(sums[row][panel], left, right[panel]);
        if constexpr (kTotals) totals[row] = _mm512_dpbusd_epi32(totals[row], left, ones);
      }
    }
  }
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
    for (int panel = 0; panel < kPanels; ++panel) {
      __m512i sum = sums[row][panel];
      if constexpr (kTotals)
        sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(totals[row], _mm512_set1_epi32(tile.right_zero)));
      _mm512_store_si512(tile.sums + (row * kPanels + panel) * kTileColumns, sum);
    }
  }
}

int32_t ones_of(int64_t depth) { return depth % 4 == 0 ? 0x01010101 : 0x01010101 >> 8 * (4 - depth % 4); }

using MultiplyInt8Tile = void (*)(const Int8Tile&);
constexpr int kMostTileRows = 8;

template <int kPanels, bool kTotals, int... kRows>
constexpr std::array<MultiplyInt8Tile, kMostTileRows> int8_tiles_of(std::integer_sequence<int, kRows...>) {
  return {multiply_int8_tile<kRows + 1, kPanels, kTotals>...};
}
template <bool kTotals, int... kPanels>
constexpr auto all_int8_tiles(std::integer_sequence<int, kPanels...>) {
  return std::array{int8_tiles_of<kPanels + 1, kTotals>(std::make_integer_sequence<int, kMostTileRows>())...};
}
constexpr std::array<std::array<MultiplyInt8Tile, kMostTileRows>, kMostTilePanels> kInt8Tiles[2] = {
    all_int8_tiles<false>(std::make_integer_sequence<int, kMostTilePanels>()),
    all_int8_tiles<true>(std::make_integer_sequence<int, kMostTilePanels>())};

// As many rows as leave their sums in registers.
constexpr int64_t rows_at_once(int64_t panels, bool has_totals) {
  if (panels == kMostTilePanels) return has_totals ? 4 : 6;
  return panels == 3 && has_totals ? 6 : kMostTileRows;
}

}  // namespace

void multiply_bytes(const Int8Rows& a, const Int8Panels& b, const int32_t* starts, int64_t first_row, int64_t last_row,
                    int64_t first_panel, int64_t last_panel, const Int8Sums& sums) {
  constexpr int64_t kTilesFinished = 4;  // at once
  alignas(64) int32_t part[kTilesFinished * kMostTileRows * kMostTilePanels * kTileColumns];
  const bool has_totals = b.zero != 0;
  const int64_t element = sums.dtype == DType::int32 ? static_cast<int64_t>(sizeof(int32_t)) : 1;
  for (int64_t panel = first_panel; panel < last_panel; panel += kMostTilePanels) {
    const int64_t panels = std::min<int64_t>(kMostTilePanels, last_panel - panel), column = panel * kTileColumns;
    const int64_t most = rows_at_once(panels, has_totals), columns = std::min(panels * kTileColumns, b.n - column);
    const auto& tiles = kInt8Tiles[has_totals ? 1 : 0][static_cast<size_t>(panels - 1)];
    for (int64_t first = first_row; first < last_row; first += kTilesFinished * most) {
      const int64_t last = std::min(last_row, first + kTilesFinished * most);
      for (int64_t row = first; row < last; row += most) {
        const int64_t rows = std::min(most, last - row);
        tiles[static_cast<size_t>(rows - 1)]({a.base, a.locations + row, a.segments, b.segments, (b.depth + 3) / 4,
                                              ones_of(b.depth), b.numbers.data() + panel * b.panel_bytes(),
                                              b.panel_bytes(), starts + column, b.zero,
                                              part + (row - first) * panels * kTileColumns});
      }
      Int8Sums target = sums;
      target.data += ((first - first_row) * sums.row_step + column - first_panel * kTileColumns) * element;
      finish_int8_sums(last - first, columns, panels * kTileColumns, part, sums.scales + column, target);
    }
  }
}

#else

bool has_int8_panels() { return false; }
void multiply_bytes(const Int8Rows&, const Int8Panels&, const int32_t*, int64_t, int64_t, int64_t, int64_t,
                    const Int8Sums&) {
  PX_CHECK(false);
}

#endif

}  // namespace parallax::runtime
