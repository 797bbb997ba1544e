// SPDX-License-Identifier: Apache-2.0
// Tiles of 4 rows by 24 columns: twelve sums, three vectors of the panel and one number of a row fill the 16 registers.
#include "runtime/device/cpu/products/float_panels.h"

#include <algorithm>
#include <atomic>

#include "inspector/base/check.h"
#include "inspector/base/thread_pool.h"
#include "inspector/base/thread_team.h"
#include "runtime/device/cpu/multiversion.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define PX_FMA __attribute__((target("avx2,fma")))
#define PX_FMA_INLINE __attribute__((target("avx2,fma"), always_inline)) inline
#endif

// Before a loop whose passes are written out one after the other, so that arrays indexed by them are registers.
#if defined(__clang__)
#define PX_WRITTEN_OUT _Pragma("unroll")
#else
#define PX_WRITTEN_OUT _Pragma("GCC unroll 8")
#endif

namespace parallax::runtime {
namespace {

constexpr size_t kVectorLanes = 8;
constexpr int64_t kPanelLanes = kVectorLanes;
constexpr int64_t kPanelVectors = 3;
constexpr int64_t kWidth = kPanelVectors * kPanelLanes;
static_assert(kWidth == kFloatPanelColumns);
constexpr int64_t kBandStep = 24;    // rows that fill whole tiles of every width
constexpr int64_t kBandRows = 240;   // of one task
constexpr int64_t kRunDepth = 1024;  // 96 KiB of a panel, which stay near while the rows of a band walk them

int64_t panels_of(int64_t n) { return (n + kWidth - 1) / kWidth; }
// Vectors across the panel that begins at `column`.
int64_t vectors_at(int64_t column, int64_t n) {
  return std::min(kPanelVectors, (n - column + kPanelLanes - 1) / kPanelLanes);
}

}  // namespace

int64_t float_panel_numbers(int64_t n, int64_t k) { return (n + kPanelLanes - 1) / kPanelLanes * kPanelLanes * k; }

void pack_float_panels(int64_t n, int64_t k, const float* b, int64_t row_step, int64_t column_step, float* panels) {
  parallel_for(panels_of(n), kWidth * k, [=](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t column = panel * kWidth, columns = std::min(kWidth, n - column);
      const int64_t width = vectors_at(column, n) * kPanelLanes;
      float* const target = panels + column * k;
      if (column_step == 1) {
        for (int64_t i = 0; i < k; ++i) {
          std::copy_n(b + i * row_step + column, columns, target + i * width);
          std::fill(target + i * width + columns, target + (i + 1) * width, 0.0F);
        }
        continue;
      }
      std::fill(target, target + width * k, 0.0F);
      for (int64_t j = 0; j < columns; ++j) {
        const float* const source = b + (column + j) * column_step;
        for (int64_t i = 0; i < k; ++i) target[i * width + j] = source[i * row_step];
      }
    }
  });
}

#if defined(__x86_64__)

bool has_float_panels() { return vector_level() == VectorLevel::avx2; }

namespace {

// The range that one walk adds to the sums: whole segments, or part of one.
struct PanelRun {
  int64_t segment_begin = 0, segment_end = 0;
  int64_t depth_begin = 0, depth = 0;  // of each
  int64_t before = 0;                  // numbers of k before it
  bool is_last = true;
};

PX_FMA_INLINE const float* start_of(const PanelRows& a, int64_t segment, int64_t row) {
  if (a.offsets == nullptr) return a.base + row * a.step;
  const int32_t offset = a.offsets[segment * a.count + row];
  return offset < 0 ? a.zeros : a.base + offset;
}

template <size_t kRows, size_t kVectors>
struct Sums {
  __m256 of[kRows][kVectors];
};

template <size_t kRows, size_t kVectors>
PX_FMA_INLINE void add_products(const float* const* rows, int64_t at, const float* line, Sums<kRows, kVectors>& sums) {
  __m256 columns[kVectors];
  PX_WRITTEN_OUT
  for (size_t v = 0; v < kVectors; ++v) columns[v] = _mm256_load_ps(line + v * kVectorLanes);
  PX_WRITTEN_OUT
  for (size_t row = 0; row < kRows; ++row) {
    const __m256 factor = _mm256_broadcast_ss(rows[row] + at);
    PX_WRITTEN_OUT
    for (size_t v = 0; v < kVectors; ++v) sums.of[row][v] = _mm256_fmadd_ps(factor, columns[v], sums.of[row][v]);
  }
}

// c [kRows, kVectors * 8] = or += the products of one run. The epilogue's bias and addend are those of the panel, the
// addend from row 0 on and with the row stride of c.
template <size_t kRows, size_t kVectors>
PX_FMA void multiply_tile(const PanelRows& a, const PanelRun& run, int64_t row, const float* line, float* c,
                          int64_t ldc, const PanelEpilogue& epilogue) {
  constexpr int64_t kSteps = 4;  // written out: with other work on its core, the loop's own instructions cost most
  constexpr int64_t kLine = kVectors * kVectorLanes;
  const bool is_shifted = run.before == 0 && epilogue.bias != nullptr;
  Sums<kRows, kVectors> sums;
  PX_WRITTEN_OUT
  for (size_t v = 0; v < kVectors; ++v) {
    const __m256 first = is_shifted ? _mm256_loadu_ps(epilogue.bias + v * kVectorLanes) : _mm256_setzero_ps();
    PX_WRITTEN_OUT
    for (size_t i = 0; i < kRows; ++i) sums.of[i][v] = first;
  }
  for (int64_t segment = run.segment_begin; segment < run.segment_end; ++segment) {
    const float* rows[kRows];
    bool is_padding = a.offsets != nullptr;  // in all rows
    PX_WRITTEN_OUT
    for (size_t i = 0; i < kRows; ++i) {
      rows[i] = start_of(a, segment, row + static_cast<int64_t>(i)) + run.depth_begin;
      is_padding = is_padding && rows[i] == a.zeros + run.depth_begin;
    }
    if (is_padding) {
      line += run.depth * kLine;
      continue;
    }
    int64_t at = 0;
    for (; at + kSteps <= run.depth; at += kSteps, line += kSteps * kLine) {
      PX_WRITTEN_OUT
      for (int64_t step = 0; step < kSteps; ++step) add_products(rows, at + step, line + step * kLine, sums);
    }
    for (; at < run.depth; ++at, line += kLine) add_products(rows, at, line, sums);
  }
  // With one operand that is NaN and one that is not, minimum and maximum give the second.
  const __m256 lowest = _mm256_set1_ps(run.is_last ? epilogue.lowest : -std::numeric_limits<float>::infinity());
  const __m256 highest = _mm256_set1_ps(run.is_last ? epilogue.highest : std::numeric_limits<float>::infinity());
  const float* const addend = run.is_last && epilogue.addend != nullptr ? epilogue.addend + row * ldc : nullptr;
  PX_WRITTEN_OUT
  for (size_t i = 0; i < kRows; ++i) {
    PX_WRITTEN_OUT
    for (size_t v = 0; v < kVectors; ++v) {
      const int64_t at = static_cast<int64_t>(i) * ldc + static_cast<int64_t>(v * kVectorLanes);
      __m256 sum = run.before == 0 ? sums.of[i][v] : _mm256_add_ps(_mm256_loadu_ps(c + at), sums.of[i][v]);
      if (addend != nullptr) sum = _mm256_add_ps(sum, _mm256_loadu_ps(addend + at));
      _mm256_storeu_ps(c + at, _mm256_min_ps(highest, _mm256_max_ps(lowest, sum)));
    }
  }
}

struct Band {
  int64_t row = 0, rows = 0;
};

// Rows of a tile: as many as its sums, one line of the panel and one number of a row leave registers for.
template <size_t kVectors>
constexpr size_t kTileRows = kVectors == 3   ? 4
                             : kVectors == 2 ? 6
                                             : 8;

// The last rows, fewer than kRows.
template <size_t kRows, size_t kVectors>
void multiply_rest(const PanelRows& a, const PanelRun& run, Band band, const float* line, float* c, int64_t ldc,
                   const PanelEpilogue& epilogue) {
  if constexpr (kRows > 1) {
    if (band.rows == kRows - 1) return multiply_tile<kRows - 1, kVectors>(a, run, band.row, line, c, ldc, epilogue);
    multiply_rest<kRows - 1, kVectors>(a, run, band, line, c, ldc, epilogue);
  }
}

// Rows [band.row, band.row + band.rows) of one panel, and where they go.
struct PanelTask {
  Band band;
  int64_t column = 0, columns = 0;  // of the whole result
  const float* panel = nullptr;
  float* c = nullptr;
  int64_t ldc = 0;
  PanelEpilogue epilogue;  // its bias is that of the panel
};

template <size_t kVectors>
void multiply_band(const PanelRows& a, const PanelRun& run, Band band, const PanelTask& task, float* c) {
  constexpr int64_t kRows = kTileRows<kVectors>;
  const float* const line = task.panel + run.before * static_cast<int64_t>(kVectors * kVectorLanes);
  for (; band.rows >= kRows; band.row += kRows, band.rows -= kRows, c += kRows * task.ldc)
    multiply_tile<kTileRows<kVectors>, kVectors>(a, run, band.row, line, c, task.ldc, task.epilogue);
  multiply_rest<kTileRows<kVectors>, kVectors>(a, run, band, line, c, task.ldc, task.epilogue);
}

// The last run, some tiles at a time, each part finished while it is in the nearest cache.
template <size_t kVectors>
void multiply_last(const PanelRows& a, const PanelRun& run, const PanelTask& task, const FinishTile& finish) {
  if (!finish) return multiply_band<kVectors>(a, run, task.band, task, task.c);
  for (int64_t done = 0; done < task.band.rows; done += kBandStep) {
    const Band part{task.band.row + done, std::min(kBandStep, task.band.rows - done)};
    multiply_band<kVectors>(a, run, part, task, task.c + done * task.ldc);
    finish(part.row, part.rows, task.column, task.columns);
  }
}

// All runs of one panel over one band.
template <size_t kVectors>
void multiply_panel(const PanelRows& a, const PanelTask& task, const FinishTile& finish) {
  const int64_t segments = std::max<int64_t>(1, kRunDepth / a.depth);
  for (int64_t segment = 0; segment < a.segments; segment += segments) {
    for (int64_t depth = 0; depth < a.depth; depth += kRunDepth) {
      PanelRun run{segment, std::min(a.segments, segment + segments), depth, std::min(kRunDepth, a.depth - depth),
                   segment * a.depth + depth};
      run.is_last = run.segment_end == a.segments && depth + run.depth == a.depth;
      if (run.is_last) {
        multiply_last<kVectors>(a, run, task, finish);
      } else {
        multiply_band<kVectors>(a, run, task.band, task, task.c);
      }
    }
  }
}

void multiply_panel(const PanelRows& a, const PanelTask& task, int64_t vectors, const FinishTile& finish) {
  if (vectors == 1) return multiply_panel<1>(a, task, finish);
  if (vectors == 2) return multiply_panel<2>(a, task, finish);
  multiply_panel<kPanelVectors>(a, task, finish);
}

// Panels with columns that c does not have are computed separately.
void multiply_task(const PanelRows& a, const PanelTask& task, int64_t vectors, const FinishTile& finish) {
  if (task.columns == vectors * kPanelLanes) return multiply_panel(a, task, vectors, finish);
  alignas(32) float whole[kBandRows * kWidth];
  PanelTask full = task;
  full.c = whole;
  full.ldc = kWidth;
  full.epilogue = {};
  full.epilogue.bias = task.epilogue.bias;
  multiply_panel(a, full, vectors, nullptr);
  const auto [bias, addend, lowest, highest] = task.epilogue;
  for (int64_t i = 0; i < task.band.rows; ++i) {
    for (int64_t j = 0; j < task.columns; ++j) {
      float sum = whole[i * kWidth + j];
      if (addend != nullptr) sum += addend[(task.band.row + i) * task.ldc + j];
      sum = sum < lowest ? lowest : sum;
      task.c[i * task.ldc + j] = sum > highest ? highest : sum;
    }
  }
  if (finish) finish(task.band.row, task.band.rows, task.column, task.columns);
}

}  // namespace

namespace {

// How the rows are shared out: whole bands where there are enough of them, so that no two threads write to one line of
// the cache; else single panels of them.
struct Shares {
  int64_t band_rows = 0, bands = 0;
  bool are_bands = false;
};

Shares shares_of(const PanelRows& a, int64_t n, int64_t threads) {
  constexpr int64_t kBandsOfThread = 4;
  constexpr int64_t kNumbers = 24576;  // groups walk the same rows, each some numbers of them: they stay in the cache
  const int64_t most = a.groups == 1 ? kBandRows : std::clamp(kNumbers / (a.groups * a.depth), kBandStep, kBandRows);
  const auto in_bands_of = [&](int64_t rows) {
    const int64_t bands = (a.count + rows - 1) / rows;
    const int64_t band_rows = ((a.count + bands - 1) / bands + kBandStep - 1) / kBandStep * kBandStep;
    return Shares{band_rows, (a.count + band_rows - 1) / band_rows, false};
  };
  Shares shares = in_bands_of(std::clamp(a.count / (kBandsOfThread * threads), kBandStep, most));
  // Each band reads all panels, which should be near then.
  constexpr int64_t kPanelNumbers = 65536;
  const bool are_small = a.segments * a.depth * n * a.groups <= kPanelNumbers;
  shares.are_bands = threads > 1 && are_small && shares.bands >= 2 * threads;
  return shares.are_bands ? shares : in_bands_of(most);
}

}  // namespace

void multiply_float_panels(const PanelRows& a, int64_t n, const float* panels, int threads, const FinishTile& finish,
                           float* c, const PanelEpilogue& epilogue) {
  PX_CHECK(a.depth > 0 && (a.segments == 1 || a.offsets != nullptr));
  const Shares shares = shares_of(a, n, threads);
  const int64_t k = a.segments * a.depth, ldc = a.groups * n;
  const int64_t across = a.groups * panels_of(n), tasks = shares.bands * (shares.are_bands ? 1 : across);
  const auto make = [&](int64_t band_index, int64_t index) {
    const int64_t row = band_index * shares.band_rows, group = index / panels_of(n);
    const Band band{row, std::min(shares.band_rows, a.count - row)};
    const int64_t column = index % panels_of(n) * kWidth;  // within the group
    PanelRows rows = a;
    rows.base += group * a.depth;
    PanelTask task;
    task.band = band;
    task.column = group * n + column;
    task.columns = std::min(kWidth, n - column);
    task.panel = panels + group * float_panel_numbers(n, k) + column * k;
    task.c = c + row * ldc + task.column;
    task.ldc = ldc;
    task.epilogue = epilogue;
    if (epilogue.bias != nullptr) task.epilogue.bias += task.column;
    if (epilogue.addend != nullptr) task.epilogue.addend += task.column;
    multiply_task(rows, task, vectors_at(column, n), finish);
  };
  std::atomic<int64_t> next{0};  // whoever is free takes the next one
  run_team(static_cast<int>(std::min<int64_t>(threads, tasks)), [&](int) {
    for (int64_t task = next++; task < tasks; task = next++) {
      if (!shares.are_bands) {
        make(task / across, task % across);
        continue;
      }
      for (int64_t index = 0; index < across; ++index) make(task, index);
    }
  });
}

void multiply_float_panel(const PanelRows& a, int64_t n, int64_t column, const float* panel, float* c) {
  PX_CHECK(a.depth > 0 && (a.segments == 1 || a.offsets != nullptr) && a.groups == 1);
  for (int64_t row = 0; row < a.count; row += kBandRows) {
    const Band band{row, std::min(kBandRows, a.count - row)};
    const PanelTask task{band, column, std::min(kWidth, n - column), panel, c + row * n + column, n, {}};
    multiply_task(a, task, kPanelVectors, nullptr);
  }
}

namespace {

// Whole panels next to each other, whose sums hide together how long an addition takes. Each is read in one stream, and
// four of them come from memory faster than one or two (by a quarter). The processor sees where a stream goes: to ask
// for its next lines beforehand costs more than it gains.
template <size_t kPanels>
PX_FMA void multiply_row_by_panels(const float* a, int64_t k, const float* panels, float* c) {
  constexpr int64_t kSteps = 4;
  const int64_t step = k * kWidth;
  __m256 sums[kPanels][kPanelVectors];
  PX_WRITTEN_OUT
  for (auto& vectors : sums) {
    PX_WRITTEN_OUT
    for (auto& sum : vectors) sum = _mm256_setzero_ps();
  }
  const auto add_line = [&](int64_t at) __attribute__((always_inline, target("avx2,fma"))) {
    const __m256 factor = _mm256_broadcast_ss(a + at);
    PX_WRITTEN_OUT
    for (size_t panel = 0; panel < kPanels; ++panel) {
      const float* const line = panels + static_cast<int64_t>(panel) * step + at * kWidth;
      PX_WRITTEN_OUT
      for (size_t v = 0; v < kPanelVectors; ++v)
        sums[panel][v] = _mm256_fmadd_ps(factor, _mm256_load_ps(line + v * kVectorLanes), sums[panel][v]);
    }
  };
  int64_t at = 0;
  for (; at + kSteps <= k; at += kSteps) {
    PX_WRITTEN_OUT
    for (int64_t i = 0; i < kSteps; ++i) add_line(at + i);
  }
  for (; at < k; ++at) add_line(at);
  PX_WRITTEN_OUT
  for (size_t panel = 0; panel < kPanels; ++panel) {
    PX_WRITTEN_OUT
    for (size_t v = 0; v < kPanelVectors; ++v)
      _mm256_storeu_ps(c + static_cast<int64_t>(panel) * kWidth + v * kVectorLanes, sums[panel][v]);
  }
}

using RowByPanels = void (*)(const float* a, int64_t k, const float* panels, float* c);
constexpr RowByPanels kRowByPanels[] = {multiply_row_by_panels<1>, multiply_row_by_panels<2>, multiply_row_by_panels<3>,
                                        multiply_row_by_panels<4>};

}  // namespace

void multiply_row_by_float_panels(const float* a, int64_t n, int64_t k, const float* panels, float* c) {
  constexpr int64_t kNumbersPerNanosecond = 2;  // that one thread reads from memory
  const int64_t whole = n / kWidth;
  parallel_for(panels_of(n), k * kWidth / kNumbersPerNanosecond + 1, [=](int64_t begin, int64_t end) {
    int64_t panel = begin;
    while (panel < std::min(end, whole)) {
      const int64_t count = std::min<int64_t>(std::ssize(kRowByPanels), std::min(end, whole) - panel);
      kRowByPanels[count - 1](a, k, panels + panel * kWidth * k, c + panel * kWidth);
      panel += count;
    }
    if (panel >= end) return;
    PanelRows row;
    row.count = 1;
    row.depth = row.step = k;
    row.base = a;
    const PanelRun all{0, 1, 0, k, 0};
    const int64_t column = whole * kWidth, vectors = vectors_at(column, n);
    float sums[kWidth];
    const float* const last = panels + column * k;
    if (vectors == 1) multiply_tile<1, 1>(row, all, 0, last, sums, kWidth, {});
    if (vectors == 2) multiply_tile<1, 2>(row, all, 0, last, sums, kWidth, {});
    if (vectors == kPanelVectors) multiply_tile<1, kPanelVectors>(row, all, 0, last, sums, kWidth, {});
    std::copy_n(sums, n - column, c + column);
  });
}

#else

bool has_float_panels() { return false; }
void multiply_float_panels(const PanelRows&, int64_t, const float*, int, const FinishTile&, float*,
                           const PanelEpilogue&) {
  PX_CHECK(has_float_panels());
}
void multiply_float_panel(const PanelRows&, int64_t, int64_t, const float*, float*) { PX_CHECK(has_float_panels()); }
void multiply_row_by_float_panels(const float*, int64_t, int64_t, const float*, float*) {
  PX_CHECK(has_float_panels());
}

#endif

}  // namespace parallax::runtime
