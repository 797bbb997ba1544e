#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a model in Parallax and in a peer (onnxruntime, or onnx's ReferenceEvaluator), and compares every top-level value.

    compare_with_peers.py --parallax build/release/bin/parallax --with reference,cpu MODEL_OR_FOLDER...

Every `test_data_set_N` next to a model.onnx is one run. Parallax' values come from a dump that `parallax export` turns into .npz.
The peer is evidence, no proof: both peers are known to be wrong in some cases.
"""
import argparse
import pathlib
import sys
import tempfile

import numpy as np

from program import Parallax, cases, peer_values, read_tensors


def distance(ours, theirs, rtol, atol):
    """Severity with the peer as the expected side, `atol` in units of its root mean square (sums of large numbers leave small ones
    with the rounding of the large); a string when shapes differ."""
    if ours.shape != theirs.shape:
        return f"shape {list(ours.shape)} against {list(theirs.shape)}"
    if theirs.dtype == object or theirs.dtype.kind in "OUS":
        return 0.0 if (ours.astype(str) == theirs.astype(str)).all() else float("inf")
    a, b = theirs.astype(np.float64), ours.astype(np.float64)
    if theirs.dtype.kind in "biu":
        return 0.0 if (a == b).all() else float("inf")
    ordinary = a[np.isfinite(a) & (np.abs(a) < 1e30)]
    atol *= max(float(np.sqrt(np.mean(ordinary**2))) if ordinary.size else 1.0, 1e-30)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        severity = np.where(same, 0, np.abs(a - b) / (atol + rtol * np.abs(a)))
    return float(np.nan_to_num(severity, nan=np.inf).max(initial=0))


def dumped_values(parallax, model, inputs, executor, folder):
    code, out, err = parallax("run", model, "--with", executor, "--inputs", inputs, "--observe-all", "--dump", folder)
    if code not in (0, 1):
        raise RuntimeError(f"run --with {executor} {model} --inputs {inputs}: exit code {code}\n{err}")
    archive = pathlib.Path(folder) / f"{executor.replace(':', '-')}.npz"
    dump = next(pathlib.Path(folder).glob(f"{executor.replace(':', '*')}.plx"))
    code, out, err = parallax("export", dump, "-o", archive)
    if code:
        raise RuntimeError(f"export {dump}: exit code {code}\n{err}")
    return dict(np.load(archive, allow_pickle=False))


def compare(parallax, model, inputs, executor, options):
    """Number of values that differ or are missing."""
    theirs = peer_values(model, read_tensors(inputs, "input"), options.peer)
    with tempfile.TemporaryDirectory() as folder:
        ours = dumped_values(parallax, model, inputs, executor, folder)
    problems = 0
    for name, values in theirs.items():
        if isinstance(values, list) or values is None:
            continue
        severity = distance(ours[name], values, options.rtol, options.atol) if name in ours else "absent in the dump"
        if isinstance(severity, str) or severity > 1:
            problems += 1
            print(f"  {name}: {severity}")
    print(f"{'ok  ' if not problems else 'FAIL'} {executor} {model} {inputs.name}: {len(theirs)} values, {problems} differ")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallax", required=True)
    parser.add_argument("--with", dest="executors", default="reference,cpu")
    parser.add_argument("--peer", choices=["onnxruntime", "reference"], default="onnxruntime")
    parser.add_argument("--rtol", type=float, default=1e-4)
    parser.add_argument("--atol", type=float, default=1e-4)
    parser.add_argument("folders", nargs="+")
    options = parser.parse_args()
    parallax, problems, runs = Parallax(options.parallax), 0, 0
    for model, data_sets in cases(options.folders):
        for inputs in data_sets:
            for executor in options.executors.split(","):
                runs += 1
                try:
                    problems += compare(parallax, model, inputs, executor, options)
                except RuntimeError as error:  # of Parallax or of the peer: the other runs are still worth having
                    problems += 1
                    print(f"FAIL {executor} {model} {inputs.name}: {str(error)[:300]}")
    print(f"{runs} runs, {problems} problems")
    sys.exit(1 if problems or not runs else 0)


if __name__ == "__main__":
    main()
