// Families of com.microsoft that run through the operators of ai.onnx, on the host alone.
#pragma once

#include "runtime/ops/families.h"

namespace parallax::runtime {

template <class Device>
Rows<Device> ms_attention_rows();
template <class Device>
Rows<Device> ms_borrowed_rows();
template <class Device>
Rows<Device> ms_quantized_product_rows();
template <class Device>
Rows<Device> ms_group_query_attention_rows();
template <class Device>
Rows<Device> ms_gated_rows();
template <class Device>
Rows<Device> ms_position_rows();
template <class Device>
Rows<Device> ms_packed_rows();

}  // namespace parallax::runtime
