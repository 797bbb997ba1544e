# SPDX-License-Identifier: Apache-2.0
"""The runner of onnxruntime: every value of the graph that it executes, in groups that fit into a limit of memory."""

from __future__ import annotations

from parallax._ort_observed import Observed
from parallax._ort_session import Runtime, weight_bytes
from parallax.dump import Dump
from parallax.errors import UsageError
from parallax.model import Model
from parallax.runners._requests import Answer, Description, Load, Run

__all__ = ["OnnxRuntime", "make"]

_SUFFIX = "ExecutionProvider"


class OnnxRuntime:
    """A model by onnxruntime, with the sessions of its values kept from one run to the next.

    ``provider``: as onnxruntime names it, "" for the CPU; its ending "ExecutionProvider" may be left out.
    """

    def __init__(self, provider: str = "") -> None:
        provider = provider or "CPU"
        self._provider = provider if provider.endswith(_SUFFIX) else provider + _SUFFIX
        self._observed: Observed | None = None
        self._key: tuple[object, ...] = ()
        self._seed = 0

    def describe(self) -> Description:
        """Loads onnxruntime. Raises Unsupported where it is not installed, UsageError for a provider that it lacks."""
        runtime = Runtime([self._provider])
        return Description(
            "onnxruntime", runtime.version, self._provider, {"optimization": "all", "provider": self._provider}, observes=True
        )

    def load(self, request: Load) -> None:
        """Takes a model and optimizes it, unless it is the one that is loaded."""
        model = Model(request.model)
        key = (model.core.sha256(), request.optimize, request.threads, request.memory_limit_bytes, request.seed)
        if self._observed is not None and key == self._key:
            return
        self._observed = None  # the sessions of the model before go first
        limit = request.memory_limit_bytes
        runtime = Runtime([self._provider], request.threads, is_lean=limit > 0)
        runtime.set_seed(request.seed)
        # A run holds values that are given back next to those that live within it, and the weights more than once.
        groups_of = None if limit == 0 else max((limit - 3 * weight_bytes(model.core)) // 4, 1)
        self._observed = Observed(runtime, model, "all" if request.optimize else "none", memory_limit=groups_of)
        self._key = key

    def run(self, request: Run) -> Answer:
        """Runs the model and writes a dump with the executed graph."""
        if self._observed is None:
            raise UsageError("no model is loaded; 'load' comes before 'run'")
        observed, runtime = self._observed, self._observed.runtime
        settings = {"onnxruntime": runtime.version, "optimization": observed.optimization, "provider": self._provider}
        path = request.answer + ".plx"
        inputs = request.read_tensors(observed.source)
        runtime.milliseconds, runs = 0.0, observed.runs
        # The model is the asker's own: with it, each dump would have its graph and the checksum of its weights.
        with Dump.create(path, executor="onnxruntime", device=self._provider, settings=settings, force=True) as dump:
            if observed.optimization != "none":
                dump.add_executed_graph(observed.executed, observed.provenance)
            with dump.call():
                for value_path, value, is_output in observed.values(inputs, request.wanted):
                    dump.write(value_path, value, is_graph_output=is_output)
                    del value  # it would live through the run of the next group
        notes = [f"{name} is not captured: {reason}" for name, reason in observed.left_out]
        if observed.runs - runs > 1:
            notes.append(f"{observed.runs - runs} runs of onnxruntime gave a part of the values each, as the limit of memory asks")
        milliseconds = runtime.milliseconds
        times = observed.node_milliseconds(inputs) if request.times else {}
        return Answer(path, milliseconds, times, notes)


def make(argument: str) -> OnnxRuntime:
    """The runner of ``python -m parallax.runners onnxruntime [PROVIDER]``."""
    return OnnxRuntime(argument)
