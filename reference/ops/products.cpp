// The blocked loop nest: columns are packed once into a panel of kWidth, then every row runs over it.
#include "reference/ops/products.h"

#include <algorithm>
#include <array>
#include <vector>

#include "inspector/base/thread_pool.h"

// Wider vectors where the processor has them. The lanes are different sums, so the bits do not depend on the choice.
// Sanitizers cannot run the resolvers that pick a version at load time.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define PX_WIDEST __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define PX_WIDEST
#endif

namespace parallax::reference {
namespace {

constexpr int64_t kWidth = 64;      // columns of a panel: the accumulators of one row
constexpr int64_t kRowsATask = 64;  // rows that share a packed panel

PX_WIDEST void row_times_panel(const double* row, const double* panel, int64_t depth, double* sums) {
  for (int64_t j = 0; j < kWidth; ++j) sums[j] = 0;
  for (int64_t k = 0; k < depth; ++k) {
    const double factor = row[k];
    const double* line = panel + k * kWidth;
    for (int64_t j = 0; j < kWidth; ++j) sums[j] += factor * line[j];
  }
}

PX_WIDEST void row_times_panel(const uint64_t* row, const uint64_t* panel, int64_t depth, uint64_t* sums) {
  for (int64_t j = 0; j < kWidth; ++j) sums[j] = 0;
  for (int64_t k = 0; k < depth; ++k) {
    const uint64_t factor = row[k];
    const uint64_t* line = panel + k * kWidth;
    for (int64_t j = 0; j < kWidth; ++j) sums[j] += factor * line[j];
  }
}

// A panel narrower than kWidth is packed to its own width; it is spread so that the kernel sees full lines.
template <class Number>
void spread(std::vector<Number>& panel, int64_t depth, int64_t width) {
  for (int64_t k = depth; k-- > 0;) {
    for (int64_t j = kWidth; j-- > 0;) {
      panel[static_cast<size_t>(k * kWidth + j)] = j < width ? panel[static_cast<size_t>(k * width + j)] : Number{0};
    }
  }
}

template <class Number>
void run_task(const ProductSpec<Number>& spec, int64_t first_row, int64_t last_row, int64_t first_column) {
  const int64_t width = std::min(kWidth, spec.columns - first_column);
  std::vector<Number> panel(static_cast<size_t>(spec.depth * kWidth));
  std::vector<Number> row(static_cast<size_t>(spec.depth));
  spec.load_columns(first_column, width, std::span(panel).first(static_cast<size_t>(spec.depth * width)));
  if (width < kWidth) spread(panel, spec.depth, width);
  std::array<Number, kWidth> sums{};
  for (int64_t index = first_row; index < last_row; ++index) {
    spec.load_row(index, row);
    row_times_panel(row.data(), panel.data(), spec.depth, sums.data());
    spec.store(index, first_column, std::span<const Number>(sums).first(static_cast<size_t>(width)));
  }
}

template <class Number>
void run(const ProductSpec<Number>& spec) {
  const int64_t column_tasks = (spec.columns + kWidth - 1) / kWidth;
  const int64_t row_tasks = (spec.rows + kRowsATask - 1) / kRowsATask;
  const int64_t work = std::max<int64_t>(1, spec.depth * kWidth * std::min(kRowsATask, spec.rows) / 4);
  parallel_for(column_tasks * row_tasks, work, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first_row = task % row_tasks * kRowsATask;
      run_task(spec, first_row, std::min(spec.rows, first_row + kRowsATask), task / row_tasks * kWidth);
    }
  });
}

}  // namespace

void sum_products(const ProductSpec<double>& spec) { run(spec); }
void sum_products(const ProductSpec<uint64_t>& spec) { run(spec); }

}  // namespace parallax::reference
