# SPDX-License-Identifier: Apache-2.0
"""Weights of inference graphs as initializers: packed once, and noticed when they change.

A graph of torch.compile has its weights as inputs. Where no gradient is wanted they become initializers that view
torch's memory, so that products can pack them and constants fold. Each call compares their addresses and version
counters; edits through `.data` leave both as they are and are not seen (`FrozenInputs.drifted` looks at the numbers).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_STRIKES = 3
"""So many changes, each soon after the weights were frozen, and they are inputs from then on."""
_SOON = 8  # calls


def static_inputs(gm: torch.fx.GraphModule) -> frozenset[str]:
    """Names of an inference graph's inputs that are weights or buffers and that the graph does not change.

    aot_autograd says so while it compiles; outside of it there are none.
    """
    context = torch._guards.TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    if metadata is None:
        return frozenset()
    placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
    changed = {p for p, info in enumerate(metadata.input_info) if info.mutates_data or info.mutates_metadata}
    return frozenset(
        placeholders[position].name for position in metadata.static_input_indices
        if position < len(placeholders) and position not in changed
        and isinstance(placeholders[position].meta.get("val"), torch.Tensor))


class FrozenInputs:
    """The inputs of a graph that are initializers, as they were when they were frozen."""

    def __init__(self, positions: Sequence[int]) -> None:
        self.positions = tuple(positions)
        self._tensors: list[torch.Tensor] = []
        self._keys: list[tuple[int, int]] = []
        self._sums: list[float] = []
        self._calls = 0
        self._strikes = 0

    def freeze(self, inputs: Sequence[Any]) -> bool:
        """Takes the values of a call; False where weights change too often, or cannot be watched, to be worth it."""
        tensors = [inputs[position] for position in self.positions]
        if self._keys and self._calls < _SOON:
            self._strikes += 1
        if self._strikes >= _STRIKES or any(tensor.is_inference() for tensor in tensors):
            self.positions = ()
            return False
        self._tensors = tensors
        self._keys = [_key(tensor) for tensor in tensors]
        self._sums = [_sum(tensor) for tensor in tensors]
        self._calls = 0
        return True

    def changed(self, inputs: Sequence[Any]) -> bool:
        """True where a weight is another one, or has been written to, since it was frozen."""
        self._calls += 1
        for position, (address, version) in zip(self.positions, self._keys):
            tensor = inputs[position]
            if tensor._version != version or tensor.data_ptr() != address:
                return True
        return False

    def drifted(self) -> bool:
        """True where the numbers changed though the version counters did not: an edit through `.data`."""
        return any(_sum(tensor) != known for tensor, known in zip(self._tensors, self._sums))


def _key(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor._version


def _sum(tensor: torch.Tensor) -> float:
    """The sum of at most some 4096 elements, spread evenly, and of the first and last."""
    if tensor.numel() == 0:
        return 0.0
    flat = torch.view_as_real(tensor.detach()).reshape(-1) if tensor.is_complex() else tensor.detach().reshape(-1)
    step = max(1, flat.numel() // 4096)
    total = float(flat[::step].double().sum()) + float(flat[-1])
    return 0.0 if total != total else total
