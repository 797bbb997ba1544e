#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes random graphs of what is often fused, with what onnxruntime gives without its optimizations, as `parallax test` reads them.

    random_graphs.py -o graphs --count 1000 --seed 1 && parallax test graphs --with cpu

Products with bias and activation, GELU and norms from their parts, attention, convolutions with batch norm and residuals, pools, chains
of pointwise operators and moves; values have several readers, and some of them are outputs too. The same seed gives the same graphs. A
few elements of a thousand graphs may be off where a sum nearly cancels: the suite's limit is relative.
"""
import argparse
import pathlib
import random
import shutil

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

INPUTS = [[2, 5, 8], [1, 7, 16], [2, 6, 24], [1, 4, 8, 8], [2, 3, 9, 10], [3, 16]]
UNARY = ["Relu", "Sigmoid", "Tanh", "Erf", "Neg", "Abs", "Gelu", "HardSwish", "Elu", "LeakyRelu", "Softplus", "Identity"]
LARGEST = 1e4  # numbers beyond are no test of much


class Builder:
    """A graph that grows by patterns applied to values it has."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.nodes, self.initializers, self.inputs, self.feeds, self.shapes = [], [], [], {}, {}
        self.values, self.doubles = [], set()
        for _ in range(self.random.randint(1, 2)):
            self.values.append(self.add_input(self.random.choice(INPUTS)))

    # ---- Parts ----
    def add_input(self, shape):
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.feeds[name] = self.numbers.uniform(-1.5, 1.5, shape).astype(np.float32)
        self.shapes[name] = list(shape)
        return name

    def constant(self, array):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        self.shapes[name] = list(np.shape(array))
        return name

    def weight(self, shape, low=-1.0, high=1.0):
        return self.constant(self.numbers.uniform(low, high, shape).astype(np.float32))

    def scalar(self, number):
        return self.constant(np.float32(number))

    def integers(self, values):
        return self.constant(np.array(values, np.int64))

    def node(self, op, inputs, shape, outputs=1, **attributes):
        number = len(self.nodes)
        names = [f"t{number}_{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"n{number}_{op}", **attributes))
        for name in names:
            self.shapes[name] = list(shape)
        return names[0]

    def same(self, op, *inputs, **attributes):
        """A node whose output has the shape of its first input."""
        return self.node(op, list(inputs), self.shapes[inputs[0]], **attributes)

    def together(self, op, a, b):
        return self.node(op, [a, b], np.broadcast_shapes(self.shapes[a], self.shapes[b]))

    def pick(self, *ranks):
        """One of the latest values of these ranks, in the order of preference; None where there is none."""
        for rank in ranks or (None,):
            found = [value for value in self.values if rank is None or len(self.shapes[value]) == rank]
            if found:
                return self.random.choice(found[-6:])
        return None

    def chance(self, part):
        return self.random.random() < part

    # ---- Patterns ----
    def unary(self):
        x = self.pick()
        kind = self.random.choice(UNARY + ["Exp", "Sqrt", "Clip", "Cast"])
        if kind == "Exp":
            return self.same("Exp", self.same("Clip", x, "", self.scalar(2)))
        if kind == "Sqrt":
            return self.same("Sqrt", self.same("Abs", x))
        if kind == "Clip":
            return self.same("Clip", x, self.scalar(-1), self.scalar(6))
        if kind == "Cast":
            self.doubles.add(double := self.same("Cast", x, to=TensorProto.DOUBLE))
            return self.same("Cast", double, to=TensorProto.FLOAT)
        return self.same(kind, x)

    def fits(self, x, other):
        try:
            joined = np.prod(np.broadcast_shapes(self.shapes[x], self.shapes[other]))
        except ValueError:
            return False
        return joined <= max(np.prod(self.shapes[x]), np.prod(self.shapes[other]))

    def binary(self):
        x = self.pick()
        shape = self.shapes[x]
        others = [value for value in self.values if self.fits(x, value)]
        kind = self.random.random()
        if kind < 0.5:
            other = self.random.choice(others)
        elif kind < 0.75:
            other = self.weight(shape[-1:])
        elif kind < 0.9:
            other = self.scalar(self.random.choice([1, 0, 2, 0.5, -1]))
        else:
            other = self.weight([1] * (len(shape) - 1) + shape[-1:])
        op = self.random.choice(["Add", "Add", "Mul", "Mul", "Sub", "Max", "Min", "Div"])
        if op == "Div":
            return self.together("Div", x, self.together("Add", self.same("Abs", other), self.scalar(1)))
        return self.together(op, *self.random.sample([x, other], 2))

    def activation(self, x):
        kind = self.random.choice(["Relu", "Tanh", "Sigmoid", "gelu", "tanh gelu", "silu"])
        if kind == "gelu":
            erf = self.same("Erf", self.together("Div", x, self.scalar(2**0.5)))
            return self.together("Mul", self.together("Mul", x, self.together("Add", erf, self.scalar(1))), self.scalar(0.5))
        if kind == "tanh gelu":
            cube = self.together("Mul", x, self.together("Mul", x, x))
            inner = self.together("Add", x, self.together("Mul", cube, self.scalar(0.044715)))
            tanh = self.same("Tanh", self.together("Mul", inner, self.scalar((2 / np.pi) ** 0.5)))
            return self.together("Mul", self.together("Mul", x, self.scalar(0.5)), self.together("Add", tanh, self.scalar(1)))
        if kind == "silu":
            return self.together("Mul", x, self.same("Sigmoid", x))
        return self.same(kind, x)

    def linear(self):
        x = self.pick(3, 2)
        if x is None:
            return self.unary()
        shape = self.shapes[x]
        width = self.random.choice([shape[-1], shape[-1], 8, 16, 24])
        y = self.node("MatMul", [x, self.weight([shape[-1], width], -0.4, 0.4)], shape[:-1] + [width])
        if self.chance(0.7):
            y = self.together("Add", *self.random.sample([y, self.weight([width])], 2))
        return self.activation(y) if self.chance(0.5) else y

    def norm(self):
        x = self.pick(3, 2)
        if x is None:
            return self.unary()
        shape = self.shapes[x]
        row, axes, is_layer_norm = shape[:-1] + [1], self.integers([-1]), self.chance(0.5)
        if is_layer_norm:
            x = self.together("Sub", x, self.node("ReduceMean", [x, axes], row))
        square = self.together("Pow", x, self.scalar(2)) if self.chance(0.5) else self.together("Mul", x, x)
        variance = self.node("ReduceMean", [square, axes], row)
        root = self.same("Sqrt", self.together("Add", variance, self.scalar(1e-5)))
        y = self.together("Mul", x, self.same("Reciprocal", root)) if self.chance(0.3) else self.together("Div", x, root)
        y = self.together("Mul", *self.random.sample([y, self.weight(shape[-1:])], 2))
        return self.together("Add", y, self.weight(shape[-1:])) if is_layer_norm else y

    def heads(self, x, count, is_key):
        batch, sequence, hidden = self.shapes[x]
        y = self.node("MatMul", [x, self.weight([hidden, hidden], -0.4, 0.4)], [batch, sequence, hidden])
        if self.chance(0.5):
            y = self.together("Add", y, self.weight([hidden]))
        size = hidden // count
        split = [batch, sequence, count, size]
        y = self.node("Reshape", [y, self.integers([0, 0, count, size] if self.chance(0.5) else split)], split)
        order = [0, 2, 3, 1] if is_key else [0, 2, 1, 3]
        return self.node("Transpose", [y], [split[axis] for axis in order], perm=order)

    def attention(self):
        x = self.pick(3)
        if x is None or self.shapes[x][2] % 4 != 0:
            return self.unary()
        batch, sequence, hidden = self.shapes[x]
        count = self.random.choice([1, 2, 4])
        queries, keys, values = (self.heads(x, count, is_key) for is_key in (False, True, False))
        grid = [batch, count, sequence, sequence]
        if self.chance(0.4):
            queries = self.together("Mul", queries, self.scalar((hidden // count) ** -0.5))
            scores = self.node("MatMul", [queries, keys], grid)
        else:
            scores = self.together(self.random.choice(["Mul", "Div"]), self.node("MatMul", [queries, keys], grid), self.scalar(2))
        if self.chance(0.6):
            masks = [[1, 1, sequence, sequence], [sequence, sequence], [1, 1, 1, sequence]]
            scores = self.together("Add", scores, self.weight(self.random.choice(masks), -3.0, 0.0))
        mixed = self.node("MatMul", [self.same("Softmax", scores, axis=-1), values], [batch, count, sequence, hidden // count])
        joined = self.node("Transpose", [mixed], [batch, sequence, count, hidden // count], perm=[0, 2, 1, 3])
        return self.node("Reshape", [joined, self.integers([0, 0, hidden])], [batch, sequence, hidden])

    def convolution(self):
        x = self.pick(4)
        if x is None:
            return self.unary()
        batch, channels, height, width = self.shapes[x]
        filters, kernel = self.random.choice([channels, 4, 8]), self.random.choice([1, 3])
        group = channels if filters == channels and self.chance(0.25) else 1
        inputs = [x, self.weight([filters, channels // group, kernel, kernel], -0.5, 0.5)]
        if self.chance(0.5):
            inputs.append(self.weight([filters]))
        shape = [batch, filters, height, width]
        y = self.node("Conv", inputs, shape, pads=[kernel // 2] * 4, group=group, kernel_shape=[kernel, kernel])
        if self.chance(0.5):
            scale, bias, mean = (self.weight([filters]) for _ in range(3))
            y = self.same("BatchNormalization", y, scale, bias, mean, self.weight([filters], 0.3, 2.0))
        residuals = [value for value in self.values if self.shapes[value] == shape]
        if residuals and self.chance(0.3):
            y = self.together("Add", y, self.random.choice(residuals))
        return self.same(self.random.choice(["Relu", "HardSwish", "Sigmoid", "LeakyRelu"]), y) if self.chance(0.6) else y

    def pool(self):
        x = self.pick(4)
        if x is None or min(self.shapes[x][2:]) < 4:
            return self.unary()
        batch, channels, height, width = self.shapes[x]
        if self.chance(0.3):
            return self.node("GlobalAveragePool", [x], [batch, channels, 1, 1])
        shape = [batch, channels, height // 2, width // 2]
        return self.node(self.random.choice(["MaxPool", "AveragePool"]), [x], shape, kernel_shape=[2, 2], strides=[2, 2])

    def move(self):
        x = self.pick()
        shape = self.shapes[x]
        kind = self.random.choice(["Transpose", "Reshape", "Concat", "Split", "Slice", "Unsqueeze", "Softmax", "Reduce"])
        if kind == "Transpose":
            order = self.random.sample(range(len(shape)), len(shape))
            return self.node("Transpose", [x], [shape[axis] for axis in order], perm=order)
        if kind == "Reshape":
            return self.node("Reshape", [x, self.integers([-1, shape[-1]])], [int(np.prod(shape[:-1])), shape[-1]])
        if kind == "Concat":
            return self.node("Concat", [x, self.same("Neg", x)], shape[:-1] + [2 * shape[-1]], axis=-1)
        if kind == "Split" and shape[-1] % 2 == 0:
            first = self.node("Split", [x], shape[:-1] + [shape[-1] // 2], outputs=2, axis=-1, num_outputs=2)
            return self.random.choice([first, first[:-1] + "1"])
        if kind == "Slice" and shape[-1] > 2:
            bounds = [self.integers([number]) for number in (1, shape[-1], len(shape) - 1)]
            return self.node("Slice", [x, *bounds], shape[:-1] + [shape[-1] - 1])
        if kind == "Unsqueeze" and len(shape) < 4:
            return self.node("Unsqueeze", [x, self.integers([0])], [1] + shape)
        if kind == "Softmax":
            return self.same("Softmax", x, axis=self.random.randrange(-len(shape), len(shape)))
        op = self.random.choice(["ReduceMean", "ReduceSum", "ReduceMax"])
        return self.node(op, [x, self.integers([-1])], shape[:-1] + [1], keepdims=1)

    # ---- The whole ----
    def grow(self):
        patterns = [self.unary, self.binary, self.binary, self.linear, self.linear, self.norm, self.attention]
        patterns += [self.convolution, self.convolution, self.pool, self.move, self.move]
        for _ in range(self.random.randint(3, 14)):
            self.values.append(self.random.choice(patterns)())

    def model(self):
        """A value without consumers is an output, and now and then one with consumers."""
        read = {name for node in self.nodes for name in node.input}
        made = [name for node in self.nodes for name in node.output]
        outputs = [name for name in made if name not in read or self.chance(0.06)]
        types = [TensorProto.DOUBLE if name in self.doubles else TensorProto.FLOAT for name in outputs]
        results = [helper.make_tensor_value_info(name, kind, self.shapes[name]) for name, kind in zip(outputs, types)]
        graph = helper.make_graph(self.nodes, "random", self.inputs, results, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        onnx.checker.check_model(model, full_check=True)
        return model


def peer_outputs(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def write_case(folder, model, feeds, outputs):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    values = [("input", [feeds[value.name] for value in model.graph.input], model.graph.input), ("output", outputs, model.graph.output)]
    for kind, arrays, infos in values:
        for index, (array, info) in enumerate(zip(arrays, infos)):
            (data / f"{kind}_{index}.pb").write_bytes(numpy_helper.from_array(np.asarray(array), info.name).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", required=True, type=pathlib.Path, help="folder to write; what is in it is removed")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    shutil.rmtree(options.out, ignore_errors=True)
    written, number = 0, 0
    while written < options.count:
        number += 1
        builder = Builder(options.seed * 1_000_000 + number)
        builder.grow()
        model = builder.model()
        outputs = peer_outputs(model, builder.feeds)
        if all(np.all(np.abs(output) < LARGEST) for output in outputs):
            write_case(options.out / f"graph_{number:06d}", model, builder.feeds, outputs)
            written += 1
    print(f"{written} graphs in {options.out}")


if __name__ == "__main__":
    main()
