# SPDX-License-Identifier: Apache-2.0
"""The stubs are those of the module, and a program that uses the package passes a strict check of types."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import parallax
import pytest

PACKAGE = Path(parallax.__file__).parent
PATTERNS = Path(__file__).parents[3] / "inspector" / "python" / "binding" / "stubs.pattern"

USER = '''
import numpy as np
import parallax

session = parallax.Session("model.onnx", executor="cpu", threads=2)
outputs: dict[str, object] = session.run({"x": np.zeros((1, 2), np.float32)})
tensor = parallax.Tensor(np.zeros(3))
names: list[str] = session.input_names
shape: tuple[int, ...] = tensor.shape
model: parallax.Model = parallax.load("model.onnx")
dims: tuple[int | str | None, ...] | None = model.inputs[0].shape
text: str = model.text(shapes=True)
try:
    session.run([tensor])
except parallax.ExecutionError as error:
    node: str = error.node
'''


def test_stubs_are_those_of_the_module(tmp_path: Path) -> None:
    nanobind = pytest.importorskip("nanobind", reason="nanobind makes the stubs")
    made = tmp_path / "_core.pyi"
    subprocess.run(
        [sys.executable, str(Path(nanobind.__file__).parent / "stubgen.py"), "-q", "-m", "parallax._core", "-p", str(PATTERNS), "-o", str(made)],
        check=True, timeout=120, env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
    )
    assert made.read_text() == (PACKAGE / "_core.pyi").read_text()
    assert (PACKAGE / "py.typed").exists()


def test_every_public_name_is_documented() -> None:
    from parallax import _core

    for owner in (_core.Tensor, _core.Model, _core.Session):
        assert owner.__doc__
    for owner in (parallax.Session, parallax.Model):
        for name, member in vars(owner).items():
            if not name.startswith("_"):
                assert (member.__doc__ or "").strip(), f"{owner.__name__}.{name} has no docstring"


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_a_users_program_passes_mypy_strict(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(USER)
    settings = tmp_path / "mypy.ini"  # packages that the user's program does not use are not read
    parts = "torch.*,compat,comparison,dump,helpers,jobs,ort,plot,runners,tables,testing"  # what it does not use either
    skipped = ",".join(f"parallax.{part}" for part in parts.split(","))
    settings.write_text(
        f"[mypy]\nstrict = True\n[mypy-torch.*,onnx.*,onnx_ir.*,{skipped}]\nfollow_imports = skip\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(settings), "--cache-dir", str(tmp_path / "cache"), str(program)],
        capture_output=True, text=True, timeout=280, env={**os.environ, "MYPYPATH": str(PACKAGE.parent)}, cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
