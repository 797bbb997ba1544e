// SPDX-License-Identifier: Apache-2.0
// Every operator function, by family: one file a family. table.cpp says which operator and versions each stands for.
#pragma once

#include "reference/ops/op_context.h"

namespace parallax::reference {

// unary.cpp: one input, element by element
Status op_abs(OpContext& op);
Status op_acos(OpContext& op);
Status op_acosh(OpContext& op);
Status op_asin(OpContext& op);
Status op_asinh(OpContext& op);
Status op_atan(OpContext& op);
Status op_atanh(OpContext& op);
Status op_bitwise_not(OpContext& op);
Status op_ceil(OpContext& op);
Status op_cos(OpContext& op);
Status op_cosh(OpContext& op);
Status op_erf(OpContext& op);
Status op_exp(OpContext& op);
Status op_floor(OpContext& op);
Status op_is_inf(OpContext& op);
Status op_is_nan(OpContext& op);
Status op_log(OpContext& op);
Status op_neg(OpContext& op);
Status op_not(OpContext& op);
Status op_reciprocal(OpContext& op);
Status op_round(OpContext& op);
Status op_sign(OpContext& op);
Status op_sin(OpContext& op);
Status op_sinh(OpContext& op);
Status op_sqrt(OpContext& op);
Status op_tan(OpContext& op);
Status op_tanh(OpContext& op);

// activations.cpp
Status op_celu(OpContext& op);
Status op_clip(OpContext& op);
Status op_elu(OpContext& op);
Status op_gelu(OpContext& op);
Status op_hard_sigmoid(OpContext& op);
Status op_hard_swish(OpContext& op);
Status op_leaky_relu(OpContext& op);
Status op_mish(OpContext& op);
Status op_prelu(OpContext& op);
Status op_relu(OpContext& op);
Status op_selu(OpContext& op);
Status op_shrink(OpContext& op);
Status op_sigmoid(OpContext& op);
Status op_softplus(OpContext& op);
Status op_softsign(OpContext& op);
Status op_swiglu(OpContext& op);
Status op_swish(OpContext& op);
Status op_thresholded_relu(OpContext& op);

// binary.cpp: two broadcast inputs
Status op_add(OpContext& op);
Status op_and(OpContext& op);
Status op_bit_shift(OpContext& op);
Status op_bitwise_and(OpContext& op);
Status op_bitwise_or(OpContext& op);
Status op_bitwise_xor(OpContext& op);
Status op_div(OpContext& op);
Status op_equal(OpContext& op);
Status op_greater(OpContext& op);
Status op_greater_or_equal(OpContext& op);
Status op_less(OpContext& op);
Status op_less_or_equal(OpContext& op);
Status op_mod(OpContext& op);
Status op_mod_13(OpContext& op);
Status op_mul(OpContext& op);
Status op_or(OpContext& op);
Status op_pow(OpContext& op);
Status op_sub(OpContext& op);
Status op_xor(OpContext& op);

// variadic.cpp: any number of broadcast inputs
Status op_max(OpContext& op);
Status op_mean(OpContext& op);
Status op_min(OpContext& op);
Status op_sum(OpContext& op);

// cast.cpp
Status op_bit_cast(OpContext& op);
Status op_cast(OpContext& op);
Status op_cast_like(OpContext& op);

// shape_ops.cpp: shapes, and elements made from them
Status op_constant(OpContext& op);
Status op_constant_of_shape(OpContext& op);
Status op_expand(OpContext& op);
Status op_eye_like(OpContext& op);
Status op_flatten(OpContext& op);
Status op_identity(OpContext& op);
Status op_range(OpContext& op);
Status op_reshape(OpContext& op);
Status op_shape(OpContext& op);
Status op_size(OpContext& op);
Status op_squeeze(OpContext& op);
Status op_unsqueeze(OpContext& op);

// movement.cpp: elements placed elsewhere
Status op_concat(OpContext& op);
Status op_slice(OpContext& op);
Status op_split(OpContext& op);
Status op_tile(OpContext& op);
Status op_tile_1(OpContext& op);
Status op_transpose(OpContext& op);
Status op_trilu(OpContext& op);
Status op_where(OpContext& op);

// gather.cpp: elements chosen by indices
Status op_gather(OpContext& op);
Status op_gather_elements(OpContext& op);
Status op_gather_nd(OpContext& op);

// reduce.cpp
Status op_reduce_l1(OpContext& op);
Status op_reduce_l2(OpContext& op);
Status op_reduce_log_sum(OpContext& op);
Status op_reduce_log_sum_exp(OpContext& op);
Status op_reduce_max(OpContext& op);
Status op_reduce_mean(OpContext& op);
Status op_reduce_min(OpContext& op);
Status op_reduce_prod(OpContext& op);
Status op_reduce_sum(OpContext& op);
Status op_reduce_sum_square(OpContext& op);

// scan_rows.cpp: along one axis
Status op_arg_max(OpContext& op);
Status op_arg_min(OpContext& op);
Status op_cum_prod(OpContext& op);
Status op_cum_sum(OpContext& op);
Status op_top_k(OpContext& op);

// softmax.cpp
Status op_hardmax(OpContext& op);
Status op_log_softmax(OpContext& op);
Status op_softmax(OpContext& op);

// normalization.cpp
Status op_batch_normalization(OpContext& op);
Status op_batch_normalization_1(OpContext& op);
Status op_batch_normalization_7(OpContext& op);
Status op_group_normalization(OpContext& op);
Status op_instance_normalization(OpContext& op);
Status op_lrn(OpContext& op);
Status op_layer_normalization(OpContext& op);
Status op_lp_normalization(OpContext& op);
Status op_mean_variance_normalization(OpContext& op);
Status op_rms_normalization(OpContext& op);

// matmul.cpp: matrix products
Status op_gemm(OpContext& op);
Status op_gemm_1(OpContext& op);
Status op_matmul(OpContext& op);
Status op_matmul_integer(OpContext& op);
Status op_qlinear_matmul(OpContext& op);

// quantize.cpp
Status op_dequantize_linear(OpContext& op);
Status op_dynamic_quantize_linear(OpContext& op);
Status op_quantize_linear(OpContext& op);

// control_flow.cpp: bodies
Status op_if(OpContext& op);
Status op_loop(OpContext& op);
Status op_scan_8(OpContext& op);
Status op_scan(OpContext& op);

// attention.cpp
Status op_attention(OpContext& op);
Status op_rotary_embedding(OpContext& op);

// flex_attention.cpp
Status op_flex_attention(OpContext& op);

// conv.cpp
Status op_conv(OpContext& op);
Status op_conv_integer(OpContext& op);
Status op_conv_transpose(OpContext& op);
Status op_qlinear_conv(OpContext& op);

// deform_conv.cpp
Status op_deform_conv(OpContext& op);

// linear_attention.cpp
Status op_causal_conv_with_state(OpContext& op);
Status op_linear_attention(OpContext& op);

// pool.cpp
Status op_average_pool(OpContext& op);
Status op_global_average_pool(OpContext& op);
Status op_global_lp_pool(OpContext& op);
Status op_global_max_pool(OpContext& op);
Status op_lp_pool(OpContext& op);
Status op_max_pool(OpContext& op);
Status op_max_roi_pool(OpContext& op);
Status op_max_unpool(OpContext& op);

// recurrent.cpp
Status op_gru(OpContext& op);
Status op_lstm(OpContext& op);
Status op_rnn(OpContext& op);

// sequence.cpp: sequences and optionals
Status op_concat_from_sequence(OpContext& op);
Status op_optional(OpContext& op);
Status op_optional_get_element(OpContext& op);
Status op_optional_has_element(OpContext& op);
Status op_sequence_at(OpContext& op);
Status op_sequence_construct(OpContext& op);
Status op_sequence_empty(OpContext& op);
Status op_sequence_erase(OpContext& op);
Status op_sequence_insert(OpContext& op);
Status op_sequence_length(OpContext& op);
Status op_sequence_map(OpContext& op);
Status op_split_to_sequence(OpContext& op);

// scatter.cpp: elements written at indices
Status op_one_hot(OpContext& op);
Status op_scatter_elements(OpContext& op);
Status op_scatter_nd(OpContext& op);
Status op_tensor_scatter(OpContext& op);

// select.cpp: sizes that depend on data, rearrangements
Status op_compress(OpContext& op);
Status op_depth_to_space(OpContext& op);
Status op_non_zero(OpContext& op);
Status op_pad(OpContext& op);
Status op_reverse_sequence(OpContext& op);
Status op_space_to_depth(OpContext& op);
Status op_unique(OpContext& op);

// random.cpp
Status op_bernoulli(OpContext& op);
Status op_dropout(OpContext& op);
Status op_dropout_1(OpContext& op);
Status op_dropout_7(OpContext& op);
Status op_multinomial(OpContext& op);
Status op_random_normal(OpContext& op);
Status op_random_normal_like(OpContext& op);
Status op_random_uniform(OpContext& op);
Status op_random_uniform_like(OpContext& op);

// blocks.cpp
Status op_center_crop_pad(OpContext& op);
Status op_col2im(OpContext& op);

// einsum.cpp
Status op_det(OpContext& op);
Status op_einsum(OpContext& op);

// resize.cpp
Status op_upsample(OpContext& op);
Status op_upsample_1(OpContext& op);
Status op_upsample_7(OpContext& op);
Status op_resize(OpContext& op);

// vision.cpp
Status op_affine_grid(OpContext& op);
Status op_grid_sample(OpContext& op);
Status op_non_max_suppression(OpContext& op);
Status op_roi_align(OpContext& op);

// loss.cpp
Status op_negative_log_likelihood_loss(OpContext& op);
Status op_softmax_cross_entropy_loss(OpContext& op);

// signal.cpp
Status op_blackman_window(OpContext& op);
Status op_dft(OpContext& op);
Status op_hamming_window(OpContext& op);
Status op_hann_window(OpContext& op);
Status op_mel_weight_matrix(OpContext& op);
Status op_stft(OpContext& op);

// image_decoder.cpp
Status op_image_decoder(OpContext& op);

// text.cpp
Status op_regex_full_match(OpContext& op);
Status op_string_concat(OpContext& op);
Status op_string_normalizer(OpContext& op);
Status op_string_split(OpContext& op);
Status op_tf_idf_vectorizer(OpContext& op);

// training.cpp
Status op_adagrad(OpContext& op);
Status op_adam(OpContext& op);
Status op_momentum(OpContext& op);

// ---- ai.onnx.ml ----

// ml_encoders.cpp
Status op_ml_category_mapper(OpContext& op);
Status op_ml_label_encoder_1(OpContext& op);
Status op_ml_label_encoder(OpContext& op);
Status op_ml_one_hot_encoder(OpContext& op);

// ml_features.cpp
Status op_ml_array_feature_extractor(OpContext& op);
Status op_ml_binarizer(OpContext& op);
Status op_ml_feature_vectorizer(OpContext& op);
Status op_ml_imputer(OpContext& op);
Status op_ml_normalizer(OpContext& op);
Status op_ml_scaler(OpContext& op);

// ml_linear.cpp
Status op_ml_linear_classifier(OpContext& op);
Status op_ml_linear_regressor(OpContext& op);

// ml_maps.cpp
Status op_ml_cast_map(OpContext& op);
Status op_ml_dict_vectorizer(OpContext& op);
Status op_ml_zip_map(OpContext& op);

// ml_svm.cpp
Status op_ml_svm_classifier(OpContext& op);
Status op_ml_svm_regressor(OpContext& op);

// ml_tree.cpp
Status op_ml_tree_ensemble(OpContext& op);
Status op_ml_tree_ensemble_classifier(OpContext& op);
Status op_ml_tree_ensemble_regressor(OpContext& op);

// ---- com.microsoft ----

// contrib/activations.cpp
Status op_contrib_bias_add(OpContext& op);
Status op_contrib_bias_dropout(OpContext& op);
Status op_contrib_bias_gelu(OpContext& op);
Status op_contrib_bias_softmax(OpContext& op);
Status op_contrib_bias_split_gelu(OpContext& op);
Status op_contrib_fast_gelu(OpContext& op);
Status op_contrib_gelu(OpContext& op);
Status op_contrib_quick_gelu(OpContext& op);

// contrib/attention.cpp
Status op_contrib_attention(OpContext& op);
Status op_contrib_decoder_masked_multi_head_attention(OpContext& op);
Status op_contrib_multi_head_attention(OpContext& op);
Status op_contrib_q_attention(OpContext& op);

// contrib/borrowed.cpp
Status op_contrib_crop_and_resize(OpContext& op);
Status op_contrib_grid_sample(OpContext& op);
Status op_contrib_pad(OpContext& op);
Status op_contrib_range(OpContext& op);
Status op_contrib_reduce_sum_integer(OpContext& op);
Status op_contrib_sample_op(OpContext& op);
Status op_contrib_unfold_tensor(OpContext& op);

// contrib/dynamic_lstm.cpp
Status op_contrib_dynamic_quantize_lstm(OpContext& op);

// contrib/experts.cpp
Status op_contrib_moe(OpContext& op);

// contrib/fused.cpp
Status op_contrib_conv_transpose_with_dynamic_pads(OpContext& op);
Status op_contrib_fused_conv(OpContext& op);
Status op_contrib_fused_gemm(OpContext& op);
Status op_contrib_fused_matmul(OpContext& op);
Status op_contrib_fused_matmul_activation(OpContext& op);
Status op_contrib_gemm_fast_gelu(OpContext& op);
Status op_contrib_nhwc_conv(OpContext& op);

// contrib/gated.cpp
Status op_contrib_branchwise_rms_norm(OpContext& op);
Status op_contrib_gated_add(OpContext& op);
Status op_contrib_gated_rms_norm(OpContext& op);
Status op_contrib_matmul_nbits_mlp(OpContext& op);
Status op_contrib_matmul_nbits_qkv(OpContext& op);
Status op_contrib_scaled_silu(OpContext& op);

// contrib/gather_quantized.cpp
Status op_contrib_gather_block_quantized(OpContext& op);

// contrib/group_query_attention.cpp
Status op_contrib_group_query_attention(OpContext& op);

// contrib/normalization.cpp
Status op_contrib_embed_layer_normalization(OpContext& op);
Status op_contrib_group_norm(OpContext& op);
Status op_contrib_simplified_layer_normalization(OpContext& op);
Status op_contrib_skip_group_norm(OpContext& op);
Status op_contrib_skip_layer_normalization(OpContext& op);
Status op_contrib_skip_simplified_layer_normalization(OpContext& op);

// contrib/packed.cpp
Status op_contrib_packed_attention(OpContext& op);
Status op_contrib_packed_multi_head_attention(OpContext& op);
Status op_contrib_remove_padding(OpContext& op);
Status op_contrib_restore_padding(OpContext& op);

// contrib/positions.cpp
Status op_contrib_gated_relative_position_bias(OpContext& op);
Status op_contrib_ngram_repeat_block(OpContext& op);
Status op_contrib_q_embed_layer_normalization(OpContext& op);
Status op_contrib_relative_position_bias(OpContext& op);

// contrib/quantized.cpp
Status op_contrib_mul_integer(OpContext& op);
Status op_contrib_nhwc_max_pool(OpContext& op);
Status op_contrib_qlinear_add(OpContext& op);
Status op_contrib_qlinear_average_pool(OpContext& op);
Status op_contrib_qlinear_concat(OpContext& op);
Status op_contrib_qlinear_conv(OpContext& op);
Status op_contrib_qlinear_global_average_pool(OpContext& op);
Status op_contrib_qlinear_leaky_relu(OpContext& op);
Status op_contrib_qlinear_mul(OpContext& op);
Status op_contrib_qlinear_reduce_mean(OpContext& op);
Status op_contrib_qlinear_sigmoid(OpContext& op);
Status op_contrib_qlinear_softmax(OpContext& op);
Status op_contrib_qlinear_where(OpContext& op);

// contrib/quantized_matmul.cpp
Status op_contrib_dynamic_quantize_matmul(OpContext& op);
Status op_contrib_matmul_bnb4(OpContext& op);
Status op_contrib_matmul_integer16(OpContext& op);
Status op_contrib_matmul_integer_to_float(OpContext& op);
Status op_contrib_matmul_nbits(OpContext& op);
Status op_contrib_q_gemm(OpContext& op);

// contrib/rotary.cpp
Status op_contrib_rotary_embedding(OpContext& op);

// contrib/state.cpp
Status op_contrib_causal_conv_with_state(OpContext& op);
Status op_contrib_linear_attention(OpContext& op);

// contrib/tensors.cpp
Status op_contrib_cdist(OpContext& op);
Status op_contrib_complex_mul(OpContext& op);
Status op_contrib_complex_mul_conj(OpContext& op);
Status op_contrib_expand_dims(OpContext& op);
Status op_contrib_inverse(OpContext& op);
Status op_contrib_irfft(OpContext& op);
Status op_contrib_is_all_finite(OpContext& op);
Status op_contrib_rfft(OpContext& op);
Status op_contrib_torch_embedding(OpContext& op);
Status op_contrib_unique(OpContext& op);

// tokenizer.cpp
Status op_contrib_tokenizer(OpContext& op);

}  // namespace parallax::reference
