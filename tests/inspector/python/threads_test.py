# SPDX-License-Identifier: Apache-2.0
"""Sessions in threads and in children of fork, and memory after many calls."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import parallax
import pytest
from onnx import TensorProto, helper
from small_models import build, run_python, unary, value

FLOAT = TensorProto.FLOAT


def network(width: int = 192) -> bytes:
    """Products and a softmax that are spread over threads, with weights that are packed."""
    random = np.random.default_rng(7)
    weights = {f"w{i}": random.standard_normal((width, width)).astype(np.float32) / 14 for i in range(3)}
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("MatMul", ["b", "w1"], ["c"]), helper.make_node("Softmax", ["c"], ["d"]),
             helper.make_node("Transpose", ["w2"], ["t"]), helper.make_node("MatMul", ["d", "t"], ["y"])]
    return build(nodes, [value("x", FLOAT, ["n", width])], [value("y", FLOAT, ["n", width])], weights)


def inputs(count: int, width: int = 192) -> list[Any]:
    random = np.random.default_rng(3)
    return [random.standard_normal((1 + 13 * (i % 5), width)).astype(np.float32) for i in range(count)]


@pytest.mark.parametrize("shared", [True, False], ids=["one session", "clones"])
@pytest.mark.parametrize("executor", ["cpu", "reference"])
def test_four_threads_give_the_right_bits(executor: str, shared: bool) -> None:
    width = 192 if executor == "cpu" else 48
    session = parallax.Session(network(width), executor)
    given = inputs(40 if executor == "cpu" else 12, width)
    expected = [session.run([x])["y"] for x in given]
    sessions = [session if shared else session.clone() for _ in range(4)]
    wrong: list[Any] = []

    def work(which: int) -> None:
        try:
            for index in range(which, which + len(given)):
                position = index % len(given)
                result = sessions[which].run([given[position]])["y"]
                if result.tobytes() != expected[position].tobytes():
                    wrong.append((which, position))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_clones_share_packed_weights_and_outlive_their_origin() -> None:
    session = parallax.Session(network())
    x = inputs(2)[1]
    expected = session.run([x])["y"]
    packed = session.statistics()["weight_bytes"]
    clone = session.clone()
    del session
    assert clone.run([x])["y"].tobytes() == expected.tobytes()
    assert clone.statistics()["weight_bytes"] <= packed
    assert clone.executor == "cpu" and clone.input_names == ["x"]


def test_the_interpreter_runs_on_during_a_call() -> None:
    session = parallax.Session(network(512), "reference")
    x = np.ones((512, 512), np.float32)

    def steps_in_the_middle() -> int:
        """Steps of this thread in the middle half of a call by another; none where the call holds the interpreter's lock."""
        bounds: list[float] = []

        def call() -> None:
            bounds.append(time.perf_counter())
            session.run([x])
            bounds.append(time.perf_counter())

        thread = threading.Thread(target=call)
        thread.start()
        steps = []
        while thread.is_alive():
            steps.append(time.perf_counter())
        begin, end = bounds
        quarter = (end - begin) / 4
        return sum(begin + quarter < step < end - quarter for step in steps)

    assert any(steps_in_the_middle() for _ in range(20))  # one may be over before a loaded machine comes back to this thread


@pytest.mark.parametrize("executor", ["cpu", "reference"])
def test_children_of_fork_run_sessions_of_their_parent(executor: str) -> None:
    session = parallax.Session(network(), executor)
    x = inputs(5)[4]
    expected = session.run([x])["y"].tobytes()
    for _ in range(3):
        child = os.fork()
        if child == 0:
            try:
                same = session.run([x])["y"].tobytes() == expected
                fresh = parallax.Session(network(), executor).run([x])["y"].tobytes() == expected
                os._exit(0 if same and fresh else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert session.run([x])["y"].tobytes() == expected


def test_children_end_by_themselves(tmp_path: Path) -> None:
    path = tmp_path / "network.onnx"
    path.write_bytes(network())
    assert "ended" in run_python(
        f"""
import multiprocessing, numpy as np, parallax
session = parallax.Session({str(path)!r})
x = np.ones((64, 192), np.float32)
expected = session.run([x])["y"]
def work(queue): queue.put(session.run([x])["y"])
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=work, args=(queue,))
    child.start()
    assert (queue.get(timeout=60) == expected).all()
    child.join(60)
    print("ended", child.exitcode)
"""
    )


def resident_kib() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer keeps freed memory")
def test_memory_stays_level_over_many_calls() -> None:
    session = parallax.Session(unary("Neg", FLOAT, ["n"]))
    x = np.ones(20_000, np.float32)

    def call(times: int) -> None:
        for _ in range(times):
            session.run({"x": x})
            session.run([parallax.Tensor(x)])

    call(500)
    before = resident_kib()
    call(5_000)
    assert resident_kib() - before < 4_000  # one leaked result a call would be 800,000
