# SPDX-License-Identifier: Apache-2.0
"""A graph's model on an executor: prepared at the first call, with weights as initializers where that is wanted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from parallax import _core
from parallax.model import Model

from ._freeze import FrozenInputs
from .storage import CompiledGraph


class Runner(Protocol):
    """Runs a graph's model: from the graph's inputs (torch tensors and numbers) to the model's outputs."""

    def __call__(self, inputs: Sequence[Any]) -> list[torch.Tensor]: ...


class Engine(Protocol):
    """A model that is ready to run on inputs in the order of its own."""

    def __call__(self, feeds: list[Any], inputs: Sequence[Any]) -> list[torch.Tensor]: ...


class FrozenRunner:
    """Keeps an engine of the model whose weights are initializers; makes another one when a weight changes.

    `make(model)` makes an engine, `feed` a model's inputs of a graph's, `names` are the model's inputs, one for each
    input of the graph ("" where the model has none).
    """

    def __init__(
        self, graph: CompiledGraph, frozen: FrozenInputs, names: Sequence[str],
        feed: Callable[[Sequence[Any]], list[Any]], make: Callable[[Model], Engine], *, watch_numbers: bool = False,
    ) -> None:
        self._graph = graph
        self._frozen = frozen
        self._names = names
        self._feed = feed
        self._make = make
        self._engine: Engine | None = None
        self._kept: list[int] | None = None
        self._watch_numbers = watch_numbers

    def __call__(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        engine = self._engine
        if engine is None or self._frozen.changed(inputs) or (self._watch_numbers and self._has_drifted()):
            engine = self._prepare(inputs)
        feeds = self._feed(inputs)
        if self._kept is not None:
            feeds = [feeds[index] for index in self._kept]
        started = time.perf_counter()
        results = engine(feeds, inputs)
        graph = self._graph
        graph.seconds["run"] += time.perf_counter() - started
        graph.calls += 1
        return results

    def _has_drifted(self) -> bool:
        return self._graph.calls % 100 == 99 and self._frozen.drifted()

    def _prepare(self, inputs: Sequence[Any]) -> Engine:
        started = time.perf_counter()
        graph = self._graph
        self._engine = None  # its memory goes before that of the next one comes
        model = graph.converted_model
        self._kept = None
        graph.frozen = 0
        if self._frozen.positions and self._frozen.freeze(inputs):
            model = self._freeze(model, inputs)
        graph.prepared_model = model
        self._engine = self._make(model)
        graph.seconds["prepare"] += time.perf_counter() - started
        return self._engine

    def _freeze(self, model: Model, inputs: Sequence[Any]) -> Model:
        feeds = dict(zip((name for name in self._names if name), self._feed(inputs)))
        frozen = {self._names[position] for position in self._frozen.positions}
        self._kept = [index for index, name in enumerate(feeds) if name not in frozen]
        self._graph.frozen = len(frozen)
        return model.freeze_inputs({name: feeds[name].detach() for name in frozen})


class SessionEngine:
    """A session that gives torch tensors."""

    def __init__(self, model: Model, executor: str, rewrite: str, observer: Any = None) -> None:
        self._run = make_session(model, executor, rewrite).run
        self._observer = observer

    def __call__(self, feeds: list[Any], inputs: Sequence[Any]) -> list[torch.Tensor]:
        return self._run(feeds, "torch", self._observer)


def make_session(model: Model, executor: str, rewrite: str) -> _core.Session:
    """A session; patterns are for the executors that rewrite graphs."""
    options = {} if executor.startswith("reference") else {"rewrite": rewrite}
    return _core.Session(model.core, executor, options)
