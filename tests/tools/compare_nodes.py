#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one-node models of ai.onnx.ml and com.microsoft in Parallax and in onnxruntime, and compares every output.

    compare_nodes.py --parallax build/release/bin/parallax [--with reference,reference:double] [-k GLOB] [--list]

The cases are the lists in node_cases_ml.py and node_cases_microsoft.py: many combinations of attributes, optional inputs and
types, with random numbers of a fixed seed. Where onnxruntime has no kernel on the CPU, or contradicts the operator's page, a
case brings what it expects, and says why.
"""
import argparse
import fnmatch
import pathlib
import sys
import tempfile

import numpy as np

import node_cases_microsoft
import node_cases_ml
from node_cases import peer_outputs, write_feeds
from program import Parallax


def expected_outputs(case):
    """A list of arrays, from the case itself or from onnxruntime."""
    if case.expected is not None:
        return case.expected
    return peer_outputs(case)


def flat(value):
    """Sequences of maps as arrays of their values, in the order of their keys."""
    if isinstance(value, list):
        return np.array([[row[key] for key in sorted(row)] for row in value])
    return np.asarray(value)


def difference(ours, theirs, case):
    """A sentence, or nothing where the two agree."""
    if ours.shape != theirs.shape:
        return f"shape {list(ours.shape)}, expected {list(theirs.shape)}"
    if theirs.dtype.kind in "OUS":
        return "" if (ours.astype(str) == theirs.astype(str)).all() else f"{ours.tolist()}, expected {theirs.tolist()}"
    a, b = theirs.astype(np.float64), ours.astype(np.float64)
    rtol, atol = case.tolerance if theirs.dtype.kind not in "biu" else (0, case.ulps)
    with np.errstate(all="ignore"):
        wrong = ~((np.abs(a - b) <= atol + rtol * np.abs(a)) | (a == b) | (np.isnan(a) & np.isnan(b)))
    if not wrong.any():
        return ""
    index = tuple(np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} differ, first at {[int(i) for i in index]}: {b[index]}, expected {a[index]}"


def run(parallax, case, executor, folder):
    """The outputs by Parallax, in the order of the model's."""
    model = folder / "model.onnx"
    inputs = folder / "test_data_set_0"
    model.write_bytes(case.model().SerializeToString())
    inputs.mkdir(exist_ok=True)
    write_feeds(case, inputs)
    code, _, err = parallax("run", model, "--with", executor, "--inputs", inputs, "--capture", "all", "--dump", folder)
    if code:
        raise RuntimeError(err.strip())
    dump = next(folder.glob(f"{executor.replace(':', '*')}.plx"))
    archive = folder / "values.npz"
    code, _, err = parallax("export", dump, "-o", archive)
    if code:
        raise RuntimeError(err.strip())
    values = dict(np.load(archive, allow_pickle=False))
    return [values[output.name] if output.name in values else None for output in case.model().graph.output]


def judge(parallax, case, executor, theirs):
    with tempfile.TemporaryDirectory() as folder:
        ours = run(parallax, case, executor, pathlib.Path(folder))
    problems = []
    for index, (mine, peer) in enumerate(zip(ours, theirs)):
        if peer is None or isinstance(peer, list):
            continue
        if mine is None:
            problems.append(f"output {index} is absent")
            continue
        peer = flat(peer)
        if case.mask is not None and index in case.mask:
            mine, peer = mine[case.mask[index]], peer[case.mask[index]]
        text = difference(mine, peer, case)
        if text:
            problems.append(f"output {index}: {text}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallax", required=True)
    parser.add_argument("--with", dest="executors", default="reference,reference:double")
    parser.add_argument("-k", dest="glob", default="*", help="operators to run")
    parser.add_argument("--list", action="store_true", help="the number of cases of each operator")
    options = parser.parse_args()
    cases = [case for case in [*node_cases_ml.cases(), *node_cases_microsoft.cases()] if fnmatch.fnmatch(case.op, options.glob)]
    counts, bad = {}, 0
    parallax = Parallax(options.parallax)
    for number, case in enumerate(cases):
        label = f"{case.op} #{number} {case.attributes} {case.note}"
        try:
            theirs = expected_outputs(case)
        except Exception as error:  # the peer cannot run it: the case is wrong, or needs an expectation of its own
            bad += 1
            print(f"FAIL {label}: no expectation: {str(error)[:300]}")
            continue
        for executor in options.executors.split(","):
            try:
                problems = judge(parallax, case, executor, theirs)
            except RuntimeError as error:
                problems = [str(error)[:300]]
            good, total = counts.get(case.op, (0, 0))
            counts[case.op] = (good + (not problems), total + 1)
            if problems:
                bad += 1
                print(f"FAIL {executor} {label[:300]}: {'; '.join(problems)}")
    if options.list:
        for op, (good, total) in sorted(counts.items()):
            print(f"{op}: {good} of {total}")
    print(f"{sum(total for _, total in counts.values())} runs of {len(counts)} operators, {bad} problems")
    sys.exit(1 if bad or not counts else 0)


if __name__ == "__main__":
    main()
