"""The scripts of samples/python run, with small sizes, and print what their users look for."""

from __future__ import annotations

import os
import re
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
    "torch_hooks.py": ([], r"pass: 4 of 4 modules compared"),
}  # fmt: skip


def run(command: list[str], folder: Path) -> str:
    program = Path(os.environ["PARALLAX_PROGRAM"]).parent
    environment = {**os.environ, "PATH": f"{program}{os.pathsep}{os.environ['PATH']}", "MPLBACKEND": "Agg"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_script(script: str, tmp_path: Path) -> None:
    arguments, pattern = SCRIPTS[script]
    output = run([sys.executable, "-B", str(SAMPLES / script), *arguments], tmp_path)
    assert re.search(pattern, output), output


def test_every_script_is_run() -> None:
    assert {path.name for path in SAMPLES.glob("*.py")} == {*SCRIPTS, "test_exported_models.py"}


def test_the_pytest_suite(tmp_path: Path) -> None:
    command = [sys.executable, "-B", "-m", "pytest", "-p", "parallax.pytest_plugin", "-p", "no:cacheprovider", "-rx"]
    output = run([*command, str(SAMPLES / "test_exported_models.py"), f"--parallax-report={tmp_path}/reports"], tmp_path)
    assert "3 passed, 1 xfailed" in output, output
