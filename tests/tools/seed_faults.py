#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes one element of one weight and asks `parallax run A --against B` where the two models part: exit code 1, and the first
divergence at the node that reads the weight. For several weights of each model, those read inside bodies included.

    seed_faults.py --parallax build/release/bin/parallax --weights 6 FOLDER...

A weight whose change has no effect on the value its reader makes (a row of a table that no id picks) is passed over; onnxruntime
says so for readers in the top graph; inside bodies no computed value may have diverged.
"""
import argparse
import pathlib
import random
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

from program import Parallax, cases, node_names, peer_values, read_tensors, subgraphs


def readers(graph, name, depth=0):
    """(node name, depth, node) of each node that reads the value, in execution order, bodies included."""
    for node, node_name in zip(graph.node, node_names(graph)):
        if name in node.input:
            yield node_name, depth, node
        for _, body in subgraphs(node):
            yield from readers(body, name, depth + 1)


def candidates(graph):
    """Float weights of the graph and of its bodies with their first reader."""
    for tensor in graph.initializer:
        if tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE):
            found = list(readers(graph, tensor.name))
            if found and tensor.dims and np.prod(tensor.dims) > 1:
                yield tensor, found
    for node in graph.node:
        for _, body in subgraphs(node):
            yield from candidates(body)


def change(tensor, rng):
    """Moves one element by the size of the largest; answers its index."""
    values = numpy_helper.to_array(tensor).copy()
    index = rng.randrange(values.size)
    values.flat[index] += np.abs(values).max() + 0.25
    changed = numpy_helper.from_array(values, tensor.name)
    tensor.CopyFrom(changed)
    return np.unravel_index(index, values.shape)


def has_effect(a_values, b_path, feeds, node):
    b_values = peer_values(b_path, feeds)
    return any(name in b_values and not np.allclose(a_values[name], b_values[name], rtol=1e-2, atol=1e-4) for name in node.output if name in a_values)


def judge(parallax, path, inputs, number, options, folder):
    """A line of text when Parallax is wrong about weight `number` of the model, '' when it is right, None when passed over."""
    model = onnx.load(str(path))
    tensor, found = list(candidates(model.graph))[number]
    rng = random.Random(f"{path.name} {tensor.name} {options.seed}")
    index = change(tensor, rng)
    changed = folder / "B.onnx"
    onnx.save(model, str(changed))
    node_name, depth, node = found[0]
    if depth == 0 and not has_effect(peer_values(path, read_tensors(inputs, "input")), changed, read_tensors(inputs, "input"), node):
        return None
    allowed = {name for name, reader_depth, _ in found if reader_depth or depth} or {node_name}
    arguments = ["run", path, "--against", changed, "--with", options.executors, "--inputs", inputs]
    code, document = parallax.json(*arguments)
    first = document.get("first_divergence") or {}
    if code == 1 and first.get("node") in allowed | {node_name}:
        print(f"  ok {tensor.name}{[int(i) for i in index]} read by {node_name}: {first['path']}")
        return ""
    led_astray = [v for v in document.get("values", []) if v["verdict"] == "diverged" and v["path"].rpartition("//")[2] != tensor.name]
    if depth and not led_astray:
        return None  # the branch that reads it was not taken, or what it is multiplied with is zero
    return f"{tensor.name}{[int(i) for i in index]} read by {node_name}: exit code {code}, {first or document.get('error')}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallax", required=True)
    parser.add_argument("--with", dest="executors", default="reference")
    parser.add_argument("--weights", type=int, default=6, help="weights tried for each model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("folders", nargs="+")
    options = parser.parse_args()
    parallax, wrong, right, passed_over = Parallax(options.parallax), 0, 0, 0
    for path, data_sets in cases(options.folders):
        count = len(list(candidates(onnx.load(str(path)).graph)))
        numbers = random.Random(options.seed).sample(range(count), min(count, options.weights))
        print(f"{path}: {count} weights")
        for number in numbers:
            with tempfile.TemporaryDirectory() as folder:
                line = judge(parallax, path, data_sets[0], number, options, pathlib.Path(folder))
            wrong, right, passed_over = wrong + bool(line), right + (line == ""), passed_over + (line is None)
            if line:
                print(f"  WRONG {line}")
    print(f"{right} right, {wrong} wrong, {passed_over} without effect")
    sys.exit(1 if wrong or not right else 0)


if __name__ == "__main__":
    main()
