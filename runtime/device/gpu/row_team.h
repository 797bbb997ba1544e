// SPDX-License-Identifier: Apache-2.0
// A block at work on a row: how it reads, folds and fills it. Contiguous rows of the arithmetic's own type, of float16
// and of bfloat16 are read and written in packs of 16 bytes; which elements a thread has depends on the type, and not
// on where the row begins, so that sums keep their bits.
#pragma once

#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/gpu/block.h"
#include "runtime/device/gpu/memory.h"

namespace parallax::runtime::gpu {

template <class S>
constexpr int kInPack = 16 / static_cast<int>(sizeof(S));
constexpr int64_t kRowPack = kInPack<float>;  // rows have a thread for so many elements

// A block for each of `items`, whose `steps` take a thread each; a slot for each warp.
template <class Queue>
LaunchSize size_for_blocks(const Queue& queue, int64_t items, int64_t steps) {
  LaunchSize size = size_for_rows(queue, items, steps, 0);
  size.shared_bytes = static_cast<size_t>(size.threads / kWarp) * sizeof(Slot);
  return size;
}
inline int64_t steps_of(const RowLayout& layout) {
  return layout.inner == 1 ? (layout.length + kRowPack - 1) / kRowPack : layout.length;
}

// Calls visit with a null pointer of a storage type that is read in packs, else of void.
template <class C, class Visit>
PX_HD void visit_packed(DType dtype, const Visit& visit) {
  if (dtype == storage_of<C>()) return visit(static_cast<C*>(nullptr));
  if constexpr (std::is_same_v<C, float>) {
    if (dtype == DType::float16) return visit(static_cast<Float16*>(nullptr));
    if (dtype == DType::bfloat16) return visit(static_cast<BFloat16*>(nullptr));
  }
  visit(static_cast<void*>(nullptr));
}
PX_HD inline bool is_pack_address(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

// Calls step(value, i) for this thread's elements of the `length` that begin at `start`.
template <class Device, class C, class Launch, class Step>
PX_HD void for_each_of_row(const Launch& launch, const Source& in, int64_t start, int64_t length, const Step& step) {
  visit_packed<C>(in.dtype, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    if constexpr (std::is_void_v<S>) {
      for (int64_t i = launch.thread(); i < length; i += launch.threads()) step(load<Device, C>(in, start + i), i);
    } else {
      constexpr int kCount = kInPack<S>;
      const S* const row = reinterpret_cast<const S*>(in.data) + start;
      const bool is_packed = is_pack_address(row);
      const auto packs = static_cast<uint32_t>((length + kCount - 1) / kCount);
      const auto whole = is_packed ? static_cast<uint32_t>(length / kCount) : 0U;
      auto pack = static_cast<uint32_t>(launch.thread());
      for (; pack < whole; pack += static_cast<uint32_t>(launch.threads())) {
        const Pack<16> values = Elements<Device, const Pack<16>>{reinterpret_cast<const Pack<16>*>(row)}[pack];
        for (int i = 0; i < kCount; ++i)
          step(storage::from_storage<C>(values.template get<S>(i)), static_cast<int64_t>(pack) * kCount + i);
      }
      for (; pack < packs; pack += static_cast<uint32_t>(launch.threads())) {
        const int64_t first = static_cast<int64_t>(pack) * kCount;
        for (int64_t i = first; i < first + kCount && i < length; ++i)
          step(storage::from_storage<C>(Elements<Device, const S>{row}[i]), i);
      }
    }
  });
}

// out[start + i] = f(value, i), in packs where the types are the same and rows begin and end with one.
template <class Device, class C, class R, class Launch, class F>
PX_HD void map_row(const Launch& launch, const Source& in, const Target& out, int64_t start, int64_t length,
                   const F& f) {
  bool is_done = false;
  if (in.dtype == out.dtype) {
    visit_packed<C>(in.dtype, [&](auto* type) {
      using S = std::remove_pointer_t<decltype(type)>;
      if constexpr (!std::is_void_v<S>) {
        constexpr int kCount = kInPack<S>;
        const S* const row = reinterpret_cast<const S*>(in.data) + start;
        S* const target = reinterpret_cast<S*>(out.data) + start;
        if (!is_pack_address(row) || !is_pack_address(target) || length % kCount != 0) return;
        const Elements<Device, const Pack<16>> from{reinterpret_cast<const Pack<16>*>(row)};
        const Elements<Device, Pack<16>> to{reinterpret_cast<Pack<16>*>(target)};
        const auto packs = static_cast<uint32_t>(length / kCount);
        for (auto pack = static_cast<uint32_t>(launch.thread()); pack < packs;
             pack += static_cast<uint32_t>(launch.threads())) {
          const Pack<16> values = from[pack];
          Pack<16> results{};
          for (int i = 0; i < kCount; ++i) {
            const auto x = storage::from_storage<C>(values.template get<S>(i));
            const R result = static_cast<R>(f(x, static_cast<int64_t>(pack) * kCount + i));
            results.template set<S>(i, storage::to_storage<S>(result));
          }
          to[pack] = results;
        }
        is_done = true;
      }
    });
  }
  if (is_done) return;
  for (int64_t i = launch.thread(); i < length; i += launch.threads())
    store<Device, R>(out, start + i, static_cast<R>(f(load<Device, C>(in, start + i), i)));
}

template <class Fold, class State, class C>
PX_HD State folded(const Fold& fold, State state, C value, int64_t location) {
  if constexpr (requires { fold.step(state, value, location); }) {
    return fold.step(state, value, location);
  } else {
    return fold.step(state, value);
  }
}

// Running sums and products of float32 are kept with more digits until they are stored.
template <class C>
using RunningValue = std::conditional_t<std::is_same_v<C, float>, double, C>;

// A block at work on one row, or on a piece of it: HostTeam's members (rows.h) for a GPU. Emitted values are read again
// only where `out` has the type R.
template <class Device, class Launch, class C, class R>
class BlockTeam {
 public:
  using Value = C;
  using Slots = decltype(std::declval<Launch&>().template shared<Slot>(0));
  static constexpr bool kKeepsEmitted = false;  // to read them again is no cheaper than to compute them again

  PX_HD BlockTeam(Launch& launch, const Source& in, const Target& out, int64_t length, int64_t inner)
      : launch_(launch),
        slots_(launch.template shared<Slot>(launch.threads() / kWarp)),
        in_(in),
        out_(out),
        row_length_(length),
        inner_(inner) {}

  PX_HD void begin_row(int64_t row) { begin_piece(row, 0, row_length_); }
  // Indices that functors get are those in the row.
  PX_HD void begin_piece(int64_t row, int64_t first, int64_t length) {
    first_ = first;
    length_ = length;
    start_ = (row / inner_ * row_length_ + first) * inner_ + row % inner_;
    launch_.barrier();
  }
  PX_HD const Slots& slots() const { return slots_; }

  PX_HD int64_t length() const { return length_; }
  PX_HD C in(int64_t i) const { return load<Device, C>(in_, start_ + i * inner_); }

  template <class Fold>
  PX_HD C fold(const Fold& fold) {
    C state = fold.template init<C>();
    for_each<C>(in_, [&](C x, int64_t) { state = fold.step(state, x); });
    return merge_block(launch_, slots_, state, [&](C a, C b) { return fold.merge(a, b); });
  }
  template <class Fold>
  PX_HD R fold_emitted(const Fold& fold) {
    launch_.barrier();  // the values may be another thread's
    R state = fold.template init<R>();
    for_each<R>(emitted(), [&](R x, int64_t) { state = fold.step(state, x); });
    return merge_block(launch_, slots_, state, [&](R a, R b) { return fold.merge(a, b); });
  }
  template <class Fold>
  PX_HD auto fold_elements(const Fold& fold) {
    auto state = fold.template init<C>();
    for_each<C>(in_, [&](C x, int64_t i) { state = fold.step(state, x, first_ + i); });
    using State = decltype(state);
    return merge_block(launch_, slots_, state, [&](const State& a, const State& b) { return fold.merge(a, b); });
  }
  template <class F>
  PX_HD void emit(const F& f) {
    map_values<C>(in_, [&](C x, int64_t i) { return f(x, first_ + i); });
  }
  template <class Make>
  PX_HD void emit_runs(int64_t run_length, const Make& make) {
    if (run_length >= length_) {
      const auto f = make(0);
      map_values<C>(in_, [&](C x, int64_t) { return f(x); });
    } else {
      map_values<C>(in_, [&](C x, int64_t i) { return make(i / run_length)(x); });
    }
  }
  template <class F>
  PX_HD void change_emitted(const F& f) {
    launch_.barrier();
    map_values<R>(emitted(), [&](R x, int64_t) { return f(x); });
  }

  template <class Combine>
  PX_HD void emit_running(const Combine& combine, C start, bool exclusive, bool reverse) {
    emit_steps(combine, static_cast<RunningValue<C>>(start), 0, length_, exclusive, reverse);
  }
  // The steps [begin, end) of a running sum, whose value before them is `start`. The threads have kEach steps each, the
  // first ones the last thread: what comes before it a thread has from those further in its warp.
  template <class Combine>
  PX_HD void emit_steps(const Combine& combine, RunningValue<C> start, int64_t begin, int64_t end, bool exclusive,
                        bool reverse) {
    using Wide = RunningValue<C>;
    const int threads = launch_.threads(), warps = threads / kWarp;
    const int thread = launch_.thread(), lane = thread % kWarp;
    const SlotsAs<Wide, Slots> totals{slots_};
    Wide carried = start;
    for (int64_t at = begin; at < end; at += static_cast<int64_t>(threads) * kEach) {
      const int64_t first = at + static_cast<int64_t>(threads - 1 - thread) * kEach;
      C loaded[kEach];
      load_steps(first, end, reverse, loaded);
      Wide values[kEach];
      for (int i = 0; i < kEach; ++i) {
        const Wide x = static_cast<Wide>(loaded[i]);
        values[i] = i == 0 ? x : combine(values[i - 1], x);
      }
      Wide upto = values[kEach - 1];
      for (int lanes = 1; lanes < kWarp; lanes *= 2) {
        const Wide before = launch_.shuffle_down(upto, lanes);
        if (lane + lanes < kWarp) upto = combine(before, upto);
      }
      const Wide before = launch_.shuffle_down(upto, 1);
      if (lane == 0) totals[thread / kWarp] = upto;
      launch_.barrier();
      Wide base = carried;
      for (int warp = warps - 1; warp >= 0; --warp) {
        if (warp == thread / kWarp) base = carried;
        carried = combine(carried, totals[warp]);
      }
      if (lane < kWarp - 1) base = combine(base, before);
      R results[kEach];
      for (int i = 0; i < kEach; ++i) {
        const Wide last = i == 0 ? base : combine(base, values[i - 1]);
        results[i] = static_cast<R>(exclusive ? last : combine(base, values[i]));
      }
      store_steps(first, end, reverse, results);
      launch_.barrier();
    }
  }
  // The steps [begin, end) combined.
  template <class Combine>
  PX_HD RunningValue<C> total_of_steps(const Combine& combine, RunningValue<C> state, int64_t begin, int64_t end,
                                       bool reverse) {
    for (int64_t step = begin + launch_.thread(); step < end; step += launch_.threads())
      state = combine(state, static_cast<RunningValue<C>>(in(element_at(step, reverse))));
    return merge_block(launch_, slots_, state, combine);
  }

  // One number of the row, by its first piece.
  template <class T>
  PX_HD void store(const Target& target, int64_t index, T value) {
    if (launch_.thread() == 0 && first_ == 0) gpu::store<Device, T>(target, index, value);
  }

 private:
  static constexpr int kEach = 4;  // steps of a running sum that a thread has at a time: a pack of float32

  PX_HD int64_t element_at(int64_t step, bool reverse) const { return reverse ? length_ - 1 - step : step; }
  // The pack of the steps from `first` on, or null where they are none.
  template <class T, class Memory>
  PX_HD auto steps_pack(const Memory& memory, int64_t first, int64_t end, bool reverse) const {
    using Address = std::conditional_t<std::is_same_v<Memory, Source>, const Pack<16>*, Pack<16>*>;
    if (inner_ != 1 || memory.dtype != storage_of<T>() || first + kEach > end) return static_cast<Address>(nullptr);
    const int64_t lowest = start_ + (reverse ? length_ - first - kEach : first);
    auto* const address = memory.data + lowest * static_cast<int64_t>(sizeof(T));
    return is_pack_address(address) ? reinterpret_cast<Address>(address) : nullptr;
  }
  PX_HD void load_steps(int64_t first, int64_t end, bool reverse, C (&values)[kEach]) const {
    if constexpr (std::is_same_v<C, float>) {
      if (const auto* address = steps_pack<C>(in_, first, end, reverse)) {
        const auto pack = Elements<Device, const Pack<16>>{address}[0];
        for (int i = 0; i < kEach; ++i)
          values[i] = reverse ? pack.template get<C>(kEach - 1 - i) : pack.template get<C>(i);
        return;
      }
    }
    for (int i = 0; i < kEach; ++i) values[i] = first + i < end ? in(element_at(first + i, reverse)) : C(0);
  }
  PX_HD void store_steps(int64_t first, int64_t end, bool reverse, const R (&values)[kEach]) const {
    if constexpr (std::is_same_v<R, float>) {
      if (auto* address = steps_pack<R>(out_, first, end, reverse)) {
        Pack<16> pack{};
        for (int i = 0; i < kEach; ++i) pack.template set<R>(i, reverse ? values[kEach - 1 - i] : values[i]);
        Elements<Device, Pack<16>>{address}[0] = pack;
        return;
      }
    }
    for (int i = 0; i < kEach; ++i) {
      if (first + i < end) gpu::store<Device, R>(out_, start_ + element_at(first + i, reverse) * inner_, values[i]);
    }
  }
  PX_HD Source emitted() const { return {out_.data, out_.dtype}; }

  template <class T, class Step>
  PX_HD void for_each(const Source& source, const Step& step) {
    if (inner_ == 1) return for_each_of_row<Device, T>(launch_, source, start_, length_, step);
    for (int64_t i = launch_.thread(); i < length_; i += launch_.threads())
      step(load<Device, T>(source, start_ + i * inner_), i);
  }
  template <class T, class F>
  PX_HD void map_values(const Source& source, const F& f) {
    if (inner_ == 1) return map_row<Device, T, R>(launch_, source, out_, start_, length_, f);
    for_each<T>(source,
                [&](T x, int64_t i) { gpu::store<Device, R>(out_, start_ + i * inner_, static_cast<R>(f(x, i))); });
  }

  Launch& launch_;
  Slots slots_;
  Source in_;
  Target out_;
  int64_t row_length_, inner_;
  int64_t first_ = 0, length_ = 0, start_ = 0;
};

}  // namespace parallax::runtime::gpu
