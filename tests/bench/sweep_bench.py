#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sweep_bench.py table|cells: what sweeps cost.

table [CELLS] makes two synthetic tables of a million cells (100,000 models, 10 columns) and prints seconds and peak memory of
a process that reads them, compares them and writes the overview. Exit code 1 beyond a minute of processor time, which other
load does not change much, or 2 GB.

cells [--counts 100,1000] [--jobs N] [--workers N] measures what a sweep adds to its cells: the program is replaced by one that
prints the document of a real run, so that a cell costs a process alone. It runs sweeps of that many cells by local processes
and, with distributed installed, on a Dask cluster of N workers, then resumes and draws the overview. Prints processor time
(of this process, of the cells' processes, of the scheduler) and bytes for each cell; SCALING.md extrapolates from these.
The program is that of PARALLAX_PROGRAM or PATH; PYTHONPATH has the package.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SAMPLE = Path(__file__).parents[2] / "samples" / "recurrent" / "model.onnx"
LONGEST_SECONDS = 60
LARGEST_BYTES = 2_000_000_000


# ---- A synthetic table

def make_table(path: Path, cells: int, seed: int) -> None:
    """A table of models in 200 folders x 5 pairs of executors x 2 sets of options; the seed decides one verdict in fifty."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from parallax.sweep.table import VERDICTS, schema

    layout, columns = schema(), 10
    common, random = np.random.default_rng(0), np.random.default_rng(seed)
    ops = pa.array(["Conv", "MatMul", "Softmax", "LayerNormalization", "Resize", None])
    step = 100_000
    with pq.ParquetWriter(path, layout, compression="zstd") as writer:
        for begin in range(0, cells, step):
            at = np.arange(begin, min(cells, begin + step))
            model, column = at // columns, at % columns
            rank = common.choice(len(VERDICTS), len(at), p=[0.85, 0.03, 0.01, 0.07, 0.01, 0.01, 0.005, 0.01, 0.005])
            changed = random.random(len(at)) < 0.02
            rank = np.where(changed, random.integers(0, len(VERDICTS), len(at)), rank)
            failed, diverged = rank > 3, rank == 3
            severity = np.where(diverged, 10.0 ** common.uniform(0, 6, len(at)), common.random(len(at)))
            op = pa.array(np.where(diverged, common.integers(0, 5, len(at)), 5))
            names = {
                "model": pa.array([f"zoo{number % 200:03}/group/network_{number:06}" for number in model.tolist()]),
                "against": pa.array([""] * len(at)),
                "executor_a": pa.array(["reference"] * len(at)),
                "executor_b": pa.array(["cpu", "cuda", "onnxruntime", "openvino", "torch"]).take(pa.array(column % 5)),
                "inputs": pa.array(["test_data_set_0"] * len(at)),
                "options": pa.array(["default", "unfused"]).take(pa.array(column // 5)),
                "sha": pa.array([f"{number * 2654435761:064x}" for number in model.tolist()]),
                "cell": pa.array([f"{number * 40503:032x}" for number in at.tolist()]),
                "verdict": pa.array(VERDICTS).take(pa.array(rank)),
                "error": pa.array(["node 'conv_%d' failed: out of range" % (n % 977) if bad else None
                                   for n, bad in zip(at.tolist(), failed.tolist())]),
                "worst_severity": pa.array(severity, mask=failed), "first_op": ops.take(op), "cause_op": ops.take(op),
                "first_node": pa.array(["node_%d" % (n % 512) if bad else None for n, bad in zip(at.tolist(), diverged.tolist())]),
                "seconds": pa.array(common.lognormal(0, 1, len(at))),
                "peak_bytes": pa.array(common.integers(40_000_000, 4_000_000_000, len(at))),
                "report": pa.array([f"reports/00/{n:032x}.html" if bad else None for n, bad in zip(at.tolist(), diverged.tolist())]),
                "version": pa.array(["parallax 0.1.0"] * len(at)), "started": pa.array(at * 1000 + 1_780_000_000_000_000),
            }
            arrays = [names[field.name].cast(field.type) if field.name in names else pa.nulls(len(at), field.type) for field in layout]
            writer.write_table(pa.Table.from_arrays(arrays, schema=layout))


def judge_table(last: Path, now: Path) -> None:
    """Comparison and overview, as the command does them."""
    from parallax.sweep import with_changes, write_overview

    began = time.perf_counter()
    changed = with_changes(last, now)
    compared = time.perf_counter()
    page = write_overview(now, changed)
    print(changed.text.splitlines()[0].partition(": ")[2])
    print(f"comparison {compared - began:.1f} s, overview {time.perf_counter() - compared:.1f} s, {page.stat().st_size / 1e6:.1f} MB of HTML")


def table_bench(cells: int) -> int:
    with tempfile.TemporaryDirectory(prefix="sweep-bench-") as scratch:
        last, now = Path(scratch) / "last", Path(scratch) / "now"
        for seed, folder in enumerate((last, now)):
            folder.mkdir()
            make_table(folder / "results.parquet", cells, seed + 1)
        print(f"{cells} cells, table of {(now / 'results.parquet').stat().st_size / 1e6:.1f} MB")
        began = time.perf_counter()
        subprocess.run([sys.executable, __file__, "judge", str(last), str(now)], check=True)
        wall, usage = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
        is_good = seconds <= LONGEST_SECONDS and peak <= LARGEST_BYTES
        limits = f"limits {LONGEST_SECONDS} s of processor time, {LARGEST_BYTES / 1e9:.0f} GB"
        print(f"whole process {seconds:.1f} s of processor time, {wall:.1f} s on the clock (load {os.getloadavg()[0]:.1f}), {peak / 1e9:.2f} GB")
        print(f"{'pass' if is_good else 'FAIL'}: {limits}")
        return 0 if is_good else 1


# ---- Sweeps of tiny cells

@contextlib.contextmanager
def cluster(workers: int) -> Iterator[str]:
    """A Dask scheduler and workers as processes of their own; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with tempfile.TemporaryDirectory(prefix="sweep-dask-") as folder:
        port = address.partition(":")[2]
        quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"]
        started = [subprocess.Popen(command, **quiet)]
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", f"tcp://{address}", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        started += [subprocess.Popen(worker, **quiet) for _ in range(workers)]
        try:
            yield address
        finally:
            for process in reversed(started):
                process.kill()  # a worker that is asked to end waits for its scheduler
            for process in started:
                process.wait()


def usage(which: int) -> float:
    spent = resource.getrusage(which)
    return spent.ru_utime + spent.ru_stime


def of_scheduler(address: str) -> tuple[float, int]:
    """(seconds of processor time, peak bytes) of the scheduler."""
    from distributed import Client

    with Client(address, timeout="60s") as client:
        spent = client.run_on_scheduler(lambda: list(resource.getrusage(resource.RUSAGE_SELF))[:3])
    return spent[0] + spent[1], int(spent[2]) * 1024


def spec_of(folder: Path, cells: int) -> Path:
    rows = "".join(f"[[inputs]]\nseed = {seed}\n" for seed in range(cells))
    path = folder / f"{cells}.toml"
    path.write_text(f'reports = "none"\n[[models]]\npath = "{SAMPLE}"\nname = "recurrent"\n{rows}')
    return path


def echo_of_run(folder: Path) -> Path:
    """A program that prints what the real one printed for the sample; its processor time is printed here."""
    from parallax.sweep.execution import find_program, program_version

    program, before = find_program(), usage(resource.RUSAGE_CHILDREN)
    line = [program, "run", str(SAMPLE), "--with", "reference,cpu", "--threads", "1", "--json"]
    (folder / "document.json").write_bytes(subprocess.run(line, capture_output=True, check=True).stdout)
    print(f"a real cell of this model takes {usage(resource.RUSAGE_CHILDREN) - before:.3f} s of processor time")
    path = folder / "echo"
    (folder / "version").write_text(program_version(program))
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec cat {folder}/version\nexec cat {folder}/document.json\n')
    path.chmod(0o755)
    return path


def cells_bench(counts: list[int], jobs: int, workers: int) -> int:
    from parallax.sweep import read_spec, sweep, with_changes, write_overview

    with tempfile.TemporaryDirectory(prefix="sweep-bench-") as scratch:
        folder = Path(scratch)
        program = os.environ["PARALLAX_PROGRAM"] = str(echo_of_run(folder))
        for count in counts:
            spec = read_spec(spec_of(folder, count)).with_changes(jobs=jobs, out=folder / f"local-{count}")
            remote = spec.with_changes(out=folder / f"cluster-{count}")

            def timed(name: str, call) -> None:  # type: ignore[no-untyped-def]
                began, own, others = time.perf_counter(), usage(resource.RUSAGE_SELF), usage(resource.RUSAGE_CHILDREN)
                call()
                wall = time.perf_counter() - began
                own, others = usage(resource.RUSAGE_SELF) - own, usage(resource.RUSAGE_CHILDREN) - others
                print(f"{count} cells, {name}: processor {1000 * own / count:.2f} ms a cell here, {1000 * others / count:.2f} ms in its processes, "
                      f"clock {wall:.2f} s", flush=True)

            timed(f"{jobs} local processes", lambda: sweep(spec, program=program))
            timed("resumed", lambda: sweep(spec, program=program))
            timed("overview", lambda: write_overview(spec.out))
            if workers:
                with cluster(workers) as address:
                    before, _ = of_scheduler(address)
                    timed(f"Dask with {workers} workers", lambda: sweep(remote, scheduler=address))
                    after, peak = of_scheduler(address)
                print(f"{count} cells: scheduler {1000 * (after - before) / count:.2f} ms of processor time a cell, peak {peak / 1e6:.0f} MB")
                assert with_changes(spec.out, remote.out).counts["same"] == count
            files = [path for path in spec.out.rglob("*") if path.is_file()]
            sizes = {name: sum(path.stat().st_size for path in files if path.suffix == name) for name in (".json", ".parquet")}
            blocks = sum(path.stat().st_blocks * 512 for path in files)
            print(f"{count} cells: {sizes['.json'] / count:.0f} bytes of records a cell, {sizes['.parquet'] / count:.0f} of the table, {blocks / count:.0f} of blocks on disk")
    print(f"load {os.getloadavg()[0]:.1f}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    table = parts.add_parser("table")
    table.add_argument("cells", type=int, nargs="?", default=1_000_000)
    judge = parts.add_parser("judge")
    judge.add_argument("last", type=Path)
    judge.add_argument("now", type=Path)
    cells = parts.add_parser("cells")
    cells.add_argument("--counts", default="100,1000")
    cells.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    cells.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.part == "table":
        return table_bench(options.cells)
    if options.part == "judge":
        judge_table(options.last, options.now)
        return 0
    return cells_bench([int(count) for count in options.counts.split(",")], options.jobs, options.workers)


if __name__ == "__main__":
    raise SystemExit(main())
