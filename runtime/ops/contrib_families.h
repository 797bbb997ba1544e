// SPDX-License-Identifier: Apache-2.0
// Families of com.microsoft that every device has, and those of the host alone.
#pragma once

#include "runtime/ops/families.h"

namespace parallax::runtime {

template <class Device>
Rows<Device> ms_activated_rows();
template <class Device>
Rows<Device> ms_attention_rows();
template <class Device>
Rows<Device> ms_biased_rows();
template <class Device>
Rows<Device> ms_borrowed_rows();
template <class Device>
Rows<Device> ms_dynamic_lstm_rows();
template <class Device>
Rows<Device> ms_embedding_rows();
template <class Device>
Rows<Device> ms_expert_rows();
template <class Device>
Rows<Device> ms_gated_rows();
template <class Device>
Rows<Device> ms_group_query_attention_rows();
template <class Device>
Rows<Device> ms_image_rows();
template <class Device>
Rows<Device> ms_integer_product_rows();
template <class Device>
Rows<Device> ms_inverse_rows();
template <class Device>
Rows<Device> ms_ngram_rows();
template <class Device>
Rows<Device> ms_packed_rows();
template <class Device>
Rows<Device> ms_position_rows();

// ---- The host's ----
template <class Device>
Rows<Device> ms_nbits_rows();
template <class Device>
Rows<Device> ms_token_rows();

}  // namespace parallax::runtime
