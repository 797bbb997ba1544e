// SPDX-License-Identifier: Apache-2.0
// Elements of any storage type in device memory, one at a time or neighbors by one access.
#pragma once

#include <bit>

#include "runtime/device/cpu/blocks.h"
#include "runtime/device/elements.h"
#include "runtime/device/storage.h"

namespace parallax::runtime {

namespace gpu {

template <class Device, class C>
PX_HD C load(const Source& source, int64_t index) {
  if (source.dtype == storage_of<C>()) {
    return Elements<Device, const C>{reinterpret_cast<const C*>(source.data)}[index];
  }
  C value{};
  storage::visit_storage(source.dtype, [&](auto* type) {
    const auto* elements = reinterpret_cast<const std::remove_pointer_t<decltype(type)>*>(source.data);
    value = storage::from_storage<C>(Elements<Device, const std::remove_pointer_t<decltype(type)>>{elements}[index]);
  });
  return value;
}

template <class Device, class R>
PX_HD void store(const Target& target, int64_t index, R value) {
  if (target.dtype == storage_of<R>()) {
    Elements<Device, R>{reinterpret_cast<R*>(target.data)}[index] = value;
    return;
  }
  storage::visit_storage(target.dtype, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    Elements<Device, S>{reinterpret_cast<S*>(target.data)}[index] = storage::to_storage<S>(value);
  });
}

// Neighboring elements, moved by one access of kBytes: 1, 2, 4, 8 or 16.
template <int kBytes>
struct alignas(kBytes) Pack {
  using Word = std::conditional_t<kBytes >= 4, uint32_t, std::conditional_t<kBytes == 2, uint16_t, uint8_t>>;
  static constexpr int kWords = kBytes / static_cast<int>(sizeof(Word));
  Word words[kWords];

  template <class S>
  PX_HD S get(int index) const {
    if constexpr (sizeof(S) == 8) {
      return std::bit_cast<S>(words[2 * index] | uint64_t{words[2 * index + 1]} << 32);
    } else {
      constexpr int kEach = static_cast<int>(sizeof(Word) / sizeof(S));
      constexpr int kBits = 8 * static_cast<int>(sizeof(S));
      return std::bit_cast<S>(static_cast<Bits<S>>(words[index / kEach] >> index % kEach * kBits));
    }
  }
  // Over zeros.
  template <class S>
  PX_HD void set(int index, S value) {
    if constexpr (sizeof(S) == 8) {
      const auto bits = std::bit_cast<uint64_t>(value);
      words[2 * index] = static_cast<uint32_t>(bits);
      words[2 * index + 1] = static_cast<uint32_t>(bits >> 32);
    } else {
      constexpr int kEach = static_cast<int>(sizeof(Word) / sizeof(S));
      constexpr int kBits = 8 * static_cast<int>(sizeof(S));
      words[index / kEach] |= static_cast<Word>(Word{std::bit_cast<Bits<S>>(value)} << index % kEach * kBits);
    }
  }

 private:
  template <class S>
  using Bits = std::conditional_t<sizeof(S) == 4, uint32_t, std::conditional_t<sizeof(S) == 2, uint16_t, uint8_t>>;
};

// kCount neighbors of element `index` of a payload, or that one so many times.
template <class Device, class S, int kCount>
PX_HD Pack<kCount* static_cast<int>(sizeof(S))> load_pack(const std::byte* data, int64_t index, bool is_repeated) {
  using Loaded = Pack<kCount* static_cast<int>(sizeof(S))>;
  const S* first = reinterpret_cast<const S*>(data) + index;
  if (!is_repeated) return Elements<Device, const Loaded>{reinterpret_cast<const Loaded*>(first)}[0];
  const S value = Elements<Device, const S>{first}[0];
  Loaded repeated{};
  for (int i = 0; i < kCount; ++i) repeated.template set<S>(i, value);
  return repeated;
}

inline bool is_aligned(const std::byte* data, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0;
}

}  // namespace gpu
}  // namespace parallax::runtime
