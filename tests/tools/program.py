# SPDX-License-Identifier: Apache-2.0
"""Shared by the tools here: calling the built `parallax`, and reading models, data sets and node names as it does."""
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import numpy_helper

FLOATS = {"float16", "bfloat16", "float32", "float64"}


class Parallax:
    def __init__(self, path, threads=None):
        self.path, self.threads = str(path), threads

    def __call__(self, *arguments):
        """(exit code, stdout, stderr); a signal is an error of the program and ends the tool."""
        command = [self.path, *map(str, arguments), *(["--threads", str(self.threads)] if self.threads else [])]
        run = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600)
        if run.returncode < 0:
            sys.exit(f"killed by signal {-run.returncode}: {' '.join(command)}\n{run.stderr[-2000:]}")
        return run.returncode, run.stdout, run.stderr

    def json(self, *arguments):
        """(exit code, document)"""
        code, out, err = self(*arguments, "--json")
        try:
            return code, json.loads(out)
        except json.JSONDecodeError:
            sys.exit(f"no JSON document from: {self.path} {' '.join(map(str, arguments))} --json\n{out[-500:]}\n{err[-2000:]}")


def cases(folders):
    """(model, [data set folders]) of every model.onnx at any depth."""
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("model.onnx")):
            yield path, sorted(path.parent.glob("test_data_set_*"))


def read_tensors(folder, kind):
    """name -> array, of a data set's `input` or `output` files."""
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda f: int(f.stem.rpartition("_")[2]))
    tensors = [onnx.load_tensor(str(f)) for f in files]
    return {t.name: numpy_helper.to_array(t) for t in tensors}


def node_names(graph):
    """The name Parallax gives each node: its own, `<Op>_<index>` without one, with #2, #3 when repeated."""
    names, seen = [], {}
    for index, node in enumerate(graph.node):
        name = node.name or f"{node.op_type}_{index}"
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return names


def frame(node_name, body, iteration=None):
    text = node_name.replace("%", "%25").replace("//", "%2F%2F")
    return f"{text}.{body}" + (f"[{iteration}]" if iteration is not None else "")


def subgraphs(node):
    return [(a.name, a.g) for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]


def with_all_outputs(model, only=None):
    """A copy whose outputs are all values of the top graph (or those in `only`)."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    known = {o.name for o in copy.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in known and (only is None or name in only):
                copy.graph.output.append(onnx.ValueInfoProto(name=name))
                known.add(name)
    return copy


def peer_values(model_path, feeds, peer="onnxruntime"):
    """name -> array of every top-level value, by onnxruntime or by onnx's ReferenceEvaluator."""
    if peer == "reference":
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(with_all_outputs(onnx.load(str(model_path))))
        names = evaluator.output_names
        return dict(zip(names, evaluator.run(None, {k: v for k, v in feeds.items() if k in evaluator.input_names})))
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    model = with_types(with_all_outputs(onnx.load(str(model_path))))
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    known = {i.name for i in session.get_inputs()}
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, {k: v for k, v in feeds.items() if k in known})))


def with_types(model):
    """onnxruntime wants the type of each output: from inference, without shapes that a file may state wrongly."""
    inferred = onnx.shape_inference.infer_shapes(model)
    types = {v.name: v.type for v in [*inferred.graph.value_info, *inferred.graph.output, *inferred.graph.input]}
    kept = []
    for output in model.graph.output:
        if not output.HasField("type") and output.name in types:
            output.type.CopyFrom(types[output.name])
            if output.type.HasField("tensor_type"):
                output.type.tensor_type.ClearField("shape")
        if output.HasField("type") and not (output.type.HasField("tensor_type") and output.type.tensor_type.elem_type == 0):
            kept.append(output)
    del model.graph.output[:]
    model.graph.output.extend(kept)
    return model


def all_equal(values):
    flat = np.asarray(values, np.float64).ravel()
    return flat.size > 0 and bool((flat == flat[0]).all() or np.isnan(flat).all())
