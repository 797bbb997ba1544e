// SPDX-License-Identifier: Apache-2.0
// Sparse tensors made dense: the reference knows no other form of them.
#pragma once

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax::reference {

// Errors: invalid_model where the indices do not fit the dimensions.
Result<Tensor> densify(const SparseTensor& sparse);

}  // namespace parallax::reference
