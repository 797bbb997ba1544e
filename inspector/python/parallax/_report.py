# SPDX-License-Identifier: Apache-2.0
"""A comparison as HTML for a notebook: verdict, causes, the graph around the first cause, the worst values.

The page stands in an ``<iframe srcdoc sandbox>``: its styles and its script stay within, and it fetches nothing.
"""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parallax.generation import Generation
    from parallax.comparison import Cause, ComparedValue, Comparison

_MOST_ROWS = 200
_MOST_CAUSES = 10
_LONGEST_TEXT = 300
# Bytes of the whole frame, whose quoting makes a page longer.
_LARGEST_FRAME = 2_900_000
_LARGEST_PICTURE = 1_200_000

_STYLE = """
:root{color-scheme:light dark;--ink:#1d2129;--dim:#5d6673;--line:#d9dee5;--back:#fff;--band:#f5f7f9;
--pass:#1a7f4b;--diverged:#c2372e;--inconclusive:#9a6700}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--dim:#9aa4b2;--line:#3a414c;--back:#16191e;--band:#20252c;
--pass:#4cc38a;--diverged:#ff7b72;--inconclusive:#e0b04c}}
*{box-sizing:border-box}
body{margin:0;padding:12px;background:var(--back);color:var(--ink);font:13px/1.45 system-ui,sans-serif}
h1{font-size:15px;margin:0 0 4px}h2{font-size:13px;margin:16px 0 6px}
.verdict{display:inline-block;padding:1px 9px;border-radius:10px;border:1.5px solid currentColor;margin-right:8px}
.pass{color:var(--pass)}.diverged{color:var(--diverged)}.inconclusive,.mistrusted{color:var(--inconclusive)}
.not_compared,.dim{color:var(--dim)}
code{font:12px/1.4 ui-monospace,monospace;overflow-wrap:anywhere}
ol{margin:0;padding:0;list-style:none}
li{padding:6px 10px;margin:0 0 6px;border-left:3px solid var(--diverged);background:var(--band)}
figure{margin:0;padding:8px;background:#fff;border:1px solid var(--line);border-radius:4px;overflow:auto;
max-height:420px;text-align:center}
svg{max-width:none}
input{font:inherit;color:inherit;background:var(--back);border:1px solid var(--line);border-radius:4px;padding:3px 7px;
width:min(320px,100%)}
.table{overflow:auto;max-height:420px;margin-top:6px;border:1px solid var(--line);border-radius:4px}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:3px 8px;border-bottom:1px solid var(--line);white-space:nowrap}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}
th{position:sticky;top:0;background:var(--band);padding:0}
th button{all:unset;cursor:pointer;padding:4px 8px;font-weight:600}
th button:focus-visible,input:focus-visible{outline:2px solid var(--ink);outline-offset:-2px}
th[aria-sort=ascending] button::after{content:" \\2191"}th[aria-sort=descending] button::after{content:" \\2193"}
"""

# Numbers sort by data-number, everything else as text; rows that have none come last either way.
_SCRIPT = """
const figure=document.querySelector('figure');
if(figure)figure.scrollTop=(figure.scrollHeight-figure.clientHeight)/2;
const table=document.querySelector('table'),body=table&&table.tBodies[0];
function key(row,at){const cell=row.cells[at],number=cell.dataset.number;
return number===undefined?cell.textContent:number===''?null:Number(number)}
if(table){table.querySelectorAll('th button').forEach((button,at)=>button.onclick=()=>{
const head=button.parentNode,down=head.getAttribute('aria-sort')!=='descending';
table.querySelectorAll('th').forEach(other=>other.removeAttribute('aria-sort'));
head.setAttribute('aria-sort',down?'descending':'ascending');
const rows=[...body.rows];rows.sort((a,b)=>{const x=key(a,at),y=key(b,at);
if(x===null||y===null)return(x===null)-(y===null);
const order=typeof x==='number'?x-y:x.localeCompare(y);return down?-order:order});
rows.forEach(row=>body.append(row))});
document.querySelector('input').oninput=event=>{const wanted=event.target.value.toLowerCase();
for(const row of body.rows)row.hidden=!row.textContent.toLowerCase().includes(wanted)}}
"""


def framed(page: str, title: str, height: int) -> str:
    """A whole HTML document in a frame of its own, ``height`` pixels high."""
    return (
        f'<iframe title="{title}" sandbox="allow-scripts" srcdoc="{html.escape(page)}" '
        f'style="width:100%;height:{height}px;border:0"></iframe>'
    )


def frame_of(comparison: Comparison) -> str:
    """The page in a frame of its own, below 3 MB whatever the model."""
    picture = comparison.svg()
    rows = _MOST_ROWS
    while True:
        page = page_of(comparison, picture, rows)
        frame = framed(page, "Comparison", _height(comparison, bool(picture)))
        if len(frame.encode()) <= _LARGEST_FRAME or (not picture and rows == 0):
            return frame
        picture, rows = "", rows if picture else rows // 2


def page_of(comparison: Comparison, picture: str, rows: int) -> str:
    """A whole HTML document; ``picture`` is SVG or "", ``rows`` how many values it lists."""
    picture = picture if len(picture) <= _LARGEST_PICTURE else ""
    parts = [_head(comparison), _causes(comparison.causes), _figure(picture), _table(comparison, rows)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Comparison</title>'
        f"<style>{_STYLE}</style></head>"
        f'<body>{"".join(parts)}<script>{_SCRIPT}</script></body></html>'
    )


def _height(comparison: Comparison, has_picture: bool) -> int:
    listed = min(_MOST_ROWS, comparison.summary.values)
    table = 130 + min(420, 26 * (listed + 1)) if listed else 0
    causes = 40 + 76 * min(_MOST_CAUSES, len(comparison.causes)) if comparison.causes else 0
    return 110 + causes + (470 if has_picture else 0) + table


def _text(text: object) -> str:
    """Text for HTML: bounded, and never an address that a page could fetch."""
    plain = "" if text is None else str(text)
    return html.escape(plain if len(plain) <= _LONGEST_TEXT else plain[: _LONGEST_TEXT - 1] + "…")


def _figures(value: object) -> str:
    if not isinstance(value, (int, float)):
        return "" if value is None else str(value)
    if isinstance(value, int):
        return str(value)
    return f"{value:.4g}" if math.isfinite(value) else str(value)


def _head(comparison: Comparison) -> str:
    summary, verdict = comparison.summary, comparison.verdict
    devices = [f" on {row.device}" if row.device else "" for row in comparison.executions]
    sides = " · ".join(f"{row.side}: {row.name}{on}" for row, on in zip(comparison.executions, devices))
    counts = [f"{summary.values} values", f"{summary.passed} passed", f"{summary.diverged} diverged"]
    counts += [f"{summary.mistrusted} mistrusted"] if summary.mistrusted else []
    counts += [f"{summary.not_compared} not compared"] if summary.not_compared else []
    headline = f"<div>{_text(comparison.reason)}</div>" if comparison.reason else ""
    first = comparison.first_divergence
    if first is not None:
        headline += f"<div>first: <code>{_text(first.path)}</code> {_text(first.op or '')}</div>"
    return (
        f'<h1><span class="verdict {verdict}">{verdict}</span>{", ".join(counts)}</h1>'
        f'<div class="dim">{_text(sides)}</div>{headline}'
    )


def _causes(causes: list[Cause]) -> str:
    if not causes:
        return ""
    items = []
    for cause in causes[:_MOST_CAUSES]:
        is_renamed = cause.node_b not in (None, cause.node)
        in_b = f'<span class="dim">in B</span> <code>{_text(cause.node_b)}</code> ' if is_renamed else ""
        source = ""
        if cause.source is not None:
            origin = " · ".join(part for part in (cause.source.operator, cause.source.module, cause.source.line) if part)
            source = f'<div class="dim">{_text(origin)}</div>' if origin else ""
        items.append(
            f"<li><b>{cause.rank}. <code>{_text(cause.node)}</code></b> {_text(cause.op)} {in_b}"
            f'<span class="dim">side {_text(cause.side)} · introduced {_figures(cause.introduced)} · '
            f"inherited {_figures(cause.inherited)}</span><div>{_text(cause.why)}</div>{source}</li>"
        )
    more = f'<div class="dim">and {len(causes) - _MOST_CAUSES} more</div>' if len(causes) > _MOST_CAUSES else ""
    return f"<h2>Causes</h2><ol>{''.join(items)}</ol>{more}"


def _figure(picture: str) -> str:
    if not picture:
        return ""
    # A namespace is for files of their own; in a page it would be the only address.
    inline = picture[picture.find("<svg") :].replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)
    return f"<h2>Around the first cause</h2><figure>{inline}</figure>"


_COLUMNS = ("verdict", "value", "severity", "max |d|", "max rel", "rel L2", "A", "B", "node", "op", "type", "reason")
_NUMBERS = frozenset(("severity", "max |d|", "max rel", "rel L2", "A", "B"))


def _table(comparison: Comparison, rows: int) -> str:
    worst = sorted(comparison.values, key=_rank)[:rows]
    if not worst:
        return ""
    heads = "".join(
        f'<th scope="col"{" class=number" if name in _NUMBERS else ""}><button>{_text(name)}</button></th>'
        for name in _COLUMNS
    )
    body = "".join(_row(value) for value in worst)
    return (
        f"<h2>The worst {len(worst)} of {comparison.summary.values} values</h2>"
        '<label class="dim">filter <input type="search"></label>'
        f'<div class="table"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _rank(value: ComparedValue) -> tuple[bool, float]:
    """Compared ones first, by severity; NaN counts as the worst, an accepted value as one at its limit."""
    severity = value.severity
    if severity is None:
        return True, 0.0
    severity = min(severity, 1.0) if value.accepted else severity
    return False, -math.inf if math.isnan(severity) else -severity


def _row(value: ComparedValue) -> str:
    metrics = value.metrics or {}
    numbers = [value.severity, *(metrics.get(name) for name in ("max_abs", "max_rel", "rel_l2", "worst_a", "worst_b"))]
    dims = ",".join(str(size) for size in value.shape)
    accepted = value.accepted
    reason = value.reason if accepted is None else f"accepted as {accepted['reason']}: {accepted['evidence']}"
    return (
        f'<tr><td class="{value.verdict}">{_text(value.verdict)}</td><td><code>{_text(value.path)}</code></td>'
        + "".join(_number_cell(number) for number in numbers)
        + f"<td>{_text(value.node)}</td><td>{_text(value.op)}</td><td>{_text(value.dtype)}[{dims}]</td>"
        f"<td>{_text(reason)}</td></tr>"
    )


def _number_cell(number: object) -> str:
    known = number if isinstance(number, (int, float)) else None
    key = "" if known is None else "Infinity" if math.isnan(known) or known == math.inf else repr(float(known))
    key = "-Infinity" if known == -math.inf else key
    return f'<td class="number" data-number="{key}">{_text(_figures(number))}</td>'


_MOST_TOKENS = 40
_MOST_STEPS = 100


def generation_of(generation: Generation) -> str:
    """The tables of a generation; of two sides, the comparison below them."""
    rows = [[at, " ".join(map(str, tokens[:_MOST_TOKENS])) + (" ..." if len(tokens) > _MOST_TOKENS else ""),
             len(tokens), generation.stopped[at], *generation.scores[at : at + 1]]
            for at, tokens in enumerate(generation.new_tokens)]  # fmt: skip
    heads = ["sequence", "new tokens", "count", "ended by", *(["score"] if generation.scores else [])]
    parts = [f"<p>{_text(repr(generation)[1:-1].removeprefix('parallax.'))}</p>", _plain_table(heads, rows)]
    if generation.comparison is not None:
        steps = [[row["step"], " ".join(map(str, row["tokens"])), min(row["margin"], default=""), row.get("worst") or "",
                  row.get("severity"), "near tie" if row.get("near_tie") else ""]
                 for row in generation.steps[:_MOST_STEPS]]  # fmt: skip
        parts.append(_plain_table(["step", "tokens", "least margin", "worst value", "severity", ""], steps))
        parts.append(frame_of(generation.comparison))
    return "".join(parts)


def _plain_table(heads: list[str], rows: list[list[object]]) -> str:
    """A table in the notebook's own style; long ones scroll."""
    style = ' style="text-align:left;padding:2px 12px 2px 2px"'
    head = "".join(f"<th{style}>{_text(name)}</th>" for name in heads)
    lines = ("".join(f"<td{style}>{_text(_figures(cell))}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div style="max-height:22em;overflow:auto">{table}</div>'
