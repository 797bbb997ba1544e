# SPDX-License-Identifier: Apache-2.0
"""Random operators of a graph as inputs: torch draws their numbers before the graph runs, in the order of the graph.

So `torch.manual_seed` governs them and the numbers equal eager's. `lift_randomness` replaces each random operator
whose numbers depend on shapes and constants alone (`rand`, `randn`, dropout masks, `bernoulli`, `normal`, ...) by a new
input; where they depend on computed values (`multinomial`, `poisson`), it refuses by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ._fx import ConversionError, UnsupportedOperator
from ._private import fake_mode_of
from ._program import module_path, source_line
from ._symbols import Symbols

__all__ = ["Draw", "Lifted", "lift_randomness"]

aten = torch.ops.aten
Bindings = Mapping[str, int]
Maker = Callable[[Bindings], Any]


@dataclass(frozen=True)
class Draw:
    """One additional input: `operator` is called with arguments made from the sizes of the call; of a tensor argument
    the shape and strides alone are relevant. `select` takes one of several results.
    """

    name: str
    operator: Any
    arguments: tuple[Maker, ...]
    keywords: tuple[tuple[str, Any], ...]
    select: int | None = None

    def __call__(self, bindings: Bindings) -> torch.Tensor:
        result = self.operator(*(make(bindings) for make in self.arguments), **dict(self.keywords))
        drawn: torch.Tensor = result if self.select is None else result[self.select]
        return drawn


@dataclass(frozen=True)
class Lifted:
    """A graph without random operators; `draws` are its inputs after the original ones, in order.

    A call is `graph_module(*inputs, *lifted.draw(inputs))`.
    """

    graph_module: torch.fx.GraphModule
    draws: tuple[Draw, ...]
    symbols: Symbols

    def draw(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """The random tensors of one call, drawn from torch's generators; `inputs` are the original graph's."""
        if not self.draws:
            return []
        with torch.no_grad():
            bindings = self.symbols.bind(inputs)
            return [draw(bindings) for draw in self.draws]


def lift_randomness(gm: torch.fx.GraphModule) -> Lifted:
    """The graph with its random operators replaced by inputs; `gm` is not changed.

    Raises `ConversionError` for operators whose numbers depend on values that the graph computes.
    """
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    symbols = Symbols([n.meta.get("val") for n in placeholders])
    if not any(_is_random(n) for n in gm.graph.nodes):
        return Lifted(gm, (), symbols)
    graph = torch.fx.Graph()
    output = graph.graph_copy(gm.graph, {})
    graph.output(output)
    lifter = _Lifter(graph, fake_mode_of(gm), symbols)
    for node in list(graph.nodes):
        if _is_random(node):
            lifter.lift(node)
    graph.lint()
    return Lifted(torch.fx.GraphModule(gm, graph), tuple(lifter.draws), symbols)


def _is_random(node: torch.fx.Node) -> bool:
    """True where torch marks the operator as drawing numbers, and this call of it draws some."""
    if node.op != "call_function" or torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    schema = getattr(node.target, "_schema", None)
    for position, argument in enumerate(schema.arguments if schema is not None else ()):
        default = argument.default_value if argument.has_default_value() else None
        value = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name, default)
        if argument.name == "dropout_p" and value == 0.0:
            return False
        if argument.name in ("train", "training") and value is False:
            return False
    return True


class _Lifter:
    """Replaces random nodes of a graph, one after the other."""

    def __init__(self, graph: torch.fx.Graph, mode: Any, symbols: Symbols) -> None:
        self._graph = graph
        self._mode = mode
        self._symbols = symbols
        self._last = next((n for n in reversed(list(graph.nodes)) if n.op == "placeholder"), None)
        self.draws: list[Draw] = []

    def lift(self, node: torch.fx.Node) -> None:
        method = _METHODS.get(node.target)
        if method is None:
            raise _refusal(node, "its random numbers depend on values that the graph computes")
        try:
            method(self, node)
        except ValueError as error:  # a size without a source among the inputs
            raise _refusal(node, str(error)) from error

    # Each of these replaces one kind of node.

    def itself(self, node: torch.fx.Node) -> None:
        """The operator is drawn as it stands; of a tensor argument the shape alone is relevant."""
        value = self._input(node, node.target, node.args, node.kwargs, node.meta["val"])
        node.replace_all_uses_with(value)
        self._graph.erase_node(node)

    def dropout(self, node: torch.fx.Node) -> None:
        """native_dropout(x, p, train) is (x · mask / (1 - p), mask)."""
        x, p = node.args[0], float(node.args[1])  # type: ignore[arg-type]
        assert isinstance(x, torch.fx.Node)
        mask = self._input(node, aten.native_dropout.default, (x, p, True), {}, node.meta["val"][1], select=1)
        with self._graph.inserting_before(node):
            scaled = self._call(node, aten._to_copy.default, (mask,), {"dtype": node.meta["val"][0].dtype})
            if p < 1.0:
                scaled = self._call(node, aten.div.Scalar, (scaled, 1.0 - p), {})
            dropped = self._call(node, aten.mul.Tensor, (x, scaled), {})
        for user in list(node.users):
            user.replace_all_uses_with(dropped if user.args[1] == 0 else mask)
            self._graph.erase_node(user)
        self._graph.erase_node(node)

    def bernoulli(self, node: torch.fx.Node) -> None:
        """bernoulli(p) is 1 where a uniform number is below p."""
        p = node.args[0]
        assert isinstance(p, torch.fx.Node)
        uniform = self._input(node, aten.rand_like.default, (p,), {}, node.meta["val"])
        with self._graph.inserting_before(node):
            below = self._call(node, aten.lt.Tensor, (uniform, p), {})
            result = self._call(node, aten._to_copy.default, (below,), {"dtype": node.meta["val"].dtype})
        node.replace_all_uses_with(result)
        self._graph.erase_node(node)

    def normal(self, node: torch.fx.Node) -> None:
        """normal(mean, std) is mean + std · z with z of the standard normal distribution."""
        mean, std = node.args[0], node.args[1] if len(node.args) > 1 else 1.0
        traced = node.meta["val"]
        standard = self._input(
            node, aten.randn.default, (list(traced.shape),), {"dtype": traced.dtype, "device": traced.device}, traced)
        with self._graph.inserting_before(node):
            scaled = self._multiply(node, standard, std)
            result = self._call(node, aten.add.Tensor, (scaled, mean), {})
        node.replace_all_uses_with(result)
        self._graph.erase_node(node)

    def _multiply(self, node: torch.fx.Node, x: torch.fx.Node, factor: Any) -> torch.fx.Node:
        target = aten.mul.Tensor if isinstance(factor, torch.fx.Node) else aten.mul.Scalar
        return self._call(node, target, (x, factor), {})

    # Helpers of the above.

    def _input(
        self, node: torch.fx.Node, operator: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], traced: Any,
        select: int | None = None,
    ) -> torch.fx.Node:
        """A new placeholder, after all others, with the draw that feeds it."""
        anchor = self._graph.inserting_after(self._last) if self._last else self._graph.inserting_before()
        with anchor:
            placeholder = self._graph.placeholder(f"random_{len(self.draws)}")
        placeholder.meta["val"] = traced
        self._last = placeholder
        self.draws.append(Draw(
            placeholder.name, operator, tuple(self._maker(a) for a in arguments),
            tuple((k, v) for k, v in keywords.items() if v is not None and k != "pin_memory"), select))
        return placeholder

    def _maker(self, argument: Any) -> Maker:
        """A function that makes an argument from the sizes of a call."""
        if isinstance(argument, torch.fx.Node):
            argument = argument.meta["val"]
        if isinstance(argument, torch.Tensor):
            sizes = [self._symbols.evaluator(s) for s in argument.shape]
            strides = [self._symbols.evaluator(s) for s in argument.stride()]
            dtype, device = argument.dtype, argument.device
            return lambda bindings: torch.empty_strided(
                [s(bindings) for s in sizes], [s(bindings) for s in strides], dtype=dtype, device=device).zero_()
        if isinstance(argument, torch.SymInt):
            return self._symbols.evaluator(argument)
        if isinstance(argument, (list, tuple)):
            parts = [self._maker(a) for a in argument]
            return lambda bindings: [part(bindings) for part in parts]
        return lambda bindings: argument

    def _call(
        self, node: torch.fx.Node, target: Any, arguments: tuple[Any, ...], keywords: dict[str, Any],
    ) -> torch.fx.Node:
        """A node before `node` that has its module and line, and its own traced value."""
        created = self._graph.call_function(target, arguments, keywords)
        created.meta = dict(node.meta)
        known = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in arguments]
        with self._mode:
            created.meta["val"] = target(*known, **keywords)
        return created


def _refusal(node: torch.fx.Node, reason: str) -> ConversionError:
    found = UnsupportedOperator(node.name, str(node.target), module_path(node), source_line(node), reason)
    return ConversionError(
        f"the graph draws random numbers that torch cannot draw before it runs:\n  {found}\n"
        'With randomness="executor" the executor draws them (other numbers than eager\'s).', [found])


_DRAWN = (
    aten.rand.default, aten.randn.default, aten.randint.default, aten.randint.low, aten.randperm.default,
    aten.rand_like.default, aten.randn_like.default, aten.randint_like.default, aten.randint_like.low_dtype,
    aten.bernoulli.p, aten.uniform.default, aten.normal_functional.default, aten.exponential.default,
    aten.geometric.default, aten.cauchy.default, aten.log_normal.default, aten.normal.float_float,
)
_METHODS: dict[Any, Callable[[_Lifter, torch.fx.Node], None]] = {
    **{operator: _Lifter.itself for operator in _DRAWN},
    aten.native_dropout.default: _Lifter.dropout,
    aten.bernoulli.default: _Lifter.bernoulli,
    aten.normal.Tensor_Tensor: _Lifter.normal,
    aten.normal.Tensor_float: _Lifter.normal,
    aten.normal.float_Tensor: _Lifter.normal,
}
