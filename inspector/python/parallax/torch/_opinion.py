# SPDX-License-Identifier: Apache-2.0
"""`debug_backend(eager=True)`: torch's own values of a graph next to the first executor's, by name."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import parallax
from parallax.model import Model

from ._converted import Converted
from ._interpret import as_recorded
from ._onnx_names import escaped
from ._options import DebugOptions

if TYPE_CHECKING:
    from parallax.comparison import Comparison


class Opinion:
    """Compares a graph as torch interprets it with its model on the executor that is believed."""

    def __init__(self, converted: Converted, model: Model, options: DebugOptions) -> None:
        self._converted = converted
        self._model = model
        self._options = options

    def disagreement(self, inputs: Sequence[Any]) -> Comparison | None:
        """The difference of the two for one call's inputs; None where they agree: then the conversion is right."""
        feeds = dict(zip(self._converted.input_names, self._converted.feeds(inputs)))
        with tempfile.TemporaryDirectory(prefix="parallax-") as folder:
            ours, torchs = Path(folder) / "reference.plx", Path(folder) / "torch.plx"
            with parallax.Dump.create(torchs, executor="torch", device="cpu", model=self._model) as writer:
                for name, value in feeds.items():
                    writer.write(escaped(name), value)
                _Recorder(self._converted, writer).run(*inputs)
            parallax.run(self._model, feeds, executor=self._options.executors[0], dump=ours)
            found = parallax.blame(torchs, ours, **policy_of(self._options.policy))
        return found if found.verdict == "diverged" else None


def policy_of(policy: Any) -> dict[str, Any]:
    """The policy as the jobs take it."""
    return {"policy": policy} if isinstance(policy, str) else dict(policy)


class _Recorder(torch.fx.Interpreter):
    """Writes what each node makes under the name that the model has for it."""

    def __init__(self, converted: Converted, writer: parallax.DumpWriter) -> None:
        super().__init__(converted.graph_module)
        self._names = converted.values
        self._writer = writer

    def run_node(self, n: torch.fx.Node) -> Any:
        with torch.no_grad():
            value = super().run_node(n)
        name = self._names.get(n.name) if n.op not in ("output", "placeholder") else None
        tensor = None if name is None else as_recorded(value)
        if tensor is not None:
            assert name is not None
            self._writer.write(escaped(name), tensor.contiguous())
        return value
