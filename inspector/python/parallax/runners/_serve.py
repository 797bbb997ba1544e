# SPDX-License-Identifier: Apache-2.0
"""The loop that talks with Parallax: a request a line on stdin, an answer a line on what was stdout."""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import json
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from parallax.errors import Error, UsageError
from parallax.model import Model
from parallax.runners._requests import Answer, Description, Load, Run, Runner, request_of, write_values

__all__ = ["PROTOCOL", "serve"]

PROTOCOL = 1

# Kinds of our errors that the conversation has, too; all others are failures of execution.
_CODES = frozenset(("usage", "invalid_model", "unsupported", "execution", "out_of_memory"))


def serve(runner: Runner) -> None:
    """Holds the conversation of ``inspector/exec/FOREIGN.md`` for a runner, until stdin ends.

    What libraries print goes to stderr, whose last lines Parallax shows where the program fails. An exception of a method
    is the answer to its request, and the next one is read.

    >>> from parallax.runners import serve
    >>> serve(MyRunner())                                                 # doctest: +SKIP
    """
    faulthandler.enable()
    with _private_channel() as (requests, answers), contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        conversation = _Conversation(runner)
        for line in requests:
            if line.strip():
                # One write a line, in ASCII: whatever bytes a name has, the reader sees whole JSON.
                answers.write(json.dumps(conversation.answer(line)).encode() + b"\n")
                answers.flush()


@contextlib.contextmanager
def _private_channel() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """stdin and stdout as files of our own; for everybody else stdin is empty and stdout is stderr, in C, too."""
    sys.stdout.flush()
    kept = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(kept[0]), "rb") as requests, os.fdopen(os.dup(kept[1]), "wb") as answers:
            yield requests, answers
    finally:
        sys.stdout.flush()
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)


class _Conversation:
    """The model that is loaded, and the answer to each request."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._description: Description | None = None
        self._loaded: Load | None = None
        self._model: Model | None = None

    def answer(self, line: bytes) -> dict[str, Any]:
        """The answer to a line, which for every failure says what failed."""
        try:
            return self._handle(_members_of(line))
        except Exception as error:
            if not isinstance(error, Error):
                traceback.print_exc()
            return _failure_of(error)

    def _handle(self, members: Mapping[str, Any]) -> dict[str, Any]:
        kind = members.get("request")
        if kind == "describe":
            return self._describe(members.get("protocol", PROTOCOL))
        if kind == "load":
            request = request_of(Load, members)
            self._loaded = self._model = None
            self._runner.load(request)
            self._loaded = request
            return {}
        if kind == "run":
            return self._run(members)
        raise UsageError(f"the request is {kind!r}; it must be 'describe', 'load' or 'run'")

    def _describe(self, protocol: Any) -> dict[str, Any]:
        if protocol != PROTOCOL:
            raise UsageError(f"the protocol is {protocol!r}; it must be {PROTOCOL}: Parallax and its package are of two versions")
        return dataclasses.asdict(self._described())

    def _described(self) -> Description:
        if self._description is None:
            found = self._runner.describe()
            if isinstance(found, Mapping):
                known = {member.name for member in dataclasses.fields(Description)}
                found = Description(**{name: value for name, value in found.items() if name in known})
            found.settings = {str(name): str(value) for name, value in found.settings.items()}
            self._description = found
        return self._description

    def _run(self, members: Mapping[str, Any]) -> dict[str, Any]:
        if self._loaded is None:
            raise UsageError("no model is loaded; 'load' comes before 'run'")
        request = request_of(Run, members, model=self._loaded.model)
        made = self._runner.run(request)
        if isinstance(made, Mapping):
            if self._model is None:
                self._model = Model(self._loaded.model)
            made = Answer(write_values(request, made, self._described(), self._model))
        return {name: value for name, value in dataclasses.asdict(made).items() if value not in (None, [], {})}


def _members_of(line: bytes) -> Mapping[str, Any]:
    try:
        members = json.loads(line.decode(errors="surrogateescape"))
    except ValueError as error:
        raise UsageError(f"the request is no JSON: {error}") from error
    if not isinstance(members, dict):
        raise UsageError(f"the request is a JSON {type(members).__name__}; it must be an object")
    return members


def _failure_of(error: BaseException) -> dict[str, Any]:
    failure: dict[str, Any] = {}
    if isinstance(error, Error):
        failure["error"] = str(error)
        failure["code"] = error.kind if error.kind in _CODES else "execution"
        if error.node:
            failure["node"] = error.node
    else:
        failure["error"] = f"{type(error).__name__}: {error}"
        failure["code"] = "out_of_memory" if isinstance(error, MemoryError) else "execution"
    failure["error"] = " ".join(failure["error"].split())  # one line, as it is shown
    return failure
