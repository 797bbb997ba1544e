# SPDX-License-Identifier: Apache-2.0
"""Other forms of the same: operators by other operators, products in parts, bodies without their loops. Functions (model, rng) as in harmless.py; FORMS lists them."""
import copy

import numpy as np
from onnx import helper, numpy_helper

from graphs import array_of, attribute, bodies, targets, set_attribute
from harmless import reads, replace

FORMS = {}


def form(function):
    FORMS[function.__name__] = function
    return function


class Rewriting:
    """Nodes that replace a node: named after what they make, constants next to them."""

    def __init__(self, graph, node):
        self.graph, self.node, self.stem, self.new = graph, node, node.output[0], []

    def held(self, value, what):
        name = f"{self.stem}_{what}"
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, op, *inputs, last=False, outputs=None, **attributes):
        names = outputs or [self.stem if last else f"{self.stem}_{len(self.new)}"]
        self.new.append(helper.make_node(op, list(inputs), names, name=f"{self.node.name}_{len(self.new)}", **attributes))
        return names[0]

    def put(self):
        replace(self.graph, self.node, self.new)


def is_float(target):
    """The weights of a model in float32."""
    return not any(tensor.data_type == 10 for graph in (target[0], *target[2]) for tensor in graph.initializer)


@form
def plain_operators(model, rng):
    """Activations by arithmetic."""
    for target in list(targets(model.graph)):
        graph, node, _ = target
        if not node.output or not is_float(target) or rng.random() < 0.2:
            continue
        w, x, f = Rewriting(graph, node), node.input[0] if node.input else "", np.float32
        if node.op_type == "Relu":
            w.add("Max", x, w.held(f(0), "zero"), last=True)
        elif node.op_type == "LeakyRelu":
            below = w.add("Less", x, w.held(f(0), "zero"))
            w.add("Where", below, w.add("Mul", x, w.held(f(attribute(node, "alpha", 0.01)), "slope")), x, last=True)
        elif node.op_type == "Sigmoid":
            bent = w.add("Tanh", w.add("Mul", x, w.held(f(0.5), "half")))
            w.add("Add", w.add("Mul", bent, w.held(f(0.5), "half_again")), w.held(f(0.5), "middle"), last=True)
        elif node.op_type == "Softplus":
            far = w.add("Exp", w.add("Neg", w.add("Abs", x)))
            w.add("Add", w.add("Log", w.add("Add", far, w.held(f(1), "one"))), w.add("Relu", x), last=True)
        elif node.op_type == "Reciprocal":
            w.add("Div", w.held(f(1), "one"), x, last=True)
        elif node.op_type == "Sqrt":
            w.add("Pow", x, w.held(f(0.5), "half"), last=True)
        elif node.op_type == "Sub" and array_of(target, node.input[1]) is None:
            w.add("Add", x, w.add("Neg", node.input[1]), last=True)
        elif node.op_type == "Pow" and array_of(target, node.input[1]) is not None and array_of(target, node.input[1]).size == 1 and float(array_of(target, node.input[1])) == 2:
            w.add("Mul", x, x, last=True)
        if w.new:
            w.put()


@form
def means_by_sums(model, rng):
    for target in list(targets(model.graph)):
        graph, node, _ = target
        axes = attribute(node, "axes")
        widths = {"encoder": 16, "llama": 16, "positions": 16}
        if node.op_type != "ReduceMean" or axes != [-1] or model.graph.name not in widths:
            continue
        w = Rewriting(graph, node)
        total = w.add("ReduceSum", node.input[0], w.held(np.array(axes, np.int64), "axes"), keepdims=attribute(node, "keepdims", 1))
        w.add("Mul", total, w.held(np.float32(1 / widths[model.graph.name]), "share"), last=True)
        w.put()


@form
def softmax_plain(model, rng):
    """Nothing subtracted, as long as nothing is masked by a large number."""
    if model.graph.name in ("llama", "positions", "encoder", "masked", "half"):
        return
    for graph, node, _ in list(targets(model.graph)):
        if node.op_type == "Softmax":
            w = Rewriting(graph, node)
            grown = w.add("Exp", node.input[0])
            w.add("Div", grown, w.add("ReduceSum", grown, w.held(np.array([attribute(node, "axis", -1)], np.int64), "axes"), keepdims=1), last=True)
            w.put()


@form
def products_as_einsum(model, rng):
    if model.graph.name not in ("llama", "positions", "encoder"):
        return
    for target in list(targets(model.graph)):
        node = target[1]
        if node.op_type == "MatMul":
            is_weight = array_of(target, node.input[1]) is not None
            node.op_type = "Einsum"
            set_attribute(node, "equation", "bij,jk->bik" if is_weight else "bhij,bhjk->bhik")


@form
def scale_moved(model, rng):
    """(q k) s as (q s) k."""
    graph = model.graph
    for node in list(graph.node):
        makers = [other for other in graph.node if node.op_type in ("Mul", "Div") and node.input[0] in other.output and other.op_type == "MatMul"]
        scale = array_of((graph, node, ()), node.input[1]) if makers else None
        if scale is None or scale.size != 1 or sum(node.input[0] in reads(other) for other in graph.node) != 1:
            continue
        product, result = makers[0], node.output[0]
        node.input[0], node.output[0] = product.input[0], f"{result}_scaled"
        product.input[0], product.output[0] = node.output[0], result
        graph.node.remove(node)
        graph.node.insert(list(graph.node).index(product), node)


@form
def convolutions_in_parts(model, rng):
    """Half of the output channels each."""
    for target in list(targets(model.graph)):
        graph, node, _ = target
        if node.op_type != "Conv" or attribute(node, "group", 1) != 1 or len(node.input) < 3:
            continue
        weight, bias = (array_of(target, name) for name in node.input[1:3])
        w, half, given = Rewriting(graph, node), weight.shape[0] // 2, {item.name: helper.get_attribute_value(item) for item in node.attribute}
        parts = [w.add("Conv", node.input[0], w.held(weight[part].copy(), f"weight{k}"), w.held(bias[part].copy(), f"bias{k}"), **given) for k, part in enumerate((slice(half), slice(half, None)))]
        w.add("Concat", *parts, axis=1, last=True)
        w.put()


@form
def computed_again(model, rng):
    """A value with several consumers is computed once for each; dead ends are added."""
    graph = model.graph
    for node in list(graph.node):
        readers = [other for other in graph.node if node.output and node.output[0] in other.input]
        if len(readers) < 2 or len(node.output) != 1 or bodies(node):
            continue
        again = copy.deepcopy(node)
        again.name, again.output[0] = f"{node.name}_again", f"{node.output[0]}_again"
        graph.node.insert(list(graph.node).index(node) + 1, again)
        readers[-1].input[:] = [again.output[0] if name == node.output[0] else name for name in readers[-1].input]
    graph.node.append(helper.make_node("Neg", [graph.node[-1].output[0]], ["dead_end"], name="dead_end_node"))


@form
def branch_in_place(model, rng):
    """The branch that the condition of `branch` takes, without the If."""
    graph = model.graph
    node = next((node for node in graph.node if node.op_type == "If"), None)
    if node is None:
        return
    body, position = copy.deepcopy(attribute(node, "then_branch")), list(graph.node).index(node)
    for inner in body.node:
        inner.output[:] = [node.output[0] if name == body.output[0].name else name for name in inner.output]
    graph.node.remove(node)
    graph.initializer.extend(body.initializer)
    for offset, inner in enumerate(body.node):
        graph.node.insert(position + offset, inner)


@form
def loop_unrolled(model, rng):
    """A Loop of constant length and one state, iteration after iteration."""
    graph = model.graph
    node = next((node for node in graph.node if node.op_type == "Loop" and model.graph.name == "loop"), None)
    if node is None:
        return
    body, trips, w = attribute(node, "body"), int(array_of((graph, node, ()), node.input[0])), Rewriting(graph, node)
    graph.initializer.extend(body.initializer)
    state, seen, axes = node.input[2], [], w.held(np.array([0], np.int64), "axes")
    for step in range(trips):
        names = {body.input[2].name: state, **{name: f"step{step}_{name}" for inner in body.node for name in inner.output}}
        for inner in body.node:
            if body.output[0].name in inner.output:
                continue  # the condition, which always holds
            new = copy.deepcopy(inner)
            new.name = f"step{step}_{inner.name}"
            new.input[:] = [names.get(name, name) for name in inner.input]
            new.output[:] = [names[name] for name in inner.output]
            w.new.append(new)
        state = names[body.output[1].name]
        seen.append(w.add("Unsqueeze", names[body.output[2].name], axes))
    w.add("Identity", state, last=True)
    w.add("Concat", *seen, outputs=[node.output[1]], axis=0)
    w.put()


@form
def outlined(model, rng):
    """Stretches of three nodes as functions of the model."""
    graph = model.graph
    nodes, held, made_last = list(graph.node), {tensor.name for tensor in graph.initializer}, {value.name for value in graph.output}
    position = 0
    while position + 3 <= len(nodes):
        stretch = nodes[position:position + 3]
        position += 3
        if any(bodies(node) or "" in node.input for node in stretch) or rng.random() < 0.4:
            continue
        made = [name for node in stretch for name in node.output]
        given = list(dict.fromkeys(name for node in stretch for name in node.input if name not in made))
        later = made_last | {name for node in graph.node if node not in stretch for name in reads(node)}
        results = [name for name in made if name in later]
        if not results or not set(given) - held:
            continue
        name = f"Block{position}"
        model.functions.append(helper.make_function("local", name, given, results, stretch, [helper.make_opsetid("", 17)]))
        call = helper.make_node(name, given, results, name=f"call_{position}", domain="local")
        graph.node.insert(list(graph.node).index(stretch[0]), call)
        for node in stretch:
            graph.node.remove(node)
    if model.functions:
        model.opset_import.append(helper.make_opsetid("local", 1))
