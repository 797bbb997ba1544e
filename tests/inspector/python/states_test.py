# SPDX-License-Identifier: Apache-2.0
"""States of a session: kept between runs, emptied, reordered, read and replaced."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import parallax

STATES = [("past", "present", 1)]


def running_sum() -> onnx.ModelProto:
    """present = past with x after it; y = the sum of it."""
    nodes = [
        helper.make_node("Concat", ["past", "x"], ["present"], axis=1),
        helper.make_node("ReduceSum", ["present", "axes"], ["y"], keepdims=0),
    ]
    floats = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)  # noqa: E731
    graph = helper.make_graph(
        nodes, "g", [floats("x", ["batch", "new"]), floats("past", ["batch", "length"])],
        [floats("y", ["batch"]), floats("present", ["batch", "total"])],
        [helper.make_tensor("axes", TensorProto.INT64, [1], [1])],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize("executor", ["reference", "cpu"])
def test_a_run_reads_what_the_runs_before_it_kept(executor: str) -> None:
    session = parallax.Session(running_sum(), executor, states=STATES)
    session.reset_states(2, capacity=2)
    for step in range(1, 6):
        outputs = session.run({"x": np.full((2, 1), step, np.float32)})
        assert list(outputs) == ["y"]
        assert outputs["y"].tolist() == [sum(range(step + 1))] * 2
    assert session.state("past").shape == (2, 5)
    session.reset_states(1)
    assert session.run({"x": np.ones((1, 3), np.float32)})["y"].tolist() == [3]


@pytest.mark.parametrize("executor", ["reference", "cpu"])
def test_rows_are_reordered_and_states_replaced(executor: str) -> None:
    session = parallax.Session(running_sum(), executor, states=STATES)
    session.set_state(0, np.array([[1, 2], [3, 4]], np.float32))
    session.reorder_states([1, 1, 0])
    outputs = session.run({"x": np.zeros((3, 1), np.float32)})
    assert outputs["y"].tolist() == [7, 7, 3]
    copy = session.state("present")
    copy[:] = 0
    assert session.state(0)[0].tolist() == [3, 4, 0]


def test_misuse_is_one_sentence() -> None:
    plain = parallax.Session(running_sum())
    with pytest.raises(parallax.UsageError, match="keeps no states"):
        plain.reset_states(1)
    session = parallax.Session(running_sum(), states=STATES)
    session.reset_states(2)
    for call, words in (
        (lambda: session.reorder_states([2]), "2"),
        (lambda: session.state("y"), "no state"),
        (lambda: session.set_state(0, np.zeros((2, 2), np.int64)), "float32"),
        (lambda: session.run({"x": np.ones((2, 1), np.float32), "past": np.ones((2, 1), np.float32)}), "past"),
        (lambda: parallax.Session(running_sum(), states=[("past",)]), "output"),
        (lambda: parallax.Session(running_sum(), states=[("nothing", "present")]), "nothing"),
    ):
        with pytest.raises(parallax.UsageError, match=words):
            call()
