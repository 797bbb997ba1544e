# SPDX-License-Identifier: Apache-2.0
"""Walking and rewriting ONNX graphs, bodies included: what faults and harmless changes have in common."""
import numpy as np
from onnx import helper, numpy_helper


def bodies(node):
    return [attribute.g for attribute in node.attribute if attribute.HasField("g")]


def all_graphs(graph):
    """The graph and every body below it, with the weights of enclosing graphs in sight."""
    yield graph
    for node in graph.node:
        for body in bodies(node):
            yield from all_graphs(body)


def targets(graph, enclosing=()):
    """(graph, node, enclosing graphs outermost first) of every node, bodies included."""
    for node in graph.node:
        yield graph, node, enclosing
        for body in bodies(node):
            yield from targets(body, enclosing + (graph,))


def weight_of(target, name):
    graph, _, enclosing = target
    for scope in (graph, *reversed(enclosing)):
        for tensor in scope.initializer:
            if tensor.name == name:
                return tensor
    return None


def array_of(target, name):
    tensor = weight_of(target, name)
    return None if tensor is None else numpy_helper.to_array(tensor)


def set_array(tensor, array):
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), tensor.name))


def readers(model, name):
    """Names of the nodes that read the value directly, in all graphs."""
    return [node.name for graph in all_graphs(model.graph) for node in graph.node if name in node.input]


def attribute(node, name, default=None):
    for candidate in node.attribute:
        if candidate.name == name:
            return helper.get_attribute_value(candidate)
    return default


def set_attribute(node, name, value):
    for candidate in list(node.attribute):
        if candidate.name == name:
            node.attribute.remove(candidate)
    node.attribute.append(helper.make_attribute(name, value))


def insert_after(graph, node, output, op, name, extra=(), **attributes):
    """Puts `op` between an output of `node` and all its readers in this graph; the graph's outputs keep their names."""
    inner = f"{output}_{name}"
    is_output = any(value.name == output for value in graph.output)
    if is_output:  # the new node makes the output
        for index, made in enumerate(node.output):
            if made == output:
                node.output[index] = inner
        for reader in graph.node:
            for index, read in enumerate(reader.input):
                if read == output:
                    reader.input[index] = inner
        new = helper.make_node(op, [inner, *extra], [output], name=name, **attributes)
    else:
        new = helper.make_node(op, [output, *extra], [inner], name=name, **attributes)
        for other in all_graphs(graph):
            for reader in other.node:
                for index, read in enumerate(reader.input):
                    if read == output:
                        reader.input[index] = inner
            for value in other.output:
                if value.name == output and other is not graph:
                    value.name = inner
    graph.node.insert(list(graph.node).index(node) + 1, new)
    return new


def remove_node(graph, node):
    """Leaves a node with one output out: its readers read its first input."""
    output, source = node.output[0], node.input[0]
    if any(value.name == output for value in graph.output):
        makers = [other for other in graph.node if source in other.output]
        if not makers or any(source == value.name for value in graph.output):
            return False
        for other in graph.node:
            for index, read in enumerate(other.input):
                if read == source and other is not node:
                    other.input[index] = output
            for index, made in enumerate(other.output):
                if made == source:
                    other.output[index] = output
    else:
        for other in all_graphs(graph):
            for reader in other.node:
                for index, read in enumerate(reader.input):
                    if read == output:
                        reader.input[index] = source
    graph.node.remove(node)
    return True
