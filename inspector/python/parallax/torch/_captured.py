# SPDX-License-Identifier: Apache-2.0
"""Capture: captured objects by key; and the stores that they are written to, memory or a dump."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from parallax import _core, _files
from parallax._sentences import ArgumentNames
from parallax.errors import UsageError
from parallax.torch._structure import Tree, unflatten

__all__ = ["Capture", "CaptureWarning", "Key", "Store", "Summary"]

# (name of the module, number of its call, "I" for inputs and "O" for the result), or the name of an appended object.
Key = Any
_SIDES = {"in": "I", "out": "O"}
_SAMPLE = 1024


class CaptureWarning(UserWarning):
    """A value was captured without all of its elements."""


@dataclass(frozen=True, eq=False)
class Summary:
    """A value whose elements were not kept: type, shape, statistics, and a sample at that level."""

    type: str
    shape: tuple[int, ...]
    statistics: dict[str, int | float]
    sample: np.ndarray[Any, Any] | None = None


@dataclass(frozen=True)
class _Object:
    path: str  # of its root
    frames: str
    tree: Tree


class Capture(Mapping[Key, Any]):
    """Captured objects in the order in which they were seen: ``(name, call, "I")``, ``(name, call, "O")``, or a name.

    Each look builds the object anew, with its containers, caches and dataclasses; tensors are torch's (numpy's, where
    they were) on the CPU, and views of what is stored: clone them before writing to them. A value that was kept without
    its elements is a Summary.
    """

    def __init__(self) -> None:
        self._objects: dict[Key, _Object] = {}
        self._values: dict[str, Any] = {}  # by path; of a capture in memory
        self._path: str | None = None
        self._dump: _core.Dump | None = None

    @staticmethod
    def restore(path: str | os.PathLike[str]) -> Capture:
        """Reads captured objects from a dump (.plx) or an ONNX file of constants, also from onnx-diagnostic's.

        Raises UsageError when the file holds none, IoError, CorruptFile.
        """
        text = os.fspath(path)
        if not text.endswith(".plx"):
            return Capture.of_objects(*_core.read_captured_objects(text)[:2])
        dump = _core.Dump.open(text)
        found = Capture.of_objects([(row["path"], row["text"]) for row in dump.structures], {})
        if not found._objects:
            raise UsageError(f"{text!r} holds no captured objects; it must be a dump that a capture wrote")
        found._path = text
        return found

    @staticmethod
    def of_objects(rows: Iterable[tuple[str, str]], values: dict[str, Any]) -> Capture:
        """Objects of (path of the root, tree as JSON) over values by path."""
        found = Capture()
        found._values = values
        for root, tree in rows:
            key, frames = _key_of(root)
            found._objects[key] = _Object(root, frames, json.loads(tree))
        return found

    @property
    def path(self) -> str | None:
        """The dump that holds the values; None for a capture in memory."""
        return self._path

    def save_onnx(
        self, path: str | os.PathLike[str], external_data: bool = False, *, force: bool = False
    ) -> None:
        """See ``parallax.torch.save_onnx``."""
        with ArgumentNames("save_onnx"):
            self._write_onnx(os.fspath(path), external_data, force)

    def _write_onnx(self, path: str, external_data: bool, force: bool) -> None:
        if self._path is not None:
            _core.export_captured_objects(self._path, path, external_data, force)
            return
        rows = [(item.path, json.dumps(item.tree)) for item in self._objects.values()]
        whole = {name: value for name, value in self._values.items() if not isinstance(value, Summary)}
        _core.write_captured_objects(rows, whole, path, external_data, force)

    def _read_from(self, onnx: str) -> None:
        """The values are in this ONNX file now, and no longer in a dump."""
        self._path = self._dump = None
        if self._objects:
            self._values = _core.read_captured_objects(onnx)[1]

    def unique_name(self, name: str) -> str:
        """The name, with a number where an object has it already."""
        unique, number = name, 0
        while unique in self._objects:
            number += 1
            unique = f"{name}_{number}"
        return unique

    def __getitem__(self, key: Key) -> Any:
        item = self._objects[key]
        return unflatten(item.tree, lambda name, library: self._value(item.frames + _core.escape_name(name), library))

    def __iter__(self) -> Iterator[Key]:
        return iter(list(self._objects))

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def __repr__(self) -> str:
        return f"Capture({len(self)} objects, {self._path or 'in memory'})"

    def _reader(self) -> _core.Dump:
        """The dump as it is now: while it is written, it is opened anew when something is not there yet."""
        if self._path is None:
            raise UsageError("a capture in memory has no dump")
        if self._dump is None:
            self._dump = _core.Dump.open(self._path)
        return self._dump

    def _value(self, path: str, library: str) -> Any:
        if self._path is None:
            return _in_library(self._values[path], library)
        index = self._reader().find(path)
        if index < 0:
            self._dump = None
            index = self._reader().find(path)
        if index < 0:
            raise UsageError(f"{self._path!r} has no value {path!r}, which a captured object needs")
        entry = self._reader().entries[index]
        value = None if entry.level in ("stats", "shape") else self._reader().load(index)
        if entry.level == "all":
            return _in_library(value, library)
        sample = None if value is None else value.numpy()
        return Summary(entry.type.partition("[")[0], entry.shape or (), entry.statistics or {}, sample)


def _key_of(root: str) -> tuple[Key, str]:
    """The key of the object at a path, and its frames."""
    frames, name = _core.parse_value_path(root)
    prefix = root[: len(root) - len(_core.escape_name(name))]
    if len(frames) == 1 and frames[0][0] == "module":
        _, module, call = frames[0]
        if call >= 0 and name in _SIDES:
            return (module, call, _SIDES[name]), prefix
        if call < 0 and name == "value":
            return module, prefix
    return root, prefix


def _in_library(value: Any, library: str) -> Any:
    if isinstance(value, Summary) or not isinstance(value, _core.Tensor):
        return value
    if library == "parallax":
        return value
    if library == "numpy" or value.dtype == "string":
        return value.numpy()
    return value.torch()


class Store:
    """The destination of a capture's values: a dump file, memory, or (without either wanted) nowhere."""

    def __init__(
        self, path: str | os.PathLike[str] | None, onnx: str | os.PathLike[str] | None, level: str, limit: int,
        keeps: bool = True, external_data: bool = False, force: bool = False,
    ) -> None:
        if level not in ("all", "stats"):
            raise UsageError(f"level is {level!r}; it must be 'all' or 'stats'")
        if limit <= 0:
            raise UsageError(f"limit is {limit}; it must be a positive number of bytes")
        if onnx is not None and level != "all":
            raise UsageError("an ONNX file holds whole values; level='stats' needs path=")
        self.capture = Capture()
        self.keeps = keeps
        self.limit = limit
        self._level = level
        self._onnx = None if onnx is None else os.fspath(onnx)
        self._external_data = external_data
        self._force = force
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # of values that go into an ONNX file alone
        self._writer: _core.DumpWriter | None = None
        self.bytes = 0
        if self._onnx is not None:
            _files.admit(self._onnx, force, has_data=external_data)
        if path is None and self._onnx is not None:
            where = os.path.dirname(os.path.abspath(self._onnx))
            self._folder = tempfile.TemporaryDirectory(prefix=".parallax-", dir=where)
            path = os.path.join(self._folder.name, "values.plx")
        if path is not None:
            self.capture._path = os.fspath(path)
            with ArgumentNames("capture"):
                self._writer = _core.DumpWriter(
                    self.capture._path, level=level, sample_elements=_SAMPLE, force=force)
            self._writer.begin_run("torch", "cpu", {"torch": str(torch.__version__), "level": level})

    def frames(self, name: str, number: int) -> str:
        """Frames of a module's call, or of an appended object (-1)."""
        return str(_core.module_frames(name, number))

    def enter(self, name: str, number: int, kind: str) -> None:
        """A module's call begins."""
        if self._writer is not None:
            self._writer.enter_module(name, number, kind)

    def leave(self, name: str, number: int, kind: str) -> None:
        """A module's call ends."""
        if self._writer is not None:
            self._writer.leave_module(name, number, kind)

    def write(self, frames: str, name: str, array: Any, role: str) -> tuple[str, bool]:
        """Copies a value into the store: why it could not ("" where it could), and whether only a sample was kept."""
        reason = _refusal_reason(array)
        if reason:
            return reason, False
        path = frames + _core.escape_name(name)
        plain = _plain(array)
        size = int(plain.nbytes)
        is_cut = self._level == "all" and size > self.limit
        self.bytes += size
        if self._writer is not None:
            self._writer.write(path, plain, "sample" if is_cut else None, role)
        elif is_cut or self._level == "stats":
            self.capture._values[path] = _summary(plain, with_sample=is_cut)
        else:
            self.capture._values[path] = _core.Tensor(plain).clone()
        return "", is_cut

    def add(self, key: Key, frames: str, root: str, tree: Tree) -> None:
        """The object whose values were written last."""
        if self._writer is not None:
            self._writer.structure(frames + root, json.dumps(tree))
        self.capture._objects[key] = _Object(frames + root, frames, tree)

    def close(self, completed: bool, verbose: bool) -> None:
        """Finishes the files. Also after an exception: what was captured is kept."""
        if verbose and self.keeps:
            print(f"-- gather stored {len(self.capture)} objects, size={self.bytes // 2**20} Mb")
        if self._writer is None:
            return
        self._writer.end_run(completed)
        self._writer.finish()
        self._writer = None
        self.capture._dump = None
        if self._onnx is not None:
            self._write_onnx(verbose)

    def _write_onnx(self, verbose: bool) -> None:
        assert self._onnx is not None and self.capture._path is not None
        if verbose:
            print("-- dumps stored objects")
        try:
            if len(self.capture) > 0:
                self.capture.save_onnx(self._onnx, self._external_data, force=self._force)
        finally:
            if self._folder is not None:
                self._folder.cleanup()
        if self._folder is not None:
            self.capture._read_from(self._onnx)
        if verbose:
            print("-- done dump stored objects")


def _refusal_reason(array: Any) -> str:
    """Why a tensor has no elements that could be copied; "" where it has."""
    if isinstance(array, np.ndarray) and array.dtype.kind == "O" and not all(isinstance(x, str) for x in array.flat):
        return "an array of objects"
    if not isinstance(array, torch.Tensor):
        return ""
    if type(array).__name__ == "FakeTensor" or array.is_meta:
        return "a tensor without elements"
    if array.layout is not torch.strided or array.is_quantized or array.is_nested:
        return f"a tensor of layout {array.layout}"
    return ""


def _plain(array: Any) -> Any:
    """The tensor on the host, without gradient, conjugation and negation; strings and numbers as arrays of objects."""
    if isinstance(array, torch.Tensor):
        plain = array.detach().resolve_conj().resolve_neg()
        return plain.cpu() if plain.device.type != "cpu" else plain
    if isinstance(array, np.generic):
        array = np.asarray(array)
    if isinstance(array, np.ndarray) and array.dtype.kind == "U":
        return array.astype(object)
    return array


def _summary(array: Any, with_sample: bool) -> Summary:
    tensor = _core.Tensor(array)
    sample = None
    if with_sample:
        flat = tensor.numpy().reshape(-1)
        count = min(flat.size, _SAMPLE)
        sample = flat[np.arange(count) * flat.size // max(count, 1)].copy()
    return Summary(tensor.dtype, tensor.shape, tensor.statistics(), sample)
