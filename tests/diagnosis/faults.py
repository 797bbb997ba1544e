# SPDX-License-Identifier: Apache-2.0
"""The faults of the diagnosis benchmark: each changes a node of a sound model, as converters and kernels go wrong.

A fault is a function (model, target, rng) -> names of the nodes that are to be blamed, or None where it does not apply.
`target` is (graph, node). Nodes are those of the sound model; for an inserted node its own. KINDS lists them.
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from graphs import array_of, attribute, insert_after, readers, remove_node, set_array, set_attribute, weight_of

SMOOTH = {"Relu": "LeakyRelu", "Tanh": "Softsign", "Sigmoid": "HardSigmoid", "Softplus": "Relu", "Elu": "Relu", "LeakyRelu": "Relu", "HardSwish": "Relu", "Exp": "Softplus", "Softsign": "Tanh"}
KINDS = {}


def kind(function):
    KINDS[function.__name__] = function
    return function


def float_weight(target, least=2):
    """(tensor, array) of the first float weight the node reads."""
    for name in target[1].input:
        array = array_of(target, name)
        if array is not None and array.dtype.kind == "f" and array.size >= least:
            return weight_of(target, name), array.copy()
    return None, None


def change_weight(model, target, change, least=2):
    tensor, array = float_weight(target, least)
    if tensor is None:
        return None
    changed = change(array)
    if changed is None or np.array_equal(changed, array):
        return None
    set_array(tensor, changed.astype(array.dtype))
    return readers(model, tensor.name)


def is_op(target, *ops):
    return target[1].op_type in ops


@kind
def weight_element(model, target, rng):
    def change(array):
        array = array.copy()
        array.flat[rng.integers(array.size)] += np.abs(array).max() + 0.25
        return array
    return change_weight(model, target, change, 4)


@kind
def weight_weak(model, target, rng):
    return change_weight(model, target, lambda array: array * (1 + 4e-4), 4) if is_op(target, "MatMul", "Conv", "Gemm", "Mul", "GRU") else None


@kind
def weight_element_weak(model, target, rng):
    def change(array):
        array = array.copy()
        array.flat[rng.integers(array.size)] += 0.003 * np.abs(array).max()
        return array
    return change_weight(model, target, change, 4) if is_op(target, "MatMul", "Add", "Conv") else None


@kind
def weight_transposed(model, target, rng):
    return change_weight(model, target, lambda a: a.T if a.ndim == 2 and a.shape[0] == a.shape[1] else None)


@kind
def channels_swapped(model, target, rng):
    def change(array):
        axis = array.ndim - 1 if target[1].op_type == "MatMul" else 0
        if array.shape[axis] < 4:
            return None
        return np.take(array, [1, 0, *range(2, array.shape[axis])], axis)
    return change_weight(model, target, change, 4) if is_op(target, "MatMul", "Conv") else None


@kind
def bias_dropped(model, target, rng):
    if is_op(target, "Conv") and len(target[1].input) > 2:
        tensor = weight_of(target, target[1].input[2])
        set_array(tensor, array_of(target, tensor.name) * 0)
        return [target[1].name]
    return change_weight(model, target, lambda a: a * 0 if a.ndim == 1 else None) if is_op(target, "Add") else None


@kind
def bias_rolled(model, target, rng):
    return change_weight(model, target, lambda a: np.roll(a, 1) if a.ndim == 1 else None, 3) if is_op(target, "Add", "Mul") else None


@kind
def stale_constant(model, target, rng):
    return change_weight(model, target, lambda a: rng.permutation(a.ravel()).reshape(a.shape), 8)


@kind
def scale_wrong(model, target, rng):
    for name in target[1].input:
        array = array_of(target, name)
        if array is not None and array.dtype.kind == "f" and array.size == 1 and is_op(target, "Mul", "Div"):
            set_array(weight_of(target, name), (array * 1.25).astype(array.dtype))
            return readers(model, name)
    return None


@kind
def epsilon_wrong(model, target, rng):
    if is_op(target, "BatchNormalization", "InstanceNormalization"):
        set_attribute(target[1], "epsilon", 1e-2)
        return [target[1].name]
    for name in target[1].input:
        if name.startswith("epsilon") and array_of(target, name) is not None:
            set_array(weight_of(target, name), np.float32(1e-3))
            return readers(model, name)
    return None


def new_operator(target, table):
    if target[1].op_type not in table:
        return None
    target[1].op_type = table[target[1].op_type]
    return [target[1].name]


@kind
def sum_for_difference(model, target, rng):
    return new_operator(target, {"Add": "Sub", "Sub": "Add"})


@kind
def product_for_quotient(model, target, rng):
    return new_operator(target, {"Mul": "Div", "Div": "Mul"})


@kind
def other_activation(model, target, rng):
    del_alpha = target[1].op_type in ("LeakyRelu", "Elu")
    answer = new_operator(target, SMOOTH)
    if answer and del_alpha:
        del target[1].attribute[:]
    return answer


@kind
def other_reduction(model, target, rng):
    return new_operator(target, {"ReduceMean": "ReduceMax", "ReduceMax": "ReduceMin", "MaxPool": "AveragePool", "GlobalAveragePool": "GlobalMaxPool"})


@kind
def gelu_approximated(model, target, rng):
    return new_operator(target, {"Erf": "Tanh"})


@kind
def axis_wrong(model, target, rng):
    if is_op(target, "Softmax", "Concat", "Gather"):
        old = attribute(target[1], "axis", -1)
        set_attribute(target[1], "axis", {-1: -2, 1: 0, 2: 1}.get(old, 1))
        return [target[1].name]
    return None


@kind
def operands_swapped(model, target, rng):
    if not is_op(target, "Sub", "Div", "MatMul", "Concat") or len(target[1].input) != 2:
        return None
    first, second = target[1].input
    target[1].input[0], target[1].input[1] = second, first
    return [target[1].name]


@kind
def statistics_swapped(model, target, rng):
    if not is_op(target, "BatchNormalization"):
        return None
    node = target[1]
    node.input[1], node.input[4] = node.input[4], node.input[1]
    return [node.name]


@kind
def node_inserted(model, target, rng):
    graph, node, _ = target
    if len(node.output) != 1 or not is_op(target, "MatMul", "Add", "Relu", "Tanh", "Mul", "Conv", "Softmax", "Sub"):
        return None
    op = ["Neg", "Abs", "Softsign", "Ceil"][rng.integers(4)]
    return [insert_after(graph, node, node.output[0], op, f"node_inserted_{rng.integers(1000)}").name]


@kind
def node_missing(model, target, rng):
    graph, node, _ = target
    if not is_op(target, "Relu", "Tanh", "Sigmoid", "Softmax", "LeakyRelu", "Softsign", "HardSwish", "Abs", "Neg", "BatchNormalization", "InstanceNormalization", "Elu", "Softplus"):
        return None
    return [node.name] if remove_node(graph, node) else None


@kind
def half_island(model, target, rng):
    graph, node, _ = target
    if not is_op(target, "MatMul", "Add", "Mul", "Tanh", "Softmax", "Conv", "Sub"):
        return None
    if any((array_of(target, name) is not None and array_of(target, name).dtype != np.float32) for name in node.input):
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
def mask_inverted(model, target, rng):
    for name in target[1].input:
        if name.startswith("mask") and array_of(target, name) is not None:
            mask = array_of(target, name)
            set_array(weight_of(target, name), np.where(mask == 0, mask.min(), 0).astype(np.float32))
            return readers(model, name)
    return None


@kind
def mask_shifted(model, target, rng):
    for name in target[1].input:
        if name.startswith("mask") and array_of(target, name) is not None:
            mask = array_of(target, name)
            set_array(weight_of(target, name), np.triu(np.full(mask.shape, mask.min()), 2).astype(np.float32))
            return readers(model, name)
    return None


@kind
def slice_off_by_one(model, target, rng):
    if not is_op(target, "Slice"):
        return None
    for port in (1, 2):
        tensor = weight_of(target, target[1].input[port])
        set_array(tensor, array_of(target, tensor.name) + 1)
    return [target[1].name]


@kind
def wrong_source(model, target, rng):
    """One operand comes from the node before the right one."""
    graph, node, _ = target
    if not is_op(target, "Add", "Mul", "Sub", "Concat"):
        return None
    for index, name in enumerate(node.input):
        makers = [other for other in graph.node if name in other.output]
        if makers and makers[0].op_type in ("Relu", "Tanh", "Sigmoid", "Mul", "Add", "Sub", "HardSwish", "LeakyRelu", "Softplus") and array_of((graph, makers[0], target[2]), makers[0].input[0]) is None:
            node.input[index] = makers[0].input[0]
            return [node.name]
    return None


@kind
def condition_flipped(model, target, rng):
    return new_operator(target, {"Less": "Greater"})


@kind
def trips_off_by_one(model, target, rng):
    if not is_op(target, "Loop"):
        return None
    tensor = weight_of(target, target[1].input[0])
    set_array(tensor, array_of(target, tensor.name) - 1)
    return [target[1].name]


@kind
def resize_nearest(model, target, rng):
    if not is_op(target, "Resize"):
        return None
    name, value = (("mode", "nearest"), ("coordinate_transformation_mode", "asymmetric"))[rng.integers(2)]
    set_attribute(target[1], name, value)
    return [target[1].name]


@kind
def padding_shifted(model, target, rng):
    if is_op(target, "Pad"):
        set_attribute(target[1], "mode", "edge")
        return [target[1].name]
    if is_op(target, "Conv") and attribute(target[1], "pads") == [1, 1, 1, 1]:
        set_attribute(target[1], "pads", [0, 2, 2, 0])
        return [target[1].name]
    return None


@kind
def quantization_wrong(model, target, rng):
    if not is_op(target, "QuantizeLinear", "DequantizeLinear"):
        return None
    port = 1 + int(rng.integers(2))
    tensor = weight_of(target, target[1].input[port])
    array = array_of(target, tensor.name)
    set_array(tensor, (array * np.float32(1.03)) if port == 1 else array + np.ones_like(array))
    return readers(model, tensor.name)


@kind
def gates_swapped(model, target, rng):
    if not is_op(target, "GRU", "LSTM"):
        return None
    if is_op(target, "GRU") and rng.integers(2):
        set_attribute(target[1], "linear_before_reset", 1)
        return [target[1].name]
    tensor = weight_of(target, target[1].input[1])
    array = array_of(target, tensor.name)
    gates = np.split(array, 3 if is_op(target, "GRU") else 4, axis=1)
    set_array(tensor, np.concatenate([gates[1], gates[0], *gates[2:]], axis=1))
    return [target[1].name]


@kind
def attribute_wrong(model, target, rng):
    if is_op(target, "LeakyRelu"):
        set_attribute(target[1], "alpha", 0.3)
    elif is_op(target, "TopK"):
        set_attribute(target[1], "largest", 0)
    elif is_op(target, "Clip"):
        set_array(weight_of(target, target[1].input[2]), np.float32(0.4))
    elif is_op(target, "Flatten", "Gemm") and attribute(target[1], "transB"):
        set_attribute(target[1], "alpha", 0.9)
    elif is_op(target, "Pow"):
        set_array(weight_of(target, target[1].input[1]), np.float32(3))
        return readers(model, target[1].input[1])
    else:
        return None
    return [target[1].name]


@kind
def permutation_wrong(model, target, rng):
    if not is_op(target, "Transpose"):
        return None
    old = list(attribute(target[1], "perm"))
    first, second = rng.choice(len(old), 2, replace=False)
    old[first], old[second] = old[second], old[first]
    set_attribute(target[1], "perm", old)
    return [target[1].name]


@kind
def stale_from_elsewhere(model, target, rng):
    """Another layer's weight of the same shape."""
    tensor, array = float_weight(target, 4)
    if tensor is None:
        return None
    others = [other for other in target[0].initializer if other.name != tensor.name and list(other.dims) == list(tensor.dims) and other.data_type == tensor.data_type]
    if not others:
        return None
    set_array(tensor, numpy_helper.to_array(others[rng.integers(len(others))]))
    return readers(model, tensor.name)


@kind
def heads_interleaved(model, target, rng):
    """Columns of two heads stored one by one instead of one head after the other."""
    def change(array):
        if array.ndim != 2 or array.shape[1] % 4:
            return None
        return array.reshape(array.shape[0], 2, -1).swapaxes(1, 2).reshape(array.shape)
    return change_weight(model, target, change, 8) if is_op(target, "MatMul") else None


@kind
def weight_in_steps(model, target, rng):
    """Rounded to 8 bits and back, in a model of floats."""
    def change(array):
        step = np.abs(array).max() / 127
        return np.round(array / step) * step
    return change_weight(model, target, change, 8) if is_op(target, "MatMul", "Conv", "Gemm") else None


@kind
def attribute_lost(model, target, rng):
    """An attribute that is not at its default is left out."""
    kept = ("to", "value", "num_scan_inputs", "hidden_size", "kernel_shape", "body", "then_branch", "else_branch")
    lost = [given for given in target[1].attribute if given.name not in kept]
    if not lost:
        return None
    target[1].attribute.remove(lost[rng.integers(len(lost))])
    return [target[1].name]


@kind
def transposed_once_more(model, target, rng):
    """Two axes of equal size exchanged after a product."""
    graph, node, enclosing = target
    if enclosing or not is_op(target, "MatMul") or len(node.input) != 2 or array_of(target, node.input[1]) is None:
        return None
    if node.output[0] in [value.name for value in graph.output]:
        return None
    if model.graph.name not in ("encoder", "llama", "positions"):  # products of [batch, length, width]
        return None
    # The last axis folded into two of equal size, transposed and unfolded: as heads are, once too often.
    width = array_of(target, node.input[1]).shape[1]
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
def computed_constant(model, target, rng):
    """A node that makes a constant of constants does something else, is missing, or has another before it."""
    graph, node, enclosing = target
    held = {tensor.name for tensor in graph.initializer}
    if enclosing or not node.input or not all(name in held for name in node.input) or not is_op(target, "Mul", "Sin", "Cos", "Add", "Div"):
        return None
    choice = rng.integers(3)
    if choice == 0:
        node.op_type = {"Mul": "Add", "Sin": "Cos", "Cos": "Sin", "Add": "Sub", "Div": "Mul"}[node.op_type]
        return [node.name]
    if choice == 1:
        return [insert_after(graph, node, node.output[0], "Tanh", f"{node.output[0]}_bent").name]
    tensor = weight_of(target, node.input[-1])
    set_array(tensor, (array_of(target, tensor.name) * np.float32(1.25)).astype(np.float32))
    return readers(model, tensor.name)
