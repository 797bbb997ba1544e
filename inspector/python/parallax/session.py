"""Sessions: a model made ready on an executor, called with arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from parallax import _core
from parallax._core import Site, Tensor
from parallax.model import Model, load

__all__ = ["Observer", "Session", "Site"]


class Observer(Protocol):
    """What ``Session.run(observe=...)`` takes. Without a method ``wants`` every value is shown."""

    def wants(self, site: Site) -> bool:
        """Asked once for every value that the session may compute."""

    def observe(self, path: str, value: Tensor | Any) -> None:
        """Called with each value, in the order of execution; it is a copy. An exception stops the run."""


class Session:
    """A model made ready on an executor.

    ``executor``: "cpu", "reference", "reference:double" or "cuda". ``rewrite``: patterns applied before planning, as in
    Model.rewrite, or "none". ``threads`` sets the number for the whole process. ``fallback``: an executor for nodes that
    this one has no kernel for. ``memory_limit``: bytes of weights and values. ``alias_outputs``: outputs may share memory
    with inputs, weights and each other. ``states``: (input, output) or (input, output, axis) of values that the session
    keeps: the output of a run is the input of the next, longer along the axis (2 where none is given), and neither is
    given nor returned; reset_states() comes first. Calls from several threads are made one after another; clone() gives each thread
    a session of its own. Raises UsageError, Unsupported, InvalidModel.

    >>> import numpy as np, parallax
    >>> session = parallax.Session("samples/cnn/model.onnx")                                      # doctest: +SKIP
    >>> session.run({"image": np.zeros((2, 3, 32, 32), np.float32)})["log_probabilities"].shape   # doctest: +SKIP
    (2, 10)
    """

    __slots__ = ("__weakref__", "_alias_outputs", "_core", "_run")

    def __init__(
        self,
        model: Any,
        executor: str = "cpu",
        *,
        rewrite: str = "default",
        threads: int | None = None,
        fallback: str | None = None,
        tf32: bool = False,
        memory_limit: int | None = None,
        seed: int = 0,
        observe_all: bool = False,
        keep_casts: bool = False,
        accumulate: str = "default",
        alias_outputs: bool = False,
        states: Sequence[tuple[str, str] | tuple[str, str, int]] = (),
    ) -> None:
        if threads is not None:
            _core.set_threads(threads)
        options = {
            "rewrite": rewrite, "fallback": fallback, "tf32": tf32, "memory_limit": memory_limit,
            "seed": seed, "observe_all": observe_all, "keep_casts": keep_casts, "accumulate": accumulate,
            "states": [tuple(row) for row in states] or None,
        }
        self._keep(_core.Session(load(model).core, executor, options), alias_outputs)

    def _keep(self, core: _core.Session, alias_outputs: bool) -> None:
        self._core = core
        self._run = core.run_named
        self._alias_outputs = alias_outputs

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
        return self._run(inputs, kind, observe, self._alias_outputs)

    def reset_states(self, batch: int, capacity: int = 256) -> None:
        """Empties every state for ``batch`` rows, with memory for ``capacity`` positions; it doubles where more come.

        Raises UsageError where the session has no states.
        """
        self._core.reset_states(batch, capacity)

    def reorder_states(self, rows: Sequence[int]) -> None:
        """Makes row ``i`` of every state its old row ``rows[i]``, as beam search does; rows may repeat, be fewer or more."""
        self._core.reorder_states([int(row) for row in rows])

    def state(self, which: int | str, kind: str = "numpy") -> Any:
        """Returns a copy of a state's filled part as an array of ``kind``; ``which``: its position or input's name."""
        return self._core.state(which, kind)

    def set_state(self, which: int | str, value: Any) -> None:
        """Replaces a state by a copy of ``value``, whose type and shape must be the input's."""
        self._core.set_state(which, value)

    def clone(self) -> Session:
        """Returns a session of the same model and options, for another thread: it shares the model's weights."""
        copy = object.__new__(Session)
        copy._keep(self._core.clone(), self._alias_outputs)
        return copy

    @property
    def core(self) -> _core.Session:
        """The compiled object behind it."""
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
