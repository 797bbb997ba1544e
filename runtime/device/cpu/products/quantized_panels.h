// SPDX-License-Identifier: Apache-2.0
// Exact products of 8-bit quantized values on processors with AVX2 alone. Values less their zero points are numbers of
// 16 bits, of which one instruction (pmaddwd) multiplies two pairs and adds both products to 32 bits without rounding.
#pragma once

#include <cstddef>
#include <cstdint>

namespace parallax::runtime {

// True where vector_level() has AVX2.
bool has_quantized_panels();

// A matrix of quantized values, int8 or uint8, dense, and its zero point.
struct QuantizedMatrix {
  const std::byte* quantized = nullptr;
  bool is_signed = false;
  int32_t zero = 0;
};

// The left matrix [m, k] as rows of 16-bit numbers, each filled up with zeros to an even count.
int64_t quantized_row_numbers(int64_t m, int64_t k);
void pack_quantized_rows(int64_t m, int64_t k, const QuantizedMatrix& a, int16_t* rows);

// The right matrix [k, n] as panels of 16 columns, filled up with zeros. A panel holds for every two rows of b the
// pairs of columns 0 to 3, 8 to 11, 4 to 7 and 12 to 15.
int64_t quantized_panel_numbers(int64_t n, int64_t k);
void pack_quantized_panels(int64_t n, int64_t k, const QuantizedMatrix& b, int16_t* panels);

// c [m, n] = the product, whose sums must fit int32.
void multiply_quantized_panels(int64_t m, int64_t n, int64_t k, const int16_t* rows, const int16_t* panels, int32_t* c);

}  // namespace parallax::runtime
