// SPDX-License-Identifier: Apache-2.0
// com.microsoft.Inverse by Gauss and Jordan, with the greatest pivot of each column. Definition: ContribOperators.md.
#include <cmath>
#include <limits>
#include <vector>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/contrib_families.h"

namespace parallax::runtime {
namespace {

// ---- On the host: one matrix after the other, in place ----

void take_multiple(double* row, const double* other, double factor, int64_t size) {
  vectorized(0, size, [row, other, factor](int64_t begin, int64_t end) {
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) row[i] -= factor * other[i];
  });
}

[[maybe_unused]] void invert(double* matrix, double* inverse, int64_t size) {
  std::fill_n(inverse, size * size, 0.0);
  for (int64_t row = 0; row < size; ++row) inverse[row * size + row] = 1.0;
  for (int64_t column = 0; column < size; ++column) {
    int64_t pivot = column;
    for (int64_t row = column + 1; row < size; ++row) {
      if (std::fabs(matrix[row * size + column]) > std::fabs(matrix[pivot * size + column])) pivot = row;
    }
    std::swap_ranges(matrix + pivot * size, matrix + (pivot + 1) * size, matrix + column * size);
    std::swap_ranges(inverse + pivot * size, inverse + (pivot + 1) * size, inverse + column * size);
    const double divisor = matrix[column * size + column];
    for (double* part : {matrix, inverse}) {
      for (int64_t i = 0; i < size; ++i) part[column * size + i] /= divisor;
    }
    for (int64_t row = 0; row < size; ++row) {
      const double factor = matrix[row * size + column];
      if (row == column || factor == 0.0) continue;
      for (double* part : {matrix, inverse}) take_multiple(part + row * size, part + column * size, factor, size);
    }
  }
}

template <class Device>
void invert_each(OpContext<Device>& op, int64_t count, int64_t size, const MutableView& y) {
  std::vector<double> x(static_cast<size_t>(count * size * size));
  load_block<double>(op.input(0).dtype(), op.input(0).view().data, 0, 1, y.element_count(), x.data());
  std::vector<double> results(x.size());
  for (int64_t i = 0; i < count; ++i) invert(x.data() + i * size * size, results.data() + i * size * size, size);
  store_block<double>(y.dtype, y.data, 0, y.element_count(), results.data());
}

// ---- On a GPU: all matrices at once, a column after the other; [count, size, 2 * size], the inverses grow on the
// right ----

template <class Device>
struct AcrossUnit {
  Source x;
  int64_t size;
  PX_HD double operator()(int64_t i) const {
    const int64_t row = i / (2 * size), column = i % (2 * size);
    if (column < size) return element_of<Device, double>(x, row * size + column);
    return column - size == row % size ? 1 : 0;
  }
};

// The magnitudes by which the pivot of a column is chosen, [count, size]: the rows above it are finished. A NaN is
// never greater, and nothing is greater than a NaN that comes first.
template <class Device>
struct PivotSize {
  Elements<Device, const double> numbers;
  int64_t size, column;
  PX_HD double operator()(int64_t i) const {
    const double number = std::fabs(numbers[i * 2 * size + column]);
    if (number != number) return i % size == column ? std::numeric_limits<double>::infinity() : -1.0;
    return i % size < column ? -1.0 : number;
  }
};

struct Pivot {
  double size;
  int64_t row;
};

// The first row of the greatest size.
struct FirstGreatest {
  template <class C>
  PX_HD Pivot init() const {
    return {-2.0, 0};
  }
  PX_HD Pivot step(Pivot best, double size, int64_t row) const { return merge(best, Pivot{size, row}); }
  PX_HD Pivot merge(Pivot a, Pivot b) const {
    if (a.size == b.size) return a.row < b.row ? a : b;
    return a.size > b.size ? a : b;
  }
  PX_HD int64_t finish(Pivot best, int64_t) const { return best.row; }
};

// An element after the step of `column`: the pivot's row is exchanged with row `column` and is divided by the pivot,
// and its multiples are taken away from the others.
template <class Device>
struct Eliminated {
  Elements<Device, const double> old;
  Elements<Device, const int64_t> pivots;
  int64_t size, column;
  PX_HD double operator()(int64_t i) const {
    const int64_t at = i % (2 * size), row = i / (2 * size) % size, matrix = i / (2 * size) / size;
    const int64_t pivot = pivots[matrix], width = 2 * size, first = matrix * size * width;
    const double divided = old[first + pivot * width + at] / old[first + pivot * width + column];
    if (row == column) return divided;
    const int64_t from = first + (row == pivot ? column : row) * width;
    const double factor = old[from + column];
    return factor == 0.0 ? old[from + at] : old[from + at] - factor * divided;
  }
};

template <class Device>
struct RightHalf {
  Elements<Device, const double> numbers;
  int64_t size;
  PX_HD double operator()(int64_t i) const { return numbers[i / size * 2 * size + size + i % size]; }
};

template <class Device>
Status invert_together(OpContext<Device>& op, int64_t count, int64_t size, const MutableView& y) {
  const Shape wide = PX_TRY(shape_of({count, size, 2 * size}));
  MutableView now = PX_TRY(op.scratch(DType::float64, wide)), next = PX_TRY(op.scratch(DType::float64, wide));
  const MutableView sizes = PX_TRY(op.scratch(DType::float64, Shape{count, size}));
  const MutableView pivots = PX_TRY(op.scratch(DType::int64, Shape{count}));
  const auto numbers_of = [](const MutableView& view) {
    return Elements<Device, const double>{reinterpret_cast<const double*>(view.data)};
  };
  tabulate<double>(op.queue(), AcrossUnit<Device>{source_of(op.input(0).view()), size}, now);
  for (int64_t column = 0; column < size; ++column) {
    tabulate<double>(op.queue(), PivotSize<Device>{numbers_of(now), size, column}, sizes);
    fold_elements<double>(op.queue(), FirstGreatest{}, RowLayout{count, size, 1}, pivots, sizes);
    const Elements<Device, const int64_t> rows{reinterpret_cast<const int64_t*>(pivots.data)};
    tabulate<double>(op.queue(), Eliminated<Device>{numbers_of(now), rows, size, column}, next);
    std::swap(now, next);
  }
  tabulate<double>(op.queue(), RightHalf<Device>{numbers_of(now), size}, y);
  return {};
}

template <class Device>
Status inverse(OpContext<Device>& op) {
  const Shape& shape = op.input(0).shape();
  const size_t rank = shape.rank();
  if (rank < 2 || shape[rank - 1] != shape[rank - 2])
    return wrong_input(op, 0, "have rank 2 or more and two last axes of equal size");
  const MutableView y = PX_TRY(op.make_output(0, op.input(0).dtype(), shape));
  if (y.element_count() == 0) return {};
  const int64_t size = shape[rank - 1], count = y.element_count() / (size * size);
  if constexpr (GpuDevice<Device>) {
    return invert_together(op, count, size, y);
  } else {
    invert_each(op, count, size, y);
    return {};
  }
}

template <class Device>
constexpr KernelRow<Device> kContribInverseRows[] = {of_microsoft<Device>({"Inverse", kFloats, inverse<Device>})};

}  // namespace

template <>
Rows<CompiledDevice> contrib_inverse_rows() {
  return kContribInverseRows<CompiledDevice>;
}

}  // namespace parallax::runtime
