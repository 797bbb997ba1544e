# SPDX-License-Identifier: Apache-2.0
"""Sessions: a model made ready on an executor, called with arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from parallax import _core
from parallax._core import Site, Tensor
from parallax._sentences import ArgumentNames, shown, translated, whole
from parallax.errors import Error, UsageError
from parallax.model import Model, load
from parallax.process import set_threads

__all__ = ["Observer", "Session", "Site"]


class Observer(Protocol):
    """The protocol of ``Session.run(observe=...)``. Without a method ``wants`` every value is shown."""

    def wants(self, site: Site) -> bool:
        """Asked once for every value that the session may compute."""

    def observe(self, path: str, value: Tensor | Any) -> None:
        """Called with each value, in the order of execution; it is a copy. An exception stops the run."""


class Session:
    """A model made ready on an executor.

    ``executor``: "cpu", "reference", "reference:double", "cuda", or a program of its own: "onnxruntime",
    "torch:FILE.pt2", "openvino", "tensorrt", "cmd:COMMAND". ``time_limit``: seconds that such a program may take for one
    run. ``rewrite``: patterns applied before planning, as in
    Model.rewrite, or "none". ``threads`` sets the number for the whole process. ``fallback``: an executor for nodes that
    this one has no kernel for. ``memory_limit``: bytes of weights and values, or "2GiB". ``alias_outputs``: outputs may
    share memory with inputs, weights and each other. ``states``: (input, output) or (input, output, axis) of values that the session
    keeps: the output of a run is the input of the next, longer along the axis (2 where none is given), and neither is
    given nor returned; reset_states() comes first. Calls from several threads are made one after another; clone() gives
    each thread a session of its own. Raises UsageError, Unsupported, InvalidModel, IoError, OutOfMemory.

    >>> import numpy as np, parallax
    >>> session = parallax.Session("samples/cnn/model.onnx")                                      # doctest: +SKIP
    >>> session.run({"image": np.zeros((2, 3, 32, 32), np.float32)})["log_probabilities"].shape   # doctest: +SKIP
    (2, 10)
    """

    __slots__ = ("__weakref__", "_alias_outputs", "_core", "_run", "_state_count")

    def __init__(
        self,
        model: Any,
        executor: str = "cpu",
        *,
        rewrite: str = "default",
        threads: int | None = None,
        fallback: str | None = None,
        tf32: bool = False,
        memory_limit: int | str | None = None,
        time_limit: float | None = None,
        seed: int = 0,
        observe_all: bool = False,
        keep_casts: bool = False,
        accumulate: str = "default",
        alias_outputs: bool = False,
        states: Sequence[tuple[str, str] | tuple[str, str, int]] = (),
    ) -> None:
        if threads is not None:
            set_threads(threads)
        options: dict[str, Any] = {"seed": whole("seed", seed), "states": _bindings(states) or None}
        for name, flag in (("tf32", tf32), ("observe_all", observe_all), ("keep_casts", keep_casts)):
            if not isinstance(flag, bool):
                raise UsageError(f"{name} is {shown(flag)}; it must be True or False")
            options[name] = flag
        for name, text in (("rewrite", rewrite), ("fallback", fallback or ""), ("accumulate", accumulate)):
            options[name] = _text(name, text) or None
        is_text = memory_limit is None or isinstance(memory_limit, str)
        options["memory_limit"] = memory_limit if is_text else whole("memory_limit", memory_limit)
        if time_limit is not None and not isinstance(time_limit, (int, float)):
            raise UsageError(f"time_limit is {shown(time_limit)}; it must be a number of seconds, or None")
        options["time_limit"] = time_limit
        with ArgumentNames("Session"):
            core = _core.Session(load(model).core, _text("executor", executor), options)
        self._keep(core, alias_outputs, len(options["states"] or ()))

    def _keep(self, core: _core.Session, alias_outputs: bool, state_count: int) -> None:
        self._core = core
        self._run = core.run_named
        self._alias_outputs = alias_outputs
        self._state_count = state_count

    def run(
        self,
        inputs: Mapping[str, Any] | Sequence[Any],
        *,
        observe: Observer | None = None,
        kind: str | None = None,
    ) -> dict[str, Any]:
        """Runs the model and returns its outputs by name.

        ``inputs``: arrays by name, or in the order of the model's inputs; those with a default may be left out. Outputs
        are arrays as the inputs are (torch where one of them is, else Tensor, else numpy) or of ``kind`` ("numpy",
        "torch", "tensor"); sequences are lists, maps dicts, empty optionals None, and 4- and 2-bit tensors Tensors. Raises
        UsageError where names, types or shapes do not fit, ExecutionError with the node at fault.
        """
        if not isinstance(inputs, (dict, list, tuple)) and isinstance(inputs, Mapping):
            inputs = dict(inputs)
        try:
            return self._run(inputs, kind, observe, self._alias_outputs)
        except Error as error:
            error.args = (translated(str(error), "Session"),)
            raise

    def reset_states(self, batch: int, capacity: int = 256) -> None:
        """Empties every state for ``batch`` rows, with memory for ``capacity`` positions; it doubles where more come.

        Raises UsageError where the session has no states.
        """
        self._core.reset_states(whole("batch", batch), whole("capacity", capacity))

    def reorder_states(self, rows: Sequence[int]) -> None:
        """Makes row ``i`` of every state its old row ``rows[i]``, as beam search does; rows may repeat, be fewer or more."""
        if not isinstance(rows, Iterable):
            raise UsageError(f"rows is {shown(rows)}; it must be a list of whole numbers, an old row for each new one")
        self._core.reorder_states([whole("rows", row) for row in rows])

    def state(self, which: int | str, kind: str = "numpy") -> Any:
        """Returns a copy of a state's filled part as an array of ``kind``; ``which``: its position or input's name."""
        return self._core.state(self._which(which), kind)

    def set_state(self, which: int | str, value: Any) -> None:
        """Replaces a state by a copy of ``value``, whose type and shape must be the input's."""
        self._core.set_state(self._which(which), value)

    def _which(self, which: int | str) -> int | str:
        if isinstance(which, str):
            return which
        if not hasattr(which, "__index__"):
            raise UsageError(f"which is {shown(which)}; it must be a state's position, or its input's name")
        position = whole("which", which)
        if self._state_count and not 0 <= position < self._state_count:
            last = self._state_count - 1
            raise UsageError(f"state {position} is not there; it must be 0 to {last}, or the name of its input")
        return position

    def clone(self) -> Session:
        """Returns a session of the same model and options, for another thread: it shares the model's weights."""
        copy = object.__new__(Session)
        copy._keep(self._core.clone(), self._alias_outputs, self._state_count)
        return copy

    @property
    def core(self) -> _core.Session:
        """The compiled object that it wraps."""
        return self._core

    @property
    def model(self) -> Model:
        """The model, as it was before rewriting."""
        return Model(self._core.model)

    @property
    def executor(self) -> str:
        """The executor's name."""
        return self._core.executor

    @property
    def input_names(self) -> list[str]:
        """Names of the model's inputs, in order."""
        return self._core.input_names

    @property
    def output_names(self) -> list[str]:
        """Names of the model's outputs, in order."""
        return self._core.output_names

    def statistics(self) -> dict[str, Any]:
        """Returns peak_bytes, weight_bytes, arena_bytes, plan_count and fallback_nodes of all runs so far."""
        return self._core.statistics()

    def __repr__(self) -> str:
        return f"<parallax.Session of {self._core.model.path!r} on {self.executor}>"


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name} is {shown(value)}; it must be a str")
    return value


def _bindings(states: Any) -> list[tuple[str, str] | tuple[str, str, int]]:
    rule = "(input, output) or (input, output, axis): two names and a whole number"
    if isinstance(states, (str, Mapping)) or not isinstance(states, Iterable):
        raise UsageError(f"states is {shown(states)}; it must be a list of {rule}")
    bindings: list[tuple[str, str] | tuple[str, str, int]] = []
    for row in states:
        names = row[:2] if isinstance(row, (tuple, list)) else ()
        if len(names) != 2 or len(row) > 3 or not all(isinstance(name, str) for name in names):
            raise UsageError(f"states has {row!r}; each must be {rule}")
        a, b = names
        bindings.append((a, b, whole("an axis of states", row[2])) if len(row) == 3 else (a, b))
    return bindings
