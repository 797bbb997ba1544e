# SPDX-License-Identifier: Apache-2.0
"""A model as onnxruntime executes it, with any of its values given back; sessions are kept from one run to the next."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parallax import _core
from parallax._memory import give_back_memory, in_groups
from parallax._ort_session import Runtime, weight_bytes
from parallax.errors import Error, ExecutionError
from parallax.model import Model

__all__ = ["Observed", "provenance_by_name"]

Layout = dict[str, Any]

# Bytes of a session without its weights, roughly: what decides whether several are kept.
_SESSION = 1 << 20


@dataclass
class _Group:
    """Values that one run gives back; ``session`` is made when it is first needed."""

    layouts: list[Layout]
    outputs: list[str]
    session: Any = None


@dataclass
class Observed:
    """A model of onnxruntime whose values are read.

    ``optimization``: the level at which onnxruntime optimizes it first; ``executed`` is the graph that it makes of it.
    ``bodies``: of Loop, Scan and If, too. ``memory_limit``: bytes of values that one run may give back; several runs give
    a part each. ``left_out`` has (path, reason) of what cannot be read, ``runs`` counts the runs that gave values.
    """

    runtime: Runtime
    source: Model
    optimization: str = "none"
    bodies: bool = True
    memory_limit: int | None = None
    executed: _core.Model = field(init=False)
    left_out: list[tuple[str, str]] = field(init=False)
    runs: int = field(default=0, init=False)
    _all: list[Layout] = field(init=False)
    _groups: dict[Any, list[_Group]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.executed, self._paths, not_inlined = _core.inline_calls(self.source.core)
        if self.optimization != "none":
            with tempfile.TemporaryDirectory(prefix="parallax-ort-") as folder:
                path = os.path.join(folder, "optimized.onnx")
                self.runtime.session(self.executed, self.optimization, path)
                self.executed = _core.Model.load(path, False)
        _, self._all, not_exposed = self._expose([])
        self.left_out = not_inlined + not_exposed
        self._outputs = {_core.escape_name(value.name): value.name for value in self.source.outputs}

    @functools.cached_property
    def provenance(self) -> list[tuple[str, str]]:
        """Pairs (executed node, node of the source that it stands for)."""
        return provenance_by_name(self.executed, self.source)

    def values(self, inputs: Mapping[str, Any], wanted: Sequence[str] | None = None) -> Iterator[tuple[str, Any, bool]]:
        """Runs the model: (path, value, whether the graph gives it back) of the values ``wanted``, all without it.

        ``wanted`` has names of the main graph; with a value of a node with bodies come the values within them, unless
        nothing but outputs of the graph is wanted. These are given whether they are asked for or not.
        """
        feeds = self.runtime.feeds(inputs)
        groups = self._groups_of(None if wanted is None else frozenset(wanted), feeds)
        weights = weight_bytes(self.executed)
        keeps = self.memory_limit is None or len(groups) * (2 * weights + _SESSION) <= self.memory_limit
        for group in list(groups):
            yield from self._values_of(group, self._run_group(group, feeds))
            self.runs += 1
            if not keeps and len(groups) > 1:
                group.session = None
            if self.memory_limit is not None:
                give_back_memory()

    def _expose(self, paths: list[str], shapes_only: bool = False) -> tuple[Any, list[Layout], list[tuple[str, str]]]:
        return _core.values_as_outputs(self.executed, paths, self.bodies, shapes_only, self._paths)

    def _wanted(self, wanted: frozenset[str] | None) -> list[Layout]:
        if wanted is None:
            return self._all
        paths = {_core.escape_name(name) for name in wanted} | set(self._outputs)
        computed = {node.name: {_core.escape_name(name) for name in node.outputs if name} for node in self.source.nodes}
        nodes: set[str] = set()
        if paths - set(self._outputs) or set().union(*computed.values()) <= paths:  # else nobody looks into the graph
            nodes = {_core.escape_name(node) for node, made in computed.items() if made & paths}
        return [layout for layout in self._all if layout["path"] in paths or _outermost(layout["path"]) & nodes]

    def _groups_of(self, wanted: frozenset[str] | None, feeds: Mapping[str, Any]) -> list[_Group]:
        sizes = {name: getattr(feed, "shape", None) for name, feed in feeds.items()}
        key = (wanted, None if self.memory_limit is None else str(sizes))
        if key not in self._groups:
            self._groups.clear()  # another choice of values: what was kept for the one before goes
            layouts = self._wanted(wanted)
            parts = [layouts] if self.memory_limit is None else self._parts(layouts, self.memory_limit, feeds)
            groups = [_Group(part, []) for part in parts]
            groups[0].outputs = list(self._outputs.values())
            self._groups[key] = groups
        return self._groups[key]

    def _parts(self, layouts: list[Layout], limit: int, feeds: Mapping[str, Any]) -> list[list[Layout]]:
        """Values in parts of at most ``limit`` bytes together; a larger value is a part of its own."""
        paths = [layout["path"] for layout in layouts]
        sizes: dict[str, int] = {}
        if paths:
            model, shape_layouts, _ = self._expose(paths, shapes_only=True)
            results = self._run(self.runtime.session(model), shape_layouts, [], feeds)
            sizes = {layout["path"]: _bytes_of(layout, results[layout["output"]]) for layout in shape_layouts}
        return in_groups(((layout, sizes.get(layout["path"], 0)) for layout in layouts), limit)

    def _run(self, session: Any, layouts: list[Layout], outputs: list[str], feeds: Mapping[str, Any]) -> dict[str, Any]:
        names = dict.fromkeys(outputs)
        for layout in layouts:
            names.update(dict.fromkeys([layout["output"], *(branch for branch, _ in layout["branches"])]))
            if layout["index"]:
                names[layout["index"]] = None
        taken = {value.name for value in session.get_inputs()}
        taken.update(value.name for value in session.get_overridable_initializers())
        given = {name: feed for name, feed in feeds.items() if name in taken}
        try:
            return self.runtime.run(session, given, list(names))
        except Error as error:
            error.node = self._given_node(error.node)
            raise

    def node_milliseconds(self, inputs: Mapping[str, Any]) -> dict[str, float]:
        """Times of the executed nodes in a run that gives back the graph's outputs alone, by the source's names."""
        times: dict[str, float] = {}
        feeds = self.runtime.feeds(inputs)
        for name, milliseconds in self.runtime.node_milliseconds(self.executed, feeds, list(self._outputs.values())).items():
            given = self._given_node(name)
            times[given] = times.get(given, 0.0) + milliseconds
        return times

    def _given_node(self, executed: str) -> str:
        """The last of the source's nodes that an executed node stands for, by name."""
        if not executed or executed in self._source_nodes:
            return executed
        return next((given for made, given in self.provenance if made == executed), executed)

    @functools.cached_property
    def _source_nodes(self) -> set[str]:
        return {node.name for node in self.source.nodes}

    def _run_group(self, group: _Group, feeds: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._run(self._session(group), group.layouts, group.outputs, feeds)
        except ExecutionError as error:
            # Iterations that are stacked must have one shape, which nothing says before the run.
            stacked = [layout["path"] for layout in group.layouts if layout["stacked_axes"]]
            if not stacked or len(stacked) == len(group.layouts):
                raise
            group.layouts = [layout for layout in group.layouts if not layout["stacked_axes"]]
            group.session = None
            results = self._run(self._session(group), group.layouts, group.outputs, feeds)
            self.left_out += [(path, f"its iterations cannot be stacked: {error}") for path in stacked]
            return results

    def _session(self, group: _Group) -> Any:
        if group.session is None:
            paths = [layout["path"] for layout in group.layouts]
            group.session = self.runtime.session(self._expose(paths)[0] if paths else self.executed)
        return group.session

    def _values_of(self, group: _Group, results: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
        for layout in group.layouts:
            is_output = layout["path"] in self._outputs
            for path, value in _executions_of(layout, results):
                yield path, value, is_output
        observed = {layout["path"] for layout in self._all}
        for path, name in self._outputs.items():  # one that no node computes, or of a type that cannot be observed
            if name in group.outputs and path not in observed and results[name] is not None:
                yield path, results[name], True


def _outermost(path: str) -> set[str]:
    """The node around a value of a body or of a function's call, as both write it; nothing for one of the main graph."""
    frame, is_inner, _ = path.partition("//")
    return {frame, frame.rpartition(".")[0]} if is_inner else set()


def _bytes_of(layout: Layout, shapes: Any) -> int:
    """Bytes of all executions of a value, from their shapes."""
    rows = shapes if layout["is_sequence"] else [shapes]
    count = sum(int(np.prod(np.asarray(row, np.int64), axis=-1).sum()) for row in rows)
    return count * _SIZES.get(layout["dtype"], 8)


_SIZES = {
    "float64": 8, "int64": 8, "uint64": 8, "complex64": 8, "complex128": 16, "float32": 4, "int32": 4, "uint32": 4,
    "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2, "int8": 1, "uint8": 1, "bool": 1, "string": 32,
}  # fmt: skip


def _executions_of(layout: Layout, results: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(path, value) of every execution of a value, from the outputs that hold them."""
    held = results[layout["output"]]
    if not layout["is_sequence"]:
        if all(_is_taken(results[name], taken) for name, taken in layout["branches"]):
            yield from _unstacked(layout["path"], held, layout["stacked_axes"])
        return
    for at, item in enumerate(held):
        if all(_is_taken(results[name][at], taken) for name, taken in layout["branches"]):
            path = layout["path"]
            for number in np.asarray(results[layout["index"]][at]).tolist():
                path = path.replace("[*]", f"[{number}]", 1)
            yield from _unstacked(path, item, layout["stacked_axes"])


def _is_taken(flag: Any, taken: int) -> bool:
    values = np.asarray(flag).reshape(-1).tolist()
    return values == [taken]


def _unstacked(path: str, value: Any, axes: int) -> Iterator[tuple[str, Any]]:
    if axes == 0:
        yield path, value
        return
    for number, item in enumerate(value):
        yield from _unstacked(path.replace("[*]", f"[{number}]", 1), item, axes - 1)


def provenance_by_name(executed: Any, source: Any) -> list[tuple[str, str]]:
    """Pairs (node of ``executed``, node of ``source``): what each node of an optimized graph stands for.

    Nodes between values that both graphs have stand for the source nodes between them.

    >>> from parallax.ort import provenance_by_name
    >>> pairs = provenance_by_name("optimized.onnx", "model.onnx")                               # doctest: +SKIP
    """
    made, given = Model(executed), Model(source)
    producers = {name: node for node in given.nodes for name in node.outputs if name}
    executed_by = {name: node for node in made.nodes for name in node.outputs if name}
    common = {name for node in made.nodes for name in (*node.inputs, *node.outputs) if name in producers}
    pairs: dict[tuple[str, str], None] = {}
    for node in made.nodes:
        named = [name for name in node.outputs if name in common]
        if named:
            group = _between(named, executed_by, common)
            stands_for = _between(named, producers, common)
            pairs.update(dict.fromkeys((one, other) for one in group for other in stands_for))
    return list(pairs)


def _between(outputs: Sequence[str], producers: Mapping[str, Any], known: set[str]) -> list[str]:
    """The nodes that compute ``outputs`` from values among ``known``, the last one first."""
    waiting = list(outputs)
    found: dict[str, None] = {}
    while waiting:
        node = producers.get(waiting.pop())
        if node is None or node.name in found:
            continue
        found[node.name] = None
        waiting += [name for name in node.inputs if name not in known]
    return list(found)
