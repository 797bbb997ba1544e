# SPDX-License-Identifier: Apache-2.0
"""Equal bits: every value of a run with 1, 2, 4 and 8 threads, several times, on both executors."""

import concurrent.futures
import random
import shutil
import tempfile
import time
from pathlib import Path

import attack_paths
import judge
import mutate_dumps
import seeds

THREADS = (1, 2, 4, 8)
EXECUTORS = {"reference": [], "cpu": ["--fallback=reference"]}  # nodes without a kernel (of strings) run in the reference


def model_files(folder):
    """The samples' models, their data sets next to them, and the small models of every structure."""
    for path in sorted((attack_paths.ROOT / "samples").glob("*/*")):
        if path.suffix in (".onnx", ".textproto"):
            data = path.parent / "test_data_set_0"
            yield f"{path.parent.name}/{path.name}", path, ["--inputs", str(data)] if path.stem == "model" and data.exists() else []
    for name, content in seeds.models().items():
        if "/" not in name:
            path = folder / f"{name}.onnx"
            path.write_bytes(content)
            yield name, path, []


def values_of(program, path, options, executor, threads):
    """{path: payload} of one run, or its exit code and message."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "run", str(path), "--with", executor, *EXECUTORS[executor], "--threads", str(threads), "--dump", "out", *options]
        answer = judge.run(command, folder)
        if answer.code != 0:
            return answer.code, answer.stderr.decode(errors="replace")[-200:]
        return mutate_dumps.values(next(Path(folder, "out").glob("*.plx")).read_bytes())


def attack(program, folder, seed, count, seconds, jobs, repetitions, only=""):
    """`count` models on executors drawn by the seed (0: all); [(problem, case)] and how many runs there were."""
    end = time.monotonic() + seconds
    folder = Path(folder)
    folder.mkdir(parents=True)
    (folder / "w.data").write_bytes(bytes(24))
    cases = [(name, path, options, executor) for name, path, options in model_files(folder) for executor in EXECUTORS if only in name]
    random.Random(seed).shuffle(cases)
    cases = cases[:count or len(cases)]
    findings, done = [], 0

    def one(case):
        name, path, options, executor = case
        first = values_of(program, path, options, executor, THREADS[0])
        if isinstance(first, tuple) and options:  # the inputs of another model of the folder
            first = values_of(program, path, [], executor, THREADS[0])
            options = []
        if isinstance(first, tuple):
            return [(f"exit code {first[0]}: {first[1]}", f"{name} {executor}")], 1
        problems, runs = [], 1
        for _ in range(repetitions):
            for threads in THREADS:
                if time.monotonic() >= end:
                    return problems, runs
                runs += 1
                again = values_of(program, path, options, executor, threads)
                if again == first:
                    continue
                differ = [key[1].decode() for key in first if isinstance(again, tuple) or again.get(key) != first[key]]
                problems.append((f"{len(differ)} values differ with {threads} threads, first {differ[:1]}", f"{name} {executor}"))
        return problems, runs

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for problems, runs in pool.map(one, cases):
            findings += problems
            done += runs
    shutil.rmtree(folder)
    return findings, done
