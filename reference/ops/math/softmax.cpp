// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax, Hardmax: over one axis since version 13, before over all axes from `axis` on.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/kernels/elementary.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// The rows that are normalized: `count` elements, `stride` elements from each other.
struct Rows {
  int64_t outer;
  int64_t count;
  int64_t inner;
};

Result<Rows> rows_of(const OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const int64_t given = op.int_attribute("axis");
  if (op.since_version() < 13) {
    // The input is coerced to a matrix at `axis`. It may be the rank itself in version 1, whose text gives no range;
    // version 11 says [-rank, rank - 1].
    const bool is_rank = op.since_version() < 11 && given == static_cast<int64_t>(shape.rank());
    const size_t axis = is_rank ? shape.rank() : PX_TRY(normalize_axis(given, shape.rank()));
    return Rows{count_of(shape, 0, axis), count_of(shape, axis, shape.rank()), 1};
  }
  if (shape.rank() == 0) return Rows{1, 1, 1};
  const size_t axis = PX_TRY(normalize_axis(given, shape.rank()));
  return Rows{count_of(shape, 0, axis), shape[axis], count_of(shape, axis + 1, shape.rank())};
}

// Replaces the numbers of each row by row(numbers).
template <class Row>
Status for_rows(OpContext& op, const Row& row) {
  const Tensor& input = op.input(0);
  if (!is_floating(input.dtype()))
    return unsupported(fmt::format("the element type is {}; only floats have a function here", name_of(input.dtype())));
  const Rows rows = PX_TRY(rows_of(op));
  Tensor output = PX_TRY(op.allocate(input.dtype(), input.shape()));
  parallel_for(rows.outer * rows.inner, 4 * rows.count, [&](int64_t begin, int64_t end) {
    std::vector<double> numbers(static_cast<size_t>(rows.count));
    for (int64_t index = begin; index < end; ++index) {
      const int64_t base = index / rows.inner * rows.count * rows.inner + index % rows.inner;
      if (rows.inner == 1) {
        load<double>(input, base, numbers);
        row(numbers);
        store<double>(output, base, numbers);
        continue;
      }
      load_lines<double>(input, {.begin = base, .stride = rows.inner, .lines = rows.count, .width = 1}, numbers);
      row(numbers);
      for (int64_t k = 0; k < rows.count; ++k)
        store<double>(output, base + k * rows.inner, std::span(numbers).subspan(static_cast<size_t>(k), 1));
    }
  });
  return op.set_output(0, std::move(output));
}

// NaN wins, so that a row with NaN becomes NaN as a whole.
double highest_of(std::span<const double> row) {
  double highest = -std::numeric_limits<double>::infinity();
  for (double x : row) {
    if (std::isnan(x)) return x;
    highest = std::max(highest, x);
  }
  return highest;
}

// Replaces x by x - max.
void subtract_highest(std::span<double> row) {
  const double highest = highest_of(row);
  for (double& x : row) x -= highest;
}

double sum_of(std::span<const double> row) {
  double sum = 0;
  for (double x : row) sum += x;
  return sum;
}

// exp(x - max) / sum(exp(x - max)). A row of -inf alone is NaN, as the formula says.
Status op_softmax(OpContext& op) {
  return for_rows(op, [](std::span<double> row) {
    subtract_highest(row);
    exp_each(row);
    const double sum = sum_of(row);
    for (double& x : row) x /= sum;
  });
}

// x - max - log(sum(exp(x - max)))
Status op_log_softmax(OpContext& op) {
  return for_rows(op, [](std::span<double> row) {
    subtract_highest(row);
    std::vector<double> powers(row.begin(), row.end());
    exp_each(powers);
    const double log_of_sum = std::log(sum_of(powers));
    for (double& x : row) x -= log_of_sum;
  });
}

// 1 at the first of the greatest elements, 0 elsewhere.
Status op_hardmax(OpContext& op) {
  return for_rows(op, [](std::span<double> row) {
    size_t best = 0;
    for (size_t k = 1; k < row.size(); ++k) {
      if (row[k] > row[best]) best = k;
    }
    for (size_t k = 0; k < row.size(); ++k) row[k] = k == best ? 1.0 : 0.0;
  });
}

constexpr OpRow kSoftmaxRows[] = {
    {"Hardmax", kOnnx, 1, 13, op_hardmax},
    {"LogSoftmax", kOnnx, 1, 13, op_log_softmax},
    {"Softmax", kOnnx, 1, 13, op_softmax},
};

}  // namespace

OpRows softmax_rows() { return kSoftmaxRows; }

}  // namespace parallax::reference
