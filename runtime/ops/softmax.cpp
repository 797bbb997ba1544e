// Operators along a row whose every output needs the whole row: the softmax family and cumulative sums.
#include "runtime/device/map.h"
#include "runtime/device/math.h"
#include "runtime/device/rows.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

struct MaxOf {
  template <class C>
  C init() const {
    return -std::numeric_limits<C>::infinity();
  }
  template <class C>
  C step(C a, C x) const {
    return math::maximum(a, x);
  }
  template <class C>
  C merge(C a, C b) const {
    return math::maximum(a, b);
  }
};
struct SumOf {
  template <class C>
  C init() const {
    return C(0);
  }
  template <class C>
  C step(C a, C x) const {
    return a + x;
  }
  template <class C>
  C merge(C a, C b) const {
    return a + b;
  }
};

// out = exp(in - shift)
template <class C>
void exponentials(const C* in, C shift, C* out, int64_t length) {
  vectorised(0, length, [=](int64_t begin, int64_t end) {
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) out[i] = math::exp(in[i] - shift);
  });
}

struct SoftmaxRow {
  int64_t length;
  template <class C>
  void operator()(int64_t, const C* in, C* out) const {
    exponentials(in, rows_detail::fold_row<C>(MaxOf{}, in, length), out, length);
    const C sum = rows_detail::fold_row<C>(SumOf{}, out, length);
    vectorised(0, length, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] /= sum;
    });
  }
};
struct LogSoftmaxRow {
  int64_t length;
  template <class C>
  void operator()(int64_t, const C* in, C* out) const {
    std::vector<C> values(in, in + length);  // `in` may be `out`
    const C highest = rows_detail::fold_row<C>(MaxOf{}, in, length);
    exponentials(in, highest, out, length);
    const C log_sum = std::log(rows_detail::fold_row<C>(SumOf{}, out, length));
    for (int64_t i = 0; i < length; ++i) out[i] = values.data()[i] - highest - log_sum;
  }
};
struct HardmaxRow {  // 1 at the first of the largest
  int64_t length;
  template <class C>
  void operator()(int64_t, const C* in, C* out) const {
    int64_t best = 0;
    for (int64_t i = 1; i < length; ++i) best = in[i] > in[best] ? i : best;
    for (int64_t i = 0; i < length; ++i) out[i] = i == best ? C(1) : C(0);
  }
};

// Before version 13 everything from the axis on is one row.
template <class Device, class Row>
Status softmax_like(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const int64_t rank = rank_of(x.shape());
  const int64_t axis = op.integer("axis");
  RowLayout rows{1, x.element_count(), 1};
  if (op.since_version() < 13) {
    const Ints dims(x.shape());
    const int64_t first = axis == rank ? rank : PX_TRY(OpCall::resolve_axis(axis, rank));
    rows = {product(dims, 0, first), product(dims, first, rank), 1};
  } else if (rank > 0) {
    rows = rows_along(x.shape(), PX_TRY(OpCall::resolve_axis(axis, rank)));
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  if (rows.length == 0) return {};
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    scan_rows<C, C>(op.queue(), Row{rows.length}, rows, y, x.view(), 4);
    return {};
  });
}

// ---- CumSum, CumProd ----

struct Plus {
  template <class C>
  C operator()(C a, C b) const {
    if constexpr (std::is_integral_v<C>) return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    return a + b;
  }
  static constexpr int kStart = 0;
};
struct Times {
  template <class C>
  C operator()(C a, C b) const {
    if constexpr (std::is_integral_v<C>) return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    return a * b;
  }
  static constexpr int kStart = 1;
};

template <class Combine>
struct CumulativeRow {
  int64_t length;
  bool exclusive;
  bool reverse;
  template <class C>
  void operator()(int64_t, const C* in, C* out) const {
    C running = static_cast<C>(Combine::kStart);
    for (int64_t step = 0; step < length; ++step) {
      const int64_t i = reverse ? length - 1 - step : step;
      const C value = in[i];
      const C next = Combine{}(running, value);
      out[i] = exclusive ? running : next;
      running = next;
    }
  }
};

template <class Device, class Combine>
Status cumulative(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer_of_input(1), rank_of(x.shape())));
  const RowLayout rows = rows_along(x.shape(), axis);
  const CumulativeRow<Combine> row{rows.length, op.integer("exclusive") != 0, op.integer("reverse") != 0};
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  return visit_arithmetic<Numbers>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    scan_rows<C, C>(op.queue(), row, rows, y, x.view());
    return {};
  });
}

template <class Device>
constexpr KernelRow<Device> kRows[] = {
    {"CumProd", kReals, cumulative<Device, Times>},
    {"CumSum", kReals, cumulative<Device, Plus>},
    {"Hardmax", kFloats, softmax_like<Device, HardmaxRow>},
    {"LogSoftmax", kFloats, softmax_like<Device, LogSoftmaxRow>},
    {"Softmax", kFloats, softmax_like<Device, SoftmaxRow>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> softmax_rows() {
  return kRows<CompiledDevice>;
}

}  // namespace parallax::runtime
