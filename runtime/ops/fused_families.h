// SPDX-License-Identifier: Apache-2.0
// Families of our own fused operators (domain parallax.fused) that no family of products or convolutions has, and of
// what GPU devices have of com.microsoft.
#pragma once

#include "runtime/ops/families.h"

namespace parallax::runtime {

template <class Device>
Rows<Device> channel_affine_rows();
template <class Device>
Rows<Device> channel_shuffle_rows();
template <class Device>
Rows<Device> fused_attention_rows();
template <class Device>
Rows<Device> fused_on_gpu_rows();
template <class Device>
Rows<Device> fused_pointwise_rows();
template <class Device>
Rows<Device> fused_pointwise_on_gpu_rows();
template <class Device>
Rows<Device> nbits_on_gpu_rows();

}  // namespace parallax::runtime
