# SPDX-License-Identifier: Apache-2.0
"""The work of torch around a model at each call: values that need no kernel, and results in the form that eager has.

Views, integers, None, and inputs that are passed through are not computed by the model: torch makes them, so that they
share memory as eager's do. The model computes the rest, each value once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ._converted import Input
from ._symbols import Symbols

_aten = torch.ops.aten
_VIEWS = frozenset({
    _aten.alias.default, _aten.as_strided.default, _aten.detach.default, _aten.diagonal.default, _aten.expand.default,
    _aten.permute.default, _aten.select.int, _aten.slice.Tensor, _aten.squeeze.default, _aten.squeeze.dim,
    _aten.squeeze.dims, _aten.t.default, _aten.transpose.int, _aten.unsqueeze.default, _aten.view.default,
    _aten._unsafe_view.default, _aten.view_as_complex.default, _aten.view_as_real.default,
})
"""Operators whose result is the memory of their first argument."""
_SPLITS = frozenset({
    _aten.chunk.default, _aten.split.Tensor, _aten.split_with_sizes.default, _aten.tensor_split.sections,
    _aten.unbind.int,
})
"""Operators whose results are parts of the memory of their first argument."""

Finish = Callable[[Sequence[Any], Sequence[torch.Tensor]], list[Any]]


@dataclass(frozen=True)
class Split:
    """A graph cut in two: `core` computes `computed` (nodes, in the order of its outputs), `finish` makes the outputs.

    `core` has the placeholders of the graph. `finish(inputs, results)` takes the inputs of the graph and the values of
    `computed` with the strides that they had when traced; it is None where the results are the outputs.
    """

    core: torch.fx.GraphModule
    computed: tuple[torch.fx.Node, ...]
    finish: Finish | None


def split(gm: torch.fx.GraphModule) -> Split:
    """Takes out of the graph what torch makes without computing; `gm` is not changed."""
    outputs = outputs_of(gm.graph)
    maker = _FinishMaker(gm)
    made = [maker.output(value) for value in outputs]
    if not maker.computed:  # nothing to run; the graph is still converted as it stands, to be looked at
        return Split(gm, (), maker.function(made))
    core = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    core.graph_copy(gm.graph, copies)
    results = core.output(tuple(copies[node] for node in maker.computed))
    results.meta = {}
    core.eliminate_dead_code()
    is_plain = len(outputs) == len(maker.computed) and all(a is b for a, b in zip(outputs, maker.computed))
    return Split(torch.fx.GraphModule(gm, core), tuple(maker.computed), None if is_plain else maker.function(made))


def outputs_of(graph: torch.fx.Graph) -> list[Any]:
    """The graph's outputs: nodes, numbers and None, in order."""
    results = next(node for node in reversed(graph.nodes) if node.op == "output").args[0]
    return list(results) if isinstance(results, (tuple, list)) else [results]


class _FinishMaker:
    """Builds the function that makes a graph's outputs from its inputs and from the values that are computed."""

    def __init__(self, gm: torch.fx.GraphModule) -> None:
        placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
        self.computed: list[torch.fx.Node] = []
        self._positions = {node: position for position, node in enumerate(placeholders)}
        self._symbols = Symbols([node.meta.get("val") for node in placeholders])
        self._graph = torch.fx.Graph()
        self._inputs = self._graph.placeholder("inputs")
        self._results = self._graph.placeholder("results")
        self._bindings: torch.fx.Node | None = None
        self._made: dict[torch.fx.Node, torch.fx.Node] = {}

    def output(self, value: Any) -> Any:
        """An output of the graph, as a value of the function's."""
        if not isinstance(value, torch.fx.Node):
            return value
        size = self._size(value)
        return self._tensor(value) if size is None else size

    def function(self, outputs: Sequence[Any]) -> Finish:
        self._graph.output(list(outputs))
        self._graph.eliminate_dead_code()
        forward: Finish = torch.fx.GraphModule(torch.nn.Module(), self._graph).forward
        return forward

    def _tensor(self, node: torch.fx.Node) -> torch.fx.Node:
        if node not in self._made:
            self._made[node] = self._input(node) or self._view(node) or self._result(node)
        return self._made[node]

    def _input(self, node: torch.fx.Node) -> torch.fx.Node | None:
        position = self._positions.get(node)
        return None if position is None else self._graph.call_function(operator.getitem, (self._inputs, position))

    def _result(self, node: torch.fx.Node) -> torch.fx.Node:
        if node not in self.computed:
            self.computed.append(node)
        return self._graph.call_function(operator.getitem, (self._results, self.computed.index(node)))

    def _view(self, node: torch.fx.Node) -> torch.fx.Node | None:
        """A view of another value; a part of a split one, too."""
        if node.op != "call_function" or not node.args or not isinstance(node.args[0], torch.fx.Node):
            return None
        if node.target is operator.getitem and node.args[0].target in _SPLITS:
            parts = self._made.get(node.args[0]) or self._call(node.args[0])
            return None if parts is None else self._graph.call_function(operator.getitem, (parts, node.args[1]))
        return self._call(node) if node.target in _VIEWS else None

    def _call(self, node: torch.fx.Node) -> torch.fx.Node | None:
        """The operator on the memory of its first argument; None where another argument is not known beforehand."""
        sizes: dict[torch.fx.Node, Any] = {}
        for argument in node.all_input_nodes:
            if argument is node.args[0]:
                continue
            sizes[argument] = self._size(argument)
            if sizes[argument] is None:
                return None
        first = node.args[0]
        assert isinstance(first, torch.fx.Node)
        base = self._tensor(first)
        arguments = torch.fx.map_arg(node.args[1:], lambda n: sizes[n])
        keywords = torch.fx.map_arg(node.kwargs, lambda n: sizes[n])
        assert callable(node.target)
        self._made[node] = self._graph.call_function(node.target, (base, *arguments), dict(keywords))
        return self._made[node]

    def _size(self, node: torch.fx.Node) -> Any:
        """A number that is known before the model runs; None for another value."""
        value = node.meta.get("val")
        if not isinstance(value, torch.SymInt):
            return None
        position = self._positions.get(node)
        if position is not None:
            return self._graph.call_function(operator.getitem, (self._inputs, position))
        try:
            evaluate = self._symbols.evaluator(value)
        except ValueError:  # the size depends on values: the model computes it
            return None
        if self._bindings is None:
            with self._graph.inserting_after(self._results):
                self._bindings = self._graph.call_function(self._symbols.bind, (self._inputs,))
        return self._graph.call_function(evaluate, (self._bindings,))


# ---- Inputs ----

def feeder(inputs: Sequence[Input]) -> Callable[[Sequence[Any]], list[Any]]:
    """A function from the graph's inputs to the model's: tensors as they are, numbers as arrays.

    `inputs` are those of the graph in order; "absent" ones have no input of the model. The results share memory.
    """
    plain = [p for p, spec in enumerate(inputs) if spec.kind == "tensor" and not _is_complex(spec)]
    if len(plain) == len(inputs):
        return _feed_tensors
    makers = [(position, _maker(spec)) for position, spec in enumerate(inputs) if spec.kind != "absent"]
    return lambda values: [make(values[position]) for position, make in makers]


def _feed_tensors(values: Sequence[Any]) -> list[Any]:
    return [value.resolve_neg() if value.is_neg() else value for value in values]


def _maker(spec: Input) -> Callable[[Any], Any]:
    if spec.kind != "tensor":
        dtype = {"size": np.int64, "float": np.float32, "bool": np.bool_}[spec.kind]
        return lambda value: np.asarray(value, dtype)
    if _is_complex(spec):
        return lambda value: torch.view_as_real(value.resolve_conj())
    return lambda value: value.resolve_neg() if value.is_neg() else value


def _is_complex(spec: Input) -> bool:
    return spec.dtype is not None and spec.dtype.is_complex


# ---- Results ----

def restorer(
    computed: Sequence[torch.fx.Node], *, is_double: bool = False,
) -> Callable[[list[Any]], list[Any]] | None:
    """A function that gives the model's results, dense and row-major, the form that the traced values have.

    None where there is nothing to do. The function changes the list that it is given. `is_double`: floats come in
    float64, as executor `reference:double` has them.
    """
    found = [_step(node.meta.get("val")) for node in computed]
    if is_double:
        found = [_narrowing(node.meta.get("val"), step) for node, step in zip(computed, found)]
    steps = [(index, step) for index, step in enumerate(found) if step is not None]
    if not steps:
        return None

    def restore(results: list[Any]) -> list[Any]:
        for index, step in steps:
            results[index] = step(results[index])
        return results

    return restore


def _step(traced: Any) -> Callable[[Any], Any] | None:
    if not isinstance(traced, torch.Tensor):
        return torch.Tensor.item
    order = memory_order(traced)
    strides = _unusual_strides(traced)
    if traced.dtype.is_complex:
        return lambda result: _arranged(torch.view_as_complex(result), order, strides)
    return None if order is None and strides is None else lambda result: _arranged(result, order, strides)


def _narrowing(traced: Any, step: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    if not isinstance(traced, torch.Tensor):
        return step
    dtype = traced.dtype.to_real() if traced.dtype.is_complex else traced.dtype
    return lambda result: result.to(dtype) if step is None else step(result.to(dtype))


def _unusual_strides(traced: torch.Tensor) -> tuple[int, ...] | None:
    """The strides, where they are known and not those of row-major memory."""
    strides, shape = traced.stride(), traced.shape
    if not all(isinstance(number, int) for number in (*strides, *shape)):
        return None
    expected, dense = 1, []
    for size in reversed(shape):
        dense.append(expected)
        expected *= max(size, 1)
    return None if strides == tuple(reversed(dense)) else strides


def memory_order(traced: torch.Tensor) -> tuple[int, ...] | None:
    """The axes of a traced tensor from the largest stride to the smallest; None where that is row-major.

    A traced value that was computed is dense: its order and its sizes give its strides.
    """
    if traced.is_contiguous():
        return None
    strides = [int(s.node.hint if isinstance(s, torch.SymInt) else s) for s in traced.stride()]
    order = tuple(sorted(range(traced.dim()), key=lambda axis: (-strides[axis], axis)))
    return None if order == tuple(range(traced.dim())) else order


def _arranged(
    result: torch.Tensor, order: tuple[int, ...] | None, strides: tuple[int, ...] | None,
) -> torch.Tensor:
    if order is not None:
        back = [0] * len(order)
        for position, axis in enumerate(order):
            back[axis] = position
        result = result.permute(order).contiguous().permute(back)
    if strides is None or result.stride() == strides:
        return result
    if all(size < 2 or a == b for size, a, b in zip(result.shape, result.stride(), strides)) or not result.numel():
        return result.as_strided(result.shape, strides)  # axes of one element may have any
    if 0 in strides:  # a value that was computed and whose elements share memory: eager's may not be written to
        return result
    return result.new_empty_strided(result.shape, strides).copy_(result)
