#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One operator at a time next to PyPI onnxruntime: where an operator is far slower, a model of them will, too.

Usage: ort_operators_bench.py PARALLAX [--threads N] [--rounds N] [--only TEXT]... [--part I/N] [--below RATIO]

Needs numpy, onnx and onnxruntime. Both sides measure in turn, for a moment in each round. A ratio is onnxruntime's time
over ours, of the least of the medians: above 1 we are faster. The worst come first; then what one of the two refuses.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import ort_bench  # noqa: E402
import ort_operator_cases  # noqa: E402

SECONDS = 0.08  # of one side in one round


def tensor_of(data, name):
    return data if isinstance(data, onnx.TensorProto) else numpy_helper.from_array(np.asarray(data), name)


def make_model(op, inputs, constants, attributes, special):
    """The model and what it is fed. Constants that are None are left out; those named in "fed" are inputs."""
    names = [name if data is not None else "" for name, data in (inputs | constants).items()]
    fed = inputs | {name: constants[name] for name in special.get("fed", [])}
    outputs = [f"y{index}" for index in range(special.get("outputs", 1))]
    domain = special.get("domain", "")
    nodes = special.get("nodes") or [helper.make_node(op, names, outputs, domain=domain, **attributes)]
    graph = helper.make_graph(
        nodes, "operator",
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(data.dtype), data.shape)
         for name, data in fed.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [tensor_of(data, name) for name, data in constants.items() if data is not None and name not in fed])
    opsets = [helper.make_opsetid("", special.get("opset", 17)), helper.make_opsetid(ort_operator_cases.MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return (model if domain else onnx.shape_inference.infer_shapes(model)), fed


def declare_outputs(model, session):
    """The types that onnxruntime infers, where onnx knows no operator of that domain."""
    for value, known in zip(model.graph.output, session.get_outputs()):
        if not value.type.HasField("tensor_type") or value.type.tensor_type.elem_type == 0:
            name = known.type.removeprefix("tensor(").removesuffix(")").upper()
            value.CopyFrom(helper.make_tensor_value_info(value.name, getattr(onnx.TensorProto, name), None))


def measure(arguments, case, folder):
    """Both sides' least medians, in milliseconds."""
    path, data = folder / "model.onnx", folder / "inputs.npz"
    model, fed = make_model(*case, *([{}] if len(case) == 4 else []))
    onnx.save(model, str(path))
    np.savez(data, **fed)
    session = ort_bench.ort_session(path, arguments.threads)
    declare_outputs(model, session)
    onnx.save(model, str(path))
    theirs, ours = [], []
    for _ in range(arguments.rounds):
        times = ort_bench.ort_times(session, fed, SECONDS)
        theirs.append(statistics.median(times))
        iterations = max(5, min(2000, int(SECONDS * 1e3 / (ours[-1] if ours else theirs[-1]))))
        ours.append(ort_bench.our_times(arguments.program, path, ["--inputs", str(data)], arguments.threads,
                                        iterations)["latency_ms"]["median"])
    return min(theirs), min(ours)


def chosen(arguments):
    names = [name for name in ort_operator_cases.CASES
             if not arguments.only or any(text in name for text in arguments.only)]
    part, parts = (int(number) for number in arguments.part.split("/"))
    return names[part - 1::parts]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PARALLAX")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", action="append", default=[], help="cases whose name holds this")
    parser.add_argument("--part", default="1/1", help="the first of three parts: 1/3")
    parser.add_argument("--below", type=float, default=float("inf"), help="shows ratios below this alone")
    arguments = parser.parse_args()
    rows, refused = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen(arguments):
            try:
                theirs, ours = measure(arguments, ort_operator_cases.CASES[name], pathlib.Path(folder))
                rows.append((theirs / ours, name, theirs, ours))
            except (Exception, SystemExit) as error:  # whichever side it was
                refused.append((name, str(error).strip().splitlines()[-1]))
    print(f"onnxruntime {ort.__version__}, {arguments.threads} threads")
    print(f"{'operator':<34} {'ort ms':>10} {'ours ms':>10} {'ratio':>7}")
    for ratio, name, theirs, ours in sorted(rows):
        if ratio < arguments.below:
            print(f"{name:<34} {theirs:10.4f} {ours:10.4f} {ratio:7.2f}")
    for name, reason in refused:
        print(f"refused: {name}: {reason}")


if __name__ == "__main__":
    main()
