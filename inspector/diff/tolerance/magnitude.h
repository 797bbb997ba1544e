// SPDX-License-Identifier: Apache-2.0
// Magnitude: what the noise model looks at in a tensor: its type, and how large its ordinary elements are.
#pragma once

#include <cstdint>
#include <vector>

#include "inspector/dump/statistics/statistics.h"
#include "inspector/tensor/tensor.h"
#include "inspector/tensor/type_info.h"

namespace parallax::diff {

struct Magnitude {
  DType dtype = DType::undefined;  // the type whose rounding counts
  bool is_unrounded = false;       // held in double, without that rounding
  double rms = 0;                  // of ordinary elements
  double peak_rms = 0;             // of the largest of each 16 neighbors; 0 where the elements were not seen
  double count = 0;
  double first_dim = 1;
  double last_dim = 1;
  std::vector<int64_t> dims;  // empty where these are not known
};
Magnitude magnitude_of(const TensorView& view);
Magnitude magnitude_of(const TypeInfo& type, const TensorStatistics& statistics);
// The magnitude of a tensor of `type`, from some of its elements.
Magnitude magnitude_of_sample(const TypeInfo& type, const TensorView& sample, DType declared);
// The magnitude of a value that was not observed: without a size.
Magnitude unseen_magnitude(const TypeInfo& type);

// The type of the tensors within sequences, optionals and maps; a tensor's own type.
const TypeInfo& innermost(const TypeInfo& type);

// True where values of the type round.
inline bool is_counted(DType dtype) { return is_floating(dtype) || is_complex(dtype); }

}  // namespace parallax::diff
