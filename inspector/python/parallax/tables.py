# SPDX-License-Identifier: Apache-2.0
"""Tables of measured times: a row for each way to run the same thing, with its speed-up over the first."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from parallax.errors import UsageError

__all__ = ["BenchTable", "bench_table"]

_COLUMNS = ("name", "avg_time", "min_time", "warmup", "N", "custom_ops", "speedup")


class BenchTable(list[dict[str, Any]]):
    """Rows with name, avg_time and min_time (seconds), warmup, N, custom_ops and speedup; prints as a table."""

    def times(self) -> dict[str, float]:
        """Average seconds by name: what ``plot.bars`` draws."""
        return {row["name"]: row["avg_time"] for row in self}

    def to_pandas(self) -> Any:
        """Returns a DataFrame. Needs pandas."""
        import pandas

        return pandas.DataFrame(list(self), columns=list(_COLUMNS))

    def __str__(self) -> str:
        rows = [[_text(column, row[column]) for column in _COLUMNS] for row in self]
        widths = [max(len(text) for text in column) for column in zip(_COLUMNS, *rows, strict=True)]
        lines = [
            "  ".join(text.ljust(width) if at == 0 else text.rjust(width) for at, (text, width) in enumerate(zip(row, widths, strict=True)))
            for row in [list(_COLUMNS), *rows]
        ]
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{column}</th>" for column in _COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td>{_text(column, row[column])}</td>" for column in _COLUMNS) + "</tr>" for row in self
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(column: str, value: Any) -> str:
    if value is None:
        return ""
    if column.endswith("_time"):
        return f"{value * 1e3:.3f} ms"
    return f"{value:.2f}" if column == "speedup" else str(value)


def bench_table(
    entries: Sequence[tuple[str, Callable[[], Any]] | tuple[str, Callable[[], Any], Any]], *, warmup: int = 5, N: int = 20
) -> BenchTable:
    """Times calls and returns a row for each; ``speedup`` is over the first one.

    ``entries``: (name, call) or (name, call, custom ops), the latter a number, or a dict of numbers by domain as
    ``CompiledGraph.custom_ops`` is. The calls take turns, so that what else the machine does falls on all of them alike.

    >>> from parallax.tables import bench_table
    >>> table = bench_table([("sum", lambda: sum(range(100))), ("len", lambda: len(range(100)), 0)], warmup=1, N=3)
    >>> [row["name"] for row in table], table[0]["speedup"]
    (['sum', 'len'], 1.0)
    """
    if not entries:
        raise UsageError("there are no entries; at least one (name, call) must be given")
    if warmup < 0 or N < 1:
        raise UsageError(f"warmup is {warmup} and N is {N}; they must be at least 0 and 1")
    seconds: list[list[float]] = [[] for _ in entries]
    for _, call, *_ in entries:
        for _ in range(warmup):
            call()
    for _ in range(N):
        for at, (_, call, *_) in enumerate(entries):
            begin = time.perf_counter()
            call()
            seconds[at].append(time.perf_counter() - begin)
    table = BenchTable()
    for (name, _, *rest), times in zip(entries, seconds, strict=True):
        ops = rest[0] if rest else None
        average = sum(times) / len(times)
        table.append({
            "name": name, "avg_time": average, "min_time": min(times), "warmup": warmup, "N": N,
            "custom_ops": sum(ops.values()) if isinstance(ops, Mapping) else ops,
            "speedup": (table[0]["avg_time"] if table else average) / average,
        })  # fmt: skip
    return table
