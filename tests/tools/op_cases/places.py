# SPDX-License-Identifier: Apache-2.0
"""Cases of operators that move elements or choose them: shapes, slices, pads, gathers, scatters, in every version that differs."""
import numpy as np

from .case import NAN, boolean, e4m3fn, e5m2, family, f16, f32, f64, i4, i8, i32, i64, numbers, text

case = family("places")
A = numbers([2, 3, 4], 21)
M = numbers([3, 4], 22)
NOTHING = "no elements, but a shape"
MOVED = "elements are moved"

# Reshape, Squeeze, Unsqueeze, Flatten, Expand, Tile.
case("reshape_to_scalar", "Reshape", 14, [f32([[7]]), i64([], [0])])
case("reshape_scalar_to_matrix", "Reshape", 14, [f32(7), i64([1, 1])])
case("reshape_minus_one_of_empty", "Reshape", 14, [f32([], [0, 4]), i64([2, -1])], outputs=[f32([], [2, 0])],
     spec="-1 is inferred: 0 elements in rows of 2", constant=NOTHING)
case("reshape_copies_dimension_zero", "Reshape", 5, [A, i64([0, 0, 2, -1])])
case("reshape_int4", "Reshape", 21, [i4([1, -2, 3, 7, -8, 0], [2, 3]), i64([3, 2])],
     outputs=[i4([1, -2, 3, 7, -8, 0], [3, 2])], spec="elements stay in order")
case("squeeze_1_all", "Squeeze", 1, [numbers([1, 3, 1, 2], 1)])
case("squeeze_axes_input_negative", "Squeeze", 13, [numbers([1, 3, 1, 2], 2), i64([-2])])
case("unsqueeze_1_attribute", "Unsqueeze", 1, [M], {"axes": [0, 3]})
case("unsqueeze_11_negative", "Unsqueeze", 11, [M], {"axes": [-1, 0]})
case("unsqueeze_scalar", "Unsqueeze", 13, [f32(3), i64([0])])
case("flatten_axis_0", "Flatten", 13, [A], {"axis": 0})
case("flatten_negative", "Flatten", 11, [A], {"axis": -1})
case("flatten_scalar", "Flatten", 13, [f32(4)], {"axis": 0})
case("flatten_1_default", "Flatten", 1, [A])
case("expand_scalar", "Expand", 13, [f32([[1], [2]]), i64([1])])
case("expand_to_empty", "Expand", 13, [f32([[1]]), i64([2, 0])], constant=NOTHING)
case("expand_bool_higher_rank", "Expand", 8, [boolean([[True], [False]]), i64([2, 1, 3])])
case("tile_two_axes", "Tile", 13, [M, i64([2, 3])])
case("tile_zero_times", "Tile", 13, [M, i64([1, 0])], constant=NOTHING)
case("tile_strings", "Tile", 6, [text(["a", "b"]), i64([2])], outputs=[text(["a", "b", "a", "b"])], spec=MOVED)
case("identity_string", "Identity", 16, [text([["x", ""], ["é", "z"]])])
case("shape_negative_range", "Shape", 19, [numbers([2, 3, 4, 5], 3)], {"start": -3, "end": -1})
case("shape_of_scalar", "Shape", 15, [f32(1)], constant=NOTHING)
case("shape_range_beyond", "Shape", 15, [A], {"start": -10, "end": 10})
case("shape_of_int4", "Shape", 21, [i4([1, 2, 3, 4], [4, 1])], outputs=[i64([4, 1])], spec="Shape")
case("size_of_empty", "Size", 13, [f32([], [3, 0])], constant="no elements")
case("size_of_scalar", "Size", 21, [f32(3)])

# Constants and ranges.
for attribute, value, expected in [("value_float", 2.5, f32(2.5)), ("value_floats", [1.5, -2.0], f32([1.5, -2])), ("value_int", -7, i64(-7)),
                                   ("value_ints", [3, -4, 5], i64([3, -4, 5])), ("value_string", "abc", text("abc")),
                                   ("value_strings", ["a", "b"], text(["a", "b"]))]:
    case(f"constant_{attribute}", "Constant", 13, [], {attribute: value}, outputs=[expected], spec=f"Constant: {attribute}")
case("constant_float8", "Constant", 19, [], {"value": e4m3fn([1.5, -448, 0.015625])}, outputs=[e4m3fn([1.5, -448, 0.015625])], spec="Constant")
case("constant_int4", "Constant", 21, [], {"value": i4([-8, 7, 3])}, outputs=[i4([-8, 7, 3])], spec="Constant")
case("constant_1_float64", "Constant", 1, [], {"value": f64([[1.25], [-3]])})
case("constantofshape_default", "ConstantOfShape", 20, [i64([2])], constant="the default value is 0")
case("constantofshape_scalar_bool", "ConstantOfShape", 9, [i64([], [0])], {"value": boolean([True])})
case("range_negative_step", "Range", 11, [i64(7), i64(-3), i64(-3)])
case("range_float_step", "Range", 11, [f32(1), f32(2), f32(0.3)], outputs=[f32([1, 1.3, 1.6, 1.9])],
     spec="Range: max(ceil((limit - start) / delta), 0) elements start + i * delta")
case("range_empty", "Range", 11, [i32(5), i32(2), i32(1)], constant=NOTHING)
case("range_float64_small_step", "Range", 11, [f64(0), f64(0.5), f64(0.125)])
case("eyelike_dtype_negative_k", "EyeLike", 22, [numbers([3, 4], 5)], {"dtype": 7, "k": -1})
case("eyelike_beyond", "EyeLike", 9, [numbers([2, 2], 5)], {"k": 5}, constant="the diagonal lies outside")

# Concat, Split.
case("concat_negative_axis", "Concat", 13, [M, numbers([3, 1], 7), numbers([3, 2], 8)], {"axis": -1})
case("concat_with_no_rows", "Concat", 13, [M, f32([], [0, 4])], {"axis": 0})
case("concat_4_strings", "Concat", 4, [text(["a"]), text(["b", "c"])], {"axis": 0}, outputs=[text(["a", "b", "c"])], spec=MOVED)
case("split_2_attribute", "Split", 2, [A], {"axis": 2, "split": [1, 3]}, count=2)
case("split_13_sizes_with_zero", "Split", 13, [A, i64([0, 3])], {"axis": 1}, outputs=[f32([], [2, 0, 4]), A], spec=MOVED)
case("split_18_num_outputs_uneven", "Split", 18, [numbers([7], 9)], {"num_outputs": 3}, count=3)
case("split_11_even_negative_axis", "Split", 11, [A], {"axis": -1}, count=2)
case("split_rows_of_int64", "Split", 13, [i64([[1, 2], [3, 4], [5, 6]]), i64([2, 1])], count=2)

# Transpose, Trilu, DepthToSpace.
case("transpose_default_rank_4", "Transpose", 13, [numbers([2, 1, 3, 2], 10)])
case("transpose_scalar", "Transpose", 13, [f32(5)])
case("transpose_long_axes", "Transpose", 13, [numbers([9, 2, 11], 14)], {"perm": [2, 1, 0]})
case("transpose_int4_odd", "Transpose", 21, [i4([[1, 2, 3], [-4, -5, -6], [7, -8, 0]])])
case("transpose_float8", "Transpose", 23, [e5m2([[1, 2, 3], [-4, 0.5, 6]])])
case("transpose_empty", "Transpose", 13, [f32([], [2, 0, 3])], constant=NOTHING)
case("trilu_upper_k", "Trilu", 14, [M, i64(1)])
case("trilu_lower_k_negative_batch", "Trilu", 14, [A, i64(-1)], {"upper": 0})
case("trilu_int64_default", "Trilu", 14, [i64([[1, 2], [3, 4], [5, 6]])])
case("trilu_k_beyond", "Trilu", 14, [M, i64(-9)])
DEPTH = numbers([1, 8, 2, 3], 11)
case("depthtospace_1", "DepthToSpace", 1, [DEPTH], {"blocksize": 2})
case("depthtospace_11_crd", "DepthToSpace", 11, [DEPTH], {"blocksize": 2, "mode": "CRD"})
case("spacetodepth_two_channels", "SpaceToDepth", 13, [numbers([1, 2, 4, 6], 12)], {"blocksize": 2})

# Slice: attributes, defaults, clamping, negative steps.
case("slice_1_defaults", "Slice", 1, [M], {"starts": [1, -3], "ends": [3, 100]})
case("slice_10_inputs", "Slice", 10, [M, i64([0, 1]), i64([-1, 1000])])
case("slice_axes_unordered", "Slice", 13, [A, i64([1, 0]), i64([3, 1]), i64([2, 0])])
case("slice_negative_axes", "Slice", 13, [A, i64([-2]), i64([2 ** 62]), i64([-2]), i64([1])])
case("slice_steps_int32", "Slice", 13, [numbers([10], 13), i32([8]), i32([1]), i32([0]), i32([-3])])
case("slice_to_before_first", "Slice", 13, [numbers([5], 14), i64([3]), i64([-2 ** 63]), i64([0]), i64([-1])])
case("slice_start_beyond", "Slice", 13, [M, i64([7]), i64([9]), i64([1])], constant=NOTHING)
case("slice_step_beyond_size", "Slice", 13, [numbers([5], 15), i64([1]), i64([5]), i64([0]), i64([100])])
case("slice_strings", "Slice", 13, [text(["a", "b", "c"]), i64([2]), i64([-4]), i64([0]), i64([-1])], outputs=[text(["c", "b", "a"])], spec=MOVED)

# Pad: every mode, versions, negative pads, axes.
case("pad_2_attribute", "Pad", 2, [M], {"pads": [1, 0, 0, 2], "value": -1.5})
case("pad_2_reflect", "Pad", 2, [M], {"pads": [2, 1, 1, 3], "mode": "reflect"})
case("pad_11_edge", "Pad", 11, [M, i64([1, 2, 2, 0])], {"mode": "edge"})
case("pad_13_reflect", "Pad", 13, [A, i64([0, 2, 3, 1, 1, 2])], {"mode": "reflect"})
case("pad_18_axes", "Pad", 18, [A, i64([1, 2]), f32(9), i64([1])])
case("pad_18_negative_axes", "Pad", 18, [A, i64([1, 0, 0, 2]), f32(-1), i64([-1, 0])])
case("pad_19_wrap", "Pad", 19, [M, i64([0, 3, 1, 2])], {"mode": "wrap"})
case("pad_negative_both", "Pad", 13, [M, i64([-1, -1, -1, -2]), f32(0)], outputs=[M[1:2, 1:2]],
     spec="Pad: negative values remove elements")
case("pad_int64_constant", "Pad", 13, [i64([[1, 2]]), i64([0, 1, 1, 0]), i64(-7)])
case("pad_bool", "Pad", 13, [boolean([True, False]), i64([1, 2]), boolean(True)])
case("pad_float16_default_zero", "Pad", 13, [f16([[1, 2]]), i64([0, 1, 0, 1])])

# Gather, GatherElements, GatherND.
case("gather_negative_axis_scalar", "Gather", 13, [A, i64(-2)], {"axis": -1})
case("gather_1_matrix_of_indices", "Gather", 1, [M, i32([[0, 2], [1, 0]])], {"axis": 1})
case("gather_no_indices", "Gather", 13, [M, i64([], [0])], constant=NOTHING)
case("gather_int4", "Gather", 13, [i8([[1, 2], [3, -4], [5, 6]]), i32([2, -3])])
case("gather_strings", "Gather", 13, [text(["a", "b", "c"]), i64([[2, 0]])])
case("gatherelements_negative", "GatherElements", 13, [M, i64([[-1, 0], [1, -4]])], {"axis": 1},
     outputs=[np.stack([M[0, [3, 0]], M[1, [1, 0]]])], spec="GatherElements: out[i][j] = data[i][index[i][j]]")
case("gatherelements_axis_0_smaller", "GatherElements", 11, [A, i32([[[1, 0]]])], {"axis": 0},
     outputs=[f32([[[A[1, 0, 0], A[0, 0, 1]]]])], spec="GatherElements: out[i][j][k] = data[index[i][j][k]][j][k]")
case("gathernd_batch_dims", "GatherND", 12, [A, i64([[1], [2]])], {"batch_dims": 1})
case("gathernd_full_index", "GatherND", 13, [A, i64([[0, -1, 3], [1, 0, -4]])])
case("gathernd_11_rows", "GatherND", 11, [M, i64([[2], [0]])])
case("gathernd_batch_dims_2", "GatherND", 13, [A, i64([[[0], [1], [2]], [[3], [-1], [-2]]])], {"batch_dims": 2})

# Scatter: reductions, duplicates, negative indices, axes.
BASE = f32([[1, 2, 3], [4, 5, 6]])
for reduction in ("add", "mul", "max", "min"):
    opset = 16 if reduction in ("add", "mul") else 18
    case(f"scatterelements_{reduction}_duplicates", "ScatterElements", opset, [BASE, i64([[1, 1, -1]]), f32([[10, -3, 0.5]])],
         {"axis": 1, "reduction": reduction})
    case(f"scatternd_{reduction}_duplicates", "ScatterND", opset, [BASE, i64([[0, 1], [0, 1], [-1, 2]]), f32([10, -3, 0.5])],
         {"reduction": reduction})
case("scatterelements_18_int64_max", "ScatterElements", 18, [i64([5, 2 ** 53]), i64([1, 0]), i64([2 ** 53 + 1, 4])], {"reduction": "max"})
case("scatterelements_11_axis_0", "ScatterElements", 11, [M, i64([[2, 0]]), f32([[100, 200]])])
case("scatter_9", "Scatter", 9, [M, i32([[1, 3]]), f32([[100, 200]])], {"axis": 1},
     outputs=[np.concatenate([f32([[M[0, 0], 100, M[0, 2], 200]]), M[1:]])], spec="Scatter: output[i][indices[i][j]] = updates[i][j]")
case("scatternd_11_slices", "ScatterND", 11, [A, i64([[1]]), numbers([1, 3, 4], 31)])
case("scatternd_negative_second_index", "ScatterND", 18, [BASE, i64([[0, -1], [1, -3]]), f32([10, 20])])
case("scatternd_no_updates", "ScatterND", 16, [BASE, i64([], [0, 1]), f32([], [0, 3])])
case("scatternd_strings", "ScatterND", 13, [text(["a", "b", "c"]), i64([[2], [0]]), text(["x", "y"])], outputs=[text(["y", "b", "x"])], spec=MOVED)

# OneHot, Compress, NonZero, Unique, ReverseSequence.
case("onehot_axis_0_negative_index", "OneHot", 11, [i64([0, -1, 2]), i64(3), f32([-1, 5])], {"axis": 0})
case("onehot_out_of_range", "OneHot", 11, [i64([3, -4, 1]), i64([3]), i64([2, 7])], outputs=[i64([[2, 2, 2], [2, 2, 2], [2, 7, 2]])],
     spec="OneHot: indices outside [-depth, depth - 1] give off values only")
case("onehot_9_float_indices", "OneHot", 9, [f32([1, 0]), f32(2), f32([0, 1])], {"axis": -1})
case("onehot_middle_axis", "OneHot", 11, [i64([[0, 1, 2], [2, 0, 1]]), i64(3), i32([0, 9])], {"axis": 1},
     outputs=[i32([[[9, 0, 0], [0, 9, 0], [0, 0, 9]], [[0, 9, 0], [0, 0, 9], [9, 0, 0]]])], spec="OneHot: the new axis is at axis")
case("compress_flattened", "Compress", 11, [M, boolean([False, True, True, False, False, True])])
case("compress_axis_negative_short", "Compress", 11, [M, boolean([False, True])], {"axis": -1})
case("compress_nothing", "Compress", 9, [M, boolean([False, False, False])], {"axis": 0}, constant=NOTHING)
case("nonzero_matrix", "NonZero", 13, [f32([[0, -0.0, 3], [NAN, 0, -2]])])
case("nonzero_bool_rank_1", "NonZero", 9, [boolean([True, False, True])])
case("nonzero_of_zeros", "NonZero", 13, [i32([0, 0])], constant="nothing differs from 0")
case("unique_in_order_of_appearance", "Unique", 11, [i64([3, 1, 3, 2, 1])], {"sorted": 0}, count=4)
case("unique_axis_rows", "Unique", 11, [f32([[2, 1], [0, 5], [2, 1]])], {"axis": 0}, count=4)
case("unique_axis_negative", "Unique", 11, [i8([[1, 3, 1], [2, 0, 2]])], {"axis": -1}, count=4)
case("unique_strings", "Unique", 11, [text(["b", "a", "b"])], count=4)
case("reversesequence_time_1", "ReverseSequence", 10, [M, i64([1, 3, 4])], {"time_axis": 1, "batch_axis": 0})
case("reversesequence_default", "ReverseSequence", 10, [numbers([4, 3, 2], 41), i64([4, 1, 2])])
case("tensorscatter_circular", "TensorScatter", 24, [np.arange(16, dtype=np.float32).reshape(1, 2, 4, 2), -np.ones([1, 2, 2, 2], np.float32) *
     np.arange(1, 9, dtype=np.float32).reshape(1, 2, 2, 2), i64([3])], {"mode": "circular"},
     outputs=[f32([-3, -4, 2, 3, 4, 5, -1, -2, -7, -8, 10, 11, 12, 13, -5, -6], [1, 2, 4, 2])],
     spec="TensorScatter: circular writes (write_index + i) modulo max_sequence_length")
case("tensorscatter_linear_two_batches", "TensorScatter", 24, [np.zeros([2, 3, 2], np.float32), numbers([2, 1, 2], 43) + np.float32(5), i64([2, 0])],
     {"axis": 1})

# Einsum: every kind of letter.
case("einsum_trace", "Einsum", 12, [numbers([3, 3], 51)], {"equation": "ii->"})
case("einsum_diagonal", "Einsum", 12, [numbers([3, 3], 52)], {"equation": "ii->i"})
case("einsum_implicit_order", "Einsum", 12, [numbers([2, 3], 53), numbers([3, 4], 54)], {"equation": "ba,ac"})
case("einsum_ellipsis_broadcast", "Einsum", 12, [numbers([2, 1, 3, 4], 55), numbers([5, 4, 2], 56)], {"equation": "...ij,...jk->...ik"},
     outputs=[numbers([2, 1, 3, 4], 55) @ numbers([5, 4, 2], 56)], spec="Einsum: dimensions of an ellipsis are broadcast")
case("einsum_three_operands", "Einsum", 12, [numbers([2, 3], 57), numbers([3, 4], 58), numbers([4, 2], 59)], {"equation": "ij,jk,kl->il"})
case("einsum_outer_spaces", "Einsum", 12, [numbers([2], 60), numbers([3], 61)], {"equation": " i , j -> i j "})
case("einsum_sum_of_one", "Einsum", 12, [A], {"equation": "abc->b"})
case("einsum_scalar_operand", "Einsum", 12, [f32(3), numbers([2, 2], 62)], {"equation": ",ij->ji"})
case("einsum_int64", "Einsum", 12, [i64([[1, 2], [3, 4]]), i64([5, 6])], {"equation": "ij,j->i"})
case("einsum_repeated_in_one_and_summed", "Einsum", 12, [numbers([3, 3, 2], 63)], {"equation": "iij->j"})
