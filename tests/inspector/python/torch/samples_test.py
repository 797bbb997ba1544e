# SPDX-License-Identifier: Apache-2.0
"""The scripts of samples/python run, with small sizes, and print what their users look for."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
SAMPLES = ROOT / "samples" / "python"

# Script -> its arguments, and a pattern of what it must print.
SCRIPTS = {
    "llama_fusion.py": (["--config", "tiny", "--number", "2", "--warmup", "1"], r"standard\+microsoft\+own"),
    "train_mlp.py": (["--config", "tiny", "--epochs", "1"], r"4 graphs"),
    "capture_modules.py": ([], r"12"),
    "onnxruntime_tensors.py": ([str(ROOT / "samples/cnn/model.onnx")], r"pass: \d+ values of onnxruntime"),
    "polygraphy_outputs.py": (
        [
            str(SAMPLES / "polygraphy_outputs.json"), str(ROOT / "samples/scan_filter/model.onnx"),
            "--inputs", str(ROOT / "samples/scan_filter/test_data_set_0"),
        ],
        r"trt-runner.*: pass, \d+ values compared",
    ),
    "generate_with_cache.py": (["--new-tokens", "8"], r"pass: [1-8] new tokens, 3 ways"),
    "t5_half_merged.py": (["--sets", "1", "--new-tokens", "6"], r"(?s)verified.*pass.*tokens with 4 beams"),
    "torch_hooks.py": ([], r"pass: 4 of 4 modules compared"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a script, which finds the program `parallax`."""
    program = Path(os.environ["PARALLAX_PROGRAM"]).parent
    monkeypatch.setenv("PATH", f"{program}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("script", SCRIPTS)
def test_script(script: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """In this process, which has imported torch already."""
    arguments, pattern = SCRIPTS[script]
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    monkeypatch.syspath_prepend(str(SAMPLES))  # as a script finds what is next to it
    try:
        runpy.run_path(str(SAMPLES / script), run_name="__main__")
    except SystemExit as end:
        assert not end.code, capfd.readouterr()
    output = capfd.readouterr().out
    assert re.search(pattern, output), output


def test_every_script_is_run() -> None:
    assert {path.name for path in SAMPLES.glob("*.py")} == {*SCRIPTS, "language_models.py", "test_exported_models.py"}


def test_the_pytest_suite(folder: Path) -> None:
    command = [sys.executable, "-B", "-m", "pytest", "-p", "parallax.pytest_plugin", "-p", "no:cacheprovider", "-rx"]
    command += [str(SAMPLES / "test_exported_models.py"), f"--parallax-report={folder}/reports"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, check=False)
    assert "3 passed, 1 xfailed" in done.stdout, done.stdout + done.stderr
