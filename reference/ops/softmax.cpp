// Softmax, LogSoftmax, Hardmax: over one axis since version 13, before over all axes from `axis` on.
#include <cmath>
#include <limits>

#include "reference/ops/map.h"
#include "reference/ops/ops.h"

namespace parallax::reference {
namespace {

// The rows that are normalised: `count` elements, `stride` apart.
struct Rows {
  int64_t outer;
  int64_t count;
  int64_t inner;
};

Result<Rows> rows_of(const OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const int64_t given = op.int_attribute("axis");
  if (op.since_version() < 13) {
    // The input is coerced to a matrix at `axis`, which may be the rank itself.
    const size_t axis =
        given == static_cast<int64_t>(shape.rank()) ? shape.rank() : PX_TRY(normalize_axis(given, shape.rank()));
    return Rows{count_of(shape, 0, axis), count_of(shape, axis, shape.rank()), 1};
  }
  if (shape.rank() == 0) return Rows{1, 1, 1};
  const size_t axis = PX_TRY(normalize_axis(given, shape.rank()));
  return Rows{count_of(shape, 0, axis), shape[axis], count_of(shape, axis + 1, shape.rank())};
}

// Calls row(read, write) for each row, with functions of the position within it.
template <class Row>
Status for_rows(OpContext& op, const Row& row) {
  const Tensor& input = op.input(0);
  if (!is_floating(input.dtype())) return unsupported(fmt::format("element type {}", name_of(input.dtype())));
  const Rows rows = PX_TRY(rows_of(op));
  const Numbers<double> numbers(input);
  std::vector<double> results(static_cast<size_t>(numbers.size()));
  parallel_for(rows.outer * rows.inner, 20 * rows.count, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t base = index / rows.inner * rows.count * rows.inner + index % rows.inner;
      row(
          rows.count, [&, base](int64_t k) { return numbers[base + k * rows.inner]; },
          [&, base](int64_t k) -> double& { return results[static_cast<size_t>(base + k * rows.inner)]; });
    }
  });
  return op.set_output(0, input.dtype(), input.shape(), std::span<const double>(results));
}

// NaN wins, so that a row with NaN becomes NaN as a whole.
template <class Read>
double highest_of(int64_t count, const Read& read) {
  double highest = -std::numeric_limits<double>::infinity();
  for (int64_t k = 0; k < count; ++k) {
    if (std::isnan(read(k))) return read(k);
    highest = std::max(highest, read(k));
  }
  return highest;
}

}  // namespace

// exp(x - max) / sum(exp(x - max)). A row of -inf alone is NaN, as the formula says.
Status op_softmax(OpContext& op) {
  return for_rows(op, [](int64_t count, const auto& read, const auto& write) {
    const double highest = highest_of(count, read);
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += write(k) = std::exp(read(k) - highest);
    for (int64_t k = 0; k < count; ++k) write(k) /= sum;
  });
}

// x - max - log(sum(exp(x - max)))
Status op_log_softmax(OpContext& op) {
  return for_rows(op, [](int64_t count, const auto& read, const auto& write) {
    const double highest = highest_of(count, read);
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += std::exp(read(k) - highest);
    for (int64_t k = 0; k < count; ++k) write(k) = read(k) - highest - std::log(sum);
  });
}

// 1 at the first of the greatest elements, 0 elsewhere.
Status op_hardmax(OpContext& op) {
  return for_rows(op, [](int64_t count, const auto& read, const auto& write) {
    int64_t best = 0;
    for (int64_t k = 1; k < count; ++k) {
      if (read(k) > read(best)) best = k;
    }
    for (int64_t k = 0; k < count; ++k) write(k) = k == best ? 1.0 : 0.0;
  });
}

}  // namespace parallax::reference
