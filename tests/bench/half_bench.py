#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models in float16: casts, bytes of weights and errors of ours and of onnxruntime.transformers' float16 converter.

half_bench.py PARALLAX MODEL...    PARALLAX is the program. Needs PYTHONPATH=<build folder>/python, numpy, onnx and onnxruntime.

A model with a test_data_set_0 next to it runs on that, others on generated inputs; `reference` runs the original and both
conversions, and an error is the worst relative l2 norm of a floating output. A conversion that onnx.checker refuses, that
onnxruntime does not open, or that gives another kind of number than the original (inf, NaN) is named as such.
"""

import contextlib
import io
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

import parallax


def casts_of(graph):
    """Cast nodes of a graph and of all graphs in it."""
    count = 0
    for node in graph.node:
        count += node.op_type == "Cast"
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                count += casts_of(attribute.g)
    return count


def weight_bytes(model):
    return sum(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)).itemsize * int(np.prod(tensor.dims))
               for tensor in model.graph.initializer)


def inputs_of(model, folder):
    """Arrays by input name: of the data set, or drawn with a fixed seed."""
    names = [value.name for value in model.graph.input if value.name not in {item.name for item in model.graph.initializer}]
    files = [folder / "test_data_set_0" / f"input_{index}.pb" for index in range(len(names))]
    if all(file.exists() for file in files):
        return {name: numpy_helper.to_array(onnx.load_tensor(str(file))) for name, file in zip(names, files, strict=True)}
    random = np.random.default_rng(0)
    arrays = {}
    for value in model.graph.input:
        if value.name not in names:
            continue
        shape = [dim.dim_value or 2 for dim in value.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        arrays[value.name] = (random.standard_normal(shape) if dtype.kind == "f" else np.ones(shape)).astype(dtype)
    return arrays


def run_on_reference(path, arrays):
    model = onnx.load(str(path), load_external_data=False)
    wanted = {value.name: onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
              for value in model.graph.input}
    feeds = {name: array.astype(wanted[name]) if array.dtype.kind == "f" else array for name, array in arrays.items()}
    outputs = parallax.Session(str(path), "reference").run(feeds)
    return {name: np.asarray(outputs[name]) for name in (value.name for value in model.graph.output)}


def error_of(original, other):
    """The worst relative l2 error of a floating output; infinite where a finite number is lost."""
    worst = 0.0
    for name, a in original.items():
        if a.dtype.kind != "f":
            continue
        a, b = a.astype(np.float64), np.asarray(other[name]).astype(np.float64)
        if (np.isfinite(a) != np.isfinite(b)).any():
            return float("inf")
        finite = np.isfinite(a)
        norm = np.linalg.norm(a[finite])
        difference = np.linalg.norm(a[finite] - b[finite])
        worst = max(worst, difference / norm if norm else (0.0 if difference == 0 else float("inf")))
    return worst


def opens_in_onnxruntime(path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def convert_with_onnxruntime(path, target):
    from onnxruntime.transformers.float16 import convert_float_to_float16

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        model = convert_float_to_float16(onnx.load(str(path)), keep_io_types=False, disable_shape_infer=False)
    onnx.save(model, str(target))


def convert_with_ours(program, path, target):
    subprocess.run([program, "convert", str(path), "--to", "float16", "-o", str(target)], check=True, capture_output=True)


def describe(convert, path, target, original, arrays):
    """One row: Cast nodes, MB of weights, seconds, error or what went wrong."""
    begin = time.perf_counter()
    try:
        convert(path, target)
    except Exception as error:  # noqa: BLE001 - whatever a converter raises is its result
        return f"does not convert: {str(error).splitlines()[0][:60]}"
    seconds = time.perf_counter() - begin
    model = onnx.load(str(target))
    row = f"{casts_of(model.graph):4d} casts {weight_bytes(model) / 1e6:8.1f} MB {seconds:7.2f} s"
    for what, judge in (("onnx.checker", lambda: onnx.checker.check_model(str(target), full_check=True)),
                        ("onnxruntime", lambda: opens_in_onnxruntime(target))):
        try:
            judge()
        except Exception as error:  # noqa: BLE001
            return f"{row}  {what} refuses it: {str(error).splitlines()[0][:80]}"
    try:
        return f"{row}  error {error_of(original, run_on_reference(target, arrays)):.2e}"
    except parallax.Error as error:
        return f"{row}  the reference refuses it: {str(error)[:80]}"


def main():
    program, *paths = sys.argv[1:]
    if not paths:
        sys.exit(__doc__)
    for path in map(Path, paths):
        model = onnx.load(str(path))
        arrays = inputs_of(model, path.parent)
        original = run_on_reference(path, arrays)
        print(f"{path}: {casts_of(model.graph)} casts, {weight_bytes(model) / 1e6:.1f} MB")
        with tempfile.TemporaryDirectory() as folder:
            for name, convert in (("parallax", lambda source, target: convert_with_ours(program, source, target)),
                                  ("onnxruntime", convert_with_onnxruntime)):
                target = Path(folder) / f"{name}.onnx"
                print(f"  {name:<12}{describe(convert, path, target, original, arrays)}", flush=True)


if __name__ == "__main__":
    main()
