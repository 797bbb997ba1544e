# SPDX-License-Identifier: Apache-2.0
"""Cases of operators: shapes, movement, gathering and scattering."""
from .case import family, boolean, f32, i32, i64, text

case = family("movement")

case("reshape_zero_and_minus_one", "Reshape", 14, [f32([1.0625, -2.5625, 0.5, -1.625, 0.0625, 0.8125, 2.5625, 1.3125,
     -0.9375, 2.9375, -0.8125, 2.9375], [2, 3, 2]), i64([0, -1])])
case("reshape_allowzero", "Reshape", 14, [f32([], [0, 3]), i64([3, 0])], {"allowzero": 1}, constant="the shape is the result")
case("shape_slice", "Shape", 15, [f32([2.8125, -2.1875, -1.25, -1.5, 0.6875, 3.125, -5.9375, 2.6875, 1.3125, 0.5625, 5.9375,
     2.1875, 2.3125, 2.875, -0.375, -0.125, -0.375, -1.25, -0.125, -1.25, -0.5625, -0.1875, -1.875, -1.1875], [2, 3, 4])],
     {"start": -2, "end": 3})
case("size", "Size", 13, [f32([-0.125, 1.375, 0.6875, -2.625, 3.0625, 2], [2, 3])])
case("flatten_axis_at_rank", "Flatten", 13, [f32([-0.125, 1.375, 0.6875, -2.625, 3.0625, 2], [2, 3])], {"axis": 2})
case("squeeze_all", "Squeeze", 13, [f32([2, -0.625, 0.25], [1, 3, 1])])
case("squeeze_11_by_attribute", "Squeeze", 11, [f32([2, -0.625, 0.25], [1, 3, 1])], {"axes": [-1]})
case("unsqueeze_unsorted", "Unsqueeze", 13, [f32([-0.1875, -2.9375, 2.1875]), i64([2, 0])])
case("expand_both_ways", "Expand", 13, [f32([-2.5, 3.0625, -1.9375], [3, 1]), i64([2, 1, 4])])
case("transpose_perm", "Transpose", 13, [f32([1.0625, -2.5625, 0.5, -1.625, 0.0625, 0.8125, 2.5625, 1.3125, -0.9375, 2.9375,
     -0.8125, 2.9375], [2, 3, 2])], {"perm": [2, 0, 1]})
case("transpose_strings", "Transpose", 13, [text(["a", "b", "c", "d"], [2, 2])])
case("slice_negative_step", "Slice", 13, [f32([-0.5625, 0.25, 2.5, -2.75, 0.1875, -0.125, -0.6875, -2.1875, -0.6875, 5.1875,
     -1, -1.1875], [3, 4]), i64([3, -1]), i64([-5, 0]), i64([0, 1]), i64([-1, -2])])
case("slice_clamps", "Slice", 13, [f32([1.375, 3.0625, -1, 2.3125, -1.1875]), i64([-100]), i64([4611686018427387904])])
case("slice_empty", "Slice", 13, [f32([1.375, 3.0625, -1, 2.3125, -1.1875]), i64([3]), i64([1])], constant="an end before the start gives an empty slice")
case("slice_back_from_before_the_first", "Slice", 13, [f32([1.375, 3.0625, -1]), i64([-100]), i64([-200]), i64([0]), i64([-1])], outputs=[f32([1.375])],
     spec="Slice-13: with a negative step start is clamped to [0, size - 1] and end to [-1, size - 1]", wrong={"ReferenceEvaluator": "slices as Python does"})
case("slice_1_by_attribute", "Slice", 1, [f32([-0.5625, 0.25, 2.5, -2.75, 0.1875, -0.125, -0.6875, -2.1875, -0.6875, 5.1875,
     -1, -1.1875], [3, 4])], {"starts": [1], "ends": [-1], "axes": [1]})
case("concat_with_empty", "Concat", 13, [f32([-2.5, 3.0625, -1.9375, 0.9375], [2, 2]), f32([], [2, 0]), f32([1.3125, 0.0625],
     [2, 1])], {"axis": -1})
case("split_uneven", "Split", 18, [f32([-0.5625, 0.25, 2.5, -2.75, 0.1875, -0.125, -0.6875, -2.1875, -0.6875, 5.1875], [5,
     2])], {"num_outputs": 2}, count=2)
case("split_by_sizes", "Split", 13, [f32([-0.5625, 0.25, 2.5, -2.75, 0.1875, -0.125, -0.6875, -2.1875, -0.6875, 5.1875], [2,
     5]), i64([1, 4])], {"axis": 1}, count=2)
case("tile", "Tile", 13, [f32([-2.5, 3.0625, -1.9375, 0.9375], [2, 2]), i64([2, 3])])
case("pad_constant_negative", "Pad", 13, [f32([-1.5, 2.625, 2.5, -3.1875, -2.9375, -3.4375, 3.6875, 0.1875], [2, 4]), i64([1,
     -1, 0, 2]), f32(9.5)], outputs=[f32([9.5, 9.5, 9.5, 9.5, 9.5, 2.625, 2.5, -3.1875, 9.5, 9.5, -3.4375, 3.6875, 0.1875,
     9.5, 9.5], [3, 5])], spec="Pad: a negative pad removes elements; the constant fills what is added")
case("pad_reflect", "Pad", 13, [f32([-0.125, 1.375, 0.6875, -2.625], [1, 4]), i64([0, 2, 0, 3])], {"mode": "reflect"})
case("pad_edge", "Pad", 13, [f32([-2.5, 3.0625, -1.9375, 0.9375], [2, 2]), i64([1, 0, 1, 2])], {"mode": "edge"})
case("pad_wrap", "Pad", 19, [f32([-2.5, 3.0625, -1.9375], [1, 3]), i64([0, 2, 0, 1])], {"mode": "wrap"})
case("trilu_lower", "Trilu", 14, [f32([-3.3125, 1.125, 0.8125, -3.1875, 1.25, -2.375, -2.5, 3.5625, -2.25, -4.375, -1, -0.75,
     -0.125, -1.9375, -0.6875, -1.25, -1, 1.8125], [2, 3, 3]), i64(-1)], {"upper": 0})
case("gather_axis_negative_index", "Gather", 13, [f32([-1.5, 2.625, 2.5, -3.1875, -2.9375, -3.4375, 3.6875, 0.1875], [2, 4]),
     i64([0, -1, 2, -4], [2, 2])], {"axis": 1})
case("gatherelements", "GatherElements", 13, [f32([-0.125, 1.375, 0.6875, -2.625, 3.0625, 2], [3, 2]), i64([0, -1, 2, 0], [2,
     2])])
case("gathernd_batch", "GatherND", 13, [f32([1.0625, -2.5625, 0.5, -1.625, 0.0625, 0.8125, 2.5625, 1.3125, -0.9375, 2.9375,
     -0.8125, 2.9375], [2, 2, 3]), i64([1, 0], [2, 1])], {"batch_dims": 1})
case("scatterelements_add_repeated", "ScatterElements", 16, [f32([-1.5, 2.625, 2.5, -3.1875, -2.9375], [1, 5]), i64([1, 1,
     -1], [1, 3]), f32([0.5, 0.25, 8], [1, 3])], {"axis": 1, "reduction": "add"})
case("scatterelements_max", "ScatterElements", 18, [f32([-0.8125, 1.4375, 3.8125, -4.3125]), i64([1, 1, 3]), f32([0.5, 8,
     -8])], {"reduction": "max"})
case("scatternd_slices", "ScatterND", 16, [f32([-0.125, 1.375, 0.6875, -2.625, 3.0625, 2], [3, 2]), i64([2, 0], [2, 1]),
     f32([1, 2, 3, 4], [2, 2])])
case("onehot_negative_and_outside", "OneHot", 11, [i64([1, -1, 7]), i64(3), f32([0, 5])])
case("nonzero", "NonZero", 13, [f32([1, 0, 0, -2], [2, 2])])
case("compress_flat", "Compress", 11, [f32([-0.125, 1.375, 0.6875, -2.625, 3.0625, 2], [2, 3]), boolean([False, True, True,
     False, True])])
case("unique_axis", "Unique", 11, [f32([1, 0, 1, 0, 2, 3], [3, 2])], {"axis": 0}, count=4)
case("unique_unsorted", "Unique", 11, [f32([2, 1, 1, 3, 2])], {"sorted": 0}, count=4)
case("depthtospace_crd", "DepthToSpace", 13, [f32([-1.8125, -1.1875, 2.3125, -2.5, -4, 2.625, 1.5, 0.75], [1, 4, 1, 2])],
     {"blocksize": 2, "mode": "CRD"})
case("spacetodepth", "SpaceToDepth", 13, [f32([-1.8125, -1.1875, 2.3125, -2.5, -4, 2.625, 1.5, 0.75], [1, 1, 2, 4])],
     {"blocksize": 2})
case("reversesequence", "ReverseSequence", 10, [f32([-1.5, 2.625, 2.5, -3.1875, -2.9375, -3.4375, 3.6875, 0.1875], [4, 2]),
     i64([2, 4])])
case("range_negative", "Range", 11, [i64(5), i64(-2), i64(-3)])
case("range_float", "Range", 11, [f32(0.5), f32(2.0999999), f32(0.5)])
case("constantofshape_int", "ConstantOfShape", 9, [i64([2, 2])], {"value": i64([7])}, constant="the operator fills with one value")
case("eyelike_diagonal", "EyeLike", 9, [i32([0, 0, 0, 0, 0, 0], [2, 3])], {"k": 1})
case("cumsum_exclusive_reverse", "CumSum", 14, [f32([-0.125, 1.375, 0.6875, -2.625, 3.0625, 2], [2, 3]), i64(1)],
     {"exclusive": 1, "reverse": 1})
