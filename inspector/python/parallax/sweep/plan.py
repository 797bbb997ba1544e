# SPDX-License-Identifier: Apache-2.0
"""The cells of a sweep: models x inputs x executors x options, each with the command that computes it and an id."""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Union

from parallax import _core
from parallax.errors import UsageError
from parallax.sweep.content import MODEL_ENDINGS, Hashes, Source, Store
from parallax.sweep.identity import identity_of
from parallax.sweep.spec import InputSet, ModelSet, OptionSet, Spec

__all__ = ["BASELINE", "Cell", "Plan"]

BASELINE = "baseline"
Word = Union[str, Source]


class Cell(NamedTuple):
    """One job: ``line`` is the program's arguments, with a Source where the path of a content stands.

    ``id`` is a hash of the line with contents in place of paths, of the program's version, and of ``foreign``: the executors
    that are programs of their own, each with its identity. Equal ids have equal results where all identities are known.
    """

    id: str
    model: str
    sha: str
    against: str
    executor_a: str
    executor_b: str
    inputs: str
    options: str
    line: tuple[Word, ...]
    foreign: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """The names that tell a cell from the others of its sweep, and find it in another sweep."""
        return (self.model, self.against, self.executor_a, self.executor_b, self.inputs, self.options)


class _Model(NamedTuple):
    name: str
    source: Source
    row: ModelSet
    against: Source | None
    folder: Path | None  # of the model file, where it has a path


class Plan:
    """The cells of a spec for one version of the program; models are found and hashed once, inputs as they are met.

    ``keeping``: cells write the baselines of single executors instead of comparing with them. Raises UsageError and IoError.
    """

    def __init__(self, spec: Spec, version: str, hashes: Hashes, pattern: str = "", keeping: bool = False) -> None:
        self._spec = spec
        self._version = version
        self._hashes = hashes
        self._keeping = keeping
        self._identities: dict[str, str] = {}
        self._store = Store(spec.store) if spec.store is not None else None
        found: dict[tuple[str, str], _Model] = {}
        for row in spec.models:
            for model in self._models_of(row):
                if pattern and not fnmatch.fnmatchcase(model.name, pattern):
                    continue
                other = found.setdefault((model.name, row.against), model)
                if other is not model:
                    raise UsageError(
                        f"two models are named '{model.name}': {other.source.path} and {model.source.path}; give a row of [[models]] a name"
                    )
        if not found:
            raise UsageError(f"no model is named like '{pattern}'" if pattern else "the spec's [[models]] find no model")
        self._models = list(found.values())

    def __iter__(self) -> Iterator[Cell]:
        for model in self._models:
            for name, words in self._inputs_of(model):
                for executors in self._spec.executors:
                    for options in self._spec.options:
                        yield self._cell(model, name, words, executors, options)

    # ---- models

    def _models_of(self, row: ModelSet) -> Iterator[_Model]:
        against = self._source(self._spec.folder / row.against) if row.against else None
        if row.sha256:
            if self._store is None:
                raise UsageError(f"a model is given by sha256 {row.sha256}, and the spec has no store: store = \"FOLDER\"")
            source = self._store.model(row.sha256)
            yield _Model(row.name or row.sha256[:12], source, row, against, None)
            return
        path = self._spec.folder / row.path
        files = [(_name_of_file(path), path)] if path.is_file() else list(_found(path))
        if not files:
            raise UsageError(f"'{path}' has no model; a row of [[models]] needs a file, a folder with models or a glob that finds some")
        for name, file in files:
            if row.name:
                name = row.name if len(files) == 1 else f"{row.name}/{name}"
            yield _Model(name, self._source(file if row.verb == "run" else file.parent), row, against, file.parent)

    def _source(self, path: Path) -> Source:
        source = self._hashes.source(path)
        return source if self._store is None else self._store.add(source)

    # ---- inputs

    def _input_names(self, model: _Model) -> Iterator[tuple[str, InputSet, Path | None]]:
        """(name, row, file or folder) of each set of inputs of a model."""
        if model.row.verb == "test":
            yield "all data sets", InputSet("all data sets"), None
            return
        rows = [row for row in self._spec.inputs if not model.row.inputs or row.name in model.row.inputs]
        sets = _data_sets(model.folder)
        if not self._spec.inputs:
            rows = [InputSet("own", own=True)] if sets else [InputSet("seed 0")]
        for row in rows:
            if row.own:
                for folder in sets:
                    yield folder.name, row, folder
            elif row.path:
                path = row.path.replace("{model}", model.name).replace("{folder}", str(model.folder or ""))
                yield row.name, row, self._spec.folder / path
            else:
                yield row.name, row, None

    def _inputs_of(self, model: _Model) -> Iterator[tuple[str, list[Word]]]:
        for name, row, path in self._input_names(model):
            words: list[Word] = []
            if path is not None:
                words += ["--inputs", self._source(path)]
            elif model.row.verb == "run":
                words += ["--seed", str(row.seed)]
            for key, joint in (("dim", ""), ("shape", "x"), ("range", "..")):
                sizes = {**getattr(model.row, key), **getattr(row, key)}
                for of, size in sorted(sizes.items()):
                    text = joint.join(map(str, size)) if isinstance(size, list) else str(size)
                    words += [f"--{key}", f"{of}={text}"]
            yield name, words

    # ---- cells

    def _cell(self, model: _Model, inputs: str, given: list[Word], executors: str, options: OptionSet) -> Cell:
        names = _core.split_executors(executors)
        a, b = (*names, "")[:2]
        line: list[Word] = [model.row.verb, model.source, "--with", executors]
        if model.row.verb == "test":
            if b:
                raise UsageError(f"verb = \"test\" of model '{model.name}' takes single executors; '{executors}' is a pair")
            unfit = [key for key in options.options if key not in ("rewrite", "fallback")]
            if unfit:
                raise UsageError(f"verb = \"test\" of model '{model.name}' does not take the option {unfit[0]}; rewrite and fallback fit")
        if model.against is not None:
            line += ["--against", model.against]
            b = b or a
        line += given
        for key, value in options.options.items():
            line += self._option(key, value, given)
        line += ["--threads", str(self._spec.threads)]
        if self._spec.baselines is not None and not b and model.row.verb == "run":
            path = self._spec.baselines / baseline_name(model.name, inputs, a, options.name)
            if self._keeping:
                line += ["--save-baseline", str(path)]
            elif path.exists():
                line += ["--baseline", self._source(path)]
            else:
                raise UsageError(f"there is no baseline '{path}'; --save-baselines writes the baselines of a spec")
            a, b = BASELINE, a
        plain = [word.sha if isinstance(word, Source) else word for word in line]
        foreign = tuple((name, self._identity(name)) for name in names if _core.is_foreign_executor(name))
        digest = hashlib.sha256(json.dumps([self._version, *plain, *foreign]).encode()).hexdigest()
        return Cell(digest[:32], model.name, model.source.sha, model.row.against, a, b, inputs, options.name, tuple(line), foreign)

    def _identity(self, executor: str) -> str:
        if executor not in self._identities:
            self._identities[executor] = identity_of(executor, self._hashes)
        return self._identities[executor]

    def _option(self, key: str, value: Any, given: list[Word]) -> list[Word]:
        option = f"--{key.replace('_', '-')}"
        if key == "seed" and option in given:
            raise UsageError("seed is given by [[options]] and by generated inputs; give it in one of them")
        if value is True or value is False:
            return [option, *(["on"] if key == "tf32" else [])] if value else []
        if key == "policy_file":
            return [option, self._source(Path(value))]
        values = value if isinstance(value, list) else [value]
        return [word for one in values for word in (option, str(one))]


def baseline_name(model: str, inputs: str, executor: str, options: str) -> str:
    """The path of a baseline within the folder of baselines: a folder for each model, a file for each combination."""
    parts = (re.sub(r"[^A-Za-z0-9._=+-]+", "-", part) for part in (inputs, executor, options))
    return f"{re.sub(r'[^A-Za-z0-9._=+/-]+', '-', model)}/{'--'.join(parts)}.plx"


def _name_of_file(path: Path) -> str:
    return path.resolve().parent.name if path.name == "model.onnx" else path.stem


def _data_sets(folder: Path | None) -> list[Path]:
    if folder is None:
        return []
    return sorted(folder.glob("test_data_set_*"), key=lambda path: (len(path.name), path.name))


def _found(path: Path) -> Iterator[tuple[str, Path]]:
    """(name, file) of the models in a folder at any depth, or of a glob; a model.onnx is named by its folder."""
    if path.is_dir():
        root = path
        files: list[Path] = []
        for folder, names, entries in os.walk(path):
            names[:] = sorted(name for name in names if not name.startswith((".", "test_data_set_")))
            files += [Path(folder) / entry for entry in sorted(entries) if entry.endswith(".onnx")]
    else:
        text = str(path)
        root = Path(os.path.dirname(text[: min((text.find(c) for c in "*?[" if c in text), default=len(text))] + "x"))
        hits = (Path(hit) for hit in sorted(glob.glob(text, recursive=True)))
        files = [hit for hit in hits if hit.is_file() and hit.suffix in MODEL_ENDINGS]
    for file in files:
        relative = file.relative_to(root)
        named = relative.parent if file.name == "model.onnx" else relative.with_suffix("")
        yield (str(named) if str(named) != "." else _name_of_file(file)), file


def line_of(cell: Cell, paths: Mapping[Source, str]) -> list[str]:
    """The program's arguments of a cell, with the paths of its contents."""
    return [paths[word] if isinstance(word, Source) else word for word in cell.line]
