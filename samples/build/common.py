# SPDX-License-Identifier: Apache-2.0
"""Shared by the sample builders: seeded values, and a model written with the inputs and outputs of one run next to it."""
import argparse
import pathlib
import re
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

SAMPLES = pathlib.Path(__file__).resolve().parent.parent


def options(description, **defaults):
    """Command-line options of a builder: --out, and one integer option for each of `defaults`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=SAMPLES, help="folder that the sample's folder is put into")
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value, help=f"default {value}")
    return parser.parse_args()


def generator(name, seed=0):
    """One stream a name, so that a weight keeps its values when others are added before it."""
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))


def normal(name, shape, scale=1.0):
    return (generator(name).standard_normal(shape) * scale).astype(np.float32)


def uniform(name, shape, low, high):
    return generator(name).uniform(low, high, shape).astype(np.float32)


class GraphBuilder:
    """Collects nodes and initializers of one graph; each method answers the name of what it made."""

    def __init__(self):
        self.nodes, self.initializers = [], []

    def weight(self, name, values):
        self.initializers.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, op, inputs, name, outputs=None, **attributes):
        outputs = outputs or [f"{name}_output"]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=name, **attributes))
        return outputs[0]

    def model(self, name, inputs, outputs, opset, ir_version):
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], producer_name="parallax-samples")
        model.ir_version = ir_version
        onnx.checker.check_model(model, full_check=True)
        return model


def write_model(model, folder, feeds, file_name="model.onnx", expected=None, tolerance=1e-4):
    """Writes the model and test_data_set_0. `expected` (name -> array, e.g. by torch) is checked against onnxruntime's answer;
    without it that answer is what is written."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name
    path.write_bytes(model.SerializeToString(deterministic=True))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    actual = dict(zip(names, session.run(None, feeds)))
    for name, values in (expected or {}).items():
        np.testing.assert_allclose(actual[name], values, rtol=tolerance, atol=tolerance, err_msg=name)
    write_data_set(folder / "test_data_set_0", feeds, expected or actual)
    print(f"{path}: {path.stat().st_size} bytes, {len(model.graph.node)} nodes, outputs {names}")
    return actual


def write_data_set(folder, feeds, outputs):
    folder.mkdir(parents=True, exist_ok=True)
    for kind, tensors in (("input", feeds), ("output", outputs)):
        for i, (name, values) in enumerate(tensors.items()):
            (folder / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(values), name).SerializeToString())


def shorten_traces(nodes, keep_frames):
    """Leaves file name, line and function of the last `keep_frames` frames of each stack trace: neither the folders of one
    machine nor quoted source lines."""
    for node in nodes:
        for entry in node.metadata_props:
            if entry.key == "pkg.torch.onnx.stack_trace":
                frames = re.findall(r'File "(?:[^"]*/)?([^"/]*)"(, line \d+, in \S+)', entry.value)
                entry.value = "\n".join(f'  File "{file}"{where}' for file, where in frames[-keep_frames:])
        for attribute in node.attribute:
            shorten_traces(attribute.g.node, keep_frames)
