#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Capture and comparison of every value of a transformer, compared with PyPI polygraphy's.

Usage: polygraphy_bench.py PARALLAX [--before PARALLAX] [--threads N] [--rounds N] [--layers N] [--work DIR]

Ours is one command, `run --with reference,cpu --dump`: two executors, every value of both written and compared.
Polygraphy's way to the same is two runs of onnxruntime with every output marked: one saves them, one loads and compares.
Needs numpy, onnx and onnxruntime; without polygraphy (and colored) only ours is measured. The model: 12 layers, hidden
768, sequence 256, 396 values that hold 595 MB. Prints wall and processor seconds, peak memory, and the ratios. With
--before, a program built from another commit takes its turn in each round, too.
"""

import argparse
import importlib.util
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys
import time

import onnx

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import ort_models  # noqa: E402


class Cost:
    """The cost of one or several processes: seconds add up, the peak is the highest."""

    def __init__(self, wall=0.0, processor=0.0, peak=0):
        self.wall, self.processor, self.peak = wall, processor, peak

    def __add__(self, other):
        return Cost(self.wall + other.wall, self.processor + other.processor, max(self.peak, other.peak))


def cost_of(command, environment, allowed=(0,)):
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    message = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in allowed:
        raise SystemExit(f"{' '.join(command)}\n{message[-2000:]}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def our_cost(program, model, threads, folder):
    shutil.rmtree(folder, ignore_errors=True)
    command = [program, "run", str(model), "--with", "reference,cpu", "--dump", str(folder), "--threads", str(threads),
               "--json"]
    cost = cost_of(command, dict(os.environ))
    shutil.rmtree(folder, ignore_errors=True)
    return cost


def polygraphy_cost(model, threads, results):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    program = "import sys; from polygraphy.tools import main; sys.exit(main())"
    common = [sys.executable, "-c", program, "run", str(model), "--onnxrt", "--onnx-outputs", "mark", "all"]
    saved = cost_of([*common, "--save-outputs", str(results)], environment)
    compared = cost_of([*common, "--load-outputs", str(results), "--rtol", "1e-3", "--atol", "1e-3"], environment)
    results.unlink()
    return saved + compared


def least(costs):
    return Cost(min(each.wall for each in costs), min(each.processor for each in costs),
                min(each.peak for each in costs))


def line(name, cost):
    print(f"{name:<12} {cost.wall:9.2f} s wall {cost.processor:9.2f} s processor {cost.peak / 1e9:7.2f} GB peak", flush=True)


def make_model(layers, path):
    onnx.save(ort_models.bert(layers, 768, 256), str(path))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PARALLAX")
    parser.add_argument("--before", metavar="PARALLAX")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "build/polygraphy_bench_work")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    model = arguments.work / f"transformer-{arguments.layers}.onnx"
    if not model.exists():
        # In a process of its own: Linux counts what its parent held among a child's peak.
        maker = multiprocessing.get_context("spawn").Process(target=make_model, args=(arguments.layers, model))
        maker.start()
        maker.join()
    has_polygraphy = importlib.util.find_spec("polygraphy") is not None
    ours, before, theirs = [], [], []
    for _ in range(arguments.rounds):
        ours.append(our_cost(arguments.program, model, arguments.threads, arguments.work / "dump"))
        if arguments.before:
            before.append(our_cost(arguments.before, model, arguments.threads, arguments.work / "dump"))
        if has_polygraphy:
            theirs.append(polygraphy_cost(model, arguments.threads, arguments.work / "results.json"))
    line("parallax", least(ours))
    if before:
        line("before", least(before))
    if not has_polygraphy:
        print("polygraphy is not installed: nothing to compare with")
        return
    line("polygraphy", least(theirs))
    ratio = Cost(least(theirs).wall / least(ours).wall, least(theirs).processor / least(ours).processor)
    print(f"ratio {ratio.wall:.1f} in wall, {ratio.processor:.1f} in processor seconds; goal >= 10, aim 25, peak <= 1.2 GB")


if __name__ == "__main__":
    main()
