# SPDX-License-Identifier: Apache-2.0
"""Cases of operators: reductions, scans, choices and softmax."""
from .case import family, INF, NAN, f16, f32, i32, i64

case = family("reduction")

case("reducesum_axes", "ReduceSum", 18, [f32([1.0625, -2.5625, 0.5, -1.625, 0.0625, 0.8125, 2.5625, 1.3125, -0.9375, 2.9375,
     -0.8125, 2.9375], [2, 3, 2]), i64([0, -1])], {"keepdims": 0})
case("reducemean_axes", "ReduceMean", 18, [f32([1.0625, -2.5625, 0.5, -1.625, 0.0625, 0.8125, 2.5625, 1.3125, -0.9375,
     2.9375, -0.8125, 2.9375], [2, 3, 2]), i64([0, -1])], {"keepdims": 0})
case("reduceprod_axes", "ReduceProd", 18, [f32([1.0625, -2.5625, 0.5, -1.625, 0.0625, 0.8125, 2.5625, 1.3125, -0.9375,
     2.9375, -0.8125, 2.9375], [2, 3, 2]), i64([0, -1])], {"keepdims": 0})
case("reducemax_axes", "ReduceMax", 18, [f32([1.0625, -2.5625, 0.5, -1.625, 0.0625, 0.8125, 2.5625, 1.3125, -0.9375, 2.9375,
     -0.8125, 2.9375], [2, 3, 2]), i64([0, -1])], {"keepdims": 0})
case("reducemin_axes", "ReduceMin", 18, [f32([1.0625, -2.5625, 0.5, -1.625, 0.0625, 0.8125, 2.5625, 1.3125, -0.9375, 2.9375,
     -0.8125, 2.9375], [2, 3, 2]), i64([0, -1])], {"keepdims": 0})
case("reducel1_axes", "ReduceL1", 18, [f32([1.0625, -2.5625, 0.5, -1.625, 0.0625, 0.8125, 2.5625, 1.3125, -0.9375, 2.9375,
     -0.8125, 2.9375], [2, 3, 2]), i64([0, -1])], {"keepdims": 0})
case("reducel2_axes", "ReduceL2", 18, [f32([1.0625, -2.5625, 0.5, -1.625, 0.0625, 0.8125, 2.5625, 1.3125, -0.9375, 2.9375,
     -0.8125, 2.9375], [2, 3, 2]), i64([0, -1])], {"keepdims": 0})
case("reducesumsquare_axes", "ReduceSumSquare", 18, [f32([1.0625, -2.5625, 0.5, -1.625, 0.0625, 0.8125, 2.5625, 1.3125,
     -0.9375, 2.9375, -0.8125, 2.9375], [2, 3, 2]), i64([0, -1])], {"keepdims": 0})
case("reducelogsumexp_axes", "ReduceLogSumExp", 18, [f32([1.0625, -2.5625, 0.5, -1.625, 0.0625, 0.8125, 2.5625, 1.3125,
     -0.9375, 2.9375, -0.8125, 2.9375], [2, 3, 2]), i64([0, -1])], {"keepdims": 0})
case("reducelogsum_all", "ReduceLogSum", 18, [f32([0.625, 1.875, 1.1875, 3.125, 3.5625, 2.5], [2, 3])])
case("reducemean_11_by_attribute", "ReduceMean", 11, [f32([-0.125, 1.375, 0.6875, -2.625, 3.0625, 2], [2, 3])], {"axes":
     [1]})
case("reducesum_noop", "ReduceSum", 13, [f32([-2.5, 3.0625, -1.9375, 0.9375], [2, 2]), i64([], [0])],
     {"noop_with_empty_axes": 1})
case("reducesum_of_nothing", "ReduceSum", 13, [f32([], [0, 2]), i64([0])], constant="the sum of nothing is 0")
case("reducemax_of_nothing", "ReduceMax", 20, [f32([], [0, 2]), i64([0])], {"keepdims": 0},
     constant="the maximum of nothing is the least value")
case("reducemax_nan_wins", "ReduceMax", 18, [f32([1, NAN, 3])], outputs=[f32([NAN])],
     spec="NaN propagates, as in numpy.maximum", wrong={"onnxruntime": "drops NaN"})
case("reducesum_int32", "ReduceSum", 13, [i32([1, 0, -6, 1, 4, 6, 1, 7], [2, 4]), i64([1])])
case("reducemean_float16_overflows_nowhere", "ReduceMean", 18, [f16([60000, 60000, 60000, 60000])], outputs=[f16([60000])],
     spec="the mean of equal halves is that half: the sum has a wider type", wrong={"ReferenceEvaluator":
     "adds in half precision, which overflows"})
case("softmax_axis_1", "Softmax", 13, [f32([1.0625, -2.5625, 0.5, -1.625, 0.0625, 0.8125, 2.5625, 1.3125, -0.9375, 2.9375,
     -0.8125, 2.9375], [2, 3, 2])], {"axis": 1})
case("softmax_11_flattens", "Softmax", 11, [f32([0.0625, 0.5, -0.8125, -0.4375, -2.5625, -5.1875, 0.5625, -1.75], [2, 2,
     2])], {"axis": 1}, outputs=[f32([0.279937774, 0.433576077, 0.116695419, 0.169790819, 0.0383349285, 0.00277697272,
     0.87249893, 0.0863890946], [2, 2, 2])], spec="Softmax-11: the input is coerced into a matrix at axis",
     wrong={"ReferenceEvaluator": "takes one axis, as version 13 does"})
case("softmax_large", "Softmax", 13, [f32([1000, 1001, 1002.5, -1000, -999, -INF], [2, 3])])
case("logsoftmax", "LogSoftmax", 13, [f32([-0.125, 1.375, 0.6875, -2.625, 3.0625, 2], [2, 3])])
case("hardmax_ties", "Hardmax", 13, [f32([1, 3, 3, 2, 1, 2], [2, 3])])
case("argmax_last_index", "ArgMax", 13, [f32([2, 2, 1, 0, 5, 5], [2, 3])], {"axis": 1, "select_last_index": 1, "keepdims":
     0})
case("argmin_default", "ArgMin", 13, [f32([-1.5, -3.625, 2.5, -3.1875, -2.9375, -3.4375, 3.6875, 0.1875, -0.125], [3, 3])])
case("topk_smallest_ties", "TopK", 11, [f32([3, 1, 1, 2], [1, 4]), i64([3])], {"largest": 0}, count=2)
case("topk_axis_0", "TopK", 11, [f32([-1.5, 2.625, 2.5, -3.1875, -2.9375, -3.4375, 3.6875, 0.1875], [4, 2]), i64([2])],
     {"axis": 0}, count=2)
case("topk_int64", "TopK", 11, [i64([1152921504606846976, 1152921504606846977, 5]), i64([2])], count=2)
