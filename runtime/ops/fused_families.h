// Families of our own fused operators (domain parallax.fused) that no family of products or convolutions has.
#pragma once

#include "runtime/ops/families.h"

namespace parallax::runtime {

template <class Device>
Rows<Device> fused_attention_rows();
template <class Device>
Rows<Device> fused_on_gpu_rows();
template <class Device>
Rows<Device> fused_pointwise_rows();

}  // namespace parallax::runtime
