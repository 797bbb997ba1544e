// SPDX-License-Identifier: Apache-2.0
// Reductions over axes. Sums run in double from the first element to the last, in row-major order of the reduced axes.
#include <cmath>
#include <limits>

#include "reference/ops/axes.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"
#include "reference/ops/quantized.h"

namespace parallax::reference {
namespace {

// Which axes are reduced, and the two index spaces: of the outputs, and of the elements that make one output.
struct Reduction {
  bool nothing = false;  // noop_with_empty_axes: the function is applied to each element alone
  Shape result;          // with or without the reduced axes
  std::vector<int64_t> kept_dims, kept_strides;
  std::vector<int64_t> reduced_dims, reduced_strides;
  int64_t reduced_count = 1;
};

Result<Reduction> plan_reduction(const OpContext& op, int64_t axes_input_version) {
  const Shape& shape = op.input(0).shape();
  const auto axes = PX_TRY(axes_argument(op, axes_input_version, 1));
  const bool keep = op.int_attribute("keepdims") != 0;
  const bool none = !axes.has_value() || axes->empty();
  Reduction plan;
  plan.nothing = none && op.find_int("noop_with_empty_axes").value_or(0) != 0;
  std::vector<bool> reduced(shape.rank(), none && !plan.nothing);
  for (size_t axis : PX_TRY(normalize_axes(axes.value_or(std::vector<int64_t>{}), shape.rank()))) reduced[axis] = true;
  const std::vector<int64_t> strides = strides_of(shape);
  std::vector<int64_t> dims;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    (reduced[axis] ? plan.reduced_dims : plan.kept_dims).push_back(shape[axis]);
    (reduced[axis] ? plan.reduced_strides : plan.kept_strides).push_back(strides[axis]);
    if (!reduced[axis])
      dims.push_back(shape[axis]);
    else if (keep)
      dims.push_back(1);
  }
  for (int64_t dim : plan.reduced_dims) plan.reduced_count *= dim;
  plan.result = PX_TRY(Shape::create(dims));
  return plan;
}

// Calls each(k, base) for every output k, with the offset of its first element.
template <class Each>
void for_outputs(const Reduction& plan, const Each& each) {
  parallel_for(plan.result.element_count(), 2 * plan.reduced_count, [&](int64_t begin, int64_t end) {
    Walk<1> walk(plan.kept_dims, {plan.kept_strides}, begin);
    for (int64_t index = begin; index < end; ++index, walk.next()) each(index, walk.offset());
  });
}

// Folds the elements of one output from its offset on.
template <class T, class Fold>
T fold_elements(const Reduction& plan, const Numbers<T>& numbers, int64_t base, T start, Fold fold) {
  Walk<1> walk(plan.reduced_dims, {plan.reduced_strides});
  for (int64_t count = 0; count < plan.reduced_count; ++count, walk.next())
    start = fold(start, numbers[base + walk.offset()]);
  return start;
}

// result = finish(fold of all elements from `start`).
template <class Fold, class Finish>
Status reduce(OpContext& op, int64_t axes_input_version, Fold fold, Finish finish) {
  const Tensor& data = op.input(0);
  const Reduction plan = PX_TRY(plan_reduction(op, axes_input_version));
  return with_number_type(data.dtype(), [&](auto number) -> Status {
    using T = decltype(number);
    const Numbers<T> numbers(data);
    std::vector<T> results(static_cast<size_t>(plan.result.element_count()));
    for_outputs(plan, [&](int64_t index, int64_t base) {
      results[static_cast<size_t>(index)] = finish(fold_elements(plan, numbers, base, T{0}, fold), plan.reduced_count);
    });
    return op.set_output(0, data.dtype(), plan.result, std::span<const T>(results));
  });
}

constexpr auto kKeep = [](auto folded, int64_t) { return folded; };
constexpr auto kAdd = [](auto sum, auto x) { return wrapping_add(sum, x); };
constexpr auto kAddSquare = [](auto sum, auto x) { return wrapping_add(sum, wrapping_multiply(x, x)); };

// The result of a real function as the element type: integers are truncated.
template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, double>)
    return value;
  else
    return static_cast<T>(truncate_to_int64(value));
}

// The reduction by a choice between elements; NaN wins. Empty sets give the value stated since version 20: the least
// (ReduceMax) or greatest (ReduceMin) of the type.
template <class Better>
Status reduce_choice(OpContext& op, bool empty_is_least, Better better) {
  const Tensor& data = op.input(0);
  const Reduction plan = PX_TRY(plan_reduction(op, 18));
  return with_number_type(data.dtype(), [&](auto number) -> Status {
    using T = decltype(number);
    using Limits = std::numeric_limits<T>;
    const Numbers<T> numbers(data);
    T empty = empty_is_least ? Limits::lowest() : Limits::max();
    if constexpr (std::is_same_v<T, double>) {
      empty = empty_is_least ? -Limits::infinity() : Limits::infinity();
    } else if (data.dtype() == DType::bool_) {
      empty = empty_is_least ? 0 : 1;
    } else if (bits_of(data.dtype()) < 64) {
      const auto [least, greatest] = integer_limits(data.dtype());
      empty = static_cast<T>(empty_is_least ? least : greatest);
    }
    std::vector<T> results(static_cast<size_t>(plan.result.element_count()));
    for_outputs(plan, [&](int64_t index, int64_t base) {
      T& result = results[static_cast<size_t>(index)];
      result = plan.reduced_count == 0 ? empty : numbers[base];
      if (plan.reduced_count > 0) result = fold_elements(plan, numbers, base, result, better);
    });
    return op.set_output(0, data.dtype(), plan.result, std::span<const T>(results));
  });
}

Status op_reduce_sum(OpContext& op) {
  const Reduction plan = PX_TRY(plan_reduction(op, 13));
  if (plan.nothing) return op.set_output(0, op.input(0));
  return reduce(op, 13, kAdd, kKeep);
}

Status op_reduce_mean(OpContext& op) {
  return reduce(op, 18, kAdd, [](auto sum, int64_t count) {
    using T = decltype(sum);
    if constexpr (std::is_same_v<T, double>)
      return sum / static_cast<double>(count);
    else
      return count == 0 ? T{0} : static_cast<T>(sum / static_cast<T>(count));
  });
}

Status op_reduce_prod(OpContext& op) {
  const Tensor& data = op.input(0);
  const Reduction plan = PX_TRY(plan_reduction(op, 18));
  return with_number_type(data.dtype(), [&](auto number) -> Status {
    using T = decltype(number);
    const Numbers<T> numbers(data);
    std::vector<T> results(static_cast<size_t>(plan.result.element_count()));
    for_outputs(plan, [&](int64_t index, int64_t base) {
      results[static_cast<size_t>(index)] =
          fold_elements(plan, numbers, base, T{1}, [](T product, T x) { return wrapping_multiply(product, x); });
    });
    return op.set_output(0, data.dtype(), plan.result, std::span<const T>(results));
  });
}

Status op_reduce_sum_square(OpContext& op) { return reduce(op, 18, kAddSquare, kKeep); }

Status op_reduce_l1(OpContext& op) {
  return reduce(
      op, 18,
      [](auto sum, auto x) { return wrapping_add(sum, x < decltype(x){0} ? wrapping_subtract(decltype(x){0}, x) : x); },
      kKeep);
}

Status op_reduce_l2(OpContext& op) {
  return reduce(op, 18, kAddSquare,
                [](auto sum, int64_t) { return from_double<decltype(sum)>(std::sqrt(static_cast<double>(sum))); });
}

Status op_reduce_log_sum(OpContext& op) {
  return reduce(op, 18, kAdd,
                [](auto sum, int64_t) { return from_double<decltype(sum)>(std::log(static_cast<double>(sum))); });
}

// log(sum(exp(x - max))) + max, so that nothing overflows.
Status op_reduce_log_sum_exp(OpContext& op) {
  const Tensor& data = op.input(0);
  const Reduction plan = PX_TRY(plan_reduction(op, 18));
  const Numbers<double> numbers(data);
  std::vector<double> results(static_cast<size_t>(plan.result.element_count()));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for_outputs(plan, [&](int64_t index, int64_t base) {
    const double highest =
        fold_elements(plan, numbers, base, -kInfinity, [](double a, double x) { return is_nan(a) || a >= x ? a : x; });
    const double shift = std::isinf(highest) ? 0.0 : highest;
    const double sum =
        fold_elements(plan, numbers, base, 0.0, [=](double s, double x) { return s + std::exp(x - shift); });
    results[static_cast<size_t>(index)] = std::log(sum) + shift;
  });
  if (is_floating(data.dtype())) return op.set_output(0, data.dtype(), plan.result, std::span<const double>(results));
  std::vector<int64_t> truncated;
  for (double value : results) truncated.push_back(truncate_to_int64(value));
  return op.set_output(0, data.dtype(), plan.result, std::span<const int64_t>(truncated));
}

Status op_reduce_max(OpContext& op) {
  return reduce_choice(op, true, [](auto best, auto x) { return is_nan(best) || best >= x ? best : x; });
}

Status op_reduce_min(OpContext& op) {
  return reduce_choice(op, false, [](auto best, auto x) { return is_nan(best) || best <= x ? best : x; });
}

constexpr OpRow kReduceRows[] = {
    {"ReduceL1", kOnnx, 1, 18, op_reduce_l1},          {"ReduceL2", kOnnx, 1, 18, op_reduce_l2},
    {"ReduceLogSum", kOnnx, 1, 28, op_reduce_log_sum}, {"ReduceLogSumExp", kOnnx, 1, 28, op_reduce_log_sum_exp},
    {"ReduceMax", kOnnx, 1, 20, op_reduce_max},        {"ReduceMean", kOnnx, 1, 18, op_reduce_mean},
    {"ReduceMin", kOnnx, 1, 20, op_reduce_min},        {"ReduceProd", kOnnx, 1, 18, op_reduce_prod},
    {"ReduceSum", kOnnx, 1, 13, op_reduce_sum},        {"ReduceSumSquare", kOnnx, 1, 18, op_reduce_sum_square},
};

}  // namespace

OpRows reduce_rows() { return kReduceRows; }

}  // namespace parallax::reference
