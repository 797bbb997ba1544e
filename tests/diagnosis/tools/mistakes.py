# SPDX-License-Identifier: Apache-2.0
"""The mistakes that tools make, on any model: each changes one node of B, or a constant it reads.

A mistake is a function (Scene, node, rng) -> names of the changed nodes, or None where it does not apply; MISTAKES lists them
by name. Kinds of faults.py and faults_of_structure.py are among them.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper, numpy_helper

import faults
import faults_of_structure
from graphs import attribute, insert_after, remove_node, set_attribute
from tools.architectures import Array, Arrays


class Scene:
    """A model that is changed, and the values of the sound one."""

    def __init__(self, model: onnx.ModelProto, values: Arrays) -> None:
        self.model, self.graph, self.values = model, model.graph, values
        self.held = {tensor.name: tensor for tensor in model.graph.initializer}
        for node in model.graph.node:
            for given in node.attribute:
                if node.op_type == "Constant" and given.name == "value":
                    self.held[node.output[0]] = given.t

    def array(self, node: onnx.NodeProto, port: int) -> Array | None:
        """The constant at an input; None for another value and for types that numpy has not."""
        name = node.input[port] if 0 <= port < len(node.input) else ""
        if name not in self.held:
            return None
        array = numpy_helper.to_array(self.held[name])
        return array if array.dtype.kind in "fiub" else None

    def set(self, node: onnx.NodeProto, port: int, array: Array) -> bool:
        """Other numbers at an input of one node; false where nothing changes. A constant that others read is copied first."""
        name, old = node.input[port], self.array(node, port)
        if old is None or old.shape != array.shape or np.array_equal(old, array, equal_nan=old.dtype.kind == "f"):
            return False
        self.own(node, port)
        self.held[node.input[port]].CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array.astype(old.dtype)), node.input[port]))
        return True

    def own(self, node: onnx.NodeProto, port: int) -> None:
        """Gives the node a copy of a constant that others read, too."""
        name = node.input[port]
        if name in self.held and sum(list(reader.input).count(name) for reader in self.graph.node) > 1:
            copied = self.graph.initializer.add()
            copied.CopyFrom(self.held[name])
            copied.name = node.input[port] = f"{name}_of_{node.name}"
            self.held[copied.name] = copied


Mistake = Callable[[Scene, onnx.NodeProto, np.random.Generator], "list[str] | None"]
MISTAKES: dict[str, Mistake] = {}
FOR_GROUP: dict[str, str] = {}  # the group of forms that a kind is for; every kind that is not here suits all


def mistake(group: str = "") -> Callable[[Mistake], Mistake]:
    def enter(function: Mistake) -> Mistake:
        MISTAKES[function.__name__] = function
        if group:
            FOR_GROUP[function.__name__] = group
        return function
    return enter


def changed(scene: Scene, node: onnx.NodeProto, port: int, array: Array) -> list[str] | None:
    return [node.name] if scene.set(node, port, array) else None


SCALES = {"QuantizeLinear": (1,), "DequantizeLinear": (1,), "QLinearConv": (1, 4, 6), "QLinearMatMul": (1, 4, 6), "QLinearAdd": (1, 4, 6), "QLinearMul": (1, 4, 6), "QGemm": (1, 4, 7),
          "QLinearSigmoid": (1, 3), "QLinearLeakyRelu": (1, 3), "QLinearGlobalAveragePool": (1, 3), "QLinearAveragePool": (1, 3), "QLinearConcat": (0, 3), "QLinearSoftmax": (1, 3),
          "DynamicQuantizeMatMul": (2,), "MatMulIntegerToFloat": (3,), "MatMulNBits": (2,), "GatherBlockQuantized": (2,)}
ZEROS = {"MatMulInteger": (3,), "ConvInteger": (3,), "DynamicQuantizeMatMul": (3,), "MatMulNBits": (3,),
         **{op: tuple(port + 1 for port in ports) for op, ports in SCALES.items() if op.startswith(("Q", "D")) and op != "DynamicQuantizeMatMul"}}
STORED = {"DequantizeLinear": 0, "QLinearConv": 3, "QLinearMatMul": 3, "QGemm": 3, "MatMulInteger": 1, "ConvInteger": 1, "DynamicQuantizeMatMul": 1, "MatMulIntegerToFloat": 1,
          "MatMulNBits": 1, "GatherBlockQuantized": 0}


def one_of(ports: tuple[int, ...], rng: np.random.Generator) -> int:
    return ports[int(rng.integers(len(ports)))] if ports else -1


@mistake("quantized")
def wrong_scale(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    port = one_of(SCALES.get(node.op_type, ()), rng)
    array = scene.array(node, port)
    return None if array is None else changed(scene, node, port, array * [0.4, 0.6, 1.7, 2.5][rng.integers(4)])


@mistake("quantized")
def wrong_scale_of_channel(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    port = one_of(SCALES.get(node.op_type, ()), rng)
    array = scene.array(node, port)
    if array is None or array.size < 4:
        return None
    array = array.copy()
    first = array.reshape(array.shape[0], -1)
    first[rng.integers(len(first))] *= 6
    return changed(scene, node, port, array)


@mistake("quantized")
def scales_of_other_channels(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    port = one_of(SCALES.get(node.op_type, ()), rng)
    array = scene.array(node, port)
    return None if array is None or array.size < 4 else changed(scene, node, port, rng.permutation(array.reshape(-1)).reshape(array.shape))


@mistake("quantized")
def wrong_quantized_axis(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    stored, scale = scene.array(node, 0), scene.array(node, 1)
    if node.op_type != "DequantizeLinear" or stored is None or scale is None or scale.size < 2 or scale.ndim != 1:
        return None
    axis = attribute(node, "axis", 1) % stored.ndim
    others = [other for other, size in enumerate(stored.shape) if other != axis and size == scale.size]
    if not others:
        return None
    set_attribute(node, "axis", others[0])
    return [node.name]


@mistake("quantized")
def wrong_zero_point(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    port = one_of(ZEROS.get(node.op_type, ()), rng)
    array = scene.array(node, port)
    if array is None or array.dtype.kind not in "iu" or array.dtype.itemsize > 1:
        return None
    limits = np.iinfo(array.dtype)
    moved: Array = array.astype(np.int64) + int(rng.choice([-40, -24, 24, 40]))
    return changed(scene, node, port, np.clip(moved, limits.min, limits.max))


@mistake("quantized")
def saturated(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    """A range that is too narrow, in both nodes of a pair."""
    array = scene.array(node, 1)
    pairs = [other for other in scene.graph.node if other.op_type == "DequantizeLinear" and other.input[0] in node.output]
    if node.op_type != "QuantizeLinear" or array is None or not pairs:
        return None
    factor, names = np.float32(0.2), []
    for other in [node, *pairs]:
        scale = scene.array(other, 1)
        if scale is not None and (scene.set(other, 1, scale * factor) or np.array_equal(scale, array * factor)):
            names.append(other.name)
    return names or None


@mistake("quantized")
def quantized_weight_changed(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    """Rows exchanged, a row lost, transposed, or all bits of a number flipped."""
    port = STORED.get(node.op_type, -1)
    array = scene.array(node, port)
    if array is None or array.size < 8 or array.ndim < 2 or array.dtype.itemsize > 1:
        return None
    array, way = array.copy(), rng.integers(4)
    first, second = rng.choice(array.shape[0], 2, replace=False) if array.shape[0] > 1 else (0, 0)
    if way == 0:
        array[[first, second]] = array[[second, first]]
    elif way == 1:
        array[first] = 0
    elif way == 2 and array.ndim == 2 and array.shape[0] == array.shape[1]:
        array = array.T
    else:
        array[first] = ~array[first]
    return changed(scene, node, port, array)


@mistake("quantized")
def quantized_bias_dropped(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    port = {"QLinearConv": 8, "QGemm": 6, "DequantizeLinear": 0, "DynamicQuantizeMatMul": 4}.get(node.op_type, -1)
    array = scene.array(node, port)
    if array is None or array.ndim != 1 or array.dtype not in (np.int32, np.float32):
        return None
    return changed(scene, node, port, array * 0)


@mistake("float")
def lone_quantized(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    """An activation of a float model in a few steps of int8."""
    if len(node.output) != 1 or node.op_type not in ("MatMul", "Add", "Relu", "Conv", "Mul", "Gemm", "LayerNormalization", "Gelu"):
        return None
    value = scene.values.get(node.output[0])
    if value is None or value.dtype != np.float32 or value.size < 4:
        return None
    scale, zero = (f"{node.output[0]}_lone_{what}" for what in ("scale", "zero"))
    scene.graph.initializer.extend([numpy_helper.from_array(np.float32(np.abs(value).max() / 20), scale), numpy_helper.from_array(np.int8(0), zero)])
    down = insert_after(scene.graph, node, node.output[0], "QuantizeLinear", f"lone_quantize_{node.name}", (scale, zero))
    up = insert_after(scene.graph, down, down.output[0], "DequantizeLinear", f"lone_dequantize_{node.name}", (scale, zero))
    return [down.name, up.name]


@mistake("half")
def half_overflow(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    for port in range(len(node.input)):
        array = scene.array(node, port)
        if array is not None and array.dtype == np.float16 and array.ndim >= 2 and node.op_type != "Gather":
            return changed(scene, node, port, np.clip(array.astype(np.float32) * 3e4, -6e4, 6e4))
    return None


ACTIVATIONS = ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "Gelu", "FastGelu", "QuickGelu", "Elu", "PRelu", "Clip", "Softplus", "Swish")


@mistake()
def activation_dropped(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    return [node.name] if node.op_type in ACTIVATIONS and remove_node(scene.graph, node) else None


BIASES = {"Conv": 2, "Gemm": 2, "ConvTranspose": 2, "FusedConv": 2, "BiasGelu": 1, "SkipLayerNormalization": 3, "LayerNormalization": 2, "Attention": 2, "GroupNormalization": 2,
          "InstanceNormalization": 2, "BatchNormalization": 2, "LSTM": 3, "GRU": 3, "FastGelu": 1, "FusedGemm": 2, "MultiHeadAttention": 3}


@mistake()
def bias_lost(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    ports = [BIASES[node.op_type]] if node.op_type in BIASES else [0, 1] if node.op_type == "Add" else []
    for port in ports:
        array = scene.array(node, port)
        if array is not None and array.dtype.kind == "f" and array.size > 3 and (node.op_type in BIASES or array.ndim == 1):
            return changed(scene, node, port, array * 0)
    return None


def float_weights(scene: Scene, node: onnx.NodeProto, rank: int) -> list[int]:
    arrays = [(port, scene.array(node, port)) for port in range(len(node.input))]
    return [port for port, array in arrays if array is not None and array.dtype.kind == "f" and array.ndim >= rank and array.size >= 4]


@mistake()
def weight_row(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    """A row of a weight lost, or exchanged with another."""
    port = one_of(tuple(float_weights(scene, node, 2)), rng)
    array = scene.array(node, port)
    if array is None or array.shape[0] < 2 or node.op_type in ("Gather", "Where"):
        return None
    array = array.copy()
    first, second = rng.choice(array.shape[0], 2, replace=False)
    array[first] = array[second] if rng.integers(2) else 0
    return changed(scene, node, port, array)


@mistake()
def fused_weight(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    """A number or the order of a weight that a fused node holds."""
    ports = float_weights(scene, node, 1)
    if not ports or not (node.domain or node.op_type in ("LayerNormalization", "RMSNormalization", "LSTM", "GRU", "GroupNormalization")):
        return None
    port = one_of(tuple(ports), rng)
    array = scene.array(node, port)
    assert array is not None
    array = array.copy()
    if rng.integers(2):
        array.reshape(-1)[rng.integers(array.size)] += 3 * float(np.abs(array).max()) + 0.5
    else:
        array = np.roll(array, 1, axis=-1)
    return changed(scene, node, port, array)


OTHER_ATTRIBUTES = {"alpha": 1.7, "scale": 1.7, "epsilon": 0.3, "unidirectional": None, "num_heads": None, "transB": None, "transA": None, "rotary_embedding_dim": None, "interleaved": None,
                    "count_include_pad": None, "ceil_mode": None, "direction": "reverse", "largest": None, "keepdims": None, "linear_before_reset": None, "local_window_size": None,
                    "beta": 1.7, "softcap": None, "do_rotary": None, "is_causal": None, "kv_num_heads": None, "exclusive": None, "reverse": None, "mode": None}


@mistake()
def other_attribute(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    """An attribute's number scaled, its switch flipped, heads halved."""
    given = [found for found in node.attribute if found.name in OTHER_ATTRIBUTES]
    if not given:
        return None
    found = given[rng.integers(len(given))]
    value, factor = helper.get_attribute_value(found), OTHER_ATTRIBUTES[found.name]
    if found.name in ("num_heads", "kv_num_heads"):
        new: object = value // 2
    elif isinstance(value, bytes):
        new = {b"linear": "nearest", b"nearest": "linear", b"cubic": "linear", b"forward": "reverse", b"constant": "edge"}.get(value)
    else:
        new = 1 - value if isinstance(value, int) else value * factor if isinstance(factor, float) and value > 0 else None
    if found.name == "epsilon":
        new = factor
    if new is None or new == value or (isinstance(value, int) and value not in (0, 1) and "heads" not in found.name):
        return None
    set_attribute(node, found.name, new)
    return [node.name]


@mistake()
def default_of_other_opset(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    """An attribute left at the default of another version."""
    values = {"Softmax": ("axis", 1), "LogSoftmax": ("axis", 1), "Resize": ("coordinate_transformation_mode", "asymmetric"), "Gelu": ("approximate", "tanh"),
              "LayerNormalization": ("axis", 1), "Flatten": ("axis", 0), "AveragePool": ("count_include_pad", 1), "DequantizeLinear": ("axis", 0)}
    if node.op_type not in values or attribute(node, values[node.op_type][0]) in (values[node.op_type][1], b"asymmetric"):
        return None
    set_attribute(node, *values[node.op_type])
    return [node.name]


@mistake()
def window_wrong(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    """Pads on one side, strides and dilations of the other axis, rounding up."""
    pads = attribute(node, "pads")
    if node.op_type in ("MaxPool", "AveragePool") and rng.integers(2):
        set_attribute(node, "ceil_mode", 1 - attribute(node, "ceil_mode", 0))
        return [node.name]
    if not pads or not any(pads) or node.op_type == "Pad":
        return None
    half = len(pads) // 2
    moved = [0 if k < half else pads[k] + pads[k - half] for k in range(len(pads))]
    set_attribute(node, "pads", moved if moved != list(pads) else [*moved[half:], *moved[:half]])
    return [node.name]


@mistake()
def rewired(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    """One operand comes from another node before, of the same shape and type."""
    earlier: list[str] = []
    for other in scene.graph.node:
        if other.name == node.name:
            break
        earlier += [name for name in other.output if name in scene.values and name not in scene.held]
    for port in rng.permutation(len(node.input)):
        value = scene.values.get(node.input[port])
        if value is None or node.input[port] in scene.held or value.size < 4 or value.dtype.kind != "f":
            continue
        others = [name for name in earlier if name not in node.input and scene.values[name].shape == value.shape and scene.values[name].dtype == value.dtype]
        if others:
            node.input[port] = others[rng.integers(len(others))]
            return [node.name]
    return None


@mistake()
def mask_value(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    """The number that hides is too small to hide."""
    for port in range(len(node.input)):
        array = scene.array(node, port)
        if array is not None and array.dtype.kind == "f" and array.size and array.min() <= -9000:
            return changed(scene, node, port, np.where(array <= -9000, -0.5, array))
    return None


@mistake()
def constant_folded_wrong(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    """A scalar or a table of float constants with other numbers, in a node without weights."""
    ports = [port for port in float_weights(scene, node, 0) if node.op_type in ("Mul", "Add", "Div", "Sub", "Pow", "Where", "Gather", "Max", "Min", "Clip")]
    scalars = [port for port in range(len(node.input)) if (array := scene.array(node, port)) is not None and array.dtype.kind == "f" and array.size == 1]
    if node.op_type not in ("Mul", "Div", "Add", "Sub", "Pow", "Gather", "Clip"):
        return None
    port = one_of(tuple({*ports, *scalars}), rng)
    array = scene.array(node, port)
    return None if array is None else changed(scene, node, port, array * array.dtype.type(1.6))


@mistake()
def index_off_by_one(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
    if node.op_type == "Slice":
        start, end = scene.array(node, 1), scene.array(node, 2)
        if start is None or end is None or not scene.set(node, 1, start + 1):
            return None
        scene.set(node, 2, np.where(end < 2**30, end + 1, end))
        return [node.name]
    array = scene.array(node, 1) if node.op_type in ("Gather", "GatherND") else None
    if array is None or array.dtype.kind != "i":
        return None
    return changed(scene, node, 1, array + (1 if array.max() <= 0 else -1))


def of_the_tree(kind: Callable[..., list[str] | None]) -> Mistake:
    def function(scene: Scene, node: onnx.NodeProto, rng: np.random.Generator) -> list[str] | None:
        for port in range(len(node.input)):  # a constant that others read is this node's own now
            scene.own(node, port)
        return kind(scene.model, (scene.graph, node, ()), rng)
    return function


# Kinds that stay within the rounding of other types, that name what only base_models.py has, or that stand above already.
LEFT_OUT = {"weight_weak", "weight_element_weak", "half_island", "weight_in_steps", "heads_interleaved", "transposed_once_more", "mask_inverted", "mask_shifted", "body_reads_another",
            "state_kept", "trips_off_by_one", "quantization_wrong", "bias_dropped", "slice_off_by_one", "variance_unbiased", "reduced_elsewhere", "compared_differently", "epsilon_wrong"}
for kind_name, known in {**faults.KINDS, **faults_of_structure.KINDS}.items():
    if kind_name not in LEFT_OUT:
        MISTAKES[kind_name] = of_the_tree(known)
