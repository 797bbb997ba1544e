// SPDX-License-Identifier: Apache-2.0
// Elements moved without being looked at: works for every element type, strings and packed types included.
#pragma once

#include <array>
#include <cstring>
#include <string>

#include "inspector/tensor/elements.h"
#include "reference/kernels/numbers.h"
#include "reference/ops/indexing.h"
#include "reference/ops/op_context.h"

namespace parallax::reference {

// The source of element i of the output: an element index of the input, or kFill.
inline constexpr int64_t kFill = -1;

// Elements of a size known to the compiler.
template <class Unit>
struct WholeElements {
  static constexpr bool is_plain = true;  // an element is one Unit
  const Unit* source;
  Unit* target;
  void copy(int64_t from, int64_t to) const { target[to] = source[from]; }
};

// Elements of less than a byte.
struct PackedElements {
  static constexpr bool is_plain = false;
  const std::byte* source;
  std::byte* target;
  int bits;
  void copy(int64_t from, int64_t to) const { store_packed(target, bits, to, load_packed(source, bits, from)); }
};

// Calls f with the accessor that copies elements from `source` to `target`; both have one element type.
template <class F>
void with_elements(const TensorView& source, Tensor& target, F f) {
  using Sixteen = std::array<uint64_t, 2>;
  const auto whole = [&]<class Unit>(Unit) {
    f(WholeElements<Unit>{reinterpret_cast<const Unit*>(source.data), reinterpret_cast<Unit*>(target.mutable_data())});
  };
  PX_CHECK(source.dtype == target.dtype());
  if (source.dtype == DType::string) return whole(std::string());
  switch (bits_of(source.dtype)) {
    case 8:
      return whole(uint8_t{});
    case 16:
      return whole(uint16_t{});
    case 32:
      return whole(uint32_t{});
    case 64:
      return whole(uint64_t{});
    case 128:
      return whole(Sixteen{});
    default:
      return f(PackedElements{source.data, target.mutable_data(), bits_of(source.dtype)});
  }
}

// target[to + i] = source[from + i] for i in [0, count). For one thread at a time.
void copy_run(const TensorView& source, int64_t from, Tensor& target, int64_t to, int64_t count);

// target[i] = source[index_of(i)] for every i; where index_of gives kFill, fill[0] instead.
template <class IndexOf>
void gather_elements(const TensorView& source, Tensor& target, const IndexOf& index_of,
                     const TensorView* fill = nullptr) {
  const auto run = [&](auto elements, auto fill_elements) {
    for_blocks(target.element_count(), 5, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t from = index_of(index);
        if (from == kFill)
          fill_elements.copy(0, index);
        else
          elements.copy(from, index);
      }
    });
  };
  with_elements(source, target, [&](auto elements) {
    auto fill_elements = elements;
    if (fill != nullptr) fill_elements.source = reinterpret_cast<decltype(elements.source)>(fill->data);
    run(elements, fill_elements);
  });
}

// target[m] = source[base + sum(m[axis] * strides[axis])] for every multi-index m of the target.
void gather_strided(const TensorView& source, int64_t base, std::span<const int64_t> strides, Tensor& target);

}  // namespace parallax::reference
