# SPDX-License-Identifier: Apache-2.0
"""A sweep from its plan to its table: cells that are not finished are computed, then all rows are written."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from parallax.errors import ExecutionError, UsageError
from parallax.sweep.changes import counted
from parallax.sweep.content import Hashes
from parallax.sweep.execution import Outcome, find_program, program_version
from parallax.sweep.packages import needed
from parallax.sweep.plan import Cell, Plan
from parallax.sweep.records import TABLE, Records, write_whole
from parallax.sweep.runners import run_locally, run_on_cluster
from parallax.sweep.spec import Spec
from parallax.sweep.table import read_columns, write_table

__all__ = ["Progress", "Sweep", "save_baselines", "sweep"]

_SECONDS_BETWEEN_LINES = 10.0


class Sweep(NamedTuple):
    """A finished sweep: its folder, the number of cells, how many of them were computed now, and the cells by verdict."""

    folder: Path
    cells: int
    computed: int
    verdicts: dict[str, int]

    @property
    def passed(self) -> bool:
        """True where every cell passed or is unsupported."""
        return not set(self.verdicts) - {"pass", "unsupported"}

    @classmethod
    def read(cls, folder: Path, computed: int = 0) -> Sweep:
        """The sweep of a folder. Raises IoError."""
        column = read_columns(folder, ["verdict"])["verdict"]
        return cls(folder, len(column), computed, counted(column))


class Progress:
    """A line every ten seconds with what is finished and how long the rest takes."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._began = self._last = time.monotonic()
        self._verdicts: Counter[str] = Counter()

    def begin(self, cells: int, waiting: int) -> None:
        """Says what is to be done."""
        self._waiting = waiting
        if self._stream is not None:
            print(f"{cells} cells, {cells - waiting} finished before", file=self._stream, flush=True)

    def add(self, verdict: str) -> None:
        """Counts a cell."""
        self._verdicts[verdict] += 1
        now = time.monotonic()
        if self._stream is None or now - self._last < _SECONDS_BETWEEN_LINES:
            return
        self._last = now
        done = self._verdicts.total()
        left = (now - self._began) / done * max(0, self._waiting - done)
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self._verdicts.most_common())
        print(f"{done} of {self._waiting}: {counts}; {left / 60:.1f} min left", file=self._stream, flush=True)


def sweep(
    spec: Spec, *, program: str = "", pattern: str = "", scheduler: str | None = None, retry: Iterable[str] = (),
    progress: Progress | None = None,
) -> Sweep:  # fmt: skip
    """Computes the cells of a spec that are not finished, and writes ``spec.out/results.parquet``.

    ``scheduler``: "HOST:PORT" of a Dask cluster; this machine otherwise. ``pattern``: only models of these names.
    ``retry``: verdicts of cells to do again, or "all". Raises UsageError, IoError.

    >>> from parallax.sweep import read_spec, sweep
    >>> sweep(read_spec("nightly.toml")).verdicts                                                # doctest: +SKIP
    {'pass': 298, 'diverged': 2}
    """
    needed("pyarrow")  # before hours of cells
    version = program_version(find_program(program))
    records = Records(spec.out)
    chosen = frozenset(retry)
    with records.locked():
        hashes = Hashes(spec.out / "hashes.json")
        plan = Plan(spec, version, hashes, pattern)
        waiting, seen = _unfinished(plan, records, spec, chosen)
        hashes.save()
        progress = progress or Progress(None)
        progress.begin(seen, len(waiting))

        def finished(cell: Cell, outcome: Outcome) -> None:
            records.write(cell, outcome)
            progress.add(outcome.record["verdict"])

        if waiting:
            _compute((cell for cell in _once(plan) if cell.id in waiting), spec, program, version, scheduler, finished)
        write_table(records, plan, spec.out / TABLE)
    return Sweep.read(spec.out, len(waiting))


def _unfinished(plan: Plan, records: Records, spec: Spec, retry: frozenset[str]) -> tuple[set[str], int]:
    """(ids of cells to compute, number of cells); raises UsageError where two cells have the same names."""
    names: set[tuple[str, ...]] = set()
    waiting: set[str] = set()
    count = 0
    for count, cell in enumerate(plan, 1):
        if cell.key in names:
            raise UsageError(f"two cells have the same names: {', '.join(filter(None, cell.key))}; inputs, options and models need names that differ")
        names.add(cell.key)
        if cell.id not in waiting and not records.is_finished(cell.id, spec.limits, retry):
            waiting.add(cell.id)
    return waiting, count


def _once(plan: Iterable[Cell]) -> Iterator[Cell]:
    """The cells, one for each id."""
    seen: set[str] = set()
    for cell in plan:
        if cell.id not in seen:
            seen.add(cell.id)
            yield cell


def _compute(cells: Iterable[Cell], spec: Spec, program: str, version: str, scheduler: str | None, finished: Any) -> None:
    settings: dict[str, Any] = {"version": version, "reports": spec.reports, "store": str(spec.store or "")}
    if scheduler is not None:
        run_on_cluster(cells, scheduler, spec.limits, finished, **settings)
    else:
        run_locally(cells, spec.jobs or os.cpu_count() or 1, spec.limits, finished, program=program, **settings)


def save_baselines(spec: Spec, *, program: str = "", pattern: str = "", progress: Progress | None = None) -> int:
    """Writes the baselines of a spec's single executors into ``spec.baselines``; returns their number.

    Raises UsageError, and ExecutionError where a cell gives none.
    """
    if spec.baselines is None:
        raise UsageError("there is no folder of baselines: baselines = \"FOLDER\" in the spec, or --baselines")
    version = program_version(find_program(program))
    plan = Plan(spec, version, Hashes(), pattern, keeping=True)
    cells = [cell for cell in plan if "--save-baseline" in cell.line]
    if not cells:
        raise UsageError("no cell has a baseline: a baseline is of one executor and one model; executors = [\"cpu\"]")
    progress = progress or Progress(None)
    progress.begin(len(cells), len(cells))

    def finished(cell: Cell, outcome: Outcome) -> None:
        data = outcome.files.get("baseline")
        if data is None:
            record = outcome.record
            raise ExecutionError(f"model '{cell.model}' gives no baseline: {record['verdict']}: {record.get('error') or record.get('reason')}")
        write_whole(Path(str(cell.line[cell.line.index("--save-baseline") + 1])), data)
        progress.add("pass")

    _compute(cells, spec, program, version, None, finished)
    return len(cells)
