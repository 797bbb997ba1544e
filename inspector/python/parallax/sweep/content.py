# SPDX-License-Identifier: Apache-2.0
"""Content hashes of models and inputs, and the store: a folder that has files under their hashes.

The hash of a file without companions is its SHA-256, as ``sha256sum`` prints it. A model with external data, or a folder,
is hashed over the lines ``<sha256>  <relative path>`` of its files, the model's first, the others by name.

The store has each content in a folder of its own: ``STORE/ab/abcd.../`` with the files under their relative paths.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from parallax.errors import IoError, UsageError

__all__ = ["Hashes", "Source", "Store", "companions", "resolved"]

MODEL_ENDINGS = (".onnx", ".textproto")
_BLOCK = 1 << 20
# An entry ("location", path) of TensorProto.external_data, as bytes of protobuf and in its text form.
_LOCATION = re.compile(rb"\x0a\x08location\x12([\x01-\x7f]|[\x80-\xff][\x01-\x1f])")
_LOCATION_TEXT = re.compile(rb'key:\s*"location"\s*,?\s*value:\s*"((?:[^"\\]|\\.)+)"')


class Source(NamedTuple):
    """A file or folder that a cell reads: its content's hash, its path, and the state in which it was hashed.

    ``path`` is empty for a content that only the store has; ``name`` is the file to read within the content.
    """

    sha: str
    path: str
    state: str = ""
    name: str = ""


def companions(path: Path) -> list[str]:
    """Relative paths of the files with a model's external data, sorted.

    Files that are missing or outside of the model's folder are left out; the program refuses a model with such names.
    """
    names: set[str] = set()
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return []
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if path.suffix == ".textproto":
                names.update(found[1].decode(errors="surrogateescape") for found in _LOCATION_TEXT.finditer(data))
            else:
                for found in _LOCATION.finditer(data):
                    length = found[1][0] if len(found[1]) == 1 else (found[1][0] & 0x7F) | found[1][1] << 7
                    names.add(data[found.end() : found.end() + length].decode(errors="surrogateescape"))
    return sorted(name for name in names if _is_within(name) and (path.parent / name).is_file())


def _is_within(name: str) -> bool:
    return "\0" not in name and not os.path.isabs(name) and ".." not in Path(name).parts


def _files_of(path: Path) -> list[tuple[str, Path]]:
    """(relative path, file) of a content: a folder's files, or a file, of a model with its external data."""
    if path.is_dir():
        found = (Path(folder) / name for folder, _, names in os.walk(path) for name in names)
        return sorted((str(file.relative_to(path)), file) for file in found)
    files = [(path.name, path)]
    if path.suffix in MODEL_ENDINGS:
        files += [(name, path.parent / name) for name in companions(path)]
    return files


def _state(files: list[tuple[str, Path]]) -> str:
    """Sizes and times of files: a content is hashed anew where they changed."""
    stats = [os.stat(file) for _, file in files]
    return ";".join(f"{stat.st_size},{stat.st_mtime_ns}" for stat in stats)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


class Hashes:
    """Hashes of contents, remembered in a file under path, size and time, so that a later sweep does not read models again."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._known: dict[str, list[str]] = {}
        if path is not None and path.exists():
            try:
                self._known = json.loads(path.read_text())
            except ValueError:
                self._known = {}  # a file of remembered hashes alone: they are computed again
        self._changed = False
        self._cheap: dict[str, Source] = {}

    def source(self, path: Path) -> Source:
        """The content of a file or folder. Raises IoError."""
        key = os.path.abspath(path)
        if key in self._cheap:
            return self._cheap[key]
        try:
            files = _files_of(Path(key))
            if not files:
                raise IoError(f"'{path}' is an empty folder; it must hold inputs")
            state = _state(files)
            remembered = self._known.get(key)
            if remembered is None or remembered[0] != state:
                remembered = self._known[key] = [state, self._hash(files)]
                self._changed = True
        except OSError as error:
            if isinstance(error, IoError):
                raise
            raise IoError(f"'{path}' cannot be read: {error.strerror or error}") from None
        name = "" if Path(key).is_dir() else files[0][0]
        source = self._cheap[key] = Source(remembered[1], key, state, name)
        return source

    def _hash(self, files: list[tuple[str, Path]]) -> str:
        digests = [(_sha256(file), name) for name, file in files]
        if len(digests) == 1:
            return digests[0][0]
        text = "".join(f"{digest}  {name}\n" for digest, name in digests)
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()

    def save(self) -> None:
        """Writes the file."""
        if self._changed and self._path is not None:
            temporary = self._path.with_suffix(".new")
            temporary.write_text(json.dumps(self._known))
            os.replace(temporary, self._path)


class Store:
    """A folder of contents under their hashes, which the workers of a cluster read, too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, source: Source) -> Source:
        """Copies a content into the store where it is missing; returns the source without its path."""
        target = self._folder_of(source.sha)
        if not target.is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".adding-", dir=target.parent) as scratch:
                content = Path(scratch) / "content"
                for name, file in _files_of(Path(source.path)):
                    copy = content / name
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, copy)
                try:
                    os.rename(content, target)
                except OSError:
                    if not target.is_dir():  # else another sweep has added it
                        raise
        return Source(source.sha, "", "", source.name)

    def model(self, sha: str) -> Source:
        """The model with this hash. Raises UsageError."""
        folder = self._folder_of(sha)
        names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
        models = [name for name in names if name.endswith(MODEL_ENDINGS)]
        if len(models) != 1:
            raise UsageError(f"the store '{self.folder}' has no model {sha}; a sweep of its path with this store adds it")
        return Source(sha, "", "", models[0])

    def path(self, source: Source) -> Path:
        """The file or folder of a content. Raises IoError."""
        path = self._folder_of(source.sha) / source.name
        if not path.exists():
            raise IoError(f"the store '{self.folder}' does not have {source.sha}; it must be the folder that the sweep was planned with")
        return path

    def _folder_of(self, sha: str) -> Path:
        return self.folder / sha[:2] / sha


def resolved(source: Source, store: str) -> str:
    """The path of a source on this machine. Raises IoError where it is missing or has changed since it was hashed."""
    if not source.path:
        return str(Store(Path(store)).path(source))
    path = Path(source.path)
    try:
        state = _state(_files_of(path))
    except OSError as error:
        raise IoError(f"'{path}' cannot be read here: {error.strerror or error}; a store makes models reachable by every worker") from None
    if state != source.state and Hashes().source(path).sha != source.sha:
        raise IoError(f"'{path}' has changed since the sweep was planned; start the sweep again")
    return source.path
