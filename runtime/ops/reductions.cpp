// SPDX-License-Identifier: Apache-2.0
// Reductions: a fold each. Axes that are not adjacent are brought together by a transpose first.
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/channels_last.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/math.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/cpu/window_channels_last.h"
#include "runtime/device/storage.h"
#include "runtime/ops/families.h"
#include "runtime/ops/row_folds.h"

namespace parallax::runtime {
namespace {

struct FoldL1 : FoldBase {
  template <class C>
  PX_HD C step(C a, C x) const {
    return wrapping_sum(a, wrapping_magnitude(x));
  }
};
struct FoldSumSquare : FoldBase {
  template <class C>
  PX_HD C step(C a, C x) const {
    return wrapping_sum(a, wrapping_product(x, x));
  }
};
struct FoldL2 : FoldSumSquare {
  template <class C>
  PX_HD C finish(C a, int64_t) const {
    return storage::from_storage<C>(std::sqrt(a));
  }
};
struct FoldLogSum : FoldSum {
  template <class C>
  PX_HD C finish(C a, int64_t) const {
    return storage::from_storage<C>(std::log(a));
  }
};
struct FoldProd : FoldBase {
  template <class C>
  PX_HD C init() const {
    return C(1);
  }
  template <class C>
  PX_HD C step(C a, C x) const {
    return wrapping_product(a, x);
  }
  template <class C>
  PX_HD C merge(C a, C b) const {
    return wrapping_product(a, b);
  }
};
struct FoldMin : FoldBase {
  template <class C>
  PX_HD C init() const {
    return std::numeric_limits<C>::has_infinity ? std::numeric_limits<C>::infinity() : std::numeric_limits<C>::max();
  }
  template <class C>
  PX_HD C step(C a, C x) const {
    return math::minimum(a, x);
  }
  template <class C>
  PX_HD C merge(C a, C b) const {
    return math::minimum(a, b);
  }
};

// Axes are an attribute before version 18 (13 for ReduceSum), an optional input since.
template <class Device>
Result<Ints> reduced_axes(OpContext<Device>& op, int64_t rank, bool& nothing_to_do) {
  Ints axes;
  if (op.has_input(1)) {
    axes = PX_TRY(op.integers_of_input(1));
  } else if (auto given = op.find_integers("axes")) {
    axes = std::move(*given);
  }
  nothing_to_do = axes.empty() && op.find_integer("noop_with_empty_axes").value_or(0) != 0;
  if (axes.empty()) {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  return OpCall::resolve_axes(std::move(axes), rank);
}

Result<Shape> reduced_shape(const Shape& from, const Ints& axes, bool keepdims) {
  Ints dims;
  for (int64_t axis = 0; axis < rank_of(from); ++axis) {
    if (!axes.contains(axis)) dims.push_back(dim_of(from, axis));
    if (axes.contains(axis) && keepdims) dims.push_back(1);
  }
  return shape_of(dims);
}

struct ReductionInput {
  TensorView view;
  RowLayout rows;
};

// The input with its reduced axes side by side: as it is where they are, else a transposed copy with them last.
template <class Device>
Result<ReductionInput> gather_axes(OpContext<Device>& op, const Tensor& x, const Ints& axes) {
  const Ints dims(x.shape());
  if (axes.empty()) return ReductionInput{x.view(), {x.element_count(), 1, 1}};
  const int64_t first = axes[0];
  const int64_t last = axes.back();
  int64_t between = 1;  // elements of kept axes among the reduced ones
  for (int64_t axis = first; axis <= last; ++axis) between *= axes.contains(axis) ? 1 : dims[axis];
  if (between == 1) {
    return ReductionInput{
        x.view(), {product(dims, 0, first), product(dims, first, last + 1), product(dims, last + 1, dims.size())}};
  }
  const Ints strides = row_major_strides(dims);
  Ints walk, from;
  int64_t kept = 1;
  for (const bool reduced : {false, true}) {
    for (int64_t axis = 0; axis < dims.size(); ++axis) {
      if (axes.contains(axis) != reduced) continue;
      walk.push_back(dims[axis]);
      from.push_back(strides[axis]);
      if (!reduced) kept *= dims[axis];
    }
  }
  const MutableView copy = PX_TRY(op.scratch(x.dtype(), shape_of(walk)));
  copy_strided(op.queue(), element_bytes(x.dtype()), walk, {copy.data, row_major_strides(walk), 0},
               {x.view().data, from, 0});
  int64_t length = 1;
  for (int64_t axis : axes) length *= dims[axis];
  return ReductionInput{TensorView(copy), {kept, length, 1}};
}

// The least value (of a maximum over nothing) or the greatest of an integer type or bool, as the bits of an int64.
int64_t limit_of(DType dtype, bool least) {
  if (dtype == DType::bool_) return least ? 0 : 1;
  const auto bits = static_cast<unsigned>(bits_of(dtype));
  if (info_of(dtype).kind == DTypeKind::unsigned_integer)
    return least ? 0 : static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
  const auto greatest = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
  return least ? -greatest - 1 : greatest;
}

// True where x is channels last, and all elements of a channel are reduced to one.
[[maybe_unused]] bool reduces_positions(const Tensor& x, const Ints& axes) {
  if (!is_channels_last(x) || x.dtype() != DType::float32 || axes.size() != rank_of(x.shape()) - 2) return false;
  return axes[0] == 2;  // sorted, each once
}

template <class Device, class Fold, class Domain>
Status reduce(OpContext<Device>& op) {
  Tensor x = op.input(0);
  bool nothing_to_do = false;
  Ints axes = PX_TRY(reduced_axes(op, rank_of(x.shape()), nothing_to_do));
  if (nothing_to_do) axes = Ints{};  // each element is a row of its own
  const Shape shape = PX_TRY(reduced_shape(x.shape(), axes, op.integer("keepdims") != 0));
  if constexpr (std::is_same_v<Device, Cpu> && std::is_same_v<Fold, FoldMean>) {
    if (reduces_positions(x, axes)) {
      const Ints dims(x.shape());
      const MutableView means = PX_TRY(op.make_output(0, x.dtype(), shape));
      fold_elements_channels_last(op.queue(), Fold{}, dims[0], product(dims, 2, dims.size() - 1), dims.back(), dims[1],
                                  means.template as<float>(), reinterpret_cast<const float*>(x.view().data));
      return {};
    }
    x = PX_TRY(to_row_major(op.queue(), x));
  }
  const ReductionInput in = PX_TRY(gather_axes(op, x, axes));
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape));
  if constexpr (std::is_same_v<Fold, FoldMax> || std::is_same_v<Fold, FoldMin>) {
    if (in.rows.length == 0 && !is_floating(x.dtype())) {
      const int64_t limit = limit_of(x.dtype(), std::is_same_v<Fold, FoldMax>);
      std::byte element[8] = {};
      store_block<int64_t>(y.dtype, element, 0, 1, &limit);
      return fill(op.queue(), y, element), Status{};
    }
    if (x.dtype() == DType::bool_) return fold_rows<int64_t>(op.queue(), Fold{}, in.rows, y, in.view), Status{};
  }
  return visit_arithmetic<Domain>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    if constexpr (std::is_integral_v<C> && std::is_same_v<Fold, FoldMean>) {
      constexpr std::byte kZero[8] = {};  // what the mean of no integers is taken for
      if (in.rows.length == 0) return fill(op.queue(), y, kZero), Status{};
    }
    fold_rows<C>(op.queue(), Fold{}, in.rows, y, in.view);
    return {};
  });
}

// The sum of e^(x - highest) next to the highest value so far: no exponential overflows.
template <class C>
struct ShiftedSum {
  C highest;
  C sum;
};
struct LogSumExp {
  template <class C>
  PX_HD ShiftedSum<C> init() const {
    return {-std::numeric_limits<C>::infinity(), C(0)};
  }
  template <class C>
  PX_HD ShiftedSum<C> step(ShiftedSum<C> state, C x, int64_t) const {
    return merge(state, ShiftedSum<C>{x, C(1)});
  }
  template <class C>
  PX_HD ShiftedSum<C> merge(ShiftedSum<C> a, ShiftedSum<C> b) const {
    const C highest = math::maximum(a.highest, b.highest);
    if (highest - highest != C(0)) return {highest, C(1)};  // infinite or NaN: the result itself
    return {highest, scaled(a, highest) + scaled(b, highest)};
  }
  template <class C>
  PX_HD C finish(ShiftedSum<C> state, int64_t) const {
    return state.highest - state.highest != C(0) ? state.highest : state.highest + std::log(state.sum);
  }

 private:
  template <class C>
  PX_HD static C scaled(ShiftedSum<C> part, C highest) {
    return part.highest == highest ? part.sum : part.sum * math::exp(part.highest - highest);
  }
};

template <class Device>
Status reduce_log_sum_exp(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  bool nothing_to_do = false;
  Ints axes = PX_TRY(reduced_axes(op, rank_of(x.shape()), nothing_to_do));
  if (nothing_to_do) axes = Ints{};
  const Shape shape = PX_TRY(reduced_shape(x.shape(), axes, op.integer("keepdims") != 0));
  const ReductionInput in = PX_TRY(gather_axes(op, x, axes));
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape));
  if (is_integer(x.dtype())) {  // what has a fraction is cut
    fold_elements<double>(op.queue(), LogSumExp{}, in.rows, y, in.view);
    return {};
  }
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    fold_elements<C>(op.queue(), LogSumExp{}, in.rows, y, in.view);
    return {};
  });
}

// ---- ArgMax and ArgMin ----

template <class C>
struct Extreme {
  C value;
  int64_t location;
};
template <bool kWantMax>
struct FoldArg {
  bool select_last;
  template <class C>
  PX_HD Extreme<C> init() const {
    return {C(0), -1};
  }
  template <class C>
  PX_HD Extreme<C> step(Extreme<C> best, C value, int64_t location) const {
    return merge(best, Extreme<C>{value, location});
  }
  template <class C>
  PX_HD Extreme<C> merge(Extreme<C> a, Extreme<C> b) const {
    if (a.location < 0 || b.location < 0) return a.location < 0 ? b : a;
    const bool a_is_nan = a.value != a.value;
    const bool b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan) return a_is_nan ? a : b;
    if (a.value == b.value || a_is_nan) return (a.location < b.location) != select_last ? a : b;
    return (kWantMax ? b.value > a.value : b.value < a.value) ? b : a;
  }
  template <class C>
  PX_HD int64_t finish(Extreme<C> best, int64_t) const {
    return best.location;
  }

  // All steps of a row on the host: the value first, in lanes, then its index.
  template <class C>
  Extreme<C> of_row(const C* row, int64_t length) const {
    const int64_t whole = length / kLanes * kLanes;
    C best = row[0];
    if (whole > 0) {
      vectorized(0, whole, [row, &best](int64_t, int64_t end) {
        C lanes[kLanes];
        for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = row[lane];
        for (int64_t i = kLanes; i < end; i += kLanes) {
          for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = better(lanes[lane], row[i + lane]);
        }
        for (int64_t lane = 0; lane < kLanes; ++lane) best = better(best, lanes[lane]);
      });
    }
    for (int64_t i = whole; i < length; ++i) best = better(best, row[i]);
    return {best, select_last ? last_index(row, length, best) : first_index(row, length, best)};
  }

 private:
  static constexpr int64_t kLanes = 64;

  // NaN stays.
  template <class C>
  static C better(C a, C b) {
    return (kWantMax ? b > a : b < a) || b != b ? (a != a ? a : b) : a;
  }
  template <class C>
  static bool is_it(C value, C best) {
    return value == best || (value != value && best != best);
  }
  template <class C>
  static int64_t first_index(const C* row, int64_t length, C best) {
    int64_t first = 0;
    for (; first + kLanes <= length; first += kLanes) {
      int32_t count = 0;
      for (int64_t i = first; i < first + kLanes; ++i) count += is_it(row[i], best) ? 1 : 0;
      if (count > 0) break;
    }
    while (!is_it(row[first], best)) ++first;
    return first;
  }
  template <class C>
  static int64_t last_index(const C* row, int64_t length, C best) {
    int64_t last = length - 1;
    while (!is_it(row[last], best)) --last;
    return last;
  }
};

template <class Device, bool kWantMax>
Status arg_reduce(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("axis"), std::max<int64_t>(1, rank_of(x.shape()))));
  const bool is_scalar = x.shape().rank() == 0;
  const Shape shape = is_scalar ? x.shape() : PX_TRY(reduced_shape(x.shape(), Ints{axis}, op.integer("keepdims") != 0));
  const RowLayout rows = is_scalar ? RowLayout{} : rows_along(x.shape(), axis);
  if (rows.length == 0 && rows.row_count() > 0)
    return wrong_input(op, 0, "have one element or more along axis {}", axis);
  const bool select_last = op.find_integer("select_last_index").value_or(0) != 0;
  const MutableView y = PX_TRY(op.make_output(0, DType::int64, shape));
  return visit_arithmetic<Numbers>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    fold_elements<C>(op.queue(), FoldArg<kWantMax>{select_last}, rows, y, x.view());
    return {};
  });
}

constexpr uint32_t kReducible = kReals | kBool;

template <class Device>
constexpr KernelRow<Device> kReductionRows[] = {
    {"ArgMax", kReals, arg_reduce<Device, true>},
    {"ArgMin", kReals, arg_reduce<Device, false>},
    reads_on_host<Device>({1}, {"ReduceL1", kReals, reduce<Device, FoldL1, Numbers>}),
    reads_on_host<Device>({1}, {"ReduceL2", kReals, reduce<Device, FoldL2, Numbers>}),
    reads_on_host<Device>({1}, {"ReduceLogSum", kReals, reduce<Device, FoldLogSum, Numbers>}),
    reads_on_host<Device>({1}, {"ReduceLogSumExp", kReals, reduce_log_sum_exp<Device>}),
    reads_on_host<Device>({1}, {"ReduceMax", kReducible, reduce<Device, FoldMax, Numbers>}),
    takes_channels_last<Device>({0},
                                reads_on_host<Device>({1}, {"ReduceMean", kReals, reduce<Device, FoldMean, Numbers>})),
    reads_on_host<Device>({1}, {"ReduceMin", kReducible, reduce<Device, FoldMin, Numbers>}),
    reads_on_host<Device>({1}, {"ReduceProd", kReals, reduce<Device, FoldProd, Numbers>}),
    reads_on_host<Device>({1}, {"ReduceSum", kReals, reduce<Device, FoldSum, Numbers>}),
    reads_on_host<Device>({1}, {"ReduceSumSquare", kReals, reduce<Device, FoldSumSquare, Numbers>}),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> reduction_rows() {
  return kReductionRows<CompiledDevice>;
}

}  // namespace parallax::runtime
