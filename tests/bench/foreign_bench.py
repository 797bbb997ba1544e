#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of a capture by onnxruntime's runner, next to onnxruntime with all values marked as outputs; runs taken in turn.

Usage: foreign_bench.py [--rounds N] [--threads N] [--only NAME] [--work DIR]

Needs the package (PYTHONPATH=<build>/python), numpy, onnx and onnxruntime. "marked" is the least time of a run of a session whose
outputs are all values of the main graph; "capture" that of a request to a runner that is loaded, from the question to
the answer, with the dump written; "session" the time within onnxruntime in it; "write" that of writing the same bytes
into a file and doing nothing else. The goal is a ratio of at most 1.5; "floor" is (marked + write) / marked, which no
capture into a file can be below.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import ort_models  # noqa: E402
from ort_bench import make_inputs  # noqa: E402

MODELS = ("resnet50", "bert-s128", "mobilenetv3", "llama-layer")
GOAL = 1.5


def marked_session(path, names, threads):
    """A session of the model with these values as outputs."""
    model = onnx.load(str(path))
    known = {output.name for output in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Runner:
    """The runner of onnxruntime in a process of its own."""

    def __init__(self):
        command = [sys.executable, "-m", "parallax.runners", "onnxruntime"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **request):
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise SystemExit(answer["error"])
        return answer

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def measure(path, arguments, folder):
    """Least milliseconds of (marked, capture, within onnxruntime in it, write), and the bytes of the dump."""
    model = onnx.load(str(path), load_external_data=False)
    names = [name for node in model.graph.node for name in node.output if name]
    feed, _ = make_inputs(model, folder)
    np.savez(folder / "inputs.npz", **feed)
    session = marked_session(path, names, arguments.threads)
    runner = Runner()
    runner.ask(request="load", model=str(path), optimize=False, threads=arguments.threads, folder=str(folder))
    times, size = [], 0
    for _ in range(arguments.rounds):
        begin = time.perf_counter()
        values = session.run(names, feed)
        marked = time.perf_counter() - begin
        begin = time.perf_counter()
        with open(folder / "plain", "wb", buffering=0) as file:
            for value in values:
                file.write(value.data)
        written = time.perf_counter() - begin
        (folder / "plain").unlink()
        del values
        begin = time.perf_counter()
        answer = runner.ask(request="run", inputs=str(folder / "inputs.npz"), wanted=names, answer=str(folder / "answer"))
        times.append((marked * 1e3, (time.perf_counter() - begin) * 1e3, answer["milliseconds"], written * 1e3))
        size = pathlib.Path(answer["answer"]).stat().st_size
        pathlib.Path(answer["answer"]).unlink()
    runner.close()
    return [min(column) for column in zip(*times[1:])] + [size]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="the first one is not counted")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="models whose name holds this")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "build/ort_bench_models")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    print(f"onnxruntime {ort.__version__}, {arguments.threads} threads, {arguments.rounds - 1} rounds; goal: ratio <= {GOAL}")
    print(f"{'model':<16} {'marked ms':>10} {'capture ms':>11} {'session ms':>11} {'write ms':>9} {'ratio':>7} {'floor':>7} {'dump MB':>8}")
    for name in MODELS:
        path = arguments.work / f"{name}.onnx"
        if arguments.only not in name:
            continue
        if not path.exists():
            onnx.save(ort_models.MODELS[name][0](), str(path))
        with tempfile.TemporaryDirectory() as folder:
            marked, capture, within, write, size = measure(path, arguments, pathlib.Path(folder))
        ratio, floor = capture / marked, (marked + write) / marked
        print(f"{name:<16} {marked:10.2f} {capture:11.2f} {within:11.2f} {write:9.2f} {ratio:7.2f} {floor:7.2f} {size / 1e6:8.1f}", flush=True)


if __name__ == "__main__":
    main()
