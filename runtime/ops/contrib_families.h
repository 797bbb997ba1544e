// SPDX-License-Identifier: Apache-2.0
// Families of com.microsoft that every device has, and those of the host alone.
#pragma once

#include "runtime/ops/families.h"

namespace parallax::runtime {

template <class Device>
Rows<Device> contrib_activated_rows();
template <class Device>
Rows<Device> contrib_attention_rows();
template <class Device>
Rows<Device> contrib_biased_rows();
template <class Device>
Rows<Device> contrib_borrowed_rows();
template <class Device>
Rows<Device> contrib_dynamic_lstm_rows();
template <class Device>
Rows<Device> contrib_embedding_rows();
template <class Device>
Rows<Device> contrib_expert_rows();
template <class Device>
Rows<Device> contrib_gated_rows();
template <class Device>
Rows<Device> contrib_group_query_attention_rows();
template <class Device>
Rows<Device> contrib_crop_unfold_rows();
template <class Device>
Rows<Device> contrib_integer_product_rows();
template <class Device>
Rows<Device> contrib_inverse_rows();
template <class Device>
Rows<Device> contrib_ngram_rows();
template <class Device>
Rows<Device> contrib_packed_rows();
template <class Device>
Rows<Device> contrib_position_rows();

// ---- The host's ----
template <class Device>
Rows<Device> contrib_nbits_rows();
template <class Device>
Rows<Device> contrib_token_rows();

}  // namespace parallax::runtime
