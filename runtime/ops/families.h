// SPDX-License-Identifier: Apache-2.0
// The families of operators, each a span of rows. A family without kernels for GPU devices is not defined for them, and
// listed in table.cpp for the host alone.
#pragma once

#include <span>

#include "runtime/ops/op_context.h"

namespace parallax::runtime {

template <class Device>
using Rows = std::span<const KernelRow<Device>>;

template <class Device>
Rows<Device> activation_rows();
template <class Device>
Rows<Device> arithmetic_rows();
template <class Device>
Rows<Device> logic_rows();
template <class Device>
Rows<Device> cast_rows();
template <class Device>
Rows<Device> view_rows();
template <class Device>
Rows<Device> movement_rows();
template <class Device>
Rows<Device> indexing_rows();
template <class Device>
Rows<Device> reduction_rows();
template <class Device>
Rows<Device> softmax_rows();
template <class Device>
Rows<Device> normalization_rows();
template <class Device>
Rows<Device> matmul_rows();
template <class Device>
Rows<Device> generator_rows();
template <class Device>
Rows<Device> convolution_rows();
template <class Device>
Rows<Device> pooling_rows();
template <class Device>
Rows<Device> channel_norm_rows();
template <class Device>
Rows<Device> scattering_rows();
template <class Device>
Rows<Device> sorting_rows();
template <class Device>
Rows<Device> sequence_rows();
template <class Device>
Rows<Device> recurrent_rows();
template <class Device>
Rows<Device> sampling_rows();
template <class Device>
Rows<Device> region_rows();
template <class Device>
Rows<Device> im2col_block_rows();
template <class Device>
Rows<Device> batch_statistics_rows();
template <class Device>
Rows<Device> linear_attention_rows();
template <class Device>
Rows<Device> quantize_rows();
template <class Device>
Rows<Device> loss_rows();
template <class Device>
Rows<Device> resize_rows();
template <class Device>
Rows<Device> attention_rows();
template <class Device>
Rows<Device> einsum_rows();
template <class Device>
Rows<Device> detection_rows();
template <class Device>
Rows<Device> signal_rows();
template <class Device>
Rows<Device> quantized_product_rows();
template <class Device>
Rows<Device> dropout_rows();
template <class Device>
Rows<Device> contrib_activation_rows();
template <class Device>
Rows<Device> contrib_product_rows();
template <class Device>
Rows<Device> contrib_conv_rows();
template <class Device>
Rows<Device> contrib_norm_rows();
template <class Device>
Rows<Device> contrib_quantized_rows();
template <class Device>
Rows<Device> contrib_tensor_rows();
template <class Device>
Rows<Device> random_rows();

}  // namespace parallax::runtime
