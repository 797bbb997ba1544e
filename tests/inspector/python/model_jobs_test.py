# SPDX-License-Identifier: Apache-2.0
"""merge_decoders, convert and audit_fp16: the program's documents, and the models that they make."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import parallax


def floats(name: str, *dims: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def model_of(nodes: list[onnx.NodeProto], inputs: list, outputs: list, **weights: np.ndarray) -> onnx.ModelProto:
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def decoders() -> tuple[onnx.ModelProto, onnx.ModelProto]:
    weight = np.arange(2000, dtype=np.float32).reshape(2, 1000)
    product = helper.make_node("MatMul", ["x", "w"], ["logits"])
    first = model_of(
        [product, helper.make_node("Neg", ["x"], ["present.0.key"])], [floats("x", "batch", 2)],
        [floats("logits", "batch", 1000), floats("present.0.key", "batch", 2)], w=weight,
    )  # fmt: skip
    later = model_of(
        [product, helper.make_node("Add", ["past_key_values.0.key", "x"], ["present.0.key"])],
        [floats("x", "batch", 2), floats("past_key_values.0.key", "batch", 2)],
        [floats("logits", "batch", 1000), floats("present.0.key", "batch", 2)], w=weight,
    )  # fmt: skip
    return first, later


def test_merged_decoders_share_weights_and_run(tmp_path: Path) -> None:
    first, later = decoders()
    merged = parallax.merge_decoders(first, later, tmp_path / "merged.onnx", condition="later", verify=True)
    document = merged.to_dict()
    assert merged.passed and document["verification"]["verdict"] == "pass"
    assert document["weights"]["shared"] == 1
    assert (tmp_path / "merged.onnx").stat().st_size < 1.2 * len(first.SerializeToString())
    x = np.ones((1, 2), np.float32)
    session = parallax.Session(merged.model)
    for flag, present in ((False, [[-1, -1]]), (True, [[3, 3]])):
        outputs = session.run({"x": x, "past_key_values.0.key": 2 * x, "later": np.array([flag])})
        assert outputs["present.0.key"].tolist() == present


def test_merging_what_does_not_fit_is_refused() -> None:
    first, later = decoders()
    with pytest.raises(parallax.UsageError, match="Swap the models"):
        parallax.merge_decoders(later, first)
    with pytest.raises(parallax.UsageError, match="one model given twice"):
        parallax.merge_decoders(first, first)
    with pytest.raises(parallax.UsageError, match="is an input"):
        parallax.merge_decoders(first, later, condition="x")


def overflowing() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["square"], name="square"),
        helper.make_node("Div", ["square", "large"], ["y"], name="shrink"),
    ]
    return model_of(nodes, [floats("x", "n")], [floats("y", "n")], large=np.array(1e4, np.float32))


def test_the_audit_names_what_leaves_the_range_and_its_answer_converts() -> None:
    sets = iter([{"x": np.full(3, value, np.float32)} for value in (1.0, 2.0, 1000.0)])
    audit = parallax.audit_fp16(overflowing(), sets)
    assert audit.passed and "square" in audit.keep
    assert next(row for row in audit.nodes if row["node"] == "square")["class"] == "must"
    made = parallax.convert(overflowing(), "float16", keep=audit.keep)
    y = parallax.Session(made.model).run({"x": np.full(3, 1000, np.float16)})["y"]
    assert y.dtype == np.float16 and np.allclose(y, 100, rtol=1e-2)


def test_a_function_is_asked_until_nothing_is_new() -> None:
    asked = []

    def get_input() -> dict[str, np.ndarray]:
        asked.append(len(asked))
        return {"x": np.full(3, 1000.0 if len(asked) == 2 else 1.0, np.float32)}

    audit = parallax.audit_fp16(overflowing(), get_input, until_stable=3)
    assert "square" in audit.keep
    assert 4 <= len(asked) <= 6
    with pytest.raises(parallax.UsageError, match="until_stable"):
        parallax.audit_fp16(overflowing(), get_input)
    with pytest.raises(parallax.UsageError, match="an input set is 3"):
        parallax.audit_fp16(overflowing(), [3])


def test_names_of_example_scripts() -> None:
    from parallax.compat import convert_fp16, get_keep_fp32_nodes

    kept = get_keep_fp32_nodes(overflowing(), lambda: {"x": np.full(3, 1000, np.float32)}, early_stop=2)
    proto = convert_fp16(onnx_model=overflowing(), nodes_to_exclude=kept)
    assert isinstance(proto, onnx.ModelProto)
    assert proto.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT16
