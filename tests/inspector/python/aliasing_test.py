# SPDX-License-Identifier: Apache-2.0
"""No result shares memory with an input, a weight, a kept constant or another result: shown by writing to each."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import parallax
import pytest
from onnx import TensorProto, helper
from small_models import build, value

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
SHAPE = [4, 6]
X = np.arange(24, dtype=np.float32).reshape(4, 6)


def model(nodes: list[Any], outputs: list[str], weights: dict[str, Any] | None = None, extra: list[Any] | None = None) -> bytes:
    return build(nodes, [value("x", FLOAT, SHAPE), *(extra or [])], [value(name, FLOAT, None) for name in outputs], weights)


def node(op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    return helper.make_node(op, inputs, outputs, **attributes)


def branch(name: str, nodes: list[Any], output: str) -> Any:
    return helper.make_graph(nodes, name, [], [value(output, FLOAT, None)])


def loop_body() -> Any:
    """Carries a value unchanged and stacks it."""
    return helper.make_graph(
        [node("Identity", ["c"], ["c2"]), node("Identity", ["v"], ["v2"]), node("Identity", ["v"], ["s"])],
        "body",
        [value("i", INT64, []), value("c", BOOL, []), value("v", FLOAT, SHAPE)],
        [value("c2", BOOL, []), value("v2", FLOAT, SHAPE), value("s", FLOAT, SHAPE)],
    )


W = {"w": np.full(SHAPE, 3, np.float32)}
SIX_FOUR = {"shape": np.array([6, 4])}
MODELS = {
    "identity": model([node("Identity", ["x"], ["y"])], ["y"]),
    "identities": model([node("Identity", ["x"], ["y"]), node("Identity", ["x"], ["z"])], ["y", "z"]),
    "identity of an identity": model([node("Identity", ["x"], ["y"]), node("Identity", ["y"], ["z"])], ["y", "z"]),
    "reshape": model([node("Reshape", ["x", "shape"], ["y"])], ["y"], SIX_FOUR),
    "reshape of a result": model([node("Neg", ["x"], ["y"]), node("Reshape", ["y", "shape"], ["z"])], ["y", "z"], SIX_FOUR),
    "flatten": model([node("Flatten", ["x"], ["y"], axis=0), node("Squeeze", ["y"], ["z"])], ["y", "z"]),
    "equal nodes": model([node("Neg", ["x"], ["y"]), node("Neg", ["x"], ["z"])], ["y", "z"]),
    "input as output": model([node("Neg", ["x"], ["y"])], ["x", "y"]),
    "repeated output": model([node("Neg", ["x"], ["y"])], ["y", "y"]),
    "weight as output": model([node("Neg", ["x"], ["y"])], ["w", "y"], W),
    "identity of a weight": model([node("Identity", ["w"], ["y"])], ["y"], W),
    "folded constant": model([node("Neg", ["w"], ["y"]), node("Neg", ["x"], ["z"])], ["y", "z"], W),
    "folded constant twice": model([node("Neg", ["w"], ["y"]), node("Identity", ["y"], ["z"])], ["y", "z"], W),
    "constant": model([node("Constant", [], ["y"], value=helper.make_tensor("c", FLOAT, [2], [1, 2]))], ["y"]),
    "slice": model([node("Slice", ["x", "one", "three"], ["y"])], ["y"], {"one": np.array([1]), "three": np.array([3])}),
    "split": model([node("Split", ["x"], ["y", "z"], axis=0, num_outputs=2)], ["y", "z"]),
    "dropout": model([node("Dropout", ["x"], ["y"])], ["y"]),
    "cast": model([node("Cast", ["x"], ["y"], to=FLOAT)], ["y"]),
    "if": model(
        [node("If", ["c"], ["y"], then_branch=branch("t", [node("Identity", ["x"], ["a"])], "a"),
              else_branch=branch("e", [node("Identity", ["w"], ["b"])], "b"))],
        ["y"], W, [value("c", BOOL, [])],
    ),
    "loop": model(
        [node("Loop", ["n", "", "x"], ["y", "z"], body=loop_body())], ["y", "z"], {"n": np.array(2)},
    ),
}


def feeds(name: str, then: bool = True) -> dict[str, Any]:
    return {"x": X.copy(), **({"c": np.array(then)} if name == "if" else {})}


@pytest.mark.parametrize("executor", ["cpu", "reference"])
@pytest.mark.parametrize("name", MODELS)
def test_writing_to_results_changes_nothing_else(name: str, executor: str) -> None:
    session = parallax.Session(MODELS[name], executor)
    for then in ((True, False) if name == "if" else (True,)):
        inputs = feeds(name, then)
        positional = [inputs[key] for key in session.input_names]
        first = session.core.run(positional)
        expected = [output.copy() for output in first]
        assert all(output.flags.writeable for output in first)
        for one, other in itertools.combinations([*first, inputs["x"]], 2):
            assert not np.shares_memory(one, other)
        for index, output in enumerate(first):  # one after the other: each is as it was until it is written itself
            np.testing.assert_array_equal(output, expected[index])
            output[...] = -77
        np.testing.assert_array_equal(inputs["x"], X)
        for _ in range(3):  # later runs: kept constants and weights, and the buffers of planned runs
            for output, wanted in zip(session.core.run(positional), expected, strict=True):
                np.testing.assert_array_equal(output, wanted)
        assert all((output == -77).all() for output in first)
        for weight in session.model.initializers:
            if weight.name == "w":
                assert (weight.tensor.numpy() == 3).all()


@pytest.mark.parametrize("executor", ["cpu", "reference"])
def test_results_outlive_later_runs_and_the_session(executor: str) -> None:
    session = parallax.Session(MODELS["reshape of a result"], executor)
    kept = [session.run([X + step]) for step in range(5)]
    del session
    for step, outputs in enumerate(kept):
        np.testing.assert_array_equal(outputs["y"], -(X + step))
        np.testing.assert_array_equal(outputs["z"], -(X + step).reshape(6, 4))


def test_the_same_array_for_two_inputs() -> None:
    both = build([node("Identity", ["a"], ["y"]), node("Identity", ["b"], ["z"])],
                 [value("a", FLOAT, SHAPE), value("b", FLOAT, SHAPE)], [value("y", FLOAT, None), value("z", FLOAT, None)])
    x = X.copy()
    outputs = parallax.Session(both).run([x, x])
    outputs["y"][...] = 5
    np.testing.assert_array_equal(outputs["z"], X)
    np.testing.assert_array_equal(x, X)


def test_elements_of_sequences_share_no_memory() -> None:
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, None))
    made = build([node("SequenceConstruct", ["x", "x"], ["s"])], [value("x", FLOAT, SHAPE)],
                 [helper.make_value_info("s", sequence)])
    x = X.copy()
    one, other = parallax.Session(made, "reference").run([x])["s"]
    one[...] = 9
    np.testing.assert_array_equal(other, X)
    np.testing.assert_array_equal(x, X)


def test_sharing_can_be_asked_for() -> None:
    session = parallax.Session(MODELS["identity"], alias_outputs=True)
    x = X.copy()
    y = session.run([x])["y"]
    assert np.shares_memory(x, y) and not y.flags.writeable
    fresh = parallax.Session(MODELS["equal nodes"], rewrite="none", alias_outputs=True).run([x])
    assert fresh["y"].flags.writeable


def test_tensors_share_no_memory() -> None:
    session = parallax.Session(MODELS["identity"])
    x = parallax.Tensor(X.copy())
    y = session.run([x])["y"]
    assert y.address != x.address and y.writable
