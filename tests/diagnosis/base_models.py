# SPDX-License-Identifier: Apache-2.0
"""The sound models of the diagnosis benchmark: small, seeded, every node named, one of each kind that exports hold.

Each function builds one and gives (model, inputs); BASE_MODELS lists them.
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Builder:
    """Collects nodes, weights and inputs of one graph; every method that adds a node gives the name of its output."""

    def __init__(self, name, seed, parent=None):
        self.name, self.rng, self.parent = name, np.random.default_rng(seed), parent
        self.nodes, self.weights, self.inputs, self.outputs, self.data = [], [], [], [], {}
        self.counts = parent.counts if parent else {}

    def input(self, name, value):
        value = np.asarray(value)
        self.inputs.append(helper.make_tensor_value_info(name, numpy_helper.from_array(value).data_type, value.shape))
        self.data[name] = value
        return name

    def number(self, stem):
        self.counts[stem] = self.counts.get(stem, -1) + 1
        return f"{stem}_{self.counts[stem]}"

    def constant(self, value, stem="constant"):
        name = self.number(stem)
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *shape, scale=None, dtype=np.float32):
        scale = scale if scale is not None else 1.0 / np.sqrt(max(1, shape[0] if len(shape) == 2 else np.prod(shape[1:])))
        return self.constant((self.rng.standard_normal(shape) * scale).astype(dtype), "weight")

    def add(self, op, *inputs, outputs=1, **attributes):
        number = self.number(op.lower())
        names = [f"{number}_out" if outputs == 1 else f"{number}_out{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=f"node_{number}", **attributes))
        return names[0] if outputs == 1 else names

    def linear(self, x, width_in, width_out, dtype=np.float32):
        product = self.add("MatMul", x, self.weight(width_in, width_out, dtype=dtype))
        return self.add("Add", product, self.weight(width_out, scale=0.1, dtype=dtype))

    def output(self, name, data_type=TensorProto.FLOAT, shape=None):
        self.outputs.append(helper.make_tensor_value_info(name, data_type, shape))

    def graph(self):
        return helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)

    def model(self):
        model = helper.make_model(self.graph(), opset_imports=[helper.make_opsetid("", OPSET)], producer_name="diagnosis")
        model.ir_version = 8
        return model, self.data


def normal(builder, *shape):
    return builder.rng.standard_normal(shape).astype(np.float32)


def layer_norm(b, x, width):
    mean = b.add("ReduceMean", x, axes=[-1], keepdims=1)
    centered = b.add("Sub", x, mean)
    squares = b.add("Mul", centered, centered)
    variance = b.add("ReduceMean", squares, axes=[-1], keepdims=1)
    root = b.add("Sqrt", b.add("Add", variance, b.constant(np.float32(1e-5), "epsilon")))
    scaled = b.add("Mul", b.add("Div", centered, root), b.constant((1 + 0.2 * normal(b, width)).astype(np.float32), "gamma"))
    return b.add("Add", scaled, b.weight(width, scale=0.1))


def rms_norm(b, x, width):
    squares = b.add("Pow", x, b.constant(np.float32(2), "two"))
    variance = b.add("ReduceMean", squares, axes=[-1], keepdims=1)
    root = b.add("Sqrt", b.add("Add", variance, b.constant(np.float32(1e-6), "epsilon")))
    scaled = b.add("Mul", x, b.add("Reciprocal", root))
    return b.add("Mul", scaled, b.constant((1 + 0.2 * normal(b, width)).astype(np.float32), "gamma"))


def split_heads(b, x, length, heads, width):
    shaped = b.add("Reshape", x, b.constant(np.array([1, length, heads, width // heads], np.int64), "shape"))
    return b.add("Transpose", shaped, perm=[0, 2, 1, 3])


def attention(b, x, length, heads, width, mask, turn=lambda value: value):
    q, k, v = (split_heads(b, b.linear(x, width, width), length, heads, width) for _ in range(3))
    q, k = turn(q), turn(k)
    scores = b.add("MatMul", q, b.add("Transpose", k, perm=[0, 1, 3, 2]))
    scaled = b.add("Mul", scores, b.constant(np.float32(1 / np.sqrt(width // heads)), "scale"))
    weights = b.add("Softmax", b.add("Add", scaled, mask), axis=-1)
    mixed = b.add("Transpose", b.add("MatMul", weights, v), perm=[0, 2, 1, 3])
    joined = b.add("Reshape", mixed, b.constant(np.array([1, length, width], np.int64), "shape"))
    return b.linear(joined, width, width)


def gelu(b, x):
    erf = b.add("Erf", b.add("Div", x, b.constant(np.float32(np.sqrt(2)), "root")))
    return b.add("Mul", b.add("Mul", x, b.add("Add", erf, b.constant(np.float32(1), "one"))), b.constant(np.float32(0.5), "half"))


def mlp(seed):
    b = Builder("mlp", seed)
    x = b.input("x", normal(b, 4, 16))
    for width_in, width_out, activation in ((16, 24, "Relu"), (24, 24, "Tanh"), (24, 12, "Sigmoid")):
        x = b.add(activation, b.linear(x, width_in, width_out))
    b.output(b.add("Softmax", b.add("Gemm", x, b.weight(8, 12), b.weight(8), transB=1), axis=1))
    return b.model()


def batch_norm(b, x, channels):
    positive = lambda: b.constant((0.5 + b.rng.random(channels)).astype(np.float32), "positive")
    return b.add("BatchNormalization", x, positive(), b.weight(channels, scale=0.2), b.weight(channels, scale=0.3), positive(), epsilon=1e-5)


def convolution(b, x, channels_in, channels_out, **attributes):
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], **attributes}
    return b.add("Conv", x, b.weight(channels_out, channels_in, *attributes["kernel_shape"]), b.weight(channels_out, scale=0.1), **attributes)


def cnn(seed):
    b = Builder("cnn", seed)
    x = b.input("image", normal(b, 1, 3, 12, 12))
    x = b.add("Relu", batch_norm(b, convolution(b, x, 3, 8), 8))
    x = b.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    for _ in range(2):
        y = b.add("Relu", batch_norm(b, convolution(b, x, 8, 8), 8))
        y = batch_norm(b, convolution(b, y, 8, 8), 8)
        x = b.add("LeakyRelu", b.add("Add", x, y), alpha=0.1)
    pooled = b.add("Flatten", b.add("GlobalAveragePool", b.add("AveragePool", x, kernel_shape=[2, 2], strides=[1, 1])), axis=1)
    b.output(b.linear(pooled, 8, 5))
    return b.model()


def encoder(seed):
    b, length, width = Builder("encoder", seed), 6, 16
    ids = b.input("ids", b.rng.integers(0, 20, (1, length)))
    mask = b.input("mask", np.array([[1, 1, 1, 1, 0, 0]], np.float32))
    x = b.add("Gather", b.weight(20, width, scale=0.5), ids, axis=0)
    x = layer_norm(b, b.add("Add", x, b.weight(length, width, scale=0.3)), width)
    kept = b.add("Unsqueeze", mask, b.constant(np.array([1, 2], np.int64), "axes"))
    hidden = b.add("Mul", b.add("Sub", b.constant(np.float32(1), "one"), kept), b.constant(np.float32(-10000), "far"))
    for _ in range(2):
        x = layer_norm(b, b.add("Add", x, attention(b, x, length, 2, width, hidden)), width)
        x = layer_norm(b, b.add("Add", x, b.linear(gelu(b, b.linear(x, width, 32)), 32, width)), width)
    b.output(b.linear(x, width, 20))
    return b.model()


def llama(seed):
    b, length, width, heads = Builder("llama", seed), 5, 16, 2
    ids = b.input("input_ids", b.rng.integers(0, 24, (1, length)))
    x = b.add("Gather", b.weight(24, width, scale=0.5), ids, axis=0)
    half = width // heads // 2
    angles = np.outer(np.arange(length), 1.0 / 100 ** (np.arange(half) / half))
    cos, sin = (b.constant(np.concatenate([f(angles), f(angles)], 1).astype(np.float32), f.__name__) for f in (np.cos, np.sin))
    ends = lambda first, last: [b.constant(np.array([value], np.int64), "index") for value in (first, last, 3)]

    def turn(value):
        low, high = b.add("Slice", value, *ends(0, half)), b.add("Slice", value, *ends(half, 2 * half))
        rotated = b.add("Concat", b.add("Neg", high), low, axis=-1)
        return b.add("Add", b.add("Mul", value, cos), b.add("Mul", rotated, sin))

    mask = b.constant(np.triu(np.full((length, length), np.finfo(np.float32).min), 1).astype(np.float32), "mask")
    for _ in range(2):
        x = b.add("Add", x, attention(b, rms_norm(b, x, width), length, heads, width, mask, turn))
        y = rms_norm(b, x, width)
        gate = b.add("MatMul", y, b.weight(width, 32))
        opened = b.add("Mul", b.add("Mul", gate, b.add("Sigmoid", gate)), b.add("MatMul", y, b.weight(width, 32)))
        x = b.add("Add", x, b.add("MatMul", opened, b.weight(32, width)))
    b.output(b.add("MatMul", rms_norm(b, x, width), b.weight(width, 24)))
    return b.model()


def recurrent(seed):
    b, hidden = Builder("recurrent", seed), 6
    x = b.input("frames", normal(b, 5, 1, 4))
    for op, gates, width in (("GRU", 3, 4), ("LSTM", 4, hidden)):
        inputs = [x, b.weight(1, gates * hidden, width, scale=0.5), b.weight(1, gates * hidden, hidden, scale=0.4), b.weight(1, 2 * gates * hidden, scale=0.2)]
        y = b.add(op, *inputs, outputs=2, hidden_size=hidden)[0]
        x = b.add("Squeeze", y, b.constant(np.array([1], np.int64), "axes"))
    x = b.add("Tanh", b.linear(x, hidden, hidden))
    b.output(b.add("ReduceMax", x, axes=[0], keepdims=0))
    return b.model()


def body_of(b, name, seed_offset=0):
    body = Builder(name, 1, parent=b)
    body.rng = b.rng
    return body


def value_info(name, data_type=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, data_type, shape)


def loop(seed):
    b = Builder("loop", seed)
    x = b.input("state", normal(b, 2, 8))
    matrix, step = b.weight(8, 8), b.weight(8, scale=0.3)
    body = body_of(b, "loop_body")
    body.inputs = [value_info("iteration", TensorProto.INT64, []), value_info("keep_in", TensorProto.BOOL, []), value_info("h", shape=[2, 8])]
    moved = body.add("Tanh", body.add("Add", body.add("MatMul", "h", matrix), step))
    mixed = body.add("Add", body.add("Mul", moved, body.constant(np.float32(0.7), "rate")), body.add("Mul", "h", body.constant(np.float32(0.4), "rest")))
    seen = body.add("ReduceSum", mixed, body.constant(np.array([1], np.int64), "axes"), keepdims=0)
    body.outputs = [value_info(body.add("Identity", "keep_in"), TensorProto.BOOL, []), value_info(mixed, shape=[2, 8]), value_info(seen, shape=[2])]
    first = b.add("Relu", b.linear(x, 8, 8))
    last, history = b.add("Loop", b.constant(np.int64(6), "trips"), b.constant(np.bool_(True), "go"), first, outputs=2, body=body.graph())
    b.output(b.add("Sigmoid", b.linear(last, 8, 4)))
    b.output(b.add("Exp", b.add("Mul", history, b.constant(np.float32(0.1), "tenth"))))
    return b.model()


def branch(seed):
    b = Builder("branch", seed)
    x = b.input("x", normal(b, 3, 8))
    x = b.add("Tanh", b.linear(x, 8, 8))
    limit = b.add("Less", b.add("ReduceMean", b.add("Abs", x), keepdims=0), b.constant(np.float32(5), "limit"))
    matrix = b.weight(8, 8)
    branches = {}
    for name, activation in (("then_branch", "Softplus"), ("else_branch", "Elu")):
        body = body_of(b, name)
        inner = body.add(activation, body.add("Add", body.add("MatMul", x, matrix), body.weight(8, scale=0.3)))
        body.outputs = [value_info(body.add("Mul", inner, body.weight(8, scale=1.0)), shape=[3, 8])]
        branches[name] = body.graph()
    y = b.add("If", limit, **branches)
    b.output(b.add("Softmax", b.linear(b.add("Add", y, x), 8, 6), axis=-1))
    return b.model()


def scan(seed):
    b = Builder("scan", seed)
    x = b.input("series", normal(b, 7, 4))
    start = b.constant(np.zeros(4, np.float32), "start")
    body = body_of(b, "scan_body")
    body.inputs = [value_info("state", shape=[4]), value_info("sample", shape=[4])]
    kept = body.add("Mul", "state", body.constant(np.array([0.9, 0.8, 0.7, 0.6], np.float32), "decay"))
    new = body.add("Add", kept, body.add("Mul", "sample", body.weight(4, scale=0.8)))
    bent = body.add("Tanh", new)
    body.outputs = [value_info(new, shape=[4]), value_info(body.add("Sub", bent, kept), shape=[4])]
    _, filtered = b.add("Scan", start, b.add("Mul", x, b.constant(np.float32(1.5), "gain")), outputs=2, body=body.graph(), num_scan_inputs=1)
    b.output(b.linear(b.add("Softsign", filtered), 4, 3))
    return b.model()


def quantized(seed):
    b = Builder("quantized", seed)
    x = b.input("x", normal(b, 2, 8))
    low = lambda value: b.constant(np.float32(value), "q_scale")
    zero = lambda value=0: b.constant(np.uint8(value), "q_zero")

    def requantize(value, scale, point):
        quantized_value = b.add("QuantizeLinear", value, low(scale), zero(point))
        return b.add("DequantizeLinear", quantized_value, low(scale), zero(point))

    x = requantize(x, 0.03, 128)
    for width_in, width_out in ((8, 12), (12, 6)):
        integers = b.constant(b.rng.integers(-100, 100, (width_in, width_out)).astype(np.int8), "q_weight")
        weights = b.add("DequantizeLinear", integers, b.constant((0.004 + 0.002 * b.rng.random(width_out)).astype(np.float32), "w_scale"), b.constant(np.zeros(width_out, np.int8), "w_zero"), axis=1)
        x = b.add("Add", b.add("MatMul", x, weights), b.weight(width_out, scale=0.2))
        x = requantize(b.add("Relu", x) if width_out == 12 else x, 0.02, 10 if width_out == 12 else 120)
    b.output(x)
    return b.model()


def detection(seed):
    b = Builder("detection", seed)
    x = b.input("image", normal(b, 1, 3, 8, 8))
    fine = b.add("Relu", convolution(b, x, 3, 6))
    coarse = b.add("Relu", convolution(b, fine, 6, 6, strides=[2, 2]))
    scales = b.constant(np.array([1, 1, 2, 2], np.float32), "scales")
    grown = b.add("Resize", coarse, "", scales, mode="linear", coordinate_transformation_mode="half_pixel")
    joined = b.add("Concat", fine, grown, axis=1)
    head = convolution(b, joined, 12, 5, kernel_shape=[1, 1], pads=[0, 0, 0, 0])
    rows = b.add("Transpose", b.add("Reshape", head, b.constant(np.array([1, 5, 64], np.int64), "shape")), perm=[0, 2, 1])
    boxes, scores = b.add("Split", rows, b.constant(np.array([4, 1], np.int64), "sizes"), outputs=2, axis=2)
    ranked = b.add("Sigmoid", b.add("Squeeze", scores, b.constant(np.array([2], np.int64), "axes")))
    best, indices = b.add("TopK", ranked, b.constant(np.array([5], np.int64), "count"), outputs=2, axis=1)
    picked = b.add("GatherElements", b.add("Mul", b.add("Tanh", boxes), b.constant(np.float32(4), "reach")), b.add("Expand", b.add("Unsqueeze", indices, b.constant(np.array([2], np.int64), "axes")), b.constant(np.array([1, 5, 4], np.int64), "shape")), axis=1)
    b.output(picked)
    b.output(best)
    return b.model()


def half(seed):
    b = Builder("half", seed)
    x = b.input("x", normal(b, 4, 16))
    x = b.add("Cast", x, to=TensorProto.FLOAT16)
    for activation in ("Relu", "Tanh", "Sigmoid"):
        x = b.add(activation, b.linear(x, 16, 16, dtype=np.float16))
    x = b.add("Softmax", b.linear(x, 16, 6, dtype=np.float16), axis=-1)
    b.output(b.add("Cast", x, to=TensorProto.FLOAT))
    return b.model()


def unet(seed):
    b = Builder("unet", seed)
    x = b.input("noisy", normal(b, 1, 2, 8, 8))
    down = [b.add("Relu", b.add("InstanceNormalization", convolution(b, x, 2, 4), b.constant((1 + 0.2 * normal(b, 4)).astype(np.float32), "gamma"), b.weight(4, scale=0.2), epsilon=1e-5))]
    down.append(b.add("Relu", convolution(b, down[-1], 4, 8, strides=[2, 2])))
    deep = b.add("HardSwish", convolution(b, down[-1], 8, 8, strides=[2, 2]))
    x = deep
    for channels, skip in ((8, down[1]), (4, down[0])):
        width = 8
        x = b.add("ConvTranspose", x, b.weight(width, channels, 2, 2, scale=0.3), kernel_shape=[2, 2], strides=[2, 2])
        x = b.add("Relu", convolution(b, b.add("Concat", x, skip, axis=1), 2 * channels, 8))
    padded = b.add("Pad", x, b.constant(np.array([0, 0, 1, 0, 0, 0, 1, 0], np.int64), "pads"), mode="reflect")
    clipped = b.add("Clip", convolution(b, padded, 8, 2), b.constant(np.float32(-0.8), "least"), b.constant(np.float32(0.8), "most"))
    b.output(clipped)
    return b.model()


def positions(seed):
    """Grouped heads, positions rotated by tables that nodes make of constants, a bias by distance, and a mask of -1e9 that is added."""
    b = Builder("positions", seed)
    x = b.input("x", normal(b, 1, 5, 16))
    angles = b.add("Mul", b.constant(np.arange(5, dtype=np.float32)[:, None], "steps"), b.constant((0.5 ** np.arange(4, dtype=np.float32))[None], "frequencies"))
    tables = {op: b.add("Concat", half, half, axis=1) for op, half in (("Cos", b.add("Cos", angles)), ("Sin", b.add("Sin", angles)))}

    def turn(value):
        low, high = b.add("Split", value, b.constant(np.array([4, 4], np.int64), "two_sizes"), outputs=2, axis=3)
        return b.add("Add", b.add("Mul", value, tables["Cos"]), b.add("Mul", b.add("Concat", b.add("Neg", high), low, axis=3), tables["Sin"]))

    def heads(count):
        value = b.add("Reshape", b.linear(normed, 16, 8 * count), b.constant(np.array([1, 5, count, 8], np.int64), "shape"))
        return b.add("Transpose", value, perm=[0, 2, 1, 3])

    distance = -np.abs(np.arange(5)[:, None] - np.arange(5)[None]).astype(np.float32)
    bias = b.add("Div", b.constant(distance, "distance"), b.constant(np.float32(2), "slope"))
    mask = b.constant(np.triu(np.full((5, 5), -1e9, np.float32), 1), "mask")
    normed = rms_norm(b, x, 16)
    q, k, v = turn(heads(2)), turn(heads(1)), heads(1)
    k, v = (b.add("Expand", value, b.constant(np.array([1, 2, 5, 8], np.int64), "group")) for value in (k, v))
    scores = b.add("Mul", b.add("MatMul", q, b.add("Transpose", k, perm=[0, 1, 3, 2])), b.constant(np.float32(8 ** -0.5), "scale"))
    weights = b.add("Softmax", b.add("Add", b.add("Add", scores, bias), mask), axis=-1)
    mixed = b.add("Reshape", b.add("Transpose", b.add("MatMul", weights, v), perm=[0, 2, 1, 3]), b.constant(np.array([1, 5, 16], np.int64), "shape"))
    x = b.add("Add", x, b.linear(mixed, 16, 16))
    b.output(b.linear(b.add("Tanh", x), 16, 6))
    return b.model()


def nested(seed):
    """An If in a Scan in a Loop, each of which computes."""
    b = Builder("nested", seed)
    x, matrix = b.input("x", normal(b, 4, 6)), b.weight(6, 6)
    outer = body_of(b, "loop_body")
    outer.inputs = [value_info("iteration", TensorProto.INT64, []), value_info("keep_in", TensorProto.BOOL, []), value_info("rows", shape=[4, 6])]
    inner = body_of(outer, "scan_body")
    inner.inputs = [value_info("kept", shape=[6]), value_info("row", shape=[6])]
    mixed = inner.add("Add", inner.add("Mul", "kept", inner.constant(np.float32(0.6), "decay")), "row")
    is_positive = inner.add("Greater", inner.add("ReduceSum", mixed, keepdims=0), inner.constant(np.float32(0), "zero"))
    branches = {}
    for name, op in (("then_branch", "Tanh"), ("else_branch", "Softsign")):
        branch_body = body_of(inner, name)
        scaled = branch_body.add("Mul", branch_body.add(op, mixed), branch_body.weight(6, scale=1.0))
        branch_body.outputs = [value_info(branch_body.add("Add", scaled, branch_body.weight(6, scale=0.2)), shape=[6])]
        branches[name] = branch_body.graph()
    bent = inner.add("If", is_positive, **branches)
    inner.outputs = [value_info(mixed, shape=[6]), value_info(inner.add("Sub", bent, "kept"), shape=[6])]
    _, scanned = outer.add("Scan", outer.constant(np.zeros(6, np.float32), "start"), "rows", outputs=2, body=inner.graph(), num_scan_inputs=1)
    moved = outer.add("Add", outer.add("MatMul", scanned, matrix), "rows")
    size = outer.add("Add", outer.add("ReduceMax", outer.add("Abs", moved), keepdims=1), outer.constant(np.float32(1), "one"))
    outer.outputs = [value_info(outer.add("Identity", "keep_in"), TensorProto.BOOL, []), value_info(outer.add("Div", moved, size), shape=[4, 6])]
    last = b.add("Loop", b.constant(np.int64(4), "trips"), b.constant(np.bool_(True), "go"), b.add("Elu", x), body=outer.graph())
    b.output(b.linear(last, 6, 3))
    return b.model()


def masked(seed):
    """Attention over sequences of unequal lengths: minus infinity where nothing is to be seen, NaN put out of the way, means of what is left."""
    b = Builder("masked", seed)
    x, lengths = b.input("x", normal(b, 2, 5, 12)), b.input("lengths", np.array([5, 3], np.int64))
    axes = lambda value: b.constant(np.array([value], np.int64), "axes")
    steps = b.add("Range", b.constant(np.int64(0), "from"), b.constant(np.int64(5), "to"), b.constant(np.int64(1), "by"))
    kept = b.add("Less", b.add("Unsqueeze", steps, axes(0)), b.add("Unsqueeze", lengths, axes(1)))
    earlier = b.add("Cast", b.add("Trilu", b.constant(np.ones((5, 5), np.float32), "ones"), upper=0), to=TensorProto.BOOL)
    q, k, v = (b.linear(x, 12, 12) for _ in range(3))
    scores = b.add("Div", b.add("MatMul", q, b.add("Transpose", k, perm=[0, 2, 1])), b.constant(np.float32(12 ** 0.5), "root"))
    visible = b.add("And", b.add("Unsqueeze", kept, axes(1)), earlier)
    weights = b.add("Softmax", b.add("Where", visible, scores, b.constant(np.float32(-np.inf), "hidden")), axis=-1)
    weights = b.add("Where", b.add("IsNaN", weights), b.constant(np.float32(0), "nothing"), weights)
    y = b.add("Add", x, b.add("MatMul", weights, v))
    share = b.add("Unsqueeze", b.add("Cast", kept, to=TensorProto.FLOAT), axes(2))
    total = b.add("ReduceSum", b.add("Mul", y, share), axes(1), keepdims=0)
    b.output(b.linear(b.add("Div", total, b.add("ReduceSum", share, axes(1), keepdims=0)), 12, 4))
    b.output(b.add("Sqrt", b.add("Abs", b.add("CumSum", y, b.constant(np.int64(1), "along")))))
    return b.model()


BASE_MODELS = {builder.__name__: builder for builder in (mlp, cnn, encoder, llama, recurrent, loop, branch, scan, quantized, detection, half, unet, positions, nested, masked)}
