// The blocked loop nest: a task loads some rows once, packs one panel of columns after another, and takes the depth in
// stretches that stay in the first-level cache.
#include "reference/ops/products.h"

#include <algorithm>

#include "inspector/base/thread_pool.h"
#include "reference/ops/lanes.h"
#include "reference/ops/products_kernel.h"
#include "reference/ops/scratch.h"

namespace parallax::reference {
namespace {

// Rows of a task share its panels; they are fewer where they are long, so that a task's operands stay in the cache.
constexpr int64_t kMostRowsATask = 256;
constexpr int64_t kLeastRowsATask = 32;
constexpr int64_t kNumbersATask = int64_t{1} << 17;  // of its rows: 1 MiB
constexpr int64_t kColumnsATask = 256;
constexpr int64_t kSumsAtOnce = int64_t{1} << 13;  // 64 KiB
constexpr int64_t kDepthAStretch = 64;             // 64 lines of a panel are 16 KiB

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

template <class Number>
class Task {
 public:
  Task(const ProductSpec<Number>& spec, TileKernel<Number> kernel)
      : spec_(spec),
        kernel_(kernel),
        tile_(static_cast<size_t>(spec.depth * kTileRows)),
        panel_(static_cast<size_t>(spec.depth * kPanelWidth)) {}

  void run(int64_t first_row, int64_t last_row, int64_t first_column, int64_t last_column) {
    if (first_row != first_row_ || last_row - first_row != row_count_) {
      first_row_ = first_row;
      row_count_ = last_row - first_row;
      load_rows();
    }
    const int64_t wide = std::max<int64_t>(1, kSumsAtOnce / std::max<int64_t>(1, row_count_) / kPanelWidth);
    for (int64_t first = first_column; first < last_column; first += wide * kPanelWidth) {
      run_panels(first, std::min(wide * kPanelWidth, last_column - first));
    }
  }

 private:
  // As the kernel reads them: the rows of a tile side by side. Rows that fill up the last tile are zero.
  void load_rows() {
    const auto depth = static_cast<size_t>(spec_.depth);
    rows_.resize(static_cast<size_t>(padded_rows()) * depth);
    for (int64_t first = 0; first < row_count_; first += kTileRows) {
      for (int64_t row = 0; row < kTileRows; ++row) {
        const auto line = std::span(tile_).subspan(static_cast<size_t>(row) * depth, depth);
        if (first + row < row_count_)
          spec_.load_row(first_row_ + first + row, line);
        else
          std::ranges::fill(line, Number{0});
      }
      interleave(tile_.data(), spec_.depth, rows_.data() + first * spec_.depth);
    }
  }

  int64_t padded_rows() const { return (row_count_ + kTileRows - 1) / kTileRows * kTileRows; }

  // Some panels, so that the stretches of the rows that are stored are not too short.
  void run_panels(int64_t first_column, int64_t width) {
    const int64_t stride = (width + kPanelWidth - 1) / kPanelWidth * kPanelWidth;
    sums_.resize(static_cast<size_t>(padded_rows() * stride));
    for (int64_t first = 0; first < width; first += kPanelWidth)
      add_panel(first_column + first, std::min(kPanelWidth, width - first), sums_.data() + first, stride);
    for (int64_t row = 0; row < row_count_; ++row) {
      const std::span<const Number> line(sums_.data() + row * stride, static_cast<size_t>(width));
      spec_.store(first_row_ + row, first_column, line);
    }
  }

  void add_panel(int64_t first_column, int64_t width, Number* sums, int64_t stride) {
    spec_.load_columns(first_column, width, std::span(panel_).first(static_cast<size_t>(spec_.depth * width)));
    if (width < kPanelWidth) spread_panel(panel_.data(), spec_.depth, width);
    int64_t k = 0;
    do {  // once at least: sums over nothing are 0
      const int64_t depth = std::min(kDepthAStretch, spec_.depth - k);
      for (int64_t row = 0; row < row_count_; row += kTileRows) {
        const Number* rows = rows_.data() + row * spec_.depth + k * kTileRows;
        kernel_(rows, panel_.data() + k * kPanelWidth, depth, sums + row * stride, stride, k > 0);
      }
      k += kDepthAStretch;
    } while (k < spec_.depth);
  }

  const ProductSpec<Number>& spec_;
  TileKernel<Number> kernel_;
  int64_t first_row_ = 0;
  int64_t row_count_ = 0;
  Scratch<Number> tile_, rows_, panel_, sums_;
};

template <class Number>
void run(const ProductSpec<Number>& spec, TileKernel<Number> kernel) {
  const int64_t column_tasks = (spec.columns + kColumnsATask - 1) / kColumnsATask;
  int64_t rows = std::clamp(kNumbersATask / std::max<int64_t>(1, spec.depth), kLeastRowsATask, kMostRowsATask);
  // Shorter tasks where there would not be two for every thread.
  const int64_t wanted_tasks = thread_count() == 1 ? 1 : 2 * thread_count();
  while (rows > kLeastRowsATask && (spec.rows + rows - 1) / rows * column_tasks < wanted_tasks) rows /= 2;
  rows -= rows % kTileRows;
  const int64_t row_tasks = (spec.rows + rows - 1) / rows;
  const int64_t columns = std::min(spec.columns, kColumnsATask);
  constexpr int64_t kProductsANanosecond = 16;
  const int64_t products = spec.depth * columns * std::min(rows, spec.rows);
  const int64_t work = std::max<int64_t>(1, products / kProductsANanosecond);
  parallel_for(column_tasks * row_tasks, work, [&](int64_t begin, int64_t end) {
    Task<Number> task(spec, kernel);
    for (int64_t index = begin; index < end; ++index) {
      const int64_t row = index % row_tasks * rows, column = index / row_tasks * kColumnsATask;
      task.run(row, std::min(spec.rows, row + rows), column, std::min(spec.columns, column + kColumnsATask));
    }
  });
}

}  // namespace

void sum_products(const ProductSpec<double>& spec) {
  run(spec, spec.has_exact_products ? exact_products_kernel() : rounded_products_kernel());
}
void sum_products(const ProductSpec<uint64_t>& spec) { run(spec, integer_products_kernel()); }

}  // namespace parallax::reference
