// SPDX-License-Identifier: Apache-2.0
// Rows of float32, float16 and bfloat16 that a block keeps in registers: read once, folded and changed there, stored
// once. A thread has groups of 8 neighbors, which are 16 bytes of the narrow types and twice 16 bytes of float32.
#pragma once

#include "runtime/device/gpu/row_team.h"

namespace parallax::runtime::gpu {

constexpr int kHeldGroup = 8, kHeldGroups = 2;  // elements of a group, groups of a thread

inline bool is_held(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}
template <class Queue>
bool is_held(const Queue&, const RowLayout& layout) {
  return layout.inner == 1 && layout.length <= int64_t{Queue::kThreads} * kHeldGroups * kHeldGroup;
}
template <class Queue>
LaunchSize size_for_held_rows(const Queue& queue, const RowLayout& layout) {
  const bool has_one_group = layout.length <= int64_t{Queue::kThreads} * kHeldGroup;
  const int64_t each = has_one_group ? kHeldGroup : kHeldGroup * kHeldGroups;
  LaunchSize size = size_for_rows(queue, layout.outer, kWarp, 0);
  const int64_t warps = (layout.length + each * kWarp - 1) / (each * kWarp);
  size.threads = static_cast<int>(warps < 1 ? 1 : warps) * kWarp;
  size.shared_bytes = static_cast<size_t>(size.threads / kWarp) * sizeof(Slot);
  return size;
}

// The elements [first, first + 8) of a row of S, as far as it goes.
template <class Device, class S>
PX_HD void load_group(const S* row, int first, int length, float* values) {
  constexpr int kCount = kInPack<S>;
  if (first + kHeldGroup <= length && is_pack_address(row + first)) {
    for (int pack = 0; pack < kHeldGroup / kCount; ++pack) {
      const auto loaded = Elements<Device, const Pack<16>>{reinterpret_cast<const Pack<16>*>(row + first)}[pack];
      for (int i = 0; i < kCount; ++i)
        values[pack * kCount + i] = storage::from_storage<float>(loaded.template get<S>(i));
    }
  } else {
    for (int i = 0; i < kHeldGroup; ++i)
      values[i] = first + i < length ? storage::from_storage<float>(Elements<Device, const S>{row}[first + i]) : 0.0F;
  }
}
template <class Device, class S>
PX_HD void store_group(S* row, int first, int length, const float* values) {
  constexpr int kCount = kInPack<S>;
  if (first + kHeldGroup <= length && is_pack_address(row + first)) {
    for (int pack = 0; pack < kHeldGroup / kCount; ++pack) {
      Pack<16> stored{};
      for (int i = 0; i < kCount; ++i) stored.template set<S>(i, storage::to_storage<S>(values[pack * kCount + i]));
      Elements<Device, Pack<16>>{reinterpret_cast<Pack<16>*>(row + first)}[pack] = stored;
    }
  } else {
    for (int i = 0; i < kHeldGroup; ++i) {
      if (first + i < length) Elements<Device, S>{row}[first + i] = storage::to_storage<S>(values[i]);
    }
  }
}

// A block that holds a row: of HostTeam's members (rows.h) those that go along it.
template <class Device, class Launch>
class HeldTeam {
 public:
  using Value = float;
  static constexpr bool kKeepsEmitted = true;  // in registers

  PX_HD HeldTeam(Launch& launch, const Source& in, const Target& out, int64_t length)
      : launch_(launch),
        slots_(launch.template shared<Slot>(launch.threads() / kWarp)),
        in_(in),
        out_(out),
        length_(static_cast<int>(length)) {}

  PX_HD void load_row(int64_t row) {
    visit_packed<float>(in_.dtype, [&](auto* type) {
      using S = std::remove_pointer_t<decltype(type)>;
      if constexpr (!std::is_void_v<S>) {
        const S* const values = reinterpret_cast<const S*>(in_.data) + row * length_;
        for (int group = 0; group < kHeldGroups; ++group)
          load_group<Device>(values, first_of(group), length_, values_ + group * kHeldGroup);
      }
    });
  }
  PX_HD void store_row(int64_t row) {
    visit_packed<float>(out_.dtype, [&](auto* type) {
      using S = std::remove_pointer_t<decltype(type)>;
      if constexpr (!std::is_void_v<S>) {
        S* const values = reinterpret_cast<S*>(out_.data) + row * length_;
        for (int group = 0; group < kHeldGroups; ++group)
          store_group<Device>(values, first_of(group), length_, emitted_ + group * kHeldGroup);
      }
    });
  }

  PX_HD int64_t length() const { return length_; }
  template <class Fold>
  PX_HD float fold(const Fold& fold) {
    return folded_of(values_, fold, fold.template init<float>());
  }
  template <class Fold>
  PX_HD float fold_emitted(const Fold& fold) {
    return folded_of(emitted_, fold, fold.template init<float>());
  }
  template <class Fold>
  PX_HD auto fold_elements(const Fold& fold) {
    return folded_of(values_, fold, fold.template init<float>());
  }
  // Functors that say which arrays go `along` the row get these in packs.
  template <class F>
  PX_HD void emit(const F& f) {
    if constexpr (requires { f.along; }) {
      for (int group = 0; group < kHeldGroups; ++group) {
        constexpr int kArrays = F::kAlong;
        float along[kArrays][kHeldGroup];
        for (int array = 0; array < kArrays; ++array)
          load_group<Device>(f.along[array].data, first_of(group), length_, along[array]);
        for (int i = 0; i < kHeldGroup; ++i) {
          float at[kArrays];
          for (int array = 0; array < kArrays; ++array) at[array] = along[array][i];
          emitted_[group * kHeldGroup + i] = f.with(values_[group * kHeldGroup + i], at);
        }
      }
    } else {
      for_each([&](int slot, int i) { emitted_[slot] = f(values_[slot], i); });
    }
  }
  template <class F>
  PX_HD void change_emitted(const F& f) {
    for_each([&](int slot, int) { emitted_[slot] = f(emitted_[slot]); });
  }
  template <class T>
  PX_HD void store(const Target& target, int64_t index, T value) {
    if (launch_.thread() == 0) gpu::store<Device, T>(target, index, value);
  }

 private:
  PX_HD int first_of(int group) const { return (group * launch_.threads() + launch_.thread()) * kHeldGroup; }
  // Calls visit(register, index in the row).
  template <class Visit>
  PX_HD void for_each(const Visit& visit) const {
    for (int group = 0; group < kHeldGroups; ++group) {
      const int first = first_of(group);
      for (int i = 0; i < kHeldGroup; ++i) {
        if (first + i < length_) visit(group * kHeldGroup + i, first + i);
      }
    }
  }
  template <class Fold, class State>
  PX_HD State folded_of(const float (&values)[kHeldGroups * kHeldGroup], const Fold& fold, State state) {
    for_each([&](int slot, int i) { state = folded(fold, state, values[slot], static_cast<int64_t>(i)); });
    return merge_block(launch_, slots_, state, [&](const State& a, const State& b) { return fold.merge(a, b); });
  }

  Launch& launch_;
  decltype(std::declval<Launch&>().template shared<Slot>(0)) slots_;
  Source in_;
  Target out_;
  int length_;
  float values_[kHeldGroups * kHeldGroup] = {}, emitted_[kHeldGroups * kHeldGroup] = {};
};

template <class Device, class F>
struct HeldRowsKernel {
  static constexpr const char* kName = "held_rows";
  static constexpr int kThreads = Queue<Device>::kThreads, kLeastBlocks = 3;  // 80 registers of a GPU's thread
  F f;
  Source in;
  Target out;
  int64_t rows, length;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    HeldTeam<Device, Launch> team(launch, in, out, length);
    for (int64_t row = launch.block(); row < rows; row += launch.blocks()) {
      team.load_row(row);
      f(team, row);
      team.store_row(row);
    }
  }
};

}  // namespace parallax::runtime::gpu
