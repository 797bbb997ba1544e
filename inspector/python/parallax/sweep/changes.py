# SPDX-License-Identifier: Apache-2.0
"""Two sweeps compared: which cells got worse since the last one.

A cell is found in the other sweep by its names (KEYS of table.py): contents and versions may differ. It is worse where its
verdict is, in the order of VERDICTS, or where it diverges as before with more than WORSE_FACTOR times the severity.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from parallax.sweep.packages import needed
from parallax.sweep.table import KEYS, VERDICTS, read_columns

__all__ = ["COLUMNS", "Changes", "changes", "failing", "with_changes"]

WORSE_FACTOR = 2.0
COLUMNS = (*KEYS, "verdict", "worst_severity", "first_node", "first_op", "error", "reason", "report", "seconds", "sha")
_MOST_LISTED = 50
_MOST_FAILING = 10
_JOINT = "\x1f"


class Changes(NamedTuple):
    """Counts of cells, and tables (pyarrow) with the rows of today and ``last_verdict``, ``last_severity``: the worst first."""

    last: str
    counts: dict[str, int]
    before: dict[str, int]  # cells by verdict in the last sweep
    worse: Any
    better: Any

    @property
    def has_common(self) -> bool:
        """True where a cell is in both sweeps."""
        return any(self.counts[name] for name in ("worse", "better", "same"))

    @property
    def text(self) -> str:
        """The answer in words."""
        names = ("worse", "better", "same", "new", "gone")
        lines = [f"since {self.last}: " + ", ".join(f"{self.counts[name]} {name}" for name in names)]
        if not self.has_common:
            lines.append("no cell is in both sweeps: nothing was compared")
        lines += [_line(row) for row in self.worse.slice(0, _MOST_LISTED).to_pylist()]
        if self.worse.num_rows > _MOST_LISTED:
            lines.append(f"  and {self.worse.num_rows - _MOST_LISTED} more")
        return "\n".join(lines)


def with_changes(last: Path, now: Path) -> Changes:
    """The changes from one sweep's table or folder to another's. Raises IoError."""
    return changes(read_columns(last, (*KEYS, "verdict", "worst_severity")), read_columns(now, COLUMNS), str(last))


def changes(before: Any, after: Any, name: str) -> Changes:
    """The changes from one table to another: the columns of read_columns()."""
    pa, pc = needed("pyarrow"), needed("pyarrow.compute", "pyarrow")
    last = pa.table({"key": _keys(before), "last_at": pa.array(range(0), pa.int64()) if not before.num_rows else _numbers(before.num_rows)})
    now = pa.table({"key": _keys(after), "at": _numbers(after.num_rows)})
    joined = now.join(last, "key", join_type="left outer").select(["at", "last_at"])
    joined = joined.filter(pc.is_valid(joined["last_at"]))
    after_rows, before_rows = joined["at"].combine_chunks(), joined["last_at"].combine_chunks()
    rank, last_rank = pc.take(_ranks(after), after_rows), pc.take(_ranks(before), before_rows)
    severity = pc.fill_null(pc.take(after["worst_severity"].combine_chunks(), after_rows), 0.0)
    last_severity = pc.fill_null(pc.take(before["worst_severity"].combine_chunks(), before_rows), 0.0)
    both_diverge = pc.and_(pc.equal(rank, VERDICTS.index("diverged")), pc.equal(last_rank, rank))
    grew = pc.and_(both_diverge, pc.greater(severity, pc.multiply(last_severity, WORSE_FACTOR)))
    fell = pc.and_(both_diverge, pc.greater(last_severity, pc.multiply(severity, WORSE_FACTOR)))
    is_worse, is_better = pc.or_(pc.greater(rank, last_rank), grew), pc.or_(pc.less(rank, last_rank), fell)

    def rows(chosen: Any) -> Any:
        ours, theirs = pc.filter(after_rows, chosen), pc.filter(before_rows, chosen)
        table = after.take(ours).append_column("last_verdict", before["verdict"].combine_chunks().take(theirs).cast(pa.string()))
        table = table.append_column("last_severity", before["worst_severity"].combine_chunks().take(theirs))
        table = table.append_column("rank", pc.take(_ranks(after), ours)).append_column("at", ours)
        return table.sort_by([("rank", "descending"), ("worst_severity", "descending"), ("at", "ascending")])

    worse, better = rows(is_worse), rows(is_better)
    both = len(after_rows)
    counts = {
        "worse": worse.num_rows, "better": better.num_rows, "same": both - worse.num_rows - better.num_rows,
        "new": after.num_rows - both, "gone": before.num_rows - both,
    }  # fmt: skip
    return Changes(name, counts, counted(before["verdict"]), worse, better)


def counted(column: Any) -> dict[str, int]:
    """How often each value of a column occurs."""
    pc = needed("pyarrow.compute", "pyarrow")
    pa = needed("pyarrow")
    return {row["values"]: row["counts"] for row in pc.value_counts(column.cast(pa.string())).to_pylist() if row["values"] is not None}


def _numbers(count: int) -> Any:
    pa, numpy = needed("pyarrow"), needed("numpy")
    return pa.array(numpy.arange(count, dtype=numpy.int64))


def _keys(table: Any) -> Any:
    """One text for the names of each row."""
    pa, pc = needed("pyarrow"), needed("pyarrow.compute", "pyarrow")
    texts = [pc.fill_null(table[key].cast(pa.string()), "").combine_chunks() for key in KEYS]
    return pc.binary_join_element_wise(*texts, _JOINT)


def _ranks(table: Any) -> Any:
    pa, pc = needed("pyarrow"), needed("pyarrow.compute", "pyarrow")
    ranks = pc.index_in(table["verdict"].cast(pa.string()).combine_chunks(), value_set=pa.array(VERDICTS))
    return pc.fill_null(ranks, len(VERDICTS))


def label(row: dict[str, Any]) -> str:
    """The names of a cell as one text."""
    sides = f"{row['executor_a']},{row['executor_b']}" if row["executor_b"] else row["executor_a"]
    against = f" against {row['against']}" if row["against"] else ""
    return f"{row['model']}{against} [{sides}; {row['inputs']}; {row['options']}]"


def failing(folder: Path) -> list[str]:
    """A line for each of the worst cells of a sweep that did not pass, and how many more there are."""
    pc = needed("pyarrow.compute", "pyarrow")
    table = read_columns(folder, COLUMNS)
    ranks = _ranks(table)
    table = table.append_column("rank", ranks).filter(pc.greater(ranks, VERDICTS.index("unsupported")))
    rows = table.sort_by([("rank", "descending"), ("worst_severity", "descending")]).slice(0, _MOST_FAILING).to_pylist()
    lines = [_line({**row, "last_verdict": None, "last_severity": None}) for row in rows]
    return lines if table.num_rows <= _MOST_FAILING else [*lines, f"  and {table.num_rows - _MOST_FAILING} more"]


def _line(row: dict[str, Any]) -> str:
    severity = "" if row["worst_severity"] is None else f", severity {row['worst_severity']:.3g}"
    before = "" if row["last_severity"] is None or not severity else f" (was {row['last_severity']:.3g})"
    first = f", first at {row['first_node']} ({row['first_op']})" if row["first_node"] else ""
    error = f": {row['error'] or row['reason']}" if row["error"] or row["reason"] else ""
    last = f"{row['last_verdict']} -> " if row["last_verdict"] else ""
    return f"  {label(row)}: {last}{row['verdict']}{severity}{before}{first}{error}"[:600]
