# SPDX-License-Identifier: Apache-2.0
"""Captures every tensor of a model that onnxruntime runs into a dump, which ``parallax diff`` compares with another's.

``python -m parallax.ort MODEL --inputs DIR -o F.plx`` does the same from a shell.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from parallax import _core, _files
from parallax._ort_session import LEVELS, Runtime
from parallax.dump import Dump, DumpWriter
from parallax.errors import Error, ExecutionError, UsageError
from parallax.model import Model, load

__all__ = ["Captured", "capture"]


class Captured(dict[str, Any]):
    """The model's outputs by name, and what was captured on the way.

    ``value_count`` values are in the dump, of ``runs`` runs; ``left_out`` has (path, reason) of what is not; ``notes``
    say how inputs were generated.
    """

    def __init__(self) -> None:
        super().__init__()
        self.value_count = 0
        self.runs = 0
        self.left_out: list[tuple[str, str]] = []
        self.notes: list[str] = []


def capture(
    model: Any,
    inputs: Mapping[str, Any] | Sequence[Any] | str | os.PathLike[str] | None,
    path: str | os.PathLike[str],
    *,
    providers: Sequence[Any] | None = None,
    optimization: str = "all",
    bodies: bool = True,
    memory_limit: int | None = None,
    seed: int = 0,
    force: bool = False,
) -> Captured:
    """Runs a model on onnxruntime and writes the value of every tensor into a dump; returns the model's outputs.

    ``inputs``: arrays by name or in order, a test_data_set folder, .npz or .safetensors file, or None: generated from
    ``seed`` as the program does. ``optimization``: onnxruntime optimizes the model at this level first ("none", "basic",
    "extended", "all"); what is captured is the optimized graph as it runs, kept in the dump with the nodes of the given
    model that each of its nodes stands for. Values keep their names: those that fusion removed are absent. ``bodies``: of
    Loop, Scan and If, too, under the paths that Parallax has for them (``loop.body[3]//x``). ``memory_limit``: bytes of
    values that one run may give back; several runs give a part each, the largest value is the least. ``providers``: as
    onnxruntime takes them, the CPU by default. ``force``: ``path`` may be a file that Parallax did not write. Raises
    UsageError, and ExecutionError in onnxruntime's words.

    >>> import numpy as np, parallax
    >>> got = parallax.ort.capture("samples/cnn/model.onnx", None, "ort.plx")                     # doctest: +SKIP
    >>> parallax.diff("reference.plx", "ort.plx").verdict                                        # doctest: +SKIP
    'pass'
    """
    if optimization not in LEVELS:
        raise UsageError(f"optimization is {optimization!r}; it must be one of {', '.join(LEVELS)}")
    if memory_limit is not None and memory_limit <= 0:
        raise UsageError(f"memory_limit is {memory_limit}; it must be a number of bytes above 0, or None")
    source = load(model)
    given = [inputs] if isinstance(inputs, (str, os.PathLike)) else []
    _files.admit(path, force, [source.path, *given])
    captured = Captured()
    values, captured.notes = _inputs(source, inputs, seed)
    runtime = Runtime(providers)
    settings = {"onnxruntime": runtime.version, "optimization": optimization, "providers": runtime.providers}
    with tempfile.TemporaryDirectory(prefix="parallax-ort-") as folder:
        run = _Run(runtime, source, values, bodies, captured)
        if optimization != "none":
            run.optimize(optimization, os.path.join(folder, "optimized.onnx"))
        device = str(runtime.providers[0])
        with Dump.create(path, executor="onnxruntime", device=device, settings=settings, model=source, force=force) as dump:
            if optimization != "none":
                dump.add_executed_graph(run.executed, provenance_by_name(run.executed, source))
            with dump.call():
                run.write(dump, memory_limit)
    return captured


def provenance_by_name(executed: Any, source: Any) -> list[tuple[str, str]]:
    """Pairs (node of ``executed``, node of ``source``): what each node of an optimized graph stands for.

    Nodes between values that both graphs have stand for the source nodes between them.

    >>> from parallax.ort import provenance_by_name
    >>> pairs = provenance_by_name("optimized.onnx", "model.onnx")                               # doctest: +SKIP
    """
    made, given = Model(executed), load(source)
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


def _inputs(model: Model, inputs: Any, seed: int) -> tuple[dict[str, Any], list[str]]:
    if inputs is None or isinstance(inputs, (str, os.PathLike)):
        return _core.make_inputs(model.core, os.fspath(inputs or ""), {}, seed)
    if not isinstance(inputs, Mapping):
        names = [value.name for value in model.inputs]
        if len(inputs) > len(names):
            raise UsageError(f"{len(inputs)} inputs are given; the model has {len(names)}: {', '.join(names)}")
        inputs = dict(zip(names, inputs, strict=False))
    return _core.make_inputs(model.core, "", dict(inputs), seed)


class _Run:
    """The model as it is executed, and its values group by group."""

    def __init__(
        self, runtime: Runtime, source: Model, inputs: dict[str, Any], bodies: bool, captured: Captured
    ) -> None:
        self._runtime = runtime
        self._source = source
        self._inputs = inputs
        self._feeds = runtime.feeds(inputs)
        self._bodies = bodies
        self._captured = captured
        self.executed, self._paths, left_out = _core.inline_calls(source.core)
        captured.left_out += left_out

    def optimize(self, level: str, path: str) -> None:
        """Goes on with the model as onnxruntime optimizes it."""
        self._runtime.session(self.executed, level, path)
        self.executed = _core.Model.load(path, False)

    def write(self, dump: DumpWriter, memory_limit: int | None) -> None:
        """Runs the model and writes inputs, weights and values."""
        for name, value in self._inputs.items():
            dump.write(_core.escape_name(name), value, role="input")
        for weight in self._source.initializers:
            if weight.name not in self._inputs:
                dump.write(_core.escape_name(weight.name), weight.tensor, role="initializer")
        outputs = [value.name for value in self._source.outputs]
        groups = [[]] if memory_limit is None else self._groups(memory_limit)
        for group in groups:
            self._run_group(dump, group, outputs if group is groups[0] else [])

    def _expose(self, paths: list[str], shapes_only: bool = False) -> tuple[Any, list[dict[str, Any]], list[tuple[str, str]]]:
        return _core.values_as_outputs(self.executed, paths, self._bodies, shapes_only, self._paths)

    def _groups(self, limit: int) -> list[list[str]]:
        """Paths in groups whose values take at most ``limit`` bytes together; a larger value is a group of its own."""
        model, layouts, _ = self._expose([], shapes_only=True)
        results = self._run(model, layouts, [])
        sizes = {layout["path"]: _bytes_of(layout, results[layout["output"]]) for layout in layouts}
        groups: list[list[str]] = []
        used = 0
        for layout in self._expose([])[1]:
            size = sizes.get(layout["path"], 0)
            if not groups or used + size > limit:
                groups.append([])
                used = 0
            groups[-1].append(layout["path"])
            used += size
        return groups or [[]]

    def _run(self, model: Any, layouts: list[dict[str, Any]], outputs: list[str]) -> dict[str, Any]:
        names = dict.fromkeys(outputs)
        for layout in layouts:
            names.update(dict.fromkeys([layout["output"], *(branch for branch, _ in layout["branches"])]))
            if layout["index"]:
                names[layout["index"]] = None
        self._captured.runs += 1
        return self._runtime.run(self._runtime.session(model), self._feeds, list(names))

    def _run_group(self, dump: DumpWriter, paths: list[str], outputs: list[str]) -> None:
        model, layouts, left_out = self._expose(paths)
        try:
            results = self._run(model, layouts, outputs)
        except ExecutionError as error:
            # Iterations that are stacked must have one shape, which nothing says before the run.
            stacked = [layout["path"] for layout in layouts if layout["stacked_axes"]]
            plain = [layout["path"] for layout in layouts if not layout["stacked_axes"]]
            if not stacked or not plain:
                raise
            model, layouts, _ = self._expose(plain)
            results = self._run(model, layouts, outputs)
            left_out = left_out + [(path, f"its iterations cannot be stacked: {error}") for path in stacked]
        if outputs or not self._captured.left_out:
            self._captured.left_out += left_out
        for layout in layouts:
            for path, value in _values_of(layout, results):
                dump.write(path, value, is_graph_output=layout["path"] in outputs)
                self._captured.value_count += 1
        self._captured.update((name, results[name]) for name in outputs)


def _bytes_of(layout: dict[str, Any], shapes: Any) -> int:
    """Bytes of all executions of a value, from their shapes."""
    rows = shapes if layout["is_sequence"] else [shapes]
    count = sum(int(np.prod(np.asarray(row, np.int64), axis=-1).sum()) for row in rows)
    return count * _SIZES.get(layout["dtype"], 8)


_SIZES = {
    "float64": 8, "int64": 8, "uint64": 8, "complex64": 8, "complex128": 16, "float32": 4, "int32": 4, "uint32": 4,
    "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2, "int8": 1, "uint8": 1, "bool": 1, "string": 32,
}  # fmt: skip


def _values_of(layout: dict[str, Any], results: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
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


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m parallax.ort", description="Captures every tensor of a model that onnxruntime runs into a dump."
    )
    parser.add_argument("model", help="an ONNX model")
    parser.add_argument("--inputs", help="a test_data_set folder, .npz or .safetensors file; generated without it")
    parser.add_argument("--seed", type=int, default=0, help="of generated inputs")
    parser.add_argument("-o", "--output", required=True, help="the dump to write (.plx)")
    parser.add_argument("--optimization", choices=list(LEVELS), default="all", help="onnxruntime's level (all)")
    parser.add_argument("--provider", action="append", dest="providers", help="an execution provider; may be repeated")
    parser.add_argument("--no-bodies", action="store_true", help="values of the main graph alone")
    parser.add_argument("--memory-limit", type=int, help="bytes of values that one run may give back")
    parser.add_argument("--force", action="store_true", help="replace a file that Parallax did not write")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The program ``python -m parallax.ort``: returns its exit code, which is that of ``parallax``."""
    options = _parse_arguments(arguments)
    try:
        got = capture(
            options.model, options.inputs, options.output, providers=options.providers, optimization=options.optimization,
            bodies=not options.no_bodies, memory_limit=options.memory_limit, seed=options.seed,
            force=options.force,
        )  # fmt: skip
    except Error as error:
        print(f"parallax.ort: {str(error).replace('force=True', '--force')}", file=sys.stderr)
        return error.code
    for note in got.notes:
        print(note, file=sys.stderr)
    for path, reason in got.left_out:
        print(f"left out: {path}: {reason}", file=sys.stderr)
    print(f"{options.output}: {got.value_count} values of onnxruntime, {got.runs} run{'s' if got.runs > 1 else ''}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
