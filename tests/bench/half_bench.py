#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models in float16: casts, bytes of weights and errors of ours and of onnxruntime.transformers' float16 converter.

half_bench.py PARALLAX MODEL...               PARALLAX is the program
half_bench.py PARALLAX --overflow MODEL...    models whose range a third input exceeds

Needs PYTHONPATH=<build folder>/python, numpy, onnx and onnxruntime.

A model with a test_data_set_0 next to it runs on that, others on generated inputs; `reference` runs the original and both
conversions, and an error is the worst relative l2 norm of a floating output. A conversion that onnx.checker refuses, that
onnxruntime does not open, or that gives another kind of number than the original (inf, NaN) is named as such.

--overflow takes encoders of ids and a mask (T5's). The matrices of their feed-forward layers are scaled until a value
of one of 20 inputs, which is put third, leaves float16's range, and none of the others does; then until many do. The
nodes that the audit must find are known from onnxruntime's values of all nodes in float32. Conversions with what it keeps,
with the least of it (`minimise`), and by onnxruntime.transformers with nothing kept and with the same nodes kept are
judged on all 20 inputs by `reference`. A missed node, or a conversion of ours that is not finite or beyond the
tolerance, fails.
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


def convert_with_onnxruntime(path, target, keep=()):
    from onnxruntime.transformers.float16 import convert_float_to_float16

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        model = convert_float_to_float16(onnx.load(str(path)), keep_io_types=False, disable_shape_infer=False,
                                         node_block_list=list(keep))
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


SETS, TOLERANCE = 20, 1e-2


def text_inputs(model, count):
    """Sets of random ids and a mask of ones, of lengths 8 to 24."""
    random = np.random.default_rng(0)
    vocabulary = max(tensor.dims[0] for tensor in model.graph.initializer if len(tensor.dims) == 2)
    sets = []
    for _ in range(count):
        ids = random.integers(2, vocabulary, (1, random.integers(8, 25)))
        sets.append({"input_ids": ids, "attention_mask": np.ones_like(ids)})
    return sets


def is_feed_forward(tensor):
    """A matrix between the hidden and the inner size, to tell from square ones and from tables of embeddings."""
    wide = len(tensor.dims) == 2 and max(tensor.dims) in (2 * min(tensor.dims), 4 * min(tensor.dims))
    return wide and tensor.data_type == onnx.TensorProto.FLOAT


def scaled(model, factor):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if is_feed_forward(tensor):
            array = (numpy_helper.to_array(tensor) * factor).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return copy


def largest_values(model, sets):
    """By set: the largest finite magnitude of each float32 value of the main graph, as onnxruntime computes it."""
    import onnxruntime

    types = onnx.shape_inference.infer_shapes(model).graph
    floats = {value.name for value in [*types.value_info, *types.output]
              if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT}
    names = [name for node in model.graph.node for name in node.output if name in floats]
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    present = {value.name for value in whole.graph.output}
    whole.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names if name not in present)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(whole.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = []
    for arrays in sets:
        magnitudes = [np.abs(array[np.isfinite(array)]) for array in session.run(names, arrays)]
        found.append({name: float(of.max(initial=0)) for name, of in zip(names, magnitudes, strict=True)})
    return found


# The lowest number stands for a masked position: a converter may write it as -inf.
LIMIT, MASK = float(np.finfo(np.float16).max), float(np.finfo(np.float32).max)


def worst_of(values):
    return max(value for value in values.values() if value < MASK)


def factor_for_one(model, sets):
    """The factor at which one set alone leaves the range, and the index of that set."""
    low, high = 1e-3, 1e4
    for _ in range(40):
        factor = np.sqrt(low * high)
        found = largest_values(scaled(model, factor), sets)
        beyond = [index for index, values in enumerate(found) if worst_of(values) > LIMIT]
        if len(beyond) == 1:
            return factor, beyond[0]
        low, high = (factor, high) if not beyond else (low, factor)
    sys.exit("no factor makes one set alone leave the range")


def nodes_beyond(model, values):
    """Names of nodes of which an output, or an input that another node computes, leaves float16's range."""
    beyond = {name for of_set in values for name, largest in of_set.items() if LIMIT < largest < MASK}
    return {node.name for node in model.graph.node
            if node.op_type != "Cast" and beyond & {*node.output, *node.input}}


def worst_error(path, sets, originals):
    """The error over all sets, and a text with it and the number of casts; infinite where the reference refuses the model."""
    try:
        error = max(error_of(original, run_on_reference(path, arrays))
                    for original, arrays in zip(originals, sets, strict=True))
    except parallax.Error as failure:
        return float("inf"), f"the reference refuses it: {str(failure)[:90]}"
    return error, f"{casts_of(onnx.load(str(path)).graph):3d} casts, worst error {error:.1e}"


def audited(source, sets, originals, beyond, dtype, minimise):
    """The nodes to keep, and whether none is missed and the conversion that keeps them is right; prints a row."""
    begin = time.perf_counter()
    audit = parallax.audit_fp16(str(source), sets, to=dtype, minimise=minimise, tolerance=TOLERANCE)
    seconds = time.perf_counter() - begin
    must = {entry["node"].split("//")[-1] for entry in audit.nodes if entry["class"] == "must"}
    missed = beyond - must if dtype == "float16" else set()
    target = source.with_name(f"{dtype}-{minimise}.onnx")
    parallax.convert(str(source), dtype, str(target), keep=audit.keep)
    error, text = worst_error(target, sets, originals)
    firsts = sorted({entry["first_input"] for entry in audit.nodes if entry["class"] == "must"})
    print(f"  {dtype:<9} {'minimized' if minimise else 'kept':<10} {len(must):3d} must (first in sets {firsts}),"
          f" {len(missed)} missed, {len(audit.keep):3d} kept, {'verified' if audit.passed else 'NOT VERIFIED'},"
          f" {seconds:.1f} s: {text}", flush=True)
    is_right = not missed and error <= TOLERANCE and audit.passed
    return audit.keep, is_right


def check_overflow(path, title, factor, third, folder):
    """One scaled model in both types: the audit's nodes against onnxruntime's values, then conversions."""
    model = scaled(onnx.load(str(path)), factor)
    source = Path(folder) / "scaled.onnx"
    onnx.save(model, str(source))
    sets = text_inputs(model, SETS)
    sets[2], sets[third] = sets[third], sets[2]
    values = largest_values(model, sets)
    beyond = [index for index, of_set in enumerate(values) if worst_of(of_set) > LIMIT]
    print(f"{path} x{factor:.3g}, {title}: {len(beyond)} of {SETS} sets beyond the range, largest value of set 0"
          f" {worst_of(values[0]):.0f}, of set 2 {worst_of(values[2]):.0f}")
    originals = [run_on_reference(source, arrays) for arrays in sets]
    are_right, keep = True, {}
    for dtype in ("float16", "bfloat16"):
        target = source.with_name("plain.onnx")
        parallax.convert(str(source), dtype, str(target))
        print(f"  {dtype:<9} nothing kept: {worst_error(target, sets, originals)[1]}", flush=True)
        for minimise in (False, True):
            kept, is_right = audited(source, sets, originals, nodes_beyond(model, values), dtype, minimise)
            keep[dtype, minimise] = kept
            are_right = are_right and is_right
        are_right = are_right and len(keep[dtype, True]) <= len(keep[dtype, False])
    for name, kept in (("nothing kept", []), ("ours kept", keep["float16", False]),
                       ("ours minimized", keep["float16", True])):
        target = source.with_name("theirs.onnx")
        convert_with_onnxruntime(source, target, kept)
        text = worst_error(target, sets, originals)[1]
        print(f"  float16   onnxruntime.transformers, {name}: {text}", flush=True)
    return are_right


def overflow_rows(paths):
    are_right = True
    for path in map(Path, paths):
        model = onnx.load(str(path))
        factor, third = factor_for_one(model, text_inputs(model, SETS))
        with tempfile.TemporaryDirectory() as folder:
            for title, times in (("one set", 1.0), ("far beyond", 30.0)):
                are_right = check_overflow(path, title, factor * times, third, folder) and are_right
    print("pass" if are_right else "fail")
    sys.exit(0 if are_right else 1)


def main():
    program, *paths = sys.argv[1:]
    if not paths:
        sys.exit(__doc__)
    if paths[0] == "--overflow":
        overflow_rows(paths[1:])
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
