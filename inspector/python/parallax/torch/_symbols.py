# SPDX-License-Identifier: Apache-2.0
"""Sizes that are known only at the call: their symbols, bound from the inputs, and expressions of them.

A graph with free shapes writes its sizes as expressions (`2*s77 + 1`). A symbol takes its value from an integer input
or from a dimension of a tensor input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ._private import expression

Size = int | torch.SymInt
Bindings = dict[str, int]


def describe(size: Any) -> int | str:
    """A size as it is shown to a user: a number, or the text of its expression."""
    known = expression(size)
    return int(known) if isinstance(known, int) or getattr(known, "is_Integer", False) else str(known)


class Symbols:
    """The sources of the values of a graph's symbols at a call.

    `placeholders` are the traced values (`meta["val"]`) of the graph's inputs in order.
    """

    def __init__(self, placeholders: Sequence[Any]) -> None:
        self._sources: dict[str, tuple[int, int | None]] = {}
        for position, value in enumerate(placeholders):
            if isinstance(value, torch.SymInt):
                self._add(value, position, None, replace=True)
            elif isinstance(value, torch.Tensor):
                for axis, size in enumerate(value.shape):
                    self._add(size, position, axis, replace=False)

    def _add(self, size: Any, position: int, axis: int | None, *, replace: bool) -> None:
        known = expression(size)
        if getattr(known, "is_Symbol", False) and (replace or str(known) not in self._sources):
            self._sources[str(known)] = (position, axis)

    @property
    def names(self) -> tuple[str, ...]:
        """The symbols that the inputs give a value to."""
        return tuple(self._sources)

    def bind(self, inputs: Sequence[Any]) -> Bindings:
        """The value of each symbol for one call's inputs (tensors and integers, one for each placeholder)."""
        bound: Bindings = {}
        for name, (position, axis) in self._sources.items():
            value = inputs[position]
            bound[name] = int(value) if axis is None else int(value.shape[axis])
        return bound

    def evaluator(self, size: Any) -> Callable[[Mapping[str, int]], int]:
        """A function from bindings to the value of `size`; ValueError where a symbol has no source among the inputs."""
        known = expression(size)
        symbols = sorted(getattr(known, "free_symbols", ()), key=str)
        if not symbols:
            constant = int(known)
            return lambda bindings: constant
        unbound = [str(s) for s in symbols if str(s) not in self._sources]
        if unbound:
            raise ValueError(f"the size {known} has the symbol {unbound[0]}; it must come from an input of the graph. "
                             "A size that depends on values cannot be computed before the graph runs.")
        names = [str(s) for s in symbols]
        if len(names) == 1 and getattr(known, "is_Symbol", False):
            only = names[0]
            return lambda bindings: bindings[only]
        return lambda bindings: int(known.subs({s: bindings[n] for s, n in zip(symbols, names)}))
