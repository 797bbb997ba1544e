// SPDX-License-Identifier: Apache-2.0
// The table of `auto`: what each operator does to rounding errors, as far as its kind tells.
#pragma once

#include <cstdint>
#include <string_view>

#include "inspector/tensor/dtype.h"

namespace parallax::diff {

// How the error of an output follows from the errors of the inputs. Errors are standard deviations, absolute.
enum class ErrorPropagation : uint8_t {
  copy,      // elements are moved or selected: the largest error of the inputs
  relative,  // products, quotients, powers: relative errors add up (in squares)
  bounded,   // functions whose slope is about 1 at most: the input's absolute error
  gated,     // x times a share 1 + f of it: as bounded, own rounding is relative to x, of which f near -1 leaves little
  absolute,  // sums and differences: absolute errors add up, own rounding is relative to the largest operand
  dot_product,  // sums of K products: relative errors of both factors, own rounding grows with sqrt(K)
  exponential,  // exp and its kin: the input's absolute error becomes a relative one
  normalizes,   // divides by what it measures: relative error, with room for the mean that was taken away
  recurrent,    // many steps inside: as unknown operators, with more room
  unknown,      // anything else: relative errors with room
};

struct NoiseRow {
  std::string_view op;
  ErrorPropagation propagation;
  double own_rounding;  // what the operator adds besides rounding its result, standard deviation in epsilons of float32
                        // (float64)
};

const NoiseRow& noise_row_of(std::string_view op, std::string_view domain);

// How many standard deviations of the estimated noise a value may be off; in epsilons, the relative error assumed where
// nothing is known of a value's history, and the most that is believed of a value that nobody compared. By the coarsest
// type on the way to the value.
struct NoiseMargin {
  DType dtype;
  double margin;
  double unknown_history;
  double uncompared;
};
const NoiseMargin& noise_margin_of(DType dtype);

}  // namespace parallax::diff
