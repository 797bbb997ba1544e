// SPDX-License-Identifier: Apache-2.0
// Operators along a row whose every output needs the whole row: the softmax family and cumulative sums.
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/math.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/ops/families.h"
#include "runtime/ops/row_folds.h"

namespace parallax::runtime {
namespace {

// The highest of the numbers; a NaN is skipped: e^NaN makes the sum NaN, and with it the whole row.
struct HighestNumber {
  template <class C>
  PX_HD C init() const {
    return -std::numeric_limits<C>::infinity();
  }
  template <class C>
  PX_HD C step(C a, C x) const {
    return x > a ? x : a;
  }
  template <class C>
  PX_HD C merge(C a, C b) const {
    return b > a ? b : a;
  }
};
template <class C>
struct ExponentialOf {  // e^(x - highest)
  C highest;
  PX_HD C operator()(C x, int64_t) const { return math::exp_nonpositive(x - highest); }
};
template <class C>
struct ScaledBy {
  C factor;
  PX_HD C operator()(C x) const { return x * factor; }
};
template <class C>
struct LogProbability {
  C highest;
  C log_sum;
  PX_HD C operator()(C x, int64_t) const { return x - highest - log_sum; }
};

template <class C>
struct Probability {
  C highest;
  C factor;
  PX_HD C operator()(C x, int64_t) const { return math::exp_nonpositive(x - highest) * factor; }
};
template <class C>
struct SumOfExponentials : FoldSum {
  C highest;
  PX_HD C step(C a, C x) const { return a + math::exp_nonpositive(x - highest); }
};

// The sum of e^(x - highest) next to the highest number of a part of a row; of e^x where there is none above -inf.
template <class C>
struct SoftmaxPart {
  C highest;
  C sum;
};
struct SoftmaxParts {
  template <class C>
  PX_HD SoftmaxPart<C> init() const {
    return {-std::numeric_limits<C>::infinity(), C(0)};
  }
  template <class C>
  PX_HD SoftmaxPart<C> merge(SoftmaxPart<C> a, SoftmaxPart<C> b) const {
    const C highest = HighestNumber{}.merge(a.highest, b.highest);
    return {highest, scaled(a, highest) + scaled(b, highest)};
  }
  template <class Team>
  PX_HD auto part(Team& team) const {
    using C = typename Team::Value;
    const C highest = team.fold(HighestNumber{});
    const bool has_number = highest > -std::numeric_limits<C>::infinity();
    return SoftmaxPart<C>{highest, team.fold(SumOfExponentials<C>{{}, has_number ? highest : C(0)})};
  }

 private:
  template <class C>
  PX_HD static C scaled(SoftmaxPart<C> part, C highest) {
    return part.highest == highest ? part.sum : part.sum * math::exp_nonpositive(part.highest - highest);
  }
};

struct SoftmaxRow : SoftmaxParts {
  template <class Team>
  PX_HD void operator()(Team& team, int64_t row) const {
    using C = typename Team::Value;
    if constexpr (Team::kKeepsEmitted) {
      team.emit(ExponentialOf<C>{team.fold(HighestNumber{})});
      team.change_emitted(ScaledBy<C>{C(1) / team.fold_emitted(FoldSum{})});
    } else {
      emit(team, part(team), row);
    }
  }
  template <class Team, class C>
  PX_HD void emit(Team& team, SoftmaxPart<C> whole, int64_t) const {
    team.emit(Probability<C>{whole.highest, C(1) / whole.sum});
  }
};
struct LogSoftmaxRow : SoftmaxParts {
  template <class Team>
  PX_HD void operator()(Team& team, int64_t row) const {
    using C = typename Team::Value;
    if constexpr (Team::kKeepsEmitted) {
      const C highest = team.fold(HighestNumber{});
      team.emit(ExponentialOf<C>{highest});
      const C log_sum = std::log(team.fold_emitted(FoldSum{}));
      team.emit(LogProbability<C>{highest, log_sum});
    } else {
      emit(team, part(team), row);
    }
  }
  template <class Team, class C>
  PX_HD void emit(Team& team, SoftmaxPart<C> whole, int64_t) const {
    team.emit(LogProbability<C>{whole.highest, std::log(whole.sum)});
  }
};

// The index of the first of the largest values.
template <class C>
struct Largest {
  C value;
  int64_t location;
};
struct FirstLargest {
  template <class C>
  PX_HD Largest<C> init() const {
    return {C(0), -1};
  }
  template <class C>
  PX_HD Largest<C> step(Largest<C> best, C value, int64_t location) const {
    return merge(best, Largest<C>{value, location});
  }
  template <class C>
  PX_HD Largest<C> merge(Largest<C> a, Largest<C> b) const {
    if (a.location < 0 || b.location < 0) return a.location < 0 ? b : a;
    if (a.value == b.value) return a.location < b.location ? a : b;
    return b.value > a.value ? b : a;
  }
};
template <class C>
struct OneAt {
  int64_t location;
  PX_HD C operator()(C, int64_t i) const { return i == location ? C(1) : C(0); }
};
struct HardmaxRow : FirstLargest {
  [[maybe_unused]] static constexpr bool kIsIndex = true;  // what is known of a row
  template <class Team>
  PX_HD void operator()(Team& team, int64_t row) const {
    emit(team, part(team), row);
  }
  template <class Team>
  PX_HD auto part(Team& team) const {
    return team.fold_elements(FirstLargest{});
  }
  template <class Team, class C>
  PX_HD void emit(Team& team, Largest<C> whole, int64_t) const {
    team.emit(OneAt<C>{whole.location});
  }
};

// Before version 13 everything from the axis on is one row. Version 1 says nothing of the axis' range: it may be the
// rank itself; since version 11 it is in [-rank, rank - 1].
template <class Device, class Row>
Status softmax_like(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const int64_t rank = rank_of(x.shape());
  const int64_t axis = op.integer("axis");
  RowLayout rows{1, x.element_count(), 1};
  if (op.since_version() < 13) {
    const Ints dims(x.shape());
    const bool is_rank = axis == rank && op.since_version() < 11;
    const int64_t first = is_rank ? rank : PX_TRY(OpCall::resolve_axis(axis, rank));
    rows = {product(dims, 0, first), product(dims, first, rank), 1};
  } else if (rank > 0) {
    rows = rows_along(x.shape(), PX_TRY(OpCall::resolve_axis(axis, rank)));
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  if (rows.length == 0) return {};
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    scan_rows<C, C>(op.queue(), Row{}, rows, y, x.view(), 4);
    return {};
  });
}

// ---- CumSum, CumProd ----

struct Plus {
  template <class C>
  PX_HD C operator()(C a, C b) const {
    return wrapping_sum(a, b);
  }
  static constexpr int kStart = 0;
};
struct Times {
  template <class C>
  PX_HD C operator()(C a, C b) const {
    return wrapping_product(a, b);
  }
  static constexpr int kStart = 1;
};

template <class Combine>
struct CumulativeRow {
  static constexpr bool kEmitsOnce = true;
  bool exclusive;
  bool reverse;
  Running running() const { return {Combine::kStart == 1, exclusive, reverse}; }
  template <class Team>
  PX_HD void operator()(Team& team, int64_t) const {
    using C = typename Team::Value;
    team.emit_running(Combine{}, static_cast<C>(Combine::kStart), exclusive, reverse);
  }
};

template <class Device, class Combine>
Status cumulative(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer_of_input(1), rank_of(x.shape())));
  const RowLayout rows = rows_along(x.shape(), axis);
  const CumulativeRow<Combine> row{op.integer("exclusive") != 0, op.integer("reverse") != 0};
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  return visit_arithmetic<Numbers>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    scan_rows<C, C>(op.queue(), row, rows, y, x.view());
    return {};
  });
}

template <class Device>
constexpr KernelRow<Device> kSoftmaxRows[] = {
    reads_on_host<Device>({1}, {"CumProd", kReals, cumulative<Device, Times>}),
    reads_on_host<Device>({1}, {"CumSum", kReals, cumulative<Device, Plus>}),
    {"Hardmax", kFloats, softmax_like<Device, HardmaxRow>},
    {"LogSoftmax", kFloats, softmax_like<Device, LogSoftmaxRow>},
    {"Softmax", kFloats, softmax_like<Device, SoftmaxRow>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> softmax_rows() {
  return kSoftmaxRows<CompiledDevice>;
}

}  // namespace parallax::runtime
