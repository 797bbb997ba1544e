#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products of few rows, whose time is that of reading the weights: the share of a plain read that each type reaches.

row_bench.py [--rows 1 2 4] [--only NAME] [--rounds N]      a table of products
row_bench.py --decode MODEL.onnx... [--past N] [--rounds N]  a step of decoders with a key/value cache, which is copied

Needs PYTHONPATH=<build folder>/python, numpy, onnx, ml_dtypes and onnxruntime. Two threads each; the plain read,
parallax and onnxruntime take turns, and each figure is a ratio of medians. A ratio is onnxruntime's time over ours:
above 1 we are faster.
"""

import argparse
import concurrent.futures
import pathlib
import statistics
import time

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T
from onnx import helper

import parallax

THREADS = 2
WIDTH = 2048  # of the square matrices
MEGABYTES = 96  # of all matrices of a model: three times what the caches hold


class Graph:
    """Square matrices, one after the other."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def constant(self, array, kind=None):
        name = f"w{len(self.weights)}"
        kind = kind or helper.np_dtype_to_tensor_dtype(array.dtype)
        packed = kind in (T.INT4, T.UINT4)
        shape = (*array.shape[:-1], array.shape[-1] * 2) if packed else array.shape
        self.weights.append(helper.make_tensor(name, kind, shape, array.tobytes(), raw=True))
        return name

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"{op}{len(self.nodes)}_{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def values(self, *shape):
        return self.rng.standard_normal(shape, np.float32) / np.sqrt(np.float32(WIDTH))

    def bytes(self, *shape):
        return np.frombuffer(self.rng.bytes(int(np.prod(shape))), np.uint8).reshape(shape)

    def model(self, output, kind, rows):
        value = [helper.make_tensor_value_info(name, kind, [rows, WIDTH]) for name in ("x", output)]
        graph = helper.make_graph(self.nodes, "rows", value[:1], value[1:], self.weights)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def floats(kind):
    def layer(graph, x):
        return graph.node("MatMul", x, graph.constant(graph.values(WIDTH, WIDTH).astype(kind)))
    return layer


def columns(graph, x):
    return graph.node("Gemm", x, graph.constant(graph.values(WIDTH, WIDTH)), transB=1)


def few_bits(bits, size):
    def layer(graph, x):
        blocks = WIDTH // size
        quantized = graph.constant(graph.bytes(WIDTH, blocks, size * bits // 8))
        scales = graph.constant(np.full((WIDTH, blocks), 4.0 / 2**bits / np.sqrt(WIDTH), np.float32))
        attributes = {"K": WIDTH, "N": WIDTH, "bits": bits, "block_size": size}
        return graph.node("MatMulNBits", x, quantized, scales, domain="com.microsoft", **attributes)
    return layer


def dynamic(graph, x):
    quantized, scale, zero = graph.node("DynamicQuantizeLinear", x, outputs=3)
    weights = graph.constant(graph.bytes(WIDTH, WIDTH).view(np.int8))
    sums = graph.node("Cast", graph.node("MatMulInteger", quantized, weights, zero), to=T.FLOAT)
    weight_scale = graph.constant(np.float32(0.01 / np.sqrt(WIDTH)).reshape(()))
    return graph.node("Mul", graph.node("Mul", sums, scale), weight_scale)


def qlinear(graph, x):
    one, zero = graph.constant(np.float32(0.05).reshape(())), graph.constant(np.uint8(128).reshape(()))
    scale, middle = graph.constant(np.float32(0.0003).reshape(())), graph.constant(np.int8(0).reshape(()))
    quantized = graph.node("QuantizeLinear", x, one, zero)
    weights = graph.constant(graph.bytes(WIDTH, WIDTH).view(np.int8))
    product = graph.node("QLinearMatMul", quantized, one, zero, weights, scale, middle, one, zero)
    return graph.node("DequantizeLinear", product, one, zero)


def dequantized_bytes(graph, x):
    weights = graph.constant(graph.bytes(WIDTH, WIDTH).view(np.int8))
    scales = graph.constant(np.full(WIDTH, 0.01 / np.sqrt(WIDTH), np.float32))
    return graph.node("MatMul", x, graph.node("DequantizeLinear", weights, scales, axis=1))


def dequantized_four(graph, x):
    weights = graph.constant(graph.bytes(WIDTH, WIDTH // 2), T.INT4)
    scales = graph.constant(np.full((WIDTH // 32, WIDTH), 0.2 / np.sqrt(WIDTH), np.float32))
    return graph.node("MatMul", x, graph.node("DequantizeLinear", weights, scales, axis=0, block_size=32))


# A layer's weights, the bits of a weight, and the type of its activations.
CASES = {
    "float32": (floats(np.float32), 32, T.FLOAT),
    "float32 transB": (columns, 32, T.FLOAT),
    "float16": (floats(np.float16), 16, T.FLOAT16),
    "bfloat16": (floats(ml_dtypes.bfloat16), 16, T.BFLOAT16),
    "MatMulNBits 8, block 32": (few_bits(8, 32), 8, T.FLOAT),
    "MatMulNBits 8, block 128": (few_bits(8, 128), 8, T.FLOAT),
    "MatMulNBits 4, block 32": (few_bits(4, 32), 4, T.FLOAT),
    "MatMulNBits 4, block 128": (few_bits(4, 128), 4, T.FLOAT),
    "MatMulInteger, dynamic": (dynamic, 8, T.FLOAT),
    "QLinearMatMul": (qlinear, 8, T.FLOAT),
    "DequantizeLinear int8": (dequantized_bytes, 8, T.FLOAT),
    "DequantizeLinear int4": (dequantized_four, 4, T.FLOAT),
}


def onnxruntime_session(model):
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = THREADS, 1, 4
    try:
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # pylint: disable=broad-except  # its classes have no public name
        if "NOT_IMPLEMENTED" in str(error) or "INVALID_GRAPH" in str(error):
            return None
        raise


class PlainRead:
    """The bytes of the weights read once by two threads."""

    def __init__(self, size):
        self.parts = np.array_split(np.ones(size // 4, np.float32), THREADS)
        self.pool = concurrent.futures.ThreadPoolExecutor(THREADS - 1)

    def __call__(self):
        others = [self.pool.submit(np.dot, part, part) for part in self.parts[1:]]
        np.dot(self.parts[0], self.parts[0])
        for other in others:
            other.result()


def milliseconds(call):
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e3


def in_turns(calls, rounds):
    """The median of each call's times, in milliseconds. A turn begins when the others' threads look out no more."""
    times = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            time.sleep(0.02)
            call()
            times[name] += [milliseconds(call) for _ in range(5)]
    return {name: statistics.median(values) for name, values in times.items()}


def measure_products(name, rows, rounds):
    layer, bits, kind = CASES[name]
    graph, x = Graph(), "x"
    layers = MEGABYTES * 2**20 * 8 // bits // WIDTH**2
    for _ in range(layers):
        x = layer(graph, x)
    model = graph.model(x, kind, rows).SerializeToString()
    values = graph.rng.standard_normal((rows, WIDTH), np.float32)
    feed = {"x": values.astype(helper.tensor_dtype_to_np_dtype(kind))}
    ours, theirs = parallax.Session(model), onnxruntime_session(model)
    calls = {"read": PlainRead(layers * WIDTH**2 * bits // 8), "ours": lambda: ours.run(feed)}
    if theirs is not None:
        calls["theirs"] = lambda: theirs.run(None, feed)
    times = in_turns(calls, rounds)
    ratio = f"{times['theirs'] / times['ours']:8.2f}" if theirs is not None else "       -"
    speed = MEGABYTES * 2**20 / times["read"] / 1e6
    share = times["read"] / times["ours"]
    print(f"{name:<26} {rows:4} {speed:9.1f} {times['ours']:9.2f} {share:9.2f} {ratio}", flush=True)


def decoder_feed(session, past):
    """One token after `past` others."""
    rng = np.random.default_rng(0)
    feed = {}
    for value in session.get_inputs():
        if len(value.shape) == 4:
            shape = [size if isinstance(size, int) else (1, 0, past)[i] for i, size in enumerate(value.shape)]
            kind = np.float16 if "float16" in value.type else np.float32
            feed[value.name] = rng.standard_normal(shape, np.float32).astype(kind)
        else:
            length = past + 1 if "mask" in value.name else 1
            fill = {"attention_mask": 1, "position_ids": past}.get(value.name, 7)
            feed[value.name] = np.full((1, length), fill, np.int64)
    return feed


def weight_bytes(path):
    """The bytes that a step reads: all weights but tables of embeddings, of which it takes a row."""
    graph = onnx.load(str(path), load_external_data=False).graph
    tables = {node.input[0] for node in graph.node if node.op_type == "Gather"}
    used = [weight for weight in graph.initializer if weight.name not in tables]
    sizes = [helper.tensor_dtype_to_np_dtype(weight.data_type).itemsize for weight in used]
    return sum(int(np.prod(weight.dims)) * size for weight, size in zip(used, sizes, strict=True))


def measure_decoder(path, past, rounds):
    ours, theirs = parallax.Session(str(path)), onnxruntime_session(str(path))
    feed = decoder_feed(theirs, past)
    expected, found = theirs.run(None, feed), ours.run(feed)
    pair = [logits.astype(np.float32) for logits in (expected[0], next(iter(found.values())))]
    difference = np.abs(pair[0] - pair[1]).max()
    calls = {"read": PlainRead(weight_bytes(path)), "ours": lambda: ours.run(feed)}
    calls["theirs"] = lambda: theirs.run(None, feed)
    times = in_turns(calls, rounds)
    share, name = times["read"] / times["ours"], f"{path.parent.name}/{path.name}"
    print(f"{name:<30} {past:5} {times['ours']:9.3f} {share:9.2f} "
          f"{times['theirs'] / times['ours']:8.2f}   differ by {difference:.1e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--decode", type=pathlib.Path, nargs="+", default=[], metavar="MODEL")
    parser.add_argument("--past", type=int, nargs="+", default=[32, 80])
    arguments = parser.parse_args()
    parallax.set_threads(THREADS)
    print(f"onnxruntime {ort.__version__}, {THREADS} threads, {arguments.rounds} rounds")
    if arguments.decode:
        print(f"{'a step of':<30} {'past':>5} {'ours ms':>9} {'of a read':>9} {'ratio':>8}")
        for path in arguments.decode:
            for past in arguments.past:
                measure_decoder(path, past, arguments.rounds)
        return
    print(f"{'weights':<26} rows {'read GB/s':>9} {'ours ms':>9} {'of a read':>9} {'ratio':>8}")
    for name in CASES:
        for rows in arguments.rows:
            if arguments.only in name:
                measure_products(name, rows, arguments.rounds)


if __name__ == "__main__":
    main()
