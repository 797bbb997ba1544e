# SPDX-License-Identifier: Apache-2.0
"""The folder of a sweep: a record for each finished cell, reports, the table and the overview.

``cells/ab/ID.json`` is written under another name and renamed, so that it is whole when it is there: a cell is finished
exactly when its record exists. ``.lock`` keeps a second sweep out.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parallax.errors import IoError, UsageError
from parallax.sweep.execution import FORMAT, Outcome
from parallax.sweep.plan import Cell
from parallax.sweep.spec import Limits

__all__ = ["Records"]

TABLE = "results.parquet"
OVERVIEW = "overview.html"
_MARK = "CACHEDIR.TAG"
_MARK_TEXT = "Signature: 8a477f597d28d172789f06886806bc55\n# Results of parallax sweep. They can be computed again.\n"


class Records:
    """The folder; raises UsageError where it holds something else, IoError where it cannot be written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if folder.is_dir() and any(folder.iterdir()) and not (folder / _MARK).exists():
            raise UsageError(f"'{folder}' is not empty and not of a sweep; -o names another folder")
        try:
            (folder / "cells").mkdir(parents=True, exist_ok=True)
            (folder / _MARK).write_text(_MARK_TEXT)
        except OSError as error:
            raise IoError(f"'{folder}' cannot be written: {error.strerror or error}") from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other sweeps out of the folder. Raises UsageError where one is in it."""
        with open(self.folder / ".lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(f"another sweep is writing to '{self.folder}'; wait for it, or name another folder by -o") from None
            yield

    def path(self, cell_id: str) -> Path:
        """The file of a cell's record."""
        return self.folder / "cells" / cell_id[:2] / f"{cell_id}.json"

    def report_path(self, cell_id: str) -> str:
        """The path of a cell's report within the folder."""
        return f"reports/{cell_id[:2]}/{cell_id}.html"

    def read(self, cell_id: str) -> dict[str, Any] | None:
        """The record of a cell, None where it has none; one that is not ``final`` is for this sweep alone."""
        try:
            record = json.loads(self.path(cell_id).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return record if isinstance(record, dict) and record.get("format") == FORMAT else None

    def is_finished(self, cell_id: str, limits: Limits, retry: frozenset[str] = frozenset()) -> bool:
        """True where nothing is to be done: a cell that met a limit lower than today's is done again, as the verdicts of ``retry`` are."""
        record = self.read(cell_id)
        if record is None or not record["final"] or record["verdict"] in retry or "all" in retry:
            return False
        limit = {"timeout": ("time", limits.time), "memory": ("memory", limits.memory)}.get(record["verdict"])
        if limit is None:
            return True
        before = (record.get("limits") or {}).get(limit[0])
        return limit[1] is not None and (before is None or limit[1] <= before)

    def write(self, cell: Cell, outcome: Outcome) -> None:
        """Writes the files of a cell, its record last."""
        for kind, data in outcome.files.items():
            if kind == "report":
                write_whole(self.folder / self.report_path(cell.id), data)
        record = {**outcome.record, "final": outcome.is_final}
        write_whole(self.path(cell.id), json.dumps(record, separators=(",", ":")).encode())


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file that is whole when it is there. Raises IoError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except OSError as error:
        raise IoError(f"'{path}' cannot be written: {error.strerror or error}") from None
