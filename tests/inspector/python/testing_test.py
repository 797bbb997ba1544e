# SPDX-License-Identifier: Apache-2.0
"""The assertions for test suites: silent where models agree; else cause, reason, and a command that repeats the failure."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from parallax import testing
from small_models import build, value

import parallax


def normalized(epsilon: float = 1e-3, scale: float = 2.0, nodes: str = "") -> bytes:
    """y = relu(layer_norm(x) * scale); `nodes` in front of the nodes' names."""
    return build(
        [
            helper.make_node("LayerNormalization", ["x", "gain"], ["normed"], name=f"{nodes}norm", epsilon=epsilon),
            helper.make_node("Mul", ["normed", "scale"], ["scaled"], name=f"{nodes}scale_it"),
            helper.make_node("Relu", ["scaled"], ["y"], name=f"{nodes}relu"),
        ],
        [value("x", TensorProto.FLOAT, ["batch", 8])],
        [value("y", TensorProto.FLOAT, ["batch", 8])],
        {"gain": np.linspace(0.5, 1.5, 8, dtype=np.float32), "scale": np.array(scale, np.float32)},
    )


INPUTS = {"x": np.linspace(-0.1, 0.1, 24, dtype=np.float32).reshape(3, 8)}


def test_models_that_agree_pass() -> None:
    testing.assert_close_models(normalized(), normalized(), seeds=2)
    testing.assert_executors_agree(normalized(), inputs=INPUTS)


def test_a_failure_names_cause_reason_and_command(tmp_path: Path) -> None:
    with pytest.raises(testing.ComparisonFailed) as caught:
        testing.assert_close_models(normalized(), normalized(epsilon=1e-1), inputs=INPUTS, keep=tmp_path)
    message = str(caught.value)
    assert "diverged" in message
    assert "first: normed (LayerNormalization" in message
    assert "cause: norm (LayerNormalization" in message
    assert "epsilon" in message
    assert caught.value.comparison.verdict == "diverged"
    command = next(line for line in message.splitlines() if "repeat:" in line).partition("repeat: ")[2]
    done = subprocess.run([os.environ["PARALLAX_PROGRAM"], *shlex.split(command)[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "epsilon" in done.stdout


def test_limits_of_the_caller_hold(tmp_path: Path) -> None:
    testing.assert_close_models(normalized(), normalized(scale=2.0001), inputs=INPUTS, rtol=1e-2, atol=1e-2)
    with pytest.raises(AssertionError, match="--rtol 1e-06"):
        testing.assert_close_models(normalized(), normalized(scale=2.0001), inputs=INPUTS, rtol=1e-6, atol=1e-6, keep=tmp_path)


def test_a_baseline_is_compared_from_its_own_inputs(tmp_path: Path) -> None:
    baseline = tmp_path / "kept" / "model.plx"
    testing.save_baseline(normalized(), baseline, inputs=INPUTS)
    testing.assert_baseline(normalized(), baseline)
    with pytest.raises(AssertionError) as caught:
        testing.assert_baseline(normalized(scale=2.5), baseline, keep=tmp_path)
    assert "scale" in str(caught.value)
    assert "parallax diff" in str(caught.value)


def test_a_baseline_without_the_inputs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "outputs.plx"
    with parallax.Dump.create(path) as dump:
        dump.write("y", np.zeros(3, np.float32))
    with pytest.raises(parallax.UsageError, match="no value of the input 'x'"):
        testing.assert_baseline(normalized(), path)


def test_dumps(tmp_path: Path) -> None:
    for name, model in (("a", normalized()), ("b", normalized()), ("c", normalized(scale=3.0))):
        testing.save_baseline(model, tmp_path / f"{name}.plx", inputs=INPUTS)
    testing.assert_close_dumps(tmp_path / "a.plx", tmp_path / "b.plx")
    with pytest.raises(AssertionError, match="parallax diff"):
        testing.assert_close_dumps(tmp_path / "a.plx", tmp_path / "c.plx")


def test_seeds_belong_to_generated_inputs() -> None:
    with pytest.raises(parallax.UsageError, match="several seeds"):
        testing.assert_executors_agree(normalized(), inputs=INPUTS, seeds=2)


def test_a_model_of_package_onnx_is_taken() -> None:
    testing.assert_executors_agree(onnx.load_from_string(normalized()))
