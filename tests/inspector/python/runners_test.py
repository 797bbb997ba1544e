# SPDX-License-Identifier: Apache-2.0
"""The conversation with a runner; the sample; TensorRT's runner on a fake of its interface."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import parallax
import pytest
from onnx import TensorProto, helper
from runner_client import Client, runner
from small_models import build, unary, value

HERE = Path(__file__).parent
SAMPLES = HERE.parents[2] / "samples"

# A runner that does what the input says: it prints, fails in several ways, or answers.
PLAYER = '''
import os
import numpy as np
from parallax import Unsupported
from parallax.runners import Answer, Description, serve

class Player:
    def describe(self):
        print("a library prints on stdout")
        os.write(1, b"and from C\\n")
        os.system("echo and a child of it")
        return Description("player", "1", "cpu", {"mode": 3})

    def load(self, request):
        self.threads = request.threads
        if request.source == "no.onnx":
            raise Unsupported("it has\\nan operator", node="conv1", op="Conv")

    def run(self, request):
        x = request.read_inputs()["x"]
        if x[0] == 1:
            raise RuntimeError("the device is gone")
        if x[0] == 2:
            raise MemoryError("no more")
        if x[0] == 3:
            os.kill(os.getpid(), 11)
        if x[0] == 4:
            return Answer(request.answer + ".npz", 1.5, {"n": 0.5}, ["a note"])
        assert not os.read(0, 10)
        return {name: x * 2 for name in request.wanted}

serve(Player())
'''


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(unary("Relu", shape=[2]))
    return path


@pytest.fixture
def player(tmp_path: Path) -> Any:
    with Client([sys.executable, "-B", "-c", PLAYER], tmp_path) as started:
        yield started


def array(number: float) -> dict[str, Any]:
    return {"x": np.array([number, 5], np.float32)}


def test_answers_are_alone_on_stdout(player: Client, model: Path) -> None:
    answer = player.ask("describe", protocol=1, something_new=1)
    assert answer == {"name": "player", "version": "1", "device": "cpu", "settings": {"mode": "3"}, "observes": False}
    assert player.load(model, threads=2) == {}
    answer = player.run(["y"], array(7))
    with parallax.open(answer["answer"]) as dump:
        assert dump["y"].numpy().tolist() == [14, 10]
        assert dump.executions[0]["executor"] == "player"
    assert player.run(["y"], array(4))["node_milliseconds"] == {"n": 0.5}
    assert player.close() == 0
    assert player.stderr.splitlines() == ["a library prints on stdout", "and from C", "and a child of it"]


def test_a_failure_is_an_answer_and_the_next_request_is_read(player: Client, model: Path) -> None:
    assert player.run(["y"], array(7)) == {"error": "no model is loaded; 'load' comes before 'run'", "code": "usage"}
    player.load(model)
    assert player.run(["y"], array(1)) == {"error": "RuntimeError: the device is gone", "code": "execution"}
    assert player.run(["y"], array(2)) == {"error": "MemoryError: no more", "code": "out_of_memory"}
    assert player.load(model, source="no.onnx") == {"error": "it has an operator", "code": "unsupported", "node": "conv1"}
    assert player.run(["y"], array(7))["code"] == "usage"  # what was loaded before is gone
    player.load(model)
    assert "answer" in player.run(["y"], array(7))
    assert player.close() == 0
    assert "RuntimeError: the device is gone" in player.stderr  # with its traceback
    assert "Unsupported" not in player.stderr


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "the request is no JSON"),
        ("[1]", "the request is a JSON list; it must be an object"),
        ('{"request": "fly"}', "the request is 'fly'; it must be 'describe', 'load' or 'run'"),
        ('{"request": "describe", "protocol": 2}', "the protocol is 2; it must be 1"),
        ('{"request": "load"}', "the request 'load' lacks its member 'model'"),
        ('{"request": "load", "model": 3}', "'model' of the request 'load' is int; it must be a text"),
        ('{"request": "load", "model": "m", "threads": true}', "'threads' of the request 'load' is bool; it must be a whole number"),
    ],
)
def test_requests_that_make_no_sense(line: str, sentence: str, player: Client) -> None:
    answer = player.say(line)
    assert answer is not None
    assert answer["code"] == "usage"
    assert sentence in answer["error"]


def test_a_crash_ends_the_program_alone(player: Client, model: Path, tmp_path: Path) -> None:
    player.load(model)
    np.savez(tmp_path / "x.npz", **array(3))
    request = {"request": "run", "inputs": str(tmp_path / "x.npz"), "wanted": ["y"], "answer": str(tmp_path / "a")}
    assert player.say(json.dumps(request)) is None
    assert player.close() == -11
    assert "Fatal Python error: Segmentation fault" in player.stderr


def test_inputs_of_all_types_come_from_a_data_set(tmp_path: Path, model: Path) -> None:
    model.write_bytes(unary("Identity", TensorProto.BFLOAT16, [2], name="same"))
    x = np.array([1.5, -2], ml_dtypes.bfloat16)
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    proto = TensorProto(data_type=TensorProto.BFLOAT16, dims=[2], raw_data=x.tobytes(), name="x")
    (folder / "input_0.pb").write_bytes(proto.SerializeToString())
    code = PLAYER.replace('request.read_inputs()["x"]', 'request.read_inputs()["x"]; print(x.dtype)')
    with Client([sys.executable, "-B", "-c", code], tmp_path) as client:
        client.load(model)
        answer = client.run(["y"], data_set=folder)
    assert "bfloat16" in client.stderr
    with parallax.open(answer["answer"]) as dump:
        assert dump["y"].dtype == "bfloat16"
        assert np.asarray(dump["y"].numpy(), np.float32).tolist() == [3, -4]


def test_a_name_that_is_no_runner() -> None:
    done = subprocess.run([sys.executable, "-m", "parallax.runners", "onxruntime"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'onxruntime' is no runner; it must be one of" in done.stderr
    assert "python -m parallax.runners openvino [DEVICE]" in done.stderr


def test_a_runtime_that_is_not_installed(tmp_path: Path) -> None:
    with runner(tmp_path, "tensorrt") as client:
        failure = client.ask("describe", protocol=1)
    assert failure["code"] == "unsupported"
    assert "TensorRT is not installed; pip install tensorrt" in failure["error"]


def test_the_sample_runner_agrees_with_the_reference(tmp_path: Path) -> None:
    model, data = SAMPLES / "cnn" / "model.onnx", SAMPLES / "cnn" / "test_data_set_0"
    with Client([sys.executable, "-B", str(SAMPLES / "runners" / "onnx_evaluator.py")], tmp_path) as client:
        assert client.ask("describe", protocol=1)["name"] == "onnx.reference"
        client.load(model)
        outputs = [output.name for output in parallax.load(model).outputs]
        answer = client.run(outputs, data_set=data)
    parallax.run(model, data, executor="reference", dump=tmp_path / "reference.plx")
    comparison = parallax.diff(tmp_path / "reference.plx", answer["answer"])
    assert (comparison.verdict, comparison.summary.compared) == ("pass", len(outputs))


# ---- TensorRT -----------------------------------------------------------------------------------------------------

@pytest.fixture
def trt(tmp_path: Path) -> Any:
    path = f"{HERE / 'fake_tensorrt'}:{Path(parallax.__file__).parents[1]}"
    with runner(tmp_path, "tensorrt", PYTHONPATH=path, FAKE_TENSORRT_LOG=str(tmp_path / "log")) as client:
        yield client


def trt_model(path: Path) -> Path:
    nodes = [
        helper.make_node("Relu", ["x"], ["positive"], name="relu"),
        helper.make_node("Neg", ["positive"], ["hidden"], name="folded_neg"),
        helper.make_node("NonZero", ["hidden"], ["open_indices"], name="indices"),
        helper.make_node("Shape", ["x"], ["shape_of_x"], name="shape"),
        helper.make_node("Add", ["hidden", "one"], ["y"], name="add"),
    ]
    outputs = [value("y", TensorProto.FLOAT, ["n"])]
    path.write_bytes(build(nodes, [value("x", TensorProto.FLOAT, ["n"])], outputs, {"one": np.ones(1, np.float32)}))
    return path


def test_tensorrt_marks_what_is_wanted(trt: Client, tmp_path: Path) -> None:
    answer = trt.ask("describe", protocol=1)
    assert (answer["name"], answer["version"], answer["observes"]) == ("tensorrt", "10.0.fake", True)
    path = trt_model(tmp_path / "model.onnx")
    assert trt.load(path, optimize=True) == {}
    wanted = ["positive", "hidden", "open_indices", "shape_of_x"]
    answer = trt.run(wanted, {"x": np.array([-1, 0, 2], np.float32)})
    with parallax.open(answer["answer"]) as dump:
        got = {name: dump[name].numpy().tolist() for name in dump}
        assert [entry.path for entry in dump.entries if entry.is_graph_output] == ["y"]
    assert got == {"positive": [0, 0, 2], "open_indices": [[2]], "shape_of_x": [3], "y": [1, 1, -1]}
    assert answer["notes"] == ["TensorRT's network has no value 'hidden'; it was folded or fused away"]
    trt.run(wanted, {"x": np.array([1, 0, 2], np.float32)})
    trt.run(wanted, {"x": np.array([1], np.float32)})  # other shapes: another engine
    trt.load(path, optimize=False, memory_limit_bytes=4096)
    trt.run([], {"x": np.array([1], np.float32)})
    assert (tmp_path / "log").read_text().splitlines() == [
        "build level=3 flags=TF32 workspace=1073741824", "run", "run",
        "build level=3 flags=TF32 workspace=1073741824", "run",
        "build level=0 flags= workspace=4096", "run",
    ]  # fmt: skip


def test_tensorrt_refuses_an_operator(trt: Client, model: Path) -> None:
    model.write_bytes(unary("Unique", shape=[2], name="odd"))
    assert trt.load(model) == {
        "error": "TensorRT's parser refuses the model: no importer for Unique", "code": "unsupported", "node": "odd"}


def test_tensorrt_takes_no_argument(tmp_path: Path) -> None:
    with runner(tmp_path, "tensorrt", "1") as client:
        assert "takes no argument, not '1'" in client.ask("describe", protocol=1)["error"]
