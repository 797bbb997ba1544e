# SPDX-License-Identifier: Apache-2.0
"""The table of a sweep, ``results.parquet``: a row for each cell of the plan, in its order. SWEEPS.md has the columns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from parallax.errors import IoError
from parallax.sweep.packages import needed
from parallax.sweep.plan import Cell
from parallax.sweep.records import Records

__all__ = ["KEYS", "VERDICTS", "read_columns", "row_of", "schema", "write_rows", "write_table"]

# From the best to the worst.
VERDICTS = ("pass", "unsupported", "inconclusive", "diverged", "refused", "error", "memory", "timeout", "crash")
# The columns that tell a cell from the others of its sweep, and find it in another sweep.
KEYS = ("model", "against", "executor_a", "executor_b", "inputs", "options")
_ROWS_OF_A_GROUP = 50_000
_COUNTS = ("values", "compared", "passed", "diverged", "mistrusted", "not_compared")
_TEXTS = ("verdict", "reason", "error", "worst_path", "version", "host", "signal")
_DICTIONARIES = (*KEYS, "verdict", "version", "host", "first_op", "cause_op")


def schema() -> Any:
    """The schema of the table, with the version of its layout as metadata."""
    pa = needed("pyarrow")
    text, number, count = pa.string(), pa.float64(), pa.int32()
    words = pa.dictionary(pa.int32(), text)
    cause = pa.struct([("node", text), ("op", text), ("side", text), ("introduced", number), ("why", text)])
    return pa.schema(
        [
            *((key, words) for key in KEYS), ("sha", text), ("cell", text), ("verdict", words), ("reason", text), ("error", text),
            ("exit_code", count), ("signal", text), *((f"values_{name}" if name != "values" else name, count) for name in _COUNTS),
            ("worst_severity", number), ("worst_path", text), ("first_path", text), ("first_node", text), ("first_op", words),
            ("cause_op", words), ("causes", pa.list_(cause)), ("seconds", number), ("cpu_seconds", number), ("a_ms", number),
            ("b_ms", number), ("peak_bytes", pa.int64()), ("report", text), ("version", words), ("host", words),
            ("started", pa.timestamp("us", tz="UTC")),
        ],
        metadata={"parallax.sweep": "1"},
    )  # fmt: skip


def row_of(cell: Cell, record: dict[str, Any], report: str) -> dict[str, Any]:
    """The row of a finished cell."""
    summary, first, times = record.get("summary") or {}, record.get("first") or {}, record.get("milliseconds") or {}
    causes = [{**cause, "introduced": _number(cause.get("introduced"))} for cause in record.get("causes") or []]
    started = record.get("started")
    row: dict[str, Any] = {**dict(zip(KEYS, cell.key)), **{name: record.get(name) for name in _TEXTS}}
    row.update({f"values_{name}" if name != "values" else name: summary.get(name) for name in _COUNTS})
    row.update(
        sha=cell.sha, cell=cell.id, exit_code=record.get("exit_code"), worst_severity=_number(record.get("worst_severity")),
        first_path=first.get("path"), first_node=first.get("node") or record.get("node"), first_op=first.get("op") or record.get("op"),
        cause_op=causes[0]["op"] if causes else None, causes=causes, seconds=record.get("seconds"), cpu_seconds=record.get("cpu_seconds"),
        a_ms=times.get("a"), b_ms=times.get("b"), peak_bytes=record.get("peak_bytes"), report=report if record.get("has_report") else None,
        started=None if started is None else int(started * 1e6),
    )  # fmt: skip
    return row


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def write_table(records: Records, cells: Iterable[Cell], path: Path) -> int:
    """Writes the table of all cells, row group by row group; returns the number of rows. Raises IoError."""
    return write_rows((_row(records, cell) for cell in cells), path)


def _row(records: Records, cell: Cell) -> dict[str, Any]:
    record = records.read(cell.id)
    if record is None:
        raise IoError(f"'{records.path(cell.id)}' is missing; the same command computes the cell again")
    return row_of(cell, record, records.report_path(cell.id))


def write_rows(rows: Iterable[dict[str, Any]], path: Path) -> int:
    """Writes rows as a table that is whole when it is there; returns their number. Raises IoError."""
    pa, parquet = needed("pyarrow"), needed("pyarrow.parquet", "pyarrow")
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    layout, count = schema(), 0
    try:
        with parquet.ParquetWriter(temporary, layout, compression="zstd") as writer:
            for group in _groups(rows, _ROWS_OF_A_GROUP):
                writer.write_table(pa.Table.from_pylist(group, schema=layout))
                count += len(group)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, IoError):
            raise
        raise IoError(f"'{path}' cannot be written: {error.strerror or error}") from None
    return count


def _groups(rows: Iterable[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    group: list[dict[str, Any]] = []
    for row in rows:
        group.append(row)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def read_columns(path: Path, columns: Iterable[str]) -> Any:
    """Some columns of a sweep's table as a pyarrow Table, repeated texts as dictionaries. Raises IoError."""
    pa, parquet = needed("pyarrow"), needed("pyarrow.parquet", "pyarrow")
    wanted = list(columns)
    if path.is_dir():
        path = path / "results.parquet"
    try:
        table = parquet.read_table(path, columns=wanted, read_dictionary=[name for name in wanted if name in _DICTIONARIES])
    except (OSError, pa.ArrowException) as error:
        raise IoError(f"'{path}' cannot be read as the table of a sweep: {error}") from None
    lacking = [name for name in wanted if name not in table.column_names]
    if lacking:
        raise IoError(f"'{path}' has no column {lacking[0]}; it must be the results.parquet of a sweep")
    return table.unify_dictionaries()
