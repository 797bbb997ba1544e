# SPDX-License-Identifier: Apache-2.0
"""Figures hold what they are given: bars, points, texts; tables hold the rows of the measurement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from parallax import plot, tables

import parallax

SAMPLES = Path(__file__).parents[4] / "samples"


@pytest.fixture(autouse=True)
def closed_figures() -> Any:
    """Figures do not pile up."""
    yield
    plt.close("all")


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_bars_show_times_and_speedups() -> None:
    ax = plot.bars({"eager": 0.08, "parallax": 0.02}, baseline="eager", title="Llama")
    assert [round(bar.get_width(), 6) for bar in ax.patches] == [80, 20]
    assert texts(ax) == ["80 ms", "20 ms  (4.00x)"]
    assert ax.get_title() == "Llama"
    with pytest.raises(parallax.UsageError, match="must be one of eager"):
        plot.bars({"eager": 1.0}, baseline="none")


def test_figures_are_drawn_into_given_axes() -> None:
    figure, axes = plt.subplots(1, 2)
    assert plot.bars({"a": 1.0}, axes[0]) is axes[0]
    assert plot.latencies({"a": [1e-3, 2e-3]}, axes[1]) is axes[1]
    assert len(plt.get_fignums()) == 1
    assert figure.axes == list(axes)


def test_latencies_beyond_the_percentile_are_clipped() -> None:
    times = [1e-3] * 99 + [1.0]
    ax = plot.latencies({"cpu": times}, clip=95)
    assert max(offset[1] for points in ax.collections for offset in np.asarray(points.get_offsets())) == pytest.approx(1.0)
    assert "median 1 ms" in ax.get_legend().get_texts()[0].get_text()
    ax = plot.latencies({"cpu": times}, cumulative=True)
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(1.099)


def test_kernel_shares_of_a_profile() -> None:
    document = {"ops": [{"op": f"Op{at}", "count": at + 1, "ms": 2.0**at, "share": 0} for at in range(12)]}
    ax = plot.kernel_shares(document, top=3, leave_out=["Op11"])
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["Op10 (11)", "Op9 (10)", "Op8 (9)", "8 others"]
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(100)
    assert plot.kernel_shares(parallax.profile(SAMPLES / "cnn" / "model.onnx")).patches


def test_errors_of_a_comparison_name_the_worst() -> None:
    comparison = parallax.compare(
        SAMPLES / "fault_pair" / "A.onnx", SAMPLES / "fault_pair" / "B.onnx", inputs=SAMPLES / "fault_pair" / "test_data_set_0"
    )
    ax = plot.errors(comparison)
    document = comparison.to_dict()
    compared = [row for row in document["values"] if row.get("severity") is not None]
    assert sum(len(points.get_offsets()) for points in ax.collections) == len(compared)
    worst = max(compared, key=lambda row: float(row["severity"]))
    assert worst["path"] in texts(ax)


def test_a_graph_is_drawn_with_its_nodes() -> None:
    model = parallax.load(SAMPLES / "greedy_decoder" / "model.onnx")
    ax = plot.dot(model)
    # A box and its text for each node, bodies included.
    assert len(ax.patches) >= 2 * model.core.node_count
    width, height = ax.get_xlim()[1], ax.get_ylim()[0]
    assert ax.figure.get_size_inches() == pytest.approx((width / 72, height / 72))


def test_a_table_of_times() -> None:
    calls: list[str] = []
    table = tables.bench_table(
        [("eager", lambda: calls.append("eager")), ("ours", lambda: calls.append("ours"), {"com.microsoft": 3, "parallax.fused": 2})],
        warmup=1, N=2,
    )  # fmt: skip
    assert calls == ["eager", "ours", "eager", "ours", "eager", "ours"]
    assert [(row["name"], row["warmup"], row["N"], row["custom_ops"]) for row in table] == [("eager", 1, 2, None), ("ours", 1, 2, 5)]
    assert table[1]["speedup"] == pytest.approx(table[0]["avg_time"] / table[1]["avg_time"])
    assert str(table).splitlines()[0].split() == ["name", "avg_time", "min_time", "warmup", "N", "custom_ops", "speedup"]
    assert list(table.to_pandas().columns)[0] == "name"
    assert table.times().keys() == {"eager", "ours"}
    with pytest.raises(parallax.UsageError, match="at least one"):
        tables.bench_table([])
