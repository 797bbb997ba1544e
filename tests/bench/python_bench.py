#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of a call from Python, as ratios of interleaved rounds: a small model from numpy, compared with
onnxruntime; torch tensors by DLPack.

python_bench.py [ROUNDS]    needs PYTHONPATH=<build folder>/python, numpy, onnx and onnxruntime; torch for the second table.
"""

import importlib.util
import statistics
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

import parallax

CALLS = 2000


def tiny_model(op="Neg"):
    """y = op(x) of two numbers: nothing but the call itself takes time."""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy"]
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "tiny", value[:1], value[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()


def microseconds(call):
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - begin) / CALLS * 1e6


def compare(title, calls, rounds):
    """Interleaved rounds of each call; prints the median of each and the ratio of the first to the others."""
    for call in calls.values():
        microseconds(call)
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(microseconds(call))
    medians = {name: statistics.median(values) for name, values in times.items()}
    print(title)
    first = next(iter(medians))
    for name, median in medians.items():
        ratio = statistics.median(a / b for a, b in zip(times[first], times[name]))
        print(f"  {name:<32} {median:7.2f} us   {first} / this: {ratio:.2f}")


def numpy_calls():
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model, x = tiny_model(), np.ones(2, np.float32)
    ours = parallax.Session(model)
    theirs = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    assert ours.run({"x": x})["y"].tobytes() == theirs.run(None, {"x": x})[0].tobytes()
    core = ours.core
    return {
        "Session.run": lambda: ours.run({"x": x}),
        "onnxruntime": lambda: theirs.run(None, {"x": x}),
        "Session.run of a list": lambda: ours.run([x]),
        "_core.Session.run": lambda: core.run([x]),
    }


def torch_calls():
    import torch

    session = parallax.Session(tiny_model("Identity"), alias_outputs=True)
    separate = parallax.Session(tiny_model())
    x = torch.ones(2)
    y = session.run({"x": x})["y"]
    assert isinstance(y, torch.Tensor) and y.data_ptr() == x.data_ptr(), "an input is taken and given back without a copy"
    return {
        "torch to torch": lambda: separate.run({"x": x}),
        "torch alone": lambda: torch.neg(x),
        "torch.from_dlpack(Tensor)": lambda: torch.from_dlpack(parallax.Tensor(x)),
    }


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    parallax.set_threads(1)
    if importlib.util.find_spec("onnxruntime"):
        compare("a model of one node, from numpy", numpy_calls(), rounds)
    if importlib.util.find_spec("torch"):
        compare("a model of one node, from torch", torch_calls(), rounds)
    print(f"onnx {onnx.__version__}, numpy {np.__version__}; {rounds} rounds of {CALLS} calls each")


if __name__ == "__main__":
    main()
