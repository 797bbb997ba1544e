// Every operator function, by family: one file a family. table.cpp says which operator and versions each stands for.
#pragma once

#include "reference/op_context.h"

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
Status op_group_normalization(OpContext& op);
Status op_instance_normalization(OpContext& op);
Status op_lrn(OpContext& op);
Status op_layer_normalization(OpContext& op);
Status op_lp_normalization(OpContext& op);
Status op_mean_variance_normalization(OpContext& op);
Status op_rms_normalization(OpContext& op);

// matmul.cpp: matrix products
Status op_gemm(OpContext& op);
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

}  // namespace parallax::reference
