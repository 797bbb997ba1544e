# SPDX-License-Identifier: Apache-2.0
"""More faults: what is read, in which order nodes stand, what control flow decides. Functions as in faults.py; KINDS lists them."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from graphs import array_of, attribute, insert_after, readers, remove_node, set_array, set_attribute, weight_of

ONE_OPERAND = ("Relu", "Tanh", "Sigmoid", "Softmax", "Clip", "LeakyRelu", "Elu", "Softplus", "Softsign", "HardSwish", "Sqrt", "Abs", "Neg", "Exp", "Add", "Mul", "Sub", "Div")
KINDS = {}


def kind(function):
    KINDS[function.__name__] = function
    return function


def makes_output(graph, node):
    return any(value.name in node.output for value in graph.output)


def only_reader(model, graph, node):
    """The one node of the same graph that reads the node's one output."""
    if len(node.output) != 1 or makes_output(graph, node):
        return None
    names = readers(model, node.output[0])
    found = [other for other in graph.node if node.output[0] in other.input]
    return found[0] if len(names) == 1 and len(found) == 1 else None


def has_one_operand(target, node):
    """One value, and constants next to it."""
    graph, _, enclosing = target
    here = (graph, node, enclosing)
    return node.op_type in ONE_OPERAND and array_of(here, node.input[0]) is None and all(array_of(here, name) is not None for name in node.input[1:])


@kind
def order_exchanged(model, target, rng):
    """f(g(x)) becomes g(f(x)): an activation before its bias, a scale after its softmax."""
    graph, node, _ = target
    reader = only_reader(model, graph, node)
    if reader is None or not has_one_operand(target, node) or not has_one_operand(target, reader) or reader.input[0] != node.output[0]:
        return None
    x, y, z = node.input[0], node.output[0], reader.output[0]
    reader.input[0], reader.output[0], node.input[0], node.output[0] = x, y, y, z
    position = list(graph.node).index(node)
    graph.node.remove(reader)
    graph.node.insert(position, reader)
    return [node.name, reader.name]


@kind
def scale_missing(model, target, rng):
    graph, node, _ = target
    held = [array_of(target, name) for name in node.input[1:]]
    if node.op_type not in ("Mul", "Div") or held[0] is None or held[0].size != 1:
        return None
    return [node.name] if remove_node(graph, node) else None


@kind
def same_operand_twice(model, target, rng):
    """A residual sum that takes one of its operands for both."""
    graph, node, enclosing = target
    if enclosing or node.op_type not in ("Add", "Mul") or any(array_of(target, name) is not None for name in node.input) or node.input[0] == node.input[1]:
        return None
    makers = {name: other for other in graph.node for name in other.output}
    if not all(name in makers and makers[name].op_type in ("Add", "Mul", "MatMul", "BatchNormalization", "LeakyRelu", "Tanh", "Relu", "Sigmoid") for name in node.input):
        return None
    port = int(rng.integers(2))
    node.input[port] = node.input[1 - port]
    return [node.name]


@kind
def weights_exchanged(model, target, rng):
    """Another layer's weight of the same shape is read."""
    graph, node, _ = target
    for port, name in enumerate(node.input):
        tensor = weight_of(target, name)
        if tensor is None or array_of(target, name).dtype != np.float32 or array_of(target, name).size < 4:
            continue
        others = [other.name for other in graph.initializer if other.name != name and list(other.dims) == list(tensor.dims) and other.data_type == tensor.data_type]
        if not others:
            continue
        node.input[port] = others[rng.integers(len(others))]
        return [node.name]
    return None


@kind
def elements_exchanged(model, target, rng):
    """Two numbers of a bias, a scale or a statistic, exchanged."""
    held = [name for name in target[1].input if array_of(target, name) is not None and array_of(target, name).dtype.kind == "f" and array_of(target, name).ndim == 1 and array_of(target, name).size > 3]
    if not held:
        return None
    name = held[rng.integers(len(held))]
    array = array_of(target, name).copy()
    first, second = rng.choice(array.size, 2, replace=False)
    array[[first, second]] = array[[second, first]]
    set_array(weight_of(target, name), array)
    return readers(model, name)


@kind
def kernel_flipped(model, target, rng):
    """A convolution for a correlation."""
    if target[1].op_type not in ("Conv", "ConvTranspose"):
        return None
    tensor = weight_of(target, target[1].input[1])
    set_array(tensor, array_of(target, tensor.name)[..., ::-1])
    return [target[1].name]


@kind
def variance_unbiased(model, target, rng):
    """A mean of squares divided by n - 1."""
    graph, node, _ = target
    makers = [other for other in graph.node if node.op_type == "ReduceMean" and node.input[0] in other.output]
    if not makers or makers[0].op_type not in ("Mul", "Pow"):
        return None
    name = f"{node.output[0]}_unbiased"
    graph.initializer.append(numpy_helper.from_array(np.float32(16 / 15), name))
    return [insert_after(graph, node, node.output[0], "Mul", f"{name}_node", (name,)).name]


@kind
def condition_inverted(model, target, rng):
    graph, node, _ = target
    if node.op_type not in ("If", "Where"):
        return None
    name = f"{node.output[0]}_not"
    graph.node.insert(list(graph.node).index(node), helper.make_node("Not", [node.input[0]], [name], name=f"{name}_node"))
    node.input[0] = name
    return [f"{name}_node", node.name]


@kind
def compared_differently(model, target, rng):
    """At the bound itself, the other answer."""
    other = {"Less": "LessOrEqual", "Greater": "Less", "And": "Or"}
    if target[1].op_type not in other:
        return None
    target[1].op_type = other[target[1].op_type]
    return [target[1].name]


@kind
def body_reads_another(model, target, rng):
    """In a body, a value of an earlier step instead of the right one."""
    graph, node, enclosing = target
    if not enclosing or node.op_type not in ("Add", "Mul", "Sub", "MatMul", "Tanh", "Div"):
        return None
    earlier = [name for other in list(graph.node)[:list(graph.node).index(node)] for name in other.output if other.op_type in ("Add", "Mul", "Tanh", "MatMul", "Sub", "Abs")]
    earlier += [value.name for value in graph.input if value.type.tensor_type.elem_type == TensorProto.FLOAT]
    ports = [port for port, name in enumerate(node.input) if name in earlier]
    others = [name for name in earlier if name not in node.input]
    if not ports or not others:
        return None
    node.input[ports[rng.integers(len(ports))]] = others[rng.integers(len(others))]
    return [node.name]


@kind
def state_kept(model, target, rng):
    """A Loop goes on with the state it came with."""
    node = target[1]
    if node.op_type != "Loop":
        return None
    body = attribute(node, "body")
    makers = [other for other in body.node if body.output[1].name in other.output]
    name = f"{body.output[1].name}_kept"
    for given in node.attribute:
        if given.name == "body":
            given.g.node.append(helper.make_node("Identity", [body.input[2].name], [name], name=f"{name}_node"))
            given.g.output[1].name = name
    return [node.name, f"{name}_node", *(maker.name for maker in makers)]


@kind
def reduced_elsewhere(model, target, rng):
    """Another axis is summed or averaged over."""
    node = target[1]
    if not node.op_type.startswith("Reduce"):
        return None
    axes = attribute(node, "axes")
    if axes:
        set_attribute(node, "axes", [axes[0] - 1 if axes[0] else 1, *axes[1:]])
        return [node.name]
    if len(node.input) > 1:
        tensor = weight_of(target, node.input[1])
        set_array(tensor, np.array([1 - int(array_of(target, tensor.name)[0])], np.int64))
        return readers(model, tensor.name)
    return None
