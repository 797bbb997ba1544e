# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin, in suites of its own: fixture, reports of failing tests, baselines written on demand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testing_test import INPUTS, normalized

SUITE = '''
import numpy as np

INPUTS = {"x": np.load("x.npy")}


def test_same(parallax_check):
    parallax_check.models("a.onnx", "a.onnx", inputs=INPUTS)
    parallax_check.executors("a.onnx")


def test_other(parallax_check):
    parallax_check.models("a.onnx", "b.onnx", inputs=INPUTS)


def test_kept(parallax_check):
    parallax_check.baseline("a.onnx", inputs=INPUTS)
'''


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder with a test file and its models."""
    import numpy as np

    (tmp_path / "suite_test.py").write_text(SUITE)
    (tmp_path / "a.onnx").write_bytes(normalized())
    (tmp_path / "b.onnx").write_bytes(normalized(epsilon=1e-1))
    np.save(tmp_path / "x.npy", INPUTS["x"])
    return tmp_path


def run_suite(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-B", "-m", "pytest", "-p", "parallax.pytest_plugin", "-p", "no:cacheprovider", "suite_test.py", *arguments]
    done = subprocess.run(command, cwd=folder, env=dict(os.environ), capture_output=True, text=True, timeout=240, check=False)
    return done.stdout + done.stderr


def test_a_failing_test_gets_a_report(suite: Path) -> None:
    output = run_suite(suite, "--parallax-report=reports", "-k", "same or other")
    assert "1 failed, 1 passed" in output, output
    assert "cause: norm (LayerNormalization" in output
    reports = list((suite / "reports").iterdir())
    assert [report.name for report in reports] == ["suite_test.py-test_other.html"]
    assert f"report: reports/{reports[0].name}" in output
    assert "epsilon" in reports[0].read_text()


def test_a_baseline_is_written_on_demand_and_compared_afterwards(suite: Path) -> None:
    output = run_suite(suite, "-k", "kept")
    assert "--parallax-save-baselines writes it" in output, output
    assert "1 passed" in run_suite(suite, "-k", "kept", "--parallax-save-baselines")
    assert (suite / "baselines" / "suite_test-test_kept.plx").exists()
    assert "1 passed" in run_suite(suite, "-k", "kept")
    (suite / "a.onnx").write_bytes(normalized(scale=3.0))
    output = run_suite(suite, "-k", "kept")
    assert "1 failed" in output, output
    assert "its baseline" in output
