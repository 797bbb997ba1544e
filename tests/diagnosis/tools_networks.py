#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs exported networks, in the forms that tools make of them, on both executors and against onnxruntime: no alarm.

    tools_networks.py --parallax build/release/bin/parallax [--seed 1] [--architectures a,b] [--forms a,b] [--keep DIR] [--with cpu]

Each network is run by `--with reference,cpu`, the same with `--observe-all`, and by `--with cpu` with onnxruntime's
outputs as expected data; --with names another executor than cpu. Prints each alarm with its command, and a table; ends
with 1 where there is any. An alarm against onnxruntime is onnxruntime's own where it agrees with Parallax once it runs
the same network in another way: with int8 weights written as uint8, the same numbers, whose products do not saturate;
or as it is in the file, without optimizations, whose QLinearSoftmax takes floor(1 / scale) for 1 / scale. onnxruntime
runs on one thread: on several its DynamicQuantizeLSTM quantizes the rows of each for themselves. Needs what
tools_pairs.py needs.
"""
from __future__ import annotations

import argparse
import collections
import copy
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
    from tools.architectures import ARCHITECTURES, Arrays, Exports, number_of, save_arrays
    from tools.forms import FORMS, Source
    from tools.partners import name_nodes
except ImportError as missing:
    print(f"skipped: {missing}; pip install torch transformers onnx onnxruntime onnxscript")
    sys.exit(77)

AS_EXPORTED = "as_exported"
Level = onnxruntime.GraphOptimizationLevel
WAYS = {"both": ["--with", "reference,{}"], "observe_all": ["--with", "reference,{}", "--observe-all"], "expected": ["--with", "{}"]}  # {}: the executor


# The operators of quantized values, with the positions of the weights and their zero points among their inputs.
WEIGHTS = {"QLinearConv": ((3, 5),), "QLinearMatMul": ((0, 2), (3, 5)), "QGemm": ((0, 2), (3, 5)), "MatMulInteger": ((0, 2), (1, 3)), "ConvInteger": ((1, 3),),
           "DynamicQuantizeLSTM": ((1, 9), (2, 11)), "DequantizeLinear": ((0, 2),)}


def as_unsigned(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model of the same numbers: stored int8 weights and their zero points, both 128 larger, as uint8."""
    made = copy.deepcopy(model)
    stored = {tensor.name: tensor for tensor in made.graph.initializer}
    moved: dict[str, onnx.TensorProto] = {}
    for node in made.graph.node:
        for weight, zero_point in WEIGHTS.get(node.op_type, ()):
            tensor = stored.get(node.input[weight])
            if tensor is None or tensor.data_type != TensorProto.INT8:
                continue
            zero = stored.get(node.input[zero_point]) if len(node.input) > zero_point else None
            shape = numpy_helper.to_array(stored[node.input[1]]).shape if node.op_type == "DequantizeLinear" else ()
            for position, values in ((weight, numpy_helper.to_array(tensor)), (zero_point, np.zeros(shape, np.int8) if zero is None else numpy_helper.to_array(zero))):
                name = f"{tensor.name}_unsigned_{position}"
                moved[name] = numpy_helper.from_array((values.astype(np.int16) + 128).astype(np.uint8), name)
                node.input.extend([""] * (position + 1 - len(node.input)))
                node.input[position] = name
    made.graph.initializer.extend(moved.values())
    return made


def onnxruntime_outputs(model: onnx.ModelProto, inputs: Arrays, level: Any = Level.ORT_ENABLE_ALL) -> Arrays:
    """Raises what onnxruntime raises."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.graph_optimization_level, options.intra_op_num_threads = 4, level, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([value.name for value in session.get_outputs()], session.run(None, {value.name: inputs[value.name] for value in session.get_inputs()})))


def write_data_set(folder: pathlib.Path, inputs: Arrays, outputs: Arrays) -> None:
    folder.mkdir(exist_ok=True)
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for index, (name, array) in enumerate(arrays.items()):
            (folder / f"{kind}_{index}.pb").write_bytes(numpy_helper.from_array(np.asarray(array), name).SerializeToString())


def inputs_of(model: onnx.ModelProto, inputs: Arrays) -> Arrays:
    """Those that the model has, in its types: half precision for some."""
    return {value.name: inputs[value.name].astype(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)) for value in model.graph.input}


def answer_of(options: argparse.Namespace, way: str, folder: pathlib.Path, inputs: str) -> tuple[str, str]:
    """The mistake in words, empty for a pass, and the command."""
    command = [options.parallax, "run", str(folder / "model.onnx"), *(word.format(options.executor) for word in WAYS[way]), "--inputs", str(folder / inputs), "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if answer.returncode == 0:
        return "", " ".join(command)
    try:
        document = json.loads(answer.stdout)
    except json.JSONDecodeError:
        document = {}
    wrong = [f"{cause.get('node')}: {cause.get('why')}" for cause in document.get("causes") or []]
    wrong += [f"output {value['path']} is {value['metrics']['rel_l2']:.3g} off" for value in document.get("expected", []) if value["verdict"] == "diverged"]
    return f"exit code {answer.returncode}: {wrong[0] if wrong else answer.stderr[-200:]}", " ".join(command)


def fault_of_onnxruntime(options: argparse.Namespace, folder: pathlib.Path, model: onnx.ModelProto, inputs: Arrays) -> str:
    """How onnxruntime must run the network for Parallax's outputs; empty where no way is known."""
    plain, unsigned = "without its optimizations", "with int8 weights written as uint8, whose products do not saturate"
    for how, other, level in ((unsigned, as_unsigned(model), Level.ORT_ENABLE_ALL), (plain, model, Level.ORT_DISABLE_ALL),
                              (f"{plain}, {unsigned}", as_unsigned(model), Level.ORT_DISABLE_ALL)):
        try:
            write_data_set(folder / "another_way", inputs, onnxruntime_outputs(other, inputs, level))
        except Exception:  # whatever onnxruntime raises: it does not run the network that way
            continue
        if not answer_of(options, "expected", folder, "another_way")[0]:
            return how
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallax", required=True, type=os.path.abspath)
    parser.add_argument("--with", dest="executor", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--architectures", default=",".join(ARCHITECTURES))
    parser.add_argument("--forms", default=f"{AS_EXPORTED},half,qdq,qoperator,dynamic,nbits")
    parser.add_argument("--work", help="keep exports here, for the next run with the same seed")
    parser.add_argument("--keep", help="keep the networks in this folder")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    runs, alarms, others = collections.Counter[str](), collections.Counter[str](), collections.Counter[str]()
    with tempfile.TemporaryDirectory(prefix="parallax-networks-") as scratch:
        exports = Exports(pathlib.Path(options.work or scratch), options.seed)
        for name in options.architectures.split(","):
            export = exports.get(name)
            for form in options.forms.split(",") if export is not None else []:
                folder = pathlib.Path(options.keep or scratch).resolve() / f"{name}-{form}"
                rng = np.random.default_rng(number_of(options.seed, name, form))
                try:
                    source = Source(export.model, export.inputs, name, pathlib.Path(scratch), exports)
                    model = export.model if form == AS_EXPORTED else FORMS[form](source, rng)
                    if model is None:
                        continue
                    name_nodes(model)
                    folder.mkdir(parents=True)
                    onnx.save(model, str(folder / "model.onnx"))
                    inputs = inputs_of(model, export.inputs)
                    save_arrays(folder / "inputs.npz", inputs)
                    write_data_set(folder / "test_data_set_0", inputs, onnxruntime_outputs(model, inputs))
                except Exception as error:  # the tool does not take the network, or onnxruntime does not run what it made
                    print(f"left out: {name} {form}: {type(error).__name__}: {str(error)[:120]}")
                    continue
                for way in WAYS:
                    key = f"{form:12} {way}"
                    runs[key] += 1
                    wrong, command = answer_of(options, way, folder, "test_data_set_0" if way == "expected" else "inputs.npz")
                    if not wrong:
                        continue
                    fault = fault_of_onnxruntime(options, folder, model, inputs) if way == "expected" else ""
                    (others if fault else alarms)[key] += 1
                    print(f"{name} {form} {way}: {wrong}\n    {command}" + (f"\n    onnxruntime's: it agrees {fault}" if fault else ""), flush=True)
    for key, count in sorted(runs.items()):
        print(f"{key:26} {count:4} runs, {alarms[key]} alarms, {others[key]} of onnxruntime's own")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
