# SPDX-License-Identifier: Apache-2.0
"""Modules that an import loads, a second copy of the module, and whose parallel regions oneDNN runs in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import parallax
import pytest
from small_models import run_python

SAMPLES = Path(__file__).parents[3] / "samples"
SANITIZED = pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer comes first in the process")


def test_an_import_loads_neither_torch_nor_pandas() -> None:
    loaded = run_python("import sys, parallax; print([m for m in ('torch', 'pandas', 'onnx', 'matplotlib', 'numpy') if m in sys.modules])")
    assert loaded.strip() == "[]"


def test_a_session_loads_numpy_alone() -> None:
    loaded = run_python(
        "import sys, parallax; parallax.Session; parallax.Tensor([1.0]).numpy()\n"
        "print([m for m in ('torch', 'pandas', 'onnx') if m in sys.modules], 'numpy' in sys.modules)"
    )
    assert loaded.strip() == "[] True"


def test_flags_of_later_loads_are_left_as_they_were() -> None:
    run_python("import sys; before = sys.getdlopenflags(); import parallax; assert sys.getdlopenflags() == before")


def test_names_are_loaded_when_they_are_used() -> None:
    assert parallax.Session.__module__ == "parallax.session"
    assert "Session" in dir(parallax)
    with pytest.raises(AttributeError, match="no attribute 'Sesion'"):
        parallax.Sesion  # type: ignore[attr-defined]  # noqa: B018


def test_runners_find_a_package_that_only_this_process_finds(tmp_path: Path) -> None:
    package = Path(parallax.__file__).parents[1]
    code = (
        f"import sys; sys.path.insert(0, {str(package)!r})\n"
        "import parallax\n"
        "print(parallax.doctor())\n"
        f"parallax.Session({str(SAMPLES / 'cnn' / 'model.onnx')!r}, 'torch:nowhere')"
    )
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-B", "-c", code], cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=120, check=False)
    assert "has no package parallax-onnx" not in done.stdout, done.stdout
    assert "torch is not installed" in done.stderr or "names no program" in done.stderr, done.stderr


@SANITIZED
def test_parallel_regions_are_our_own() -> None:
    assert run_python("from parallax import _core; print(_core.has_own_library_threads())").strip() == "True"


@SANITIZED
def test_a_second_copy_is_refused_in_words(tmp_path: os.PathLike[str]) -> None:
    package = os.path.dirname(os.path.abspath(parallax.__file__))
    copy = os.path.join(os.fspath(tmp_path), "parallax")
    os.mkdir(copy)
    for name in os.listdir(package):
        source = os.path.join(package, name)
        if os.path.isfile(source):
            with open(source, "rb") as stream, open(os.path.join(copy, name), "wb") as target:
                target.write(stream.read())
    code = (
        "import sys, parallax\n"
        "for name in [m for m in sys.modules if m.partition('.')[0] == 'parallax']: del sys.modules[name]\n"
        f"sys.path.insert(0, {os.fspath(tmp_path)!r})\n"
        "import parallax\n"
    )
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr
    assert "a second copy of it" in done.stderr and "cannot be loaded into this process" in done.stderr


@SANITIZED
def test_only_openmp_is_exported() -> None:
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", parallax._core.__file__], capture_output=True, text=True, check=True
    ).stdout.split()[2::3]
    assert "PyInit__core" in symbols and "GOMP_parallel" in symbols
    assert all(name.startswith(("PyInit__core", "GOMP_", "omp_")) for name in symbols), symbols[:20]
