// SPDX-License-Identifier: Apache-2.0
// Elements of any tensor as one of three kinds of number: double for floats, int64_t for integers and bool, uint64_t
// for uint64. Reading is exact (but for nothing); writing rounds a double once, and wraps an integer to its width.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "inspector/base/thread_pool.h"
#include "inspector/tensor/elements.h"
#include "inspector/tensor/tensor.h"

namespace parallax::reference {

// True for a NaN of any element type; types without NaN give false.
template <class T>
bool is_nan(T value) {
  return value != value;
}

// `lines` stretches of `width` elements each, `stride` elements from each other in the tensor and `spacing` in `out`,
// where 0 says that they are adjacent.
struct Lines {
  int64_t begin = 0;
  int64_t stride = 0;
  int64_t lines = 1;
  int64_t width = 0;
  int64_t spacing = 0;

  bool is_empty() const { return lines == 0 || width == 0; }
  int64_t end() const { return begin + (lines - 1) * stride + width; }  // after the last element of the tensor
  int64_t out_stride() const { return spacing == 0 ? width : spacing; }
  int64_t out_count() const { return lines == 0 ? 0 : (lines - 1) * out_stride() + width; }
};
void load_lines(const TensorView& view, const Lines& lines, double* out);
void load_lines(const TensorView& view, const Lines& lines, int64_t* out);

// T is double, int64_t or uint64_t, which keeps its bits.
template <class T>
void load_lines(const TensorView& view, const Lines& lines, std::span<T> out) {
  PX_CHECK(static_cast<int64_t>(out.size()) >= lines.out_count());
  if constexpr (std::is_same_v<T, double>) {
    load_lines(view, lines, out.data());
  } else {
    load_lines(view, lines, reinterpret_cast<int64_t*>(out.data()));
  }
}

template <class T>
void load(const TensorView& view, int64_t begin, std::span<T> out) {
  load_lines<T>(view, {.begin = begin, .width = static_cast<int64_t>(out.size())}, out);
}

void store_rounded(Tensor& tensor, int64_t begin, std::span<const double> values);
void store_wrapped(Tensor& tensor, int64_t begin, std::span<const int64_t> values);
// Lines of numbers, the other way: from a stride of `spacing` to `stride` in the tensor.
void store_lines(Tensor& tensor, const Lines& lines, const double* values);
void store_lines(Tensor& tensor, const Lines& lines, const int64_t* values);
// Lines of numbers with added[line], rounded once they are summed.
void store_sums(Tensor& tensor, const Lines& lines, const double* values, const double* added);

template <class T>
void store(Tensor& tensor, int64_t begin, std::span<const T> values) {
  if constexpr (std::is_same_v<T, double>) {
    store_rounded(tensor, begin, values);
  } else {
    store_wrapped(tensor, begin, {reinterpret_cast<const int64_t*>(values.data()), values.size()});
  }
}

template <class T>
void store_lines(Tensor& tensor, const Lines& lines, const T* values) {
  if constexpr (std::is_same_v<T, double>) {
    store_lines(tensor, lines, static_cast<const double*>(values));
  } else {
    store_lines(tensor, lines, reinterpret_cast<const int64_t*>(values));
  }
}

// All elements of a tensor, readable by linear index: the tensor itself where it holds T, else a converted copy.
template <class T>
class Numbers {
 public:
  explicit Numbers(const TensorView& view) {
    if (dtype_of<T>() == view.dtype) {
      numbers_ = {reinterpret_cast<const T*>(view.data), static_cast<size_t>(view.element_count())};
      return;
    }
    copy_.resize(static_cast<size_t>(view.element_count()));
    load<T>(view, 0, copy_);
    numbers_ = copy_;
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  T operator[](int64_t index) const { return numbers_[static_cast<size_t>(index)]; }
  int64_t size() const { return static_cast<int64_t>(numbers_.size()); }
  const T* data() const { return numbers_.data(); }
  std::span<const T> span() const { return numbers_; }

 private:
  std::span<const T> numbers_;
  std::vector<T> copy_;
};

// Calls f with a double, int64_t or uint64_t (its value means nothing) as elements of `dtype` are computed with.
template <class F>
Status with_number_type(DType dtype, F f) {
  if (is_floating(dtype)) return f(double{});
  if (dtype == DType::uint64) return f(uint64_t{});
  if (is_integer(dtype) || dtype == DType::bool_) return f(int64_t{});
  return unsupported(
      fmt::format("the element type is {}; only numbers have a function in the reference", name_of(dtype)));
}

// For distances between two int64.
__extension__ typedef __int128 Int128;

// Toward zero; NaN and what int64 cannot hold give its least value, as the conversion instructions of processors do.
int64_t truncate_to_int64(double value);
// The conversion to an integer type: uint64 has twice the range, and numbers out of range of int32 give its least
// value. Narrower types keep the low bits once stored.
int64_t truncate_to_integer(double value, DType to);

// All elements of a complex tensor, by their parts.
void store_complex(Tensor& tensor, std::span<const double> real, std::span<const double> imaginary);

// Integer arithmetic modulo 2^64, as the types wrap; plain arithmetic for double.
template <class T>
T wrapping_add(T a, T b) {
  if constexpr (std::is_same_v<T, double>)
    return a + b;
  else
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class T>
T wrapping_subtract(T a, T b) {
  if constexpr (std::is_same_v<T, double>)
    return a - b;
  else
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
template <class T>
T wrapping_multiply(T a, T b) {
  if constexpr (std::is_same_v<T, double>)
    return a * b;
  else
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Calls body(begin, end) for blocks of at most kBlock elements that cover [0, count), on several threads where there is
// work for them. Blocks begin at multiples of kBlock, so that no two share a byte of a packed tensor.
inline constexpr int64_t kBlock = 1024;
template <class Body>
void for_blocks(int64_t count, int64_t work_per_element, const Body& body) {
  const int64_t blocks = (count + kBlock - 1) / kBlock;
  parallel_for(blocks, work_per_element * kBlock, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) body(block * kBlock, std::min(count, (block + 1) * kBlock));
  });
}

}  // namespace parallax::reference
