# SPDX-License-Identifier: Apache-2.0
"""FX graphs to ONNX: the ATen graph that aot_autograd hands to a compiler becomes a model, without a second trace.

The graph is put, as it is, into a `torch.export.ExportedProgram` (`_program.py`) and goes through torch.onnx's own
passes and translator (`_private.py`), with the registry of translations built once in a process and without its
decompositions, which aot_autograd has applied already.
"""

from __future__ import annotations

import contextlib
import operator
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from ..errors import Unsupported
from ._converted import Converted, Output
from ._private import (
    SUPPORTED_TORCH, decompose, exporter, graph_modules, outside_of_tracing, promote_types, quiet_logging, registry,
    zero_and_one_as_other_sizes,
)
from ._program import Wrapped, dtype_of, module_path, source_line, wrap

if TYPE_CHECKING:
    import onnx_ir

__all__ = [
    "SUPPORTED_TORCH", "ConversionError", "UnsupportedOperator", "convert", "route", "tracing_context",
    "unsupported_operators",
]


@dataclass(frozen=True)
class UnsupportedOperator:
    """A node of an FX graph that has no ONNX translation."""

    node: str
    operator: str
    module: str
    line: str
    reason: str

    def __str__(self) -> str:
        where = f" in {self.module}" if self.module else ""
        return f"{self.operator}{where}{f' ({self.line})' if self.line else ''}: {self.reason}"


class ConversionError(Unsupported):
    """The graph has operators without a translation to ONNX; `operators` lists them."""

    def __init__(self, message: str, operators: Sequence[UnsupportedOperator] = ()) -> None:
        first = operators[0] if operators else None
        super().__init__(message, node=first.node if first else "", op=first.operator if first else "")
        self.operators = tuple(operators)


def convert(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any] = (),
    *,
    opset: int = 20,
    decompositions: Mapping[Any, Callable[..., Any]] | None = None,
    optimize: bool = True,
    fallback_hint: str = 'fallback="eager"',
) -> Converted:
    """The ONNX model of an ATen graph (forward, backward or inference; fixed or free shapes).

    `gm` is what aot_autograd gives a compiler: functional, with `meta["val"]` on its nodes; it is not changed.
    Operators without a translation are decomposed first by `decompositions` (default: `decompositions("default")`),
    which costs a second trace; a graph that aot_autograd traced with that table needs none. `example_inputs` is there
    for compilers' signature and is not read. `opset` is 18 or later. `optimize` runs the exporter's constant folding
    and removal of what is redundant.

    Names: an input keeps its placeholder's name; a symbolic integer is an int64 scalar `input_dim_<position>`. Values
    keep the names of their FX nodes (`Converted.values`). Nodes have the metadata that torch.onnx writes: `namespace`
    (module path and ATen operator), `pkg.torch.onnx.stack_trace` (source lines), `pkg.torch.onnx.fx_node`.

    Raises `ConversionError` (an `Unsupported`) which names the operators, modules and source lines.

    Example::

        def compiler(gm, example_inputs):
            converted = convert(gm, example_inputs)
            session = parallax.Session(converted.to_bytes())
            ...
    """
    if opset < 18:
        raise ValueError(f"opset is {opset}; it must be 18 or later: torch.onnx has no translations for earlier ones")
    watch = _Watch()
    with outside_of_tracing():
        gm, decomposed = _with_translations(gm, opset, decompositions, fallback_hint)
        watch.lap("decompose")
        wrapped = _wrapped(gm, fallback_hint)
        watch.lap("wrap")
        model, way = _translate(wrapped, opset, optimize, watch, fallback_hint)
    names = _name_inputs_and_outputs(model, wrapped)
    return Converted(
        model=model,
        inputs=wrapped.inputs,
        outputs=_with_output_names(wrapped.outputs, names),
        values=_surviving_values(model, wrapped) if way == "translator" else {},  # the public way traces again
        constants=wrapped.constants,
        operators=dict(Counter(node.domain for node in model.graph.all_nodes())),
        graph_module=gm,
        decomposed=decomposed,
        route=way,
        seconds=watch.seconds,
    )


def unsupported_operators(gm: torch.fx.GraphModule, opset: int = 20) -> list[UnsupportedOperator]:
    """The nodes of an ATen graph that have no translation to ONNX, in graph order; submodules are looked at, too."""
    found = []
    for module in graph_modules(gm):
        for node in module.graph.nodes:
            reason = _untranslatable_reason(node, opset)
            if reason:
                found.append(_described(node, reason))
    return found


@contextlib.contextmanager
def tracing_context(grad: bool) -> Iterator[None]:
    """The state in which a graph should be traced: with gradients on, attention is traced as its mathematical form.

    The fused attention kernels of eager would leave their own backward operators in the graph.
    """
    if not grad:
        yield
        return
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        yield


def route() -> str:
    """The way graphs take in this torch: "translator" or "torch.onnx.export"."""
    return "translator" if exporter() is not None else "torch.onnx.export"


_TAKEN_AWAY = frozenset({
    "sym_constrain_range_for_size", "_assert_async", "_assert_scalar", "_assert_tensor_metadata", "sym_stride",
})
"""Operators without a translation that are removed or replaced before: assertions, and what `simplify` spells out."""


def _described(node: torch.fx.Node, reason: str) -> UnsupportedOperator:
    return UnsupportedOperator(node.name, str(node.target), module_path(node), source_line(node), reason)


def _untranslatable_reason(node: torch.fx.Node, opset: int) -> str:
    """Why a node has no translation; "" where it has one. Without the private registry nothing is known before."""
    found = exporter()
    if found is None or node.op != "call_function" or node.target is operator.getitem:
        return ""
    if getattr(node.target, "__name__", "").split(".")[0] in _TAKEN_AWAY:
        return ""
    function, reason = found.dispatch(node, registry(opset))
    if function is not None:
        return ""
    return "it has no translation for complex numbers" if "complex" in reason else "it has no translation to ONNX"


def _with_translations(
    gm: torch.fx.GraphModule, opset: int, table: Mapping[Any, Callable[..., Any]] | None, hint: str,
) -> tuple[torch.fx.GraphModule, tuple[str, ...]]:
    """The graph with every operator translatable: as given, or decomposed once more."""
    missing = unsupported_operators(gm, opset)
    if not missing:
        return gm, ()
    if table is None:
        from ._decompositions import decompositions

        table = decompositions("default")
    names = {m.operator for m in missing}
    known = {str(target) for target in table} & names
    if known:
        gm = decompose(gm, table)
        missing = unsupported_operators(gm, opset)
    if missing:
        raise _refusal(missing, hint)
    return gm, tuple(sorted(known))


def _wrapped(gm: torch.fx.GraphModule, hint: str) -> Wrapped:
    try:
        return wrap(gm)
    except ValueError as error:  # what cannot be spelled out in sizes of the inputs
        raise ConversionError(f"the graph cannot be converted to ONNX: {error}\nWith {hint} torch runs it.") from error


class _Watch:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._last
        self._last = now


def _translate(
    wrapped: Wrapped, opset: int, optimize: bool, watch: _Watch, hint: str,
) -> tuple[onnx_ir.Model, str]:
    found = exporter()
    if found is None:
        return _public_export(wrapped, opset, optimize, hint), "torch.onnx.export"
    graph_module = wrapped.program.graph_module
    translations = registry(opset)
    watch.lap("registry")
    try:
        with quiet_logging(), zero_and_one_as_other_sizes():
            for module in graph_modules(graph_module):
                promote_types(found, module)
            found.remove_assertions(graph_module)
            watch.lap("prepare")
            program = found.translate(wrapped.program, registry=translations)
    except Exception as error:  # the translator raises whatever a translation raises: reported with its node
        raise _failed_translation(error, hint) from error
    watch.lap("translate")
    with quiet_logging():
        model = found.convert_version(program.model, opset)
        if optimize:
            _optimize(model)
    watch.lap("optimize")
    return model, "translator"


def _optimize(model: onnx_ir.Model) -> None:
    """The exporter's clean-up without its rewrite rules, which take most of its time; our own patterns come later."""
    from onnx_ir import passes
    from onnx_ir.passes import common
    from onnxscript import optimizer

    # Two masks of random bits are not one, which the pass for common subexpressions does not know of these.
    draws = any(node.op_type in ("Bernoulli", "Dropout") for node in model.graph.all_nodes())
    common.InlinePass()(model)
    optimizer.fold_constants(model, onnx_shape_inference=True)
    passes.Sequential(
        common.RemoveUnusedNodesPass(), common.RemoveUnusedFunctionsPass(),  # type: ignore[no-untyped-call]
        common.RemoveUnusedOpsetsPass(), common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        common.LiftSubgraphInitializersToMainGraphPass(), common.DeduplicateInitializersPass(),
        *([] if draws else [common.CommonSubexpressionEliminationPass()]), common.OutputFixPass(), common.NameFixPass(),
    )(model)


def _public_export(wrapped: Wrapped, opset: int, optimize: bool, hint: str) -> onnx_ir.Model:
    from ._operators import custom_translations

    try:
        with quiet_logging():
            program = torch.onnx.export(
                wrapped.program, opset_version=opset, dynamo=True, optimize=optimize, verbose=False,
                custom_translation_table=dict(custom_translations()))
    except Exception as error:  # as above
        raise _failed_translation(error, hint) from error
    assert program is not None
    return program.model


def _failed_translation(error: BaseException, hint: str) -> ConversionError:
    """The error in the words of the graph: the node whose translation was at work is in the traceback's frames."""
    node = None
    trace = error.__traceback__
    while trace is not None:
        candidate = trace.tb_frame.f_locals.get("node")
        if isinstance(candidate, torch.fx.Node):
            node = candidate
        trace = trace.tb_next
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    reason = f"{type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}"
    if node is None:
        return ConversionError(f"the graph cannot be converted to ONNX: {reason}")
    return _refusal([_described(node, f"its translation fails: {reason}")], hint)


def _refusal(missing: Sequence[UnsupportedOperator], hint: str) -> ConversionError:
    lines = "".join(f"\n  {m}" for m in missing[:5])
    more = f"\n  and {len(missing) - 5} more" if len(missing) > 5 else ""
    return ConversionError(
        f"the graph has {len(missing)} node{'s' if len(missing) > 1 else ''} that cannot be converted to ONNX:"
        f"{lines}{more}\nWith {hint} torch runs them and the rest of the graph is converted.", missing)


def _name_inputs_and_outputs(model: onnx_ir.Model, wrapped: Wrapped) -> list[str]:
    """Gives the inputs their names by position; returns the names of the outputs in order."""
    expected = [i for i in wrapped.inputs if i.kind != "absent"]
    if len(model.graph.inputs) != len(expected):
        raise ConversionError(
            f"the converted model has {len(model.graph.inputs)} inputs; the graph has {len(expected)}")
    for value, spec in zip(model.graph.inputs, expected):
        value.name = spec.name
    computed = [o for o in wrapped.outputs if o.kind in ("tensor", "size", "float", "bool")]
    if len(model.graph.outputs) != len(computed):
        raise ConversionError(
            f"the converted model has {len(model.graph.outputs)} outputs; the graph has {len(computed)}")
    return [str(value.name) for value in model.graph.outputs]


def _with_output_names(outputs: Iterable[Output], names: Sequence[str]) -> tuple[Output, ...]:
    """The entries with the names that the model's outputs have after optimization."""
    return tuple(
        replace(o, name=names[o.index]) if o.kind in ("tensor", "size", "float", "bool") else o for o in outputs)


def _surviving_values(model: onnx_ir.Model, wrapped: Wrapped) -> dict[str, str]:
    """The ONNX value of each FX node that the model still has, under the names of the given graph."""
    present = {str(v.name) for v in model.graph.inputs} | set(model.graph.initializers)
    present.update(str(v.name) for node in model.graph for v in node.outputs)
    renamed = {i.placeholder: i.name for i in wrapped.inputs}
    # An operator that computes in a wider type has the value of the cast that follows.
    renamed.update({
        node.name: next(iter(node.users)).name for node in wrapped.program.graph.nodes
        if node.name in wrapped.dtypes and dtype_of(node) != wrapped.dtypes[node.name] and node.users})
    values = {}
    for given, copied in wrapped.names.items():
        name = renamed.get(copied, copied)
        if name in present:
            values[given] = name
    return values
