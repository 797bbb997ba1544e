#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs exported networks, in the forms that tools make of them, on both executors and against onnxruntime: no alarm.

    tools_networks.py --parallax build/release/bin/parallax [--seed 1] [--architectures a,b] [--forms a,b] [--keep DIR]

Each network is run by `--with reference,cpu`, the same with `--observe-all`, and by `--with cpu` with onnxruntime's
outputs as expected data. Prints each alarm with its command, and a table; ends with 1 where there is any. Needs what
tools_pairs.py needs.
"""
from __future__ import annotations

import argparse
import collections
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import numpy_helper
    from tools.architectures import ARCHITECTURES, Arrays, Exports, number_of, save_arrays
    from tools.forms import FORMS, Source
    from tools.partners import name_nodes
except ImportError as missing:
    print(f"skipped: {missing}; pip install torch transformers onnx onnxruntime onnxscript")
    sys.exit(77)

AS_EXPORTED = "as_exported"
WAYS = {"both": ["--with", "reference,cpu"], "observe_all": ["--with", "reference,cpu", "--observe-all"], "expected": ["--with", "cpu"]}


def write_data_set(folder: pathlib.Path, model: onnx.ModelProto, inputs: Arrays) -> None:
    """Inputs and onnxruntime's outputs as test_data_set_0. Raises what onnxruntime raises."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    folder.mkdir()
    given = [value.name for value in session.get_inputs()]
    made = session.run(None, {name: inputs[name] for name in given})
    for kind, names, arrays in (("input", given, [inputs[name] for name in given]), ("output", [value.name for value in session.get_outputs()], made)):
        for index, (name, array) in enumerate(zip(names, arrays)):
            (folder / f"{kind}_{index}.pb").write_bytes(numpy_helper.from_array(np.asarray(array), name).SerializeToString())


def answer_of(parallax: str, way: str, folder: pathlib.Path) -> tuple[str, str]:
    """The mistake in words, empty for a pass, and the command."""
    inputs = folder / ("test_data_set_0" if way == "expected" else "inputs.npz")
    command = [parallax, "run", str(folder / "model.onnx"), *WAYS[way], "--inputs", str(inputs), "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if answer.returncode == 0:
        return "", " ".join(command)
    try:
        document = json.loads(answer.stdout)
    except json.JSONDecodeError:
        document = {}
    causes = document.get("causes") or [{}]
    return f"exit code {answer.returncode}, {document.get('verdict')}: {causes[0].get('node')}: {causes[0].get('why') or answer.stderr[-200:]}", " ".join(command)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallax", required=True, type=os.path.abspath)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--architectures", default=",".join(ARCHITECTURES))
    parser.add_argument("--forms", default=f"{AS_EXPORTED},half,qdq,qoperator,dynamic,nbits")
    parser.add_argument("--work", help="keep exports here, for the next run with the same seed")
    parser.add_argument("--keep", help="keep the networks in this folder")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    runs, alarms = collections.Counter[str](), collections.Counter[str]()
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
                    save_arrays(folder / "inputs.npz", export.inputs)
                    write_data_set(folder / "test_data_set_0", model, export.inputs)
                except Exception as error:  # the tool does not take the network, or onnxruntime does not run what it made
                    print(f"left out: {name} {form}: {type(error).__name__}: {str(error)[:120]}")
                    continue
                for way in WAYS:
                    wrong, command = answer_of(options.parallax, way, folder)
                    runs[f"{form:12} {way}"] += 1
                    if wrong:
                        alarms[f"{form:12} {way}"] += 1
                        print(f"{name} {form} {way}: {wrong}\n    {command}", flush=True)
    for key, count in sorted(runs.items()):
        print(f"{key:26} {count:4} runs, {alarms[key]} alarms")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
