# SPDX-License-Identifier: Apache-2.0
"""Cases at the edges of elementwise operators: no elements, rank 0, overflow, NaN, infinities, the sign of zero, ties."""
import numpy as np

from .case import (INF, NAN, boolean, bf16, c64, c128, family, family_of_models, f16, f32, f64, i8, i16, i32, i64, tensor, text, u8,
                   u16, u32, u64)

case = family("edges")
model = family_of_models("edges")
EVALUATOR, ORT = "ReferenceEvaluator", "onnxruntime"
NOTHING = "no elements, but a shape"

# Broadcasting: rank 0, empty dimensions, both ways at once.
case("add_rank_0_both", "Add", 14, [f32(1.5), f32(2.25)])
case("mul_rank_0_and_matrix", "Mul", 14, [i32(-3), i32([[1, 2], [3, 4]])])
case("sub_empty_broadcast", "Sub", 14, [f32([], [0, 3]), f32([1, 2, 3])], constant=NOTHING)
case("add_one_against_empty", "Add", 14, [f32([], [2, 0]), f32([5], [1])], constant=NOTHING)
case("equal_empty", "Equal", 19, [i64([], [0]), i64([], [0])], constant=NOTHING)
case("where_three_way_broadcast", "Where", 16, [boolean([True, False, True], [3, 1, 1]), i64([[1, 2]]), i64([[10], [20]])])
case("where_rank_0_condition", "Where", 16, [boolean(False), f32([1, 2]), f32([3, 4])])
case("where_strings", "Where", 9, [boolean([True, False]), text(["a", "b"]), text(["c", ""])])
case("max_of_one", "Max", 8, [f32([3, -1])])
case("min_int8_three", "Min", 12, [i8([-128, 5, 7]), i8([3]), i8([-128, 4, 100])])
case("max_uint64", "Max", 13, [u64([2 ** 63, 1]), u64([2 ** 63 - 1, 5])])
case("mean_broadcast", "Mean", 13, [f32([[1], [2]]), f32([10, 20, 30]), f32(3)],
     outputs=[f32([[14 / 3, 8, 34 / 3], [5, 25 / 3, 35 / 3]])], spec="Mean: inputs are broadcast as numpy does")
case("sum_broadcast_8", "Sum", 8, [f32([[1], [2]]), f32([10, 20, 30])])
case("max_float16_nan", "Max", 13, [f16([1, NAN, -2]), f16([0.5, 4, NAN])])

# Integers overflow modulo their width; division truncates; the remainder has the divisor's sign.
case("sub_uint8_wraps", "Sub", 14, [u8([0, 5, 200]), u8([1, 7, 100])])
case("mul_int32_wraps", "Mul", 14, [i32([2 ** 30, 65537, -7]), i32([6, 65537, 3])])
case("mul_int16_wraps", "Mul", 14, [i16([300, -300, 7]), i16([300, 300, -7])])
case("neg_int8_of_least", "Neg", 13, [i8([-128, 127, 0, 5])])
case("abs_int64_of_least", "Abs", 13, [i64([-2 ** 63, -5, 7])])
case("abs_uint8", "Abs", 13, [u8([0, 200, 255])])
case("div_int8_truncates", "Div", 14, [i8([-7, 7, -100]), i8([2, -2, 3])])
case("div_uint64_high_bit", "Div", 14, [u64([2 ** 64 - 1, 2 ** 63]), u64([2, 2 ** 62])])
case("mod_int8_signs", "Mod", 13, [i8([-7, 7, -7, 7, 6]), i8([4, -4, -4, 4, 3])])
case("mod_uint64", "Mod", 13, [u64([2 ** 64 - 1, 10]), u64([10, 3])])
case("mod_fmod_int", "Mod", 13, [i32([-7, 7, -7, 7]), i32([4, -4, -4, 4])], {"fmod": 1})
case("mod_fmod_float64", "Mod", 13, [f64([-7.5, 7.5, 1e300, INF, 3]), f64([2, -2, 7, 2, INF])], {"fmod": 1})
case("mod_fmod_float16", "Mod", 13, [f16([-7.5, 7.25, 1000]), f16([2, -2, 7])], {"fmod": 1})
case("pow_int32_overflow", "Pow", 15, [i32([2, 3, -3, 10]), i32([30, 19, 3, 9])])
case("pow_float_specials", "Pow", 15, [f32([0, 0, -0.0, INF, -INF, NAN, 1, -8, 2]), f32([0, -1, -3, -1, 3, 0, NAN, 0.5, -INF])],
     outputs=[f32([1, INF, -INF, 0, -INF, 1, 1, NAN, 0])], spec="Pow is pow of IEEE 754-2008, section 9.2.1")
case("pow_float_base_int_exponent", "Pow", 15, [f32([1.5, -2, 0.5]), i64([3, 5, -4])])
case("pow_7_float64", "Pow", 7, [f64([2, 9, 0.25]), f64([0.5, 1.5, -2])])
case("pow_int64_base_float_exponent", "Pow", 13, [i64([2, 5, 10]), f32([2.5, 0.5, -1])])
case("pow_int32_beyond_integers", "Pow", 13, [i32([-3, 7, 10, -2]), f32([2.5, 0.5, 20, 3])],
     outputs=[i32([-2 ** 31, 2, -2 ** 31, -8])], spec="what an integer cannot hold is left open: as Cast does it")
case("bitshift_right_uint32", "BitShift", 11, [u32([2 ** 31, 255, 7]), u32([31, 4, 0])], {"direction": "RIGHT"})
case("bitshift_left_uint16_overflow", "BitShift", 11, [u16([0x8001, 3, 255]), u16([1, 15, 8])], {"direction": "LEFT"},
     outputs=[u16([2, 0x8000, 0xFF00])], spec="BitShift: binary representations are shifted")
case("bitwise_or_broadcast", "BitwiseOr", 18, [u8([[1], [2]]), u8([4, 8, 255])])
case("bitwise_xor_int64", "BitwiseXor", 18, [i64([-1, 2 ** 62, 5]), i64([2 ** 40, 2 ** 62 + 1, 3])])
case("bitwise_not_int16", "BitwiseNot", 18, [i16([0, -1, 255, -32768])])
case("sign_int8", "Sign", 13, [i8([-128, 0, 127])])
case("sign_uint16", "Sign", 13, [u16([0, 3, 65535])])

# The sign of zero shows in the reciprocal.
def reciprocal_of(name, op, values, attributes="", opset=13, more=(), expected=None, spec="", **extra):
    types = ["float[N] x"] + [f"float[N] x{k}" for k in range(len(more))]
    arguments = ", ".join(["x"] + [f"x{k}" for k in range(len(more))])
    model(name, opset, f"g ({', '.join(types)}) => (float[N] y) {{ z = {op}{attributes}({arguments}) y = Reciprocal(z) }}",
          [f32(values), *[f32(m) for m in more]], None if expected is None else [f32(expected)], spec=spec, **extra)


reciprocal_of("zero_sign_ceil", "Ceil", [-0.5, -0.0, 0.0, 0.5], expected=[-INF, -INF, INF, 1], spec="Ceil: x is integral, +0, -0: x")
reciprocal_of("zero_sign_round", "Round", [-0.5, -0.25, 0.5, 1.5], expected=[-INF, -INF, INF, 0.5], spec="Round keeps -0 as IEEE 754")
reciprocal_of("zero_sign_floor", "Floor", [-0.0, 0.0, 0.9, -0.9], expected=[-INF, INF, INF, -1], spec="Floor: x is integral: x itself")
reciprocal_of("zero_sign_neg", "Neg", [0.0, -0.0, 2], expected=[-INF, INF, -0.5], spec="Neg flips the sign")
reciprocal_of("zero_sign_mul", "Mul", [0.0, -0.0, 2, -3], more=[[-1, -1, 4, 0.0]], expected=[-INF, INF, 0.125, -INF],
              spec="the sign of a product, IEEE 754")
reciprocal_of("zero_sign_add", "Add", [-0.0, -0.0, 0.0], more=[[-0.0, 0.0, -0.0]], expected=[-INF, INF, INF],
              spec="-0 + -0 is -0, all other sums of zeros +0, IEEE 754")
reciprocal_of("zero_sign_div", "Div", [0.0, -0.0, 1], more=[[-5, -5, -INF]], expected=[-INF, INF, -INF], spec="IEEE 754")
reciprocal_of("zero_sign_sqrt", "Sqrt", [-0.0, 0.0, 4], expected=[-INF, INF, 0.5], spec="the square root of -0 is -0, IEEE 754")
reciprocal_of("zero_sign_tanh", "Tanh", [-0.0, 0.0, INF, -INF], expected=[-INF, INF, 1, -1], spec="tanh is odd")
reciprocal_of("zero_sign_transpose", "Transpose", [-0.0, 0.0, 3], expected=[-INF, INF, 1 / 3], spec="elements are moved")
reciprocal_of("zero_sign_leakyrelu", "LeakyRelu", [-0.0, 0.0, -2], "<alpha = 0.5>", expected=[-INF, INF, -1],
              spec="LeakyRelu: f(x) = alpha * x for x < 0, f(x) = x for x >= 0, which holds of -0")
model("zero_sign_where", 16, "g (bool[N] c, float[N] a, float[N] b) => (float[N] y) { z = Where(c, a, b) y = Reciprocal(z) }",
      [boolean([True, False, True, False]), f32([-0.0, 1, 0.0, 1]), f32([1, -0.0, 1, 0.0])], [f32([-INF, -INF, INF, INF])],
      spec="elements are moved", wrong={ORT: "adds what is chosen to zeros"})
model("zero_sign_cast", 13, "g (float[N] x) => (double[N] y) { h = Cast<to=10>(x) d = Cast<to=11>(h) y = Reciprocal(d) }",
      [f32([-0.0, 0.0, -1e-10, 2])], [f64([-INF, INF, -INF, 0.5])], spec="Cast keeps the sign of zero, and of what rounds to it")
model("zero_sign_constant", 13, "g (float[N] x) => (float[N] y) { c = Constant<value = float[3] {-0.0, 0.0, 2.0}>() "
      "z = Mul(c, x) y = Reciprocal(z) }", [f32([1, 1, 2])], [f32([-INF, INF, 0.25])], spec="a constant is stored bit for bit")

# Functions at their edges.
SPECIALS = [NAN, INF, -INF, 0, 1, -1, 88, -104, 0.5]
for op, opset, values in [("Exp", 13, SPECIALS), ("Log", 13, [NAN, INF, -INF, 0, 1, -1, 1e-40, 1e38]), ("Sqrt", 13, [NAN, INF, -INF, 2, -1]),
                          ("Tanh", 13, [NAN, INF, -INF, 20, -20, 1e-8]), ("Sigmoid", 13, [NAN, INF, -INF, 100, -100, 0.25, -17]),
                          ("Erf", 13, [NAN, INF, -INF, 6, -6, 1e-10, 0.5]), ("Softplus", 22, [NAN, INF, -100, 100, 0.0, -20, 1]),
                          ("Softsign", 22, [NAN, -7, 1e30, -1e30, 0.5]), ("Acos", 22, [1, -1, 0.5, 1.5, NAN]), ("Asin", 22, [1, -1, 0.5, -1.5, NAN]),
                          ("Acosh", 22, [1, 2, 0.5, INF]), ("Atanh", 22, [1, -1, 0.5, 2]), ("Atan", 22, [INF, -INF, NAN, 1]),
                          ("Sinh", 22, [INF, -INF, 100, 0.5]), ("Cosh", 22, [INF, -INF, 100, 0.5]), ("Tan", 22, [0.5, -1.25, 3, INF]),
                          ("Asinh", 22, [INF, -INF, 1e20, -0.5, 1e-6]), ("Reciprocal", 13, [INF, -0.0, 4, 1e-45])]:
    exact = {"Softsign": dict(outputs=[f32([NAN, -0.875, 1, -1, 1 / 3])], spec="Softsign: x / (1 + |x|)")}.get(op, {})
    case(f"{op.lower()}_specials", op, opset, [f32(values)], **exact)
case("exp_float16_overflow", "Exp", 13, [f16([11, 12, -20, 0.5])])
case("tanh_bfloat16", "Tanh", 13, [bf16([0.5, -2, 0.0078125])], outputs=[bf16([0.462890625, -0.96484375, 0.0078125])],
     spec="tanh, rounded once")
case("round_halves", "Round", 22, [f64([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999999999999994, 4503599627370497.5])])
case("round_11_float16", "Round", 11, [f16([0.5, 1.5, 2.5, -3.5, 1023.5])])
case("isnan_float16", "IsNaN", 13, [f16([NAN, INF, 0, 1])])
case("isinf_both_signs_off", "IsInf", 10, [f32([INF, -INF, NAN, 1])], {"detect_positive": 0, "detect_negative": 0},
     constant="neither sign is asked for")
case("isinf_positive_only_float64", "IsInf", 10, [f64([INF, -INF, NAN, 1e308])], {"detect_negative": 0})
case("isinf_20_float16", "IsInf", 20, [f16([INF, -INF, NAN, 65504])])
for kind in ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"):
    has_infinity = kind == "float8e5m2"
    odd = tensor(kind, [NAN, 0, 1.5, -0.25, 224] + ([INF, -INF] if has_infinity else []))
    case(f"isnan_20_{kind}", "IsNaN", 20, [odd], None, [np.isnan(odd.astype(np.float64))], spec="IsNaN, and the tables of the type",
         unasked=(ORT, EVALUATOR))
    case(f"isinf_20_{kind}", "IsInf", 20, [odd], {"detect_negative": 0} if has_infinity else {},
         [np.isposinf(odd.astype(np.float64))], spec="IsInf, and the tables of the type", unasked=(ORT, EVALUATOR),
         **({} if has_infinity else {"constant": "the type has no infinity"}))
case("clip_nan_stays", "Clip", 13, [f32([NAN, -5, 5, INF]), f32(-1), f32(1)])
case("clip_bound_of_nan", "Clip", 13, [f32([1, 2]), f32(NAN), f32(1.5)], outputs=[f32([1, 1.5])],
     spec="Clip-13's function: x is replaced where it is less than min, or greater than max", wrong={EVALUATOR: "numpy.clip takes NaN for the bound"})
case("clip_min_above_max", "Clip", 13, [f32([-5, 0, 5]), f32(2), f32(1)], constant="where min is above max, all values are max")
case("clip_11_min_only", "Clip", 11, [f32([-5, 0, 5]), f32(1)])
case("clip_no_bounds", "Clip", 13, [i32([-5, 0, 5])])
case("clip_6_defaults", "Clip", 6, [f32([-1e38, 0, 3e38])])
case("clip_float16", "Clip", 12, [f16([-1000, 0.5, 1000]), f16(-2), f16(2)])
case("relu_int32", "Relu", 14, [i32([-3, 0, 7])])
case("relu_float16_specials", "Relu", 14, [f16([NAN, INF, -INF, -0.5, 2])])
case("leakyrelu_default_alpha", "LeakyRelu", 16, [f32([-100, 0, 2.5])])
case("elu_default_alpha", "Elu", 22, [f32([-100, -0.5, 0, 2.5])])
case("celu_of_negative_alpha", "Celu", 12, [f32([-2.5, -0.5, 0, 0.75, 3])], {"alpha": -1.5})
case("elu_near_zero", "Elu", 22, [f32([-1e-4, -3e-5, -1e-6])], outputs=[f32(np.expm1(np.float64([-1e-4, -3e-5, -1e-6])))],
     spec="alpha * (exp(x) - 1)", wrong={ORT: "cancels"})
case("selu_given", "Selu", 22, [f32([-1, 0.5, -3])], {"alpha": 2.0, "gamma": 0.5})
case("celu_default_alpha", "Celu", 12, [f32([-3, -0.5, 0, 2])])
case("celu_negative_alpha_region", "Celu", 12, [f32([-3, -0.5, 0, 2])], {"alpha": 3.0})
case("hardsigmoid_default", "HardSigmoid", 22, [f32([-3, -2, 0, 1, 2.5, 4])])
case("thresholdedrelu_default", "ThresholdedRelu", 22, [f32([0.5, 1, 1.5, -2])])
case("thresholdedrelu_nan", "ThresholdedRelu", 22, [f32([NAN, 2, -1])], outputs=[f32([0, 2, 0])], spec="x where x > alpha, else 0")
case("shrink_default", "Shrink", 9, [f32([-2, -0.5, 0.5, 1, 2])])
case("shrink_int16", "Shrink", 9, [i16([-5, -1, 0, 2, 9])], {"lambd": 1.5, "bias": 1.0})
case("prelu_scalar_slope", "PRelu", 16, [f32([-2, 3, -4]), f32(0.5)])
case("prelu_int32", "PRelu", 16, [i32([-2, 3, -4]), i32([2, 3, 4])])
case("prelu_7_unidirectional", "PRelu", 7, [f32([[-2, 3], [-4, -1]]), f32([[0.5], [0.25]])])
case("swish_alpha", "Swish", 24, [f32([-2, -0.5, 0, 3])], {"alpha": 1.5}, outputs=[f32([-0.09485175, -0.16041062, 0, 2.9670389])],
     spec="Swish: x * sigmoid(alpha * x)")
case("mish_large", "Mish", 18, [f32([-50, -1, 0, 30])])
case("hardswish_borders", "HardSwish", 14, [f32([-4, -3, -1.5, 0, 2.25, 3, 5])], outputs=[f32([0, 0, -0.375, 0, 1.96875, 3, 5])],
     spec="HardSwish: x * max(0, min(1, x / 6 + 0.5))")
case("gelu_float64", "Gelu", 20, [f64([-1.5, 0.25, 3])],
     outputs=[f64([-0.10021080190328713, 0.14967658142073093, 2.99595030590511])], spec="Gelu: 0.5 * x * (1 + erf(x / sqrt(2)))",
     wrong={EVALUATOR: "takes the constants of the body as float32"})

# Comparisons and logic.
case("less_int64_beyond_double", "Less", 13, [i64([2 ** 53, 2 ** 53 + 1]), i64([2 ** 53 + 1, 2 ** 53])])
case("greater_infinities", "Greater", 13, [f32([INF, -INF, INF, 1]), f32([1, -INF, INF, -INF])])
case("equal_negative_zero", "Equal", 13, [f32([0.0, -0.0, 1]), f32([-0.0, 0.0, 2])])
case("equal_bool", "Equal", 11, [boolean([True, False, True]), boolean([True, True, False])])
case("equal_int64_beyond_double", "Equal", 13, [i64([2 ** 53, 5]), i64([2 ** 53 + 1, 5])])
case("less_7_broadcast", "Less", 7, [f32([[1], [5]]), f32([2, 4, 6])])
case("greaterorequal_int8", "GreaterOrEqual", 16, [i8([-128, 0, 5]), i8([127, 0, -5])])
case("lessorequal_uint64", "LessOrEqual", 16, [u64([2 ** 63, 1, 4]), u64([1, 2 ** 63, 4])])
case("and_broadcast_rank_0", "And", 7, [boolean([True, False]), boolean(True)])
case("xor_outer", "Xor", 7, [boolean([[True], [False]]), boolean([True, False, True])])
case("not_rank_0", "Not", 1, [boolean(False)])

# Half precision rounds once at the end of an operator, bfloat16 too.
case("mul_float16_overflow", "Mul", 14, [f16([256, 300, -400, 0.0001220703125]), f16([255, 300, 300, 0.0001220703125])])
case("add_bfloat16_rounds", "Add", 14, [bf16([256, 1, 384]), bf16([1, 0.00390625, 3])], outputs=[bf16([256, 1, 388])],
     spec="one rounding to nearest, ties to even")
case("div_float16", "Div", 14, [f16([1, 2, -10]), f16([3, 7, 0])])
case("sub_float64_cancels", "Sub", 14, [f64([1 + 2 ** -52, 1e16]), f64([1, 1e16 - 2])])
case("mean_float16_wide_sum", "Mean", 13, [f16([60000, 1]), f16([60000, 2]), f16([60000, 4])],
     outputs=[f16([60000, 2.333984375])], spec="Mean: a sum and a quotient, rounded once", wrong={EVALUATOR: "adds in half precision"})

# Complex numbers, where the standard allows them.
case("transpose_complex64", "Transpose", 13, [c64([[1 + 2j, 3 - 1j], [0.5j, -4]])],
     outputs=[c64([[1 + 2j, 0.5j], [3 - 1j, -4]])], spec="elements are moved")
case("concat_complex128", "Concat", 13, [c128([1 + 2j]), c128([3 - 1j, 0.25j])], {"axis": 0},
     outputs=[c128([1 + 2j, 3 - 1j, 0.25j])], spec="elements are moved")
case("gather_complex64", "Gather", 13, [c64([1 + 2j, 3 - 1j, 5]), i64([2, -3])], outputs=[c64([5, 1 + 2j])], spec="elements are moved")
case("identity_complex64", "Identity", 16, [c64([1 + 2j, -1j])], outputs=[c64([1 + 2j, -1j])], spec="the value itself")
case("reshape_complex128", "Reshape", 14, [c128([[1 + 2j], [3j]]), i64([2])], outputs=[c128([1 + 2j, 3j])], spec="elements stay in order")
case("slice_complex64", "Slice", 13, [c64([1, 2j, 3, 4j]), i64([-1]), i64([-5]), i64([0]), i64([-2])], outputs=[c64([4j, 2j])],
     spec="elements are moved")
case("where_complex64", "Where", 16, [boolean([True, False]), c64([1j, 2]), c64([3, 4j])], outputs=[c64([1j, 4j])], spec="elements are moved")
