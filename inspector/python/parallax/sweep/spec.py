# SPDX-License-Identifier: Apache-2.0
"""The specification of a sweep: a TOML file, or a folder of models with the defaults of everything else."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from parallax import _core
from parallax.errors import IoError, UsageError
from parallax.sweep.content import MODEL_ENDINGS
from parallax.sweep.packages import needed

__all__ = ["InputSet", "Limits", "ModelSet", "OptionSet", "Spec", "bytes_of", "read_spec", "spec_of_folder"]

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}

# Options of `parallax run` that a row of [[options]] may set, with `_` for `-`.
RUN_OPTIONS = (
    "accumulate", "atol", "capture", "fallback", "keep_casts", "observe_all", "only", "per", "policy", "policy_file",
    "rewrite", "rtol", "seed", "tf32", "time_limit",
)  # fmt: skip
_GENERATED = ("dim", "shape", "range")


@dataclass(frozen=True)
class Limits:
    """Limits of one cell: seconds of wall time, bytes of resident memory of its processes; None: no limit."""

    time: float | None = 600.0
    memory: int | None = None


@dataclass(frozen=True)
class ModelSet:
    """A row of [[models]]: ``path`` is a file, a glob or a folder, or ``sha256`` names a model of the store."""

    path: str = ""
    sha256: str = ""
    name: str = ""
    against: str = ""
    verb: str = "run"
    inputs: tuple[str, ...] = ()  # names of [[inputs]]; empty: all
    dim: Mapping[str, Any] = field(default_factory=dict)
    shape: Mapping[str, Any] = field(default_factory=dict)
    range: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class InputSet:
    """A row of [[inputs]]: a file (``path``, with ``{model}`` and ``{folder}``), the data sets next to each model, or a seed."""

    name: str
    path: str = ""
    own: bool = False
    seed: int = 0
    dim: Mapping[str, Any] = field(default_factory=dict)
    shape: Mapping[str, Any] = field(default_factory=dict)
    range: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OptionSet:
    """A row of [[options]]: options of ``parallax run`` by name."""

    name: str = "default"
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Spec:
    """A sweep: the cells are all combinations of models, inputs, executors and options."""

    folder: Path
    models: tuple[ModelSet, ...]
    inputs: tuple[InputSet, ...] = ()  # empty: the data sets next to a model, else generated from seed 0
    executors: tuple[str, ...] = ("reference,cpu",)
    options: tuple[OptionSet, ...] = (OptionSet(),)
    limits: Limits = Limits()
    out: Path = Path("sweep-out")
    jobs: int = 0  # 0: as many as there are processors
    threads: int = 1
    reports: str = "failing"
    store: Path | None = None
    baselines: Path | None = None

    def with_changes(self, **changes: Any) -> Spec:
        """The spec with other values; those that are None stay."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})


def read_spec(path: str | os.PathLike[str]) -> Spec:
    """The spec of a TOML file, of a folder of models, or of one model. Raises UsageError and IoError.

    Paths in the file start from the file's folder.
    """
    path = Path(path)
    if path.is_dir() or path.name.endswith(MODEL_ENDINGS):
        return spec_of_folder(path)
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise IoError(f"'{path}' cannot be read: {error}") from None
    toml = needed("tomllib", "tomli")
    try:
        document = toml.loads(text)
    except toml.TOMLDecodeError as error:
        raise UsageError(f"'{path}' is not a TOML file: {error}") from None
    return _Reader(str(path)).spec(document, path.absolute().parent)


def spec_of_folder(folder: str | os.PathLike[str]) -> Spec:
    """The spec of all models in a folder, at any depth, or of one, with the defaults of everything else."""
    return Spec(folder=Path.cwd(), models=(ModelSet(path=os.path.abspath(folder)),), out=Path.cwd() / "sweep-out")


def bytes_of(text: object, what: str) -> int:
    """Bytes of ``4096``, ``"512M"`` or ``"2GiB"``. Raises UsageError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]I?)?B?", str(text).strip().upper())
    if found is None or isinstance(text, bool):
        raise UsageError(f"{what} is {text!r}; it must be a number of bytes such as 4096, 512M or 2GiB")
    return int(float(found[1]) * _UNITS[found[2] or ""])


def checked_executors(texts: Sequence[str], what: str) -> tuple[str, ...]:
    """The entries, "EXEC" or "EXEC,EXEC" each. Raises UsageError for others, and for one that is there twice."""
    for text in texts:
        names = _core.split_executors(text)
        if not all(names) or len(names) > 2:
            raise UsageError(f"{what} has '{text}'; each entry must be one executor or a pair")
        if texts.count(text) > 1:
            raise UsageError(f"{what} has '{text}' twice; the entries must differ")
    return tuple(texts)


class _Reader:
    """Checks a TOML document; every sentence names the file and the key."""

    def __init__(self, path: str) -> None:
        self._path = path

    def spec(self, document: dict[str, Any], folder: Path) -> Spec:
        known = ("models", "inputs", "executors", "options", "limits", "out", "jobs", "threads", "reports", "store", "baselines")
        self._check_keys(document, known, "the spec")
        models = tuple(self._model(row) for row in self._rows(document, "models"))
        if not models:
            raise UsageError(f"'{self._path}' has no [[models]]; a row names models: path = \"zoo/*.onnx\"")
        inputs = tuple(self._input(row) for row in self._rows(document, "inputs"))
        options = tuple(self._option(row, folder) for row in self._rows(document, "options")) or (OptionSet(),)
        self._check_names([row.name for row in inputs], "[[inputs]]")
        self._check_names([row.name for row in options], "[[options]]")
        for model in models:
            for name in model.inputs:
                if name not in [row.name for row in inputs]:
                    raise UsageError(f"'{self._path}': a row of [[models]] asks for inputs '{name}'; there is no such [[inputs]]")
        reports = self._text(document, "reports", "failing")
        if reports not in ("none", "failing", "all"):
            raise UsageError(f"'{self._path}': reports is '{reports}'; it must be none, failing or all")
        return Spec(
            folder=folder, models=models, inputs=inputs, executors=self._executors(document), options=options,
            limits=self._limits(document.get("limits", {})), out=folder / self._text(document, "out", "sweep-out"),
            jobs=self._count(document, "jobs", 0), threads=self._count(document, "threads", 1), reports=reports,
            store=self._folder(document, "store", folder), baselines=self._folder(document, "baselines", folder),
        )  # fmt: skip

    def _check_keys(self, row: Mapping[str, Any], known: Sequence[str], where: str) -> None:
        for key in row:
            if key not in known:
                raise UsageError(f"'{self._path}': {where} has the key '{key}'; it must be one of {', '.join(known)}")

    def _check_names(self, names: list[str], where: str) -> None:
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"'{self._path}': two rows of {where} are named '{name}'; the names must differ")

    def _rows(self, document: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
        rows = document.get(key, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise UsageError(f"'{self._path}': {key} must be tables, each under a line [[{key}]]")
        return rows

    def _text(self, row: Mapping[str, Any], key: str, default: str = "") -> str:
        value = row.get(key, default)
        if not isinstance(value, str):
            raise UsageError(f"'{self._path}': {key} is {value!r}; it must be a text")
        return value

    def _count(self, row: Mapping[str, Any], key: str, default: int) -> int:
        value = row.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise UsageError(f"'{self._path}': {key} is {value!r}; it must be a whole number")
        return value

    def _folder(self, row: Mapping[str, Any], key: str, folder: Path) -> Path | None:
        text = self._text(row, key)
        return folder / text if text else None

    def _generated(self, row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        for key in _GENERATED:
            if not isinstance(row.get(key, {}), dict):
                raise UsageError(f"'{self._path}': {key} is {row[key]!r}; it must be a table: {key} = {{name = ...}}")
        return {key: dict(row.get(key, {})) for key in _GENERATED}

    def _model(self, row: dict[str, Any]) -> ModelSet:
        self._check_keys(row, ("path", "sha256", "name", "against", "verb", "inputs", *_GENERATED), "a row of [[models]]")
        path, sha256 = self._text(row, "path"), self._text(row, "sha256")
        if bool(path) == bool(sha256):
            raise UsageError(f"'{self._path}': a row of [[models]] must have either path or sha256")
        if sha256 and not re.fullmatch("[0-9a-f]{64}", sha256):
            raise UsageError(f"'{self._path}': sha256 is '{sha256}'; it must be 64 hexadecimal digits")
        verb = self._text(row, "verb", "run")
        if verb not in ("run", "test"):
            raise UsageError(f"'{self._path}': verb is '{verb}'; it must be run or test")
        against = self._text(row, "against")
        if verb == "test" and (against or row.get("inputs") or any(row.get(key) for key in _GENERATED)):
            raise UsageError(f"'{self._path}': verb = \"test\" takes the data sets next to a model; against, inputs and sizes go with run")
        inputs = row.get("inputs", [])
        if not isinstance(inputs, list) or not all(isinstance(name, str) for name in inputs):
            raise UsageError(f"'{self._path}': inputs of a row of [[models]] must be a list of names of [[inputs]]")
        return ModelSet(path, sha256, self._text(row, "name"), against, verb, tuple(inputs), **self._generated(row))

    def _input(self, row: dict[str, Any]) -> InputSet:
        self._check_keys(row, ("name", "path", "own", "seed", *_GENERATED), "a row of [[inputs]]")
        path, own = self._text(row, "path"), row.get("own", False)
        sources = [key for key, is_given in (("path", path), ("own", own), ("seed", "seed" in row)) if is_given]
        if len(sources) > 1:
            raise UsageError(f"'{self._path}': a row of [[inputs]] has {' and '.join(sources)}; it must have one of them")
        seed = self._count(row, "seed", 0)
        name = self._text(row, "name") or path or ("own" if own else f"seed {seed}")
        return InputSet(name, path, bool(own), seed, **self._generated(row))

    def _option(self, row: dict[str, Any], folder: Path) -> OptionSet:
        self._check_keys(row, ("name", *RUN_OPTIONS), "a row of [[options]]")
        options = {key: value for key, value in sorted(row.items()) if key != "name"}
        if "policy_file" in options:
            options["policy_file"] = str(folder / str(options["policy_file"]))
        named = " ".join(f"{key}={value}" for key, value in options.items())
        return OptionSet(self._text(row, "name") or named or "default", options)

    def _executors(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        rows = document.get("executors", ["reference,cpu"])
        if not isinstance(rows, list) or not rows:
            raise UsageError(f"'{self._path}': executors must be a list such as [[\"reference\", \"cpu\"], \"cpu\"]")
        texts = [",".join(map(str, row)) if isinstance(row, list) else str(row) for row in rows]
        return checked_executors(texts, f"'{self._path}': executors")

    def _limits(self, row: Any) -> Limits:
        if not isinstance(row, dict):
            raise UsageError(f"'{self._path}': limits must be a table: [limits] with time and memory")
        self._check_keys(row, ("time", "memory"), "[limits]")
        time = row.get("time", Limits.time)
        if not isinstance(time, (int, float)) or isinstance(time, bool) or time <= 0:
            raise UsageError(f"'{self._path}': time of [limits] is {time!r}; it must be seconds above 0")
        memory = row.get("memory")
        return Limits(float(time), None if memory is None else bytes_of(memory, f"'{self._path}': memory of [limits]"))
