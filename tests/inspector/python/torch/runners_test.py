# SPDX-License-Identifier: Apache-2.0
"""The runner of onnxruntime, by its conversation: values as the reference has them, kept sessions, limits and faults."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import parallax
import pytest
from onnx import TensorProto, helper
from runner_client import Client, Peak, runner
from small_models import build, value

SAMPLES = Path(__file__).parents[4] / "samples"


@pytest.fixture
def client(tmp_path: Path) -> Any:
    with runner(tmp_path, "onnxruntime") as started:
        yield started


def all_values(path: Path) -> list[str]:
    """Names of what the nodes of the main graph compute."""
    return [name for node in parallax.load(path).nodes for name in node.outputs if name]


def computed(path: str) -> set[str]:
    """Paths of a dump whose values were computed."""
    with parallax.open(path) as dump:
        return {entry.path for entry in dump.entries if entry.role == "output" and entry.absence is None}


def test_it_describes_itself(client: Client) -> None:
    import onnxruntime

    answer = client.ask("describe", protocol=1)
    assert answer["name"] == "onnxruntime"
    assert answer["version"] == onnxruntime.__version__
    assert answer["device"] == "CPUExecutionProvider"
    assert answer["observes"] is True
    assert answer["settings"]["optimization"] == "all"


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("sample", ["cnn", "greedy_decoder", "scan_filter", "recurrent", "llama_layer"])
def test_values_of_a_sample_agree_with_the_reference(sample: str, optimize: bool, client: Client, tmp_path: Path) -> None:
    model, data = SAMPLES / sample / "model.onnx", SAMPLES / sample / "test_data_set_0"
    assert client.load(model, optimize=optimize) == {}
    answer = client.run(all_values(model), data_set=data)
    assert answer["milliseconds"] > 0, answer
    parallax.run(model, data, executor="reference", dump=tmp_path / "reference.plx", capture="all")
    comparison = parallax.diff(tmp_path / "reference.plx", answer["answer"])
    assert comparison.verdict == "pass", comparison.to_dict()["first_divergence"]
    assert comparison.summary.compared > 0
    if optimize:
        with parallax.open(answer["answer"]) as dump:
            assert [graph for graph in dump.graphs if graph["executed"]][0]["provenance"]
    else:
        assert computed(str(tmp_path / "reference.plx")) <= computed(answer["answer"])  # which has the inputs of bodies, too


def test_values_that_are_not_wanted_stay_out(client: Client) -> None:
    model, data = SAMPLES / "greedy_decoder" / "model.onnx", SAMPLES / "greedy_decoder" / "test_data_set_0"
    outputs = {output.name for output in parallax.load(model).outputs}
    loop = next(node for node in parallax.load(model).nodes if node.op == "Loop")
    client.load(model, optimize=False)
    assert computed(client.run([], data_set=data)["answer"]) == outputs
    inner = next(name for name in all_values(model) if name not in {*outputs, *loop.outputs})
    paths = computed(client.run([inner], data_set=data)["answer"])
    within = {path for path in paths if "//" in path}
    assert paths - within == outputs | {inner}
    assert all(path.startswith(f"{loop.name}.") for path in within)
    assert bool(within) == bool(outputs & set(loop.outputs))


def test_a_second_run_makes_no_session(tmp_path: Path) -> None:
    log = tmp_path / "sessions"
    code = (
        "import onnxruntime, sys\n"
        "made = onnxruntime.InferenceSession\n"
        "def counted(*a, **k):\n"
        f"    open({str(log)!r}, 'a').write('x')\n"
        "    return made(*a, **k)\n"
        "onnxruntime.InferenceSession = counted\n"
        "from parallax.runners.__main__ import main\n"
        "raise SystemExit(main(['onnxruntime']))\n"
    )
    model, data = SAMPLES / "cnn" / "model.onnx", SAMPLES / "cnn" / "test_data_set_0"
    wanted = all_values(model)
    with Client([sys.executable, "-B", "-c", code], tmp_path) as client:
        client.load(model, optimize=True)
        first = client.run(wanted, data_set=data)
        made = len(log.read_text())
        assert made == 2  # one that optimizes, one that gives the values
        second = client.run(wanted, data_set=data)
        client.load(model, optimize=True)
        client.run(wanted, data_set=data)
        assert len(log.read_text()) == made
        client.run([], data_set=data)
        assert len(log.read_text()) == made + 1
    assert parallax.diff(first["answer"], second["answer"], rtol=0, atol=0).verdict == "pass"


@pytest.mark.parametrize("optimize", [False, True])
def test_times_of_nodes(optimize: bool, client: Client) -> None:
    model, data = SAMPLES / "cnn" / "model.onnx", SAMPLES / "cnn" / "test_data_set_0"
    client.load(model, optimize=optimize)
    assert "node_milliseconds" not in client.run([], data_set=data)
    times = client.run([], data_set=data, times=True)["node_milliseconds"]
    convolutions = {node.name for node in parallax.load(model).nodes if node.op == "Conv"}
    assert all(time >= 0 for time in times.values())
    if optimize:  # a fused convolution counts for one of the nodes that it stands for
        assert set(times) & {node.name for node in parallax.load(model).nodes}
    else:
        assert convolutions <= set(times)


def test_memory_stays_within_the_limit(client: Client, tmp_path: Path) -> None:
    """Values of 320 MB in all, read under a limit of 32 MB."""
    count, length = 160, 500_000
    nodes = [helper.make_node("Add", ["x" if i == 0 else f"v{i - 1}", "one"], [f"v{i}"]) for i in range(count)]
    model = tmp_path / "chain.onnx"
    model.write_bytes(build(
        nodes, [value("x", TensorProto.FLOAT, [length])], [value(f"v{count - 1}", TensorProto.FLOAT, [length])],
        {"one": np.ones(1, np.float32)},
    ))  # fmt: skip
    limit = 32 << 20
    assert count * length * 4 >= 9.5 * limit
    x = np.arange(length, dtype=np.float32)
    client.ask("describe", protocol=1)
    with Peak(client) as peak:
        assert client.load(model, optimize=False, memory_limit_bytes=limit) == {}
        answer = client.run([f"v{i}" for i in range(count)], {"x": x})
    assert "answer" in answer, answer
    assert 0 < peak.bytes <= limit
    assert "as the limit of memory asks" in answer["notes"][-1]
    client.load(SAMPLES / "cnn" / "model.onnx", memory_limit_bytes=1 << 30)  # all values at once are within it
    assert "notes" not in client.run([], data_set=SAMPLES / "cnn" / "test_data_set_0")
    with parallax.open(answer["answer"]) as dump:
        assert len(dump) == count
        np.testing.assert_array_equal(dump[f"v{count - 1}"].numpy(), x + count)


def test_an_input_with_a_default_and_one_without(client: Client, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(build(
        [helper.make_node("Add", ["x", "y"], ["z"], name="add")],
        [value("x", TensorProto.FLOAT, [2]), value("y", TensorProto.FLOAT, [2])], [value("z", TensorProto.FLOAT, [2])],
        {"y": np.array([10, 20], np.float32)},
    ))  # fmt: skip
    client.load(model, optimize=True)
    answer = client.run(["z"], {"x": np.ones(2, np.float32), "of_another_part": np.ones(1)})
    with parallax.open(answer["answer"]) as dump:
        assert dump["z"].numpy().tolist() == [11, 21]
    answer = client.run(["z"], {"x": np.ones(2, np.float32), "y": np.ones(2, np.float32)})
    with parallax.open(answer["answer"]) as dump:
        assert dump["z"].numpy().tolist() == [2, 2]
    assert "lacks an input" in client.run(["z"], {})["error"]


def test_failures_name_kind_and_node(client: Client, tmp_path: Path) -> None:
    x, y = value("x", TensorProto.FLOAT, None), value("y", TensorProto.FLOAT, None)
    model = tmp_path / "model.onnx"
    model.write_bytes(build([helper.make_node("MatMul", ["x", "x"], ["y"], name="product")], [x], [y]))
    assert client.load(model, optimize=False) == {}
    failure = client.run(["y"], {"x": np.ones((2, 3), np.float32)})
    assert (failure["code"], failure["node"]) == ("execution", "product")
    assert "\n" not in failure["error"]
    assert "answer" in client.run(["y"], {"x": np.ones((2, 2), np.float32)})  # the program goes on

    model.write_bytes(build(
        [helper.make_node("ImageDecoder", ["x"], ["y"], name="picture")],
        [value("x", TensorProto.UINT8, [9])], [value("y", TensorProto.UINT8, None)], opset=20,
    ))  # fmt: skip
    failure = client.load(model, optimize=True)
    assert (failure["code"], failure["node"]) == ("unsupported", "picture"), failure
    model.write_bytes(b"no model")
    assert client.load(model, optimize=True)["code"] == "invalid_model"
    assert client.run(["y"], {"x": np.ones(1, np.float32)})["code"] == "usage"  # nothing is loaded now
    assert client.close() == 0


def test_a_provider_that_is_not_there(tmp_path: Path) -> None:
    with runner(tmp_path, "onnxruntime", "Quantum") as client:
        failure = client.ask("describe", protocol=1)
    assert failure["code"] == "usage"
    assert "'QuantumExecutionProvider' is not available; this onnxruntime has" in failure["error"]


# ---- seeded faults ------------------------------------------------------------------------------------------------

def faulty(folder: Path, fault: str) -> Client:
    """The runner of onnxruntime in a Python whose onnxruntime has a fault."""
    (folder / "fault.py").write_text(fault)
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import fault\n"
    code += "from parallax.runners.__main__ import main\nraise SystemExit(main(['onnxruntime']))"
    return Client([sys.executable, "-B", "-c", code], folder)


# The optimizer writes another axis into a Softmax and keeps everything else.
WRONG_OPTIMIZER = '''
import onnx, onnxruntime
made = onnxruntime.InferenceSession
def session(source, options, **others):
    got = made(source, options, **others)
    if options.optimized_model_filepath:
        model = onnx.load(options.optimized_model_filepath)
        for node in model.graph.node:
            for attribute in node.attribute:
                if attribute.name == "axis" and node.op_type == "Softmax":
                    attribute.i = 0
        onnx.save(model, options.optimized_model_filepath)
    return got
onnxruntime.InferenceSession = session
'''


def test_a_wrong_optimizer_is_localized(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(build(
        [
            helper.make_node("Sigmoid", ["x"], ["s"], name="squash"),
            helper.make_node("Softmax", ["s"], ["p"], name="weights", axis=1),
            helper.make_node("Exp", ["p"], ["y"], name="grow"),
        ],
        [value("x", TensorProto.FLOAT, [3, 5])], [value("y", TensorProto.FLOAT, [3, 5])],
    ))  # fmt: skip
    inputs = {"x": np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)}
    parallax.run(path, inputs, executor="reference", dump=tmp_path / "reference.plx", capture="all")
    with faulty(tmp_path, WRONG_OPTIMIZER) as client:
        client.load(path, optimize=True)
        optimized = client.run(["s", "p", "y"], inputs)
        client.load(path, optimize=False)
        plain = client.run(["s", "p", "y"], inputs)
    comparison = parallax.diff(tmp_path / "reference.plx", optimized["answer"])
    assert comparison.verdict == "diverged"
    assert comparison.causes[0].node == "weights"
    assert parallax.diff(tmp_path / "reference.plx", plain["answer"]).verdict == "pass"


def test_a_broken_kernel_is_localized(tmp_path: Path) -> None:
    """Sessions get a model whose node "second" computes another operator, as a kernel with a fault would."""
    fault = '''
import onnx, onnxruntime
made = onnxruntime.InferenceSession
def session(source, options, **others):
    model = onnx.load_from_string(source)
    for node in model.graph.node:
        if node.name == "second":
            node.op_type = "Tan"
    return made(model.SerializeToString(), options, **others)
onnxruntime.InferenceSession = session
'''
    path = tmp_path / "model.onnx"
    names = ["first", "second", "third"]
    nodes = [helper.make_node("Sin", [a], [b], name=name) for a, b, name in zip("xab", "aby", names, strict=True)]
    path.write_bytes(build(nodes, [value("x", TensorProto.FLOAT, [7])], [value("y", TensorProto.FLOAT, [7])]))
    inputs = {"x": np.linspace(0.1, 1, 7, dtype=np.float32)}
    parallax.run(path, inputs, executor="reference", dump=tmp_path / "reference.plx", capture="all")
    with faulty(tmp_path, fault) as client:
        client.load(path, optimize=False)
        answer = client.run(["a", "b", "y"], inputs)
    comparison = parallax.diff(tmp_path / "reference.plx", answer["answer"])
    assert comparison.verdict == "diverged"
    assert [cause.node for cause in comparison.causes] == ["second"]


def test_a_crash_leaves_what_was_written(tmp_path: Path) -> None:
    """The process ends in the second of several groups: the values of the first are in the dump."""
    fault = '''
import os, onnxruntime
made = onnxruntime.InferenceSession
class Session:
    runs = 0
    def __init__(self, *a, **k):
        self._session = made(*a, **k)
    def __getattr__(self, name):
        return getattr(self._session, name)
    def run(self, names, feeds):
        Session.runs += 1
        if Session.runs == 3:  # the shapes, the first group, the second
            os.abort()
        return self._session.run(names, feeds)
onnxruntime.InferenceSession = Session
'''
    count, length = 8, 1_000_000
    nodes = [helper.make_node("Neg", ["x" if i == 0 else f"v{i - 1}"], [f"v{i}"]) for i in range(count)]
    path = tmp_path / "model.onnx"
    path.write_bytes(build(nodes, [value("x", TensorProto.FLOAT, [length])], [value(f"v{count - 1}", TensorProto.FLOAT, [length])]))
    with faulty(tmp_path, fault) as client:
        client.load(path, optimize=False, memory_limit_bytes=64 << 20)
        np.savez(tmp_path / "inputs.npz", x=np.ones(length, np.float32))
        request = {"request": "run", "inputs": str(tmp_path / "inputs.npz"), "wanted": [f"v{i}" for i in range(count)],
                   "answer": str(tmp_path / "answer")}
        assert client.say(json.dumps(request)) is None
        assert client.close() == -6
        assert "Fatal Python error: Aborted" in client.stderr  # with the line that was at work
    with parallax.open(tmp_path / "answer.plx") as dump:
        assert not dump.is_complete
        assert set(dump) == {"v0", "v1", "v2", "v3"}
        assert dump["v0"].numpy()[0] == -1
