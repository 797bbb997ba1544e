// SPDX-License-Identifier: Apache-2.0
// Sparse tensors of models: what makes one valid, and the dense tensor it stands for.
#pragma once

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax {

// Values [NNZ]; indices int64 [NNZ] or [NNZ, rank], strictly ascending, inside dims. Import has checked it.
Status check_sparse(const SparseTensor& sparse);

// Zeros with the values put in place. For a tensor that check_sparse accepts.
Result<Tensor> to_dense(const SparseTensor& sparse);

}  // namespace parallax
