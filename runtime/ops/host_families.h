// SPDX-License-Identifier: Apache-2.0
// Families of ai.onnx without kernels for a GPU: the host computes for every device, or has them alone.
#pragma once

#include "runtime/ops/families.h"

namespace parallax::runtime {

template <class Device>
Rows<Device> gram_rows();
template <class Device>
Rows<Device> packed_element_rows();

}  // namespace parallax::runtime
