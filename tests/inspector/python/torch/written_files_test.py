# SPDX-License-Identifier: Apache-2.0
"""Files of captures, backends, conversions and transformers' models: the rules of files_test.py."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import onnx
import parallax
import parallax.torch as pt
import pytest
import torch
from onnx import TensorProto
from small_models import unary

LETTER = b"a letter to the editor\n"


def capture(force: bool = False, **files: Path) -> None:
    with pt.capture(torch.nn.ReLU(), force=force, **files) as got:
        torch.nn.Identity()(got)
        pt.append("x", torch.ones(2))


@pytest.mark.parametrize("kind", ["path", "onnx"])
def test_captures(kind: str, tmp_path: Path) -> None:
    path = tmp_path / ("F.plx" if kind == "path" else "F.onnx")
    path.write_bytes(LETTER)
    with pytest.raises(parallax.UsageError, match="force=True"):
        capture(**{kind: path})
    assert path.read_bytes() == LETTER and os.listdir(tmp_path) == [path.name]
    capture(True, **{kind: path})
    capture(**{kind: path})
    assert list(pt.restore(path)) == ["x"]
    assert os.listdir(tmp_path) == [path.name]


def test_a_capture_is_not_saved_over_its_dump(tmp_path: Path) -> None:
    path = tmp_path / "F.plx"
    capture(path=path)
    before = path.read_bytes()
    with pytest.raises(parallax.UsageError, match="which is read"):
        pt.save_onnx(pt.restore(path), path, force=True)
    assert path.read_bytes() == before
    target = tmp_path / "F.onnx"
    target.write_bytes(LETTER)
    with pytest.raises(parallax.UsageError, match="force=True"):
        pt.save_onnx(pt.restore(path), target)
    pt.save_onnx(pt.restore(path), target, force=True)
    pt.save_onnx(pt.restore(path), target)


@pytest.mark.parametrize("ending", ["onnx", "txt", "npz"])
def test_dumps_of_a_backend(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"net_0_inference.{ending}"
    path.write_bytes(LETTER)

    def run(**options: Any) -> None:
        torch._dynamo.reset()
        net = torch.compile(torch.nn.Linear(4, 2), backend=pt.backend(
            dump_prefix=tmp_path / "net", storage=pt.Storage(), **options))
        with torch.no_grad():
            net(torch.ones(3, 4))

    with pytest.raises(Exception, match="force=True"):
        run()
    assert path.read_bytes() == LETTER
    run(force=True)
    run()
    assert path.read_bytes()[:8] != LETTER[:8]


def test_exported_programs(tmp_path: Path) -> None:
    net = torch.nn.Linear(4, 2).eval()
    program = torch.onnx.export(net, (torch.ones(3, 4),), dynamo=True, verbose=False)
    for name in ("net.onnx", "net.plx"):
        (tmp_path / name).write_bytes(LETTER)
        with pytest.raises(parallax.UsageError, match="force=True"):
            pt.export_capture(program, (torch.ones(3, 4),), tmp_path / "net.plx")
        assert (tmp_path / name).read_bytes() == LETTER
        os.remove(tmp_path / name)
        assert os.listdir(tmp_path) in ([], ["net.onnx"])
    pt.export_capture(program, (torch.ones(3, 4),), tmp_path / "net.plx", force=True)
    pt.export_capture(program, (torch.ones(3, 4),), tmp_path / "net.plx")
    before = (tmp_path / "net.onnx").read_bytes()
    pair = (tmp_path / "net.onnx", program.exported_program)
    with pytest.raises(parallax.UsageError, match="which is read"):
        pt.export_capture(pair, (torch.ones(3, 4),), tmp_path / "net.onnx", force=True)
    assert (tmp_path / "net.onnx").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["net.onnx", "net.plx"]
    for force in (False, True):
        folder = tmp_path / f"kept{force}"
        assert pt.explain_conversion(program, (torch.ones(3, 4),), folder=folder)
        (folder / "torch.plx").write_bytes(LETTER)
        if not force:
            with pytest.raises(parallax.UsageError, match="force=True"):
                pt.explain_conversion(program, (torch.ones(3, 4),), folder=folder)
        assert pt.explain_conversion(program, (torch.ones(3, 4),), folder=folder, force=True)


def test_transformers_models(llama: tuple[Any, Path], tmp_path: Path) -> None:
    _, source = llama
    model = parallax.hf.from_onnx(source)
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    with pytest.raises(parallax.UsageError, match="which is read"):
        model.save_pretrained(source, force=True)
    assert {path: path.read_bytes() for path in source.rglob("*") if path.is_file()} == before
    (tmp_path / "config.json").write_bytes(LETTER)
    with pytest.raises(parallax.UsageError, match="force=True"):
        model.save_pretrained(tmp_path)
    assert (tmp_path / "config.json").read_bytes() == LETTER and os.listdir(tmp_path) == ["config.json"]
    model.save_pretrained(tmp_path, force=True)
    model.save_pretrained(tmp_path)
    assert parallax.hf.from_onnx(tmp_path).config.model_type == model.config.model_type


def test_values_of_onnxruntime(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    model, path = tmp_path / "m.onnx", tmp_path / "F.plx"
    onnx.save(onnx.load_from_string(unary("Exp", TensorProto.FLOAT, [2])), model)
    before = model.read_bytes()
    path.write_bytes(LETTER)
    with pytest.raises(parallax.UsageError, match="force=True"):
        parallax.ort.capture(model, None, path)
    with pytest.raises(parallax.UsageError, match="which is read"):
        parallax.ort.capture(model, None, model, force=True)
    assert path.read_bytes() == LETTER and model.read_bytes() == before
    assert parallax.ort.main([str(model), "-o", str(path)]) == 2
    assert parallax.ort.main([str(model), "-o", str(path), "--force"]) == 0
    assert parallax.ort.main([str(model), "-o", str(path)]) == 0
