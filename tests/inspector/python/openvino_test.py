# SPDX-License-Identifier: Apache-2.0
"""The runner of OpenVINO, in the Python that PARALLAX_OPENVINO_PYTHON names (tests/inspector/python/environment openvino)."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import parallax
import pytest
from onnx import TensorProto, helper
from runner_client import Client, Peak, runner
from small_models import build, unary, value

SAMPLES = Path(__file__).parents[3] / "samples"
PYTHON = os.environ.get("PARALLAX_OPENVINO_PYTHON") or (sys.executable if importlib.util.find_spec("openvino") else "")

pytestmark = pytest.mark.skipif(
    not PYTHON, reason="no openvino; PARALLAX_OPENVINO_PYTHON=$(tests/inspector/python/environment openvino) names a Python that has it"
)


@pytest.fixture
def client(tmp_path: Path) -> Any:
    with runner(tmp_path, "openvino", python=PYTHON) as started:
        yield started


def test_it_describes_itself(client: Client) -> None:
    answer = client.ask("describe", protocol=1)
    assert (answer["name"], answer["device"], answer["observes"]) == ("openvino", "CPU", True)
    assert answer["version"] and answer["settings"]["inference_precision_hint"]


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("sample", ["cnn", "resnet", "llama_layer"])
def test_values_of_a_sample_agree_with_the_reference(sample: str, optimize: bool, client: Client, tmp_path: Path) -> None:
    model, data = SAMPLES / sample / "model.onnx", SAMPLES / sample / "test_data_set_0"
    wanted = [name for node in parallax.load(model).nodes for name in node.outputs if name]
    assert client.load(model, optimize=optimize) == {}
    answer = client.run(wanted, data_set=data)
    assert answer.get("milliseconds", 0) > 0, answer
    parallax.run(model, data, executor="reference", dump=tmp_path / "reference.plx", capture="all")
    # OpenVINO's own choice where the processor multiplies bfloat16.
    is_half = optimize and "bf" in client.ask("describe", protocol=1)["settings"]["inference_precision_hint"].lower()
    limit = 0.1 if is_half else 1e-2
    comparison = parallax.diff(tmp_path / "reference.plx", answer["answer"], rtol=limit, atol=limit)
    assert comparison.verdict == "pass", comparison.to_dict()["first_divergence"]
    with parallax.open(answer["answer"]) as dump:
        assert len(dump) > len(wanted) / 2
        assert {output.name for output in parallax.load(model).outputs} <= set(dump)
    again = client.run(wanted, data_set=data)
    assert parallax.diff(answer["answer"], again["answer"], rtol=0, atol=0).verdict == "pass"


def test_a_limit_of_memory_makes_groups_of_the_same_values(tmp_path: Path) -> None:
    count, length = 24, 1_000_000
    nodes = [helper.make_node("Sin", ["x" if i == 0 else f"v{i - 1}"], [f"v{i}"]) for i in range(count)]
    model = tmp_path / "chain.onnx"
    model.write_bytes(build(nodes, [value("x", TensorProto.FLOAT, [length])], [value(f"v{count - 1}", TensorProto.FLOAT, [length])]))
    wanted = [f"v{i}" for i in range(count)]
    inputs = {"x": np.linspace(0, 1, length, dtype=np.float32)}
    answers, peaks = [], []
    for limit in (0, 48 << 20):
        folder = tmp_path / str(limit)
        folder.mkdir()
        with runner(folder, "openvino", python=PYTHON) as client:
            client.ask("describe", protocol=1)
            client.load(model, optimize=False, memory_limit_bytes=limit)
            with Peak(client) as peak:
                answers.append(client.run(wanted, inputs)["answer"])
            peaks.append(peak.bytes)
    comparison = parallax.diff(*answers, rtol=0, atol=0)
    assert (comparison.verdict, comparison.summary.compared) == ("pass", count)
    assert peaks[0] > 4 * count * length  # all values at once
    assert peaks[1] < 0.75 * peaks[0]


def test_failures(client: Client, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(unary("StringNormalizer", TensorProto.STRING, [2]))
    failure = client.load(model)
    assert failure["code"] == "unsupported", failure
    model.write_bytes(unary("Relu", shape=[2]))
    assert client.load(model) == {}
    assert "answer" in client.run(["y"], {"x": np.ones(2, np.float32)})
    assert client.close() == 0


def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    with runner(tmp_path, "openvino", "NPU.9", python=PYTHON) as client:
        failure = client.ask("describe", protocol=1)
    assert failure["code"] == "usage"
    assert "'NPU.9' is not available; this OpenVINO has CPU" in failure["error"]
