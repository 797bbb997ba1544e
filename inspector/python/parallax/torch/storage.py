# SPDX-License-Identifier: Apache-2.0
"""Data that the backends keep of each graph that they compile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

if TYPE_CHECKING:
    import onnx

    from parallax.comparison import Comparison
    from parallax.model import Model

Kind = Literal["forward", "backward", "inference"]


@dataclass(eq=False)
class CompiledGraph(Mapping[str, Any]):
    """One graph that torch.compile gave to a backend, and what became of it.

    - `kind`: "forward" (of training), "backward" or "inference";
    - `graph_module`: the ATen graph; `converted_model`: the ONNX model made of it, before any pattern;
    - `model`: that model after the patterns, with frozen weights as initializers: what the executor runs;
    - `onnx`: `model` as a protobuf message;
    - `applied_patterns` {name: count} and `custom_ops` {domain: count of nodes} of `model`;
    - `fallback_ops`: ATen operators that torch runs (`fallback="eager"`);
    - `inputs`: names of the model's inputs; `outputs`: of the graph's outputs, `output_NONE_<i>` where one is None;
    - `executor`: the name of the executor; `frozen`: how many inputs are initializers;
    - `calls`, and `seconds` {"to_onnx", "prepare", "run"}: run is the sum over the calls;
    - `comparisons`: of the debug backend, the last `Storage.keep_comparisons` of them;
    - `break_reason`: why Dynamo ended the graph where it ended; "" where it did not break.

    It is also a mapping with the keys "onnx", "graph_module", "inputs", "outputs" and "providers".
    """

    index: int
    kind: Kind
    graph_module: torch.fx.GraphModule
    converted_model: Model
    executor: str
    patterns: str = "default"
    fallback_ops: dict[str, int] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    calls: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"to_onnx": 0.0, "prepare": 0.0, "run": 0.0})
    comparisons: list[Comparison] = field(default_factory=list)
    break_reason: str = ""
    frozen: int = 0
    prepared_model: Model | None = field(default=None, repr=False)
    _rewritten: tuple[Model, Model, dict[str, Any]] | None = field(default=None, repr=False)

    def _after_patterns(self) -> tuple[Model, Model, dict[str, Any]]:
        source = self.prepared_model or self.converted_model
        if self._rewritten is None or self._rewritten[0] is not source:
            model, report = source.rewrite_report(self.patterns)
            self._rewritten = (source, model, report)
        return self._rewritten

    @property
    def model(self) -> Model:
        """The model after the patterns; computed when it is first asked for."""
        return self._after_patterns()[1]

    @property
    def onnx(self) -> onnx.ModelProto:
        """`model` as a protobuf message. Raises `Unsupported` above 2 GB of weights: `model.save(path)` then."""
        import onnx

        return onnx.load_from_string(self.model.to_bytes())

    @property
    def applied_patterns(self) -> dict[str, int]:
        return dict(self._after_patterns()[2]["applied"])

    @property
    def custom_ops(self) -> dict[str, int]:
        return dict(self._after_patterns()[2]["custom_ops"])

    @property
    def providers(self) -> list[str]:
        """The executor, under the names of ONNX Runtime's execution providers."""
        return ["CUDAExecutionProvider" if self.executor.startswith("cuda") else "CPUExecutionProvider"]

    def __getitem__(self, key: str) -> Any:
        if key not in _KEYS:
            raise KeyError(f"{key!r}; the keys are {', '.join(_KEYS)}")
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(_KEYS)

    def __len__(self) -> int:
        return len(_KEYS)

    def __repr__(self) -> str:
        return (f"<CompiledGraph {self.index}: {self.kind}, {len(self.inputs)} inputs, {len(self.outputs)} outputs, "
                f"{self.calls} calls on {self.executor}>")


_KEYS = ("onnx", "graph_module", "inputs", "outputs", "providers")


class Storage(dict[str, Any]):
    """The graphs of one or more compiled models, in the order in which they were compiled.

    `storage.graphs` and `storage["instance"]` are the same list of `CompiledGraph`. A backend takes any dict, too, and
    then fills its "instance". `keep_comparisons` bounds what each graph keeps of the debug backend's comparisons.

    >>> import torch, parallax.torch as pt
    >>> storage = pt.Storage()
    >>> double = torch.compile(lambda x: x + x, backend=pt.backend(storage=storage))
    >>> double(torch.ones(2)).tolist(), [g.kind for g in storage.graphs]
    ([2.0, 2.0], ['inference'])
    """

    def __init__(self, keep_comparisons: int = 1000) -> None:
        super().__init__(instance=[])
        self.keep_comparisons = keep_comparisons

    @property
    def graphs(self) -> list[CompiledGraph]:
        graphs: list[CompiledGraph] = self["instance"]
        return graphs

    def __repr__(self) -> str:
        return f"<Storage of {len(self.graphs)} graphs>"


def dump_path(prefix: str | Path, graph: CompiledGraph, ending: str) -> Path:
    """`PREFIX_<index>_<kind><ending>`; its folder is made where it is missing."""
    path = Path(f"{prefix}_{graph.index}_{graph.kind}{ending}")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
