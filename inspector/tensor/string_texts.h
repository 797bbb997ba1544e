// SPDX-License-Identifier: Apache-2.0
// The memory of texts: a tensor of strings is charged for its objects (Tensor::allocate), and here for what they point
// to.
#pragma once

#include <string>

#include "inspector/base/result.h"
#include "inspector/tensor/tensor.h"

namespace parallax {

// The tensor, with its texts in the budget of this thread (MemoryBudget) for as long as it is held; texts of less than
// a MiB in all are not worth it, nor is a tensor that others share. Errors: out_of_memory.
Result<Tensor> with_texts_charged(Tensor tensor);

}  // namespace parallax
