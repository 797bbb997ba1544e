# SPDX-License-Identifier: Apache-2.0
"""The overview of a sweep: one HTML file without addresses of other hosts, from the table alone.

All is counted and sorted by pyarrow and numpy; Python's loops see what is listed, which has limits: 10^6 cells take seconds.
"""

from __future__ import annotations

import datetime
import html
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from parallax._sentences import size_text
from parallax.sweep._page import SCRIPT, STYLE
from parallax.sweep.changes import Changes, counted, label
from parallax.sweep.packages import needed
from parallax.sweep.records import write_whole
from parallax.sweep.table import KEYS, VERDICTS, read_columns

__all__ = ["page_of", "write_overview"]

_COLUMNS = (*KEYS, "verdict", "worst_severity", "first_node", "first_op", "cause_op", "error", "reason", "report", "seconds",
            "peak_bytes", "version", "started")  # fmt: skip
_MOST_MODELS = 20_000
_MOST_DETAILS = 20_000
_MOST_ROWS = 200
_MOST_GROUPS = 20
_LONGEST_TEXT = 240
_COLORS = {
    "pass": "pass", "unsupported": "line", "inconclusive": "inconclusive", "diverged": "diverged", "refused": "refused",
}  # fmt: skip


def write_overview(folder: Path, changed: Changes | None = None) -> Path:
    """Writes the overview of a sweep's folder; returns its path. Raises IoError."""
    path = folder / "overview.html"
    write_whole(path, page_of(read_columns(folder, _COLUMNS), folder.resolve().name, changed).encode())
    return path


def page_of(table: Any, name: str, changed: Changes | None = None) -> str:
    """The page of a table with the overview's columns."""
    counts = counted(table["verdict"])
    parts = [_head(table, name, counts, changed)]
    if changed is not None:
        parts.append(_changes(changed))
    data, matrix = _matrix(table, changed)
    parts += [matrix, _by_column(table), _groups(table), _origins(table), _errors(table), _expensive(table)]
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("</", "<\\/")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Sweep {_text(name)}</title><style>{STYLE}</style></head><body>{''.join(parts)}"
        f'<script type="application/json" id="data">{text}</script><script>{SCRIPT}</script></body></html>'
    )


def _text(value: object) -> str:
    plain = "" if value is None else str(value)
    return html.escape(plain if len(plain) <= _LONGEST_TEXT else plain[: _LONGEST_TEXT - 1] + "…")


def _figure(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    if math.isinf(value):
        return "inf"
    return f"{value:.3g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:,.3g} h"


def _known(counts: Mapping[str, int]) -> list[str]:
    return [verdict for verdict in VERDICTS if counts.get(verdict)]


def _bar(counts: Mapping[str, int]) -> str:
    total = max(1, sum(counts.values()))
    parts = (
        f'<i style="width:{100 * counts[verdict] / total:.2f}%;background:var(--{_COLORS.get(verdict, "fails")})" '
        f'title="{verdict}: {counts[verdict]}"></i>'
        for verdict in _known(counts)
    )
    return f'<div class="bar">{"".join(parts)}</div>'


def _head(table: Any, name: str, counts: Mapping[str, int], changed: Changes | None) -> str:
    pc = needed("pyarrow.compute", "pyarrow")
    models = pc.count_distinct(table["model"].cast("string")).as_py()
    seconds, peak = pc.sum(table["seconds"]).as_py() or 0.0, pc.max(table["peak_bytes"]).as_py() or 0
    started = pc.min(table["started"]).as_py()
    versions = sorted(counted(table["version"]))
    facts = [f"{table.num_rows:,} cells of {models:,} models", f"{_duration(seconds)} of cells", f"largest {size_text(peak)}"]
    facts += [f"{started:%Y-%m-%d %H:%M} UTC"] if isinstance(started, datetime.datetime) else []
    before = changed.before if changed is not None else None
    items = []
    for verdict in VERDICTS:
        count, was = counts.get(verdict, 0), (before or {}).get(verdict, 0)
        if count or was:
            delta = ""
            if before is not None and count != was:
                is_good = (count > was) == (verdict == "pass")
                delta = f' <b class="{"down" if is_good else "up"}">{count - was:+,}</b>'
            items.append(f'<span style="--key:var(--{_COLORS.get(verdict, "fails")})">{verdict} {count:,}{delta}</span>')
    return (
        f'<h1>Sweep {_text(name)}</h1><div class="dim">{_text(" · ".join(facts))}<br>{_text(" · ".join(versions))}</div>'
        f'<div style="height:14px"></div>{_bar(counts)}<div class="legend">{"".join(items)}</div>'
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]], numbers: frozenset[str] = frozenset()) -> str:
    """A table of cells that are HTML already."""
    names = list(heads)
    kinds = [' class="number"' if name in numbers else "" for name in names]
    head = "".join(f'<th scope="col"{kind}>{_text(name)}</th>' for name, kind in zip(names, kinds))
    body = "".join("<tr>" + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row, kinds)) + "</tr>" for row in rows)
    return f'<div class="wide"><table style="width:100%"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _tag(verdict: str, report: str | None = None) -> str:
    inner = f'<a href="{_text(report)}" style="color:inherit">{verdict}</a>' if report else verdict
    return f'<span class="tag {verdict}">{inner}</span>'


def _changes(changed: Changes) -> str:
    counts = changed.counts
    names = ("worse", "better", "same", "new", "gone")
    line = ", ".join(f"<b>{counts[name]:,}</b> {name}" for name in names)
    heading = f"<h2>Since {_text(changed.last)}</h2><div>{line}</div>"
    if not changed.worse.num_rows:
        return heading
    rows = [
        (_tag(row["last_verdict"]), _tag(row["verdict"], row["report"]), f"<code>{_text(label(row))}</code>", _figure(row["last_severity"]),
         _figure(row["worst_severity"]), _text(row["error"] or row["reason"] or _node(row)))
        for row in changed.worse.slice(0, _MOST_ROWS).to_pylist()
    ]  # fmt: skip
    more = f'<div class="dim">the worst {_MOST_ROWS} of {changed.worse.num_rows:,}</div>' if changed.worse.num_rows > _MOST_ROWS else ""
    heads = ("was", "is", "cell", "severity was", "severity is", "first divergence or error")
    return f'{heading}<div style="height:8px"></div>{_table(heads, rows, frozenset(("severity was", "severity is")))}{more}'


def _node(row: Mapping[str, Any]) -> str:
    return f"{row['first_node']} ({row['first_op']})" if row["first_node"] else ""


# ---- Models x columns


def _joined(table: Any, *parts: Any) -> Any:
    """One text for several columns of a row, encoded: (numbers, texts)."""
    pa, pc = needed("pyarrow"), needed("pyarrow.compute", "pyarrow")
    texts = [part if isinstance(part, str) else pc.fill_null(table[part[0]].cast(pa.string()), "").combine_chunks() for part in parts]
    encoded = pc.binary_join_element_wise(*texts, "\x1f").dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary.to_pylist()


def _column_name(text: str, has_options: bool) -> str:
    a, b, options = text.split("\x1f")
    sides = f"{a}, {b}" if b else a
    return f"{sides} · {options}" if has_options else sides


def _ranks(table: Any) -> Any:
    pa, pc = needed("pyarrow"), needed("pyarrow.compute", "pyarrow")
    ranks = pc.index_in(table["verdict"].cast(pa.string()), value_set=pa.array(VERDICTS))
    return pc.fill_null(ranks, len(VERDICTS) - 1).to_numpy()


def _columns(table: Any) -> tuple[Any, list[str]]:
    """(code of each row's column, names of columns): executors and options."""
    numbers, texts = _joined(table, ("executor_a",), ("executor_b",), ("options",))
    has_options = len({text.rpartition("\x1f")[2] for text in texts}) > 1
    return numbers, [_column_name(text, has_options) for text in texts]


def _models(table: Any) -> tuple[Any, list[str]]:
    numbers, texts = _joined(table, ("model",), ("against",))
    return numbers, [text.replace("\x1f", " against ") if text[-1] != "\x1f" else text[:-1] for text in texts]


def _matrix(table: Any, changed: Changes | None) -> tuple[dict[str, Any], str]:
    """(data of the script, HTML): for each model and column the worst of its inputs."""
    np, pa = needed("numpy"), needed("pyarrow")
    model_of, names = _models(table)
    column_of, columns = _columns(table)
    rank = _ranks(table)
    severity = np.nan_to_num(table["worst_severity"].to_numpy(), nan=0.0, posinf=math.inf)
    slot = model_of.astype(np.int64) * len(columns) + column_of
    order = np.lexsort((severity, rank, slot))
    last = np.flatnonzero(np.diff(slot[order], append=-1))
    worst_rows = order[last]
    total = np.diff(last, prepend=-1)
    failing = np.add.reduceat((rank[order] > 1).astype(np.int64), np.concatenate(([0], last[:-1] + 1))) if len(last) else total
    seconds = np.bincount(model_of, weights=np.nan_to_num(table["seconds"].to_numpy()), minlength=len(names))
    worst_rank, worst_severity = np.full(len(names), -1), np.zeros(len(names))
    np.maximum.at(worst_rank, model_of[worst_rows], rank[worst_rows])
    np.maximum.at(worst_severity, model_of[worst_rows], np.where(rank[worst_rows] >= 2, severity[worst_rows], 0.0))
    listed = np.lexsort((np.arange(len(names)), -worst_severity, -worst_rank))[:_MOST_MODELS]
    position = np.full(len(names), -1)
    position[listed] = np.arange(len(listed))

    letters = np.full((len(listed), len(columns)), ".", dtype="U1")
    at = position[model_of[worst_rows]]
    shown = at >= 0
    digits = np.array([format(number, "x") for number in range(len(VERDICTS))])
    letters[at[shown], column_of[worst_rows[shown]]] = digits[rank[worst_rows[shown]]]
    models: list[list[Any]] = [
        [names[model], "".join(letters[number]), round(float(seconds[model]), 2), {}] for number, model in enumerate(listed.tolist())
    ]

    moved = _moved(changed, table.num_rows)
    wanted = np.flatnonzero(shown & ((rank[worst_rows] > 1) | (moved[worst_rows] != 0)))
    wanted = wanted[np.argsort(at[wanted], kind="stable")][:_MOST_DETAILS]
    picked = table.select(["worst_severity", "first_node", "first_op", "error", "reason", "report"]).take(pa.array(worst_rows[wanted]))
    for one, row in zip(wanted.tolist(), picked.to_pylist()):
        number, source = int(at[one]), int(worst_rows[one])
        value = row["worst_severity"]
        models[number][3][int(column_of[source])] = [
            _figure(value), _finite(value), int(failing[one]), int(total[one]), row["report"] or "",
            str(row["error"] or row["reason"] or _node(row))[:_LONGEST_TEXT], int(moved[source]),
        ]  # fmt: skip
    kinds = "".join(f"<option>{verdict}</option>" for verdict in _known(counted(table["verdict"])))
    only_worse = '<option value="worse">worse than last</option>' if changed is not None else ""
    cut = f'<span class="dim">the worst {_MOST_MODELS:,} of {len(names):,} models; results.parquet has all</span>' if len(names) > _MOST_MODELS else ""
    page = (
        '<h2>Models</h2><div class="tools"><label class="dim">filter <input type="search" id="find"></label>'
        f'<select id="show" aria-label="verdicts"><option value="">all verdicts</option><option value="failing">failing</option>{only_worse}{kinds}'
        f'</select><span class="dim" id="count"></span>{cut}</div>'
        '<div id="matrix"><table><thead><tr></tr></thead><tbody></tbody></table><div id="empty" class="dim" hidden>no model fits</div></div>'
        '<div class="dim">A number is the severity of the worst value (1 is the limit), n/m the inputs that fail; a link opens the report.</div>'
    )
    return {"columns": columns, "verdicts": list(VERDICTS), "models": models}, page


def _moved(changed: Changes | None, rows: int) -> Any:
    """1 for rows that are worse than in the last sweep, -1 for better ones."""
    np = needed("numpy")
    moved = np.zeros(rows, dtype=np.int8)
    if changed is not None:
        moved[changed.worse["at"].to_numpy()] = 1
        moved[changed.better["at"].to_numpy()] = -1
    return moved


def _finite(value: float | None) -> float:
    return 0.0 if value is None or math.isnan(value) else min(value, 1e300)


# ---- Sums over columns, folders, operators, errors


def _verdict_counts(numbers: Any, names: list[str], rank: Any) -> list[dict[str, int]]:
    np = needed("numpy")
    width = len(VERDICTS)
    counts = np.bincount(numbers.astype(np.int64) * width + rank, minlength=len(names) * width).reshape(len(names), width)
    return [{verdict: int(row[at]) for at, verdict in enumerate(VERDICTS) if row[at]} for row in counts]


def _counts_table(title: str, head: str, names: list[str], counts: list[dict[str, int]], more: str = "") -> str:
    known = [verdict for verdict in VERDICTS if any(verdict in row for row in counts)]
    rows = [
        (f"<code>{_text(name)}</code>", _bar(row), *(f"{row[verdict]:,}" if verdict in row else "" for verdict in known))
        for name, row in zip(names, counts)
    ]
    return f"<h2>{title}</h2>{_table((head, 'share', *known), rows, frozenset(known))}{more}"


def _by_column(table: Any) -> str:
    numbers, names = _columns(table)
    return _counts_table("Executors and options", "column", names, _verdict_counts(numbers, names, _ranks(table)))


def _groups(table: Any) -> str:
    """Folders of models, those with the most failures first; nothing where there is one folder."""
    np, pa, pc = needed("numpy"), needed("pyarrow"), needed("pyarrow.compute", "pyarrow")
    texts = pc.replace_substring_regex(table["model"].cast(pa.string()).combine_chunks(), "/?[^/]*$", "")
    encoded = texts.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    if len(names) < 2:
        return ""
    counts = _verdict_counts(encoded.indices.to_numpy(zero_copy_only=False), names, _ranks(table))
    failures = np.array([sum(count for verdict, count in row.items() if VERDICTS.index(verdict) > 1) for row in counts])
    chosen = np.argsort(-failures, kind="stable")[:_MOST_ROWS].tolist()
    more = f'<div class="dim">{_MOST_ROWS} of {len(names):,} folders</div>' if len(names) > _MOST_ROWS else ""
    return _counts_table("Folders of models", "folder", [names[at] or "." for at in chosen], [counts[at] for at in chosen], more)


def _most(table: Any, key: str) -> Any:
    """(key, number of cells, number of models) of the most frequent values of a column."""
    pc = needed("pyarrow.compute", "pyarrow")
    known = table.filter(pc.is_valid(table[key]))
    grouped = known.group_by(key).aggregate([("model", "count"), ("model", "count_distinct")])
    return grouped.sort_by([("model_count", "descending")]).slice(0, _MOST_GROUPS).to_pylist()


def _origins(table: Any) -> str:
    pa, pc = needed("pyarrow"), needed("pyarrow.compute", "pyarrow")
    diverged = table.filter(pc.equal(table["verdict"].cast(pa.string()), "diverged"))
    ops = pc.coalesce(diverged["cause_op"].cast(pa.string()), diverged["first_op"].cast(pa.string()))
    rows = _most(pa.table({"op": ops, "model": diverged["model"].cast(pa.string())}), "op")
    if not rows:
        return ""
    cells = [(f"<code>{_text(row['op'])}</code>", f"{row['model_count']:,}", f"{row['model_count_distinct']:,}") for row in rows]
    return "<h2>Operators of first causes</h2>" + _table(("operator", "cells", "models"), cells, frozenset(("cells", "models")))


def _errors(table: Any) -> str:
    """The most frequent errors; names and numbers in them are left out, so that equal errors of many models count together."""
    pa, pc = needed("pyarrow"), needed("pyarrow.compute", "pyarrow")
    failed = table.filter(pc.is_valid(table["error"]))
    texts = pc.utf8_slice_codeunits(failed["error"], 0, 400)
    for pattern, shown in (("'[^']*'", "'…'"), (r"\d+(\.\d+)?", "N")):
        texts = pc.replace_substring_regex(texts, pattern, shown)
    kinds = pc.binary_join_element_wise(failed["verdict"].cast(pa.string()), texts, "\x1f")
    rows = _most(pa.table({"error": kinds, "model": failed["model"].cast(pa.string())}), "error")
    if not rows:
        return ""
    cells = []
    for row in rows:
        verdict, _, text = row["error"].partition("\x1f")
        cells.append((_tag(verdict), _text(text), f"{row['model_count']:,}", f"{row['model_count_distinct']:,}"))
    return "<h2>Errors</h2>" + _table(("verdict", "error", "cells", "models"), cells, frozenset(("cells", "models")))


def _expensive(table: Any) -> str:
    """The slowest cells and the largest ones."""
    pc = needed("pyarrow.compute", "pyarrow")
    parts = []
    for title, key, shown in (("Slowest cells", "seconds", _duration), ("Largest cells", "peak_bytes", size_text)):
        chosen = pc.select_k_unstable(table.select([key]), _MOST_GROUPS, [(key, "descending")])
        rows = table.take(chosen).to_pylist()
        cells = [
            (_tag(row["verdict"], row["report"]), f"<code>{_text(label(row))}</code>", shown(row[key])) for row in rows if row[key] is not None
        ]
        if cells:
            parts.append(f"<h2>{title}</h2>" + _table(("verdict", "cell", key.partition("_")[0]), cells, frozenset(("seconds", "peak"))))
    return "".join(parts)
