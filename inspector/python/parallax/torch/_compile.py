# SPDX-License-Identifier: Apache-2.0
"""From an ATen graph to a function that runs it: conversion, what torch does around the model, the record of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

import parallax
from parallax import _files
from parallax.model import Model

from . import _fx
from ._calls import Finish, feeder, outputs_of, restorer, split
from ._converted import Converted
from ._decompositions import decompositions
from ._freeze import FrozenInputs, static_inputs
from ._options import DebugOptions, Options
from ._random import Lifted, lift_randomness
from ._sessions import Engine, FrozenRunner, Runner, SessionEngine
from .storage import CompiledGraph, Kind, dump_path

Boxed = Callable[[list[Any]], list[Any]]


def kind_of(gm: torch.fx.GraphModule) -> Kind:
    """Which graph of aot_autograd's this is, by the names that it gives to inputs."""
    names = [node.name for node in gm.graph.nodes if node.op == "placeholder"]
    if any(name.startswith("tangents_") for name in names):
        return "backward"
    return "forward" if any(name.startswith("primals_") for name in names) else "inference"


@dataclass(frozen=True)
class Origin:
    """Facts about a graph besides its nodes: its number, the reason of its end, and the inputs that may be frozen."""

    kind: Kind
    break_reason: str = ""
    static: frozenset[str] = frozenset()


def table_of(options: Options) -> dict[Any, Callable[..., Any]]:
    """The decompositions with which aot_autograd traces."""
    table = options.decompositions
    return dict(_named_table(table) if isinstance(table, str) else table)


@lru_cache(maxsize=3)
def _named_table(name: str) -> dict[Any, Callable[..., Any]]:
    return decompositions(name)


def compile_graph(gm: torch.fx.GraphModule, options: Options, kind: Kind, break_reason: str = "") -> Boxed:
    """The graph as a function that takes a list of inputs, which it empties, and returns a list of outputs."""
    origin = Origin(kind, break_reason, static_inputs(gm) if kind == "inference" else frozenset())
    if options.randomness == "executor":
        return _compile(gm, options, origin)
    try:
        lifted = lift_randomness(gm)
    except _fx.ConversionError:
        if options.fallback == "error":
            raise
        return _compile(gm, options, origin, random_operators(gm))
    return _drawing(_compile(lifted.graph_module, options, origin), lifted)


def _compile(
    gm: torch.fx.GraphModule, options: Options, origin: Origin, eager: frozenset[str] = frozenset(),
) -> Boxed:
    if options.fallback == "error":
        return compile_whole(gm, options, origin)
    from ._fallback import compile_with_fallback

    return compile_with_fallback(gm, options, origin, eager)


def _drawing(call: Boxed, lifted: Lifted) -> Boxed:
    """The call with random numbers that torch draws before it, as inputs after the others."""
    if not lifted.draws:
        return call

    def draw_and_call(boxed: list[Any]) -> list[Any]:
        boxed.extend(lifted.draw(boxed))
        return call(boxed)

    draw_and_call._boxed_call = True  # type: ignore[attr-defined]
    return draw_and_call


def random_operators(gm: torch.fx.GraphModule) -> frozenset[str]:
    """Names of the nodes that draw random numbers: where torch draws some of them inside the graph, it draws all."""
    return frozenset(
        node.name for node in gm.graph.nodes
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()))


def compile_whole(
    gm: torch.fx.GraphModule, options: Options, origin: Origin, fallback_ops: Mapping[str, int] | None = None,
) -> Boxed:
    """Compiles a graph that is converted as one. Raises `ConversionError`."""
    parts = split(gm)
    started = time.perf_counter()
    table = None if isinstance(options.decompositions, str) else options.decompositions
    converted = _fx.convert(
        parts.core, opset=options.opset, decompositions=table, fallback_hint='the option fallback="eager"')
    graph = CompiledGraph(
        index=0, kind=origin.kind, graph_module=gm, converted_model=_transformed(converted, options.transforms),
        executor=_executor_of(options), patterns=options.pattern_text, inputs=converted.input_names,
        outputs=_output_names(gm), break_reason=origin.break_reason, fallback_ops=dict(fallback_ops or {}))
    graph.seconds["to_onnx"] = time.perf_counter() - started
    _record(graph, options)
    runner = _runner(graph, converted, origin.static, options) if parts.computed else None
    return _boxed(graph, runner, restorer(parts.computed, is_double=graph.executor.endswith(":double")), parts.finish)


def _output_names(gm: torch.fx.GraphModule) -> list[str]:
    """A name for each output of the graph: of its node, `output_NONE_<position>` for None, "" for a number."""
    names = []
    for position, value in enumerate(outputs_of(gm.graph)):
        none = f"output_NONE_{position}" if value is None else ""
        names.append(value.name if isinstance(value, torch.fx.Node) else none)
    return names


def _transformed(converted: Converted, transforms: Sequence[Callable[[Any], Any]]) -> Model:
    model = parallax.load(converted.to_bytes(), validate=False)
    for transform in transforms:
        model = parallax.load(transform(model))
    return model


def _executor_of(options: Options) -> str:
    return options.executors[1] if isinstance(options, DebugOptions) else options.executor


def _record(graph: CompiledGraph, options: Options) -> None:
    """Numbers the graph, puts it into the storage, writes and tells what is asked for."""
    storage: MutableMapping[Any, Any] = {} if options.storage is None else options.storage
    graphs = storage.setdefault("instance", [])
    graph.index = _next_index(options) if options.storage is None else len(graphs)
    graphs.append(graph)
    if options.dump_prefix is not None:
        graph.converted_model.save(dump_path(options.dump_prefix, graph, ".onnx"), force=options.force)
        text = graph.graph_module.print_readable(print_output=False, include_stride=True)
        _files.write_text(dump_path(options.dump_prefix, graph, ".txt"), text, options.force)
    if options.verbose:
        nodes = len(graph.converted_model.nodes)
        print(f"parallax: graph {graph.index} ({graph.kind}), {len(graph.inputs)} inputs, {len(graph.outputs)} outputs,"
              f" {nodes} nodes, converted in {graph.seconds['to_onnx']:.2f} s")
    if options.verbose > 1:
        print(graph.converted_model.text(shapes=True))


_indices: dict[int, int] = {}


def _next_index(options: Options) -> int:
    """Numbers graphs of a backend without a storage, so that dumped files have names of their own."""
    number = _indices.get(id(options), -1) + 1
    _indices[id(options)] = number
    return number


def _runner(graph: CompiledGraph, converted: Converted, static: frozenset[str], options: Options) -> Runner:
    is_frozen = options.freeze == "auto"
    positions = [p for p, spec in enumerate(converted.inputs) if is_frozen and spec.placeholder in static and spec.name]
    if isinstance(options, DebugOptions):
        from .debug import make_engine

        make = make_engine(graph, converted, options)
    else:
        make = _session_maker(options)
    runner: Runner = FrozenRunner(
        graph, FrozenInputs(positions), [spec.name for spec in converted.inputs], feeder(converted.inputs), make,
        watch_numbers=isinstance(options, DebugOptions))
    if options.dump_prefix is not None:
        runner = _dumping_first(runner, graph, converted, options)
    return runner


def _session_maker(options: Options) -> Callable[[Model], Engine]:
    return lambda model: SessionEngine(model, options.executor, options.rewrite, options.observer)


def _dumping_first(runner: Runner, graph: CompiledGraph, converted: Converted, options: Options) -> Runner:
    """Writes the inputs of the first call, under the names of the model's, to a file that `parallax run` takes."""
    is_first = True

    def run(inputs: Sequence[Any]) -> list[torch.Tensor]:
        nonlocal is_first
        if is_first:
            is_first = False
            assert options.dump_prefix is not None
            _write_inputs(graph, converted, inputs, options)
        return runner(inputs)

    return run


def _write_inputs(graph: CompiledGraph, converted: Converted, inputs: Sequence[Any], options: Options) -> None:
    assert options.dump_prefix is not None
    feeds = dict(zip(converted.input_names, converted.feeds(inputs)))
    arrays = {name: parallax.Tensor(value).numpy() for name, value in feeds.items()}
    _files.write_arrays(dump_path(options.dump_prefix, graph, ".npz"), arrays, options.force)


def _boxed(
    graph: CompiledGraph, runner: Runner | None, restore: Callable[[list[Any]], list[Any]] | None,
    finish: Finish | None,
) -> Boxed:
    """The call as aot_autograd makes it: the list of inputs is emptied, so that they are freed as soon as may be."""

    def call(boxed: list[Any]) -> list[Any]:
        inputs = list(boxed)
        boxed.clear()
        if runner is None:
            graph.calls += 1
            results: list[Any] = []
        else:
            results = runner(inputs)
        if restore is not None:
            results = restore(results)
        return results if finish is None else finish(inputs, results)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
