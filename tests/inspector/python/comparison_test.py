# SPDX-License-Identifier: Apache-2.0
"""A Comparison's attributes, tables, files and page; and the Comparer."""

from __future__ import annotations

import html
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import parallax
import pytest
from onnx import TensorProto, helper
from parallax import _report
from parallax.comparison import Comparer, Comparison
from small_models import build, value

SAMPLES = Path(__file__).parents[3] / "samples"
A, B = str(SAMPLES / "fault_pair" / "A.onnx"), str(SAMPLES / "fault_pair" / "B.onnx")
X = np.linspace(-1, 1, 8, dtype=np.float32)


@pytest.fixture(scope="module")
def diverged() -> Comparison:
    return parallax.compare(A, against=B)


def chain(length: int, name: str = "v", last: str = "Tanh") -> bytes:
    """length nodes Sin, then one other."""
    nodes = [
        helper.make_node("Sin", [f"{name}{i}" if i else "x"], [f"{name}{i + 1}"], name=f"n{i}") for i in range(length)
    ]
    nodes.append(helper.make_node(last, [f"{name}{length}"], ["y"], name="last"))
    return build(nodes, [value("x", TensorProto.FLOAT, ["n"])], [value("y", TensorProto.FLOAT, None)])


def test_attributes_are_those_of_the_document(diverged: Comparison) -> None:
    document = diverged.to_dict()
    assert document == json.loads(diverged._core.json())
    assert not diverged
    assert diverged.summary.diverged == document["summary"]["diverged"] > 0
    assert [cause.node for cause in diverged.causes] == [row["node"] for row in document["causes"]]
    assert diverged.causes[0].node_b == document["causes"][0]["node_b"] == "block1/depthwise_bn"
    assert diverged.causes[0].source is not None
    assert diverged.causes[0].source.module == "block1"
    assert diverged.first_divergence is not None
    assert diverged.first_divergence.path == "block1/depthwise_bn_output"
    assert [side.side for side in diverged.executions] == ["A", "B"]
    worst = max(diverged.values, key=lambda row: row.severity or 0)
    assert worst.verdict == "diverged"
    assert worst.metrics is not None and worst.metrics["max_abs"] > 0
    assert diverged.expected == []


def test_a_comparison_that_passes_is_true() -> None:
    found = parallax.compare(A, executors="reference,cpu")
    assert found
    assert found.first_divergence is None and found.causes == []
    assert "pass" in repr(found) and found.svg() == ""
    assert "Causes" not in _report.page_of(found, "", 200)


def test_texts(diverged: Comparison) -> None:
    assert "cause 1: BatchNormalization 'block1/depthwise_bn', side B" in str(diverged)
    assert len(diverged.text(top=-1).splitlines()) > len(str(diverged).splitlines())
    assert repr(diverged).count("\n") == 0
    assert "21 of 63 values diverged, first cause 'block1/depthwise_bn'" in repr(diverged)


def test_numbers_that_are_not_finite() -> None:
    nodes = [helper.make_node("Div", ["x", "zero"], ["y"])]
    model = [
        build(nodes, [value("x", TensorProto.FLOAT, [8])], [value("y", TensorProto.FLOAT, None)],
              {"zero": np.full(1, number, np.float32)})
        for number in (1, 0)
    ]
    found = parallax.compare(model[0], model[1], inputs={"x": X})
    row = next(row for row in found.values if row.path == "y")
    assert row.severity == math.inf
    assert next(row for row in found.to_dict()["values"] if row["path"] == "y")["severity"] == "inf"
    assert "Infinity" in _report.page_of(found, "", 200)


def test_tables(diverged: Comparison) -> None:
    pandas = pytest.importorskip("pandas")
    frame = diverged.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["path"]) == [row.path for row in diverged.values]
    assert frame["severity"].dtype == np.float64
    polars = pytest.importorskip("polars")
    assert diverged.to_polars().filter(polars.col("verdict") == "diverged").height == diverged.summary.diverged
    pytest.importorskip("pyarrow")
    assert diverged.to_arrow().num_rows == diverged.summary.values


def test_a_missing_package_is_named(diverged: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pandas is not installed; pip install 'parallax-onnx\[tables\]'"):
        diverged.to_pandas()


def test_files(diverged: Comparison, tmp_path: Path) -> None:
    beginnings = {
        "html": "<!doctype html", "csv": "path,", "junit": "<?xml", "svg": "<", "dot": "digraph", "netron": "{",
        "model_explorer": "{",
    }
    for kind, beginning in beginnings.items():
        path = getattr(diverged, f"save_{kind}")(tmp_path / kind)
        text = path.read_text()
        assert text.lower().startswith(beginning), (kind, text[:80])
        assert "block1" in text
    assert diverged.command in (tmp_path / "html").read_text()
    with pytest.raises(parallax.UsageError, match="would be written over"):
        parallax.compare(A, against=B).save_csv(A)


def test_the_picture_is_around_the_first_cause(diverged: Comparison) -> None:
    picture = diverged.svg()
    assert picture.startswith("<svg")
    assert "block1/depthwise_bn" in picture and "stem/conv" not in picture
    assert "stem/conv" in diverged.svg("stem/conv_output")
    assert diverged.svg(steps=50).count("<g>") > picture.count("<g>")
    assert diverged.svg("nothing") == ""


def test_the_page_is_small_offline_and_closed(diverged: Comparison) -> None:
    frame = diverged._repr_html_()
    assert len(frame.encode()) < 3_000_000
    closed = r'<iframe title="Comparison" sandbox="allow-scripts" srcdoc="[^"]*" style="[^"]*"></iframe>'
    assert re.fullmatch(closed, frame)
    page = html.unescape(frame[frame.index('srcdoc="') + 8 : frame.index('" style=')])
    assert page.startswith("<!doctype html>") and page.endswith("</html>")
    for outside in ("http", "//cdn", "src=", "href=", "@import", "url("):
        assert outside not in page, outside
    assert "prefers-color-scheme:dark" in page
    assert "attribute epsilon is 1e-05 (the default) in B and 0.001 in A" in page
    assert page.count("<svg") == 1
    assert page.count("<tr>") == 1 + min(200, diverged.summary.values)
    severities = [float(text) for text in re.findall(r'data-number="([^"]*)"', page)[::6] if text]
    assert severities == sorted(severities, reverse=True)


def test_names_are_text_on_the_page_and_long_ones_are_cut() -> None:
    name = "</script><img src=x>" + "n" * 5000
    models = [chain(2, name, last) for last in ("Tanh", "Relu")]
    found = parallax.compare(models[0], models[1], inputs={"x": X})
    page = _report.page_of(found, "", 200)
    assert "<img" not in page
    assert page.count("</script>") == 1
    assert "n" * 400 not in page
    assert len(found._repr_html_().encode()) < 3_000_000


def test_a_page_of_a_large_model_lists_the_worst_200() -> None:
    models = [chain(400, last=last) for last in ("Tanh", "Relu")]
    found = parallax.compare(models[0], models[1], inputs={"x": X})
    page = _report.page_of(found, found.svg(), 200)
    assert page.count("<tr>") == 201
    assert len(found._repr_html_().encode()) < 3_000_000


def test_a_picture_that_is_too_large_is_left_out(diverged: Comparison) -> None:
    page = _report.page_of(diverged, "<svg>" + "x" * 2_000_000 + "</svg>", 200)
    assert "<svg" not in page and "<table" in page


# ---- Comparer ----


def test_a_comparer_runs_again_and_again() -> None:
    comparer = Comparer(chain(3), executors=("reference", "cpu"))
    for scale in range(1, 4):
        x = X * scale
        outputs, found = comparer.run({"x": x})
        assert found.verdict == "pass"
        assert found.summary.compared == 5
        np.testing.assert_allclose(outputs["y"], np.tanh(np.sin(np.sin(np.sin(x)))), rtol=1e-5)
        outputs["y"] += 1  # nobody else's
    assert comparer.run({"x": np.zeros(3, np.float32)})[1].verdict == "pass"


def test_a_comparer_takes_inputs_in_order_and_gives_lists() -> None:
    comparer = Comparer(chain(1), chain(1, last="Relu"), executors="reference")
    outputs, found, of_a = comparer.run_both([X])
    assert isinstance(outputs, list) and len(outputs) == 1
    np.testing.assert_allclose(outputs[0], np.maximum(np.sin(X), 0), rtol=1e-6)
    np.testing.assert_allclose(of_a[0], np.tanh(np.sin(X)), rtol=1e-6)
    assert found.verdict == "diverged" and found.causes == []
    assert comparer.run([X], blame=True)[1].causes[0].node == "last"
    assert isinstance(comparer.run([X], kind="tensor")[0][0], parallax.Tensor)


def test_a_comparer_of_one_model_on_two_sides() -> None:
    model = parallax.load(chain(2))
    comparer = Comparer(model, model, executors=("reference", "cpu"), only="y", rtol=0.5)
    _, found = comparer.run({"x": X})
    assert [row.path for row in found.values] == ["y"]
    assert found.values[0].limit is not None and found.values[0].limit["from"] == "user"


def test_a_comparer_goes_on_after_an_error() -> None:
    model = build(
        [helper.make_node("Gather", ["table", "i"], ["g"], name="look"), helper.make_node("Sin", ["g"], ["y"])],
        [value("i", TensorProto.INT64, [None])], [value("y", TensorProto.FLOAT, None)],
        {"table": np.arange(4, dtype=np.float32)})
    comparer = Comparer(model, executors=("reference", "cpu"))
    with pytest.raises(parallax.ExecutionError) as caught:
        comparer.run({"i": np.array([9])})
    assert caught.value.node == "look"
    assert "--range" not in str(caught.value)
    with pytest.raises(parallax.UsageError, match="int64"):
        comparer.run({"i": np.array([1.5])})
    assert comparer.run({"i": np.array([3])})[1].verdict == "pass"


@pytest.mark.parametrize(("inputs", "sentence"), [
    ({}, "input 'x' is missing"), ({"x": X, "z": X}, "names 'z', which is no input"),
    ([X, X], "2 inputs are given; the model has 1"), ([], "input 'x' is missing"),
])  # fmt: skip
def test_wrong_inputs_of_a_comparer_are_refused(inputs: Any, sentence: str) -> None:
    with pytest.raises(parallax.UsageError, match=re.escape(sentence)):
        Comparer(chain(1), executors=("reference", "cpu")).run(inputs)
