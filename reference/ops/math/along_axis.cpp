// SPDX-License-Identifier: Apache-2.0
// Operators that go along one axis: CumSum, CumProd, ArgMax, ArgMin, TopK.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// The lines of a tensor along one axis: element k of line i is at base(i) + k * inner.
struct AxisLines {
  int64_t count = 0;   // of lines
  int64_t length = 0;  // of each
  int64_t inner = 1;
  int64_t base(int64_t line) const { return line / inner * length * inner + line % inner; }
};

AxisLines lines_of(const Shape& shape, size_t axis) {
  const int64_t inner = count_of(shape, axis + 1, shape.rank());
  return {count_of(shape, 0, axis) * inner, shape[axis], inner};
}

template <class Fold>
Status accumulate(OpContext& op, int64_t start, Fold fold) {
  const Tensor& x = op.input(0);
  const int64_t given_axis = PX_TRY(op.int64_of_input(1));
  const size_t axis = PX_TRY(normalize_axis(given_axis, x.shape().rank()));
  const bool exclusive = op.int_attribute("exclusive") != 0;
  const bool reverse = op.int_attribute("reverse") != 0;
  const AxisLines lines = lines_of(x.shape(), axis);
  return with_number_type(x.dtype(), [&](auto number) -> Status {
    using T = decltype(number);
    const Numbers<T> numbers(x);
    std::vector<T> results(static_cast<size_t>(numbers.size()));
    for (int64_t line = 0; line < lines.count; ++line) {
      T sum = static_cast<T>(start);
      for (int64_t k = 0; k < lines.length; ++k) {
        const int64_t at = lines.base(line) + (reverse ? lines.length - 1 - k : k) * lines.inner;
        const T next = fold(sum, numbers[at]);
        results[static_cast<size_t>(at)] = exclusive ? sum : next;
        sum = next;
      }
    }
    return op.set_output(0, x.dtype(), x.shape(), std::span<const T>(results));
  });
}

// The position of the best element of each line, the first of equals unless select_last_index. NaN is better than any
// number: the specification is silent, and so does numpy.
template <class Better>
Status arg_best(OpContext& op, Better better) {
  const Tensor& data = op.input(0);
  const Shape& shape = data.shape();
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), shape.rank()));
  const bool last = op.find_int("select_last_index").value_or(0) != 0;
  const AxisLines lines = lines_of(shape, axis);
  if (lines.length == 0) return wrong_input(op, 0, "have one element or more along axis {}", axis);
  std::vector<int64_t> dims(shape.begin(), shape.end());
  if (op.int_attribute("keepdims") != 0)
    dims[axis] = 1;
  else
    dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
  std::vector<int64_t> results(static_cast<size_t>(lines.count));
  PX_TRY(with_number_type(data.dtype(), [&](auto number) -> Status {
    using T = decltype(number);
    const Numbers<T> numbers(data);
    for (int64_t line = 0; line < lines.count; ++line) {
      int64_t best = 0;
      for (int64_t k = 1; k < lines.length; ++k) {
        const T held = numbers[lines.base(line) + best * lines.inner];
        const T next = numbers[lines.base(line) + k * lines.inner];
        const bool equal = next == held || (is_nan(next) && is_nan(held));
        if (equal ? last : !is_nan(held) && (is_nan(next) || better(next, held))) best = k;
      }
      results[static_cast<size_t>(line)] = best;
    }
    return {};
  }));
  return op.set_output(0, DType::int64, Shape(dims), std::span<const int64_t>(results));
}

// Positions of the k first of a line in the order asked. Equal elements keep their order (the lower index first, as
// stated).
template <class T, class Read>
std::vector<int64_t> top_of(int64_t length, int64_t k, bool largest, const Read& read) {
  std::vector<int64_t> order(static_cast<size_t>(length));
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](int64_t a, int64_t b) {
    const T left = read(a);
    const T right = read(b);
    if (is_nan(left) || is_nan(right)) return largest ? is_nan(left) && !is_nan(right) : !is_nan(left) && is_nan(right);
    return largest ? left > right : left < right;
  };
  std::stable_sort(order.begin(), order.end(), before);
  order.resize(static_cast<size_t>(k));
  return order;
}

Status op_cum_sum(OpContext& op) {
  return accumulate(op, 0, [](auto sum, auto x) { return wrapping_add(sum, x); });
}

Status op_cum_prod(OpContext& op) {
  return accumulate(op, 1, [](auto product, auto x) { return wrapping_multiply(product, x); });
}

Status op_arg_max(OpContext& op) {
  return arg_best(op, [](auto next, auto held) { return next > held; });
}

Status op_arg_min(OpContext& op) {
  return arg_best(op, [](auto next, auto held) { return next < held; });
}

// NaN counts as the greatest number, as numpy sorts. Unsorted results are given sorted, which `sorted` = 0 allows.
Status op_top_k(OpContext& op) {
  const Tensor& x = op.input(0);
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), x.shape().rank()));
  const int64_t k = op.since_version() < 10 ? op.int_attribute("k") : PX_TRY(op.int64_of_input(1));
  const bool largest = op.find_int("largest").value_or(1) != 0;
  const AxisLines lines = lines_of(x.shape(), axis);
  if (k < 0 || k > lines.length) return wrong_value("k", k, "be in [0, {}], the size of axis {}", lines.length, axis);
  const Shape shape = PX_TRY(with_dim(x.shape(), axis, k));
  std::vector<int64_t> indices(static_cast<size_t>(shape.element_count()));
  const AxisLines out = lines_of(shape, axis);
  PX_TRY(with_number_type(x.dtype(), [&](auto number) -> Status {
    using T = decltype(number);
    const Numbers<T> numbers(x);
    std::vector<T> values(indices.size());
    for (int64_t line = 0; line < lines.count; ++line) {
      const auto read = [&](int64_t at) { return numbers[lines.base(line) + at * lines.inner]; };
      const std::vector<int64_t> order = top_of<T>(lines.length, k, largest, read);
      for (int64_t location = 0; location < k; ++location) {
        const auto at = static_cast<size_t>(out.base(line) + location * out.inner);
        indices[at] = order[static_cast<size_t>(location)];
        values[at] = read(indices[at]);
      }
    }
    return op.set_output(0, x.dtype(), shape, std::span<const T>(values));
  }));
  return op.set_output(1, DType::int64, shape, std::span<const int64_t>(indices));
}

constexpr OpRow kAlongAxisRows[] = {
    {"ArgMax", kOnnx, 1, 13, op_arg_max},    {"ArgMin", kOnnx, 1, 13, op_arg_min},
    {"CumProd", kOnnx, 26, 26, op_cum_prod}, {"CumSum", kOnnx, 11, 14, op_cum_sum},
    {"TopK", kOnnx, 1, 24, op_top_k},
};

}  // namespace

OpRows along_axis_rows() { return kAlongAxisRows; }

}  // namespace parallax::reference
