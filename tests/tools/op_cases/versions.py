# SPDX-License-Identifier: Apache-2.0
"""Cases of other families again, at operator set versions whose schema is another but whose values are the same. The sources must
agree at that version as well."""
import copy

from . import cells, edges, elementwise, fields, folds, movement, others, places, products, quantised, reduction, sequential, windows  # noqa: F401
from .case import ALL, bf16, boolean, f32, family, i32, i64

AGAIN = {
    "abs_int64_of_least": [7], "acos_specials": [7], "acosh_specials": [9], "add_rank_0_both": [7, 13],
    "argmax_last_of_ties": [12], "argmin_float64": [11], "argmin_last_of_ties_axis_0": [12], "asin_specials": [7],
    "asinh_specials": [9], "atan_specials": [7], "atanh_specials": [9], "attention_boolean_mask_rank_4": [25],
    "averagepool_exclude_pad": [10], "bitshift_left_uint16_overflow": [28], "cast_float8e4m3fn_to_float16": [24],
    "cast_float4e2m1_to_float32": [28], "castlike_to_float16": [21, 23, 24, 25], "ceil_specials": [7], "concat_complex128":
    [11], "constant_1_float64": [9, 11], "constant_value_float": [12], "constant_int4": [23, 24, 25],
    "constantofshape_scalar_bool": [21, 23, 24, 25], "cos": [7], "cosh_specials": [9], "cumsum_exclusive": [11],
    "dequantizelinear_output_dtype": [24, 25, 28], "div_uint64_high_bit": [7, 13], "dropout_7_attribute": [10],
    "dropout_inference_mask": [12], "elu_default_alpha": [7], "equal_bool": [7], "erf_specials": [9], "exp_specials": [7],
    "flatten_axis_at_rank": [9, 21, 23, 24, 25], "floor_specials": [7], "gru_lengths_forward": [22], "gather_complex64":
    [11], "gemm_bias_scalar": [9], "greater_infinities": [7, 9], "greaterorequal_int8": [12],
    "gridsample_linear_zeros_align_0": [22], "hardsigmoid_default": [7], "identity_complex64": [13, 14, 19, 21, 23, 24, 25],
    "isnan_float16": [9], "lstm_lengths_forward": [22], "leakyrelu_default_alpha": [7], "less_7_broadcast": [9],
    "lessorequal_uint64": [12], "log_specials": [7], "max_of_one": [7], "max_uint64": [12], "maxpool_same_lower": [10],
    "maxunpool_default_shape": [22], "mean_of_three": [7], "mean_broadcast": [8], "min_nan_wins": [7, 8], "mod_int8_signs":
    [10], "multinomial_certain": [22], "mul_rank_0_and_matrix": [7, 13], "neg_int8_of_least": [7], "negativeloglikelihoodloss_weight_none": [12],
    "onehot_middle_axis": [28], "optional_of_tensor": [28], "optionalgetelement_sequence": [15, 28], "prelu_7_unidirectional": [9], "pad_wrap": [21, 23,
    24, 25], "pow_int64_base_float_exponent": [12], "quantizelinear_int16": [23, 24], "quantizelinear_int2": [28],
    "randomnormal_moments": [22], "randomnormallike_dtype_given": [22],
    "randomuniform_range_and_moments": [22], "randomuniformlike_dtype_of_input": [22], "rnn_lengths_forward": [22], "range_float_step": [27], "reciprocal_specials": [7], "reduce_l1_axes_attribute": [11],
    "reduce_l2_axes_attribute": [11], "reduce_logsum_axes_attribute": [11], "reduce_logsum_rank_0": [28],
    "reduce_logsumexp_axes_attribute": [11], "reducelogsumexp_noop_elementwise": [28], "reduce_max_axes_attribute": [11, 12],
    "reduce_min_axes_attribute": [11, 12], "reduce_prod_axes_attribute": [11], "reduce_sumsquare_axes_attribute": [11],
    "relu_float16_specials": [7, 13], "reshape_complex128": [13, 19], "reshape_int4": [23, 24, 25],
    "scatterelements_11_axis_0": [13], "selu_given": [7], "shape_of_int4": [23, 24, 25], "sigmoid_specials": [7],
    "sign_int8": [9], "sin": [7], "sinh_specials": [9], "size_of_scalar": [19, 23, 24, 25], "slice_10_inputs": [11],
    "softmaxcrossentropyloss_none": [12], "sqrt_specials": [7], "squeeze_all": [21, 23, 24, 25], "sub_float64_cancels": [7,
    13], "sum_single": [7], "tan_specials": [7], "tanh_specials": [7], "thresholdedrelu_default": [10], "transpose_float8":
    [24, 25], "unsqueeze_unsorted": [21, 23, 24, 25],
}

by_name = {case.name: case for cases in ALL.values() for case in cases}
again = ALL.setdefault("versions", [])
for name, opsets in AGAIN.items():
    for opset in opsets:
        case = copy.deepcopy(by_name[name])
        case.name = f"{name}_at_{opset}"
        case.model.opset_import[0].version = opset
        again.append(case)

# Version 28 takes bfloat16 where the peers do not yet.
case = family("versions")
ROWS = bf16([[1, 2.5, -3], [0.5, 4, 7]])
MOVED = "elements are moved"
case("compress_28_bfloat16", "Compress", 28, [ROWS, boolean([True, False, True])], {"axis": 1}, [bf16([[1, -3], [0.5, 7]])], spec=MOVED, unasked=("onnxruntime",))
case("reversesequence_28_bfloat16", "ReverseSequence", 28, [ROWS, i64([2, 3])], {"batch_axis": 0, "time_axis": 1}, [bf16([[2.5, 1, -3], [7, 4, 0.5]])],
     spec=MOVED, unasked=("onnxruntime",))
case("depthtospace_28_bfloat16", "DepthToSpace", 28, [bf16([1, 2, 3, 4], [1, 4, 1, 1])], {"blocksize": 2}, [bf16([[[[1, 2], [3, 4]]]])], spec=MOVED,
     unasked=("onnxruntime",))
case("spacetodepth_28_bfloat16", "SpaceToDepth", 28, [bf16([[[[1, 2], [3, 4]]]])], {"blocksize": 2}, [bf16([1, 2, 3, 4], [1, 4, 1, 1])], spec=MOVED,
     unasked=("onnxruntime",))
case("unique_28_bfloat16", "Unique", 28, [bf16([3, 1, 3, 2.5])], None, [bf16([1, 2.5, 3]), i64([1, 3, 0]), i64([2, 0, 2, 1]), i64([1, 1, 2])],
     spec="Unique: sorted values, first places, inverse, counts", unasked=("onnxruntime",))
case("celu_28_bfloat16", "Celu", 28, [bf16([-1, 0, 2])], {"alpha": 2.0}, [bf16([-0.78515625, 0, 2])],
     spec="Celu: max(0, x) + min(0, alpha * (exp(x / alpha) - 1)), rounded once", unasked=("onnxruntime", "ReferenceEvaluator"))
case("mod_28_float_floored", "Mod", 28, [f32([7.5, -7.5, 7.5, -7.5]), f32([2, 2, -2, -2])], {"fmod": 0}, [f32([1.5, 0.5, -0.5, -1.5])],
     spec="Mod-28: the sign of the divisor, for floats as well", unasked=("onnxruntime",))
case("einsum_28_trace", "Einsum", 28, [f32([[1, 2], [3, 4.5]])], {"equation": "ii->"}, [f32(5.5)], spec="Einsum: a repeated index walks the diagonal",
     unasked=("onnxruntime",))
# Versions that a peer leaves out.
case("shape_13", "Shape", 13, [f32([[1, 2, 3]])], None, [i64([1, 3])], spec="Shape: the dimensions")
case("bernoulli_15_certain", "Bernoulli", 15, [f32([0, 1, 1, 0, 1])], {"dtype": 6, "seed": 1.0}, [i32([0, 1, 1, 0, 1])], spec="Bernoulli: the chance of a 1",
     wrong={"onnxruntime": "draws a 1 where its chance is 0"})
case("optionalhaselement_28", "OptionalHasElement", 28, [f32([1, 2])], None, [boolean(True)], spec="OptionalHasElement: a bare tensor has an element",
     unasked=("onnxruntime",))
