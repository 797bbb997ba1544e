// SPDX-License-Identifier: Apache-2.0
// The families of operators: each source has the rows of its operators, which table.cpp joins.
#pragma once

#include "reference/ops/table.h"

namespace parallax::reference {

// The domains of the rows.
constexpr std::string_view kOnnx = "ai.onnx";
constexpr std::string_view kPreview = "ai.onnx.preview";
constexpr std::string_view kTraining = "ai.onnx.preview.training";
constexpr std::string_view kMl = "ai.onnx.ml";
constexpr std::string_view kMicrosoft = "com.microsoft";

// ---- math ----
OpRows activations_rows();
OpRows binary_rows();
OpRows einsum_rows();
OpRows matmul_rows();
OpRows quantize_rows();
OpRows reduce_rows();
OpRows along_axis_rows();
OpRows signal_rows();
OpRows softmax_rows();
OpRows unary_rows();
OpRows variadic_rows();

// ---- tensor ----
OpRows cast_rows();
OpRows gather_rows();
OpRows movement_rows();
OpRows random_rows();
OpRows scatter_rows();
OpRows select_rows();
OpRows shape_ops_rows();
OpRows text_rows();

// ---- nn ----
OpRows attention_rows();
OpRows conv_rows();
OpRows deform_conv_rows();
OpRows flex_attention_rows();
OpRows linear_attention_rows();
OpRows loss_rows();
OpRows normalization_rows();
OpRows pool_rows();
OpRows recurrent_rows();
OpRows training_rows();

// ---- feature maps ----
OpRows blocks_rows();
OpRows image_decoder_rows();
OpRows regions_rows();
OpRows resize_rows();
OpRows sampling_rows();

// ---- control ----
OpRows control_flow_rows();
OpRows sequence_rows();

// ---- ml ----
OpRows ml_encoders_rows();
OpRows ml_features_rows();
OpRows ml_linear_rows();
OpRows ml_maps_rows();
OpRows ml_svm_rows();
OpRows ml_tree_rows();

// ---- contrib ----
OpRows contrib_activations_rows();
OpRows contrib_attention_rows();
OpRows contrib_borrowed_rows();
OpRows contrib_dynamic_lstm_rows();
OpRows contrib_experts_rows();
OpRows contrib_fused_rows();
OpRows contrib_gated_rows();
OpRows contrib_gather_quantized_rows();
OpRows contrib_group_query_attention_rows();
OpRows contrib_normalization_rows();
OpRows contrib_packed_rows();
OpRows contrib_positions_rows();
OpRows contrib_quantized_rows();
OpRows contrib_quantized_matmul_rows();
OpRows contrib_rotary_rows();
OpRows contrib_state_rows();
OpRows contrib_tensors_rows();
OpRows contrib_tokenizer_rows();

}  // namespace parallax::reference
