# SPDX-License-Identifier: Apache-2.0
"""Changes to the copy of an ATen graph before its translation: what does nothing goes, what is symbolic is spelled out.

The exporter's translations expect numbers in some arguments that are symbolic in graphs with free shapes: scalars of
`mul.Scalar`, sizes of `split`, strides.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch

from ._symbols import describe

aten = torch.ops.aten
Node = torch.fx.Node
_LAST = 2**63 - 1


def simplify(graph: torch.fx.Graph, results: Sequence[Any]) -> tuple[list[Any], dict[str, str]]:
    """Changes the graph in place; its output node is yet to be made of `results`.

    Returns the results, and the names of removed nodes with those of the nodes that have their values now.
    """
    equal: dict[Node, Node] = {}
    outputs = {r for r in results if isinstance(r, Node)}
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        found = _same_value(node)
        if found is not None and node in outputs:
            if found.op != "call_function" or found in outputs or node.target in _RESHAPES:
                continue  # it stays a value of its own
            outputs.add(found)
        if found is not None:
            _replace(graph, node, found, equal)
        elif node.target in _TENSOR_OVERLOADS:
            _spell_out_scalar(graph, node)
        elif node.target in (aten.split.Tensor, aten.split_with_sizes.default):
            _spell_out_split(graph, node, equal)
        elif node.target == aten.sym_stride.int:
            _replace(graph, node, _stride(graph, node), equal)
    return [equal.get(r, r) if isinstance(r, Node) else r for r in results], {
        old.name: new.name for old, new in equal.items()}


def _replace(graph: torch.fx.Graph, node: Node, found: Node, equal: dict[Node, Node]) -> None:
    node.replace_all_uses_with(found)
    graph.erase_node(node)
    equal[node] = found


# --- what changes nothing -----------------------------------------------------------------------------------------

_RESHAPES = frozenset({
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.expand.default, aten.slice.Tensor,
})
"""Operators whose result is their first argument where both have the same shape."""


def _same_value(node: Node) -> Node | None:
    """An earlier node with the value of this one: a reshape to the same shape, two transpositions in a row."""
    source = node.args[0] if node.args else None
    if not isinstance(source, Node):
        return None
    if node.target in _RESHAPES:
        shape = _shape(node)
        return source if shape is not None and _shape(source) == shape else None
    outer, inner = _order(node), _order(source)
    if outer is None or inner is None or [inner[axis] for axis in outer] != list(range(len(outer))):
        return None
    origin = source.args[0]
    return origin if isinstance(origin, Node) else None


def _shape(node: Node) -> tuple[Any, ...] | None:
    """The traced shape, in a form whose comparison asks nothing of the tracer; None where it is unknown."""
    value = node.meta.get("val")
    return tuple(describe(size) for size in value.shape) if isinstance(value, torch.Tensor) else None


def _order(node: Node) -> list[int] | None:
    """The order of axes that `permute`, `transpose` or `t` makes; None for other operators."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or node.kwargs:
        return None
    axes = list(range(value.dim()))
    arguments: Any = node.args
    if node.target == aten.permute.default:
        return [axis % len(axes) for axis in arguments[1]]
    if node.target == aten.t.default:
        return axes[::-1]
    if node.target == aten.transpose.int:
        first, second = arguments[1], arguments[2]
        axes[first], axes[second] = axes[second], axes[first]
        return axes
    return None


# --- what is symbolic ---------------------------------------------------------------------------------------------

_TENSOR_OVERLOADS: dict[Any, Any] = {
    aten.mul.Scalar: aten.mul.Tensor, aten.add.Scalar: aten.add.Tensor, aten.sub.Scalar: aten.sub.Tensor,
    aten.div.Scalar: aten.div.Tensor, aten.remainder.Scalar: aten.remainder.Tensor,
    aten.pow.Tensor_Scalar: aten.pow.Tensor_Tensor,
}


def _spell_out_scalar(graph: torch.fx.Graph, node: Node) -> None:
    """A symbolic scalar becomes a tensor of the type that the operator computes in."""
    if len(node.args) < 2 or not isinstance(node.args[1], Node):
        return
    value = node.meta["val"]
    with graph.inserting_before(node):
        scalar = graph.call_function(aten.scalar_tensor.default, (node.args[1],), {"dtype": value.dtype})
    scalar.meta = {**node.meta, "val": value.new_empty(())}
    node.args = (node.args[0], scalar, *node.args[2:])
    node.target = _TENSOR_OVERLOADS[node.target]


def _spell_out_split(graph: torch.fx.Graph, node: Node, equal: dict[Node, Node]) -> None:
    """A split along an axis of unknown size, or into parts of one, becomes slices."""
    arguments: Any = node.args
    source, sizes = arguments[0], arguments[1]
    dim = arguments[2] if len(arguments) > 2 else node.kwargs.get("dim", 0)
    is_known = isinstance(source.meta["val"].shape[dim], int)
    listed = sizes if isinstance(sizes, (list, tuple)) else [sizes]
    if is_known and not any(isinstance(size, Node) for size in listed):
        return
    parts = node.meta["val"]
    limits: list[Any] = [0]
    with graph.inserting_before(node):
        for number in range(len(parts)):
            size = sizes[number] if isinstance(sizes, (list, tuple)) else sizes
            limits.append(_LAST if number == len(parts) - 1 else _add(graph, limits[-1], size))
        slices = [
            graph.call_function(aten.slice.Tensor, (source, dim, first, last))
            for first, last in zip(limits, limits[1:])]
    for made, part in zip(slices, parts):
        made.meta = {**node.meta, "val": part}
    for user in list(node.users):
        _replace(graph, user, slices[user.args[1]], equal)  # type: ignore[index]
    graph.erase_node(node)


def _add(graph: torch.fx.Graph, first: Any, second: Any) -> Any:
    return _arithmetic(graph, operator.add, first, second)


def _arithmetic(graph: torch.fx.Graph, function: Any, first: Any, second: Any) -> Any:
    """A number or a node that computes one, with its traced value."""
    values = [x.meta["val"] if isinstance(x, Node) else x for x in (first, second)]
    if not isinstance(first, Node) and not isinstance(second, Node):
        return function(first, second)
    made = graph.call_function(function, (first, second))
    made.meta["val"] = function(*values)
    return made


def _stride(graph: torch.fx.Graph, node: Node) -> Node:
    """A stride from sizes: an input or a size that equals it, else the product of sizes that it is.

    Raises ValueError where it is not one.
    """
    wanted = describe(node.meta["val"])
    other: Node
    for other in graph.nodes:
        if other is node:
            break
        if isinstance(other.meta.get("val"), torch.SymInt) and describe(other.meta["val"]) == wanted:
            return other
    source, axis = node.args[0], node.args[1]
    assert isinstance(source, Node) and isinstance(axis, int)
    value = source.meta["val"]
    product: Any = 1
    with graph.inserting_before(node):
        for later in sorted(range(value.dim()), key=lambda a: -a):
            if later <= axis % value.dim():
                break
            size: Any = value.shape[later]
            if isinstance(size, torch.SymInt):
                size = graph.call_function(aten.sym_size.int, (source, later))
                size.meta["val"] = value.shape[later]
            product = _arithmetic(graph, operator.mul, product, size)
    if not isinstance(product, Node) or describe(product.meta["val"]) != wanted:
        raise ValueError(f"the stride {wanted} of {source.name} is not a product of its sizes: it is not contiguous")
    return product
