// SPDX-License-Identifier: Apache-2.0
// The blocked loop nest: some rows are laid in tiles for all threads; a thread packs one panel of columns after another
// and takes the depth in stretches that stay in the first-level cache.
#include "reference/kernels/products.h"

#include <algorithm>

#include "inspector/base/thread_pool.h"
#include "reference/kernels/lanes.h"
#include "reference/kernels/products_kernel.h"
#include "reference/kernels/scratch.h"

namespace parallax::reference {
namespace {

constexpr int64_t kNumbersAtOnce = int64_t{1} << 18;  // of the rows that all tasks share: 2 MiB
constexpr int64_t kLeastRowsAtOnce = 32;
constexpr int64_t kSumsAtOnce = int64_t{1} << 14;  // 128 KiB
constexpr int64_t kDepthAStretch = 96;             // 96 lines of a panel are 24 KiB

// to[k * kTileRows + row] = tile[row * depth + k].
template <class Number>
void interleave(const Number* tile, int64_t depth, Number* __restrict to) {
  static_assert(kTileRows == 4);
  const Number *a = tile, *b = a + depth, *c = b + depth, *d = c + depth;
  with_widest_vectors([=](auto) PX_INLINE {
    for (int64_t k = 0; k < depth; ++k) {
      to[4 * k] = a[k];
      to[4 * k + 1] = b[k];
      to[4 * k + 2] = c[k];
      to[4 * k + 3] = d[k];
    }
  });
}

// Some rows as the kernel reads them: the rows of a tile side by side, the last tile filled up with rows of zeros.
template <class Number>
struct TiledRows {
  int64_t first = 0, count = 0;
  int64_t depth = 0;
  Scratch<Number> numbers = {};

  int64_t tile_count() const { return (count + kTileRows - 1) / kTileRows; }
  // The numbers of the tile that begins at `row`, from line k on.
  const Number* tile(int64_t row, int64_t k) const { return numbers.data() + row * depth + k * kTileRows; }

  void load(const ProductSpec<Number>& spec) {
    numbers.resize(static_cast<size_t>(tile_count() * kTileRows * depth));
    parallel_for(tile_count(), kTileRows * depth / 2, [&](int64_t begin, int64_t end) {
      Scratch<Number> lines(static_cast<size_t>(kTileRows * depth));
      for (int64_t row = begin * kTileRows; row < end * kTileRows; row += kTileRows) load_tile(spec, row, lines);
    });
  }

 private:
  void load_tile(const ProductSpec<Number>& spec, int64_t row, std::span<Number> lines) {
    for (int64_t index = 0; index < kTileRows; ++index) {
      const auto line = lines.subspan(static_cast<size_t>(index * depth), static_cast<size_t>(depth));
      if (row + index < count)
        spec.load_row(first + row + index, line);
      else
        std::ranges::fill(line, Number{0});
    }
    interleave(lines.data(), depth, numbers.data() + row * depth);
  }
};

// The work of one thread: panels of columns, one after the other, by a part of the rows.
template <class Number>
class Task {
 public:
  Task(const ProductSpec<Number>& spec, TileKernel<Number> kernel, const TiledRows<Number>& rows)
      : spec_(spec), kernel_(kernel), rows_(rows), panel_(static_cast<size_t>(spec.depth * kPanelWidth)) {}

  // Rows [first_row, last_row) of those that are tiled, by columns [first_column, last_column).
  void run(int64_t first_row, int64_t last_row, int64_t first_column, int64_t last_column) {
    const int64_t panels = std::max<int64_t>(1, kSumsAtOnce / (last_row - first_row) / kPanelWidth);
    for (int64_t first = first_column; first < last_column; first += panels * kPanelWidth)
      run_panels(first_row, last_row, first, std::min(panels * kPanelWidth, last_column - first));
  }

 private:
  // Some panels, so that the lines that are stored are not too short.
  void run_panels(int64_t first_row, int64_t last_row, int64_t first_column, int64_t width) {
    const int64_t stride = (width + kPanelWidth - 1) / kPanelWidth * kPanelWidth;
    const int64_t rows = (last_row - first_row + kTileRows - 1) / kTileRows * kTileRows;
    sums_.resize(static_cast<size_t>(rows * stride));
    for (int64_t first = 0; first < width; first += kPanelWidth) {
      load_panel(first_column + first, std::min(kPanelWidth, width - first));
      add_panel(first_row, rows, sums_.data() + first, stride);
    }
    spec_.store({.row = rows_.first + first_row,
                 .rows = last_row - first_row,
                 .column = first_column,
                 .columns = width,
                 .stride = stride,
                 .numbers = sums_.data()});
  }

  void load_panel(int64_t first_column, int64_t width) {
    spec_.load_columns(first_column, width, std::span(panel_).first(static_cast<size_t>(spec_.depth * width)));
    if (width < kPanelWidth) spread_panel(panel_.data(), spec_.depth, width);
  }

  void add_panel(int64_t first_row, int64_t row_count, Number* sums, int64_t stride) {
    int64_t k = 0;
    do {  // once at least: sums over nothing are 0
      const int64_t depth = std::min(kDepthAStretch, spec_.depth - k);
      const Number* panel = panel_.data() + k * kPanelWidth;
      for (int64_t row = 0; row < row_count; row += kTileRows)
        kernel_(rows_.tile(first_row + row, k), panel, depth, sums + row * stride, stride, k > 0);
      k += kDepthAStretch;
    } while (k < spec_.depth);
  }

  const ProductSpec<Number>& spec_;
  TileKernel<Number> kernel_;
  const TiledRows<Number>& rows_;
  Scratch<Number> panel_, sums_;
};

// All columns by some rows. The rows are divided only where there are too few panels to occupy all threads.
template <class Number>
void run_rows(const ProductSpec<Number>& spec, TileKernel<Number> kernel, const TiledRows<Number>& rows) {
  const int64_t panels = (spec.columns + kPanelWidth - 1) / kPanelWidth;
  if (panels == 0) return;
  const int64_t wanted_tasks = thread_count() == 1 ? 1 : 2 * thread_count();
  const int64_t wanted_parts = (wanted_tasks + panels - 1) / panels;
  const int64_t tiles_a_part = (rows.tile_count() + wanted_parts - 1) / wanted_parts;
  const int64_t part = std::max<int64_t>(1, tiles_a_part) * kTileRows;
  const int64_t parts = (rows.count + part - 1) / part;
  constexpr int64_t kProductsANanosecond = 16;
  const int64_t work = part * kPanelWidth * spec.depth / kProductsANanosecond;
  parallel_for(parts * panels, work, [&](int64_t begin, int64_t end) {
    Task<Number> task(spec, kernel, rows);
    while (begin < end) {
      const int64_t panel = begin % panels, first_row = begin / panels * part;
      const int64_t last_panel = std::min(panels, panel + end - begin);
      task.run(first_row, std::min(rows.count, first_row + part), panel * kPanelWidth,
               std::min(spec.columns, last_panel * kPanelWidth));
      begin += last_panel - panel;
    }
  });
}

template <class Number>
void run(const ProductSpec<Number>& spec, TileKernel<Number> kernel) {
  const int64_t most = std::max(kLeastRowsAtOnce, kNumbersAtOnce / std::max<int64_t>(1, spec.depth));
  const int64_t rows_at_once = most / kTileRows * kTileRows;
  TiledRows<Number> rows{.depth = spec.depth};
  for (int64_t first = 0; first < spec.rows; first += rows_at_once) {
    rows.first = first;
    rows.count = std::min(rows_at_once, spec.rows - first);
    rows.load(spec);
    run_rows(spec, kernel, rows);
  }
}

}  // namespace

void sum_products(const ProductSpec<double>& spec) {
  run(spec, spec.has_exact_products ? exact_products_kernel() : rounded_products_kernel());
}
void sum_products(const ProductSpec<uint64_t>& spec) { run(spec, integer_products_kernel()); }

}  // namespace parallax::reference
