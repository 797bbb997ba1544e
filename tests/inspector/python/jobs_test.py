# SPDX-License-Identifier: Apache-2.0
"""Jobs answer with the program's documents, whatever their models and inputs are, and Ctrl-C ends them."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import parallax
import pytest
from onnx import TensorProto, helper
from parallax import jobs
from small_models import build, value

SAMPLES = Path(__file__).parents[3] / "samples"
CNN, CNN_DATA = str(SAMPLES / "cnn" / "model.onnx"), str(SAMPLES / "cnn" / "test_data_set_0")
A, B = str(SAMPLES / "fault_pair" / "A.onnx"), str(SAMPLES / "fault_pair" / "B.onnx")
PROGRAM = os.environ["PARALLAX_PROGRAM"]

# Keys whose numbers are times, and what depends on them or on other runs at the same time.
_TIMES = {"wall_ms", "load_ms", "prepare_ms", "latency_ms", "total_ms", "ms", "share", "capture", "peak_bytes"}


def program(*words: str) -> dict[str, Any]:
    """The document that the program prints."""
    environment = {**os.environ, "PARALLAX_PYTHON": sys.executable}  # of executors that are programs, as jobs have it
    done = subprocess.run([PROGRAM, *words, "--json"], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def timeless(document: Any) -> Any:
    """A document without what two runs need not have in common."""
    if isinstance(document, dict):
        return {key: timeless(item) for key, item in document.items() if key not in _TIMES}
    return [timeless(item) for item in document] if isinstance(document, list) else document


def noisy_pair() -> tuple[bytes, bytes]:
    """A model of three nodes, and the same with another alpha in the second."""
    def made(alpha: float) -> bytes:
        nodes = [
            helper.make_node("Relu", ["x"], ["h"], name="first"),
            helper.make_node("LeakyRelu", ["c"], ["z"], name="second", alpha=alpha),
            helper.make_node("Sub", ["h", "shift"], ["c"], name="middle"),
        ]
        order = [nodes[0], nodes[2], nodes[1]]
        return build(
            order, [value("x", TensorProto.FLOAT, ["n", 4])], [value("z", TensorProto.FLOAT, None)],
            {"shift": np.full(4, 0.5, np.float32)},
        )

    return made(0.1), made(0.3)


X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def test_the_example_of_the_documentation() -> None:
    found = parallax.compare(A, against=B)
    assert (found.verdict, found.causes[0].node, found.causes[0].why) == (
        "diverged", "block1/depthwise_bn", "attribute epsilon is 1e-05 (the default) in B and 0.001 in A",
    )


def test_compare_is_run_with_two_sides() -> None:
    assert timeless(parallax.compare(A, against=B, seed=3).to_dict()) == timeless(
        program("run", A, "--against", B, "--seed", "3"))
    ours = parallax.compare(
        CNN, executors=("reference", "cpu"), dims={"batch": 3}, ranges={"image": (-2, 2)}, only="linear*",
        rtol=1e-3, atol=1e-4, per={"linear": (1e-5, 1e-6)}, rewrite="none")
    assert timeless(ours.to_dict()) == timeless(program(
        "run", CNN, "--with", "reference,cpu", "--dim", "batch=3", "--range", "image=-2..2", "--only", "linear*",
        "--rtol", "1e-3", "--atol", "1e-4", "--per", "linear@rtol=1e-5,atol=1e-6", "--rewrite", "none"))


def test_the_command_of_a_comparison_repeats_it() -> None:
    ours = parallax.compare(
        CNN, executors="reference,cpu", inputs=CNN_DATA, observe_all=True,
        policy={"rtol": 1e-3, "per": {"log*": {"atol": 2}}})
    words = shlex.split(ours.command)
    assert words[0] == "parallax"
    assert timeless(program(*words[1:])) == timeless(ours.to_dict())
    in_memory = {"image": np.zeros((1, 3, 32, 32), np.float32)}
    assert parallax.compare(CNN, inputs=in_memory, executors="reference,cpu").command == ""


def test_one_side_is_run(tmp_path: Path) -> None:
    ours = parallax.run(CNN, CNN_DATA, executor="cpu")
    assert timeless(ours.to_dict()) == timeless(program("run", CNN, "--with", "cpu", "--inputs", CNN_DATA))
    assert ours.comparison is not None
    assert ours.comparison.verdict == "pass"
    kept = tmp_path / "kept.plx"
    run = parallax.run(CNN, seed=4, dims={"batch": 2}, dump=kept)
    assert run.written == [kept]
    assert [path.name for path in tmp_path.iterdir()] == ["kept.plx"]
    with parallax.open(kept) as dump:
        np.testing.assert_array_equal(dump["log_probabilities"].numpy(), run["log_probabilities"])


def test_diff_and_blame_of_dumps(tmp_path: Path) -> None:
    parallax.compare(A, against=B, dump=tmp_path, executors="reference,cpu")
    a, b = tmp_path / "A-reference.plx", tmp_path / "B-cpu.plx"
    assert timeless(parallax.diff(a, b).to_dict()) == timeless(program("diff", str(a), str(b)))
    blamed = parallax.blame(a, b, rtol=1e-4)
    assert timeless(blamed.to_dict()) == timeless(program("blame", str(a), str(b), "--rtol", "1e-4"))
    assert blamed.causes[0].node == "block1/depthwise_bn"
    assert timeless(program(*shlex.split(blamed.command)[1:])) == timeless(blamed.to_dict())


def test_blame_of_a_model() -> None:
    assert timeless(parallax.blame(model=A, against=B).to_dict()) == timeless(program("blame", A, "--against", B))


def test_bench_and_profile_have_the_programs_keys() -> None:
    benched = parallax.bench(CNN, iterations=2, executor="cpu")
    theirs = program("bench", CNN, "--with", "cpu", "--iterations", "2")
    assert timeless(benched.to_dict()) == timeless(theirs)
    assert benched.to_dict().keys() == theirs.keys()
    assert 0 < benched.latency_ms.min <= benched.latency_ms.median <= benched.latency_ms.p95
    profiled = parallax.profile(CNN, iterations=1, executor="cpu")
    theirs = program("profile", CNN, "--with", "cpu", "--iterations", "1")
    nodes = [row["node"] for row in theirs["nodes"]]
    assert [node.node for node in profiled.nodes] == nodes
    assert {row.op for row in profiled.ops} == {row["op"] for row in theirs["ops"]}
    assert len(json.loads(profiled.trace)["traceEvents"]) == len(nodes)


def test_backend_tests_and_doctor() -> None:
    ours = jobs.backend_tests(SAMPLES / "cnn", SAMPLES / "recurrent", executor="cpu")
    theirs = program("test", str(SAMPLES / "cnn"), str(SAMPLES / "recurrent"), "--with", "cpu")
    assert ours.to_dict() == theirs
    assert ours
    assert parallax.doctor().to_dict() == program("doctor")
    assert parallax.doctor()["executor cpu"].available
    assert parallax.doctor()["threads"].available
    assert "python" in str(parallax.doctor())


def test_models_of_every_kind_are_one_model(tmp_path: Path) -> None:
    a, b = noisy_pair()
    (tmp_path / "a.onnx").write_bytes(a)
    (tmp_path / "b.onnx").write_bytes(b)
    by_path = parallax.compare(tmp_path / "a.onnx", tmp_path / "b.onnx", inputs={"x": X}).to_dict()
    assert by_path["verdict"] == "diverged"
    assert [cause["node"] for cause in by_path["causes"]] == ["second"]
    for made in (bytes, parallax.load, onnx.load_from_string):
        found = timeless(parallax.compare(made(a), made(b), inputs={"x": X}).to_dict())
        for side in found["executions"]:
            side.pop("model_sha256")
        wanted = timeless(by_path)
        for side in wanted["executions"]:
            side.pop("model_sha256")
        assert found == wanted


def test_models_in_memory_in_every_job(tmp_path: Path) -> None:
    a, b = (parallax.load(model) for model in noisy_pair())
    inputs = {"x": X}
    assert parallax.run(a, inputs)["z"].shape == (3, 4)
    assert parallax.bench(a, inputs, iterations=1).iterations == 1
    profiled = parallax.profile(a, inputs, iterations=1, rewrite="none")
    assert [node.node for node in profiled.nodes] == ["first", "middle", "second"]
    assert parallax.blame(model=a, against=b, inputs=inputs).causes[0].node == "second"
    parallax.run(a, inputs, save_baseline=tmp_path / "base.plx")
    assert parallax.compare(a, baseline=tmp_path / "base.plx", executors="cpu", inputs=inputs).verdict == "pass"
    assert not parallax.compare(b, baseline=tmp_path / "base.plx", executors="cpu", inputs=inputs)
    assert parallax.compare(a, repeat=2, executors="cpu", inputs=inputs).verdict == "pass"
    part = parallax.extract(a, "h", "c", inputs=inputs, directory=tmp_path / "part")
    assert (part.nodes, part.inputs, part.outputs) == (["middle"], ["h"], ["c"])
    assert jobs.backend_tests(part, executor="reference")
    small = parallax.reduce(a, b, inputs=inputs, directory=tmp_path / "small")
    assert small.nodes == ["second"]
    assert (small / "A.onnx").exists() and (small / "repeat.sh").exists()


def test_reduce_by_a_function_and_by_a_command(tmp_path: Path) -> None:
    a, _ = noisy_pair()
    seen: list[tuple[int, list[str]]] = []

    def has_sub(candidate: parallax.Model, inputs: dict[str, Any]) -> bool:
        seen.append((len(candidate.nodes), sorted(inputs)))
        return any(node.op == "Sub" for node in candidate.nodes)

    part = parallax.reduce(a, check=has_sub, inputs={"x": X}, directory=tmp_path / "by_function")
    assert part.nodes == ["middle"]
    assert seen[0] == (3, ["x"])
    assert sorted(path.name for path in part.path.iterdir()) == ["journal.jsonl", "model.onnx", "test_data_set_0"]
    part = parallax.reduce(
        a, check="grep -q Sub {model}", fail_codes=[0], inputs={"x": X}, directory=tmp_path / "by_command")
    assert part.nodes == ["middle"]
    with pytest.raises(parallax.Error, match="does not fail") as caught:
        parallax.reduce(a, check=lambda model, inputs: False, inputs={"x": X}, directory=tmp_path / "passes")
    assert caught.value.code == 1
    with pytest.raises(ZeroDivisionError):
        parallax.reduce(a, check=lambda model, inputs: 1 // 0, inputs={"x": X}, directory=tmp_path / "raises")


def test_inputs_of_every_kind(tmp_path: Path) -> None:
    from parallax._core import Tensor

    image = np.random.default_rng(0).standard_normal((2, 3, 32, 32)).astype(np.float32)
    np.savez(tmp_path / "inputs.npz", image=image)
    np.save(tmp_path / "image.npy", image)
    wanted = parallax.run(CNN, {"image": image})["log_probabilities"]
    assert isinstance(wanted, np.ndarray)
    ways = {"file": tmp_path / "image.npy", "tensor": Tensor(image), "numbers": image.tolist()}
    for inputs in (tmp_path / "inputs.npz", *({"image": way} for way in ways.values())):
        np.testing.assert_array_equal(np.asarray(parallax.run(CNN, inputs)["log_probabilities"]), wanted)
    assert isinstance(parallax.run(CNN, {"image": Tensor(image)})["log_probabilities"], Tensor)
    generated = parallax.run(CNN, None, shapes={"image": (4, 3, 32, 32)})
    assert generated["log_probabilities"].shape == (4, 10)
    assert generated.notes and "normal" in generated.notes[0]


def test_outputs_share_no_memory_with_inputs() -> None:
    model = build(
        [helper.make_node("Identity", ["x"], ["y"])], [value("x", TensorProto.FLOAT, [3])],
        [value("y", TensorProto.FLOAT, [3])])
    x = np.arange(3, dtype=np.float32)
    y = parallax.run(model, {"x": x})["y"]
    y += 1
    assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize(("call", "sentence"), [
    (lambda: parallax.compare(CNN, tollerance=1), "compare has no argument 'tollerance'"),
    (lambda: parallax.compare(CNN, rtoll=1), "did you mean 'rtol'"),
    (lambda: parallax.compare(CNN, executors=("cpu",)), "compare needs two sides"),
    (lambda: parallax.compare(CNN, executors="a,b,c"), "one or two executors"),
    (lambda: parallax.run(CNN, executor="tpu"), "tpu"),
    (lambda: parallax.run(CNN, {"picture": np.zeros(3)}),
     "names 'picture', which is no input of the model (its inputs: 'image')"),
    (lambda: parallax.run(CNN, {"image": np.zeros((1, 3, 32, 32))}), "float64"),
    (lambda: parallax.run(CNN, dims={"bach": 2}), "dims names 'bach'"),
    (lambda: parallax.run(CNN, dims={"batch": 2.5}), "dims['batch'] is 2.5; it must be a whole number"),
    (lambda: parallax.run(CNN, seed=-1), "seed is -1"),
    (lambda: parallax.run(CNN, only="x"), "only chooses what is captured"),
    (lambda: parallax.run(CNN, rewrite="fast"), "rewrite: 'fast' is none of"),
    (lambda: parallax.run(CNN, memory_limit="lots"), "no number of bytes"),
    (lambda: parallax.run(CNN, inputs=3), "inputs is 3; it must be a mapping"),
    (lambda: parallax.run(3), "the model is a"),
    (lambda: parallax.blame(model=CNN, executors="cpu"), "blame needs two sides"),
    (lambda: parallax.blame("a.plx"), "blame takes two dumps"),
    (lambda: parallax.blame("a.plx", "b.plx", inputs={}), "inputs belongs to a model"),
    (lambda: parallax.reduce(CNN, check="true"), "must hold {model}"),
    (lambda: parallax.reduce(CNN), "say what fails"),
    (lambda: parallax.extract(CNN), "to is missing"),
    (lambda: parallax.extract(CNN, to="nothing"), "nothing"),
    (lambda: parallax.bench(CNN, iterations=0), "iterations is 0"),
    (lambda: parallax.compare(CNN, policy="strict"), "only 'auto' is known"),
    (lambda: parallax.compare(CNN, policy={"tol": 1}), "policy has the key 'tol'"),
])  # fmt: skip
def test_usage_errors_name_what_is_wrong(
    call: Any, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(parallax.UsageError) as caught:
        call()
    assert sentence in str(caught.value)
    assert caught.value.code == 2


def test_a_glob_without_a_match_warns() -> None:
    with pytest.warns(UserWarning, match="'nothing\\*' matches no value"):
        parallax.compare(CNN, executors="reference,cpu", per={"nothing*": (1, 1)})


def test_values_are_reported_as_they_come_and_an_exception_ends_the_run() -> None:
    paths: list[str] = []
    found = parallax.compare(A, against=B, on_value=lambda value: paths.append(value["path"]))
    assert sorted(paths) == sorted(row.path for row in found.values)

    def stop(value: dict[str, Any]) -> None:
        raise LookupError(value["path"])

    with pytest.raises(LookupError):
        parallax.compare(A, against=B, on_value=stop)


# Each says that it is at work: a loop of many steps, compared at each; a command that does not end; a slow function.
LONG_JOBS = {
    "compare": "parallax.compare(loop, executors=('reference', 'cpu'), on_value=at_work)",
    "command": "parallax.reduce(small, check='echo > working; sleep 600; : {model}', directory='out')",
    "function": "parallax.reduce(small, check=lambda model, inputs: at_work() or time.sleep(600), directory='out')",
}


def long_loop() -> bytes:
    """y = sin(sin(... x)), more often than anybody waits for."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Sin", ["v"], ["w"])], "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("v", TensorProto.FLOAT, [8])],
        [value("on", TensorProto.BOOL, []), value("w", TensorProto.FLOAT, [8])])
    return build(
        [helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)], [value("x", TensorProto.FLOAT, [8])],
        [value("y", TensorProto.FLOAT, [8])], {"count": np.array(50_000_000, np.int64)})


@pytest.mark.parametrize("job", LONG_JOBS)
def test_control_c_ends_a_job_and_leaves_nothing(job: str, tmp_path: Path) -> None:
    (tmp_path / "loop.onnx").write_bytes(long_loop())
    (tmp_path / "small.onnx").write_bytes(noisy_pair()[0])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    os.mkfifo(tmp_path / "working")
    code = textwrap.dedent(f"""
        import os, time, parallax
        loop, small = "loop.onnx", "small.onnx"
        written = []
        def at_work(value=None):
            if not written:
                written.append(os.write(os.open("working", os.O_WRONLY), b"x"))
        try:
            {LONG_JOBS[job]}
        except KeyboardInterrupt:
            print("interrupted")
    """)
    working = os.open(tmp_path / "working", os.O_RDWR)
    child = subprocess.Popen(
        [sys.executable, "-B", "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(scratch)})
    try:
        assert child.stdout is not None
        ready, _, _ = select.select([working, child.stdout], [], [], 60)
        assert working in ready, child.communicate()
        child.send_signal(signal.SIGINT)
        printed = child.communicate(timeout=60)
    finally:
        child.kill()
        os.close(working)
    assert (printed, child.returncode) == (("interrupted\n", ""), 0)
    assert list(scratch.iterdir()) == []
    left = {path.name for path in (tmp_path / "out").iterdir()} if (tmp_path / "out").exists() else set()
    assert left <= {"journal.jsonl"}
