# SPDX-License-Identifier: Apache-2.0
"""Captures every tensor of a model that onnxruntime runs into a dump, which ``parallax diff`` compares with another's.

``python -m parallax.ort MODEL --inputs DIR -o F.plx`` does the same from a shell.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from parallax import _core, _files
from parallax._ort_observed import Observed, provenance_by_name
from parallax._ort_session import LEVELS, Runtime
from parallax.dump import Dump, DumpWriter
from parallax.errors import Error, UsageError
from parallax.model import Model, load

__all__ = ["Captured", "capture", "provenance_by_name"]


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
    observed = Observed(runtime, source, optimization, bodies, memory_limit)
    settings = {"onnxruntime": runtime.version, "optimization": optimization, "providers": runtime.providers}
    device = str(runtime.providers[0])
    names = {_core.escape_name(output.name): output.name for output in source.outputs}
    with Dump.create(path, executor="onnxruntime", device=device, settings=settings, model=source, force=force) as dump:
        if optimization != "none":
            dump.add_executed_graph(observed.executed, observed.provenance)
        with dump.call():
            _write_given(dump, source, values)
            for value_path, value, is_output in observed.values(values):
                dump.write(value_path, value, is_graph_output=is_output)
                captured.value_count += 1
                if is_output:
                    captured[names[value_path]] = value
    captured.runs = observed.runs
    captured.left_out = observed.left_out
    return captured


def _write_given(dump: DumpWriter, source: Model, inputs: Mapping[str, Any]) -> None:
    for name, value in inputs.items():
        dump.write(_core.escape_name(name), value, role="input")
    for weight in source.initializers:
        if weight.name not in inputs:
            dump.write(_core.escape_name(weight.name), weight.tensor, role="initializer")


def _inputs(model: Model, inputs: Any, seed: int) -> tuple[dict[str, Any], list[str]]:
    if inputs is None or isinstance(inputs, (str, os.PathLike)):
        return _core.make_inputs(model.core, os.fspath(inputs or ""), {}, seed)
    if not isinstance(inputs, Mapping):
        names = [value.name for value in model.inputs]
        if len(inputs) > len(names):
            raise UsageError(f"{len(inputs)} inputs are given; the model has {len(names)}: {', '.join(names)}")
        inputs = dict(zip(names, inputs, strict=False))
    return _core.make_inputs(model.core, "", dict(inputs), seed)


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
