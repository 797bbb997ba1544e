# SPDX-License-Identifier: Apache-2.0
"""Sweeps for tests: a program that hangs, crashes or grows where a model's name says so, a Dask cluster, tables to compare."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "samples"
PROGRAM = os.environ.get("PARALLAX_PROGRAM", "")
# Columns that are the same wherever and whenever a cell runs.
STEADY = (
    "model", "against", "executor_a", "executor_b", "inputs", "options", "sha", "cell", "verdict", "reason", "error", "exit_code", "signal",
    "values", "values_compared", "values_passed", "values_diverged", "values_mistrusted", "values_not_compared", "worst_severity", "worst_path",
    "first_path", "first_node", "first_op", "cause_op", "causes", "report", "version",
)  # fmt: skip

# Every run of a cell appends its model to runs.log; the process that a hung cell starts is in hung.pid.
_SCRIPT = """#!/bin/sh
[ "$1" = --version ] && exec {program} --version
echo "$2" >> {folder}/runs.log
case "$2" in
  *hang*) sleep 1000 & echo $! > {folder}/hung.pid; wait;;
  *crash*) echo "last words" >&2; kill -SEGV $$;;
  *grow*) head -c 600000000 /dev/zero | tail | sleep 1000;;
  *mute*) exit 4;;
esac
exec {program} "$@"
"""


def faulty_program(folder: Path) -> Path:
    """The program, which hangs, crashes, grows or says nothing for models with these words in their path."""
    path = folder / "faulty"
    path.write_text(_SCRIPT.format(program=PROGRAM, folder=folder))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def runs(folder: Path) -> list[str]:
    """Models that the faulty program ran, in order."""
    log = folder / "runs.log"
    return log.read_text().split() if log.exists() else []


def small_models(folder: Path, *names: str) -> None:
    """Copies of a small sample under these names."""
    folder.mkdir(parents=True, exist_ok=True)
    for at, name in enumerate(names):
        # Bytes that differ: fields that protobuf does not know are ignored.
        (folder / f"{name}.onnx").write_bytes((SAMPLES / "recurrent" / "model.onnx").read_bytes() + b"\xfa\x3f\x01" + bytes([at]))


def table(folder: Path) -> list[dict[str, Any]]:
    """The rows of a sweep without what depends on time and machine."""
    import pyarrow.parquet as pq

    return pq.read_table(folder / "results.parquet").select(list(STEADY)).to_pylist()


def is_alive(pid: int) -> bool:
    """True while a process runs; one that has ended and is not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Waits for something that another process does."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def _dask(part: str, *arguments: str, folder: Path) -> subprocess.Popen[bytes]:
    with open(folder / "dask.log", "ab") as log:
        return subprocess.Popen([sys.executable, "-m", f"distributed.cli.dask_{part}", *arguments], cwd=folder, stdout=log, stderr=log)


class Cluster:
    """A scheduler, and workers of one thread as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        file = folder / "scheduler.json"
        self._scheduler = _dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file), folder=folder)
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        self.workers: list[subprocess.Popen[bytes]] = []

    @property
    def address(self) -> str:
        """HOST:PORT of the scheduler."""
        return str(json.loads((self._folder / "scheduler.json").read_text())["address"]).removeprefix("tcp://")

    def start_worker(self) -> None:
        """One worker more."""
        self.workers.append(_dask("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", folder=self._folder))

    def stop(self) -> None:
        """Ends all processes."""
        for process in [*self.workers, self._scheduler]:
            process.kill()
            process.wait()


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster on this machine."""
    made = Cluster(folder)
    try:
        for _ in range(workers):
            made.start_worker()
        yield made
    finally:
        made.stop()
