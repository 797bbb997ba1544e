// Which elements a sample holds, and taking them.
#pragma once

#include "inspector/base/result.h"
#include "inspector/tensor/tensor.h"

namespace parallax::dump {

// At most `limit` elements of a tensor, evenly spread, the first among them, in order: rank 1.
Result<Tensor> take_sample(const Tensor& tensor, int64_t limit);

}  // namespace parallax::dump
