# SPDX-License-Identifier: Apache-2.0
"""`fallback="eager"`: operators that have no conversion are run by torch, the parts between them by the executor."""

from __future__ import annotations

import operator
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from . import _fx
from ._compile import Boxed, Origin, compile_whole
from ._options import Options

_MOST_ROUNDS = 50
"""Each round learns of at least one more node; a graph that needs more is given to torch as a whole."""


def compile_with_fallback(
    gm: torch.fx.GraphModule, options: Options, origin: Origin, for_torch: frozenset[str],
) -> Boxed:
    """The graph as one model where it converts, else in parts; torch runs the nodes named `for_torch` in any case."""
    eager = _unsupported_in(gm, options) | for_torch
    for _ in range(_MOST_ROUNDS):
        try:
            if not eager:
                return compile_whole(gm, options, origin)
            return _compile_parts(gm, eager, options, origin)
        except _fx.ConversionError as error:
            found = _nodes_of(error, gm) - eager
            if not found:
                raise
            eager |= found
    raise _fx.ConversionError(f"the graph has more than {_MOST_ROUNDS} kinds of operators that cannot be converted")


def _unsupported_in(gm: torch.fx.GraphModule, options: Options) -> set[str]:
    """Names of the nodes that neither a translation nor a decomposition makes convertible."""
    from ._decompositions import decompositions

    missing = _fx.unsupported_operators(gm, options.opset)
    known = {str(target) for target in decompositions("default")} if missing else set()
    return {node.node for node in missing if node.operator not in known}


def _nodes_of(error: _fx.ConversionError, gm: torch.fx.GraphModule) -> set[str]:
    """The nodes of the graph that a failed conversion names; by operator where it was decomposed first."""
    names = {node.name for node in gm.graph.nodes}
    direct = {found.node for found in error.operators} & names
    if direct:
        return direct
    missing = {node.node for node in _fx.unsupported_operators(gm)}
    operators = {found.operator for found in error.operators}
    return missing | {node.name for node in gm.graph.nodes if str(node.target) in operators}


class _Convertible(OperatorSupportBase):
    """Nodes that may be part of a model: operators but those in `eager` and what takes their results apart."""

    def __init__(self, eager: set[str]) -> None:
        self._eager = eager

    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        if node.op != "call_function" or node.name in self._eager:
            return False
        source = node.args[0] if node.args and node.target is operator.getitem else None
        return not isinstance(source, torch.fx.Node) or source.name not in self._eager


def _compile_parts(gm: torch.fx.GraphModule, eager: set[str], options: Options, origin: Origin) -> Boxed:
    counts = Counter(str(node.target) for node in gm.graph.nodes if node.name in eager)
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    graph.output(graph.graph_copy(gm.graph, copies))
    copy = torch.fx.GraphModule(gm, graph)
    renamed = {old.name: new.name for old, new in copies.items()}
    support = _Convertible({renamed[name] for name in eager if name in renamed})
    partitioner = CapabilityBasedPartitioner(copy, support, allows_single_node_partition=True)
    fused = partitioner.fuse_partitions(partitioner.propose_partitions())
    compiled = [
        (name, compile_whole(part, options, origin, counts)) for name, part in fused.named_children()
        if isinstance(part, torch.fx.GraphModule)]
    for name, function in compiled:
        setattr(fused, name, _Part(function))
    _warn_once(counts)
    return _boxed(fused)


class _Part(torch.nn.Module):
    """A compiled part in the graph that torch runs."""

    def __init__(self, function: Callable[[list[Any]], list[Any]]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *inputs: Any) -> Any:
        results = self._function(list(inputs))
        return results[0] if len(results) == 1 else tuple(results)


def _boxed(fused: torch.fx.GraphModule) -> Boxed:
    def call(boxed: list[Any]) -> list[Any]:
        inputs: Sequence[Any] = list(boxed)
        boxed.clear()
        return list(fused(*inputs))

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


_warned: set[str] = set()


def _warn_once(counts: Counter[str]) -> None:
    new = {name: count for name, count in counts.items() if name not in _warned}
    if not new:
        return
    _warned.update(new)
    listed = ", ".join(f"{name} ({count} node{'s' if count > 1 else ''})" for name, count in sorted(new.items()))
    warnings.warn(f"torch runs operators that have no conversion to ONNX: {listed}. They are listed in "
                  "CompiledGraph.fallback_ops; the option fallback=\"error\" refuses them.", stacklevel=2)
