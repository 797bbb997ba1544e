# SPDX-License-Identifier: Apache-2.0
"""Cases of reductions, scans and choices along axes: empty sets, versions, negative axes, ties, NaN, wide and narrow sums."""
import numpy as np

from .case import INF, NAN, boolean, bf16, family, f16, f32, f64, i8, i32, i64, numbers, u8, u64

case = family("folds")
EVALUATOR, ORT = "ReferenceEvaluator", "onnxruntime"
A = numbers([2, 3, 4], 11)
POSITIVE = np.abs(A) + np.float32(0.25)
NOTHING = "no elements, but a shape"

# Every reduction: several negative axes, attributes of the old versions, no axes, noop.
OLD = {"ReduceL1": 13, "ReduceL2": 13, "ReduceLogSum": 13, "ReduceLogSumExp": 13, "ReduceMax": 13, "ReduceMean": 13, "ReduceMin": 13,
       "ReduceProd": 13, "ReduceSum": 11, "ReduceSumSquare": 13}
for op, old in OLD.items():
    data = POSITIVE if op == "ReduceLogSum" else A
    low = op[6:].lower()
    case(f"reduce_{low}_negative_axes_18", op, 18, [data, i64([-1, -3])], {"keepdims": 0})
    case(f"reduce_{low}_all", op, 18, [data], {"keepdims": 1})
    case(f"reduce_{low}_axes_attribute", op, old, [data], {"axes": [-2], "keepdims": 0})
    case(f"reduce_{low}_1", op, 1, [data], {"axes": [0, 2]})
    case(f"reduce_{low}_rank_0", op, 18, [f32(2.5)], {"keepdims": 0},
         [f32({"ReduceSumSquare": 6.25, "ReduceLogSum": np.log(2.5)}.get(op, 2.5))], spec="a scalar is one element")
for op, expected in [("ReduceL1", np.abs(A)), ("ReduceL2", np.abs(A)), ("ReduceSumSquare", A * A), ("ReduceLogSumExp", A), ("ReduceSum", A),
                     ("ReduceMean", A), ("ReduceLogSum", np.log(POSITIVE))]:
    data = POSITIVE if op == "ReduceLogSum" else A
    case(f"{op.lower()}_noop_elementwise", op, 18 if op != "ReduceSum" else 13, [data, i64([])], {"noop_with_empty_axes": 1},
         outputs=[expected.astype(np.float32)], spec="noop_with_empty_axes: the function is applied to each element, nothing is reduced")
for op, value in [("ReduceL1", 0), ("ReduceL2", 0), ("ReduceSumSquare", 0), ("ReduceProd", 1), ("ReduceLogSum", -INF), ("ReduceLogSumExp", -INF),
                  ("ReduceMin", INF)]:
    case(f"{op.lower()}_of_nothing", op, 20 if op == "ReduceMin" else 18, [f32([], [2, 0, 3]), i64([1])], {"keepdims": 0},
         outputs=[np.full((2, 3), value, np.float32)], spec="reduction over an empty set of values yields the operation's neutral element",
         constant="the neutral element")
case("reducesum_kept_axis_empty", "ReduceSum", 13, [f32([], [0, 2]), i64([1])], constant=NOTHING)
case("reducemin_int8_of_nothing", "ReduceMin", 20, [i8([], [0, 2]), i64([0])], {"keepdims": 0}, outputs=[i8([127, 127])],
     spec="ReduceMin: minus the least or the greatest value of the type", constant="the greatest value of the type")

# Types: integers are exact and wrap, float16 has wide sums and overflow once.
case("reducesum_int32_wraps", "ReduceSum", 13, [i32([[2 ** 31 - 1, 1], [5, 6]]), i64([1])], {"keepdims": 0},
     wrong={ORT: "saturates"}, also={"numpy": [i32([-2 ** 31, 11])]})
case("reducesum_uint64", "ReduceSum", 13, [u64([[2 ** 63, 1], [5, 6]]), i64([0])], {"keepdims": 0},
     outputs=[u64([2 ** 63 + 5, 7])], spec="sums of integers")
case("reducesum_int64_beyond_double", "ReduceSum", 13, [i64([2 ** 53, 1, 2]), i64([0])], {"keepdims": 0},
     wrong={ORT: "adds in float64"}, also={"numpy": [i64(2 ** 53 + 3)]})
case("reduceprod_int64", "ReduceProd", 18, [i64([[3, 5], [7, -11]]), i64([0])], {"keepdims": 0})
case("reducemean_int32_truncates", "ReduceMean", 18, [i32([[7, 2], [-7, -2]]), i64([1])], {"keepdims": 0})
case("reducemax_int64_beyond_double", "ReduceMax", 18, [i64([2 ** 53 + 1, 2 ** 53])], {"keepdims": 0})
case("reducemax_uint8", "ReduceMax", 18, [u8([[1, 200], [255, 3]]), i64([1])])
case("reducemin_bool", "ReduceMin", 20, [boolean([[True, False], [True, True]]), i64([1])], {"keepdims": 0})
case("reducemax_bool", "ReduceMax", 20, [boolean([[False, False], [True, False]]), i64([1])], {"keepdims": 0})
case("reducemin_infinities", "ReduceMin", 18, [f32([[1, -INF], [INF, 3]]), i64([1])])
case("reducemin_nan_wins", "ReduceMin", 18, [f32([[1, NAN, 3], [2, 5, 4]]), i64([1])], {"keepdims": 0}, outputs=[f32([NAN, 2])],
     spec="NaN propagates, as in numpy.minimum", wrong={ORT: "drops NaN"})
case("reducemax_float16_specials", "ReduceMax", 18, [f16([[1, INF], [-INF, -3]]), i64([1])])
case("reducesum_float16_overflows_at_the_end", "ReduceSum", 13, [f16([[60000, 60000, -60000], [60000, 60000, 1]]), i64([1])],
     {"keepdims": 0}, outputs=[f16([60000, INF])], spec="the sum is rounded to its type, partial sums are not stored")
case("reducel2_float16_squares_do_not_overflow", "ReduceL2", 18, [f16([300, 400])], {"keepdims": 0}, outputs=[f16(500)],
     spec="the norm is rounded to its type, squares are not stored", wrong={EVALUATOR: "squares in half precision"})
case("reducesum_of_no_columns", "ReduceSum", 18, [f32(np.zeros([3, 0])), i64([0])], constant="nothing is left")
case("reducel2_no_integers", "ReduceL2", 18, [i32(np.zeros([0, 3])), i64([0])], outputs=[i32([[0, 0, 0]])], spec="the root of a sum over nothing",
     constant="a sum over nothing is 0", unasked=(EVALUATOR,))
case("reducesumsquare_float16_overflows", "ReduceSumSquare", 18, [f16([[300, 4], [3, 4]]), i64([1])], {"keepdims": 0})
case("reducelogsumexp_large", "ReduceLogSumExp", 18, [f32([[1000, 1000], [-1000, -1001]]), i64([1])], {"keepdims": 0},
     outputs=[f32([1000.6931472, -999.6867383])], spec="the logarithm of a sum of exponentials does not overflow where its result does not")
case("reducelogsumexp_int32", "ReduceLogSumExp", 18, [i32([[1, 1], [-3, 5], [100, 100]]), i64([1])], {"keepdims": 0},
     [i32([1, 5, 100])], spec="T of the result is that of the data: what has a fraction is cut, as by Cast")
case("reducelogsumexp_infinities", "ReduceLogSumExp", 18, [f32([[-INF, 1], [INF, 1], [-INF, -INF]]), i64([1])], {"keepdims": 0},
     outputs=[f32([1, INF, -INF])], spec="log(exp(-inf) + e) is 1",
     wrong={EVALUATOR: "subtracts infinities"})
case("reducemean_bfloat16", "ReduceMean", 18, [bf16([[256, 1, 1, 2], [3, 5, 7, 8]]), i64([1])], {"keepdims": 0}, outputs=[bf16([65, 5.75])],
     spec="the mean is rounded once")
case("reducemean_float32_long", "ReduceMean", 18, [np.concatenate([f32([2 ** 24]), np.ones(63, np.float32)])], {"keepdims": 0},
     outputs=[f32(262144.984375)], spec="a sum in a wider type loses no ones")

# ArgMax, ArgMin: versions, ties, NaN.
TIES = f32([[3, 1, 3], [1, 3, 1]])
case("argmax_last_of_ties", "ArgMax", 13, [TIES], {"axis": 1, "select_last_index": 1})
case("argmax_first_of_ties", "ArgMax", 13, [TIES], {"axis": 1})
case("argmin_last_of_ties_axis_0", "ArgMin", 13, [f32([[1, 2], [1, 2], [3, 0]])], {"axis": -2, "select_last_index": 1, "keepdims": 0})
case("argmax_1", "ArgMax", 1, [A], {"axis": 2})
case("argmax_11_negative_axis", "ArgMax", 11, [A], {"axis": -1, "keepdims": 0})
case("argmax_int8", "ArgMax", 13, [i8([[-128, 5], [7, -1]])], {"axis": 0}, outputs=[i64([[1, 0]])], spec="the index of the largest element")
case("argmin_float64", "ArgMin", 13, [f64([[1, 1 + 1e-12], [3, 2]])], {"axis": 1, "keepdims": 0})
# Rows of more than a few vectors, with ties and a rest.
LONG = np.round(numbers([3, 149], 12) * 4).astype(np.float32)
for op in ("ArgMax", "ArgMin"):
    case(f"{op.lower()}_long_rows", op, 13, [LONG], {"axis": 1, "keepdims": 0})
    case(f"{op.lower()}_long_rows_last_of_ties", op, 13, [LONG], {"axis": 1, "keepdims": 0, "select_last_index": 1})
case("argmax_long_rows_int64", "ArgMax", 13, [(LONG * 2 ** 20).astype(np.int64)], {"axis": -1, "keepdims": 0})
case("argmax_infinities", "ArgMax", 13, [f32([[-INF, -1e38], [INF, 1e38]])], {"axis": 1})
# CumSum, CumProd.
case("cumsum_exclusive", "CumSum", 14, [A, i64(-1)], {"exclusive": 1})
case("cumsum_reverse_axis_0", "CumSum", 14, [A, i64(0)], {"reverse": 1})
case("cumsum_int32_wraps", "CumSum", 14, [i32([2 ** 31 - 1, 1, 5]), i32(0)])
case("cumsum_one_element_exclusive", "CumSum", 14, [f32([[5], [7]]), i64(0)], {"exclusive": 1})
case("cumsum_empty", "CumSum", 14, [f32([], [2, 0]), i64(1)], constant=NOTHING)
for reverse in (0, 1):
    for exclusive in (0, 1):
        x = np.array([[1.5, 2, -0.5, 4], [3, -1, 0.25, 2]], np.float32)
        part = x[:, ::-1] if reverse else x
        product = np.cumprod(part, 1)
        product = np.concatenate([np.ones((2, 1), np.float32), product[:, :-1]], 1) if exclusive else product
        case(f"cumprod_reverse_{reverse}_exclusive_{exclusive}", "CumProd", 26, [x, i64(-1)], {"reverse": reverse, "exclusive": exclusive},
             outputs=[np.ascontiguousarray(product[:, ::-1] if reverse else product)], spec="CumProd-26: products of the elements before")

# TopK: versions, ties by index, order, NaN, k of 0.
case("topk_1_attribute", "TopK", 1, [A], {"k": 2, "axis": 1}, count=2)
case("topk_10_input", "TopK", 10, [A, i64([3])], {"axis": -1}, count=2)
case("topk_ties_by_lower_index", "TopK", 11, [f32([[2, 5, 2, 5, 2]]), i64([4])], count=2)
case("topk_smallest_axis_0", "TopK", 11, [i64([[5, 1], [3, 4], [1, 1]]), i64([2])], {"axis": 0, "largest": 0}, count=2)
case("topk_zero", "TopK", 11, [f32([[1, 2]]), i64([0])], count=2, constant="the first 0 of an axis")
case("topk_24_uint8", "TopK", 24, [u8([[7, 255, 3, 128]]), i64([2])], count=2, outputs=[u8([[255, 128]]), i64([[1, 3]])],
     spec="TopK: the largest, in order")
case("topk_float16_infinities", "TopK", 11, [f16([[1, INF, -INF, 3]]), i64([4])], {"largest": 0}, count=2)
case("topk_all_of_axis", "TopK", 11, [numbers([3, 5], 4), i64([5])], count=2)

# Softmax and kin: the matrix of versions below 13, negative axes, -inf, large values, float16.
def coerced(x, axis, log=False):
    flat = x.reshape(int(np.prod(x.shape[:axis])), -1).astype(np.float64)
    shifted = flat - flat.max(1, keepdims=True)
    total = np.exp(shifted).sum(1, keepdims=True)
    return ((shifted - np.log(total)) if log else np.exp(shifted) / total).reshape(x.shape).astype(np.float32)


MATRIX = "below version 13 the input is coerced into a matrix at axis"
ONE_AXIS = {EVALUATOR: "takes one axis, as version 13 does"}
for op, log in (("Softmax", False), ("LogSoftmax", True)):
    low = op.lower()
    case(f"{low}_1_default_axis", op, 1, [A], outputs=[coerced(A, 1, log)], spec=MATRIX, wrong=ONE_AXIS)
    case(f"{low}_11_axis_0", op, 11, [A], {"axis": 0}, outputs=[coerced(A, 0, log)], spec=MATRIX, wrong=ONE_AXIS)
    case(f"{low}_11_negative_axis", op, 11, [A], {"axis": -2}, outputs=[coerced(A, 1, log)], spec=MATRIX, wrong=ONE_AXIS)
    case(f"{low}_13_default_axis", op, 13, [A])
    case(f"{low}_13_axis_0", op, 13, [A], {"axis": 0})
    case(f"{low}_13_middle", op, 13, [A], {"axis": -2})
    case(f"{low}_large_values", op, 13, [f32([[1000, 1001, 999], [-1000, -1001, -999]])])
    case(f"{low}_masked", op, 13, [f32([[1, -INF, 2], [-INF, 0, -INF]])])
    halves = f16([[10, 11, -12], [0.5, 2, 1]])
    case(f"{low}_float16", op, 13, [halves], None, [coerced(halves, 1, log).astype(np.float16)], spec="rounded once",
         wrong={EVALUATOR: "takes the logarithm of a probability that is 0 in half precision"} if log else {})
case("softmax_float64", "Softmax", 13, [f64([[1, 2, 3], [1e-9, 0, 1]])], {"axis": 0})
case("softmax_empty_rows", "Softmax", 13, [f32([], [0, 3])], constant=NOTHING)
case("softmax_all_masked", "Softmax", 13, [f32([[-INF, -INF], [1, 1]])], outputs=[f32([[NAN, NAN], [0.5, 0.5]])],
     spec="exp(-inf - (-inf)) is NaN")
case("hardmax_13_first_of_ties", "Hardmax", 13, [f32([[1, 3, 3], [2, 2, 0]])])
case("hardmax_13_axis_0", "Hardmax", 13, [f32([[1, 3, 3], [2, 2, 0]])], {"axis": 0})
hard = np.zeros([2, 3, 4], np.float32)
for row in range(2):
    hard[row].reshape(-1)[A[row].reshape(-1).argmax()] = 1
case("hardmax_11_matrix", "Hardmax", 11, [A], outputs=[hard], spec=MATRIX, wrong=ONE_AXIS)

# Variance-like norms.
case("lpnormalization_default", "LpNormalization", 1, [A])
case("lpnormalization_axis_0", "LpNormalization", 22, [A], {"axis": 0, "p": 2})
case("meanvariancenormalization_default", "MeanVarianceNormalization", 13, [numbers([2, 3, 2, 2], 5)])
case("meanvariancenormalization_axes", "MeanVarianceNormalization", 9, [numbers([2, 3, 4], 6)], {"axes": [-1]})
case("det_batch", "Det", 22, [numbers([2, 3, 3], 8)])
case("det_singular_and_permuted", "Det", 11, [f32([[[0, 1], [1, 0]], [[1, 2], [2, 4]]])])
case("det_float64_rank_2", "Det", 11, [f64([[2, 0, 1], [0, 3, 4], [5, 0, -1]])], outputs=[f64(-21)], spec="2 * 3 * -1 - 1 * 3 * 5")
case("reducemin_uint64_of_nothing", "ReduceMin", 20, [u64([], [0, 1]), i64([0])], {"keepdims": 0}, outputs=[u64([2 ** 64 - 1])],
     spec="ReduceMin: of nothing the greatest value of the type")
NANS = f32([[1, 7, NAN, NAN], [4, 5, 2, 5]])
SORTED = "NaN counts as the greatest number, as numpy sorts; the specification is silent"
case("argmax_nan_wins", "ArgMax", 13, [NANS], {"axis": 1, "keepdims": 0}, outputs=[i64([2, 1])], spec=SORTED, wrong={ORT: "passes NaN over"})
case("argmax_last_nan", "ArgMax", 13, [f32([1, NAN, 3, NAN, 2])], {"axis": 0, "select_last_index": 1}, outputs=[i64([3])], spec=SORTED,
     wrong={ORT: "passes NaN over"})
case("topk_nan_first", "TopK", 11, [NANS, i64([3])], outputs=[f32([[NAN, NAN, 7], [5, 5, 4]]), i64([[2, 3, 1], [1, 3, 0]])], spec=SORTED, unasked=(EVALUATOR, ORT))
case("topk_smallest_nan_last", "TopK", 11, [NANS, i64([3])], {"largest": 0}, outputs=[f32([[1, 7, NAN], [2, 4, 5]]), i64([[0, 1, 2], [2, 0, 1]])], spec=SORTED,
     unasked=(EVALUATOR, ORT))
