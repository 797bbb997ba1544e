# SPDX-License-Identifier: Apache-2.0
"""The runner of torch: the program that a model was exported from, node by node, under the names of the ONNX graph."""

from __future__ import annotations

import importlib
import re
import time
from typing import TYPE_CHECKING, Any

from parallax import _core
from parallax.errors import ExecutionError, Unsupported, UsageError
from parallax.model import Model
from parallax.runners._requests import Answer, Description, Load, Run, answer_dump

if TYPE_CHECKING:
    import onnx
    import torch
    from torch.export import ExportedProgram

    from parallax.torch._onnx_names import GraphNames

__all__ = ["Torch", "make"]

# A line of torch.fx's errors: "While executing %linear : [num_users=1] = call_function[...".
_EXECUTING = re.compile(r"While executing %(\S+)")


class Torch:
    """An exported program next to the model that was made of it.

    ``program``: a file of ``torch.export.save``, or ``MODULE:FUNCTION``, a function without arguments that returns an
    ExportedProgram, what ``torch.onnx.export(..., dynamo=True)`` gave, or a module. A module is exported with the inputs
    of the run, once for each of their shapes.
    """

    def __init__(self, program: str) -> None:
        self._named = program
        self._held: Any = None
        self._model: Model | None = None
        self._proto: onnx.ModelProto | None = None
        self._programs: dict[str, tuple[ExportedProgram, GraphNames]] = {}

    def describe(self) -> Description:
        """Loads torch. Raises Unsupported where it is not installed, UsageError where no program is named."""
        try:
            import torch
        except ImportError as error:
            raise Unsupported("torch is not installed; pip install 'parallax-onnx[torch]'") from error
        if not self._named.endswith(".pt2") and ":" not in self._named:
            raise UsageError(f"torch:{self._named} names no program; it must be torch:FILE.pt2 or torch:MODULE:FUNCTION")
        settings = {"program": self._named, "optimization": "none", "deterministic": str(torch.are_deterministic_algorithms_enabled())}
        return Description("torch", torch.__version__, "cpu", settings, observes=True)

    def load(self, request: Load) -> None:
        """Takes a model; the program is loaded with the first one."""
        import onnx
        import torch

        if request.threads > 0:
            torch.set_num_threads(request.threads)
        torch.manual_seed(request.seed)
        if self._held is None:
            self._held = self._loaded()
        self._model = Model(request.model)
        self._proto = onnx.load(request.model, load_external_data=False)
        self._programs = {}

    def run(self, request: Run) -> Answer:
        """Runs the program and writes what the graph has of its values."""
        if self._model is None or self._proto is None:
            raise UsageError("no model is loaded; 'load' comes before 'run'")
        from parallax.torch._interpret import leaves_of, run_leaves
        from parallax.torch.conversion import written_as_in

        feeds = {name: value.torch().clone() for name, value in request.read_tensors(self._model).items()}
        program, names = self._program_for(feeds)
        outputs = {_core.escape_name(value.name) for value in self._model.outputs}
        wanted = {_core.escape_name(name) for name in request.wanted} | outputs
        path = request.answer + ".plx"
        written: set[str] = set()
        with answer_dump(path, self.describe(), self._model) as dump:
            def write(value_path: str, value: torch.Tensor) -> None:
                if value_path in wanted or "//" in value_path:
                    dump.write(value_path, value, is_graph_output=value_path in outputs)
                    written.add(value_path)

            leaves = leaves_of(program, names, feeds)
            begin = time.perf_counter()
            try:
                run_leaves(program, names, leaves, written_as_in(self._proto, write))
            except RuntimeError as error:
                raise self._failure_of(error) from error
            milliseconds = (time.perf_counter() - begin) * 1e3
        missing = len(wanted - written)
        notes = [f"{missing} of {len(wanted)} values are parts of operators that torch has as one"] if missing else []
        return Answer(path, milliseconds, notes=notes)

    def _loaded(self) -> Any:
        import torch

        if self._named.endswith(".pt2"):
            return torch.export.load(self._named)
        module, _, function = self._named.partition(":")
        try:
            made = getattr(importlib.import_module(module), function)
        except (ImportError, AttributeError) as error:
            raise UsageError(f"torch:{self._named} names no function: {error}; MODULE must be importable from here") from error
        held = made()
        held = getattr(held, "exported_program", held)
        if not isinstance(held, (torch.nn.Module, torch.export.ExportedProgram)):
            raise UsageError(f"{self._named} gave a {type(held).__name__}; it must be a module or an exported program")
        return held

    def _program_for(self, feeds: dict[str, torch.Tensor]) -> tuple[ExportedProgram, GraphNames]:
        """The program and its names in the graph; of a module, exported for these inputs."""
        import torch

        from parallax.torch._onnx_names import names_of

        key = ""
        program = self._held
        if isinstance(self._held, torch.nn.Module):
            key = str({name: (tensor.shape, tensor.dtype) for name, tensor in feeds.items()})
        if key not in self._programs:
            if key:
                assert self._model is not None
                arguments = tuple(feeds[value.name] for value in self._model.inputs if value.name in feeds)
                program = torch.export.export(self._held.eval(), arguments)
            program = _as_translated(program)
            self._programs[key] = program, names_of(self._proto, program)
        return self._programs[key]

    def _failure_of(self, error: RuntimeError) -> ExecutionError:
        found = _EXECUTING.search(str(error))
        name = found.group(1) if found else ""
        assert self._model is not None
        node = next((node.name for node in self._model.nodes if name and name in node.outputs), "")
        return ExecutionError(f"torch: {str(error).partition('While executing')[0]}", node=node)


def _as_translated(program: ExportedProgram) -> ExportedProgram:
    """The program with the decompositions that the exporter to ONNX applies, whose nodes give the graph its names."""
    from parallax.torch._private import exporter_table

    table = exporter_table()
    if any(node.target in table for node in program.graph.nodes if node.op == "call_function"):
        return program.run_decompositions(table)
    return program


def make(argument: str) -> Torch:
    """The runner of ``python -m parallax.runners torch FILE.pt2`` or ``MODULE:FUNCTION``."""
    return Torch(argument)
