#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Side by side with PyPI onnxruntime: the same models, inputs and threads, runs taken in turn, ratios printed.

Usage: ort_bench.py PARALLAX [--before PARALLAX] [--threads N] [--rounds N] [--only NAME] [--work DIR] [--models DIR]

Needs numpy, onnx and onnxruntime. A ratio is onnxruntime's time over ours: above 1 we are faster. Models are made here
with random weights; onnxruntime runs with its default optimization. In each round both sides measure for a moment, one
after the other, and the ratio is that of the two medians over all rounds. With --before, a program built from another
commit takes its turn in each round, too: the last column is its least time over ours.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import ort_loops  # noqa: E402
import ort_models  # noqa: E402


def tensor_shape(value):
    return [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]


def make_inputs(model, folder):
    """Writes one .npy for each input; yields onnxruntime's feed and parallax's options."""
    rng = np.random.default_rng(0)
    feed, options = {}, []
    for value in model.graph.input:
        kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = tensor_shape(value)
        data = rng.integers(0, 100, shape).astype(kind) if kind.kind in "iu" else rng.standard_normal(shape).astype(kind)
        path = folder / f"{value.name}.npy"
        np.save(path, data)
        feed[value.name] = data
        options += ["--input", f"{value.name}={path}"]
    return feed, options


def ort_session(path, threads):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def ort_times(session, feed, seconds):
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        session.run(None, feed)
        times.append((time.perf_counter() - begin) * 1e3)
    return times


def our_times(program, path, options, threads, iterations):
    command = [program, "bench", str(path), "--with", "cpu", "--threads", str(threads), "--iterations", str(iterations),
               "--json", *options]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{answer.stderr}")
    return json.loads(answer.stdout)


def measure(programs, name, path, arguments):
    folder = path.parent / name
    folder.mkdir(exist_ok=True)
    feed, options = make_inputs(onnx.load(str(path), load_external_data=False), folder)
    session = ort_session(path, arguments.threads)
    theirs, ours = [], [[] for _ in programs]
    for _ in range(arguments.rounds):
        block = ort_times(session, feed, 0.7)
        theirs.append((statistics.median(block), min(block)))
        for program, times in zip(programs, ours):
            latency = our_times(program, path, options, arguments.threads, max(3, min(2000, len(block))))["latency_ms"]
            times.append((latency["median"], latency["min"]))
    return theirs, *ours


def measure_load(programs, name, path, arguments):
    """Load and first run, each in a fresh process."""
    folder = path.parent / name
    folder.mkdir(exist_ok=True)
    feed, options = make_inputs(onnx.load(str(path), load_external_data=False), folder)
    code = ("import sys,time,numpy as np,onnxruntime as ort\n"
            "t=time.perf_counter()\n"
            "o=ort.SessionOptions();o.intra_op_num_threads=int(sys.argv[2])\n"
            "s=ort.InferenceSession(sys.argv[1],o,providers=['CPUExecutionProvider'])\n"
            "s.run(None,{a.split('=')[0]:np.load(a.split('=',1)[1]) for a in sys.argv[3:]})\n"
            "print((time.perf_counter()-t)*1e3)")
    theirs, ours = [], [[] for _ in programs]
    for _ in range(arguments.rounds):
        answer = subprocess.run([sys.executable, "-c", code, str(path), str(arguments.threads), *options[1::2]],
                                capture_output=True, text=True, check=True)
        theirs.append((float(answer.stdout), float(answer.stdout)))
        for program, times in zip(programs, ours):
            result = our_times(program, path, options, arguments.threads, 1)
            times.append((result["load_ms"] + result["latency_ms"]["min"],) * 2)
    return theirs, *ours


def chosen_models(arguments):
    """(name, path, goal) of each model to be measured; built-in ones are made when first asked for."""
    if arguments.models is not None:
        for path in sorted(arguments.models.glob("*.onnx")):
            if arguments.only in path.stem:
                yield path.stem, path, ">= 0.95"
        return
    for name, (make, goal) in (ort_models.MODELS | ort_loops.MODELS).items():
        path = arguments.work / f"{name}.onnx"
        if arguments.only in name:
            if not path.exists():
                onnx.save(make(), str(path))
            yield name, path, goal


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PARALLAX")
    parser.add_argument("--before", metavar="PARALLAX")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="models whose name holds this")
    parser.add_argument("--models", type=pathlib.Path, help="every .onnx of this folder instead of the built-in models")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "build/ort_bench_models")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    print(f"onnxruntime {ort.__version__}, {arguments.threads} threads, {arguments.rounds} rounds")
    programs = [arguments.program] + ([arguments.before] if arguments.before else [])
    print(f"{'model':<32} {'ort ms':>10} {'ours ms':>10} {'ratio':>7} {'of least':>9}  goal" + "     before" * (len(programs) - 1))
    ratios, changes = [], []
    for name, path, goal in chosen_models(arguments):
        run = measure_load if name.startswith("load") else measure
        sides = run(programs, name, path, arguments)
        medians = [statistics.median(each[0] for each in side) for side in sides]
        least = [min(each[1] for each in side) for side in sides]
        ratios.append(least[0] / least[1])
        changes += [before / least[1] for before in least[2:]]
        print(f"{name:<32} {medians[0]:10.3f} {medians[1]:10.3f} {medians[0] / medians[1]:7.2f} {ratios[-1]:9.2f}  {goal:<7}"
              + "".join(f" {before / least[1]:7.3f}" for before in least[2:]), flush=True)
    if arguments.models is not None and ratios:
        print(f"geometric mean of least over {len(ratios)} models: {statistics.geometric_mean(ratios):.2f}")
    if changes:
        print(f"geometric mean of the times before over ours, {len(changes)} models: {statistics.geometric_mean(changes):.3f}")


if __name__ == "__main__":
    main()
