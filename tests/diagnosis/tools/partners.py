# SPDX-License-Identifier: Apache-2.0
"""Values of a model by onnxruntime, and which nodes of the one model stand for a node of the other.

Values of two sound models are matched by name and by what they hold; the nodes of A between the matches of a node's results
and of all that is computed before it are its partners.
"""
from __future__ import annotations

import collections
import copy
from collections.abc import Iterable

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from tools.architectures import Array, Arrays

MOST_PARTNERS = 60
# The input that holds the scale of the result; the zero point comes after it.
RESULT_SCALE = {"QLinearConv": 6, "QLinearMatMul": 6, "QLinearAdd": 6, "QLinearMul": 6, "QGemm": 7, "QLinearConcat": 0, "QLinearSigmoid": 3, "QLinearLeakyRelu": 3,
                "QLinearGlobalAveragePool": 3, "QLinearAveragePool": 3, "QLinearSoftmax": 3, "QuantizeLinear": 1, "QLinearReduceMean": 3, "QLinearWhere": 7}


def name_nodes(model: onnx.ModelProto) -> None:
    """Gives a node without a name its operator and index, and a name that repeats its number, as Parallax calls them."""
    seen: collections.Counter[str] = collections.Counter()
    for index, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}_{index}"
        seen[node.name] += 1
        if seen[node.name] > 1:
            node.name = f"{node.name}#{seen[node.name]}"


def session_of(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def outputs_of(model: onnx.ModelProto, inputs: Arrays) -> list[Array]:
    """The outputs without any optimization. Raises what onnxruntime raises."""
    session = session_of(model)
    return [np.asarray(value) for value in session.run(None, {value.name: inputs[value.name] for value in session.get_inputs()})]


def values_of(model: onnx.ModelProto, inputs: Arrays) -> Arrays:
    """Every tensor that a node of the graph makes, inputs and weights included, quantized ones as the numbers they stand for."""
    exposed = copy.deepcopy(model)
    known = {value.name for value in exposed.graph.output}
    exposed.graph.output.extend(onnx.ValueInfoProto(name=name) for node in exposed.graph.node for name in node.output if name and name not in known)
    session = session_of(exposed)
    names = [value.name for value in session.get_outputs()]
    made = session.run(names, {value.name: inputs[value.name] for value in session.get_inputs()})
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    values = {**held, **inputs, **{name: value for name, value in zip(names, made) if isinstance(value, np.ndarray)}}
    return {**values, **dequantized(model, values)}


def dequantized(model: onnx.ModelProto, values: Arrays) -> Arrays:
    """Results of quantizing operators in real numbers."""
    real: Arrays = {}
    for node in model.graph.node:
        port = RESULT_SCALE.get(node.op_type)
        if port is None or len(node.input) <= port or node.input[port] not in values or values[node.input[port]].size != 1 or node.output[0] not in values:
            continue
        zero = values.get(node.input[port + 1], np.zeros(1)) if len(node.input) > port + 1 else np.zeros(1)
        stored: Array = values[node.output[0]].astype(np.float64)
        real[node.output[0]] = ((stored - zero.astype(np.float64).reshape(-1)[0]) * float(values[node.input[port]].reshape(-1)[0])).astype(np.float32)
    return real


def distance(a: Array, b: Array) -> float:
    """|a - b| / |a|; infinite where shapes or the class of an element differ."""
    if a.shape != b.shape:
        return float("inf")
    x: Array = a.astype(np.float64)
    y: Array = b.astype(np.float64)
    finite = np.isfinite(x)
    if not np.array_equal(finite, np.isfinite(y)):
        return float("inf")
    return float(np.linalg.norm(x[finite] - y[finite]) / max(float(np.linalg.norm(x[finite])), 1e-12))


def farthest(a: Iterable[Array], b: Iterable[Array]) -> float:
    return max((distance(x, y) for x, y in zip(a, b, strict=True)), default=float("inf"))


class Partners:
    """The nodes of A that stand for nodes of B, where B is A as a tool left it."""

    def __init__(self, a: onnx.ModelProto, b: onnx.ModelProto, values_a: Arrays, values_b: Arrays, tolerance: float) -> None:
        self.a, self.b, self.values_a, self.values_b, self.tolerance = a, b, values_a, values_b, tolerance
        self.makers_a = {name: node for node in a.graph.node for name in node.output if name}
        self.makers_b = {name: node for node in b.graph.node for name in node.output if name}
        self.by_size: dict[int, list[str]] = collections.defaultdict(list)
        for name, value in values_a.items():
            if (name in self.makers_a or value.size > 1) and value.dtype.kind in "fiu":
                self.by_size[value.size].append(name)
        self.found: dict[str, str | None] = {}

    def match(self, name: str) -> str | None:
        """A's value that B's value stands for; None where nothing in A holds the same."""
        if name not in self.found:
            self.found[name] = self.search(name)
        return self.found[name]

    def search(self, name: str) -> str | None:
        value, twin = self.values_b.get(name), self.values_a.get(name)
        if value is None or value.dtype.kind not in "fiub":
            return name if name in self.values_a else None
        if twin is not None and twin.size == value.size and distance(twin.reshape(-1), value.reshape(-1)) < max(0.5, self.tolerance):
            return name
        if value.size < 4 or float(np.ptp(value.astype(np.float32))) == 0.0:
            return None
        best, least = None, self.tolerance
        for candidate in self.by_size[value.size]:
            other = self.values_a[candidate]
            gap = distance(other.reshape(-1), value.reshape(-1))
            if gap > least and other.shape != value.shape:
                gap = 30 * distance(np.sort(other.reshape(-1)), np.sort(value.reshape(-1)))
            if gap < least:
                best, least = candidate, gap
        return best

    def before(self, node: onnx.NodeProto) -> set[str]:
        """Names of all of B's values that the node's result depends on."""
        seen: set[str] = set()
        waiting = list(node.input)
        while waiting:
            name = waiting.pop()
            if name and name not in seen:
                seen.add(name)
                waiting.extend(self.makers_b[name].input if name in self.makers_b else ())
        return seen

    def results(self, node: onnx.NodeProto) -> list[str]:
        """A's values for the node's results, or for the first results after it that A has."""
        waiting, found, seen = [name for name in node.output if name], [], set[str]()
        while waiting and len(seen) < 200:
            name = waiting.pop(0)
            if name in seen:
                continue
            seen.add(name)
            matched = self.match(name)
            if matched is not None:
                found.append(matched)
            else:
                waiting.extend(made for reader in self.b.graph.node if name in reader.input for made in reader.output if made)
        return found

    def of(self, node: onnx.NodeProto) -> set[str]:
        """Names of A's nodes that the node of B stands for."""
        stops = {matched for name in self.before(node) if (matched := self.match(name)) is not None}
        results = self.results(node)
        waiting, nodes = [name for name in results if name not in stops], set[str]()
        while waiting and len(nodes) < MOST_PARTNERS:
            maker = self.makers_a.get(waiting.pop())
            if maker is not None and maker.name not in nodes:
                nodes.add(maker.name)
                waiting.extend(name for name in maker.input if name not in stops)
        if not nodes:  # the node passes on what it reads, in another type
            nodes = {self.makers_a[name].name for name in results if name in self.makers_a}
        same = [other.name for other in self.a.graph.node if other.name == node.name and other.op_type == node.op_type]
        return nodes | set(same)
