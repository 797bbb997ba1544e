# SPDX-License-Identifier: Apache-2.0
"""Is the conversion right? Every value of an exported program next to its value in the ONNX graph."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from parallax import _files
from parallax.errors import ExecutionError, UsageError
from parallax.torch._interpret import Show, run_program
from parallax.torch._onnx_names import GraphNames, names_of
from parallax.torch._torch_words import ConversionCause, Words, summary

if TYPE_CHECKING:
    import onnx
    import torch
    from torch.export import ExportedProgram
    from torch.onnx import ONNXProgram

    from parallax.comparison import Comparison

    Exported: TypeAlias = ONNXProgram | tuple[str | os.PathLike[str], ExportedProgram]

__all__ = ["ConversionCause", "Explanation", "explain_conversion", "export_capture"]


@dataclass(frozen=True)
class _Export:
    """An ONNX file and the program that it was made from."""

    path: Path
    model: onnx.ModelProto
    program: ExportedProgram
    names: GraphNames


def export_capture(
    program: Exported, args: Sequence[Any], path: str | os.PathLike[str], kwargs: Mapping[str, Any] | None = None, *,
    force: bool = False,
) -> dict[str, torch.Tensor]:
    """Runs an exported program node by node into a dump that has the ONNX graph; returns the model's inputs.

    ``program`` is what ``torch.onnx.export(..., dynamo=True)`` gave, whose model is written next to the dump
    (``F.onnx`` for ``F.plx``), or a pair of a model's file and the ``ExportedProgram`` that it was made from.
    ``args`` and ``kwargs`` are a call's, of any sizes that the export allows. Values have the names that the
    exporter gave them: those of the nodes of the program, inputs and outputs by position, results of control flow
    in the frames of its bodies. What the graph does not have (an optimizer removed it) is in the dump under the
    node's name. No gradient is kept.

    The dump compares with one of an executor: ``parallax blame F.plx reference.plx``. ``force``: both files may be ones
    that Parallax did not write. Raises UsageError where model and program, or program and arguments do not belong
    together.

    >>> import torch, parallax.torch as pt
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Softmax(-1)).eval()
    >>> program = torch.onnx.export(net, (torch.ones(2, 4),), dynamo=True, verbose=False)   # doctest: +SKIP
    >>> feeds = pt.export_capture(program, (torch.ones(2, 4),), "net.plx")                   # doctest: +SKIP
    >>> sorted(parallax.open("net.plx"))                                                     # doctest: +SKIP
    ['input', 'linear', 'softmax']
    """
    path = Path(path)
    _files.admit(path, force)
    return _capture(_opened(program, path.with_suffix(".onnx"), force), args, kwargs, path, force)


@dataclass(frozen=True)
class Explanation:
    """The check of a conversion: whether it is right, and if not, which operators of torch are wrong in the ONNX graph.

    ``verdict`` is the comparison's: "pass", "diverged" or "inconclusive" (an output could not be compared). True as a
    bool where it is "pass". ``text`` is the whole answer, ``comparison`` the document of it, torch as side A.
    """

    verdict: str
    causes: list[ConversionCause]
    text: str
    comparison: Comparison
    _folder: Any = field(default=None, repr=False, compare=False)  # the dumps live as long as the comparison shows them

    def __bool__(self) -> bool:
        return self.verdict == "pass"

    def __str__(self) -> str:
        return self.text


def explain_conversion(
    program: Exported,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    executor: str = "reference",
    policy: str = "auto",
    rtol: float | None = None,
    atol: float | None = None,
    per: Sequence[str] = (),
    folder: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Explanation:
    """Compares an exported ONNX graph with the program it was made from, value by value, and explains differences.

    ``program``, ``args`` and ``kwargs`` are those of export_capture. The graph runs on ``executor``; with
    "reference" what differs is the conversion, with another one also that executor's kernels. Where a node fails,
    what it read is compared. ``policy``, ``rtol``, ``atol`` and ``per`` are those of parallax.diff. ``folder``
    keeps model and dumps (``torch.plx``, ``onnx/EXECUTOR.plx``), which are temporary without it; ``force``: in place of
    files that Parallax did not write, too. Cost: one run of each side and a disk copy of every value.

    >>> explanation = pt.explain_conversion(program, (torch.ones(2, 4),))                    # doctest: +SKIP
    >>> print(explanation)                                                                   # doctest: +SKIP
    diverged: 3 values of torch compared, 1 beyond their limits
    1. aten.softmax.int, model.py:13 in 1: exported as Softmax(axis=0), torch computes what axis=1 gives
    """
    import parallax

    kept = None
    if folder is None:
        kept = tempfile.TemporaryDirectory(prefix="parallax-conversion-")
        folder = kept.name
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    export = _opened(program, where / "model.onnx", force)
    torch_side, runs = where / "torch.plx", where / "onnx"
    feeds = _capture(export, args, kwargs, torch_side, force)
    try:
        parallax.run(export.path, feeds, executor=executor, dump=runs, capture="all", force=force)
    except ExecutionError:
        if not any(runs.glob("*.plx")):
            raise  # else the values up to the node that fails, and its error, are in the dump
    onnx_side = next(runs.glob("*.plx"))
    comparison = parallax.blame(torch_side, onnx_side, policy=policy, rtol=rtol, atol=atol, per=per)
    document = comparison.to_dict()
    words = Words(export.model, export.program, export.names)
    causes = [words.cause(cause) for cause in document["causes"]]
    verdict = str(document["verdict"])
    return Explanation(verdict, causes, summary(verdict, causes, document), comparison, kept)


def _opened(program: Exported, path: Path, force: bool) -> _Export:
    """Writes the model to ``path``, unless it is a file already, and reads its names."""
    import onnx

    if isinstance(program, tuple):
        if len(program) != 2:
            raise UsageError(f"the program is a tuple of {len(program)} parts; it must be a pair: the model's file and "
                             "the ExportedProgram that it was made from")
        path, exported = Path(program[0]), program[1]
    else:
        found = getattr(program, "exported_program", None)
        if found is None:
            raise UsageError(f"the program is a {type(program).__name__} without an exported program; it must be what "
                             "torch.onnx.export(..., dynamo=True) gave, or a pair (model file, ExportedProgram)")
        exported = found
        with _files.filled_folder(path.parent, force) as scratch:
            program.save(scratch / path.name)
    model = onnx.load(path, load_external_data=False)
    return _Export(path, model, exported, names_of(model, exported))


def _capture(
    export: _Export, args: Sequence[Any], kwargs: Mapping[str, Any] | None, path: Path, force: bool
) -> dict[str, torch.Tensor]:
    from parallax.dump import DumpWriter

    with DumpWriter(path, executor="torch", device="cpu", model=export.path, force=force) as writer:
        return run_program(export.program, export.names, args, kwargs, written_as_in(export.model, writer.write))


def written_as_in(model: onnx.ModelProto, write: Callable[[str, torch.Tensor], object]) -> Show:
    """Gives each value to ``write`` with the rank that it has in the graph."""
    ranks = dict(_ranks(model))

    def show(value_path: str, value: torch.Tensor, is_number: bool) -> None:
        # A size is a number in the program; the graph may hold it as a vector of one element.
        write(value_path, value.reshape(1) if is_number and ranks.get(value_path) == 1 else value)

    return show


def _ranks(model: onnx.ModelProto) -> Iterator[tuple[str, int]]:
    """Yields the rank of each declared value of the main graph."""
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output):
        if value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape"):
            yield value.name, len(value.type.tensor_type.shape.dim)
