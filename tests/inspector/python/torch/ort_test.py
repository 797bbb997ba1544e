# SPDX-License-Identifier: Apache-2.0
"""onnxruntime's values of every tensor: those of the reference, in bodies too, whatever the optimization and the memory limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from parallax import ort
from small_models import build, value

import parallax

SAMPLES = Path(__file__).parents[4] / "samples"


def reference(model: Any, inputs: Any, path: Path) -> Path:
    """A dump of all that the reference computes."""
    parallax.run(model, inputs, executor="reference", dump=path, capture="all")
    return path


def node_paths(path: Path) -> set[str]:
    """Paths of what nodes computed."""
    with parallax.open(path) as dump:
        return {entry.path for entry in dump.entries if entry.role == "output" and entry.absence is None}


@pytest.mark.parametrize("sample", ["cnn", "greedy_decoder", "scan_filter", "recurrent", "llama_layer"])
def test_every_value_of_a_sample_is_captured_and_agrees(sample: str, tmp_path: Path) -> None:
    model, inputs = SAMPLES / sample / "model.onnx", SAMPLES / sample / "test_data_set_0"
    expected = reference(model, inputs, tmp_path / "reference.plx")
    got = ort.capture(model, inputs, tmp_path / "ort.plx", optimization="none")
    assert got.left_out == []
    assert node_paths(tmp_path / "ort.plx") == node_paths(expected)
    comparison = parallax.diff(expected, tmp_path / "ort.plx")
    assert comparison.verdict == "pass", comparison.to_dict()["first_divergence"]


def test_the_outputs_are_those_of_a_plain_session(tmp_path: Path) -> None:
    path = SAMPLES / "cnn" / "model.onnx"
    image = np.random.default_rng(0).standard_normal((2, 3, 32, 32)).astype(np.float32)
    got = ort.capture(path, {"image": image}, tmp_path / "ort.plx", optimization="none")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for name, expected in zip([output.name for output in session.get_outputs()], session.run(None, {"image": image}), strict=True):
        np.testing.assert_allclose(got[name], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimization", ["basic", "extended", "all"])
def test_an_optimized_model_is_captured_as_it_runs(optimization: str, tmp_path: Path) -> None:
    model, inputs = SAMPLES / "cnn" / "model.onnx", SAMPLES / "cnn" / "test_data_set_0"
    expected = reference(model, inputs, tmp_path / "reference.plx")
    ort.capture(model, inputs, tmp_path / "ort.plx", optimization=optimization)
    comparison = parallax.diff(expected, tmp_path / "ort.plx")
    assert comparison.verdict == "pass", comparison.to_dict()["first_divergence"]
    with parallax.open(tmp_path / "ort.plx") as dump:
        executed = [graph for graph in dump.graphs if graph["executed"]]
        assert len(executed) == 1
        names = {node.name for node in parallax.load(model).nodes}
        provenance = executed[0]["provenance"]
        assert provenance
        assert {source for _, source in provenance} <= names
        if optimization != "basic":  # fusion removes nodes: some executed node stands for several
            stands_for = [made for made, _ in provenance]
            assert len(stands_for) > len(set(stands_for))
        assert dump.executions[0]["settings"]["optimization"] == optimization


def test_a_memory_limit_makes_several_runs_of_the_same_values(tmp_path: Path) -> None:
    model, inputs = SAMPLES / "greedy_decoder" / "model.onnx", SAMPLES / "greedy_decoder" / "test_data_set_0"
    whole = ort.capture(model, inputs, tmp_path / "whole.plx", optimization="none")
    parts = ort.capture(model, inputs, tmp_path / "parts.plx", optimization="none", memory_limit=2000)
    assert whole.runs == 1
    assert parts.runs > 3
    assert ort.capture(model, inputs, tmp_path / "one.plx", optimization="none", memory_limit=1 << 30).runs == 1
    assert parts.value_count == whole.value_count
    assert parallax.diff(tmp_path / "whole.plx", tmp_path / "parts.plx", rtol=0, atol=0).verdict == "pass"


def test_a_wrong_value_is_named(tmp_path: Path) -> None:
    """A model whose BatchNormalization has another epsilon is run instead of the right one."""
    expected = reference(SAMPLES / "fault_pair" / "A.onnx", SAMPLES / "fault_pair" / "test_data_set_0", tmp_path / "a.plx")
    ort.capture(SAMPLES / "fault_pair" / "B.onnx", SAMPLES / "fault_pair" / "test_data_set_0", tmp_path / "b.plx", optimization="none")
    comparison = parallax.diff(expected, tmp_path / "b.plx")
    assert comparison.verdict == "diverged"
    assert comparison.causes[0].node == "block1/depthwise_bn"


def test_bodies_can_be_left_out(tmp_path: Path) -> None:
    model, inputs = SAMPLES / "greedy_decoder" / "model.onnx", SAMPLES / "greedy_decoder" / "test_data_set_0"
    ort.capture(model, inputs, tmp_path / "main.plx", optimization="none", bodies=False)
    assert node_paths(tmp_path / "main.plx")
    assert not any(".body[" in path for path in node_paths(tmp_path / "main.plx"))


def test_types_that_numpy_lacks(tmp_path: Path) -> None:
    model = build(
        [
            helper.make_node("Cast", ["x"], ["brain"], to=TensorProto.BFLOAT16),
            helper.make_node("Cast", ["brain"], ["y"], to=TensorProto.FLOAT),
            helper.make_node("Cast", ["z"], ["w"], to=TensorProto.FLOAT),
            helper.make_node("SequenceConstruct", ["y", "w"], ["both"]),
        ],
        [value("x", TensorProto.FLOAT, [3]), value("z", TensorProto.BFLOAT16, [2])],
        [value("y", TensorProto.FLOAT, [3]), helper.make_tensor_sequence_value_info("both", TensorProto.FLOAT, None)],
        opset=19,
    )
    inputs = {"x": np.array([1.5, -2, 3.0078125], np.float32), "z": np.array([1, 2], ml_dtypes.bfloat16)}
    got = ort.capture(model, inputs, tmp_path / "ort.plx", optimization="none")
    assert [item.tolist() for item in got["both"]] == [[1.5, -2.0, 3.0], [1.0, 2.0]]
    with parallax.open(tmp_path / "ort.plx") as dump:
        assert dump["brain"].dtype == "bfloat16"
        assert np.asarray(dump["brain"].numpy(), np.float32).tolist() == [1.5, -2.0, 3.0]


def test_what_cannot_be_captured_is_reported(tmp_path: Path) -> None:
    """A Loop of opset 12 stacks its iterations: an If in it is not captured."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "state"], ["doubled"], name="double"),
            helper.make_node(
                "If", ["on"], ["chosen"], name="choose",
                then_branch=helper.make_graph([helper.make_node("Neg", ["doubled"], ["negated"])], "then", [], [value("negated", TensorProto.FLOAT, [2])]),
                else_branch=helper.make_graph([helper.make_node("Abs", ["doubled"], ["absolute"])], "else", [], [value("absolute", TensorProto.FLOAT, [2])]),
            ),
            helper.make_node("Identity", ["on"], ["still"], name="keep"),
        ],
        "body",
        [value("i", TensorProto.INT64, []), value("on", TensorProto.BOOL, []), value("state", TensorProto.FLOAT, [2])],
        [value("still", TensorProto.BOOL, []), value("chosen", TensorProto.FLOAT, [2])],
    )  # fmt: skip
    model = build(
        [helper.make_node("Loop", ["trips", "go", "x"], ["y"], name="loop", body=body)],
        [value("x", TensorProto.FLOAT, [2])], [value("y", TensorProto.FLOAT, [2])],
        {"trips": np.array(3, np.int64), "go": np.array(True)}, opset=12,
    )  # fmt: skip
    got = ort.capture(model, {"x": np.ones(2, np.float32)}, tmp_path / "ort.plx", optimization="none")
    assert got.left_out == [("loop.body[*]//choose", "an If in the body of a Scan or of a Loop before opset 13")]
    with parallax.open(tmp_path / "ort.plx") as dump:
        assert [dump[f"loop.body[{number}]//doubled"].numpy().tolist() for number in range(3)] == [[2, 2], [-4, -4], [8, 8]]


@pytest.mark.parametrize("sample", ["greedy_decoder", "scan_filter"])
def test_the_model_with_outputs_is_valid_for_onnx(sample: str) -> None:
    model = parallax.load(SAMPLES / sample / "model.onnx")
    made, _, _ = parallax._core.values_as_outputs(model.core)
    onnx.checker.check_model(onnx.load_from_string(made.to_bytes()))


def test_requests_that_make_no_sense(tmp_path: Path) -> None:
    path = SAMPLES / "cnn" / "model.onnx"
    with pytest.raises(parallax.UsageError, match="must be one of none, basic"):
        ort.capture(path, None, tmp_path / "x.plx", optimization="most")
    with pytest.raises(parallax.UsageError, match="this onnxruntime has"):
        ort.capture(path, None, tmp_path / "x.plx", providers=["QuantumExecutionProvider"])
    with pytest.raises(parallax.UsageError, match="memory_limit is 0"):
        ort.capture(path, None, tmp_path / "x.plx", memory_limit=0)


def test_the_program_writes_the_same_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, inputs = SAMPLES / "cnn" / "model.onnx", SAMPLES / "cnn" / "test_data_set_0"
    code = ort.main([str(model), "--inputs", str(inputs), "-o", str(tmp_path / "a.plx"), "--optimization", "none"])
    assert code == 0
    assert "values of onnxruntime, 1 run" in capsys.readouterr().out
    ort.capture(model, inputs, tmp_path / "b.plx", optimization="none")
    assert node_paths(tmp_path / "a.plx") == node_paths(tmp_path / "b.plx")
    assert ort.main(["missing.onnx", "-o", str(tmp_path / "c.plx")]) == 5
