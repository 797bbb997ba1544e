# SPDX-License-Identifier: Apache-2.0
"""Models: what they say of themselves, text and pictures, and what transforms give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import parallax
import pytest
from onnx import TensorProto, helper
from small_models import build, value

FLOAT = TensorProto.FLOAT


def linear() -> bytes:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="product"),
        helper.make_node("Add", ["m", "b"], ["s"]),
        helper.make_node("LeakyRelu", ["s"], ["y"], alpha=0.5),
    ]
    nodes[0].metadata_props.add(key="pkg.torch.onnx.stack_trace", value='File "/x/model.py", line 11, in forward')
    return build(
        nodes,
        [value("x", FLOAT, ["batch", 3]), value("w", FLOAT, [3, 2])],
        [value("y", FLOAT, ["batch", 2])],
        {"b": np.array([1, 2], np.float32)},
    )


def test_representations_spell_control_characters() -> None:
    name = "x\n\x1b[2J\x85"
    node = helper.make_node("Relu", [name], ["y"], name=name)
    model = parallax.load(build([node], [value(name, FLOAT, [1])], [value("y", FLOAT, [1])]))
    for shown in (model, model.inputs[0], model.nodes[0]):
        assert repr(shown).isprintable(), repr(shown)


def test_inputs_outputs_and_weights() -> None:
    model = parallax.load(linear())
    assert [(v.name, v.dtype, v.shape, v.kind) for v in model.inputs] == [
        ("x", "float32", ("batch", 3), "tensor"), ("w", "float32", (3, 2), "tensor"),
    ]
    assert model.outputs[0].type == "float32[batch,2]"
    weight = model.initializers[0]
    assert (weight.name, weight.dtype, weight.shape) == ("b", "float32", (2,))
    np.testing.assert_array_equal(weight.tensor.numpy(), [1, 2])
    with pytest.raises(ValueError, match="read-only"):
        weight.tensor.numpy()[0] = 5
    assert model.opset_imports == {"": 18}


def test_nodes_say_where_they_come_from() -> None:
    model = parallax.load(linear())
    product, add, relu = model.nodes
    assert (product.name, product.op, product.domain, product.inputs, product.outputs) == (
        "product", "MatMul", "", ["x", "w"], ["m"],
    )
    assert product.source == "model.py:11" and "pkg.torch.onnx.stack_trace" in product.metadata
    assert relu.attributes == {"alpha": 0.5} and add.source == ""


def test_text_and_pictures() -> None:
    model = parallax.load(linear())
    assert "MatMul" in model.text() and "float32[batch,2]" in model.text(shapes=True)
    assert model.svg().lstrip().startswith("<svg") and model.dot().startswith("digraph")
    assert "<img" in model._repr_html_()
    assert model.to_dict()["nodes"][0]["node"] == "product"
    assert "3 nodes" in repr(model)


def test_written_models_are_the_same(tmp_path: Path) -> None:
    model = parallax.load(linear())
    assert onnx.load_from_string(model.to_bytes()) == onnx.load_from_string(linear())
    assert parallax.load(model.save(tmp_path / "copy.onnx")).to_bytes() == model.to_bytes()
    assert model.to_onnx().graph.node[0].name == "product"


def test_frozen_inputs_are_weights_that_share_memory() -> None:
    model = parallax.load(linear())
    weight = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
    frozen = model.freeze_inputs({"w": weight})
    assert [v.name for v in frozen.inputs] == ["x"] and [v.name for v in model.inputs] == ["x", "w"]
    kept = {w.name: w.tensor for w in frozen.initializers}["w"]
    assert kept.address == weight.ctypes.data
    x = np.array([[1, 2, 3]], np.float32)
    for executor in ("cpu", "reference"):
        np.testing.assert_array_equal(
            parallax.Session(frozen, executor).run({"x": x})["y"],
            parallax.Session(model, executor).run({"x": x, "w": weight})["y"],
        )
    frozen.check()
    onnx.checker.check_model(frozen.to_onnx())


def test_freezing_checks_names_and_shapes() -> None:
    model = parallax.load(linear())
    with pytest.raises(parallax.UsageError, match="has no input 'v' .inputs: x, w"):
        model.freeze_inputs({"v": np.zeros((3, 2), np.float32)})
    with pytest.raises(parallax.UsageError, match=r"input 'w' is given float32\[2,3\]; it must be float32\[3,2\]"):
        model.freeze_inputs({"w": np.zeros((2, 3), np.float32)})


def test_rewriting_reports_what_it_did() -> None:
    model = parallax.load(linear())
    rewritten, report = model.rewrite_report()
    assert report["nodes"]["before"] == 3 and report["nodes"]["after"] == rewritten.core.node_count
    with pytest.raises(parallax.UsageError, match="no rewrite pattern 'nothing'"):
        model.rewrite("nothing")


def test_extraction() -> None:
    part = parallax.load(linear()).extract(["m"], ["s"])
    assert [n.op for n in part.nodes] == ["Add"] and [v.name for v in part.inputs] == ["m"]


def test_check_lists_problems() -> None:
    broken = onnx.load_from_string(linear())
    broken.graph.node[1].input[0] = "absent"
    with pytest.raises(parallax.InvalidModel, match="absent"):
        parallax.load(broken)
