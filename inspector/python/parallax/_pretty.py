# SPDX-License-Identifier: Apache-2.0
"""The text of ``pretty_onnx``: a model line by line, nodes indented along the values that they pass on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

# The column at which the origin of an initializer begins.
_ORIGIN_COLUMN = 70
_SHOWN_ELEMENTS = 5


def pretty_onnx(model: Any) -> str:
    """Returns a model as text: opsets, inputs, initializers with their values, nodes, outputs, bodies, functions.

    ``model`` is whatever parallax.load() takes, or a GraphProto, FunctionProto, NodeProto, ValueInfoProto, TensorProto
    or AttributeProto. Needs onnx.

    >>> from onnx import TensorProto, helper
    >>> from parallax.helpers import pretty_onnx
    >>> x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in "xy")
    >>> graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    >>> print(pretty_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])))
    opset: domain='' version=18
    input: name='x' type=dtype('float32') shape=['n', 2]
    Relu(x) -> y
    output: name='y' type=dtype('float32') shape=['n', 2]
    """
    import onnx

    if isinstance(model, (str, os.PathLike)):
        model = onnx.load(os.fspath(model), load_external_data=False)
    describe = {
        onnx.ModelProto: _model, onnx.GraphProto: _graph, onnx.FunctionProto: _function, onnx.NodeProto: _node,
        onnx.ValueInfoProto: _value_info, onnx.TensorProto: _tensor, onnx.AttributeProto: _attribute,
    }.get(type(model))
    if describe is not None:
        return str(describe(model))
    from parallax.model import load

    return _model(load(model).to_onnx())


def _model(model: onnx.ModelProto) -> str:
    bodies: list[tuple[str, onnx.GraphProto]] = []
    lines = [f"opset: domain={opset.domain!r} version={opset.version!r}" for opset in model.opset_import]
    lines += _graph_lines(model.graph, bodies)
    lines += _body_lines(bodies)
    for function in model.functions:
        lines.append(_function(function))
    return "\n".join(lines)


def _graph(graph: onnx.GraphProto) -> str:
    bodies: list[tuple[str, onnx.GraphProto]] = []
    return "\n".join(_graph_lines(graph, bodies) + _body_lines(bodies))


def _function(function: onnx.FunctionProto) -> str:
    bodies: list[tuple[str, onnx.GraphProto]] = []
    lines = [f"----- function name={function.name} domain={function.domain}"]
    lines += [f"opset: domain={opset.domain!r} version={opset.version!r}" for opset in function.opset_import]
    lines += [f"attribute: {name!r}" for name in function.attribute]
    lines += [f"input: {name!r}" for name in function.input]
    lines += _node_lines(function.node, bodies)
    lines += [f"output: {name!r}" for name in function.output]
    return "\n".join(lines + _body_lines(bodies))


def _body_lines(bodies: list[tuple[str, onnx.GraphProto]]) -> list[str]:
    lines: list[str] = []
    for title, body in bodies:  # grows while bodies hold further ones
        lines.append(f"----- subgraph {title}")
        lines += _graph_lines(body, bodies)
    return lines


def _graph_lines(graph: onnx.GraphProto, bodies: list[tuple[str, onnx.GraphProto]]) -> list[str]:
    lines = [f"input: {_value_info(value)}" for value in graph.input]
    lines += [_initializer(tensor) for tensor in graph.initializer]
    for sparse in graph.sparse_initializer:
        lines.append(f"sparse init: name={sparse.values.name!r} shape={tuple(sparse.dims)}")
    lines += _node_lines(graph.node, bodies)
    return lines + [f"output: {_value_info(value)}" for value in graph.output]


def _value_info(value: onnx.ValueInfoProto) -> str:
    kind = value.type.WhichOneof("value")
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return f"name={value.name!r} type={kind.removesuffix('_type') if kind else None}"
    tensor = getattr(value.type, kind)
    dims = [dim.dim_param or (dim.dim_value if dim.HasField("dim_value") else "?") for dim in tensor.shape.dim]
    return f"name={value.name!r} type={_dtype(tensor.elem_type)} shape={dims or None}"


def _dtype(number: int) -> str:
    import onnx

    if number == onnx.TensorProto.UNDEFINED:
        return "None"
    return repr(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number)))


def _initializer(tensor: onnx.TensorProto) -> str:
    array = _array_of(tensor)
    text = f"init: name={tensor.name!r} type={_type_name(tensor)} shape={tuple(tensor.dims)}"
    if array is not None and array.size <= _SHOWN_ELEMENTS:
        text += f" -- {array.ravel()!r}"
    return f"{text:<{_ORIGIN_COLUMN}}-- {tensor.doc_string}" if tensor.doc_string else text


def _type_name(tensor: onnx.TensorProto) -> str:
    import onnx

    return str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)))


def _array_of(tensor: onnx.TensorProto) -> np.ndarray[Any, Any] | None:
    """The elements of a small tensor that are in the file itself."""
    import onnx

    count = int(np.prod(list(tensor.dims), dtype=np.int64))
    if count > 1000 or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return None
    return np.asarray(onnx.numpy_helper.to_array(tensor))


def _tensor(tensor: onnx.TensorProto) -> str:
    return _initializer(tensor).removeprefix("init: ")


def _node_lines(nodes: Iterable[onnx.NodeProto], bodies: list[tuple[str, onnx.GraphProto]]) -> list[str]:
    """A line a node, one level deeper than the node before where it reads one of its results."""
    lines: list[str] = []
    before: Sequence[str] = ()
    depth = 0
    for node in nodes:
        depth = depth + 1 if set(before) & set(filter(None, node.input)) else 0
        lines.append("  " * depth + _node(node, bodies))
        before = [name for name in node.output if name]
    return lines


def _node(node: onnx.NodeProto, bodies: list[tuple[str, onnx.GraphProto]] | None = None) -> str:
    import onnx

    arguments = list(node.input)
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH and bodies is not None:
            title = f"G{len(bodies) + 1}"
            bodies.append((f"{title} {attribute.name} of {node.op_type}({', '.join(node.input)})", attribute.g))
            arguments.append(f"{attribute.name}={title}")
        else:
            arguments.append(_attribute(attribute))
    domain = f"[{node.domain}]" if node.domain else ""
    return f"{node.op_type}{domain}({', '.join(arguments)}) -> {', '.join(node.output)}"


def _attribute(attribute: onnx.AttributeProto) -> str:
    import onnx

    if attribute.ref_attr_name:
        return f"{attribute.name}=@{attribute.ref_attr_name}"
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.type == onnx.AttributeProto.FLOAT:
        return f"{attribute.name}={value:1.2f}"
    if attribute.type == onnx.AttributeProto.FLOATS:
        return f"{attribute.name}=[{','.join(f'{each:1.2f}' for each in value)}]"
    if attribute.type == onnx.AttributeProto.INTS:
        return f"{attribute.name}=[{','.join(map(str, value))}]"
    if attribute.type == onnx.AttributeProto.TENSOR:
        array = _array_of(value)
        shown = repr(array.ravel()) if array is not None and array.size <= _SHOWN_ELEMENTS else _tensor(value)
        return f"{attribute.name}={shown}"
    if attribute.type == onnx.AttributeProto.GRAPH:
        return f"{attribute.name}={{{len(value.node)} nodes}}"
    return f"{attribute.name}={value!r}"
