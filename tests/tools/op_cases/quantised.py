# SPDX-License-Identifier: Apache-2.0
"""Cases of quantized numbers and matrix products: ties, saturation, axes, blocks, zero points, output types."""
import numpy as np

from .case import (INF, bf16, e4m3fn, e5m2, family, family_of_models, f16, f32, f64, i4, i8, i16, i32, numbers, tensor, u4,
                   u8, u16, u64)
from .formulas import narrow

case = family("quantised")
model = family_of_models("quantised")
EVALUATOR, ORT = "ReferenceEvaluator", "onnxruntime"

# QuantizeLinear: halves to even before the zero point is added, then saturation.
HALVES = f32([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1000, -1000])
case("quantizelinear_halves_uint8", "QuantizeLinear", 10, [HALVES, f32(1), u8(128)])
case("quantizelinear_halves_int8", "QuantizeLinear", 13, [HALVES, f32(1), i8(1)])
case("quantizelinear_no_zero_point", "QuantizeLinear", 13, [HALVES, f32(0.5)])
case("quantizelinear_float16_quotient", "QuantizeLinear", 23, [f16([6.6484375, 2.55078125, -7.1484375, 9.3515625]), f16(0.0999755859375), i8(0)], None, [i8([66, 26, -72, 94])],
     spec="QuantizeLinear-23: the type of y_scale determines the precision of the division", wrong={ORT: "divides in float32"},
     not_double="the quotient is rounded to float16")
case("quantizelinear_blocks_of_a_list", "QuantizeLinear", 21, [f32([1, 2, 3, 5]), f32([0.5, 0.25])], {"axis": 0, "block_size": 2})
case("quantizelinear_axis_negative", "QuantizeLinear", 13, [numbers([2, 3, 2], 201), f32([0.25, 0.5, 2]), i8([1, -2, 3])], {"axis": -2})
case("quantizelinear_axis_default_1", "QuantizeLinear", 19, [numbers([2, 3], 202), f32([0.25, 0.5, 2]), u8([1, 2, 3])])
case("quantizelinear_int32_input", "QuantizeLinear", 10, [i32([7, -7, 300]), f32(2), i8(0)], None, [i8([4, -4, 127])],
     spec="QuantizeLinear: 3.5 and -3.5 go to the even neighbour, 150 saturates")
case("quantizelinear_int16", "QuantizeLinear", 21, [f32([0.3, -40000, 40000, 12.5]), f32(1), i16(-3)])
case("quantizelinear_uint16", "QuantizeLinear", 21, [f32([0.5, -4, 70000, 2.5]), f32(0.5), u16(32768)])
case("quantizelinear_int4", "QuantizeLinear", 21, [f32([0.5, 1.5, -9, 9, 2.5, -3.5]), f32(1), i4(1)])
case("quantizelinear_uint4", "QuantizeLinear", 21, [f32([0.5, 1.5, -9, 9, 2.5, 20]), f32(1), u4(2)])
case("quantizelinear_output_dtype", "QuantizeLinear", 21, [f32([0.5, -1.5, 300]), f32(1)], {"output_dtype": 3})
case("quantizelinear_int2", "QuantizeLinear", 25, [f32([0.5, 1.5, -9, 9, -0.6]), f32(1), tensor("int2", 0)], None,
     [tensor("int2", [0, 1, -2, 1, -1])], spec="QuantizeLinear: to nearest, halves to even, saturating")
case("quantizelinear_float16", "QuantizeLinear", 19, [f16([0.5, 2.5, -100, 31.25]), f16(0.25), i8(3)])
x = numbers([3, 4], 203)
case("quantizelinear_blocked", "QuantizeLinear", 21, [x, f32([[0.25, 0.5], [1, 0.125], [2, 0.25]]), u8([[1, 2], [3, 4], [5, 6]])],
     {"axis": 1, "block_size": 2})
for kind, zero in (("float8e4m3fn", e4m3fn(0)), ("float8e5m2", e5m2(0))):
    for saturate in (1, 0):
        values = f32([0.3, -7.3, 500, -70000, 0.0078125, 208])
        model(f"quantizelinear_{kind}_saturate_{saturate}", 19, f"g (float[N] x, float s, {kind} z) => (double[N] y) "
              f"{{ q = QuantizeLinear<saturate={saturate}>(x, s, z) y = Cast<to=11>(q) }}", [values, f32(0.5), zero],
              [narrow(values / 0.5, kind, saturate)], spec="QuantizeLinear: x / y_scale, then as Cast", unasked=(EVALUATOR, ORT),
              not_double="a quantised float is carried as double as well")

# DequantizeLinear.
case("dequantizelinear_int32", "DequantizeLinear", 10, [i32([7, -2 ** 30, 5]), f32(0.5)], None, [f32([3.5, -2 ** 29, 2.5])],
     spec="DequantizeLinear: (x - x_zero_point) * x_scale")
case("dequantizelinear_axis_0", "DequantizeLinear", 13, [i8([[1, -128], [127, 5]]), f32([0.5, 2]), i8([1, -3])], {"axis": 0},
     [f32([[0, -64.5], [260, 16]])], spec="DequantizeLinear: (x - x_zero_point) * x_scale")
case("dequantizelinear_uint16", "DequantizeLinear", 21, [u16([0, 65535, 32768]), f32(0.25), u16(32768)])
case("dequantizelinear_int4_per_axis", "DequantizeLinear", 21, [i4([[-8, 7, 3], [1, -2, 5]]), f32([0.5, 4]), i4([1, -3])], {"axis": 0})
case("dequantizelinear_uint4", "DequantizeLinear", 21, [u4([0, 15, 7]), f32(0.5), u4(8)])
case("dequantizelinear_blocked_int8", "DequantizeLinear", 21, [i8([[1, 2, 3, 4], [-5, -6, -7, -8]]), f32([[0.5, 2], [1, 0.25]]), i8([[1, 0], [0, -1]])],
     {"axis": 1, "block_size": 2})
case("dequantizelinear_blocked_axis_0", "DequantizeLinear", 21, [u8([[10, 20], [30, 40], [50, 60], [70, 80]]), f32([[0.5, 2], [1, 0.25]]),
     u8([[1, 0], [5, 9]])], {"axis": 0, "block_size": 2})
case("dequantizelinear_float8", "DequantizeLinear", 19, [e4m3fn([0.5, -448, 3]), f32(2)])
case("dequantizelinear_float16_scale", "DequantizeLinear", 19, [i8([7, -100, 50]), f16(0.125), i8(2)])
case("dequantizelinear_output_dtype", "DequantizeLinear", 23, [i8([7, -100, 50]), f32(0.125)], {"output_dtype": 10},
     [f16([0.875, -12.5, 6.25])], spec="DequantizeLinear-23: output_dtype names the type of the output", unasked=(ORT,))
case("dynamicquantizelinear_all_positive", "DynamicQuantizeLinear", 11, [f32([[1, 2, 3], [0.5, 2.55, 1.25]])], count=3)
case("dynamicquantizelinear_both_signs", "DynamicQuantizeLinear", 11, [f32([-3, 0, 1.5, 2])], count=3)
case("dynamicquantizelinear_all_negative", "DynamicQuantizeLinear", 11, [f32([-3, -1, -0.75])], count=3)

# Integer products.
aq, bq = u8([[1, 200, 3], [255, 0, 7]]), u8([[5, 250], [17, 3], [255, 0]])
case("matmulinteger_no_zero_points", "MatMulInteger", 10, [aq, bq])
case("matmulinteger_zero_point_per_row_and_column", "MatMulInteger", 10, [aq, i8([[5, -128], [17, 3], [127, 0]]), u8([1, 2]), i8([3, -4])], None,
     [((aq.astype(int) - [[1], [2]]) @ (np.array([[5, -128], [17, 3], [127, 0]]) - [[3, -4]])).astype(np.int32)],
     spec="MatMulInteger: a_zero_point is per row, b_zero_point per column", unasked=(ORT, EVALUATOR))
case("qlinearmatmul_ties_and_saturation", "QLinearMatMul", 10, [u8([[1, 2], [200, 255]]), f32(0.5), u8(0), u8([[1, 3], [0, 1]]), f32(1), u8(0), f32(1),
     u8(10)])
case("qlinearmatmul_int8_batch", "QLinearMatMul", 21, [i8([[[1, -2], [3, 4]], [[100, -100], [7, 8]]]), f32(0.25), i8(1), i8([[[5, 6], [-7, 8]]]), f32(0.5), i8(-1),
     f32(0.5), i8(2)])
rows = (np.array([[1, 2], [200, 255]]) - [[1], [3]]) @ (np.array([[1, 3], [0, 1]]) - [[2, 0]]) * np.array([[0.5], [0.25]]) * [[1, 0.5]]
case("qlinearmatmul_by_row_and_column", "QLinearMatMul", 21, [u8([[1, 2], [200, 255]]), f32([0.5, 0.25]), u8([1, 3]), u8([[1, 3], [0, 1]]), f32([1, 0.5]),
     u8([2, 0]), f32([0.125, 2]), u8([10, 100])], None, [np.clip(np.rint(rows / [[0.125], [2]]) + [[10], [100]], 0, 255).astype(np.uint8)],
     spec="QLinearMatMul: scales and zero points of a and y are per row, those of b per column", unasked=(ORT, EVALUATOR))
for kind in ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"):
    a = np.array([[0.5, -3, 1.25], [16, 0.0625, -7]])
    b = np.array([[1.5, -2, 448, 0.125], [6, 0.375, -224, 1.75], [-0.75, 10, 96, 5]])
    a8, b8 = tensor(kind, narrow(a, kind)), tensor(kind, narrow(b, kind))
    sums = a8.astype(np.float64) @ b8.astype(np.float64)
    spec = "QLinearMatMul: the real product / y_scale + y_zero_point, rounded as QuantizeLinear does"
    once = "a quantised float is carried as double as well"
    zero = tensor(kind, 0)
    model(f"qlinearmatmul_{kind}", 21, f"g ({kind}[M,K] a, float s, {kind} z, {kind}[K,N] b, float t, float u) => (double[M,N] y) "
          "{ q = QLinearMatMul(a, s, z, b, t, z, u, z) y = Cast<to=11>(q) }", [a8, f32(0.5), zero, b8, f32(0.25), f32(0.375)],
          [narrow(sums * (0.125 / 0.375), kind)], spec=spec, unasked=(EVALUATOR, ORT), not_double=once)
    points = [tensor(kind, [[0.5], [-2]]), tensor(kind, [[1, 0, -0.25, 4]]), tensor(kind, [[8], [-1.5]])]
    shifted = (a8.astype(np.float64) - points[0].astype(np.float64)) @ (b8.astype(np.float64) - points[1].astype(np.float64))
    scaled = shifted * np.array([[0.5], [0.25]]) * np.array([[1, 2, 0.0625, 4]]) / np.array([[0.5], [2]])
    model(f"qlinearmatmul_{kind}_by_row_and_column", 21, f"g ({kind}[M,K] a, float[M,1] s, {kind}[M,1] z, {kind}[K,N] b, float[1,N] t, "
          f"{kind}[1,N] c, float[M,1] u, {kind}[M,1] d) => (double[M,N] y) {{ q = QLinearMatMul(a, s, z, b, t, c, u, d) y = Cast<to=11>(q) }}",
          [a8, f32([[0.5], [0.25]]), points[0], b8, f32([[1, 2, 0.0625, 4]]), points[1], f32([[0.5], [2]]), points[2]],
          [narrow(scaled + points[2].astype(np.float64), kind)], spec=spec, unasked=(EVALUATOR, ORT), not_double=once)
    case(f"qlinearmatmul_{kind}_to_int8", "QLinearMatMul", 21, [a8, f32(0.5), zero, b8, f32(0.25), zero, f32(1.5), i8(3)], None,
         [np.clip(np.rint(sums * (0.125 / 1.5)) + 3, -128, 127).astype(np.int8)], spec=spec, unasked=(EVALUATOR, ORT))
case("qlinearmatmul_int8_and_float8", "QLinearMatMul", 21, [i8([[3, -100], [7, 20]]), f32(0.5), i8(-1), e4m3fn([[1.5, -0.25], [0.5, 3]]), f32(2),
     e4m3fn(0.5), f32(0.75), u8(100)], None,
     [np.clip(np.rint(np.array([[4, -99], [8, 21]]) @ np.array([[1, -0.75], [0, 2.5]]) / 0.75) + 100, 0, 255).astype(np.uint8)],
     spec="QLinearMatMul: the types of a, b and y are independent of each other", unasked=(EVALUATOR, ORT))
case("matmul_int32_wraps", "MatMul", 13, [i32([[2 ** 20, 7]]), i32([[2 ** 12], [3]])])
case("matmul_uint64", "MatMul", 13, [u64([[2 ** 33, 1]]), u64([[2 ** 31], [5]])])
case("matmul_float16_wide_sum", "MatMul", 13, [f16([[256, 256, -256, 1]]), f16([[200], [200], [200], [1]])], None, [f16([[51200]])],
     spec="the sum of products is rounded once: 51201 becomes 51200")
case("matmul_float16_overflow", "MatMul", 13, [f16([[256, 256], [1, 2]]), f16([[200, 1], [200, 3]])])
case("matmul_bfloat16", "MatMul", 13, [bf16([[1, 2], [3, 4]]), bf16([[0.5, 256], [1, 1]])], None, [bf16([[2.5, 258], [5.5, 772]])],
     spec="the sum of products is rounded once")
case("matmul_broadcast_batches", "MatMul", 9, [numbers([2, 1, 2, 3], 211), numbers([4, 3, 2], 212)])
case("matmul_vector_by_batch", "MatMul", 13, [numbers([3], 213), numbers([2, 3, 4], 214)])
case("matmul_batch_by_vector", "MatMul", 13, [numbers([2, 4, 3], 215), numbers([3], 216)])
case("matmul_inf_times_zero", "MatMul", 13, [f32([[INF, 1], [2, 3]]), f32([[0, 1], [1, 1]])])
case("gemm_k_zero_keeps_bias", "Gemm", 13, [f32([], [2, 0]), f32([], [0, 3]), f32([1, 2, 3])], {"beta": 2.0}, [f32([[2, 4, 6], [2, 4, 6]])],
     spec="Gemm: alpha * A' * B' + beta * C, the product of no columns is 0", wrong={ORT: "drops the bias"}, unasked=())
case("gemm_bias_scalar", "Gemm", 11, [numbers([2, 3], 217), numbers([3, 2], 218), f32(1.5)], {"alpha": 0.25})
case("gemm_bias_column", "Gemm", 13, [numbers([2, 3], 219), numbers([2, 3], 220), f32([[1], [-2]])], {"transB": 1})
case("gemm_7_row", "Gemm", 7, [numbers([3, 2], 221), numbers([3, 4], 222), numbers([4], 223)], {"transA": 1, "beta": 0.5})
case("gemm_6_broadcast", "Gemm", 6, [numbers([2, 3], 224), numbers([3, 2], 225), numbers([2], 226)], {"broadcast": 1},
     [numbers([2, 3], 224) @ numbers([3, 2], 225) + numbers([2], 226)], spec="Gemm-6: C is broadcast where broadcast is set", unasked=(ORT,))
case("gemm_int32", "Gemm", 13, [i32([[1, 2], [3, 4]]), i32([[5, 6], [7, 8]]), i32([[1, 1], [1, 1]])], None, [i32([[20, 23], [44, 51]])], spec="Gemm")
case("gemm_float64_no_bias", "Gemm", 13, [f64([[1, 2]]), f64([[3], [1e-12]])])
case("gemm_float16", "Gemm", 13, [f16([[300, 1]]), f16([[200], [1]]), f16([[-60000]])], None, [f16([[1]])],
     spec="Gemm: rounded once, 60001 - 60000", unasked=(ORT, EVALUATOR))
