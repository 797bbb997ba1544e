# SPDX-License-Identifier: Apache-2.0
"""Assertions for test suites: models, executors, baselines and dumps agree, or an AssertionError says where, why and how to repeat it."""

from __future__ import annotations

import itertools
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parallax import _core, _files, jobs
from parallax import dump as dumps
from parallax.errors import UsageError
from parallax.model import load

__all__ = [
    "ComparisonFailed", "assert_baseline", "assert_close_dumps", "assert_close_models", "assert_executors_agree",
    "save_baseline",
]  # fmt: skip

Inputs = Mapping[str, Any] | str | os.PathLike[str] | None

# Options of jobs -> options of the program, for the command that repeats a failure.
_FLAGS = {"rtol": "--rtol", "atol": "--atol", "policy": "--policy", "only": "--only", "rewrite": "--rewrite"}


class ComparisonFailed(AssertionError):
    """Two executions differ, or could not be compared; ``comparison`` is the whole Comparison."""

    def __init__(self, message: str, comparison: Any) -> None:
        super().__init__(message)
        self.comparison = comparison


def assert_close_models(
    a: Any,
    b: Any,
    *,
    inputs: Inputs = None,
    seeds: int = 1,
    executors: Sequence[str] = ("reference", "cpu"),
    keep: str | os.PathLike[str] | None = None,
    **options: Any,
) -> None:
    """Fails where model ``b`` gives other values than model ``a``.

    ``inputs``: arrays by name, a folder or file, or None: generated, ``seeds`` times from the seeds 0, 1, ... ``options``
    are those of compare(): rtol, atol, policy, only. ``keep``: the folder for what the command that repeats a failure
    needs, of models and inputs in memory (default: a new one, made at a failure).

    >>> from parallax.testing import assert_close_models
    >>> assert_close_models("samples/cnn/model.onnx", "optimized.onnx", seeds=3)                  # doctest: +SKIP
    """
    for seed in _seeds(inputs, seeds):
        comparison = jobs.compare(a, b, inputs=inputs, executors=tuple(executors), **seed, **options)
        if not comparison:
            files = _Files(keep)
            command = ["parallax", "run", files.model(a, "a"), "--against", files.model(b, "b"), "--with", ",".join(executors)]
            command += files.inputs(inputs, seed) + _flags(options)
            raise _failure(f"{_name(a)} and {_name(b)}", comparison, command)


def assert_executors_agree(
    model: Any,
    executors: Sequence[str] = ("reference", "cpu"),
    *,
    inputs: Inputs = None,
    seeds: int = 1,
    keep: str | os.PathLike[str] | None = None,
    **options: Any,
) -> None:
    """Fails where two executors compute other values of the same model. Arguments as of assert_close_models().

    >>> from parallax.testing import assert_executors_agree
    >>> assert_executors_agree("samples/cnn/model.onnx")                                          # doctest: +SKIP
    """
    for seed in _seeds(inputs, seeds):
        comparison = jobs.compare(model, inputs=inputs, executors=tuple(executors), **seed, **options)
        if not comparison:
            files = _Files(keep)
            command = ["parallax", "run", files.model(model, "model"), "--with", ",".join(executors)]
            command += files.inputs(inputs, seed) + _flags(options)
            raise _failure(f"{' and '.join(executors)} of {_name(model)}", comparison, command)


def save_baseline(
    model: Any,
    path: str | os.PathLike[str],
    *,
    inputs: Inputs = None,
    executor: str = "cpu",
    seed: int = 0,
    force: bool = False,
) -> None:
    """Writes what a model computes now into a dump, inputs and all, for assert_baseline().

    ``force``: the file may be one that Parallax did not write. Raises as parallax.run() does.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    jobs.run(model, inputs, executor=executor, seed=seed, dump=os.fspath(path), capture="all", force=force)


def assert_baseline(
    model: Any,
    baseline: str | os.PathLike[str],
    *,
    executor: str = "cpu",
    keep: str | os.PathLike[str] | None = None,
    **options: Any,
) -> None:
    """Fails where a model computes other values than a dump holds, from the inputs that the dump holds.

    ``baseline``: a dump by save_baseline() or ``parallax run --dump``. ``options``: rtol, atol, policy, only. Raises
    UsageError where the dump lacks an input of the model.

    >>> from parallax.testing import assert_baseline
    >>> assert_baseline("samples/cnn/model.onnx", "tests/baselines/cnn.plx")                      # doctest: +SKIP
    """
    with dumps.open(baseline) as held:
        values = {entry.path: held.load(entry.path) for entry in held.entries if entry.role == "input" and "//" not in entry.path}
    missing = [value.name for value in load(model).inputs if value.name not in values]
    defaults = {weight.name for weight in load(model).initializers}
    missing = [name for name in missing if name not in defaults]
    if missing:
        raise UsageError(f"'{os.fspath(baseline)}' has no value of the input {missing[0]!r}; it must hold all inputs of the model")
    names = {value.name for value in load(model).inputs}
    values = {name: value for name, value in values.items() if name in names}
    with tempfile.TemporaryDirectory(prefix="parallax-test-") as folder:
        now = os.path.join(folder, "now.plx")
        jobs.run(model, values, executor=executor, dump=now, capture="all")
        comparison = jobs.diff(baseline, now, **options)
    if not comparison:
        files = _Files(keep)
        run = ["parallax", "run", files.model(model, "model"), "--with", executor, *files.inputs(values, {})]
        path = os.path.join(files.folder, "now.plx")
        commands = [[*run, "--dump", path], ["parallax", "diff", os.fspath(baseline), path, *_flags(options)]]
        raise _failure(f"{_name(model)} and its baseline {os.fspath(baseline)}", comparison, *commands)


def assert_close_dumps(a: str | os.PathLike[str], b: str | os.PathLike[str], **options: Any) -> None:
    """Fails where two dumps hold other values. ``options``: rtol, atol, policy, only.

    >>> from parallax.testing import assert_close_dumps
    >>> assert_close_dumps("before.plx", "after.plx", rtol=1e-5)                                  # doctest: +SKIP
    """
    comparison = jobs.diff(a, b, **options)
    if not comparison:
        command = ["parallax", "diff", os.fspath(a), os.fspath(b), *_flags(options)]
        raise _failure(f"{os.fspath(a)} and {os.fspath(b)}", comparison, command)


def _seeds(inputs: Inputs, count: int) -> list[dict[str, Any]]:
    if count < 1:
        raise UsageError(f"seeds is {count}; it must be at least 1")
    if inputs is not None and count > 1:
        raise UsageError(f"seeds is {count} and inputs are given; several seeds are for generated inputs")
    return [{}] if inputs is not None else [{"seed": seed} for seed in range(count)]


def _name(model: Any) -> str:
    return os.fspath(model) if isinstance(model, (str, os.PathLike)) else load(model).path


def _failure(what: str, comparison: Any, *commands: Sequence[str]) -> ComparisonFailed:
    document = comparison.to_dict()
    summary = document["summary"]
    lines = [f"{what}: {document['verdict']}, {summary['diverged']} of {summary['compared']} values beyond their limits"]
    first = document.get("first_divergence")
    if first:
        lines.append(f"  first: {first['path']} ({first['op']}, node {first['node']})")
    for cause in document["causes"][:1]:
        source = cause.get("source") or {}
        location = "".join(f", {source[key]}" for key in ("operator", "line") if source.get(key))
        lines.append(f"  cause: {cause['node']} ({cause['op']}{location}): {cause['why']}")
    if not summary["compared"]:
        lines.append("  no value of one side has a counterpart on the other; they must be of related models")
    lines += [f"  repeat: {shlex.join(command)}" for command in commands]
    return ComparisonFailed("\n".join(lines), comparison)


def _flags(options: Mapping[str, Any]) -> list[str]:
    flags: list[str] = []
    for name, flag in _FLAGS.items():
        value = options.get(name)
        values = value if isinstance(value, (list, tuple)) else [value]
        flags += [text for one in values if one is not None for text in (flag, str(one))]
    return flags


class _Files:
    """The folder that holds what a command needs of models and inputs in memory; made when it is asked for."""

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self._folder = None if folder is None else os.fspath(folder)

    @property
    def folder(self) -> str:
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="parallax-failed-")
        os.makedirs(self._folder, exist_ok=True)
        return self._folder

    def model(self, model: Any, name: str) -> str:
        if isinstance(model, (str, os.PathLike)):
            return os.fspath(model)
        return os.fspath(load(model).save(self._free(f"{name}.onnx")))

    def inputs(self, inputs: Inputs, seed: Mapping[str, int]) -> list[str]:
        if inputs is None:
            return ["--seed", str(seed.get("seed", 0))]
        if isinstance(inputs, (str, os.PathLike)):
            return ["--inputs", os.fspath(inputs)]
        path = self._free("inputs.npz")
        _files.write_arrays(path, {name: _core.Tensor(value).numpy() for name, value in inputs.items()})
        return ["--inputs", path]

    def _free(self, name: str) -> str:
        """A path in the folder, with a number where somebody else's file has the name: a failure is reported anyway."""
        stem, ending = os.path.splitext(name)
        for number in itertools.count(1):
            path = os.path.join(self.folder, name if number == 1 else f"{stem}-{number}{ending}")
            try:
                _files.admit(path, has_data=ending == ".onnx")
            except UsageError:
                continue
            return path
        raise AssertionError("unreachable")
