#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of the diagnosis, as ratios measured in one run: blame of a model of some 1,000 nodes against its
side-by-side run, for two executors of one model and for two models; and a diff of two dumps of some 5,000 values
against a diff that has nothing to match.

    diagnosis_bench.py --parallax build/release/bin/parallax [--rounds 3]

Times are processor seconds of the whole command, the smallest of the rounds, taken in turns.
"""
import argparse
import pathlib
import resource
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def chain(layers, width, stem, fault=-1):
    """Layers of six nodes: a product, a bias, an activation, a gate, its product and the residual sum."""
    rng = np.random.default_rng(5)
    nodes, weights, last = [], [], f"{stem}x"
    for layer in range(layers):
        name = lambda what: f"{stem}{what}_{layer}"
        scale = 1.5 if layer == fault else 1.0
        weights += [numpy_helper.from_array((scale * rng.standard_normal((width, width)) / width).astype(np.float32), name("w")),
                    numpy_helper.from_array((0.1 * rng.standard_normal(width)).astype(np.float32), name("b"))]
        steps = [("MatMul", [last, name("w")], "product"), ("Add", [name("product"), name("b")], "sum"), ("Tanh", [name("sum")], "bent"),
                 ("Sigmoid", [name("sum")], "gate"), ("Mul", [name("bent"), name("gate")], "gated"), ("Add", [name("gated"), last], "out")]
        nodes += [helper.make_node(op, reads, [name(made)], name=f"{stem}node_{layer}_{made}") for op, reads, made in steps]
        last = name("out")
    shape = [16, width]
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info(f"{stem}x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


def seconds_of(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.returncode


def measure(commands, rounds):
    """Smallest processor time of each command by name; each must end with the exit code that is named with it."""
    best = {}
    for _ in range(rounds):
        for name, (command, wanted) in commands.items():
            seconds, code = seconds_of(command)
            if code != wanted:
                sys.exit(f"{' '.join(command)}: exit code {code}, not {wanted}")
            best[name] = min(best.get(name, seconds), seconds)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallax", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)

        def save(name, *arguments):
            onnx.save(chain(*arguments), str(work / name))
            return str(work / name)

        layers, width = 166, 64
        model, renamed, wrong = save("a.onnx", layers, width, ""), save("b.onnx", layers, width, "t_"), save("c.onnx", layers, width, "t_", 40)
        base = [options.parallax, "run", model, "--json", "--threads", "1"]
        blame = [options.parallax, "blame", model, "--json", "--threads", "1"]
        times = measure({"run": (base + ["--with", "reference", "--against", renamed], 0),
                         "blame": (blame + ["--with", "reference", "--against", wrong], 1)}, options.rounds)
        print(f"two models of {6 * layers} nodes: side-by-side run {times['run']:.3f} s, blame {times['blame']:.3f} s, ratio {times['blame'] / times['run']:.2f}")

        layers, width = 833, 16
        model, renamed = save("d.onnx", layers, width, ""), save("e.onnx", layers, width, "t_")
        both = [options.parallax, "run", model, "--against", renamed, "--with", "reference", "--dump", str(work / "dumps"), "--json"]
        seconds_of(both)
        dumps = [str(work / "dumps" / f"{side}-reference.plx") for side in "AB"]
        diff = lambda a, b: [options.parallax, "diff", a, b, "--json"]
        times = measure({"check": ([options.parallax, "check", dumps[0]], 0), "same": (diff(dumps[0], dumps[0]), 0),
                         "matched": (diff(*dumps), 0)}, options.rounds)
        print(f"two dumps of {6 * layers} values: reading one {times['check']:.3f} s, diff by path {times['same']:.3f} s, "
              f"diff by structure {times['matched']:.3f} s, beyond reading both {times['matched'] - 2 * times['check']:.3f} s")


if __name__ == "__main__":
    main()
