// Families of our own fused operators (domain parallax.fused) that need neither a product nor a convolution.
#pragma once

#include "runtime/ops/families.h"

namespace parallax::runtime {

template <class Device>
Rows<Device> fused_pointwise_rows();

}  // namespace parallax::runtime
