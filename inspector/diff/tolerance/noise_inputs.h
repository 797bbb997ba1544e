// SPDX-License-Identifier: Apache-2.0
// The errors and sizes that an operator's inputs bring into its estimate. Private to noise_model.cpp.
#pragma once

#include <algorithm>
#include <cmath>

#include "inspector/diff/tolerance/noise_model.h"
#include "inspector/diff/tolerance/noise_table.h"
#include "inspector/diff/tolerance/thresholds.h"

namespace parallax::diff {

inline double squared(double value) { return value * value; }

inline double epsilon_of(DType dtype) { return dtype == DType::undefined ? 0 : float_limits(dtype).epsilon; }

inline DType real_part(DType dtype) {
  if (dtype == DType::complex64) return DType::float32;
  return dtype == DType::complex128 ? DType::float64 : dtype;
}

// The largest error that is taken over from a value that nobody compared.
inline double most_believed(DType coarsest, double rms) {
  return noise_margin_of(coarsest).uncompared * epsilon_of(coarsest) * rms;
}

inline DType coarser(DType a, DType b) { return epsilon_of(a) >= epsilon_of(b) ? a : b; }

struct NoiseModel::Inputs {
  double error_squared = 0;  // sum of squares of absolute errors
  double error_max = 0;
  double relative_squared = 0;  // sum of squares of relative errors
  double relative_max = 0;
  double rms_max = 0;
  double rms_max_carrying = 0;  // of those that carry an error
  double rms_product = 1;       // of the first two
  double terms = 1;             // products in a sum, where the first two inputs tell
  double count_max = 0;
  double number = 0;  // of inputs
  const Magnitude* first = nullptr;
  double held_step = 0, step_share = 0;
  DType coarsest = DType::undefined;
  DType held = DType::undefined;  // the type they are in, of several the one with the shortest mantissa
  bool any_known = false;
  bool any_estimated = false;
  bool any_quantized = false;
  // Inputs that were neither observed nor estimated: some has rounded, to this type or a wider one, some has an unknown
  // size.
  bool any_rounded_unseen = false;
  DType coarsest_unseen = DType::undefined;
  bool any_size_unseen = false;

  void add(const State& state, size_t position) {
    any_known = true;
    const double rms = state.magnitude.rms;
    const double most =
        state.is_quantized ? thresholds::kMostQuantizationError * rms : most_believed(state.coarsest, rms);
    const double carried = state.is_compared || rms == 0 ? state.carried : std::min(state.carried, most);
    any_quantized = any_quantized || state.is_quantized;
    any_estimated = any_estimated || state.is_estimated;
    const double relative = rms > 0 ? carried / rms : 0;
    error_squared += squared(carried);
    error_max = std::max(error_max, carried);
    relative_squared += squared(relative);
    relative_max = std::max(relative_max, relative);
    rms_max = std::max(rms_max, rms);
    if (carried > 0) rms_max_carrying = std::max(rms_max_carrying, rms);
    count_max = std::max(count_max, state.magnitude.count);
    ++number;
    held_step = std::max(held_step, state.held_step);
    step_share = std::max(step_share, state.step_share);
    coarsest = coarser(coarsest, state.coarsest);
    held = coarser(held, real_part(state.magnitude.dtype));
    if (position < 2) rms_product *= state.magnitude.rms;
    if (position == 0) {
      terms = state.magnitude.last_dim;
      first = &state.magnitude;
    }
  }

  // About as large as a result is that was never seen.
  double rms_of_result(ErrorPropagation propagation, bool is_product) const {
    switch (propagation) {
      case ErrorPropagation::dot_product:
        return std::sqrt(terms) * rms_product;
      case ErrorPropagation::relative:
        return is_product ? rms_product : rms_max;
      case ErrorPropagation::exponential:
      case ErrorPropagation::normalizes:
        return 1;
      case ErrorPropagation::copy:  // what is exact stays so, and is most likely a mask where it is large
        return rms_max_carrying > 0 ? rms_max_carrying : rms_max;
      case ErrorPropagation::bounded:
      case ErrorPropagation::gated:
      case ErrorPropagation::absolute:
      case ErrorPropagation::recurrent:
      case ErrorPropagation::unknown:
        return rms_max;
    }
    return rms_max;
  }
};

}  // namespace parallax::diff
