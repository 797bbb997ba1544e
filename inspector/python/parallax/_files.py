# SPDX-License-Identifier: Apache-2.0
"""Files that functions of this package write: refused where the program refuses them, and whole when they are there."""

from __future__ import annotations

import contextlib
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Union

import numpy as np

from parallax import _core
from parallax._sentences import ArgumentNames
from parallax.errors import Error, IoError

Paths = Union[str, "os.PathLike[str]"]

_NAMES = ArgumentNames("save")


def admit(path: Paths, force: bool = False, inputs: Sequence[Paths] = (), *, has_data: bool = False) -> None:
    """Raises UsageError where a file may not be written.

    It must be none of the files that are read (``inputs``, and what is mapped in this process), by whatever name, and in
    no folder among them; a file that Parallax did not write needs ``force``. ``has_data``: the path is a model's, whose
    weights may go to a file next to it.
    """
    with _NAMES:
        _core.admit_outputs([os.fspath(path)], force, _texts(inputs), has_data)


@contextlib.contextmanager
def written(path: Paths, force: bool = False, inputs: Sequence[Paths] = ()) -> Iterator[BinaryIO]:
    """A file to write to, which is there when the block has ended; an exception leaves what was there before.

    Raises UsageError as admit() does, and IoError.
    """
    with _NAMES:
        held = _core.OutputFile(os.fspath(path), force, _texts(inputs))
    try:
        with os.fdopen(os.dup(held.descriptor), "wb") as file:
            yield file
        held.finish()
    except OSError as error:
        if isinstance(error, Error):
            raise
        raise IoError(f"cannot write '{os.fspath(path)}': {error.strerror or error}") from error
    finally:
        held.discard()


def write_text(path: Paths, text: str, force: bool = False, inputs: Sequence[Paths] = ()) -> Path:
    """Writes a file of UTF-8. Returns its path. Raises as written() does."""
    with written(path, force, inputs) as file:
        file.write(text.encode())
    return Path(path)


def write_arrays(path: Paths, arrays: Mapping[str, Any], force: bool = False) -> Path:
    """Writes an .npz file of arrays by name. Returns its path. Raises as written() does."""
    with written(path, force) as file:
        write_archive(file, arrays)
    return Path(path)


def write_archive(file: BinaryIO | Paths, arrays: Mapping[str, Any]) -> None:
    """Writes what numpy.savez does, for arrays of any names: savez has `file` and `allow_pickle` as arguments of its own."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array))


@contextlib.contextmanager
def filled_folder(folder: Paths, force: bool = False, inputs: Sequence[Paths] = ()) -> Iterator[Path]:
    """A temporary folder for files of somebody else's writing, which are moved into ``folder`` at the end.

    None of them does where one may not, or where an exception ends the block. Raises as written() does.
    """
    with tempfile.TemporaryDirectory(prefix=".parallax-", dir=folder) as scratch:
        yield Path(scratch)
        names = sorted(os.listdir(scratch))
        with _NAMES:
            _core.admit_outputs([os.path.join(folder, name) for name in names], force, _texts(inputs))
            for name in names:
                _core.move_output(os.path.join(scratch, name), os.path.join(folder, name), force, _texts(inputs))


def _texts(paths: Sequence[Paths]) -> list[str]:
    return [os.fspath(path) for path in paths]
