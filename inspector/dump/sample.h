// SPDX-License-Identifier: Apache-2.0
// Which elements a sample holds, and taking them.
#pragma once

#include <span>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/tensor/tensor.h"

namespace parallax::dump {

// The elements at these row-major indices: rank 1.
Result<Tensor> take_elements(const Tensor& tensor, std::span<const int64_t> locations);

// The element indices of a sample in the whole tensor, row-major, in order.
std::vector<int64_t> sampled_indices(int64_t sample_count, int64_t element_count);

// At most `limit` elements of a tensor, evenly spread, the first among them, in order: rank 1.
Result<Tensor> take_sample(const Tensor& tensor, int64_t limit);

}  // namespace parallax::dump
