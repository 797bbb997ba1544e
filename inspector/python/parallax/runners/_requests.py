# SPDX-License-Identifier: Apache-2.0
"""The requests of the conversation as a runner sees them, and its answers."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, Union

import numpy as np

from parallax import _core
from parallax.dump import Dump, DumpWriter
from parallax.errors import UsageError
from parallax.model import Model

__all__ = ["Answer", "Description", "Load", "Run", "Runner", "answer_dump", "request_of", "write_values"]


@dataclass
class Description:
    """The answer to ``describe``: name, version and device of an executor, and all that can change a result.

    ``observes``: the runner reads values within the model by itself; otherwise what is wanted is made outputs of the
    model that it gets.
    """

    name: str
    version: str = ""
    device: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    observes: bool = False


@dataclass
class Load:
    """The request ``load``: a model's file, and how it is to be run.

    ``source``: the file that the user named, or "". ``optimize``: False where nothing may be fused or folded away.
    ``threads``: 0 where the runtime may choose. ``memory_limit_bytes``: 0 without a limit. ``folder``: for files of the
    runner's own.
    """

    model: str
    source: str = ""
    optimize: bool = True
    threads: int = 0
    seed: int = 0
    memory_limit_bytes: int = 0
    folder: str = ""


@dataclass
class Run:
    """The request ``run``: the files of the inputs, the names of the values that are wanted, the file of the answer.

    ``answer`` has no ending: a runner that writes the file by itself adds .plx, .npz, .safetensors or .json. ``times``:
    those of nodes are wanted.
    """

    wanted: list[str]
    answer: str
    inputs: str | None = None
    data_set: str = ""
    times: bool = False
    model: str = ""

    def read_inputs(self, model: Model | None = None) -> dict[str, Any]:
        """The inputs by name, as arrays of numpy.

        ``model``: the model that was loaded, read again without it; names and types of a data set are its.
        """
        return {name: _array_of(value) for name, value in self.read_tensors(model).items()}

    def read_tensors(self, model: Model | None = None) -> dict[str, Any]:
        """The inputs by name, as Tensors, which have all types; lists of them where an input is a sequence.

        Raises UsageError where the file lacks an input that has no default.
        """
        model = Model(self.model) if model is None else model
        arrays: dict[str, Any] = {}
        if self.inputs is not None:
            with np.load(self.inputs, allow_pickle=False) as archive:  # a part of a model has fewer inputs than the whole
                arrays = {value.name: archive[value.name] for value in model.inputs if value.name in archive.files}
        values, notes = _core.make_inputs(model.core, "" if self.inputs is not None else self.data_set, arrays, 0)
        if notes:  # each says that an input was generated, which a request leaves no room for
            raise UsageError(f"the request lacks an input of the model: {notes[0]}")
        return values


@dataclass
class Answer:
    """The answer to ``run``: the file with the values, and what a user may want to know.

    ``milliseconds``: of the run alone. ``node_milliseconds``: times by name of node. ``notes``: sentences.
    """

    answer: str
    milliseconds: float | None = None
    node_milliseconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Runner(Protocol):
    """An executor of a runtime. A method that fails raises: parallax's errors say their kind, any other is "execution"."""

    def describe(self) -> Description | Mapping[str, Any]:
        """Names the executor; nothing is loaded yet."""
        ...

    def load(self, request: Load, /) -> None:
        """Takes a model, in place of the one before."""
        ...

    def run(self, request: Run, /) -> Answer | Mapping[str, Any]:
        """Runs the model once: the file of the answer, or the values that are wanted by name."""
        ...


_Request = TypeVar("_Request", bound=Union[Load, Run])

# The types of members, in the words of JSON.
_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "str": (str, "a text"), "str | None": ((str, type(None)), "a text or null"), "bool": (bool, "true or false"),
    "int": (int, "a whole number"), "list[str]": (list, "a list of texts"),
}  # fmt: skip


def request_of(kind: type[_Request], members: Mapping[str, Any], **known: Any) -> _Request:
    """A request of its JSON members; those that it does not have are ignored. Raises UsageError, naming a member."""
    values = dict(known)
    for member in dataclasses.fields(kind):
        if member.name in known:
            continue
        is_required = member.default is dataclasses.MISSING and member.default_factory is dataclasses.MISSING
        if member.name not in members:
            if is_required:
                raise UsageError(f"the request '{kind.__name__.lower()}' lacks its member '{member.name}'")
            continue
        value = members[member.name]
        types, words = _TYPES[str(member.type)]
        is_bool = isinstance(value, bool) and types is not bool
        has_others = isinstance(value, list) and not all(isinstance(name, str) for name in value)
        if is_bool or has_others or not isinstance(value, types):
            raise UsageError(
                f"'{member.name}' of the request '{kind.__name__.lower()}' is {type(value).__name__}; it must be {words}")
        values[member.name] = value
    return kind(**values)


@contextlib.contextmanager
def answer_dump(
    path: str, description: Description, model: Model, settings: Mapping[str, Any] | None = None
) -> Iterator[DumpWriter]:
    """The dump of an answer. Each value is in the file when it is written, so that a crash leaves those before."""
    named = {**description.settings, **(settings or {})}
    with Dump.create(
        path, executor=description.name, device=description.device, settings=named, model=model, force=True
    ) as dump, dump.call():
        yield dump


def write_values(request: Run, values: Mapping[str, Any], description: Description, model: Model) -> str:
    """Writes values by name of the main graph into a dump; returns its path."""
    outputs = {value.name for value in model.outputs}
    path = request.answer + ".plx"
    with answer_dump(path, description, model) as dump:
        for name, value in values.items():
            dump.write(_core.escape_name(name), value, is_graph_output=name in outputs)
    return path


def _array_of(value: Any) -> Any:
    if isinstance(value, list):
        return [_array_of(item) for item in value]
    return value.numpy() if isinstance(value, _core.Tensor) else value
