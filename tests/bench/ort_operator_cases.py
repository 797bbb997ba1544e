"""The operators that ort_operators_bench.py measures: a table, in sizes and types that models have."""

import numpy as np
import onnx
from onnx import helper

RANDOM = np.random.default_rng(0)
MICROSOFT = "com.microsoft"
T = onnx.TensorProto


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def half(*shape):
    return normal(*shape).astype(np.float16)


def below(limit, *shape, dtype=np.int64):
    return RANDOM.integers(0, limit, shape).astype(dtype)


def codes(*shape):
    return below(200, *shape, dtype=np.uint8)


def signed_codes(*shape):
    return (below(200, *shape) - 100).astype(np.int8)


def ints(*values):
    return np.array(values, np.int64)


def small(shape):
    return np.clip(normal(*shape), -0.99, 0.99)


def flags(*shape):
    return below(2, *shape, dtype=bool)


def positive(*shape):
    return np.abs(normal(*shape)) + np.float32(0.1)


FLAT, IMAGE, PLANE = (512, 1024), (1, 64, 56, 56), (256, 1024)
WEIGHTS = below(200, 512, 512, dtype=np.int8)
NIBBLES = {"w": below(200, 2048, 64, 16, dtype=np.uint8), "s": normal(2048 * 64)}
TWICE = {"roi": None, "scales": np.array([1, 1, 2, 2], np.float32)}
HALVED = {"roi": None, "scales": np.array([1, 1, 0.5, 0.5], np.float32)}
PADDED = {"pads": [1] * 4}
HEADS = (1, 12, 128, 64)
X_SCALE = {"x_scale": np.float32(0.02), "x_zero": np.uint8(3)}
Y_SCALE = {"y_scale": np.float32(0.03), "y_zero": np.uint8(100)}
SIGNED_X = {"x_scale": np.float32(0.02), "x_zero": np.int8(3)}
SIGNED_Y = {"y_scale": np.float32(1), "y_zero": np.int8(5)}


def quantised(weights, scale=np.float32(0.02), zero=np.int8(0)):
    """Scale and zero point of x, then the weights and theirs, then those of the result."""
    return {**X_SCALE, "w": weights, "w_scale": scale, "w_zero": zero, "y_scale": np.float32(1), "y_zero": np.uint8(100)}


def signed(weights):
    return {**SIGNED_X, "w": weights, "w_scale": np.float32(0.02), "w_zero": np.int8(0), **SIGNED_Y}


def per_channel(weights, channels):
    return quantised(weights, np.linspace(0.01, 0.02, channels, dtype=np.float32), np.zeros(channels, np.int8))


def recurrent(gates, length, batch, hidden=256, directions=1):
    """X, then weights for as many inputs and hidden numbers."""
    return ({"x": normal(length, batch, hidden)},
            {"w": normal(directions, gates * hidden, hidden), "r": normal(directions, gates * hidden, hidden),
             "b": normal(directions, gates * 2 * hidden)},
            {"hidden_size": hidden, **({"direction": "bidirectional"} if directions == 2 else {})})


def conv(x, filters, bias=False, **attributes):
    return ("Conv", {"x": normal(*x)}, {"w": normal(*filters), **({"b": normal(filters[0])} if bias else {})}, attributes)


def qlinear_conv(x, filters, bias=False, each=False, **attributes):
    weights = signed_codes(*filters)
    constants = per_channel(weights, filters[0]) if each else quantised(weights)
    if bias:
        constants = {**constants, "b": below(1000, filters[0], dtype=np.int32)}
    return ("QLinearConv", {"x": codes(*x)}, constants, attributes)


def cast(data, to):
    return ("Cast", {"x": data}, {}, {"to": to})


def reduce(op, axis, shape=(64, 128, 128)):
    return (op, {"x": normal(*shape)}, {}, {"axes": [axis]})


def window(x, **attributes):
    return ({"x": normal(*x)}, {}, attributes)


def of(op, data, **attributes):
    return (op, {"x": data}, {}, attributes)


def two(op, x, y):
    return (op, {"x": x, "y": y}, {}, {})


def einsum(equation, *shapes):
    return ("Einsum", dict(zip("xyz", (normal(*shape) for shape in shapes))), {}, {"equation": equation})


def slices(shape, starts, ends, axes, steps):
    return ("Slice", {"x": normal(*shape)}, {"s": ints(*starts), "e": ints(*ends), "a": ints(*axes), "t": ints(*steps)}, {})


def pad(shape, pads, mode="constant"):
    return ("Pad", {"x": normal(*shape)}, {"pads": ints(*pads)}, {"mode": mode})


def resize(shape, constants, **attributes):
    return ("Resize", {"x": normal(*shape)}, constants, attributes)


def scatter(op, x, indices, updates, **attributes):
    return (op, {"x": x}, {"i": indices, "u": updates}, attributes)


def microsoft(op, inputs, constants, attributes=None, **special):
    return (op, inputs, constants, attributes or {}, {"domain": MICROSOFT, **special})


def at(opset, case, **special):
    return (*case, {"opset": opset, **special})


def between_codes(op, x, constants, **attributes):
    """An operator of floats between DequantizeLinear and QuantizeLinear, as quantised models are exported."""
    nodes = [helper.make_node("DequantizeLinear", ["x", "x_scale", "x_zero"], ["x_real"])]
    for name in [name for name in constants if name + "_scale" in constants]:
        nodes.append(helper.make_node("DequantizeLinear", [name, name + "_scale", name + "_zero"], [name + "_real"],
                                      **({"axis": 0} if np.ndim(constants[name + "_scale"]) else {})))
    nodes.append(helper.make_node(op, [node.output[0] for node in nodes], ["result"], **attributes))
    nodes.append(helper.make_node("QuantizeLinear", ["result", "y_scale", "y_zero"], ["y0"]))
    return (op, {"x": x}, {**X_SCALE, **constants, **Y_SCALE}, {}, {"nodes": nodes})


def other_side(data):
    return {"v": data, "v_scale": np.float32(0.02), "v_zero": np.uint8(7)}


def weight(data, zero=np.int8(0)):
    return {"w": data, "w_scale": np.float32(0.01), "w_zero": zero}


# Name: operator, inputs, constants (None: left out), attributes, and what is not of ai.onnx 17 with one output.
WINDOWS = {
    "MaxPool": ("MaxPool", *window((1, 64, 112, 112), kernel_shape=[3, 3], strides=[2, 2], **PADDED)),
    "MaxPool 2x2": ("MaxPool", *window((1, 64, 112, 112), kernel_shape=[2, 2], strides=[2, 2])),
    "MaxPool step 1": ("MaxPool", *window((1, 64, 28, 28), kernel_shape=[3, 3], **PADDED)),
    "MaxPool 5x5 step 1": ("MaxPool", *window((1, 128, 20, 20), kernel_shape=[5, 5], pads=[2] * 4)),
    "MaxPool 1 axis": ("MaxPool", *window((4, 64, 1000), kernel_shape=[3], strides=[2])),
    "MaxPool 3 axes": ("MaxPool", *window((1, 16, 16, 32, 32), kernel_shape=[2, 2, 2], strides=[2, 2, 2])),
    "MaxPool indices": ("MaxPool", *window(IMAGE, kernel_shape=[2, 2], strides=[2, 2]), {"outputs": 2}),
    "MaxPool uint8": ("MaxPool", {"x": codes(1, 64, 112, 112)}, {}, {"kernel_shape": [3, 3], "strides": [2, 2]}),
    "AveragePool": ("AveragePool", *window((1, 64, 112, 112), kernel_shape=[3, 3], strides=[2, 2])),
    "AveragePool 2x2": ("AveragePool", *window((1, 64, 112, 112), kernel_shape=[2, 2], strides=[2, 2])),
    "AveragePool padded": ("AveragePool", *window((1, 192, 28, 28), kernel_shape=[3, 3], **PADDED)),
    "AveragePool 1 axis": ("AveragePool", *window((4, 64, 1000), kernel_shape=[3], strides=[2])),
    "GlobalAveragePool": of("GlobalAveragePool", normal(1, 512, 56, 56)),
    "GlobalAveragePool 7x7": of("GlobalAveragePool", normal(1, 1280, 7, 7)),
    "GlobalMaxPool": of("GlobalMaxPool", normal(1, 512, 14, 14)),
    "LpPool": ("LpPool", *window(IMAGE, kernel_shape=[3, 3], strides=[2, 2])),
    "GlobalLpPool": of("GlobalLpPool", normal(1, 256, 14, 14)),
    "MaxUnpool": ("MaxUnpool", {"x": normal(1, 16, 28, 28), "i": ints(*range(0, 4 * 16 * 784, 4)).reshape(1, 16, 28, 28)},
                  {}, {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "MaxRoiPool": ("MaxRoiPool", {"x": normal(*IMAGE), "r": np.abs(normal(16, 5) * [0, 5, 5, 20, 20]).astype(np.float32)},
                   {}, {"pooled_shape": [7, 7]}),
    "Conv 1x1": conv(IMAGE, (256, 64, 1, 1)),
    "Conv 3x3": conv(IMAGE, (64, 64, 3, 3), **PADDED),
    "Conv 3x3 bias": conv(IMAGE, (64, 64, 3, 3), bias=True, **PADDED),
    "Conv 3x3 step 2": conv((1, 128, 28, 28), (256, 128, 3, 3), strides=[2, 2], **PADDED),
    "Conv 7x7 first": conv((1, 3, 224, 224), (64, 3, 7, 7), strides=[2, 2], pads=[3] * 4),
    "Conv 3x3 first": conv((1, 3, 224, 224), (32, 3, 3, 3), strides=[2, 2], **PADDED),
    "Conv 16x16 patches": conv((1, 3, 224, 224), (384, 3, 16, 16), strides=[16, 16]),
    "Conv batch 8": conv((8, 64, 28, 28), (64, 64, 3, 3), **PADDED),
    "Conv dilated": conv((1, 64, 28, 28), (64, 64, 3, 3), dilations=[2, 2], pads=[2] * 4),
    "Conv depthwise 3x3": conv((1, 96, 56, 56), (96, 1, 3, 3), group=96, **PADDED),
    "Conv depthwise step 2": conv((1, 96, 112, 112), (96, 1, 3, 3), group=96, strides=[2, 2], **PADDED),
    "Conv depthwise 5x5": conv((1, 240, 14, 14), (240, 1, 5, 5), group=240, pads=[2] * 4),
    "Conv depthwise 7x7": conv((1, 96, 56, 56), (96, 1, 7, 7), group=96, pads=[3] * 4),
    "Conv depthwise 1 axis": conv((1, 256, 500), (256, 1, 31), group=256, pads=[15, 15]),
    "Conv of one axis": conv((1, 128, 1000), (128, 128, 3), pads=[1, 1]),
    "Conv of three axes": conv((1, 16, 16, 32, 32), (32, 16, 3, 3, 3), pads=[1] * 6),
    "Conv in groups": conv((1, 128, 28, 28), (128, 4, 3, 3), group=32, **PADDED),
    "ConvTranspose": ("ConvTranspose", {"x": normal(1, 64, 28, 28)}, {"w": normal(64, 64, 4, 4)}, {"strides": [2, 2]}),
    "ConvTranspose 2x2": ("ConvTranspose", {"x": normal(1, 64, 28, 28)}, {"w": normal(64, 32, 2, 2)}, {"strides": [2, 2]}),
    "ConvTranspose 3x3": ("ConvTranspose", {"x": normal(1, 64, 28, 28)}, {"w": normal(64, 32, 3, 3), "b": normal(32)},
                          {"strides": [2, 2], "output_padding": [1, 1], **PADDED}),
    "ConvTranspose 1 axis": ("ConvTranspose", {"x": normal(1, 128, 200)}, {"w": normal(128, 64, 16)},
                             {"strides": [8], "pads": [4, 4]}),
    "ConvTranspose in groups": ("ConvTranspose", {"x": normal(1, 64, 28, 28)}, {"w": normal(64, 1, 4, 4)},
                                {"strides": [2, 2], "group": 64}),
    "DeformConv": at(19, ("DeformConv", {"x": normal(1, 32, 28, 28)},
                          {"w": normal(32, 32, 3, 3), "o": normal(1, 18, 28, 28)}, PADDED)),
    "Resize linear": resize((1, 32, 64, 64), TWICE, mode="linear"),
    "Resize nearest": resize((1, 32, 64, 64), TWICE, mode="nearest"),
    "Resize nearest floor": resize((1, 128, 20, 20), TWICE, mode="nearest", nearest_mode="floor",
                                   coordinate_transformation_mode="asymmetric"),
    "Resize nearest down": resize((1, 32, 128, 128), HALVED, mode="nearest"),
    "Resize cubic": resize((1, 8, 64, 64), TWICE, mode="cubic"),
    "Resize linear down": resize((1, 32, 128, 128), HALVED, mode="linear"),
    "Resize linear corners": resize((1, 32, 64, 64), {"roi": None, "scales": None, "sizes": ints(1, 32, 150, 150)},
                                    mode="linear", coordinate_transformation_mode="align_corners"),
    "Resize linear uint8": ("Resize", {"x": codes(1, 3, 224, 224)}, HALVED, {"mode": "linear"}),
    "Resize antialias": at(18, resize((1, 3, 256, 256), HALVED, mode="linear", antialias=1)),
    "GridSample": ("GridSample", {"x": normal(1, 32, 64, 64), "g": small((1, 64, 64, 2))}, {}, {}),
    "GridSample nearest": ("GridSample", {"x": normal(1, 32, 64, 64), "g": small((1, 64, 64, 2))}, {}, {"mode": "nearest"}),
    "GridSample cubic": ("GridSample", {"x": normal(1, 8, 64, 64), "g": small((1, 64, 64, 2))}, {}, {"mode": "bicubic"}),
    "AffineGrid": at(20, ("AffineGrid", {"x": normal(4, 2, 3)}, {"size": ints(4, 3, 64, 64)}, {})),
    "RoiAlign": ("RoiAlign", {"x": normal(*IMAGE), "r": np.abs(normal(64, 4)) * 10, "b": np.zeros(64, np.int64)}, {},
                 {"output_height": 7, "output_width": 7, "sampling_ratio": 2}),
    "NonMaxSuppression": ("NonMaxSuppression", {"x": np.sort(np.abs(normal(1, 1000, 4)), -1), "s": np.abs(normal(1, 8, 1000))},
                          {"m": ints(100), "i": np.float32(0.5), "t": np.float32(0.3)}, {}),
    "LRN": of("LRN", normal(*IMAGE), size=5),
}

MOVEMENT = {
    "Gather": ("Gather", {"x": normal(5000, 512)}, {"i": below(5000, 512)}, {}),
    "Gather columns": ("Gather", {"x": normal(512, 1024)}, {"i": below(1024, 512)}, {"axis": 1}),
    "Gather middle": ("Gather", {"x": normal(16, 128, 256)}, {"i": below(128, 64)}, {"axis": 1}),
    "Gather numbers": ("Gather", {"x": normal(5000), "i": below(5000, 100, 100)}, {}, {}),
    "GatherElements": ("GatherElements", {"x": normal(512, 512)}, {"i": below(512, 512, 512)}, {"axis": 1}),
    "GatherElements rows": ("GatherElements", {"x": normal(512, 512), "i": below(512, 512, 512)}, {}, {"axis": 0}),
    "GatherElements int64": ("GatherElements", {"x": below(9, 300, 900), "i": below(900, 300, 900)}, {}, {"axis": 1}),
    "GatherND": ("GatherND", {"x": normal(512, 512)}, {"i": below(512, 4096, 2)}, {}),
    "GatherND rows": ("GatherND", {"x": normal(512, 512), "i": below(512, 400, 1)}, {}, {}),
    "GatherND batch": ("GatherND", {"x": normal(64, 128, 64), "i": below(128, 64, 32, 1)}, {}, {"batch_dims": 1}),
    "ScatterND": ("ScatterND", {"x": normal(512, 512)}, {"i": below(512, 400, 1), "u": normal(400, 512)}, {}),
    "ScatterND numbers": scatter("ScatterND", normal(512, 512), below(512, 4096, 2), normal(4096)),
    "ScatterND add": at(18, scatter("ScatterND", normal(512, 512), below(512, 400, 1), normal(400, 512), reduction="add")),
    "ScatterElements": scatter("ScatterElements", normal(512, 512), below(512, 512, 128), normal(512, 128), axis=1),
    "ScatterElements add": at(18, scatter("ScatterElements", normal(512, 512), below(512, 128, 512), normal(128, 512),
                                          axis=0, reduction="add")),
    "Transpose": of("Transpose", normal(16, 128, 256), perm=[0, 2, 1]),
    "Transpose matrix": of("Transpose", normal(768, 768), perm=[1, 0]),
    "Transpose heads": of("Transpose", normal(1, 128, 12, 64), perm=[0, 2, 1, 3]),
    "Transpose heads keys": of("Transpose", normal(1, 128, 12, 64), perm=[0, 2, 3, 1]),
    "Transpose to last": of("Transpose", normal(1, 64, 56, 56), perm=[0, 2, 3, 1]),
    "Transpose to first": of("Transpose", normal(1, 56, 56, 64), perm=[0, 3, 1, 2]),
    "Transpose RGB": of("Transpose", normal(1, 224, 224, 3), perm=[0, 3, 1, 2]),
    "Transpose 5 axes": of("Transpose", normal(1, 58, 2, 28, 28), perm=[0, 2, 1, 3, 4]),
    "Transpose 6 axes": of("Transpose", normal(1, 8, 7, 8, 7, 96), perm=[0, 1, 3, 2, 4, 5]),
    "Transpose 201": of("Transpose", normal(64, 64, 64), perm=[2, 0, 1]),
    "Transpose 210": of("Transpose", normal(64, 64, 64), perm=[2, 1, 0]),
    "Transpose float16": of("Transpose", half(16, 128, 256), perm=[0, 2, 1]),
    "Transpose uint8": of("Transpose", codes(16, 128, 256), perm=[0, 2, 1]),
    "Transpose int64": of("Transpose", below(99, 16, 128, 256), perm=[0, 2, 1]),
    "Concat": ("Concat", {"x": normal(64, 4096), "y": normal(64, 4096)}, {}, {"axis": 1}),
    "Concat rows": ("Concat", {"x": normal(64, 4096), "y": normal(64, 4096)}, {}, {"axis": 0}),
    "Concat channels": ("Concat", {"x": normal(*IMAGE), "y": normal(*IMAGE)}, {}, {"axis": 1}),
    "Concat of eight": ("Concat", {f"x{i}": normal(1, 32, 28, 28) for i in range(8)}, {}, {"axis": 1}),
    "Concat last short": ("Concat", {"x": normal(4096, 4), "y": normal(4096, 12)}, {}, {"axis": 1}),
    "Concat cache": ("Concat", {"x": normal(1, 12, 500, 64), "y": normal(1, 12, 1, 64)}, {}, {"axis": 2}),
    "Concat single": ("Concat", {f"x{i}": normal(8192, 1) for i in range(4)}, {}, {"axis": 1}),
    "Split": ("Split", {"x": normal(128, 2304)}, {"s": ints(768, 768, 768)}, {"axis": 1}, {"outputs": 3}),
    "Split channels": ("Split", {"x": normal(*IMAGE)}, {"s": ints(32, 32)}, {"axis": 1}, {"outputs": 2}),
    "Split short": ("Split", {"x": normal(8400, 4)}, {"s": ints(1, 1, 1, 1)}, {"axis": 1}, {"outputs": 4}),
    "Slice": slices((64, 128, 128), [0], [128], [1], [2]),
    "Slice rows": slices((512, 1024), [100], [400], [0], [1]),
    "Slice columns": slices((512, 1024), [100], [600], [1], [1]),
    "Slice last step": slices((512, 1024), [0], [1024], [1], [2]),
    "Slice window": slices(IMAGE, [2, 2], [50, 50], [2, 3], [1, 1]),
    "Slice focus": slices((1, 3, 320, 320), [0, 0], [320, 320], [2, 3], [2, 2]),
    "Slice backwards": slices((512, 1024), [-1], [-2000], [1], [-1]),
    "Slice one": slices((1, 500, 768), [-1], [500], [1], [1]),
    "Pad": pad((8, 32, 64, 64), (0, 0, 1, 1, 0, 0, 1, 1)),
    "Pad one row": pad((1, 512, 768), (0, 1, 0, 0, 0, 0)),
    "Pad reflect": pad((1, 32, 64, 64), (0, 0, 3, 3, 0, 0, 3, 3), "reflect"),
    "Pad edge": pad((1, 32, 64, 64), (0, 0, 3, 3, 0, 0, 3, 3), "edge"),
    "Pad wrap": at(19, pad((1, 32, 64, 64), (0, 0, 3, 3, 0, 0, 3, 3), "wrap")),
    "Expand": ("Expand", {"x": normal(64, 1, 256)}, {"shape": ints(64, 64, 256)}, {}),
    "Expand rows": ("Expand", {"x": normal(1, 1024)}, {"shape": ints(512, 1024)}, {}),
    "Expand columns": ("Expand", {"x": normal(512, 1)}, {"shape": ints(512, 1024)}, {}),
    "Expand heads": ("Expand", {"x": normal(1, 4, 1, 128, 64)}, {"shape": ints(1, 4, 8, 128, 64)}, {}),
    "Tile rows": ("Tile", {"x": normal(64, 1024)}, {"r": ints(8, 1)}, {}),
    "Tile columns": ("Tile", {"x": normal(64, 1024)}, {"r": ints(1, 8)}, {}),
    "Tile short": ("Tile", {"x": normal(4096, 1)}, {"r": ints(1, 64)}, {}),
    "DepthToSpace": of("DepthToSpace", normal(1, 64, 64, 64), blocksize=2),
    "DepthToSpace CRD": of("DepthToSpace", normal(1, 64, 64, 64), blocksize=2, mode="CRD"),
    "SpaceToDepth": of("SpaceToDepth", normal(1, 16, 128, 128), blocksize=2),
    "Reshape": ("Reshape", {"x": normal(*FLAT)}, {"s": ints(-1, 256)}, {}),
    "Trilu": of("Trilu", normal(512, 512)),
    "Trilu lower": of("Trilu", normal(12, 128, 128), upper=0),
    "Trilu bool": of("Trilu", flags(512, 512), upper=0),
    "OneHot": ("OneHot", {"i": below(1000, 512)}, {"d": np.int64(1000), "v": np.array([0, 1], np.float32)}, {}),
    "OneHot first": ("OneHot", {"i": below(64, 64, 64)}, {"d": np.int64(64), "v": np.array([0, 1], np.float32)}, {"axis": 0}),
    "Range int64": ("Range", {"a": np.int64(0), "b": np.int64(100000), "c": np.int64(1)}, {}, {}),
    "Range float": ("Range", {"a": np.float32(0), "b": np.float32(100000), "c": np.float32(1)}, {}, {}),
    "ConstantOfShape": ("ConstantOfShape", {"s": ints(512, 1024)}, {}, {}),
    "EyeLike": of("EyeLike", normal(512, 512)),
    "NonZero": of("NonZero", below(2, 512, 512, dtype=np.float32)),
    "NonZero rare": of("NonZero", below(200, 512, 512) == 0),
    "Compress": ("Compress", {"x": normal(512, 1024), "c": flags(512)}, {}, {"axis": 0}),
    "Compress numbers": ("Compress", {"x": normal(100000), "c": flags(100000)}, {}, {"axis": 0}),
    "ReverseSequence": ("ReverseSequence", {"x": normal(64, 16, 256), "l": below(64, 16) + 1}, {}, {}),
    "Unique": of("Unique", below(1000, 100000)),
    "Unique as found": of("Unique", below(1000, 100000), sorted=0),
    "Unique rows": of("Unique", below(3, 1000, 4), axis=0),
    "TopK 10": ("TopK", {"x": normal(64, 4096)}, {"k": ints(10)}, {}, {"outputs": 2}),
    "TopK 1": ("TopK", {"x": normal(64, 4096)}, {"k": ints(1)}, {}, {"outputs": 2}),
    "TopK all": ("TopK", {"x": normal(16, 4096)}, {"k": ints(4096)}, {}, {"outputs": 2}),
    "TopK 50 of many": ("TopK", {"x": normal(1, 50257)}, {"k": ints(50)}, {}, {"outputs": 2}),
    "TopK 300 of 8400": ("TopK", {"x": normal(1, 8400)}, {"k": ints(300)}, {}, {"outputs": 2}),
    "TopK columns": ("TopK", {"x": normal(1000, 64)}, {"k": ints(10)}, {"axis": 0}, {"outputs": 2}),
    "TopK least int64": ("TopK", {"x": below(9999, 64, 4096)}, {"k": ints(10)}, {"largest": 0}, {"outputs": 2}),
    "CumSum rows": ("CumSum", {"x": normal(*PLANE)}, {"axis": np.int64(1)}, {}),
    "CumSum columns": ("CumSum", {"x": normal(*PLANE)}, {"axis": np.int64(0)}, {}),
    "CumSum int64": ("CumSum", {"x": below(2, 8, 512)}, {"axis": np.int64(1)}, {}),
    "CumSum reverse": ("CumSum", {"x": normal(*PLANE)}, {"axis": np.int64(1)}, {"reverse": 1, "exclusive": 1}),
}

ROWS = {
    "ReduceSum last": ("ReduceSum", {"x": normal(1024, 1024)}, {"axes": ints(1)}, {}),
    "ReduceSum first": ("ReduceSum", {"x": normal(1024, 1024)}, {"axes": ints(0)}, {}),
    "ReduceSum middle": ("ReduceSum", {"x": normal(64, 128, 128)}, {"axes": ints(1)}, {}),
    "ReduceSum all": ("ReduceSum", {"x": normal(1024, 1024)}, {}, {}),
    "ReduceSum first and last": ("ReduceSum", {"x": normal(64, 128, 128)}, {"axes": ints(0, 2)}, {}),
    "ReduceSum short rows": ("ReduceSum", {"x": normal(65536, 8)}, {"axes": ints(1)}, {}),
    "ReduceSum int64": ("ReduceSum", {"x": below(99, *PLANE)}, {"axes": ints(1)}, {}),
    "ReduceSum int32": ("ReduceSum", {"x": below(99, *PLANE, dtype=np.int32)}, {"axes": ints(1)}, {}),
    "ReduceSum double": ("ReduceSum", {"x": normal(*PLANE).astype(np.float64)}, {"axes": ints(1)}, {}),
    "ReduceMax last": reduce("ReduceMax", 2),
    "ReduceMax middle": reduce("ReduceMax", 1),
    "ReduceMax first": reduce("ReduceMax", 0),
    "ReduceMax int64": of("ReduceMax", below(99, *PLANE), axes=[1]),
    "ReduceMin last": reduce("ReduceMin", 2),
    "ReduceMean last": reduce("ReduceMean", 1, (256, 768)),
    "ReduceMean middle": reduce("ReduceMean", 1, (1, 128, 768)),
    "ReduceMean first": reduce("ReduceMean", 0, (128, 8192)),
    "ReduceMean planes": of("ReduceMean", normal(8, 64, 56, 56), axes=[2, 3]),
    "ReduceProd last": reduce("ReduceProd", 2),
    "ReduceL1 last": reduce("ReduceL1", 2),
    "ReduceL2 last": reduce("ReduceL2", 2),
    "ReduceL2 middle": reduce("ReduceL2", 1),
    "ReduceSumSquare last": reduce("ReduceSumSquare", 2),
    "ReduceLogSum last": of("ReduceLogSum", positive(64, 128, 128), axes=[2]),
    "ReduceLogSumExp last": reduce("ReduceLogSumExp", 2),
    "ReduceLogSumExp middle": reduce("ReduceLogSumExp", 1),
    "ArgMax": of("ArgMax", normal(256, 4096), axis=1),
    "ArgMax columns": of("ArgMax", normal(1024, 256), axis=0),
    "ArgMax middle": of("ArgMax", normal(1, 21, 128 * 128), axis=1),
    "ArgMax short": of("ArgMax", normal(8400, 80), axis=1),
    "ArgMin": of("ArgMin", normal(256, 4096), axis=1),
    "ArgMax uint8": of("ArgMax", codes(256, 4096), axis=1),
    "Softmax rows": of("Softmax", normal(*PLANE), axis=1),
    "Softmax columns": of("Softmax", normal(*PLANE), axis=0),
    "Softmax middle": of("Softmax", normal(16, 64, 256), axis=1),
    "Softmax attention": of("Softmax", normal(12, 128, 128), axis=-1),
    "Softmax short rows": of("Softmax", normal(8192, 16), axis=-1),
    "Softmax one row": of("Softmax", normal(1, 50257), axis=-1),
    "Softmax double": of("Softmax", normal(*PLANE).astype(np.float64), axis=-1),
    "LogSoftmax": of("LogSoftmax", normal(*PLANE), axis=1),
    "LogSoftmax one row": of("LogSoftmax", normal(1, 50257), axis=-1),
    "Hardmax": of("Hardmax", normal(*PLANE), axis=1),
    "LayerNormalization": ("LayerNormalization", {"x": normal(256, 768)}, {"s": normal(768), "b": normal(768)}, {}),
    "LayerNormalization short": ("LayerNormalization", {"x": normal(3136, 96)}, {"s": normal(96), "b": normal(96)}, {}),
    "LayerNormalization one row": ("LayerNormalization", {"x": normal(1, 4096)}, {"s": normal(4096), "b": normal(4096)}, {}),
    "LayerNormalization planes": ("LayerNormalization", {"x": normal(8, 32, 28, 28)},
                                  {"s": normal(32, 28, 28), "b": normal(32, 28, 28)}, {"axis": 1}),
    "LayerNormalization float16": ("LayerNormalization", {"x": half(256, 768)}, {"s": half(768), "b": half(768)}, {}),
    "InstanceNormalization": ("InstanceNormalization", {"x": normal(*IMAGE)}, {"s": normal(64), "b": normal(64)}, {}),
    "GroupNormalization": at(21, ("GroupNormalization", {"x": normal(*IMAGE)}, {"s": normal(64), "b": normal(64)},
                                  {"num_groups": 32})),
    "BatchNormalization": ("BatchNormalization", {"x": normal(*IMAGE)},
                           {"s": normal(64), "b": normal(64), "m": normal(64), "v": positive(64)}, {}),
    "BatchNormalization flat": ("BatchNormalization", {"x": normal(256, 1024)},
                                {"s": normal(1024), "b": normal(1024), "m": normal(1024), "v": positive(1024)}, {}),
    "LpNormalization": of("LpNormalization", normal(*PLANE)),
    "MeanVarianceNormalization": of("MeanVarianceNormalization", normal(*IMAGE)),
    "RMSNormalization": at(23, ("RMSNormalization", {"x": normal(256, 768)}, {"s": normal(768)}, {})),
    "RotaryEmbedding": at(23, ("RotaryEmbedding", {"x": normal(*HEADS)},
                               {"c": normal(1, 128, 32), "s": normal(1, 128, 32)}, {})),
    "Attention": at(23, ("Attention", {"q": normal(*HEADS), "k": normal(*HEADS), "v": normal(*HEADS)}, {}, {})),
    "Attention causal": at(23, ("Attention", {"q": normal(*HEADS), "k": normal(*HEADS), "v": normal(*HEADS)}, {},
                                {"is_causal": 1})),
    "NegativeLogLikelihoodLoss": ("NegativeLogLikelihoodLoss", {"x": normal(512, 1000), "t": below(1000, 512)}, {}, {}),
    "SoftmaxCrossEntropyLoss": ("SoftmaxCrossEntropyLoss", {"x": normal(512, 1000), "t": below(1000, 512)}, {}, {}),
    "DFT": of("DFT", normal(16, 512, 1), axis=1),
    "DFT onesided": of("DFT", normal(64, 512, 1), axis=1, onesided=1),
    "DFT complex": of("DFT", normal(16, 512, 2), axis=1),
    "DFT inverse": of("DFT", normal(16, 512, 2), axis=1, inverse=1),
    "DFT of 400": of("DFT", normal(16, 400, 1), axis=1),
    "DFT long": of("DFT", normal(1, 65536, 1), axis=1),
    "STFT": ("STFT", {"x": normal(1, 16000, 1)}, {"step": np.int64(160), "w": normal(512)}, {}),
    "STFT of 400": ("STFT", {"x": normal(1, 16000, 1)}, {"step": np.int64(160), "w": normal(400)}, {}),
    "HannWindow": ("HannWindow", {"n": np.int64(4096)}, {}, {}),
    "MelWeightMatrix": ("MelWeightMatrix", {"n": np.int64(80)},
                        {"l": np.int64(512), "r": np.int64(16000), "a": np.float32(0), "b": np.float32(8000)}, {}),
    "Det": of("Det", normal(64, 16, 16)),
}

POINTWISE = {
    "Where": ("Where", {"c": flags(*FLAT), "x": normal(*FLAT), "y": normal(*FLAT)}, {}, {}),
    "Where column": ("Where", {"c": flags(512, 1), "x": normal(*FLAT), "y": normal(*FLAT)}, {}, {}),
    "Where number": ("Where", {"c": flags(*FLAT), "x": normal(*FLAT)}, {"y": np.float32(-1)}, {}),
    "Where mask": ("Where", {"c": flags(1, 1, 128, 128), "x": normal(1, 12, 128, 128)}, {"y": np.float32(-9)}, {}),
    "Where int64": ("Where", {"c": flags(*FLAT), "x": below(9, *FLAT), "y": below(9, *FLAT)}, {}, {}),
    "Add": two("Add", normal(*FLAT), normal(1024)),
    "Add same": two("Add", normal(*FLAT), normal(*FLAT)),
    "Add number": ("Add", {"x": normal(*FLAT)}, {"y": np.float32(2)}, {}),
    "Add channels": ("Add", {"x": normal(*IMAGE)}, {"y": normal(1, 64, 1, 1)}, {}),
    "Add column": two("Add", normal(*FLAT), normal(512, 1)),
    "Add outer": two("Add", normal(512, 1), normal(1, 1024)),
    "Add middle": two("Add", normal(1, 12, 128, 128), normal(1, 1, 128, 128)),
    "Add float16": two("Add", half(*FLAT), half(*FLAT)),
    "Add float16 row": two("Add", half(*FLAT), half(1024)),
    "Add double": two("Add", normal(*FLAT).astype(np.float64), normal(*FLAT).astype(np.float64)),
    "Add int64": two("Add", below(99, *FLAT), below(99, *FLAT)),
    "Add int32": two("Add", below(99, *FLAT, dtype=np.int32), below(99, *FLAT, dtype=np.int32)),
    "Add few": two("Add", normal(1, 16), normal(1, 16)),
    "Sub": two("Sub", normal(*FLAT), normal(*FLAT)),
    "Mul": two("Mul", normal(*FLAT), normal(*FLAT)),
    "Mul int64": two("Mul", below(99, *FLAT), below(99, *FLAT)),
    "Mul int32": two("Mul", below(99, *FLAT, dtype=np.int32), below(99, *FLAT, dtype=np.int32)),
    "Div": two("Div", normal(*FLAT), positive(*FLAT)),
    "Div column": two("Div", normal(*FLAT), positive(512, 1)),
    "Div int64": two("Div", below(999, *FLAT), below(999, *FLAT) + 1),
    "Div int64 number": ("Div", {"x": below(999, *FLAT)}, {"y": np.int64(7)}, {}),
    "Div int32": two("Div", below(999, *FLAT, dtype=np.int32), below(999, *FLAT, dtype=np.int32) + np.int32(1)),
    "Mod int64": two("Mod", below(999, *FLAT), below(999, *FLAT) + 1),
    "Mod int64 number": ("Mod", {"x": below(999, *FLAT)}, {"y": np.int64(7)}, {}),
    "Mod int32": two("Mod", below(999, *FLAT, dtype=np.int32), below(999, *FLAT, dtype=np.int32) + np.int32(1)),
    "Mod float": ("Mod", {"x": normal(*FLAT), "y": positive(*FLAT)}, {}, {"fmod": 1}),
    "Pow 2": ("Pow", {"x": normal(*FLAT)}, {"y": np.float32(2)}, {}),
    "Pow 3": ("Pow", {"x": normal(*FLAT)}, {"y": np.float32(3)}, {}),
    "Pow half": ("Pow", {"x": positive(*FLAT)}, {"y": np.float32(0.5)}, {}),
    "Pow 2.2": ("Pow", {"x": positive(*FLAT)}, {"y": np.float32(2.2)}, {}),
    "Pow each": two("Pow", positive(*FLAT), normal(*FLAT)),
    "Pow int64": ("Pow", {"x": below(99, *FLAT)}, {"y": np.int64(2)}, {}),
    "Max": two("Max", normal(*FLAT), normal(*FLAT)),
    "Min number": ("Min", {"x": normal(*FLAT)}, {"y": np.float32(0.5)}, {}),
    "Min int64": two("Min", below(99, *FLAT), below(99, *FLAT)),
    "Sum of three": ("Sum", {"x": normal(*FLAT), "y": normal(*FLAT), "z": normal(*FLAT)}, {}, {}),
    "Mean of three": ("Mean", {"x": normal(*FLAT), "y": normal(*FLAT), "z": normal(*FLAT)}, {}, {}),
    "Max of three": ("Max", {"x": normal(*FLAT), "y": normal(*FLAT), "z": normal(*FLAT)}, {}, {}),
    "BitShift": ("BitShift", {"x": below(999, *FLAT, dtype=np.uint32), "y": below(9, *FLAT, dtype=np.uint32)}, {},
                 {"direction": "LEFT"}),
    **{f"{op} int32": at(18, two(op, below(999, *FLAT, dtype=np.int32), below(999, *FLAT, dtype=np.int32)))
       for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    "BitwiseNot int32": at(18, of("BitwiseNot", below(999, *FLAT, dtype=np.int32))),
    **{op: two(op, flags(*FLAT), flags(*FLAT)) for op in ("And", "Or", "Xor")},
    "And mask": two("And", flags(1, 1, 512, 512), flags(1, 1, 1, 512)),
    "Not": of("Not", flags(*FLAT)),
    **{op: two(op, normal(*FLAT), normal(*FLAT)) for op in ("Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual")},
    "Greater number": ("Greater", {"x": normal(*FLAT)}, {"y": np.float32(0.5)}, {}),
    "Greater outer": two("Greater", below(999, 512, 1), below(999, 1, 512)),
    "Equal int64": two("Equal", below(9, *FLAT), below(9, *FLAT)),
    "Equal int64 number": ("Equal", {"x": below(9, *FLAT)}, {"y": np.int64(5)}, {}),
    "Equal bool": two("Equal", flags(*FLAT), flags(*FLAT)),
    "Less int32": two("Less", below(9, *FLAT, dtype=np.int32), below(9, *FLAT, dtype=np.int32)),
    "Clip": ("Clip", {"x": normal(*FLAT)}, {"low": np.float32(-0.5), "high": np.float32(0.5)}, {}),
    "Clip float16": ("Clip", {"x": half(*FLAT)}, {"low": np.float16(-0.5), "high": np.float16(0.5)}, {}),
    "Clip int64": ("Clip", {"x": below(99, *FLAT)}, {"low": np.int64(9), "high": np.int64(50)}, {}),
    "Clip uint8": ("Clip", {"x": codes(*FLAT)}, {"low": np.uint8(9), "high": np.uint8(50)}, {}),
    "PRelu": ("PRelu", {"x": normal(*IMAGE)}, {"slope": normal(64, 1, 1)}, {}),
    "PRelu number": ("PRelu", {"x": normal(*IMAGE)}, {"slope": np.array([0.25], np.float32)}, {}),
    **{op: at(20, of(op, small(FLAT))) for op in
       ("Erf", "Exp", "Sin", "Cos", "Tan", "Acos", "Asin", "Atan", "Sinh", "Cosh", "Asinh", "Atanh", "Tanh", "Sigmoid",
        "Softplus", "Softsign", "Relu", "LeakyRelu", "Abs", "Floor", "Ceil", "Round", "Sign", "Neg", "Elu", "Selu", "Celu",
        "Gelu", "HardSwish", "HardSigmoid", "ThresholdedRelu", "Shrink", "Mish", "IsNaN", "IsInf", "Identity")},
    **{op: of(op, positive(*FLAT)) for op in ("Sqrt", "Reciprocal", "Log")},
    "Acosh": of("Acosh", positive(*FLAT) + np.float32(1)),
    "Gelu by tanh": at(20, of("Gelu", normal(*FLAT), approximate="tanh")),
    **{f"{op} wide": at(20, of(op, normal(*FLAT) * np.float32(3))) for op in ("Erf", "Gelu", "Exp", "Sin")},
    **{f"{op} float16": at(20, of(op, half(*FLAT))) for op in ("Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Gelu", "Sqrt", "Neg")},
    **{f"{op} double": of(op, normal(*FLAT).astype(np.float64)) for op in ("Exp", "Tanh", "Sigmoid", "Erf", "Sqrt", "Floor")},
    **{f"{op} int64": of(op, below(99, *FLAT) - 50) for op in ("Abs", "Neg", "Sign")},
    "Abs int32": of("Abs", below(99, *FLAT, dtype=np.int32) - np.int32(50)),
    "Cast to float16": cast(normal(*FLAT), T.FLOAT16),
    "Cast of float16": cast(half(*FLAT), T.FLOAT),
    "Cast to bfloat16": cast(normal(*FLAT), T.BFLOAT16),
    "Cast to float8": at(19, cast(normal(*FLAT), T.FLOAT8E4M3FN)),
    "Cast to int64": cast(normal(*FLAT) * np.float32(9), T.INT64),
    "Cast to int32": cast(normal(*FLAT) * np.float32(9), T.INT32),
    "Cast to uint8": cast(positive(*FLAT) * np.float32(9), T.UINT8),
    "Cast to bool": cast(below(2, *FLAT, dtype=np.float32), T.BOOL),
    "Cast to double": cast(normal(*FLAT), T.DOUBLE),
    "Cast of double": cast(normal(*FLAT).astype(np.float64), T.FLOAT),
    "Cast of int64": cast(below(99, *FLAT), T.FLOAT),
    "Cast of int32": cast(below(99, *FLAT, dtype=np.int32), T.FLOAT),
    "Cast of uint8": cast(codes(*FLAT), T.FLOAT),
    "Cast of bool": cast(flags(*FLAT), T.FLOAT),
    "Cast of bool to int64": cast(flags(*FLAT), T.INT64),
    "Cast of int64 to int32": cast(below(99, *FLAT), T.INT32),
    "Cast of int32 to int64": cast(below(99, *FLAT, dtype=np.int32), T.INT64),
    "Cast of int64 to bool": cast(below(2, *FLAT), T.BOOL),
}

PRODUCTS = {
    "MatMul batched": ("MatMul", {"x": normal(32, 128, 64), "y": normal(32, 64, 128)}, {}, {}),
    "MatMul": ("MatMul", {"x": normal(128, 768)}, {"w": normal(768, 768)}, {}),
    "MatMul wide": ("MatMul", {"x": normal(128, 768)}, {"w": normal(768, 3072)}, {}),
    "MatMul one row": ("MatMul", {"x": normal(1, 1024)}, {"w": normal(1024, 1024)}, {}),
    "MatMul one row wide": ("MatMul", {"x": normal(1, 768)}, {"w": normal(768, 50257)}, {}),
    "MatMul four rows": ("MatMul", {"x": normal(4, 1024)}, {"w": normal(1024, 1024)}, {}),
    "MatMul scores": two("MatMul", normal(*HEADS), normal(1, 12, 64, 128)),
    "MatMul scores one query": two("MatMul", normal(1, 12, 1, 64), normal(1, 12, 64, 500)),
    "MatMul values one query": two("MatMul", normal(1, 12, 1, 500), normal(1, 12, 500, 64)),
    "MatMul small": two("MatMul", normal(16, 16), normal(16, 16)),
    "MatMul narrow": ("MatMul", {"x": normal(4096, 32)}, {"w": normal(32, 8)}, {}),
    "MatMul vector": two("MatMul", normal(1024, 1024), normal(1024)),
    "MatMul double": two("MatMul", normal(256, 256).astype(np.float64), normal(256, 256).astype(np.float64)),
    "MatMul int32": two("MatMul", below(99, 128, 128, dtype=np.int32), below(99, 128, 128, dtype=np.int32)),
    "MatMul float16": ("MatMul", {"x": half(128, 512)}, {"w": half(512, 512)}, {}),
    "Gemm": ("Gemm", {"x": normal(64, 512)}, {"w": normal(512, 512), "b": normal(512)}, {"transB": 1}),
    "Gemm one row": ("Gemm", {"x": normal(1, 2048)}, {"w": normal(1000, 2048), "b": normal(1000)}, {"transB": 1}),
    "Gemm plain": ("Gemm", {"x": normal(64, 512)}, {"w": normal(512, 512), "b": normal(512)}, {}),
    "Gemm turned": ("Gemm", {"x": normal(512, 64)}, {"w": normal(512, 512), "b": normal(512)}, {"transA": 1, "alpha": 0.5}),
    "Einsum": einsum("bij,bjk->bik", (8, 64, 128), (8, 128, 64)),
    "Einsum scores": einsum("bhqd,bhkd->bhqk", HEADS, HEADS),
    "Einsum scores of rows": einsum("bqhd,bkhd->bhqk", (1, 128, 12, 64), (1, 128, 12, 64)),
    "Einsum values": einsum("bhqk,bkhd->bqhd", (1, 12, 128, 128), (1, 128, 12, 64)),
    "Einsum outer": einsum("i,j->ij", (512,), (1024,)),
    "Einsum weights": einsum("bld,de->ble", (1, 128, 512), (512, 512)),
    "Einsum turn": einsum("bij->bji", (16, 128, 256)),
    "Einsum dot": einsum("bi,bi->b", (512, 1024), (512, 1024)),
    "Einsum sum": einsum("ij->i", (512, 1024)),
    "Einsum channels": einsum("nchw,c->nchw", IMAGE, (64,)),
    "Einsum relative": einsum("bhwc,hkc->bhwk", (12, 14, 14, 64), (14, 14, 64)),
    "LSTM": ("LSTM", *recurrent(4, 64, 1)),
    "LSTM of 16": ("LSTM", *recurrent(4, 32, 16)),
    "LSTM small": ("LSTM", *recurrent(4, 64, 1, 32)),
    "LSTM both ways": ("LSTM", *recurrent(4, 32, 1, 128, 2)),
    "GRU": ("GRU", *recurrent(3, 64, 1)),
    "GRU of 16": ("GRU", *recurrent(3, 32, 16)),
    "GRU linear": ("GRU", *recurrent(3, 64, 1)[:2], {"hidden_size": 256, "linear_before_reset": 1}),
    "RNN": ("RNN", *recurrent(1, 64, 1)),
    "RNN of 16": ("RNN", *recurrent(1, 32, 16)),
}

QUANTISED = {
    "MatMulInteger": ("MatMulInteger", {"x": codes(128, 512)}, {"w": WEIGHTS}, {}),
    "MatMulInteger one row": ("MatMulInteger", {"x": codes(1, 768)}, {"w": signed_codes(768, 768), "z": np.uint8(3)}, {}),
    "MatMulInteger wide": ("MatMulInteger", {"x": codes(128, 768)}, {"w": signed_codes(768, 3072), "z": np.uint8(3)}, {}),
    "MatMulInteger columns": ("MatMulInteger", {"x": codes(128, 512)},
                              {"w": WEIGHTS, "z": np.uint8(3), "v": signed_codes(512)}, {}),
    "MatMulInteger signed": ("MatMulInteger", {"x": signed_codes(128, 512)}, {"w": WEIGHTS}, {}),
    "MatMulInteger two inputs": two("MatMulInteger", codes(12, 128, 64), codes(12, 64, 128)),
    "QLinearMatMul": ("QLinearMatMul", {"x": codes(128, 512)}, quantised(WEIGHTS), {}),
    "QLinearMatMul one row": ("QLinearMatMul", {"x": codes(1, 1024)}, quantised(signed_codes(1024, 1024)), {}),
    "QLinearMatMul signed": ("QLinearMatMul", {"x": signed_codes(128, 512)}, signed(WEIGHTS), {}),
    "QLinearMatMul columns": ("QLinearMatMul", {"x": codes(128, 512)}, per_channel(WEIGHTS, 512), {}),
    "QLinearConv": qlinear_conv(IMAGE, (64, 64, 3, 3), **PADDED),
    "QLinearConv bias": qlinear_conv(IMAGE, (64, 64, 3, 3), bias=True, **PADDED),
    "QLinearConv channels": qlinear_conv(IMAGE, (64, 64, 3, 3), bias=True, each=True, **PADDED),
    "QLinearConv signed": ("QLinearConv", {"x": signed_codes(*IMAGE)}, signed(signed_codes(64, 64, 3, 3)), PADDED),
    "QLinearConv 1x1": qlinear_conv(IMAGE, (256, 64, 1, 1), bias=True, each=True),
    "QLinearConv 1x1 back": qlinear_conv((1, 256, 56, 56), (64, 256, 1, 1), bias=True, each=True),
    "QLinearConv 1x1 small": qlinear_conv((1, 960, 7, 7), (160, 960, 1, 1), bias=True, each=True),
    "QLinearConv 1x1 step 2": qlinear_conv((1, 256, 56, 56), (512, 256, 1, 1), bias=True, strides=[2, 2]),
    "QLinearConv step 2": qlinear_conv((1, 128, 28, 28), (256, 128, 3, 3), bias=True, strides=[2, 2], **PADDED),
    "QLinearConv 7x7 first": qlinear_conv((1, 3, 224, 224), (64, 3, 7, 7), bias=True, strides=[2, 2], pads=[3] * 4),
    "QLinearConv 3x3 first": qlinear_conv((1, 3, 224, 224), (32, 3, 3, 3), bias=True, strides=[2, 2], **PADDED),
    "QLinearConv 512": qlinear_conv((1, 512, 7, 7), (512, 512, 3, 3), bias=True, each=True, **PADDED),
    "QLinearConv depthwise": qlinear_conv((1, 96, 56, 56), (96, 1, 3, 3), bias=True, group=96, **PADDED),
    "QLinearConv depthwise channels": qlinear_conv((1, 384, 14, 14), (384, 1, 3, 3), bias=True, each=True, group=384, **PADDED),
    "QLinearConv depthwise step 2": qlinear_conv((1, 96, 112, 112), (96, 1, 3, 3), bias=True, group=96, strides=[2, 2],
                                                 **PADDED),
    "QLinearConv depthwise 5x5": qlinear_conv((1, 240, 14, 14), (240, 1, 5, 5), bias=True, group=240, pads=[2] * 4),
    "QLinearConv in groups": qlinear_conv((1, 128, 28, 28), (128, 4, 3, 3), bias=True, group=32, **PADDED),
    "QLinearConv of one axis": qlinear_conv((1, 128, 1000), (128, 128, 3), bias=True, pads=[1, 1]),
    "ConvInteger": ("ConvInteger", {"x": codes(*IMAGE)}, {"w": below(100, 64, 64, 3, 3, dtype=np.uint8), "z": np.uint8(3)},
                    PADDED),
    "ConvInteger 1x1": ("ConvInteger", {"x": codes(*IMAGE)}, {"w": below(100, 256, 64, 1, 1, dtype=np.uint8)}, {}),
    "ConvInteger depthwise": ("ConvInteger", {"x": codes(1, 96, 56, 56)}, {"w": codes(96, 1, 3, 3), "z": np.uint8(3)},
                              {"group": 96, **PADDED}),
    "DynamicQuantizeLinear": ("DynamicQuantizeLinear", {"x": normal(*PLANE)}, {}, {}, {"outputs": 3}),
    "DynamicQuantizeLinear row": ("DynamicQuantizeLinear", {"x": normal(1, 768)}, {}, {}, {"outputs": 3}),
    "QuantizeLinear": ("QuantizeLinear", {"x": normal(*PLANE)}, {"s": np.float32(0.02), "z": np.uint8(3)}, {}),
    "QuantizeLinear int8": ("QuantizeLinear", {"x": normal(*PLANE)}, {"s": np.float32(0.02), "z": np.int8(3)}, {}),
    "QuantizeLinear int16": at(21, ("QuantizeLinear", {"x": normal(*PLANE)}, {"s": np.float32(0.02), "z": np.int16(3)}, {})),
    "QuantizeLinear channels": ("QuantizeLinear", {"x": normal(*IMAGE)}, {"s": positive(64), "z": codes(64)}, {"axis": 1}),
    "QuantizeLinear last": ("QuantizeLinear", {"x": normal(*PLANE)}, {"s": positive(1024), "z": codes(1024)}, {"axis": 1}),
    "QuantizeLinear int4": at(21, ("QuantizeLinear", {"x": normal(*PLANE)}, {"s": positive(256, 32)}, {
        "axis": 1, "block_size": 32, "output_dtype": T.INT4})),
    "QuantizeLinear float8": at(19, ("QuantizeLinear", {"x": normal(*PLANE)}, {"s": np.float32(0.02), "z": helper.make_tensor("z", T.FLOAT8E4M3FN, [], [0])}, {})),
    "DequantizeLinear": ("DequantizeLinear", {"x": codes(*PLANE)}, {"s": np.float32(0.02), "z": np.uint8(3)}, {}),
    "DequantizeLinear int8": ("DequantizeLinear", {"x": signed_codes(*PLANE)}, {"s": np.float32(0.02), "z": np.int8(3)}, {}),
    "DequantizeLinear int32": ("DequantizeLinear", {"x": below(999, *PLANE, dtype=np.int32)}, {"s": np.float32(0.02)}, {}),
    "DequantizeLinear channels": ("DequantizeLinear", {"x": codes(*IMAGE)}, {"s": positive(64), "z": codes(64)}, {"axis": 1}),
    "DequantizeLinear last": ("DequantizeLinear", {"x": codes(*PLANE)}, {"s": positive(1024), "z": codes(1024)}, {"axis": 1}),
    "DequantizeLinear blocks": at(21, ("DequantizeLinear", {"x": codes(*PLANE)}, {"s": positive(256, 32), "z": codes(256, 32)},
                                       {"axis": 1, "block_size": 32})),
    "DequantizeLinear float16": at(21, ("DequantizeLinear", {"x": codes(*PLANE)}, {"s": np.float16(0.02), "z": np.uint8(3)}, {})),
    "codes Conv": between_codes("Conv", codes(*IMAGE), weight(signed_codes(64, 64, 3, 3)), **PADDED),
    "codes Conv channels": between_codes("Conv", codes(*IMAGE), {
        "w": signed_codes(64, 64, 3, 3), "w_scale": np.linspace(0.01, 0.02, 64, dtype=np.float32),
        "w_zero": np.zeros(64, np.int8), "b": below(1000, 64, dtype=np.int32),
        "b_scale": np.linspace(0.0002, 0.0004, 64, dtype=np.float32), "b_zero": np.zeros(64, np.int32)}, **PADDED),
    "codes Conv depthwise": between_codes("Conv", codes(1, 96, 56, 56), weight(signed_codes(96, 1, 3, 3)), group=96, **PADDED),
    "codes MatMul": between_codes("MatMul", codes(128, 512), weight(WEIGHTS)),
    "codes Add": between_codes("Add", codes(*IMAGE), other_side(codes(*IMAGE))),
    "codes Mul": between_codes("Mul", codes(*IMAGE), other_side(codes(*IMAGE))),
    "codes Sigmoid": between_codes("Sigmoid", codes(*IMAGE), {}),
    "codes Relu": between_codes("Relu", codes(*IMAGE), {}),
    "codes AveragePool": between_codes("AveragePool", codes(*IMAGE), {}, kernel_shape=[2, 2], strides=[2, 2]),
    "codes GlobalAveragePool": between_codes("GlobalAveragePool", codes(*IMAGE), {}),
    "codes MaxPool": between_codes("MaxPool", codes(*IMAGE), {}, kernel_shape=[2, 2], strides=[2, 2]),
    "codes Softmax": between_codes("Softmax", codes(12, 128, 128), {}),
    "codes Concat": between_codes("Concat", codes(*IMAGE), other_side(codes(*IMAGE)), axis=1),
    "codes Transpose": between_codes("Transpose", codes(*IMAGE), {}, perm=[0, 2, 3, 1]),
    "codes Resize": between_codes("Resize", codes(1, 32, 28, 28), TWICE, mode="nearest"),
}

CONTRIBUTED = {
    **{f"MatMulNBits {rows} rows": microsoft("MatMulNBits", {"x": normal(rows, 2048)}, NIBBLES,
                                             {"K": 2048, "N": 2048, "bits": 4, "block_size": 32}) for rows in (1, 128)},
    "MatMulNBits 8 bits": microsoft("MatMulNBits", {"x": normal(1, 2048)}, {"w": codes(2048, 64, 32), "s": normal(2048 * 64)},
                                    {"K": 2048, "N": 2048, "bits": 8, "block_size": 32}),
    "MatMulNBits zeros": microsoft("MatMulNBits", {"x": normal(1, 2048)}, {**NIBBLES, "z": codes(2048 * 32)},
                                   {"K": 2048, "N": 2048, "bits": 4, "block_size": 32}),
    "MatMulBnb4": microsoft("MatMulBnb4", {"x": normal(1, 1024)}, {"w": codes(1024 * 512), "s": normal(16384)},
                            {"K": 1024, "N": 1024, "block_size": 64, "quant_type": 1}),
    "GatherBlockQuantized": microsoft("GatherBlockQuantized", {}, {"x": codes(5000, 256), "i": below(5000, 128), "s": normal(5000, 16)},
                                      {"block_size": 32, "bits": 8, "quantize_axis": 1}),
    "QLinearAdd": microsoft("QLinearAdd", {"x": codes(*IMAGE)}, {**X_SCALE, "y": codes(*IMAGE), "b_scale": np.float32(0.03),
                                                                 "b_zero": np.uint8(9), **Y_SCALE}),
    "QLinearMul": microsoft("QLinearMul", {"x": codes(*IMAGE)}, {**X_SCALE, "y": codes(*IMAGE), "b_scale": np.float32(0.03),
                                                                 "b_zero": np.uint8(9), **Y_SCALE}),
    "QLinearAdd number": microsoft("QLinearAdd", {"x": codes(*IMAGE)}, {**X_SCALE, "y": np.uint8(9), "b_scale": np.float32(0.03),
                                                                        "b_zero": np.uint8(9), **Y_SCALE}),
    "QLinearMul channels": microsoft("QLinearMul", {"x": codes(*IMAGE)}, {
        **X_SCALE, "y": codes(1, 64, 1, 1), "b_scale": np.float32(0.03), "b_zero": np.uint8(9), **Y_SCALE}),
    "QLinearSigmoid": microsoft("QLinearSigmoid", {"x": codes(*IMAGE)}, {**X_SCALE, **Y_SCALE}),
    "QLinearLeakyRelu": microsoft("QLinearLeakyRelu", {"x": codes(*IMAGE)}, {**X_SCALE, **Y_SCALE}),
    "QLinearSoftmax": microsoft("QLinearSoftmax", {"x": codes(12, 128, 128)}, {**X_SCALE, "y_scale": np.float32(1 / 256), "y_zero": np.uint8(0)},
                                {"opset": 13, "axis": -1}),
    "QLinearAveragePool": microsoft("QLinearAveragePool", {"x": codes(*IMAGE)}, {**X_SCALE, **Y_SCALE},
                                    {"kernel_shape": [3, 3], "strides": [2, 2]}),
    "QLinearGlobalAveragePool": microsoft("QLinearGlobalAveragePool", {"x": codes(1, 512, 14, 14)}, {**X_SCALE, **Y_SCALE}),
    "QLinearConcat": microsoft("QLinearConcat", {}, {**Y_SCALE, "x": codes(*IMAGE), **X_SCALE, "v": codes(*IMAGE),
                                                     "v_scale": np.float32(0.01), "v_zero": np.uint8(1)}, {"axis": 1}, fed=["x", "v"]),
    "QLinearWhere": microsoft("QLinearWhere", {"c": flags(*FLAT), "x": codes(*FLAT)}, {
        **X_SCALE, "y": codes(*FLAT), "b_scale": np.float32(0.03), "b_zero": np.uint8(9), **Y_SCALE}),
    "QGemm": microsoft("QGemm", {"x": codes(64, 512)}, {
        **X_SCALE, "w": signed_codes(512, 512), "w_scale": np.float32(0.02), "w_zero": np.int8(0), "b": below(999, 512, dtype=np.int32),
        "y_scale": np.float32(1), "y_zero": np.uint8(100)}, {"transB": 1}),
    "DynamicQuantizeMatMul": microsoft("DynamicQuantizeMatMul", {"x": normal(128, 512)}, {
        "w": signed_codes(512, 512), "s": np.float32(0.02), "z": np.int8(0), "b": normal(512)}),
    "DynamicQuantizeMatMul row": microsoft("DynamicQuantizeMatMul", {"x": normal(1, 768)}, {
        "w": signed_codes(768, 768), "s": np.float32(0.02), "z": np.int8(0)}),
    "MatMulIntegerToFloat": microsoft("MatMulIntegerToFloat", {"x": codes(128, 512)}, {
        "w": signed_codes(512, 512), "a": np.float32(0.02), "s": np.float32(0.02), "az": np.uint8(3), "z": np.int8(0)}),
    "DynamicQuantizeLSTM": microsoft("DynamicQuantizeLSTM", {"x": normal(32, 1, 256)}, {
        "w": signed_codes(1, 256, 1024), "r": signed_codes(1, 256, 1024), "b": normal(1, 2048), "l": None, "h": None, "c": None, "p": None,
        "ws": np.array([0.01], np.float32), "wz": np.array([0], np.int8), "rs": np.array([0.01], np.float32), "rz": np.array([0], np.int8)},
        {"hidden_size": 256}),
    "QAttention": microsoft("QAttention", {"x": codes(1, 128, 768)}, {
        "w": signed_codes(768, 2304), "b": normal(2304), "xs": np.float32(0.02), "ws": np.float32(0.002), "m": None,
        "xz": np.uint8(3), "wz": np.int8(0)}, {"num_heads": 12}),
    "Attention of weights": microsoft("Attention", {"x": normal(1, 128, 768)}, {"w": normal(768, 2304), "b": normal(2304)}, {"num_heads": 12}),
    "MultiHeadAttention": microsoft("MultiHeadAttention", {name: normal(1, 128, 768) for name in "qkv"}, {}, {"num_heads": 12}),
    "GroupQueryAttention": microsoft("GroupQueryAttention", {"q": normal(1, 1, 1024), "k": normal(1, 1, 256), "v": normal(1, 1, 256),
                                                            "pk": normal(1, 4, 500, 64), "pv": normal(1, 4, 500, 64)},
                                     
                                     {"l": np.array([500], np.int32), "t": np.array(501, np.int32)},
                                     {"num_heads": 16, "kv_num_heads": 4}, outputs=3),
    "RotaryEmbedding of rows": microsoft("RotaryEmbedding", {"x": normal(1, 128, 768), "p": ints(0)}, {
        "c": normal(512, 32), "s": normal(512, 32)}, {"num_heads": 12}),
    "SkipLayerNormalization": microsoft("SkipLayerNormalization", {"x": normal(1, 128, 768), "y": normal(1, 128, 768)}, {
        "s": normal(768), "b": normal(768), "c": normal(768)}),
    "SkipSimplifiedLayerNormalization": microsoft("SkipSimplifiedLayerNormalization", {"x": normal(1, 128, 768), "y": normal(1, 128, 768)}, {
        "s": normal(768)}),
    "EmbedLayerNormalization": microsoft("EmbedLayerNormalization", {"i": below(5000, 1, 128, dtype=np.int32), "t": below(2, 1, 128, dtype=np.int32)}, {
        "w": normal(5000, 768), "p": normal(512, 768), "q": normal(2, 768), "s": normal(768), "b": normal(768)}, outputs=2),
    "BiasGelu": microsoft("BiasGelu", {"x": normal(128, 3072)}, {"b": normal(3072)}),
    "FastGelu": microsoft("FastGelu", {"x": normal(128, 3072)}, {"b": normal(3072)}),
    "Gelu of Microsoft": microsoft("Gelu", {"x": normal(128, 3072)}, {}),
    "QuickGelu": microsoft("QuickGelu", {"x": normal(128, 3072)}, {}),
    "BiasSoftmax": microsoft("BiasSoftmax", {"x": normal(12, 128, 128), "b": normal(1, 128, 128)}, {}, {"axis": 1, "is_inner_broadcast": 0}),
    "FusedMatMul": microsoft("FusedMatMul", {"x": normal(12, 128, 64), "y": normal(12, 128, 64)}, {}, {"transB": 1, "alpha": 0.125}),
    "FusedGemm": microsoft("FusedGemm", {"x": normal(64, 512)}, {"w": normal(512, 512), "b": normal(512)}, {"activation": "Relu"}),
    "FusedConv": microsoft("FusedConv", {"x": normal(*IMAGE)}, {"w": normal(64, 64, 3, 3), "b": normal(64)}, {"activation": "Relu", **PADDED}),
    "NhwcMaxPool": microsoft("NhwcMaxPool", {"x": codes(1, 112, 112, 64)}, {}, {"kernel_shape": [3, 3], "strides": [2, 2]}),
    "CropAndResize": microsoft("CropAndResize", {"x": normal(*IMAGE), "r": np.abs(small((16, 4))), "i": np.zeros(16, np.int32)},
                               {"s": np.array([14, 14], np.int32)}),
    "CDist": microsoft("CDist", {"x": normal(256, 64), "y": normal(256, 64)}, {}, {"metric": "sqeuclidean"}),
    "Inverse": microsoft("Inverse", {"x": normal(64, 4, 4)}, {}),
    "MoE": microsoft("MoE", {"x": normal(8, 256), "r": normal(8, 8)}, {"w": normal(8, 256, 512), "b": None, "v": normal(8, 512, 256)},
                     {"k": 2, "activation_type": "relu"}),
    "ExpandDims": microsoft("ExpandDims", {"x": normal(*FLAT)}, {"a": np.int32(0)}),
}

CASES = WINDOWS | MOVEMENT | ROWS | POINTWISE | PRODUCTS | QUANTISED | CONTRIBUTED
