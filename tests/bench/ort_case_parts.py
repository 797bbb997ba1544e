# SPDX-License-Identifier: Apache-2.0
"""Parts of the tables of operators that ort_operators_bench.py measures."""

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


def uint8s(*shape):
    return below(200, *shape, dtype=np.uint8)


def int8s(*shape):
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
INT4_VALUES = {"w": below(200, 2048, 64, 16, dtype=np.uint8), "s": normal(2048 * 64)}
TWICE = {"roi": None, "scales": np.array([1, 1, 2, 2], np.float32)}
HALVED = {"roi": None, "scales": np.array([1, 1, 0.5, 0.5], np.float32)}
PADDED = {"pads": [1] * 4}
HEADS = (1, 12, 128, 64)
X_SCALE = {"x_scale": np.float32(0.02), "x_zero": np.uint8(3)}
Y_SCALE = {"y_scale": np.float32(0.03), "y_zero": np.uint8(100)}
SIGNED_X = {"x_scale": np.float32(0.02), "x_zero": np.int8(3)}
SIGNED_Y = {"y_scale": np.float32(1), "y_zero": np.int8(5)}


def quantized(weights, scale=np.float32(0.02), zero=np.int8(0)):
    """Scale and zero point of x, then the weights and theirs, then those of the result."""
    return {**X_SCALE, "w": weights, "w_scale": scale, "w_zero": zero, "y_scale": np.float32(1), "y_zero": np.uint8(100)}


def signed(weights):
    return {**SIGNED_X, "w": weights, "w_scale": np.float32(0.02), "w_zero": np.int8(0), **SIGNED_Y}


def per_channel(weights, channels):
    return quantized(weights, np.linspace(0.01, 0.02, channels, dtype=np.float32), np.zeros(channels, np.int8))


def recurrent(gates, length, batch, hidden=256, directions=1):
    """X, then weights for as many inputs and hidden numbers."""
    return ({"x": normal(length, batch, hidden)},
            {"w": normal(directions, gates * hidden, hidden), "r": normal(directions, gates * hidden, hidden),
             "b": normal(directions, gates * 2 * hidden)},
            {"hidden_size": hidden, **({"direction": "bidirectional"} if directions == 2 else {})})


def conv(x, filters, bias=False, **attributes):
    return ("Conv", {"x": normal(*x)}, {"w": normal(*filters), **({"b": normal(filters[0])} if bias else {})}, attributes)


def qlinear_conv(x, filters, bias=False, each=False, **attributes):
    weights = int8s(*filters)
    constants = per_channel(weights, filters[0]) if each else quantized(weights)
    if bias:
        constants = {**constants, "b": below(1000, filters[0], dtype=np.int32)}
    return ("QLinearConv", {"x": uint8s(*x)}, constants, attributes)


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


def between_quantizers(op, x, constants, **attributes):
    """An operator of floats between DequantizeLinear and QuantizeLinear, as quantized models are exported."""
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
