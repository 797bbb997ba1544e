// SPDX-License-Identifier: Apache-2.0
// Linear functions of a tensor's elements, such as interpolations, for every type that has a sum.
#pragma once

#include <complex>
#include <vector>

#include "reference/kernels/numbers.h"
#include "reference/ops/op_context.h"

namespace parallax::reference {

// Output 0 is compute(x), with the shape given and the type of x. `compute` takes and gives doubles; real and imaginary
// parts go through it one after the other. Integers are truncated toward zero, as casts do it.
template <class Compute>
Status map_linear(OpContext& op, const Tensor& x, const Shape& shape, const Compute& compute) {
  if (x.dtype() == DType::string) return unsupported("the element type is string; only numbers can be interpolated");
  const auto count = static_cast<size_t>(x.element_count());
  std::vector<double> numbers(count);
  if (is_complex(x.dtype())) {
    Tensor output = PX_TRY(op.allocate(x.dtype(), shape));
    std::vector<double> imaginary(count);
    for (size_t index = 0; index < count; ++index) {
      const std::complex<double> value = element_as_complex(x, static_cast<int64_t>(index));
      numbers[index] = value.real();
      imaginary[index] = value.imag();
    }
    store_complex(output, compute(numbers), compute(imaginary));
    return op.set_output(0, std::move(output));
  }
  load<double>(x, 0, numbers);
  const std::vector<double> results = compute(numbers);
  if (is_floating(x.dtype())) return op.set_output(0, x.dtype(), shape, std::span<const double>(results));
  std::vector<int64_t> whole(results.size());
  for (size_t index = 0; index < whole.size(); ++index) whole[index] = truncate_to_integer(results[index], x.dtype());
  return op.set_output(0, x.dtype(), shape, std::span<const int64_t>(whole));
}

}  // namespace parallax::reference
