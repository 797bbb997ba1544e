#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of the executor `reference` next to PyPI onnx's ReferenceEvaluator, on models made here; ratios of one run.

reference_bench.py PARALLAX [--before PARALLAX] [--threads N] [--only NAME]   needs PyPI onnx and numpy
Prints for each model the median latencies and their ratio, then the geometric mean over the models of nets (all but `gemm`); and for
matrix products the rate next to that of numpy's float32 product (OpenBLAS) with the same threads. --before: a program
built from another commit, timed in turn with ours; the least time of it over the least of ours is printed, too.

The nets are the blocks of their kind, small enough that the slower side takes a tenth of a second:
resnet     stem, pool and two residual blocks of 32 and 64 channels, one image of 112 x 112
mobilenet  stem and three inverted residual blocks (expansion 4), one image of 96 x 96
bert       two layers of width 256 (4 heads), two texts of 128 tokens, Gelu by Erf as exporters write it
llama      two layers of width 256 (4 heads, gated units of 768), one prompt of 128 tokens
lstm       a keyword spotter's: 98 frames of 40 features (a second of speech), one sample, 64 units
bilstm     a tagger's: two texts of 64 tokens of 64 features, 96 units each way
gemm       two products of 512 x 512
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FLOAT = 1


class Builder:
    """A graph under construction; weights are drawn from a fixed seed."""

    def __init__(self, numpy, onnx):
        self.numpy, self.onnx = numpy, onnx
        self.random = numpy.random.default_rng(0)
        self.nodes, self.weights = [], []

    def weight(self, *dims):
        scale = 1 / math.sqrt(max(1, dims[-1] if len(dims) == 2 else math.prod(dims[1:])))
        return self.constant((self.random.standard_normal(dims) * scale).astype(self.numpy.float32))

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(self.onnx.numpy_helper.from_array(self.numpy.asarray(array), name))
        return name

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def model(self, dims, output):
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", FLOAT, dims)],
                                  [helper.make_tensor_value_info(output, FLOAT, None)], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def batch_norm(self, x, channels):
        ones = self.numpy.ones(channels, self.numpy.float32)
        return self.node("BatchNormalization", x, *[self.constant(v) for v in (ones, ones * 0, ones * 0, ones)])

    def conv(self, x, channels_in, channels_out, kernel, stride=1, group=1):
        pad = kernel // 2
        y = self.node("Conv", x, self.weight(channels_out, channels_in // group, kernel, kernel), strides=[stride] * 2, pads=[pad] * 4, group=group)
        return self.batch_norm(y, channels_out)

    def heads(self, x, batch, length, count, size):
        shape = self.constant(self.numpy.array([batch, length, count, size], self.numpy.int64))
        return self.node("Transpose", self.node("Reshape", x, shape), perm=[0, 2, 1, 3])

    def attention(self, x, batch, length, count, size):
        width = count * size
        q, k, v = (self.heads(self.node("MatMul", x, self.weight(width, width)), batch, length, count, size) for _ in range(3))
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        scale = self.constant(self.numpy.float32(1 / math.sqrt(size)))
        mixed = self.node("MatMul", self.node("Softmax", self.node("Mul", scores, scale), axis=-1), v)
        shape = self.constant(self.numpy.array([batch, length, width], self.numpy.int64))
        joined = self.node("Reshape", self.node("Transpose", mixed, perm=[0, 2, 1, 3]), shape)
        return self.node("MatMul", joined, self.weight(width, width))


def resnet(b):
    x = b.node("Relu", b.conv("x", 3, 32, 7, 2))
    x = b.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    width = 32
    for stride, out in ((1, 32), (2, 64)):
        y = b.node("Relu", b.conv(x, width, out, 3, stride))
        y = b.conv(y, out, out, 3)
        short = x if stride == 1 and width == out else b.conv(x, width, out, 1, stride)
        x, width = b.node("Relu", b.node("Add", y, short)), out
    return b.model([1, 3, 112, 112], b.node("GlobalAveragePool", x))


def mobilenet(b):
    x = b.node("Relu", b.conv("x", 3, 16, 3, 2))
    width = 16
    for stride, out in ((1, 24), (2, 32), (1, 32)):
        y = b.node("Clip", b.conv(x, width, width * 4, 1), b.constant(b.numpy.float32(0)), b.constant(b.numpy.float32(6)))
        y = b.node("Relu", b.conv(y, width * 4, width * 4, 3, stride, width * 4))
        x, width = b.conv(y, width * 4, out, 1), out
    return b.model([1, 3, 96, 96], b.node("GlobalAveragePool", x))


def bert(b):
    batch, length, count, size = 2, 128, 4, 64
    width = count * size
    x = "x"
    for _ in range(2):
        norm = [b.constant(b.numpy.ones(width, b.numpy.float32)), b.constant(b.numpy.zeros(width, b.numpy.float32))]
        x = b.node("LayerNormalization", b.node("Add", x, b.attention(x, batch, length, count, size)), *norm)
        inner = b.node("MatMul", x, b.weight(width, 4 * width))
        half = b.node("Mul", inner, b.constant(b.numpy.float32(0.5)))
        erf = b.node("Erf", b.node("Mul", inner, b.constant(b.numpy.float32(1 / math.sqrt(2)))))
        gelu = b.node("Mul", half, b.node("Add", erf, b.constant(b.numpy.float32(1))))
        x = b.node("LayerNormalization", b.node("Add", x, b.node("MatMul", gelu, b.weight(4 * width, width))), *norm)
    return b.model([batch, length, width], x)


def llama(b):
    batch, length, count, size = 1, 128, 4, 64
    width = count * size
    x = "x"

    def rms_norm(value):
        mean = b.node("ReduceMean", b.node("Pow", value, b.constant(b.numpy.float32(2))), axes=[-1])
        root = b.node("Reciprocal", b.node("Sqrt", b.node("Add", mean, b.constant(b.numpy.float32(1e-5)))))
        return b.node("Mul", b.node("Mul", value, root), b.constant(b.numpy.ones(width, b.numpy.float32)))

    for _ in range(2):
        x = b.node("Add", x, b.attention(rms_norm(x), batch, length, count, size))
        y = rms_norm(x)
        gate = b.node("MatMul", y, b.weight(width, 3 * width))
        silu = b.node("Mul", gate, b.node("Sigmoid", gate))
        up = b.node("Mul", silu, b.node("MatMul", y, b.weight(width, 3 * width)))
        x = b.node("Add", x, b.node("MatMul", up, b.weight(3 * width, width)))
    return b.model([batch, length, width], x)


def recurrent(b, length, batch, size, hidden, direction):
    ways = 2 if direction == "bidirectional" else 1
    weights = [b.weight(ways, 4 * hidden, size), b.weight(ways, 4 * hidden, hidden), b.constant(b.numpy.zeros((ways, 8 * hidden), b.numpy.float32))]
    return b.model([length, batch, size], b.node("LSTM", "x", *weights, hidden_size=hidden, direction=direction))


def lstm(b):
    return recurrent(b, 98, 1, 40, 64, "forward")


def bilstm(b):
    return recurrent(b, 64, 2, 64, 96, "bidirectional")


def gemm(b):
    return b.model([512, 512], b.node("MatMul", b.node("MatMul", "x", b.weight(512, 512)), b.weight(512, 512)))


MODELS = {f.__name__: f for f in (resnet, mobilenet, bert, llama, lstm, bilstm, gemm)}


def median_ms(call, least_seconds=1.0, least_runs=3):
    times, start = [], time.perf_counter()
    while len(times) < least_runs or (time.perf_counter() - start < least_seconds and len(times) < 50):
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def parallax_ms(program, model, threads, iterations=50, of="median"):
    command = [program, "bench", model, "--with", "reference", "--threads", str(threads), "--iterations", str(iterations), "--json"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: {run.stderr}")
    return json.loads(run.stdout)["latency_ms"][of]


def ratio_to(before, program, model, threads, turns=5):
    times = [[parallax_ms(each, model, threads, of="min") for each in (before, program)] for _ in range(turns)]
    return min(first for first, _ in times) / min(second for _, second in times)


def product_rates(program, folder, threads, numpy, onnx):
    size = 1024
    b = Builder(numpy, onnx)
    path = str(Path(folder) / "product.onnx")
    onnx.save(b.model([size, size], b.node("MatMul", "x", b.weight(size, size))), path)
    ours = parallax_ms(program, path, threads)
    x = numpy.random.default_rng(1).standard_normal((size, size)).astype(numpy.float32)
    theirs = median_ms(lambda: x @ x)
    rate = 2e-6 * size**3
    print(f"product of {size} x {size}, {threads} thread(s): reference {rate / ours:.1f} GFLOP/s, OpenBLAS {rate / theirs:.1f} GFLOP/s, ratio {theirs / ours:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parallax")
    parser.add_argument("--before", metavar="PARALLAX")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", choices=MODELS)
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(options.threads)  # before numpy is loaded
    import numpy
    import onnx
    from onnx.reference import ReferenceEvaluator

    ratios, changes = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, make in MODELS.items():
            if options.only and name != options.only:
                continue
            model = make(Builder(numpy, onnx))
            path = str(Path(folder) / f"{name}.onnx")
            onnx.save(model, path)
            dims = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
            x = numpy.random.default_rng(1).standard_normal(dims).astype(numpy.float32)
            evaluator = ReferenceEvaluator(model)
            theirs = median_ms(lambda: evaluator.run(None, {"x": x}))
            ours = parallax_ms(options.parallax, path, options.threads)
            if name != "gemm":
                ratios.append(theirs / ours)
            print(f"{name:<10} ReferenceEvaluator {theirs:9.2f} ms, reference {ours:9.2f} ms, ratio {theirs / ours:7.2f}", flush=True)
            if options.before:
                changes.append(ratio_to(options.before, options.parallax, path, options.threads))
                print(f"{'':<10} the program before over ours: {changes[-1]:.3f}", flush=True)
        if changes:
            print(f"geometric mean of the program before over ours: {statistics.geometric_mean(changes):.3f}")
        if ratios:
            print(f"geometric mean {statistics.geometric_mean(ratios):.2f}")
        if not options.only:
            product_rates(options.parallax, folder, options.threads, numpy, onnx)


if __name__ == "__main__":
    main()
