# SPDX-License-Identifier: Apache-2.0
"""The models of ort_bench.py: shapes of real networks, random weights.

ort_models.py FOLDER: writes those of SMALL, whole networks at sizes that an interpreter of kernels runs in seconds.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Builder:
    """A graph written node by node."""

    def __init__(self, opset=17):
        self.opset = opset
        self.nodes, self.weights, self.inputs = [], [], []
        self.rng = np.random.default_rng(1)
        self.count = 0

    def input(self, name, shape, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, array):
        self.count += 1
        name = f"w{self.count}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def weight(self, *shape, scale=None):
        fan_in = np.prod(shape[1:]) if len(shape) == 4 else shape[0]
        scale = scale if scale is not None else 1.0 / np.sqrt(fan_in)
        return self.constant((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def number(self, value):
        return self.constant(np.float32(value))

    def node(self, op, *inputs, **attributes):
        self.count += 1
        output = f"v{self.count}"
        self.nodes.append(helper.make_node(op, list(inputs), [output], name=f"{op}_{self.count}", **attributes))
        return output

    def model(self, output, shape):
        graph = helper.make_graph(self.nodes, "g", self.inputs,
                                  [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


# ---- Transformers ----

def linear(b, x, inner, outer):
    return b.node("Add", b.node("MatMul", x, b.weight(inner, outer)), b.weight(outer, scale=0.02))


def layer_norm(b, x, width):
    return b.node("LayerNormalization", x, b.weight(width, scale=1.0), b.weight(width, scale=0.1), axis=-1)


def gelu(b, x):
    inner = b.node("Add", b.node("Erf", b.node("Div", x, b.number(np.sqrt(2.0)))), b.number(1.0))
    return b.node("Mul", b.node("Mul", x, inner), b.number(0.5))


def heads(b, x, count, size, order):
    shape = b.constant(np.array([0, 0, count, size], np.int64))
    return b.node("Transpose", b.node("Reshape", x, shape), perm=order)


def attention(b, q, k, v, width):
    scores = b.node("Div", b.node("MatMul", q, k), b.number(8.0))
    mixed = b.node("Transpose", b.node("MatMul", b.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return b.node("Reshape", mixed, b.constant(np.array([0, 0, width], np.int64)))


def bert(layers=4, width=768, sequence=128):
    b = Builder()
    x = b.input("x", [1, sequence, width])
    count = width // 64
    for _ in range(layers):
        q = heads(b, linear(b, x, width, width), count, 64, [0, 2, 1, 3])
        k = heads(b, linear(b, x, width, width), count, 64, [0, 2, 3, 1])
        v = heads(b, linear(b, x, width, width), count, 64, [0, 2, 1, 3])
        y = linear(b, attention(b, q, k, v, width), width, width)
        x = layer_norm(b, b.node("Add", x, y), width)
        y = linear(b, gelu(b, linear(b, x, width, 4 * width)), 4 * width, width)
        x = layer_norm(b, b.node("Add", x, y), width)
    return b.model(x, [1, sequence, width])


def rms_norm(b, x, width):
    mean = b.node("ReduceMean", b.node("Pow", x, b.number(2.0)), axes=[-1])
    inverse = b.node("Reciprocal", b.node("Sqrt", b.node("Add", mean, b.number(1e-6))))
    return b.node("Mul", b.weight(width, scale=1.0), b.node("Mul", x, inverse))


def rotary(b, x, cosine, sine, size):
    def part(begin, end):
        bounds = [b.constant(np.array([value], np.int64)) for value in (begin, end, 3)]
        return b.node("Slice", x, *bounds)
    rotated = b.node("Concat", b.node("Neg", part(size // 2, size)), part(0, size // 2), axis=-1)
    return b.node("Add", b.node("Mul", x, cosine), b.node("Mul", rotated, sine))


def llama(width=1024, inner=2816, sequence=256, size=64, batch=1):
    b = Builder()
    x = b.input("x", [batch, sequence, width])
    count = width // size
    angles = np.arange(sequence)[:, None] * 10000.0 ** (-np.arange(size // 2) / (size // 2))
    angles = np.concatenate([angles, angles], 1)[None, None].astype(np.float32)
    cosine, sine = b.constant(np.cos(angles)), b.constant(np.sin(angles))
    mask = b.constant(np.triu(np.full((1, 1, sequence, sequence), -1e9, np.float32), 1))
    h = rms_norm(b, x, width)
    q, k, v = (heads(b, b.node("MatMul", h, b.weight(width, width)), count, size, [0, 2, 1, 3]) for _ in range(3))
    q, k = rotary(b, q, cosine, sine, size), rotary(b, k, cosine, sine, size)
    scores = b.node("MatMul", q, b.node("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.node("Add", b.node("Mul", scores, b.number(size ** -0.5)), mask)
    mixed = b.node("Transpose", b.node("MatMul", b.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    mixed = b.node("Reshape", mixed, b.constant(np.array([0, 0, width], np.int64)))
    x = b.node("Add", x, b.node("MatMul", mixed, b.weight(width, width)))
    h = rms_norm(b, x, width)
    gate = b.node("MatMul", h, b.weight(width, inner))
    gate = b.node("Mul", gate, b.node("Sigmoid", gate))
    h = b.node("Mul", gate, b.node("MatMul", h, b.weight(width, inner)))
    x = b.node("Add", x, b.node("MatMul", h, b.weight(inner, width)))
    return b.model(x, [batch, sequence, width])


# ---- Convolutional networks ----

def conv(b, x, inner, outer, kernel, stride=1, group=1):
    pad = kernel // 2
    return b.node("Conv", x, b.weight(outer, inner // group, kernel, kernel), b.weight(outer, scale=0.1),
                  kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4, group=group)


def norm(b, x, channels):
    positive = b.constant(np.abs(b.rng.standard_normal(channels)).astype(np.float32) + 0.5)
    return b.node("BatchNormalization", x, b.weight(channels, scale=0.5), b.weight(channels, scale=0.1),
                  b.weight(channels, scale=0.1), positive)


def resnet50(batch=1, opset=17, side=224, channels=64):
    b = Builder(opset)
    x = b.input("x", [batch, 3, side, side])
    x = b.node("Relu", norm(b, conv(b, x, 3, channels, 7, 2), channels))
    x = b.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inner = channels
    for stage, blocks in enumerate([3, 4, 6, 3]):
        width = channels << stage
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            y = b.node("Relu", norm(b, conv(b, x, inner, width, 1), width))
            y = b.node("Relu", norm(b, conv(b, y, width, width, 3, stride), width))
            y = norm(b, conv(b, y, width, 4 * width, 1), 4 * width)
            if block == 0:
                x = norm(b, conv(b, x, inner, 4 * width, 1, stride), 4 * width)
            x = b.node("Relu", b.node("Add", x, y))
            inner = 4 * width
    x = b.node("Flatten", b.node("GlobalAveragePool", x))
    x = b.node("Gemm", x, b.weight(inner, 1000), b.weight(1000, scale=0.1))
    return b.model(x, [batch, 1000])


def activation(b, x, name):
    return b.node("HardSwish" if name == "HS" else "Relu", x)


def squeeze(b, x, channels, inner):
    y = b.node("GlobalAveragePool", x)
    y = b.node("Relu", conv(b, y, channels, inner, 1))
    y = b.node("HardSigmoid", conv(b, y, inner, channels, 1), alpha=1 / 6.0, beta=0.5)
    return b.node("Mul", x, y)


# kernel, expanded, out, squeeze, activation, stride: table 1 of Howard et al., "Searching for MobileNetV3", 2019
MOBILE_ROWS = [(3, 16, 16, 0, "RE", 1), (3, 64, 24, 0, "RE", 2), (3, 72, 24, 0, "RE", 1), (5, 72, 40, 24, "RE", 2),
               (5, 120, 40, 32, "RE", 1), (5, 120, 40, 32, "RE", 1), (3, 240, 80, 0, "HS", 2), (3, 200, 80, 0, "HS", 1),
               (3, 184, 80, 0, "HS", 1), (3, 184, 80, 0, "HS", 1), (3, 480, 112, 120, "HS", 1),
               (3, 672, 112, 168, "HS", 1), (5, 672, 160, 168, "HS", 2), (5, 960, 160, 240, "HS", 1),
               (5, 960, 160, 240, "HS", 1)]


def mobilenet_v3(side=224):
    b = Builder()
    x = b.input("x", [1, 3, side, side])
    x = activation(b, norm(b, conv(b, x, 3, 16, 3, 2), 16), "HS")
    channels = 16
    for kernel, expanded, out, inner, kind, stride in MOBILE_ROWS:
        y = x
        if expanded != channels:
            y = activation(b, norm(b, conv(b, y, channels, expanded, 1), expanded), kind)
        y = activation(b, norm(b, conv(b, y, expanded, expanded, kernel, stride, expanded), expanded), kind)
        if inner:
            y = squeeze(b, y, expanded, inner)
        y = norm(b, conv(b, y, expanded, out, 1), out)
        x = b.node("Add", x, y) if stride == 1 and channels == out else y
        channels = out
    x = activation(b, norm(b, conv(b, x, channels, 960, 1), 960), "HS")
    x = b.node("Flatten", b.node("GlobalAveragePool", x))
    x = b.node("HardSwish", b.node("Gemm", x, b.weight(960, 1280), b.weight(1280, scale=0.1)))
    x = b.node("Gemm", x, b.weight(1280, 1000), b.weight(1000, scale=0.1))
    return b.model(x, [1, 1000])


def vit(layers=12, width=768, side=224, patch=16):
    """Dosovitskiy et al., "An Image is Worth 16x16 Words", 2020: ViT-B/16, with heads of 64."""
    b = Builder()
    count, tokens = width // 64, (side // patch) ** 2
    x = b.input("x", [1, 3, side, side])
    x = b.node("Conv", x, b.weight(width, 3, patch, patch), b.weight(width, scale=0.1), kernel_shape=[patch, patch],
               strides=[patch, patch])
    x = b.node("Transpose", b.node("Reshape", x, b.constant(np.array([0, width, tokens], np.int64))), perm=[0, 2, 1])
    x = b.node("Concat", b.weight(1, 1, width, scale=0.1), x, axis=1)
    x = b.node("Add", x, b.weight(1, tokens + 1, width, scale=0.1))
    for _ in range(layers):
        y = layer_norm(b, x, width)
        q = heads(b, linear(b, y, width, width), count, 64, [0, 2, 1, 3])
        k = heads(b, linear(b, y, width, width), count, 64, [0, 2, 3, 1])
        v = heads(b, linear(b, y, width, width), count, 64, [0, 2, 1, 3])
        x = b.node("Add", x, linear(b, attention(b, q, k, v, width), width, width))
        y = layer_norm(b, x, width)
        x = b.node("Add", x, linear(b, gelu(b, linear(b, y, width, 4 * width)), 4 * width, width))
    x = b.node("Gather", layer_norm(b, x, width), b.constant(np.int64(0)), axis=1)
    return b.model(linear(b, x, width, 1000), [1, 1000])


# ---- Single operators ----

def rows(op):
    def make():
        b = Builder()
        x = b.input("x", [2048, 2048])
        if op == "gelu":
            y = gelu(b, x)
        elif op == "layernorm":
            y = layer_norm(b, x, 2048)
        else:
            y = b.node("Softmax", x, axis=-1)
        return b.model(y, [2048, 2048])
    return make


def chain():
    b = Builder()
    x = b.input("x", [4])
    for index in range(1000):
        x = b.node(("Sin", "Abs", "Neg")[index % 3], x)
    return b.model(x, [4])


def gemv():
    b = Builder()
    x = b.input("x", [1, 4096])
    return b.model(b.node("MatMul", x, b.weight(4096, 4096)), [1, 4096])


def heavy():
    b = Builder()
    x = b.input("x", [1, 4096])
    for _ in range(8):  # 8 matrices of 64 MiB
        x = b.node("Relu", b.node("MatMul", x, b.weight(4096, 4096)))
    return b.model(x, [1, 4096])


MODELS = {
    "bert-s128": (bert, ">= 1.0, aim 1.1"),
    "llama-layer": (llama, ">= 1.0, aim 1.1"),
    "resnet50": (resnet50, ">= 0.95, aim 1.15"),
    "mobilenetv3": (mobilenet_v3, ">= 0.9"),
    "softmax": (rows("softmax"), ">= 1.0, aim 1.5"),
    "layernorm": (rows("layernorm"), ">= 1.0, aim 1.5"),
    "gelu": (rows("gelu"), ">= 1.0, aim 1.5"),
    "tiny-nodes": (chain, ">= 1.0, aim 2"),
    "gemv-4096": (gemv, ">= 1.0"),
    "load-500mb": (heavy, ">= 1.0"),
}

SMALL = {
    "resnet50": lambda: resnet50(side=64, channels=16),
    "mobilenet_v3": lambda: mobilenet_v3(side=64),
    "vit": lambda: vit(width=128, side=64),
    "bert": lambda: bert(layers=2, width=128, sequence=24),
}


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in SMALL.items():
        onnx.save(make(), folder / f"{name}.onnx")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
