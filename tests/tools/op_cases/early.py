# SPDX-License-Identifier: Apache-2.0
"""Cases of operator set versions 1 to 6, whose operators had other attributes: one-way broadcasting with axis, shapes and counts as
attributes, types by name. Few implementations still have them."""
import numpy as np

from .case import boolean, f32, family, i32, i64, numbers
from .formulas import recurrent

case = family("early")
EVALUATOR, ORT = "ReferenceEvaluator", "onnxruntime"
A, B = numbers([2, 3, 2], 701), f32([0.5, -2, 4])
MIDDLE = B.reshape(3, 1)
AXIS = "below version 7: with broadcast = 1 the second input is matched to the first at axis, to its last axes without one"
LAST = f32([3, -0.25])
for op, opset, result in [("Add", 6, A + MIDDLE), ("Add", 1, A + MIDDLE), ("Sub", 6, A - MIDDLE), ("Mul", 6, A * MIDDLE), ("Div", 6, A / MIDDLE),
                          ("Div", 1, A / MIDDLE)]:
    case(f"{op.lower()}_{opset}_axis", op, opset, [A, B], {"broadcast": 1, "axis": 1}, [result.astype(np.float32)], spec=AXIS, unasked=(EVALUATOR,))
for op, opset, result in [("Sub", 1, A - LAST), ("Mul", 1, A * LAST), ("Pow", 1, np.abs(A) ** LAST)]:
    case(f"{op.lower()}_{opset}_last_axes", op, opset, [np.abs(A) if op == "Pow" else A, LAST], {"broadcast": 1}, [result.astype(np.float32)], spec=AXIS,
         unasked=(EVALUATOR,))
case("add_6_int64", "Add", 6, [i64([1, 2 ** 60]), i64([5, 2 ** 60])], None, [i64([6, 2 ** 61])], spec="Add: of equal shapes", unasked=(EVALUATOR,))
case("less_1_axis", "Less", 1, [A, B], {"broadcast": 1, "axis": 1}, [A < MIDDLE], spec=AXIS, unasked=(EVALUATOR,))
case("greater_1_axis", "Greater", 1, [A, B], {"broadcast": 1, "axis": -2}, [A > MIDDLE], spec=AXIS, unasked=(EVALUATOR,))
case("equal_1_last_axes", "Equal", 1, [i32([[1, 2], [3, 2]]), i32([3, 2])], {"broadcast": 1}, [boolean([[False, True], [True, True]])], spec=AXIS,
     unasked=(EVALUATOR,))
case("and_1_axis", "And", 1, [boolean([[True, True], [False, True]]), boolean([True, False])], {"broadcast": 1, "axis": 0},
     [boolean([[True, True], [False, False]])], spec=AXIS, unasked=(EVALUATOR,))
case("prelu_6_by_channel", "PRelu", 6, [A, f32([0.5, 2, -1])], None, [np.where(A < 0, A * f32([[0.5], [2], [-1]]), A)],
     spec="PRelu-6: a slope of one number for each channel (axis 1)", unasked=(EVALUATOR,))
for op, opset, result in [("Max", 6, np.maximum(A, -A)), ("Min", 1, np.minimum(A, -A)), ("Sum", 6, A - A + A), ("Mean", 1, A / 3)]:
    inputs = [A, -A] if op in ("Max", "Min") else [A, -A, A]
    case(f"{op.lower()}_{opset}_equal_shapes", op, opset, inputs, None, [result.astype(np.float32)], spec=f"{op}: element by element", unasked=(EVALUATOR,))
for op, values, attributes in [("Abs", [-1.5, 2, -0.25], {}), ("Neg", [-1.5, 2, 0.25], {}), ("Exp", [0, 1, -2], {}), ("Log", [1, 2, 8], {}), ("Sqrt", [4, 2, 9], {}),
                               ("Floor", [-1.5, 2.5, 3], {}), ("Ceil", [-1.5, 2.5, 3], {}), ("Reciprocal", [4, -2, 0.5], {}), ("Relu", [-1, 2, 0.5], {}),
                               ("Sigmoid", [0, 1, -3], {}), ("Tanh", [0.5, 1, -2], {}), ("Elu", [-1, 2, -0.5], {"alpha": 2.0}), ("LeakyRelu", [-1, 2, -3], {"alpha": 0.25}),
                               ("Selu", [-1, 2, -3], {}), ("HardSigmoid", [-1, 2, 0.5], {"alpha": 0.25, "beta": 0.5})]:
    x = np.array(values, np.float64)
    gamma, alpha = 1.0507, 1.6732
    result = {"Abs": np.abs, "Neg": np.negative, "Exp": np.exp, "Log": np.log, "Sqrt": np.sqrt, "Floor": np.floor, "Ceil": np.ceil, "Reciprocal": np.reciprocal,
              "Relu": lambda v: np.maximum(v, 0), "Sigmoid": lambda v: 1 / (1 + np.exp(-v)), "Tanh": np.tanh,
              "Elu": lambda v: np.where(v < 0, 2 * np.expm1(v), v), "LeakyRelu": lambda v: np.where(v < 0, v / 4, v),
              "Selu": lambda v: gamma * np.where(v > 0, v, alpha * np.expm1(v)), "HardSigmoid": lambda v: np.clip(v / 4 + 0.5, 0, 1)}[op](x)
    notes = dict(spec=f"{op}-1: the formula of its page" + (", with its defaults 1.6732 and 1.0507" if op == "Selu" else ""), unasked=(EVALUATOR, ORT))
    case(f"{op.lower()}_1", op, 1, [f32(values)], attributes, [result.astype(np.float32)], **notes)
case("clip_1_attributes", "Clip", 1, [f32([-3, 0.5, 9])], {"min": -1.0, "max": 2.0}, [f32([-1, 0.5, 2])], spec="Clip-1: min and max are attributes")
case("reshape_1_attribute", "Reshape", 1, [A], {"shape": [0, -1]}, [A.reshape(2, 6)], spec="Reshape-1: shape is an attribute")
case("concat_1_default_axis", "Concat", 1, [A, A[:, :1].copy()], None, [np.concatenate([A, A[:, :1]], 1)], spec="Concat-1: axis is 1 by default")
case("cast_1_type_by_name", "Cast", 1, [f32([1.75, -2.5])], {"to": "INT32"}, [i32([1, -2])], spec="Cast-1: to is the type's name")
case("pad_1_paddings", "Pad", 1, [f32([[1, 2]])], {"paddings": [0, 1, 1, 0], "value": 9.0}, [f32([[9, 1, 2], [9, 9, 9]])], spec="Pad-1: paddings")
case("upsample_1_width_height", "Upsample", 1, [f32([[[[1, 2], [3, 4]]]])], {"width_scale": 2.0, "height_scale": 1.0, "mode": "nearest"},
     [f32([[[[1, 1, 2, 2], [3, 3, 4, 4]]]])], spec="Upsample-1: width_scale and height_scale")
case("split_1_input", "Split", 1, [f32([1, 2, 3]), f32([1, 2])], {"axis": 0}, [f32([1]), f32([2, 3])], spec="Split-1: the input split is of the type of the data")
case("split_1_attribute", "Split", 1, [f32([1, 2, 3])], {"split": [1, 2], "axis": 0}, [f32([1]), f32([2, 3])], spec="Split-1: split is an attribute or an input")
case("dropout_6_test_mode", "Dropout", 6, [A], {"is_test": 1, "ratio": 0.5}, [A], spec="Dropout-6: in test mode the input")
case("averagepool_1", "AveragePool", 1, [f32([[[1, 2, 6]]])], {"kernel_shape": [2], "pads": [1, 0]}, [f32([[[1, 1.5, 4]]])],
     spec="AveragePool-1: the padding does not count", unasked=(EVALUATOR,))
case("lppool_1_p_is_a_float", "LpPool", 1, [f32([[[3, 4, -12]]])], {"kernel_shape": [2], "p": 2.0}, [f32([[[5, 12.6491106]]])], spec="LpPool-1: p is a float")
case("globallppool_1_p_is_a_float", "GlobalLpPool", 1, [f32([[[3, 4]]])], {"p": 1.0}, [f32([[[7]]])], spec="GlobalLpPool-1: p is a float")
case("instancenormalization_1", "InstanceNormalization", 1, [f32([[[1, 3], [2, 6]]]), f32([1, 2]), f32([0, 0.5])], {"epsilon": 1.0},
     [f32([[[-0.70710678, 0.70710678], [-1.2888544, 2.2888544]]])], spec="InstanceNormalization: scale * (x - mean) / sqrt(variance + epsilon) + B")
case("batchnormalization_1_test", "BatchNormalization", 1, [f32([[1, 2]]), f32([1, 2]), f32([0, 1]), f32([0.5, 1]), f32([0.25, 4])], {"is_test": 1,
     "epsilon": 1e-5, "consumed_inputs": [0, 0, 0, 1, 1]}, [f32([[0.99998, 1.99999875]])], spec="BatchNormalization-1: in test mode as later versions")
X, W, R, BIAS = numbers([3, 2, 2], 711), numbers([1, 3, 2], 712), numbers([1, 3, 3], 713), numbers([1, 6], 714)
case("rnn_1", "RNN", 1, [X, W, R, BIAS], {"hidden_size": 3, "output_sequence": 1}, recurrent("RNN", X, W, R, BIAS), spec="RNN: the equations")
W, R, BIAS = numbers([1, 9, 2], 715), numbers([1, 9, 3], 716), numbers([1, 18], 717)
case("gru_3", "GRU", 3, [X, W, R, BIAS], {"hidden_size": 3, "linear_before_reset": 1, "output_sequence": 1},
     recurrent("GRU", X, W, R, BIAS, linear_before_reset=1), spec="GRU: the equations", unasked=(EVALUATOR,))
W, R, BIAS = numbers([1, 12, 2], 718), numbers([1, 12, 3], 719), numbers([1, 24], 720)
case("lstm_1", "LSTM", 1, [X, W, R, BIAS], {"hidden_size": 3, "output_sequence": 1}, recurrent("LSTM", X, W, R, BIAS), spec="LSTM: the equations")

# The other operators of version 1 whose later versions say the same of these values.
case("argmin_1", "ArgMin", 1, [f32([[3, 1, 2], [2, 5, -4]])], {"axis": 1, "keepdims": 0}, [i64([1, 2])], spec="ArgMin: the place of the least", unasked=(EVALUATOR,))
case("dropout_1_test_mode", "Dropout", 1, [A], {"is_test": 1, "ratio": 0.5}, [A], spec="Dropout-1: in test mode the input", unasked=(EVALUATOR,))
M, N, C = f32([[1, 2], [3, -1]]), f32([[2, 0, 1], [1, -1, 4]]), f32([0.5, -1, 2])
case("gemm_1_broadcast", "Gemm", 1, [M, N, C], {"broadcast": 1, "alpha": 0.5, "beta": 2.0}, [(0.5 * (M @ N) + 2 * C).astype(np.float32)],
     spec="Gemm-1: alpha * A' * B' + beta * C, C broadcast where the attribute says so", unasked=(EVALUATOR,))
case("hardmax_1_default_axis", "Hardmax", 1, [f32([[[1, 2], [5, 4]], [[7, 0], [3, 1]]])], None, [f32([[[0, 0], [1, 0]], [[1, 0], [0, 0]]])],
     spec="Hardmax-1: the axes from 1 on are one", unasked=(EVALUATOR,))
case("matmul_1", "MatMul", 1, [M, N], None, [M @ N], spec="MatMul: as numpy.matmul", unasked=(EVALUATOR,))
case("max_1_equal_shapes", "Max", 1, [A, -A], None, [np.maximum(A, -A)], spec="Max: element by element", unasked=(EVALUATOR,))
case("sum_1_equal_shapes", "Sum", 1, [A, -A, A], None, [A], spec="Sum: element by element", unasked=(EVALUATOR,))
for op, function in [("Or", np.logical_or), ("Xor", np.logical_xor)]:
    case(f"{op.lower()}_1_axis", op, 1, [boolean([[True, True], [False, False]]), boolean([True, False])], {"broadcast": 1, "axis": 1},
         [function([[True, True], [False, False]], [True, False])],
         spec=AXIS, unasked=(EVALUATOR,))
case("prelu_1_by_channel", "PRelu", 1, [A, f32([0.5, 2, -1])], None, [np.where(A < 0, A * f32([[0.5], [2], [-1]]), A)],
     spec="PRelu-1: a slope of one number for each channel (axis 1)", unasked=(EVALUATOR,))
case("shape_1", "Shape", 1, [A], None, [i64([2, 3, 2])], spec="Shape: the dimensions", unasked=(EVALUATOR,))
case("size_1", "Size", 1, [A], None, [i64(12)], spec="Size: the count of the elements", unasked=(EVALUATOR,))
case("softplus_1", "Softplus", 1, [f32([-1, 0, 3])], None, [f32([0.31326169, 0.69314718, 3.0485873])], spec="Softplus: ln(1 + e^x)", unasked=(EVALUATOR,))
case("softsign_1", "Softsign", 1, [f32([-1, 0.5, 3])], None, [f32([-0.5, 1 / 3, 0.75])], spec="Softsign: x / (1 + |x|)", unasked=(EVALUATOR,))
case("spacetodepth_1", "SpaceToDepth", 1, [f32([[[[1, 2], [3, 4]]]])], {"blocksize": 2}, [f32([1, 2, 3, 4], [1, 4, 1, 1])],
     spec="SpaceToDepth: blocks become channels", unasked=(EVALUATOR,))
case("tile_1_axis", "Tile", 1, [f32([[1, 2]]), f32([3]), f32([0])], None, [f32([[1, 2]] * 3)], spec="Tile-1: tiles of one axis", unasked=(EVALUATOR, ORT))
case("transpose_1", "Transpose", 1, [A], {"perm": [2, 0, 1]}, [np.ascontiguousarray(A.transpose(2, 0, 1))], spec="Transpose: perm", unasked=(EVALUATOR,))
