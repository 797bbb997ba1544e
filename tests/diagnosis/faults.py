# SPDX-License-Identifier: Apache-2.0
"""The faults of the diagnosis benchmark: each changes one place of a sound model, as converters and kernels go wrong.

A fault is a function (model, place, rng) -> names of the nodes that are to be blamed, or None where it does not apply. Nodes are those of
the sound model; for an inserted node its own. KINDS lists them.
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from graphs import array_of, attribute, insert_after, readers, remove_node, set_array, set_attribute, weight_of

SMOOTH = {"Relu": "LeakyRelu", "Tanh": "Softsign", "Sigmoid": "HardSigmoid", "Softplus": "Relu", "Elu": "Relu", "LeakyRelu": "Relu", "HardSwish": "Relu", "Exp": "Softplus", "Softsign": "Tanh"}
KINDS = {}


def kind(function):
    KINDS[function.__name__] = function
    return function


def float_weight(place, least=2):
    """(tensor, array) of the first float weight the node reads."""
    for name in place[1].input:
        array = array_of(place, name)
        if array is not None and array.dtype.kind == "f" and array.size >= least:
            return weight_of(place, name), array.copy()
    return None, None


def change_weight(model, place, change, least=2):
    tensor, array = float_weight(place, least)
    if tensor is None:
        return None
    changed = change(array)
    if changed is None or np.array_equal(changed, array):
        return None
    set_array(tensor, changed.astype(array.dtype))
    return readers(model, tensor.name)


def is_op(place, *ops):
    return place[1].op_type in ops


@kind
def weight_element(model, place, rng):
    def change(array):
        array = array.copy()
        array.flat[rng.integers(array.size)] += np.abs(array).max() + 0.25
        return array
    return change_weight(model, place, change, 4)


@kind
def weight_weak(model, place, rng):
    return change_weight(model, place, lambda array: array * (1 + 4e-4), 4) if is_op(place, "MatMul", "Conv", "Gemm", "Mul", "GRU") else None


@kind
def weight_element_weak(model, place, rng):
    def change(array):
        array = array.copy()
        array.flat[rng.integers(array.size)] += 0.003 * np.abs(array).max()
        return array
    return change_weight(model, place, change, 4) if is_op(place, "MatMul", "Add", "Conv") else None


@kind
def weight_transposed(model, place, rng):
    return change_weight(model, place, lambda a: a.T if a.ndim == 2 and a.shape[0] == a.shape[1] else None)


@kind
def channels_swapped(model, place, rng):
    def change(array):
        axis = array.ndim - 1 if place[1].op_type == "MatMul" else 0
        if array.shape[axis] < 4:
            return None
        return np.take(array, [1, 0, *range(2, array.shape[axis])], axis)
    return change_weight(model, place, change, 4) if is_op(place, "MatMul", "Conv") else None


@kind
def bias_dropped(model, place, rng):
    if is_op(place, "Conv") and len(place[1].input) > 2:
        tensor = weight_of(place, place[1].input[2])
        set_array(tensor, array_of(place, tensor.name) * 0)
        return [place[1].name]
    return change_weight(model, place, lambda a: a * 0 if a.ndim == 1 else None) if is_op(place, "Add") else None


@kind
def bias_rolled(model, place, rng):
    return change_weight(model, place, lambda a: np.roll(a, 1) if a.ndim == 1 else None, 3) if is_op(place, "Add", "Mul") else None


@kind
def stale_constant(model, place, rng):
    return change_weight(model, place, lambda a: rng.permutation(a.ravel()).reshape(a.shape), 8)


@kind
def scale_wrong(model, place, rng):
    for name in place[1].input:
        array = array_of(place, name)
        if array is not None and array.dtype.kind == "f" and array.size == 1 and is_op(place, "Mul", "Div"):
            set_array(weight_of(place, name), (array * 1.25).astype(array.dtype))
            return readers(model, name)
    return None


@kind
def epsilon_wrong(model, place, rng):
    if is_op(place, "BatchNormalization", "InstanceNormalization"):
        set_attribute(place[1], "epsilon", 1e-2)
        return [place[1].name]
    for name in place[1].input:
        if name.startswith("epsilon") and array_of(place, name) is not None:
            set_array(weight_of(place, name), np.float32(1e-3))
            return readers(model, name)
    return None


def new_operator(place, table):
    if place[1].op_type not in table:
        return None
    place[1].op_type = table[place[1].op_type]
    return [place[1].name]


@kind
def sum_for_difference(model, place, rng):
    return new_operator(place, {"Add": "Sub", "Sub": "Add"})


@kind
def product_for_quotient(model, place, rng):
    return new_operator(place, {"Mul": "Div", "Div": "Mul"})


@kind
def other_activation(model, place, rng):
    del_alpha = place[1].op_type in ("LeakyRelu", "Elu")
    answer = new_operator(place, SMOOTH)
    if answer and del_alpha:
        del place[1].attribute[:]
    return answer


@kind
def other_reduction(model, place, rng):
    return new_operator(place, {"ReduceMean": "ReduceMax", "ReduceMax": "ReduceMin", "MaxPool": "AveragePool", "GlobalAveragePool": "GlobalMaxPool"})


@kind
def gelu_approximated(model, place, rng):
    return new_operator(place, {"Erf": "Tanh"})


@kind
def axis_wrong(model, place, rng):
    if is_op(place, "Softmax", "Concat", "Gather"):
        old = attribute(place[1], "axis", -1)
        set_attribute(place[1], "axis", {-1: -2, 1: 0, 2: 1}.get(old, 1))
        return [place[1].name]
    return None


@kind
def operands_swapped(model, place, rng):
    if not is_op(place, "Sub", "Div", "MatMul", "Concat") or len(place[1].input) != 2:
        return None
    first, second = place[1].input
    place[1].input[0], place[1].input[1] = second, first
    return [place[1].name]


@kind
def statistics_swapped(model, place, rng):
    if not is_op(place, "BatchNormalization"):
        return None
    node = place[1]
    node.input[1], node.input[4] = node.input[4], node.input[1]
    return [node.name]


@kind
def node_inserted(model, place, rng):
    graph, node, _ = place
    if len(node.output) != 1 or not is_op(place, "MatMul", "Add", "Relu", "Tanh", "Mul", "Conv", "Softmax", "Sub"):
        return None
    op = ["Neg", "Abs", "Softsign", "Ceil"][rng.integers(4)]
    return [insert_after(graph, node, node.output[0], op, f"node_inserted_{rng.integers(1000)}").name]


@kind
def node_missing(model, place, rng):
    graph, node, _ = place
    if not is_op(place, "Relu", "Tanh", "Sigmoid", "Softmax", "LeakyRelu", "Softsign", "HardSwish", "Abs", "Neg", "BatchNormalization", "InstanceNormalization", "Elu", "Softplus"):
        return None
    return [node.name] if remove_node(graph, node) else None


@kind
def half_island(model, place, rng):
    graph, node, _ = place
    if not is_op(place, "MatMul", "Add", "Mul", "Tanh", "Softmax", "Conv", "Sub"):
        return None
    if any((array_of(place, name) is not None and array_of(place, name).dtype != np.float32) for name in node.input):
        return None
    position = list(graph.node).index(node)
    casts = []
    for index, name in enumerate(list(node.input)):
        casts.append(helper.make_node("Cast", [name], [f"{node.output[0]}_half{index}"], name=f"{node.name}_cast{index}", to=TensorProto.FLOAT16))
        node.input[index] = casts[-1].output[0]
    output = node.output[0]
    node.output[0] = f"{output}_half"
    back = helper.make_node("Cast", [node.output[0]], [output], name=f"{node.name}_cast_back", to=TensorProto.FLOAT)
    for offset, cast in enumerate(casts):
        graph.node.insert(position + offset, cast)
    graph.node.insert(position + len(casts) + 1, back)
    return [node.name, back.name, *(cast.name for cast in casts)]


@kind
def mask_inverted(model, place, rng):
    for name in place[1].input:
        if name.startswith("mask") and array_of(place, name) is not None:
            mask = array_of(place, name)
            set_array(weight_of(place, name), np.where(mask == 0, mask.min(), 0).astype(np.float32))
            return readers(model, name)
    return None


@kind
def mask_shifted(model, place, rng):
    for name in place[1].input:
        if name.startswith("mask") and array_of(place, name) is not None:
            mask = array_of(place, name)
            set_array(weight_of(place, name), np.triu(np.full(mask.shape, mask.min()), 2).astype(np.float32))
            return readers(model, name)
    return None


@kind
def slice_off_by_one(model, place, rng):
    if not is_op(place, "Slice"):
        return None
    for port in (1, 2):
        tensor = weight_of(place, place[1].input[port])
        set_array(tensor, array_of(place, tensor.name) + 1)
    return [place[1].name]


@kind
def wrong_source(model, place, rng):
    """One operand comes from the node before the right one."""
    graph, node, _ = place
    if not is_op(place, "Add", "Mul", "Sub", "Concat"):
        return None
    for index, name in enumerate(node.input):
        makers = [other for other in graph.node if name in other.output]
        if makers and makers[0].op_type in ("Relu", "Tanh", "Sigmoid", "Mul", "Add", "Sub", "HardSwish", "LeakyRelu", "Softplus") and array_of((graph, makers[0], place[2]), makers[0].input[0]) is None:
            node.input[index] = makers[0].input[0]
            return [node.name]
    return None


@kind
def condition_flipped(model, place, rng):
    return new_operator(place, {"Less": "Greater"})


@kind
def trips_off_by_one(model, place, rng):
    if not is_op(place, "Loop"):
        return None
    tensor = weight_of(place, place[1].input[0])
    set_array(tensor, array_of(place, tensor.name) - 1)
    return [place[1].name]


@kind
def resize_nearest(model, place, rng):
    if not is_op(place, "Resize"):
        return None
    name, value = (("mode", "nearest"), ("coordinate_transformation_mode", "asymmetric"))[rng.integers(2)]
    set_attribute(place[1], name, value)
    return [place[1].name]


@kind
def padding_shifted(model, place, rng):
    if is_op(place, "Pad"):
        set_attribute(place[1], "mode", "edge")
        return [place[1].name]
    if is_op(place, "Conv") and attribute(place[1], "pads") == [1, 1, 1, 1]:
        set_attribute(place[1], "pads", [0, 2, 2, 0])
        return [place[1].name]
    return None


@kind
def quantization_wrong(model, place, rng):
    if not is_op(place, "QuantizeLinear", "DequantizeLinear"):
        return None
    port = 1 + int(rng.integers(2))
    tensor = weight_of(place, place[1].input[port])
    array = array_of(place, tensor.name)
    set_array(tensor, (array * np.float32(1.03)) if port == 1 else array + np.ones_like(array))
    return readers(model, tensor.name)


@kind
def gates_swapped(model, place, rng):
    if not is_op(place, "GRU", "LSTM"):
        return None
    if is_op(place, "GRU") and rng.integers(2):
        set_attribute(place[1], "linear_before_reset", 1)
        return [place[1].name]
    tensor = weight_of(place, place[1].input[1])
    array = array_of(place, tensor.name)
    gates = np.split(array, 3 if is_op(place, "GRU") else 4, axis=1)
    set_array(tensor, np.concatenate([gates[1], gates[0], *gates[2:]], axis=1))
    return [place[1].name]


@kind
def attribute_wrong(model, place, rng):
    if is_op(place, "LeakyRelu"):
        set_attribute(place[1], "alpha", 0.3)
    elif is_op(place, "TopK"):
        set_attribute(place[1], "largest", 0)
    elif is_op(place, "Clip"):
        set_array(weight_of(place, place[1].input[2]), np.float32(0.4))
    elif is_op(place, "Flatten", "Gemm") and attribute(place[1], "transB"):
        set_attribute(place[1], "alpha", 0.9)
    elif is_op(place, "Pow"):
        set_array(weight_of(place, place[1].input[1]), np.float32(3))
        return readers(model, place[1].input[1])
    else:
        return None
    return [place[1].name]


@kind
def permutation_wrong(model, place, rng):
    if not is_op(place, "Transpose"):
        return None
    old = list(attribute(place[1], "perm"))
    first, second = rng.choice(len(old), 2, replace=False)
    old[first], old[second] = old[second], old[first]
    set_attribute(place[1], "perm", old)
    return [place[1].name]


@kind
def stale_from_elsewhere(model, place, rng):
    """Another layer's weight of the same shape."""
    tensor, array = float_weight(place, 4)
    if tensor is None:
        return None
    others = [other for other in place[0].initializer if other.name != tensor.name and list(other.dims) == list(tensor.dims) and other.data_type == tensor.data_type]
    if not others:
        return None
    tensor.raw_data = others[rng.integers(len(others))].raw_data
    return readers(model, tensor.name)


@kind
def heads_interleaved(model, place, rng):
    """Columns of two heads stored one by one instead of one head after the other."""
    def change(array):
        if array.ndim != 2 or array.shape[1] % 4:
            return None
        return array.reshape(array.shape[0], 2, -1).swapaxes(1, 2).reshape(array.shape)
    return change_weight(model, place, change, 8) if is_op(place, "MatMul") else None


@kind
def weight_in_steps(model, place, rng):
    """Rounded to 8 bits and back, in a model of floats."""
    def change(array):
        step = np.abs(array).max() / 127
        return np.round(array / step) * step
    return change_weight(model, place, change, 8) if is_op(place, "MatMul", "Conv", "Gemm") else None


@kind
def attribute_lost(model, place, rng):
    """An attribute that is not at its default is left out."""
    kept = ("to", "value", "num_scan_inputs", "hidden_size", "kernel_shape", "body", "then_branch", "else_branch")
    lost = [given for given in place[1].attribute if given.name not in kept]
    if not lost:
        return None
    place[1].attribute.remove(lost[rng.integers(len(lost))])
    return [place[1].name]


@kind
def transposed_once_more(model, place, rng):
    """Two axes of equal size exchanged after a product."""
    graph, node, enclosing = place
    if enclosing or not is_op(place, "MatMul") or len(node.input) != 2 or array_of(place, node.input[1]) is None:
        return None
    if node.output[0] in [value.name for value in graph.output]:
        return None
    if model.graph.name not in ("encoder", "llama", "positions"):  # products of [batch, length, width]
        return None
    # The last axis folded into two of equal size, transposed and unfolded: as heads are, once too often.
    width = array_of(place, node.input[1]).shape[1]
    side = int(np.sqrt(width))
    if side * side != width:
        return None
    stem = f"{node.output[0]}_transposed"
    for name, shape in ((f"{stem}_in", [0, 0, side, side]), (f"{stem}_out", [0, 0, width])):
        graph.initializer.append(numpy_helper.from_array(np.array(shape, np.int64), name))
    first = insert_after(graph, node, node.output[0], "Reshape", f"{stem}_fold", (f"{stem}_in",))
    second = insert_after(graph, first, first.output[0], "Transpose", f"{stem}_transpose", (), perm=[0, 1, 3, 2])
    insert_after(graph, second, second.output[0], "Reshape", f"{stem}_unfold", (f"{stem}_out",))
    return [second.name, first.name]


@kind
def computed_constant(model, place, rng):
    """A node that makes a constant of constants does something else, is missing, or has another before it."""
    graph, node, enclosing = place
    held = {tensor.name for tensor in graph.initializer}
    if enclosing or not node.input or not all(name in held for name in node.input) or not is_op(place, "Mul", "Sin", "Cos", "Add", "Div"):
        return None
    choice = rng.integers(3)
    if choice == 0:
        node.op_type = {"Mul": "Add", "Sin": "Cos", "Cos": "Sin", "Add": "Sub", "Div": "Mul"}[node.op_type]
        return [node.name]
    if choice == 1:
        return [insert_after(graph, node, node.output[0], "Tanh", f"{node.output[0]}_bent").name]
    tensor = weight_of(place, node.input[-1])
    set_array(tensor, (array_of(place, tensor.name) * np.float32(1.25)).astype(np.float32))
    return readers(model, tensor.name)
