# SPDX-License-Identifier: Apache-2.0
"""Changes that leave what a model computes alone: other names, another order, other nodes for the same."""
import copy

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from graphs import all_graphs, array_of, attribute, bodies, insert_after, targets, readers, set_array, set_attribute, weight_of


def rename(model, rng):
    """Gives every node and value, the graph's inputs and outputs included, another name. Answers new names of nodes by old ones."""
    numbers = iter(rng.permutation(100000))
    nodes = {}

    def rename_graph(graph, known):
        known = dict(known)
        fresh = lambda name: known.setdefault(name, f"t{next(numbers)}") if name else name
        names = [value.name for value in graph.input] + [tensor.name for tensor in graph.initializer] + [name for node in graph.node for name in node.output]
        for name in names:
            if name:
                known[name] = f"t{next(numbers)}"
        for value in [*graph.input, *graph.output, *graph.value_info]:
            value.name = fresh(value.name)
        for tensor in graph.initializer:
            tensor.name = fresh(tensor.name)
        for node in graph.node:
            node.input[:] = [fresh(name) for name in node.input]
            node.output[:] = [fresh(name) for name in node.output]
            nodes[node.name] = f"n{next(numbers)}"
            node.name = nodes[node.name]
            for body in bodies(node):
                rename_graph(body, known)

    rename_graph(model.graph, {})
    return nodes


def reads(node):
    """All a node reads, its bodies' outer values included."""
    found = set(node.input)
    for body in bodies(node):
        found |= {name for inner in body.node for name in reads(inner)} | {value.name for value in body.output}
    return found


def reorder(model, rng):
    """Another topological order of every graph; weights in another order too."""
    for graph in all_graphs(model.graph):
        makers = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
        waiting = {index: {makers[name] for name in reads(node) if name in makers} for index, node in enumerate(graph.node)}
        nodes, order = list(graph.node), []
        while waiting:
            index = rng.choice([index for index, before in waiting.items() if not before])
            order.append(nodes[index])
            del waiting[index]
            for before in waiting.values():
                before.discard(index)
        weights = [graph.initializer[index] for index in rng.permutation(len(graph.initializer))]
        for field, items in ((graph.node, order), (graph.initializer, weights)):
            copies = [copy.deepcopy(item) for item in items]
            del field[:]
            field.extend(copies)


def add_identities(model, rng):
    chosen = [target for target in targets(model.graph) if len(target[1].output) == 1 and target[1].op_type in ("Add", "MatMul", "Relu", "Mul", "Conv", "Tanh")]
    for number in rng.permutation(len(chosen))[:2]:
        graph, node, _ = chosen[number]
        insert_after(graph, node, node.output[0], "Identity", f"passed_on_{number}")


def add_transposes(model, rng):
    chosen = [target for target in targets(model.graph) if target[1].op_type in ("Softmax", "MatMul", "Gemm")]
    for number in rng.permutation(len(chosen))[:1]:
        graph, node, _ = chosen[number]
        rank = 2 if node.op_type == "Gemm" else None
        if rank:
            first = insert_after(graph, node, node.output[0], "Transpose", f"there_{number}", perm=[1, 0])
            insert_after(graph, first, first.output[0], "Transpose", f"back_{number}", perm=[1, 0])


def weights_as_nodes(model, rng):
    for graph in all_graphs(model.graph):
        taken = [tensor for tensor in graph.initializer if rng.random() < 0.4]
        for number, tensor in enumerate(taken):
            graph.node.insert(0, helper.make_node("Constant", [], [tensor.name], name=f"held_{tensor.name}", value=copy.deepcopy(tensor)))
            graph.initializer.remove(tensor)


def transposed_weights(model, rng):
    """A weight is stored the other way round and transposed by a node, as exporters do that fold nothing."""
    for target in list(targets(model.graph)):
        graph, node, _ = target
        array = array_of(target, node.input[1]) if node.op_type == "MatMul" and len(node.input) == 2 else None
        if array is None or array.ndim != 2 or len(readers(model, node.input[1])) != 1 or rng.random() < 0.5:
            continue
        tensor = weight_of(target, node.input[1])
        set_array(tensor, array.T)
        transposed = helper.make_node("Transpose", [tensor.name], [f"{tensor.name}_transposed"], name=f"transpose_{tensor.name}", perm=[1, 0])
        node.input[1] = transposed.output[0]
        graph.node.insert(list(graph.node).index(node), transposed)


STRUCTURAL = (add_identities, add_transposes, weights_as_nodes, transposed_weights)


def restructure(model, rng):
    for number in rng.permutation(len(STRUCTURAL))[:2]:
        STRUCTURAL[number](model, rng)
    weights_as_nodes(model, rng)


def fold_normalization(model, rng):
    """BatchNormalization into the convolution before it."""
    graph = model.graph
    for node in [node for node in graph.node if node.op_type == "BatchNormalization"]:
        conv = next((other for other in graph.node if node.input[0] in other.output), None)
        if conv is None or conv.op_type != "Conv":
            continue
        target = (graph, conv, ())
        scale, shift, mean, variance = (array_of(target, name).astype(np.float64) for name in node.input[1:])
        factor = scale / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
        weight, bias = (array_of(target, name) for name in conv.input[1:3])
        set_array(weight_of(target, conv.input[1]), (weight * factor[:, None, None, None]).astype(np.float32))
        set_array(weight_of(target, conv.input[2]), ((bias - mean) * factor + shift).astype(np.float32))
        conv.output[0] = node.output[0]
        graph.node.remove(node)


def split_products(model, rng):
    """Products over K in two halves, added: another order of accumulation."""
    for target in list(targets(model.graph)):
        graph, node, _ = target
        array = array_of(target, node.input[1]) if node.op_type == "MatMul" else None
        if array is None or array.ndim != 2 or array.shape[0] < 4 or array.dtype != np.float32:
            continue
        middle, x, stem = array.shape[0] // 2, node.input[0], node.output[0]
        numbers = {name: np.array([value], np.int64) for name, value in (("zero", 0), ("middle", middle), ("end", array.shape[0]), ("last", -1))}
        for name, value in numbers.items():
            graph.initializer.append(numpy_helper.from_array(value, f"{stem}_{name}"))
        graph.initializer.append(numpy_helper.from_array(array[:middle].copy(), f"{stem}_w0"))
        graph.initializer.append(numpy_helper.from_array(array[middle:].copy(), f"{stem}_w1"))
        new = [helper.make_node("Slice", [x, f"{stem}_zero", f"{stem}_middle", f"{stem}_last"], [f"{stem}_x0"], name=f"{node.name}_x0"),
               helper.make_node("Slice", [x, f"{stem}_middle", f"{stem}_end", f"{stem}_last"], [f"{stem}_x1"], name=f"{node.name}_x1"),
               helper.make_node("MatMul", [f"{stem}_x0", f"{stem}_w0"], [f"{stem}_p0"], name=f"{node.name}_p0"),
               helper.make_node("MatMul", [f"{stem}_x1", f"{stem}_w1"], [f"{stem}_p1"], name=f"{node.name}_p1"),
               helper.make_node("Add", [f"{stem}_p0", f"{stem}_p1"], [stem], name=node.name)]
        position = list(graph.node).index(node)
        graph.node.remove(node)
        for offset, item in enumerate(new):
            graph.node.insert(position + offset, item)


def transpose_gemms(model, rng):
    """The weights of Gemm stored the other way round, and the attribute that says so."""
    for target in list(targets(model.graph)):
        array = array_of(target, target[1].input[1]) if target[1].op_type == "Gemm" else None
        if array is not None and len(readers(model, target[1].input[1])) == 1:
            set_array(weight_of(target, target[1].input[1]), array.T)
            set_attribute(target[1], "transB", 1 - attribute(target[1], "transB", 0))


def replace(graph, node, new):
    position = list(graph.node).index(node)
    graph.node.remove(node)
    for offset, item in enumerate(new):
        graph.node.insert(position + offset, item)


def decompose(model, rng):
    """Softmax, Sigmoid, HardSwish, Gemm and ReduceMean by simpler operators."""
    for target in list(targets(model.graph)):
        graph, node, _ = target
        y, name = node.output[0] if node.output else "", node.name
        make = lambda op, inputs, output, **attributes: helper.make_node(op, inputs, [output], name=f"{name}_{output.rsplit('_', 1)[-1]}", **attributes)
        if node.op_type == "Softmax":
            axis = attribute(node, "axis", -1)
            graph.initializer.append(numpy_helper.from_array(np.array([axis], np.int64), f"{y}_axes"))
            replace(graph, node, [make("ReduceMax", [node.input[0]], f"{y}_top", axes=[axis]), make("Sub", [node.input[0], f"{y}_top"], f"{y}_low"), make("Exp", [f"{y}_low"], f"{y}_exp"), make("ReduceSum", [f"{y}_exp", f"{y}_axes"], f"{y}_sum"), make("Div", [f"{y}_exp", f"{y}_sum"], y)])
        elif node.op_type == "Gemm" and attribute(node, "transB"):
            replace(graph, node, [make("Transpose", [node.input[1]], f"{y}_transposed", perm=[1, 0]), make("MatMul", [node.input[0], f"{y}_transposed"], f"{y}_product"), make("Add", [f"{y}_product", node.input[2]], y)])
        elif node.op_type == "Softsign":
            graph.initializer.append(numpy_helper.from_array(np.float32(1), f"{y}_one"))
            replace(graph, node, [make("Abs", [node.input[0]], f"{y}_abs"), make("Add", [f"{y}_abs", f"{y}_one"], f"{y}_more"), make("Div", [node.input[0], f"{y}_more"], y)])


def to_half(model, rng):
    """The whole model in half precision, its inputs and outputs as they were."""
    for graph in all_graphs(model.graph):
        for tensor in graph.initializer:
            array = numpy_helper.to_array(tensor)
            if array.dtype == np.float32:
                set_array(tensor, np.clip(array, -60000, 60000).astype(np.float16))
        for value in [*graph.input, *graph.output]:
            if graph is not model.graph and value.type.tensor_type.elem_type == TensorProto.FLOAT:
                value.type.tensor_type.elem_type = TensorProto.FLOAT16
    graph = model.graph
    for node in graph.node:
        if node.op_type == "Cast" and attribute(node, "to") == TensorProto.FLOAT:
            return None
    for value in graph.input:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            for other in all_graphs(graph):
                for node in other.node:
                    node.input[:] = [f"{name}_half" if name == value.name else name for name in node.input]
            graph.node.insert(0, helper.make_node("Cast", [value.name], [f"{value.name}_half"], name=f"cast_{value.name}", to=TensorProto.FLOAT16))
    for value in graph.output:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            for node in graph.node:
                node.input[:] = [f"{name}_half" if name == value.name else name for name in node.input]
                node.output[:] = [f"{name}_half" if name == value.name else name for name in node.output]
            graph.node.append(helper.make_node("Cast", [f"{value.name}_half"], [value.name], name=f"cast_{value.name}", to=TensorProto.FLOAT))
    for node in graph.node:
        if node.op_type == "Resize":  # its scales stay floats
            tensor = weight_of((graph, node, ()), node.input[2])
            set_array(tensor, numpy_helper.to_array(tensor).astype(np.float32))
    return model


HEALTHY = {"renamed": None, "restructured": restructure, "folded": fold_normalization, "accumulated": split_products, "decomposed": decompose, "half": to_half, "transposed": transpose_gemms}
