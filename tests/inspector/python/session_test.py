# SPDX-License-Identifier: Apache-2.0
"""Sessions: inputs by name and by position, values that are no tensors, observers, options and errors."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import parallax
import pytest
from onnx import TensorProto, helper
from small_models import build, unary, value

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def two_inputs() -> bytes:
    nodes = [helper.make_node("Sub", ["a", "b"], ["y"]), helper.make_node("Mul", ["a", "w"], ["z"])]
    return build(
        nodes,
        [value("a", FLOAT, ["n"]), value("b", FLOAT, ["n"])],
        [value("y", FLOAT, ["n"]), value("z", FLOAT, ["n"])],
        {"w": np.array([10], np.float32)},
    )


A, B = np.array([1, 2], np.float32), np.array([5, 3], np.float32)


@pytest.mark.parametrize("executor", ["cpu", "reference"])
def test_inputs_by_name_and_by_position(executor: str) -> None:
    session = parallax.Session(two_inputs(), executor)
    assert (session.input_names, session.output_names) == (["a", "b"], ["y", "z"])
    for inputs in ({"b": B, "a": A}, [A, B], (A, B)):
        outputs = session.run(inputs)
        assert list(outputs) == ["y", "z"]
        np.testing.assert_array_equal(outputs["y"], [-4, -1])
        np.testing.assert_array_equal(outputs["z"], [10, 20])


def test_results_are_of_the_kind_of_the_inputs() -> None:
    session = parallax.Session(two_inputs())
    assert type(session.run([A, B])["y"]) is np.ndarray
    assert type(session.run([parallax.Tensor(A), parallax.Tensor(B)])["y"]) is parallax.Tensor
    assert type(session.run([A, B], kind="tensor")["y"]) is parallax.Tensor
    with pytest.raises(parallax.UsageError, match="kind is 'jax'"):
        session.run([A, B], kind="jax")


def test_wrong_names_are_named() -> None:
    session = parallax.Session(two_inputs())
    with pytest.raises(parallax.UsageError, match="input 'b' is missing; it must be float32.* 'a', 'b'"):
        session.run({"a": A})
    with pytest.raises(parallax.UsageError, match="has no input 'c' .inputs: 'a', 'b'"):
        session.run({"a": A, "b": B, "c": A})
    with pytest.raises(parallax.UsageError, match="3 inputs are given; the model has 2"):
        session.run([A, B, A])
    with pytest.raises(parallax.UsageError, match="must be a mapping by name"):
        session.run(A)


def test_wrong_types_and_shapes_are_usage_errors() -> None:
    session = parallax.Session(two_inputs())
    with pytest.raises(parallax.UsageError, match="'a'") as raised:
        session.run({"a": A.astype(np.float64), "b": B})
    assert raised.value.code == 2 and raised.value.kind == "usage" and isinstance(raised.value, ValueError)
    with pytest.raises(parallax.UsageError):
        session.run({"a": A, "b": np.zeros(3, np.float32)})


def test_lists_of_numbers_take_the_declared_type() -> None:
    session = parallax.Session(two_inputs())
    np.testing.assert_array_equal(session.run({"a": [1, 2], "b": [0.5, 0.25]})["y"], [0.5, 1.75])
    whole = parallax.Session(unary("Neg", INT64, ["n"]))
    with pytest.raises(parallax.UsageError, match="numbers of float64; it must be int64"):
        whole.run({"x": [1.5]})


def test_an_input_with_a_default_may_be_left_out() -> None:
    model = build(
        [helper.make_node("Add", ["x", "b"], ["y"])],
        [value("x", FLOAT, [1]), value("b", FLOAT, [1])],
        [value("y", FLOAT, [1])],
        {"b": np.array([7], np.float32)},
    )
    session = parallax.Session(model)
    assert session.run({"x": np.ones(1, np.float32)})["y"] == 8
    assert session.run([np.ones(1, np.float32)])["y"] == 8
    assert session.run({"x": np.ones(1, np.float32), "b": np.ones(1, np.float32)})["y"] == 2


def test_sequences_are_lists() -> None:
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, None))
    inserted = build(
        [helper.make_node("SequenceInsert", ["s", "x"], ["t"])],
        [helper.make_value_info("s", sequence), value("x", FLOAT, None)],
        [helper.make_value_info("t", sequence)],
    )
    session = parallax.Session(inserted, "reference")
    result = session.run({"s": [A], "x": B})["t"]
    assert isinstance(result, list) and len(result) == 2
    np.testing.assert_array_equal(result[1], B)
    assert len(session.run({"s": [], "x": B})["t"]) == 1
    with pytest.raises(parallax.UsageError, match="input 's' is a ndarray; it must be a list"):
        session.run({"s": A, "x": B})


def test_optionals_are_values_or_none() -> None:
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [None]))
    model = build(
        [helper.make_node("OptionalHasElement", ["o"], ["has"]), helper.make_node("Identity", ["o"], ["p"])],
        [helper.make_value_info("o", optional)],
        [value("has", TensorProto.BOOL, []), helper.make_value_info("p", optional)],
    )
    session = parallax.Session(model, "reference")
    given, empty = session.run({"o": A}), session.run({"o": None})
    assert given["has"] and not empty["has"]
    np.testing.assert_array_equal(given["p"], A)
    assert empty["p"] is None


def test_strings_go_in_and_out() -> None:
    session = parallax.Session(unary("Identity", STRING, [None]))
    assert session.run({"x": np.array(["a", "ü"], dtype=object)})["y"].tolist() == ["a", "ü"]


class Recorder:
    def __init__(self, only: str = "") -> None:
        self.asked: list[str] = []
        self.seen: dict[str, Any] = {}
        self.only = only

    def wants(self, site: parallax.session.Site) -> bool:
        self.asked.append(site.name)
        return not self.only or site.name == self.only

    def observe(self, path: str, seen: Any) -> None:
        self.seen[path] = seen


@pytest.mark.parametrize("executor", ["cpu", "reference"])
def test_observers_see_values_and_are_asked_once(executor: str) -> None:
    session, recorder = parallax.Session(two_inputs(), executor), Recorder()
    session.run([A, B], observe=recorder)
    assert set(recorder.seen) >= {"a", "b", "y", "z"}
    np.testing.assert_array_equal(recorder.seen["z"].numpy(), [10, 20])
    asked = len(recorder.asked)
    session.run([B, A], observe=recorder)
    assert len(recorder.asked) == asked
    np.testing.assert_array_equal(recorder.seen["y"].numpy(), [4, 1])
    single = Recorder("z")
    session.run([A, B], observe=single)
    assert list(single.seen) == ["z"]


def test_observed_values_are_copies() -> None:
    session, recorder = parallax.Session(two_inputs()), Recorder()
    outputs = session.run([A, B], observe=recorder)
    recorder.seen["y"].numpy()[:] = 99
    recorder.seen["a"].numpy()[:] = 99
    np.testing.assert_array_equal(outputs["y"], [-4, -1])
    np.testing.assert_array_equal(A, [1, 2])


@pytest.mark.parametrize("method", ["wants", "observe"])
def test_exceptions_of_observers_come_out(method: str) -> None:
    def fail(*_: object) -> bool:
        raise KeyError("mine")

    recorder = Recorder()
    setattr(recorder, method, fail)
    session = parallax.Session(two_inputs())
    with pytest.raises(KeyError, match="mine"):
        session.run([A, B], observe=recorder)
    np.testing.assert_array_equal(session.run([A, B])["y"], [-4, -1])


def test_options_reach_the_executor() -> None:
    model = two_inputs()
    with pytest.raises(parallax.UsageError, match="no executor 'gpu'; did you mean 'cpu'. .known: reference"):
        parallax.Session(model, "gpu")
    with pytest.raises(parallax.UsageError, match="rewrite: 'some' is none of"):
        parallax.Session(model, rewrite="some")
    with pytest.raises(parallax.UsageError, match="TF32"):
        parallax.Session(model, tf32=True)
    with pytest.raises(parallax.UsageError, match="memory_limit is 0"):
        parallax.Session(model, memory_limit=0)
    with pytest.raises(parallax.OutOfMemory):
        parallax.Session(model, memory_limit=8).run([np.zeros(4096, np.float32), np.zeros(4096, np.float32)])


def test_errors_name_the_node() -> None:
    model = build(
        [helper.make_node("Gather", ["x", "i"], ["y"], name="pick")],
        [value("x", FLOAT, [3]), value("i", INT64, [1])],
        [value("y", FLOAT, [1])],
    )
    for executor in ("cpu", "reference"):
        with pytest.raises(parallax.ExecutionError, match="pick") as raised:
            parallax.Session(model, executor).run([np.zeros(3, np.float32), np.array([7])])
        error = raised.value
        assert (error.node, error.op, error.code, error.kind) == ("pick", "Gather-13", 4, "execution")
        assert isinstance(error, RuntimeError) and isinstance(error, parallax.Error)
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), copy.node) == (type(error), str(error), "pick")


def unknown_operator() -> bytes:
    return build([helper.make_node("Foo", ["x"], ["y"], domain="nobody")], [value("x", FLOAT, [1])], [value("y", FLOAT, [1])])


def test_each_kind_of_error_has_a_class(tmp_path: Path) -> None:
    cases: list[tuple[type[Exception], type[Exception], Any]] = [
        (parallax.InvalidModel, ValueError, lambda: parallax.load(b"no model")),
        (parallax.IoError, OSError, lambda: parallax.load(tmp_path / "absent.onnx")),
        (parallax.Unsupported, NotImplementedError, lambda: parallax.Session(unknown_operator())),
        (parallax.UsageError, ValueError, lambda: parallax.load(3)),
    ]
    for ours, builtin, provoke in cases:
        with pytest.raises(ours) as raised:
            provoke()
        assert isinstance(raised.value, (builtin, parallax.Error)) and isinstance(raised.value, builtin)


def test_statistics_and_description() -> None:
    session = parallax.Session(two_inputs())
    session.run([A, B])
    assert session.statistics()["weight_bytes"] == 4
    assert "on cpu" in repr(session)
    assert session.executor == "cpu" and session.model.nodes[0].op == "Sub"


def test_models_from_everything(tmp_path: Path) -> None:
    data = two_inputs()
    proto = onnx.load_from_string(data)
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    for source in (data, bytearray(data), proto, path, os.fspath(path), parallax.load(data)):
        assert parallax.Session(source).output_names == ["y", "z"]
