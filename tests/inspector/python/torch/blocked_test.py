# SPDX-License-Identifier: Apache-2.0
"""Models that onnxruntime saves at its default level, in its blocked layout: every value is onnxruntime's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from parallax import ort

import parallax

DOMAIN = "com.microsoft.nchwc"
LEVELS = onnxruntime.GraphOptimizationLevel


def network() -> onnx.ModelProto:
    """Convolutions of each kind, pools, a sum, upsampling; mostly of 24 channels, so that the block follows from the shapes.

    The pools of whole maps have 32: onnxruntime blocks them only where the block divides the channels.
    """
    random = np.random.default_rng(3)
    nodes: list[Any] = []
    weights: list[Any] = []

    def floats(name: str, shape: tuple[int, ...], scale: float) -> str:
        weights.append(numpy_helper.from_array((scale * random.standard_normal(shape)).astype(np.float32), name))
        return name

    def node(op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(op, inputs, [output], name=output + "_node", **attributes))
        return output

    def conv(x: str, output: str, filters: tuple[int, int, int, int], **attributes: Any) -> str:
        scale = float(np.prod(filters[1:])) ** -0.5
        inputs = [x, floats(output + "_w", filters, scale), floats(output + "_b", filters[:1], 0.5)]
        return node("Conv", inputs, output, **attributes)

    def constant(name: str, value: Any) -> str:
        weights.append(numpy_helper.from_array(value, name))
        return name

    same: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    x = node("Relu", [conv("x", "first", (24, 3, 3, 3), **same, strides=[2, 2])], "first_relu")
    x = conv(x, "depthwise", (24, 1, 3, 3), **same, group=24)
    x = node("Clip", [x, constant("low", np.float32(-0.5)), constant("high", np.float32(1))], "clipped")
    x = node("HardSigmoid", [conv(x, "pointwise", (32, 24, 1, 1))], "hard", alpha=0.3, beta=0.4)
    x = node("LeakyRelu", [conv(x, "grouped", (32, 16, 3, 3), **same, group=2, dilations=[1, 1])], "leaky", alpha=0.2)
    largest = node("MaxPool", [x], "largest", **same, strides=[2, 2])
    mean = node("AveragePool", [x], "mean", **same, strides=[2, 2], count_include_pad=0)
    padded = node("AveragePool", [x], "padded", **same, strides=[2, 2], count_include_pad=1)
    x = node("Concat", [largest, mean, padded], "joined", axis=1)
    skip = conv(x, "narrow", (24, 96, 1, 1))
    x = conv(node("Sigmoid", [conv(skip, "inner", (24, 24, 3, 3), **same)], "inner_sigmoid"), "outer", (24, 24, 3, 3), **same)
    x = node("Relu", [node("Add", [x, skip], "residual")], "residual_relu")
    scales = constant("scales", np.array([1, 1, 2, 2], np.float32))
    near = node("Resize", [x, "", scales], "near", mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    line = node("Resize", [near, "", scales], "line", mode="linear", coordinate_transformation_mode="half_pixel")
    plain = node("Softmax", [line], "plain", axis=1)  # has no blocked form
    wide = node("Tanh", [conv(plain, "wide", (32, 24, 3, 3), **same)], "map")
    pooled = node("Add", [node("GlobalAveragePool", [wide], "average"), node("GlobalMaxPool", [wide], "most")], "pooled")
    node("Gemm", [node("Flatten", [pooled], "flat"), floats("last_w", (32, 5), 0.2), floats("last_b", (5,), 0.2)], "y")
    value = helper.make_tensor_value_info
    outputs = [value("y", TensorProto.FLOAT, ["n", 5]), value("map", TensorProto.FLOAT, ["n", 32, 32, 32])]
    graph = helper.make_graph(nodes, "network", [value("x", TensorProto.FLOAT, ["n", 3, 32, 32])], outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network as onnxruntime saves it."""
    path = tmp_path_factory.mktemp("saved") / "optimized.onnx"
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(network().SerializeToString(), options, providers=["CPUExecutionProvider"])
    return path


@pytest.fixture(scope="module")
def inputs() -> dict[str, Any]:
    return {"x": np.random.default_rng(0).standard_normal((2, 3, 32, 32)).astype(np.float32)}


def blocked_ops(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node if node.domain == DOMAIN}


def test_the_network_has_every_blocked_operator(saved: Path) -> None:
    assert blocked_ops(onnx.load(saved)) == {
        "AveragePool", "Conv", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "ReorderInput", "ReorderOutput", "Upsample",
    }  # fmt: skip
    activations = {
        attribute.s.decode() for node in onnx.load(saved).graph.node for attribute in node.attribute if attribute.name == "activation"
    }
    assert {"Relu", "Clip", "HardSigmoid", "LeakyRelu", "Sigmoid", "Tanh"} <= activations
    assert any(node.op_type == "Conv" and len(node.input) == 4 for node in onnx.load(saved).graph.node)


@pytest.mark.parametrize("executor", ["reference", "cpu"])
def test_every_value_is_onnxruntimes(saved: Path, inputs: Any, executor: str, tmp_path: Path) -> None:
    mine, other = tmp_path / "mine.plx", tmp_path / "ort.plx"
    parallax.run(saved, inputs, executor=executor, dump=mine, capture="all")
    captured = ort.capture(saved, inputs, other, optimization="none")
    nodes = onnx.load(saved).graph.node
    outputs = {output for node in nodes for output in node.output if output}
    blocked = {node.name for node in nodes if node.domain == DOMAIN}
    assert {path for path, _ in captured.left_out} <= blocked  # what is inside of them is ours
    for first, second in ((mine, other), (other, mine)):
        comparison = parallax.diff(first, second)
        assert comparison.verdict == "pass", comparison.to_dict()["first_divergence"]
        compared = {value["path"] for value in comparison.to_dict()["values"] if value["verdict"] in ("pass", "mistrusted")}
        assert executor == "cpu" or outputs <= compared


def test_the_optimized_network_is_the_networks_own(saved: Path, inputs: Any, tmp_path: Path) -> None:
    path = tmp_path / "network.onnx"
    onnx.save(network(), path)
    expected = parallax.run(path, inputs, executor="reference").outputs
    for name, got in parallax.run(saved, inputs, executor="reference").outputs.items():
        np.testing.assert_allclose(got, expected[name], rtol=1e-4, atol=1e-5)


def test_a_wrong_filter_is_found(saved: Path, inputs: Any, tmp_path: Path) -> None:
    model = onnx.load(saved)
    conv = [node for node in model.graph.node if node.domain == DOMAIN and node.op_type == "Conv"][2]
    stored = next(tensor for tensor in model.graph.initializer if tensor.name == conv.input[1])
    weights = numpy_helper.to_array(stored).copy()
    weights.reshape(-1)[5] += 0.5
    stored.CopyFrom(numpy_helper.from_array(weights, stored.name))
    other = tmp_path / "faulty.onnx"
    onnx.save(model, other)
    parallax.run(saved, inputs, executor="reference", dump=tmp_path / "mine.plx", capture="all")
    ort.capture(other, inputs, tmp_path / "ort.plx", optimization="none")
    comparison = parallax.diff(tmp_path / "mine.plx", tmp_path / "ort.plx")
    assert comparison.to_dict()["first_divergence"]["path"] in (conv.input[1], conv.output[0])


def test_a_file_keeps_the_nodes_as_they_were(saved: Path, tmp_path: Path) -> None:
    parallax.load(saved).save(tmp_path / "again.onnx")
    again = onnx.load(tmp_path / "again.onnx")
    assert [node.SerializeToString() for node in again.graph.node] == [node.SerializeToString() for node in onnx.load(saved).graph.node]
    assert len(again.functions) == 0
