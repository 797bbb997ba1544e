// SPDX-License-Identifier: Apache-2.0
// map: out[i] = f(in0[i], in1[i], ...) with broadcasting, for any storage types. The functor is called with values of
// one arithmetic type and may be named anywhere: it knows neither storage nor device.
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <type_traits>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/ints.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/queue_cpu.h"
#include "runtime/device/cpu/tabulate.h"

namespace parallax::runtime {

// The value itself: for conversions between storage types.
struct Same {
  template <class T>
  PX_HD T operator()(T x) const {
    return x;
  }
};

// The operands' shapes in their simplest form: as few axes as possible, the innermost contiguous or constant in every
// operand.
template <size_t N>
struct MapPlan {
  Ints dims;
  std::array<Ints, N> strides;
  int64_t run() const { return dims.back(); }
};

// Merges neighboring axes that every operand walks as one.
void merge_axes(Ints& dims, std::span<Ints> strides);

template <size_t N>
MapPlan<N> plan_map(const Shape& out, const std::array<TensorView, N>& in) {
  MapPlan<N> plan;
  if (std::all_of(in.begin(), in.end(), [&](const TensorView& each) { return each.shape == out; })) {
    plan.dims.push_back(out.element_count());
    for (Ints& own : plan.strides) own.push_back(1);
    return plan;
  }
  plan.dims = out;
  for (size_t operand = 0; operand < N; ++operand) plan.strides[operand] = broadcast_strides(in[operand].shape, out);
  merge_axes(plan.dims, plan.strides);
  return plan;
}

namespace map_detail {

template <class F, class C, class R>
constexpr bool kOnlyConverts = std::is_same_v<F, Same>&& std::is_same_v<C, R>;

template <class C>
const C* operand_block(const TensorView& view, int64_t index, int64_t stride, int64_t count, C* buffer) {
  if (stride == 1 && view.dtype == storage_of<C>()) return reinterpret_cast<const C*>(view.data) + index;
  load_block<C>(view.dtype, view.data, index, stride, count, buffer);
  return buffer;
}

// The common side of a functor with a rare branch, free of branches: the result of f where f.is_in_fast_range holds.
template <class F>
struct FastRange {
  F f;
  PX_HD float operator()(float x) const { return f.in_fast_range(x); }
};
template <class C, class F, size_t N>
concept HasFastRange = N == 1 && std::is_same_v<C, float>&& requires(const F& f, float x) {
  { f.is_in_fast_range(x) } -> std::same_as<bool>;
  { f.in_fast_range(x) } -> std::same_as<float>;
};

template <class F>
bool all_in_fast_range(const F& f, const float* in, int64_t count) {
  int32_t wild = 0;
  vectorized(0, count, [f, in, &wild](int64_t begin, int64_t end) {
    int32_t found = 0;
    for (int64_t i = begin; i < end; ++i) found += f.is_in_fast_range(in[i]) ? 0 : 1;
    wild = found;
  });
  return wild == 0;
}

// A functor of two operands of which one is the same number all along.
template <class F, class C, size_t kFixed>
struct Bound {
  F f;
  C fixed;
  auto operator()(C x) const {
    if constexpr (kFixed == 0) return f(fixed, x);
    if constexpr (kFixed == 1) return f(x, fixed);
  }
};

template <class C, class R, class F, size_t N, size_t... I>
void apply(const F& f, const std::array<const C*, N>& in, R* out, int64_t count, std::index_sequence<I...>) {
  if constexpr (HasFastRange<C, F, N>) {
    if (all_in_fast_range(f, in[0], count))
      return apply<C, R>(FastRange<F>{f}, in, out, count, std::index_sequence<I...>());
  }
  vectorized(0, count, [f, in, out](int64_t begin, int64_t end) {
    const std::array<const C*, N> local = in;  // copies of its own: no store, of bytes above all, can change them
    const F its = f;
    R* const to = out;
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<R>(its(local[I][i]...));
  });
}

// Applies f to pairs, where an operand that does not move is read once.
template <class C, class R, class F>
void apply_pair(const F& f, const std::array<const C*, 2>& in, const std::array<int64_t, 2>& strides, R* out,
                int64_t count) {
  if constexpr (std::is_same_v<C, float>) {
    constexpr std::index_sequence<0> kOne;
    if (strides[1] == 0)
      return apply<C, R>(Bound<F, C, 1>{f, in[1][0]}, std::array<const C*, 1>{in[0]}, out, count, kOne);
    if (strides[0] == 0)
      return apply<C, R>(Bound<F, C, 0>{f, in[0][0]}, std::array<const C*, 1>{in[1]}, out, count, kOne);
  }
  apply<C, R>(f, in, out, count, std::index_sequence<0, 1>());
}

}  // namespace map_detail

// C: the type the operands are converted to; R: the type of the result before it is stored.
template <class C, class R, class F, size_t N>
void map_as(Queue<Cpu>&, const F& f, const MutableView& out, const std::array<TensorView, N>& in) {
  const MapPlan<N> plan = plan_map(out.shape, in);
  const int64_t run = plan.run();
  const bool store_direct = out.dtype == storage_of<R>();
  const auto body = [&](int64_t begin, int64_t end) {
    alignas(64) C buffers[N][kBlockElements];
    alignas(64) R results[kBlockElements];
    for (int64_t index = begin; index < end;) {
      const int64_t within = index % run;
      const int64_t count = std::min({run - within, end - index, kBlockElements});
      std::array<const C*, N> operands;
      for (size_t operand = 0; operand < N; ++operand) {
        const Ints& strides = plan.strides[operand];
        int64_t rest = index / run;
        int64_t offset = within * strides.back();
        for (int64_t axis = plan.dims.size() - 2; axis >= 0; --axis) {
          offset += rest % plan.dims[axis] * strides[axis];
          rest /= plan.dims[axis];
        }
        if constexpr (map_detail::kOnlyConverts<F, C, R>) {
          if (store_direct) {  // without a walk between
            load_block<C>(in[0].dtype, in[0].data, offset, strides.back(), count,
                          reinterpret_cast<C*>(out.data) + index);
            continue;
          }
        }
        const bool is_read_once = N == 2 && std::is_same_v<C, float> && strides.back() == 0;
        operands[operand] = map_detail::operand_block<C>(in[operand], offset, strides.back(), is_read_once ? 1 : count,
                                                         buffers[operand]);
      }
      if constexpr (map_detail::kOnlyConverts<F, C, R>) {
        if (!store_direct) store_block<R>(out.dtype, out.data, index, count, operands[0]);
        index += count;
        continue;
      }
      R* target = store_direct ? reinterpret_cast<R*>(out.data) + index : results;
      if constexpr (N == 2) {
        const std::array<int64_t, 2> own{plan.strides[0].back(), plan.strides[1].back()};
        map_detail::apply_pair<C, R>(f, operands, own, target, count);
      } else {
        map_detail::apply<C, R>(f, operands, target, count, std::make_index_sequence<N>());
      }
      if (!store_direct) store_block<R>(out.dtype, out.data, index, count, results);
      index += count;
    }
  };
  parallel_for(out.element_count(), work_of<F>() * 2, std::ref(body));  // by reference: a copy would be allocated
}

// The arithmetic types an operator computes in; what is not among them is unsupported.
struct Floats {};    // float, double
struct Numbers {};   // and integers
struct Integers {};  // integers alone
struct Booleans {};

template <class Domain>
constexpr bool computes_in(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::float32:
    case Arithmetic::float64:
      return std::is_same_v<Domain, Floats> || std::is_same_v<Domain, Numbers>;
    case Arithmetic::int64:
    case Arithmetic::uint64:
      return std::is_same_v<Domain, Integers> || std::is_same_v<Domain, Numbers>;
    case Arithmetic::boolean:
      return std::is_same_v<Domain, Booleans>;
    case Arithmetic::none:
      return false;
  }
  return false;
}

Error unsupported_dtype(DType dtype);

// Calls visit with a zero of the arithmetic type for `dtype`. Error: unsupported, where the domain leaves it out.
template <class Domain, class Visit>
Status visit_arithmetic(DType dtype, const Visit& visit) {
  const Arithmetic arithmetic = arithmetic_of(dtype);
  if (!computes_in<Domain>(arithmetic)) return unsupported_dtype(dtype);
  if constexpr (computes_in<Domain>(Arithmetic::float32)) {
    if (arithmetic == Arithmetic::float32) return visit(float{});
    if (arithmetic == Arithmetic::float64) return visit(double{});
  }
  if constexpr (computes_in<Domain>(Arithmetic::int64)) {
    if (arithmetic == Arithmetic::int64) return visit(int64_t{});
    if (arithmetic == Arithmetic::uint64) return visit(uint64_t{});
  }
  if constexpr (computes_in<Domain>(Arithmetic::boolean)) {
    if (arithmetic == Arithmetic::boolean) return visit(uint8_t{});
  }
  return unsupported_dtype(dtype);
}

// The usual case: computes in the arithmetic type of the first operand. The result type is the functor's: bool for
// predicates.
template <class Domain, class Device, class F, size_t N>
Status map(Queue<Device>& queue, const F& f, const MutableView& out, const std::array<TensorView, N>& in) {
  return visit_arithmetic<Domain>(in[0].dtype, [&](auto zero) -> Status {
    using C = decltype(zero);
    const auto call = [&](auto... values) { return f(values...); };
    if constexpr (N == 1) {
      using R = decltype(call(zero));
      map_as<C, R>(queue, f, out, in);
    } else if constexpr (N == 2) {
      using R = decltype(call(zero, zero));
      map_as<C, R>(queue, f, out, in);
    } else {
      using R = decltype(call(zero, zero, zero));
      map_as<C, R>(queue, f, out, in);
    }
    return {};
  });
}

}  // namespace parallax::runtime
