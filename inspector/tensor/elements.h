// SPDX-License-Identifier: Apache-2.0
// Reading and writing elements of host tensors of any element type, one at a time or in bulk through double or int64.
#pragma once

#include <complex>
#include <span>
#include <string>
#include <vector>

#include "inspector/tensor/tensor.h"

namespace parallax {

// Bool is 0 or 1; integers beyond 2^53 round. Complex gives the real part. Not for strings (PX_CHECK).
double element_as_double(const TensorView& view, int64_t index);
// Exact for integers and bool; floats truncate toward zero and must lie within int64 (PX_CHECK otherwise). uint64
// wraps.
int64_t element_as_int64(const TensorView& view, int64_t index);
std::complex<double> element_as_complex(const TensorView& view, int64_t index);

// Shortest text that reads back as the same element: "1.5", "-inf", "nan", "true", "(1,-2)", strings in quotes.
std::string element_to_string(const TensorView& view, int64_t index);

// `count` elements from `begin` on, into `out`. The common types run at memory speed.
void load_doubles(const TensorView& view, int64_t begin, std::span<double> out);
void load_int64s(const TensorView& view, int64_t begin, std::span<int64_t> out);

// Stores with one rounding to the tensor's type. Integers: values must be whole and fit (PX_CHECK); see the Cast
// operators for conversions of values that do not. Elements of sub-byte types sharing a byte must be stored by one
// thread.
void store_doubles(Tensor& tensor, int64_t begin, std::span<const double> values);
void store_int64s(Tensor& tensor, int64_t begin, std::span<const int64_t> values);

// A sub-byte element's raw bits, and their store.
uint8_t load_packed(const std::byte* data, int bits, int64_t index);
void store_packed(std::byte* data, int bits, int64_t index, uint8_t value);

// All elements of an integer tensor (int32, int64, ...): shapes, axes, indices held in tensors.
std::vector<int64_t> to_int64s(const TensorView& view);

}  // namespace parallax
