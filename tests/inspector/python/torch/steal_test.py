# SPDX-License-Identifier: Apache-2.0
"""steal_forward: the printed trace and the file of onnx-diagnostic's scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from capture_test import same

import parallax.torch as pt
from parallax import compat
from parallax.torch.steal import create_input_tensors_from_onnx_model, is_stealing, steal_append, steal_forward


class Inner(torch.nn.Module):
    """x * y."""

    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> Any:
        return x * 2 if y is None else (x * y, [y])


class Model(torch.nn.Module):
    """Calls one module twice."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(4)
        self.inner = Inner()

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        first, _ = self.inner(self.norm(x), y=x)
        result: torch.Tensor = self.inner(first)
        return result


TRACE = """\
+model -- stolen forward for class Model -- iteration 0
  <- args=(T1s2x4,) --- kwargs={}
+model.norm -- stolen forward for class LayerNorm -- iteration 0
  <- args=(T1s2x4,) --- kwargs={}
  -> T1s2x4
-model.norm.
-- stores key=('model.norm', 0), size 0Kb -- T1s2x4
+model.inner -- stolen forward for class Inner -- iteration 0
  <- args=(T1s2x4,) --- kwargs=dict(y:T1s2x4)
  -> (T1s2x4,#1[T1s2x4])
-model.inner.
-- stores key=('model.inner', 0), size 0Kb -- (T1s2x4,#1[T1s2x4])
+model.inner -- stolen forward for class Inner -- iteration 1
  <- args=(T1s2x4,) --- kwargs={}
  -> T1s2x4
-model.inner.
-- stores key=('model.inner', 1), size 0Kb -- T1s2x4
  -> T1s2x4
-model.
-- stores key=('model', 0), size 0Kb -- T1s2x4
-- gather stored 8 objects, size=0 Mb
-- dumps stored objects
-- done dump stored objects
"""


def _steal(steal: Any, model: Model, file: Path, **options: Any) -> None:
    modules = [("model", model), ("model.norm", model.norm), ("model.inner", model.inner)]
    with steal(modules, dump_file=str(file), verbose=1, **options):
        model(torch.ones(2, 4))


def test_the_trace_is_printed_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _steal(compat.steal_forward, Model(), tmp_path / "a.onnx")
    assert capsys.readouterr().out == TRACE


def test_trace_and_file_are_those_of_onnx_diagnostic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    helper = pytest.importorskip("onnx_diagnostic.helpers.torch_helper")
    builder = pytest.importorskip("onnx_diagnostic.helpers.mini_onnx_builder")
    model = Model()
    _steal(helper.steal_forward, model, tmp_path / "theirs.onnx", storage_limit=2**20)
    expected = capsys.readouterr().out
    _steal(steal_forward, model, tmp_path / "ours.onnx", storage_limit=2**20)
    assert capsys.readouterr().out == expected
    theirs = builder.create_input_tensors_from_onnx_model(str(tmp_path / "theirs.onnx"))
    for read in (builder.create_input_tensors_from_onnx_model, create_input_tensors_from_onnx_model):
        for name in ("theirs", "ours"):
            assert same(read(str(tmp_path / f"{name}.onnx")), theirs), (read, name)


def test_submodules_are_named_and_indented(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    helper = pytest.importorskip("onnx_diagnostic.helpers.torch_helper")
    outputs = []
    for steal in (helper.steal_forward, steal_forward):
        with steal(Model(), submodules=True, with_min_max=True):
            torch.manual_seed(0)
            Model()
        model = Model()
        path = tmp_path / f"{len(outputs)}.onnx"  # what the other has written is a foreign file
        with steal(model, submodules=True, dump_file=str(path), with_shape=True):
            model(torch.ones(2, 4))
        outputs.append((capsys.readouterr().out, list(create_input_tensors_from_onnx_model(path))))
    assert outputs[0] == outputs[1]
    assert any(key[0].startswith("inner-Inner-") for key in outputs[1][1])


def test_large_results_are_skipped_and_arguments_dropped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = Model()
    with steal_forward(("m", model), dump_file=tmp_path / "a.onnx", storage_limit=32, verbose=1, dump_drop={"mask"}):
        model(torch.ones(2, 4), mask=torch.ones(1))
    assert "-- skips key=('m', 0), size 0Kb -- T1s2x4" in capsys.readouterr().out
    assert same(create_input_tensors_from_onnx_model(tmp_path / "a.onnx"), {("m", 0, "I"): ((torch.ones(2, 4),), {})})


def test_appended_objects_are_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steal_append("nothing", 1)
    assert not is_stealing()
    with steal_forward([("m", Model())], dump_file=tmp_path / "a.onnx"):
        assert is_stealing()
        steal_append("q", [torch.ones(1)])
        steal_append("q", torch.ones(2))
    assert capsys.readouterr().out == "-- stolen 'q': #1[T1s1]\n-- stolen 'q' renamed in 'q_1': T1s2\n"
    assert list(pt.restore(tmp_path / "a.onnx")) == ["q", "q_1"]


def test_a_trace_alone_stores_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    layer = torch.nn.ReLU()
    with steal_forward(layer) as got:
        layer(torch.ones(2))
    assert len(got) == 0
    assert capsys.readouterr().out.splitlines()[0] == "+ -- stolen forward for class ReLU -- iteration 0"
