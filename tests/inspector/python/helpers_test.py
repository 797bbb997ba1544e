# SPDX-License-Identifier: Apache-2.0
"""string_type and pretty_onnx over numpy and onnx alone; torch's objects are in torch/string_type_test.py."""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from small_models import run_python, value

import parallax
from parallax.helpers import pretty_onnx, string_type

FLOATS = np.arange(6, dtype=np.float32).reshape(2, 3)


@dataclasses.dataclass
class Pair:
    """A dataclass with a field that may be missing."""

    first: Any
    second: Any = None


@pytest.mark.parametrize(
    ("obj", "options", "text"),
    [
        (None, {}, "None"),
        (FLOATS, {}, "A1r2"),
        (FLOATS, {"with_shape": True}, "A1s2x3"),
        (FLOATS, {"with_shape": True, "with_min_max": True}, "A1s2x3[0.0,5.0:A2.5]"),
        (np.array([1.0, np.nan]), {"with_shape": True, "with_min_max": True}, "A11s2[1.0,1.0:A1.0N1nans]"),
        (np.array([np.nan]), {"with_min_max": True}, "A11r1[N1nans]"),
        (np.zeros((0, 2)), {"with_shape": True, "with_min_max": True}, "A11s0x2[empty]"),
        (np.array(3.0), {"with_min_max": True}, "A11r0=3.0"),
        (np.array(["a"]), {"with_shape": True, "with_min_max": True}, "A8s1"),
        (FLOATS.astype(ml_dtypes.bfloat16), {"with_shape": True}, "A16s2x3"),
        ((), {}, "()"),
        ((1,), {}, "(int,)"),
        ((1, 2.5, "a", True), {"with_min_max": True}, "(int=1,float=2.5,str,bool=True)"),
        ([], {}, "#0[]"),
        ([FLOATS, None], {"with_shape": True}, "#2[A1s2x3,None]"),
        (list(range(30)), {}, "#30[int,...]"),
        (list(range(30)), {"with_min_max": True}, "#30[int=0,...][0,29:14.5]"),
        (tuple(range(30)), {"with_min_max": True}, "#30(int=0,...)[0,29:A[14.5]]"),
        ([1, 2, 3], {"limit": 2}, "#3[int,...]"),
        (set(range(30)), {"with_shape": True}, "{...}#30"),
        (set(range(30)), {"with_min_max": True}, "{...}#30[0,29:A14.5]"),
        ({1}, {}, "{int}"),
        ({}, {}, "{}"),
        ({"a": FLOATS, "b": {}}, {"with_shape": True}, "dict(a:A1s2x3,b:{})"),
        ({0: "batch", 1: "length"}, {}, "{0:DYN(batch),1:DYN(length)}"),
        ({0: 1.0}, {}, "{0:float}"),
        (Pair(FLOATS), {"with_shape": True}, "Pair(first:A1s2x3)"),
        (Pair(None), {}, "Pair"),
        (slice(1), {}, "slice"),
        (object(), {}, "object(...)"),
        (parallax.Tensor(FLOATS), {"with_shape": True, "with_min_max": True}, "P1s2x3[0.0,5.0:A2.5]"),
        (parallax.Tensor(FLOATS), {"with_device": True}, "CP1r2"),
        (parallax.Tensor.from_bytes(b"\x21\x03", "int4", (3,)), {"with_min_max": True}, "P22r1[1,3:A2.0]"),
        (value("x", TensorProto.INT64, [1]), {}, "OT7"),
    ],
)
def test_string_type(obj: Any, options: dict[str, Any], text: str) -> None:
    assert string_type(obj, **options) == text


def test_string_type_loads_no_torch() -> None:
    run_python(
        "import sys; from parallax.helpers import string_type\n"
        "string_type({'a': [1]}); assert 'torch' not in sys.modules"
    )


def _model() -> Any:
    weight = numpy_helper.from_array(np.array([-1, 1]), "shape")
    weight.doc_string = "from.reshape"
    branch = helper.make_graph([helper.make_node("Neg", ["t"], ["n"])], "b", [], [value("n", TensorProto.FLOAT, None)])
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["g"], transB=1, alpha=0.5),
        helper.make_node("Relu", ["g"], ["t"]),
        helper.make_node("Fused", ["x"], ["u"], domain="com.microsoft"),
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
        helper.make_node("Reshape", ["y", "shape"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes, "g", [value("x", TensorProto.FLOAT, ["n", 3]), value("c", TensorProto.BOOL, [])],
        [value("z", TensorProto.FLOAT, None)],
        [weight, numpy_helper.from_array(np.zeros((7, 3), np.float32), "w")])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets)


def test_pretty_onnx_shows_a_model_line_by_line() -> None:
    assert pretty_onnx(_model()).splitlines() == [
        "opset: domain='' version=18",
        "opset: domain='com.microsoft' version=1",
        "input: name='x' type=dtype('float32') shape=['n', 3]",
        "input: name='c' type=dtype('bool') shape=None",
        "init: name='shape' type=int64 shape=(2,) -- array([-1,  1])".ljust(70) + "-- from.reshape",
        "init: name='w' type=float32 shape=(7, 3)",
        "Gemm(x, w, alpha=0.50, transB=1) -> g",
        "  Relu(g) -> t",
        "Fused[com.microsoft](x) -> u",
        "If(c, else_branch=G1, then_branch=G2) -> y",
        "  Reshape(y, shape) -> z",
        "output: name='z' type=dtype('float32') shape=None",
        "----- subgraph G1 else_branch of If(c)",
        "Neg(t) -> n",
        "output: name='n' type=dtype('float32') shape=None",
        "----- subgraph G2 then_branch of If(c)",
        "Neg(t) -> n",
        "output: name='n' type=dtype('float32') shape=None",
    ]


def test_pretty_onnx_takes_parts_of_a_model() -> None:
    model = _model()
    assert pretty_onnx(model.graph.node[0]) == "Gemm(x, w, alpha=0.50, transB=1) -> g"
    assert pretty_onnx(model.graph.input[0]) == "name='x' type=dtype('float32') shape=['n', 3]"
    assert pretty_onnx(model.graph.initializer[0]).startswith("name='shape' type=int64")
    nodes, opsets = [helper.make_node("Abs", ["a"], ["b"])], [helper.make_opsetid("", 18)]
    function = helper.make_function("my", "f", ["a"], ["b"], nodes, opsets)
    assert "Abs(a) -> b" in pretty_onnx(function) and "name=f domain=my" in pretty_onnx(function)


def test_pretty_onnx_takes_what_load_takes(tmp_path: Any) -> None:
    import onnx

    model = _model()
    model.graph.node[2].CopyFrom(helper.make_node("Neg", ["x"], ["u"]))
    onnx.save(model, tmp_path / "m.onnx")
    assert pretty_onnx(tmp_path / "m.onnx") == pretty_onnx(model)
