"""The backend "parallax_debug": each graph runs on two executors side by side, value by value."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

import parallax
from parallax.errors import ExecutionError
from parallax.model import Model

from ._converted import Converted
from ._options import DebugOptions, Transform
from ._sessions import Engine, SessionEngine
from .backends import Backend
from .storage import CompiledGraph, Storage, dump_path

if TYPE_CHECKING:
    from parallax.comparison import Comparison

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
    dump: str | Path | None = None, fast_transforms: Sequence[Transform] = (), patterns: str | Sequence[str] = "default",
    storage: MutableMapping[Any, Any] | None = None, dump_prefix: str | Path | None = None, opset: int = 20,
    decompositions: str | Mapping[Any, Callable[..., Any]] = "default", freeze: Literal["auto", "never"] = "auto",
    fallback: Literal["error", "eager"] = "error", randomness: Literal["torch", "executor"] = "torch",
    transforms: Sequence[Transform] = (), verbose: int = 0,
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
        fallback=fallback, randomness=randomness, transforms=tuple(transforms), verbose=verbose), "parallax_debug")


parallax_debug_backend = Backend(DebugOptions(), "parallax_debug")
"""The backend "parallax_debug" of torch.compile."""


def make_engine(graph: CompiledGraph, converted: Converted, options: DebugOptions) -> Callable[[Model], Engine]:
    """What a graph's calls run on, made of its model (again where a frozen weight changed)."""
    return lambda model: DebugEngine(graph, converted, options, model)


class DebugEngine:
    """Runs a model on both executors, or in between on the second alone."""

    def __init__(self, graph: CompiledGraph, converted: Converted, options: DebugOptions, model: Model) -> None:
        from parallax.comparison import Comparer

        fast = model
        for transform in options.fast_transforms:
            fast = parallax.load(transform(fast))
        self._graph = graph
        self._options = options
        self._model, self._fast = model, fast
        self._compare = Comparer(
            model, fast, executors=options.executors, rewrite=options.rewrite, policy=options.policy)
        self._session = SessionEngine(fast, options.executors[1], options.rewrite, options.observer)
        self._opinion: Opinion | None = None
        if options.eager:
            from ._opinion import Opinion

            self._opinion = Opinion(converted, options)

    def __call__(self, feeds: list[Any], inputs: Sequence[Any]) -> list[torch.Tensor]:
        call = self._graph.calls
        if call % self._options.every:
            return self._session(feeds, inputs)
        results, comparison = self._compare.run(feeds, kind="torch")
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
        found = comparison.first_divergence
        cause = comparison.causes[0] if comparison.causes else None
        name = cause.node if cause is not None and cause.node else found.node if found is not None else ""
        node = next((each for each in graph.converted_model.nodes if each.name == name), None)
        operator = _operator_of(node)
        where = f" in {node.scope}" if node is not None and node.scope else ""
        where += f" ({node.source})" if node is not None and node.source else ""
        made = f", made of {operator}{where}," if operator else where
        op = f" ({node.op})" if node is not None else ""
        a, b = ("torch", self._options.executors[0]) if fault == "conversion" else self._options.executors
        why = f": {cause.why}" if cause is not None and cause.why else ""
        worst = f" {found.reason}" if found is not None and not why and getattr(found, "reason", "") else ""
        text = (f"call {call} of graph {graph.index} ({graph.kind}): node '{name}'{op}{made} differs between {a} and {b}"
                f"{why}{worst}. At fault is the {_FAULTS[fault].format(b)}")
        return Divergence(graph, call, fault, comparison, name, operator, node.scope if node is not None else "",
                          node.source if node is not None else "", text)

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
        self._model.save(folder / "model.onnx")
        names = [value.name for value in self._model.inputs]
        parallax.compare(
            self._model, self._fast, inputs=dict(zip(names, feeds)), executors=self._options.executors, dump=folder)


_FAULTS = {"kernel": "kernel of executor '{}'", "conversion": "conversion to ONNX"}


def _operator_of(node: Any) -> str:
    """The ATen operator that an ONNX node was made of, from the metadata that torch.onnx writes; "" where unknown."""
    namespace = "" if node is None else node.metadata.get("namespace", "")
    last = namespace.rsplit("/", 1)[-1]
    name, _, kind = last.partition(": ")
    return kind if kind.startswith("aten.") else name if name.startswith("aten.") else ""
