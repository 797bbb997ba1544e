# SPDX-License-Identifier: Apache-2.0
"""The backend "parallax_debug": each graph runs on two executors side by side, value by value."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

import parallax
from parallax.comparison import Cause, Comparer, Comparison
from parallax.errors import ExecutionError
from parallax.model import Model

from ._converted import Converted
from ._opinion import policy_of
from ._options import DebugOptions, Transform
from ._sessions import Engine, SessionEngine
from .backends import Backend
from .storage import CompiledGraph, Storage, dump_path

if TYPE_CHECKING:
    from ._opinion import Opinion


@dataclass(frozen=True)
class Divergence:
    """A call of a graph whose executors do not agree.

    `fault` says whose it is: "kernel" where the two executors differ; "conversion" where torch and the reference differ
    (known with `eager=True` alone). `node` is the ONNX node, `operator` the ATen operator it was made of, `module` and
    `line` where that came from; "" where it is unknown. `text` is all of it in words.
    """

    graph: CompiledGraph
    call: int
    fault: Literal["kernel", "conversion"]
    comparison: Comparison
    node: str
    operator: str
    module: str
    line: str
    text: str


class DivergenceError(ExecutionError):
    """`on_divergence="raise"`: the call that diverged, as `divergence`."""

    def __init__(self, divergence: Divergence) -> None:
        super().__init__(divergence.text, node=divergence.node)
        self.divergence = divergence


class DivergenceWarning(UserWarning):
    """`on_divergence="warn"`."""


def debug_backend(
    *, executors: tuple[str, str] = ("reference", "cpu"), eager: bool = False, policy: str | Mapping[str, Any] = "auto",
    on_divergence: Literal["warn", "raise"] | Callable[[Divergence], Any] = "warn", every: int = 1,
    dump: str | Path | None = None, fast_transforms: Sequence[Transform] = (),
    patterns: str | Sequence[str] = "default", storage: MutableMapping[Any, Any] | None = None,
    dump_prefix: str | Path | None = None, opset: int = 20,
    decompositions: str | Mapping[Any, Callable[..., Any]] = "default", freeze: Literal["auto", "never"] = "auto",
    fallback: Literal["error", "eager"] = "error", randomness: Literal["torch", "executor"] = "torch",
    transforms: Sequence[Transform] = (), verbose: int = 0, force: bool = False,
) -> Backend:
    """A backend that runs each graph on two executors and compares every value of both.

    - `executors`: the one that is believed and the one that is tested; results of the second go on;
    - `eager`: torch's own values of the graph are compared with the first executor's, too; where those two differ the
      conversion is at fault, where only the executors differ a kernel is;
    - `policy`: "auto" (limits by operator, type and length of sums) or {"rtol": x, "atol": y};
    - `on_divergence`: "warn", "raise" (`DivergenceError`), or a function that is called with a `Divergence`;
    - `every`: each n-th call of a graph is compared, the others run on the second executor alone;
    - `dump`: of a call that diverges, the model, the inputs and both executions are written to
      `DUMP_<index>_<kind>_call<n>`;
    - `fast_transforms`: applied to the second executor's model alone: what if this node were another one?

    The others are those of `backend`. Each graph keeps its `comparisons`. The cost is that of `parallax compare`.

    >>> import torch, parallax.torch as pt
    >>> storage = pt.Storage()
    >>> net = torch.compile(torch.nn.Linear(4, 2), backend=pt.debug_backend(storage=storage, on_divergence="raise"))
    >>> net(torch.ones(3, 4)).sum().backward()
    >>> [(g.kind, g.comparisons[0].verdict) for g in storage.graphs]
    [('forward', 'pass'), ('backward', 'pass')]
    """
    return Backend(DebugOptions(
        executors=(executors[0], executors[1]) if len(executors) == 2 else executors, eager=eager, policy=policy,
        on_divergence=on_divergence, every=every, dump=dump, fast_transforms=tuple(fast_transforms), patterns=patterns,
        storage=storage, dump_prefix=dump_prefix, opset=opset, decompositions=decompositions, freeze=freeze,
        fallback=fallback, randomness=randomness, transforms=tuple(transforms), verbose=verbose, force=force),
        "parallax_debug")


parallax_debug = Backend(DebugOptions(), "parallax_debug")
"""The backend "parallax_debug" of torch.compile."""


def make_engine(graph: CompiledGraph, converted: Converted, options: DebugOptions) -> Callable[[Model], Engine]:
    """The session of a graph's calls, made of its model (again where a frozen weight changed)."""
    return lambda model: DebugEngine(graph, converted, options, model)


class DebugEngine:
    """Runs a model on both executors, or in between on the second alone."""

    def __init__(self, graph: CompiledGraph, converted: Converted, options: DebugOptions, model: Model) -> None:
        fast = model
        for transform in options.fast_transforms:
            fast = parallax.load(transform(fast))
        self._graph = graph
        self._options = options
        self._model, self._fast = model, fast
        self._comparer = Comparer(
            model, fast, executors=options.executors, rewrite=options.rewrite, **policy_of(options.policy))
        self._session = SessionEngine(fast, options.executors[1], options.rewrite, options.observer)
        self._opinion: Opinion | None = None
        if options.eager:
            from ._opinion import Opinion

            self._opinion = Opinion(converted, graph.converted_model, options)

    def __call__(self, feeds: list[Any], inputs: Sequence[Any]) -> list[torch.Tensor]:
        call = self._graph.calls
        if call % self._options.every:
            return self._session(feeds, inputs)
        results: list[torch.Tensor]
        results, comparison = self._comparer.run(feeds, kind="torch", blame=True)
        self._keep(comparison)
        conversion = None if self._opinion is None else self._opinion.disagreement(inputs)
        if conversion is not None:
            self._tell(self._divergence("conversion", call, conversion), feeds)
        elif comparison.verdict == "diverged":
            self._tell(self._divergence("kernel", call, comparison), feeds)
        return results

    def _keep(self, comparison: Comparison) -> None:
        storage = self._options.storage
        limit = storage.keep_comparisons if isinstance(storage, Storage) else 1000
        kept = self._graph.comparisons
        kept.append(comparison)
        del kept[:max(0, len(kept) - limit)]

    def _divergence(self, fault: Literal["kernel", "conversion"], call: int, comparison: Comparison) -> Divergence:
        graph = self._graph
        sides = ("torch", self._options.executors[0]) if fault == "conversion" else self._options.executors
        at = _locate(graph.converted_model, comparison)
        text = (f"call {call} of graph {graph.index} ({graph.kind}): {at} differs between {sides[0]} and {sides[1]}"
                f"{at.why}. At fault is the {_FAULTS[fault].format(sides[1])}")
        return Divergence(graph, call, fault, comparison, at.node, at.operator, at.module, at.line, text)

    def _tell(self, divergence: Divergence, feeds: list[Any]) -> None:
        if self._options.dump is not None:
            self._write(divergence, feeds)
        if callable(self._options.on_divergence):
            self._options.on_divergence(divergence)
        elif self._options.on_divergence == "raise":
            raise DivergenceError(divergence)
        else:
            warnings.warn(divergence.text, DivergenceWarning, stacklevel=2)

    def _write(self, divergence: Divergence, feeds: list[Any]) -> None:
        assert self._options.dump is not None
        folder = dump_path(self._options.dump, self._graph, f"_call{divergence.call}")
        folder.mkdir(parents=True, exist_ok=True)
        self._model.save(folder / "model.onnx", force=self._options.force)
        names = [value.name for value in self._model.inputs]
        parallax.compare(
            self._model, self._fast, inputs=dict(zip(names, feeds)), executors=self._options.executors, dump=folder,
            force=self._options.force)


_FAULTS = {"kernel": "kernel of executor '{}'", "conversion": "conversion to ONNX"}


@dataclass(frozen=True)
class _Location:
    """The node that a comparison names first, with its origin in torch."""

    node: str
    op: str
    operator: str
    module: str
    line: str
    why: str

    def __str__(self) -> str:
        made = f", made of {self.operator}" if self.operator else ""
        where = (f" in {self.module}" if self.module else "") + (f" ({self.line})" if self.line else "")
        return f"node '{self.node}' ({self.op}){made}{where}{',' if made or where else ''}"


def _locate(model: Model, comparison: Comparison) -> _Location:
    if comparison.causes:
        cause = comparison.causes[0]
        operator, module, line = _origin(model, cause)
        return _Location(cause.node, cause.op, operator, module, line, f": {cause.why}" if cause.why else "")
    first = comparison.first_divergence
    node = "" if first is None or first.node is None else first.node
    worst = max(comparison.values, key=lambda value: value.severity or 0.0, default=None)
    why = "" if worst is None else f": value '{worst.path}' differs by {worst.severity or 0.0:.3g} times its limit"
    return _Location(node, "" if first is None or first.op is None else first.op, "", "", "", why)


def _origin(model: Model, cause: Cause) -> tuple[str, str, str]:
    """ATen operator, module and source line of a cause; "" where the conversion did not say."""
    found = next((node for node in model.nodes if node.name == cause.node), None)
    source = cause.source
    module = source.module if source is not None else found.scope if found is not None else ""
    line = source.line if source is not None else found.source if found is not None else ""
    operator = source.operator if source is not None else ""
    if not operator and found is not None:
        kinds = [part.rpartition(": ")[2] for part in found.metadata.get("namespace", "").split("/")]
        operator = next((kind for kind in reversed(kinds) if kind.startswith("aten.")), "")
    return operator, module, line
