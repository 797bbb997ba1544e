# SPDX-License-Identifier: Apache-2.0
"""Figures for notebooks and reports: graphs, times, shares of operators, errors. Needs matplotlib.

Each function draws into ``ax``, or into a new figure, and returns the axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parallax._svg_axes import draw_svg
from parallax.errors import Unsupported, UsageError
from parallax.model import load

__all__ = ["bars", "dot", "errors", "kernel_shares", "latencies"]

# Colors that people who see no difference between red and green tell apart.
_COLORS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB")
_VERDICT_COLORS = {"pass": "#4477AA", "diverged": "#EE6677", "mistrusted": "#CCBB44"}
_LARGEST_FIGURE = 40.0  # inches


def _axes(ax: Any, width: float, height: float) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise Unsupported("matplotlib is not installed; pip install matplotlib, or 'parallax-onnx[plot]'") from error
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _tidy(ax: Any, grid: str) -> None:
    """Leaves out what carries no information."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(axis=grid, color="#DDDDDD", linewidth=0.6)
    ax.set_axisbelow(True)


def _time_unit(largest: float) -> tuple[float, str]:
    for factor, name in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if largest * factor >= 1:
            return factor, name
    return 1e9, "ns"


def dot(model: Any, ax: Any = None) -> Any:
    """Draws a model's graph by the layout of ``parallax dot``; a large one with its scopes closed.

    ``model``: whatever load() takes. Without ``ax`` the figure has the size at which its text is readable.

    >>> import parallax
    >>> ax = parallax.plot.dot("samples/cnn/model.onnx"); ax.figure.savefig("cnn.png")            # doctest: +SKIP
    """
    svg = load(model).svg()
    if ax is None:
        size = [float(number) / 72 for number in svg.split('viewBox="0 0 ', 1)[1].split('"', 1)[0].split()]
        shrunk = min(1.0, _LARGEST_FIGURE / max(size))
        ax = _axes(None, max(1.0, size[0] * shrunk), max(1.0, size[1] * shrunk))
    draw_svg(svg, ax)
    return ax


def bars(times: Mapping[str, float], ax: Any = None, *, baseline: str | None = None, title: str = "") -> Any:
    """Draws a bar for each name with its time in seconds; with ``baseline``, how many times faster than that each is.

    >>> import parallax
    >>> ax = parallax.plot.bars({"eager": 0.0783, "parallax": 0.0428}, baseline="eager")          # doctest: +SKIP
    """
    if not times:
        raise UsageError("there are no times; at least one name must have one")
    if baseline is not None and baseline not in times:
        raise UsageError(f"baseline is {baseline!r}; it must be one of {', '.join(times)}")
    ax = _axes(ax, 6.4, 0.8 + 0.42 * len(times))
    factor, unit = _time_unit(max(times.values()))
    names = list(times)
    heights = [times[name] * factor for name in names]
    colors = ["#BBBBBB" if name == baseline else _COLORS[0] for name in names]
    drawn = ax.barh(names, heights, color=colors, height=0.62)
    labels = [
        f"{height:.3g} {unit}" + (f"  ({times[baseline] / times[name]:.2f}x)" if baseline not in (None, name) else "")
        for name, height in zip(names, heights, strict=True)
    ]
    ax.bar_label(drawn, labels, padding=4, fontsize=9)
    ax.invert_yaxis()
    ax.set_xlim(0, max(heights) * 1.28 or 1)
    ax.set_xlabel(f"time ({unit})")
    ax.set_title(title)
    _tidy(ax, "x")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def latencies(
    runs: Mapping[str, Sequence[float]], ax: Any = None, *, cumulative: bool = False, clip: float = 99, title: str = ""
) -> Any:
    """Draws the time of each call (seconds) in the order of calls, a color for each name, and the medians as lines.

    ``clip``: times above this percentile of a name are drawn at its limit, as triangles. ``cumulative``: sums instead.

    >>> import parallax
    >>> ax = parallax.plot.latencies({"cpu": [2e-3, 1e-3, 1.1e-3]})                               # doctest: +SKIP
    """
    if not runs or not all(len(times) for times in runs.values()):
        raise UsageError("a name has no times; each must have at least one")
    if not 0 < clip <= 100:
        raise UsageError(f"clip is {clip}; it must be a percentile above 0 and at most 100")
    ax = _axes(ax, 7.2, 3.6)
    series = {name: np.asarray(times, np.float64) for name, times in runs.items()}
    largest = max(float(times.sum() if cumulative else np.percentile(times, clip)) for times in series.values())
    factor, unit = _time_unit(largest)
    for at, (name, times) in enumerate(series.items()):
        color = _COLORS[at % len(_COLORS)]
        calls = np.arange(1, len(times) + 1)
        if cumulative:
            ax.plot(calls, np.cumsum(times) * factor, color=color, label=name, linewidth=1.8)
            continue
        limit = np.percentile(times, clip)
        clipped = times > limit
        label = f"{name}: median {np.median(times) * factor:.3g} {unit}"
        ax.scatter(calls[~clipped], times[~clipped] * factor, s=10, color=color, alpha=0.75, label=label, linewidths=0)
        ax.scatter(calls[clipped], np.full(int(clipped.sum()), limit * factor), s=26, color=color, marker="^")
        ax.axhline(float(np.median(times)) * factor, color=color, linewidth=0.9, alpha=0.7)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("call")
    ax.set_ylabel(f"{'sum of times' if cumulative else 'time'} ({unit})")
    ax.set_title(title)
    ax.legend(frameon=False, fontsize=9)
    _tidy(ax, "y")
    return ax


def kernel_shares(profile: Any, ax: Any = None, *, top: int = 10, leave_out: Sequence[str] = (), title: str = "") -> Any:
    """Draws the operators that take the most time, as shares of the whole; the rest is one bar.

    ``profile``: what profile() returns, or its document. ``leave_out``: operators that do not count, as "If".

    >>> import parallax
    >>> ax = parallax.plot.kernel_shares(parallax.profile("samples/cnn/model.onnx"))              # doctest: +SKIP
    """
    rows = [row for row in _document(profile)["ops"] if row["op"] not in leave_out]
    rows.sort(key=lambda row: -float(row["ms"]))
    total = sum(float(row["ms"]) for row in rows)
    if not rows or total <= 0:
        raise UsageError("the profile has no operators with a time; it must come from profile()")
    shown = [(f"{row['op']} ({row['count']})", float(row["ms"])) for row in rows[:top]]
    if len(rows) > top:
        shown.append((f"{len(rows) - top} others", sum(float(row["ms"]) for row in rows[top:])))
    ax = _axes(ax, 6.4, 0.8 + 0.32 * len(shown))
    shares = [100 * time / total for _, time in shown]
    colors = [_COLORS[0]] * min(len(rows), top) + ["#BBBBBB"] * (len(shown) - min(len(rows), top))
    drawn = ax.barh([name for name, _ in shown], shares, color=colors, height=0.66)
    labels = [f"{share:.1f} %  {time:.3g} ms" for share, (_, time) in zip(shares, shown, strict=True)]
    ax.bar_label(drawn, labels, padding=4, fontsize=9)
    ax.invert_yaxis()
    ax.set_xlim(0, max(shares) * 1.3)
    ax.set_xlabel("share of the time (%)")
    ax.set_title(title)
    _tidy(ax, "x")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def errors(comparison: Any, ax: Any = None, *, top: int = 5, title: str = "") -> Any:
    """Draws each value's difference as a multiple of its limit, in the order of execution.

    The first value beyond its limit and the ``top`` worst are named.

    ``comparison``: what compare() and diff() return, or their document.

    >>> import parallax
    >>> ax = parallax.plot.errors(parallax.compare("A.onnx", "B.onnx"))                           # doctest: +SKIP
    """
    values = [value for value in _document(comparison).get("values", []) if _severity(value) is not None]
    if not values:
        raise UsageError("the comparison has no values that were compared; there is nothing to draw")
    ax = _axes(ax, 8.0, 3.6)
    order = np.arange(len(values))
    severities = np.array([_severity(value) or 0.0 for value in values])
    finite = severities[np.isfinite(severities)]
    ceiling = max(10.0, float(finite.max()) * 10) if finite.size else 10.0
    positive = finite[finite > 0]
    floor = min(1e-3, float(positive.min()) / 2) if positive.size else 1e-3
    drawn = np.clip(np.where(np.isfinite(severities), severities, ceiling), floor, ceiling)
    for verdict, color in _VERDICT_COLORS.items():
        chosen = np.array([value["verdict"] == verdict for value in values])
        if chosen.any():
            ax.scatter(order[chosen], drawn[chosen], s=16, color=color, label=f"{verdict} ({chosen.sum()})", linewidths=0, zorder=3)
    ax.axhline(1, color="#333333", linewidth=1, linestyle="--")
    ax.text(0, 1.1, "limit", fontsize=8, color="#333333", va="bottom")
    beyond = [at for at in range(len(values)) if severities[at] > 1 and not values[at].get("accepted")]
    named = dict.fromkeys(beyond[:1] + sorted(beyond, key=lambda at: -severities[at])[:top])
    for row, at in enumerate(named):
        line = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.7, "shrinkB": 3}
        ax.annotate(
            str(values[at]["path"]), (order[at], drawn[at]), xytext=(1.02, 0.94 - 0.09 * row), textcoords="axes fraction",
            fontsize=8, va="center", arrowprops=line,
        )  # fmt: skip
    ax.set_yscale("log")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_ylim(floor / 2, ceiling * 4)
    ax.set_xlabel("value, in the order of execution")
    ax.set_ylabel("difference / limit")
    ax.set_title(title)
    ax.legend(frameon=False, fontsize=9, loc="lower right")
    _tidy(ax, "y")
    return ax


def _document(source: Any) -> dict[str, Any]:
    document: dict[str, Any] = source if isinstance(source, dict) else source.to_dict()
    return document


def _severity(value: Mapping[str, Any]) -> float | None:
    severity = value.get("severity")
    return None if severity is None else float(severity)
