"""FX graphs to ONNX: the ATen graph that aot_autograd hands to a compiler becomes an ONNX model, without a second trace.

The graph is put, as it is, into a `torch.export.ExportedProgram` and goes through torch.onnx's own passes and
translator, with the registry of translations built once in a process. This is the one file of the package that uses
private names of torch; `SUPPORTED_TORCH` is the range of versions in which they were found to do what is expected
here (`parallax.torch._contract.check_torch_contract()` tells it of the installed one). Where one of them is missing, the public
`torch.onnx.export` of the same program does the work, which is slower; a warning says so once.
"""

from __future__ import annotations

import contextlib
import logging
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch.export import graph_signature as signatures

from ..errors import Unsupported
from ._converted import Converted, Input, Output, input_of

if TYPE_CHECKING:
    import onnx_ir

__all__ = [
    "SUPPORTED_TORCH", "ConversionError", "UnsupportedOperator", "convert", "core_table", "exporter_table", "route",
    "tracing_context", "unsupported_operators",
]

SUPPORTED_TORCH = ("2.9", "2.15")
"""The first and the last version of torch (both included) whose private names were tried."""

_OUTPUT_KINDS = {torch.SymInt: "size", torch.SymFloat: "float", torch.SymBool: "bool"}


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
    with _outside_of_tracing():
        gm, decomposed = _with_translations(gm, opset, decompositions, fallback_hint)
        watch.lap("decompose")
        wrapped = _wrap(gm)
        watch.lap("wrap")
        model, way = _translate(wrapped, opset, optimize, watch, fallback_hint)
    names = _name_inputs_and_outputs(model, wrapped)
    return Converted(
        model=model,
        inputs=wrapped.inputs,
        outputs=_with_output_names(wrapped.outputs, names),
        values=_surviving_values(model, wrapped),
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
    for module in gm.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in module.graph.nodes:
            reason = _why_untranslatable(node, opset)
            if reason:
                found.append(UnsupportedOperator(node.name, str(node.target), module_path(node), source_line(node), reason))
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


# --- the private names of torch -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Exporter:
    """Private functions of torch.onnx that this file calls."""

    registry_class: Any
    translate: Callable[..., Any]
    promote_types: Callable[..., None]
    remove_assertions: Callable[..., torch.fx.GraphModule]
    dispatch: Callable[..., Any]
    implemented: Callable[..., Any]
    friendly_table: Callable[..., dict[Any, Any]]
    convert_version: Callable[..., Any]


@lru_cache(maxsize=1)
def _exporter() -> _Exporter | None:
    try:
        from torch.onnx._internal._lazy_import import onnxscript_apis
        from torch.onnx._internal.exporter import _core, _decomp, _dispatching, _fx_passes, _registration

        return _Exporter(
            _registration.ONNXRegistry, _core._exported_program_to_onnx_program,
            _fx_passes.insert_type_promotion_nodes, _fx_passes.remove_assertion_nodes, _dispatching.dispatch,
            _decomp.get_onnx_implemented_overloads, _decomp.create_onnx_friendly_decomposition_table,
            onnxscript_apis.convert_version,
        )
    except (ImportError, AttributeError) as error:
        warnings.warn(f"torch {torch.__version__} has not the private names that the fast conversion to ONNX needs "
                      f"({error}); torch.onnx.export is used, which takes two to three times as long. "
                      f"Versions {SUPPORTED_TORCH[0]} to {SUPPORTED_TORCH[1]} have them.", stacklevel=4)
        return None


def route() -> str:
    """The way graphs take in this torch: "translator" or "torch.onnx.export"."""
    return "translator" if _exporter() is not None else "torch.onnx.export"


@lru_cache(maxsize=4)
def _registry(opset: int) -> Any:
    """The registry of translations, built once for an opset: the exporter's, less the wrong ones, plus ours."""
    from ._operators import WRONG_TRANSLATIONS, complex_translations, custom_translations

    exporter = _exporter()
    assert exporter is not None
    with _quiet_logging():
        registry = exporter.registry_class.from_torchlib(opset_version=opset)
        for operator in WRONG_TRANSLATIONS:
            registry.functions.pop(operator, None)
        for target, function in custom_translations().items():
            registry.register_op(target, function)
        for target, function in complex_translations().items():
            registry.register_op(target, function, is_complex=True)
    return registry


def exporter_table(opset: int = 20) -> dict[Any, Callable[..., Any]]:
    """The decompositions that torch.onnx applies: of every operator that has no translation."""
    exporter = _exporter()
    if exporter is None:
        return dict(torch.export.default_decompositions().items())
    return exporter.friendly_table(set(exporter.implemented(_registry(opset))))


def core_table() -> dict[Any, Callable[..., Any]]:
    """torch's decompositions into its core operators."""
    from torch._decomp import core_aten_decompositions

    return dict(core_aten_decompositions().items())


def _why_untranslatable(node: torch.fx.Node, opset: int) -> str:
    """Why a node has no translation; "" where it has one. Without the private registry nothing is known before."""
    import operator

    exporter = _exporter()
    if exporter is None or node.op != "call_function" or node.target is operator.getitem:
        return ""
    if getattr(node.target, "__name__", "").split(".")[0] in _ASSERTIONS:
        return ""
    function, reason = exporter.dispatch(node, _registry(opset))
    if function is not None:
        return ""
    return "it has no translation for complex numbers" if "complex" in reason else "it has no translation to ONNX"


_ASSERTIONS = frozenset({
    "sym_constrain_range_for_size", "_assert_async", "_assert_scalar", "_assert_tensor_metadata",
})


@contextlib.contextmanager
def _outside_of_tracing() -> Iterator[None]:
    """No fake or proxy mode of the tracer around us is seen by the translator's own tensors."""
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes(), torch.no_grad():
        yield


@contextlib.contextmanager
def _quiet_logging() -> Iterator[None]:
    """The exporter warns of what is meant here: missing torchvision, constants that stay outputs."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


# --- from graph to program ----------------------------------------------------------------------------------------


@dataclass
class _Wrapped:
    """The graph inside an ExportedProgram, and what was taken out of it."""

    program: torch.export.ExportedProgram
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    constants: dict[str, torch.Tensor]
    names: dict[str, str]  # node of the given graph -> node of the copy


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
        gm = _decompose(gm, table)
        missing = unsupported_operators(gm, opset)
    if missing:
        raise _refusal(missing, hint)
    return gm, tuple(sorted(known))


def _decompose(gm: torch.fx.GraphModule, table: Mapping[Any, Callable[..., Any]]) -> torch.fx.GraphModule:
    """The graph traced again on its own fake inputs with a table of decompositions."""
    from torch._dispatch.python import enable_python_dispatcher
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.traceback import preserve_node_meta

    values = [n.meta.get("val") for n in gm.graph.nodes if n.op == "placeholder"]
    mode = fake_mode_of(gm)

    def run(*arguments: Any) -> Any:
        with preserve_node_meta():
            return torch.fx.Interpreter(gm).run(*arguments)

    with mode, enable_python_dispatcher():
        traced = make_fx(run, decomposition_table=dict(table), _allow_non_fake_inputs=True)(*values)
    given = [n for n in gm.graph.nodes if n.op == "placeholder"]
    for old, new in zip(given, (n for n in traced.graph.nodes if n.op == "placeholder")):
        new.meta.setdefault("val", old.meta.get("val"))
    return traced


def fake_mode_of(gm: torch.fx.GraphModule) -> Any:
    """The fake mode in which the graph was traced; a new one where it has no tensors."""
    from torch._guards import detect_fake_mode
    from torch._subclasses.fake_tensor import FakeTensorMode

    values = [n.meta.get("val") for n in gm.graph.nodes]
    return detect_fake_mode([v for v in values if isinstance(v, torch.Tensor)]) or FakeTensorMode()


def _wrap(gm: torch.fx.GraphModule) -> _Wrapped:
    """The graph copied (its module's attributes are not) into an ExportedProgram; tensor attributes become inputs."""
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    results = graph.graph_copy(gm.graph, copies)
    results = tuple(results) if isinstance(results, (tuple, list)) else (results,)
    constants = _lift_constants(gm, graph)
    _complete_metadata(graph)
    placeholders = [n for n in graph.nodes if n.op == "placeholder" and n.name not in constants]
    inputs = tuple(input_of(node, position) for position, node in enumerate(placeholders))
    outputs, computed = _outputs_of(results, placeholders, inputs, constants)
    graph.output(tuple(computed))
    specs = [
        signatures.InputSpec(signatures.InputKind.CONSTANT_TENSOR, signatures.TensorArgument(name), name, False)
        for name in constants
    ] + [signatures.InputSpec(signatures.InputKind.USER_INPUT, _argument(n), None) for n in placeholders]
    signature = signatures.ExportGraphSignature(
        specs, [signatures.OutputSpec(signatures.OutputKind.USER_OUTPUT, _argument(n), None) for n in computed])
    program = torch.export.ExportedProgram(
        gm, graph, signature, {}, {}, [torch.export.ModuleCallEntry("", None)], constants=dict(constants))
    return _Wrapped(program, inputs, outputs, constants, {old.name: new.name for old, new in copies.items()})


def _lift_constants(gm: torch.fx.GraphModule, graph: torch.fx.Graph) -> dict[str, torch.Tensor]:
    """Tensor attributes as placeholders in front of the others: {placeholder name: tensor}."""
    constants: dict[str, torch.Tensor] = {}
    lifted: dict[str, torch.fx.Node] = {}
    for node in list(graph.nodes):
        if node.op != "get_attr":
            continue
        tensor = _attribute(gm, node.target)
        if not isinstance(tensor, torch.Tensor):
            continue
        if node.target not in lifted:
            with graph.inserting_before(next(iter(graph.nodes))):
                placeholder = graph.placeholder(node.name)
            placeholder.meta = dict(node.meta)
            if not isinstance(placeholder.meta.get("val"), torch.Tensor):
                placeholder.meta["val"] = fake_mode_of(gm).from_tensor(tensor, static_shapes=True)
            lifted[node.target] = placeholder
            constants = {placeholder.name: tensor.detach(), **constants}
        node.replace_all_uses_with(lifted[node.target])
        graph.erase_node(node)
    return constants


def _attribute(gm: torch.fx.GraphModule, target: str) -> Any:
    value: Any = gm
    for part in target.split("."):
        value = getattr(value, part)
    return value


def _outputs_of(
    results: Sequence[Any], placeholders: Sequence[torch.fx.Node], inputs: Sequence[Input],
    constants: Mapping[str, torch.Tensor],
) -> tuple[tuple[Output, ...], list[torch.fx.Node]]:
    """The entry of each output of the graph, and the nodes that the model has to compute, each once."""
    positions = {node: position for position, node in enumerate(placeholders)}
    first: dict[torch.fx.Node, int] = {}
    outputs: list[Output] = []
    computed: list[torch.fx.Node] = []
    for position, result in enumerate(results):
        if result is None:
            outputs.append(Output(f"output_NONE_{position}", "none"))
        elif not isinstance(result, torch.fx.Node):
            outputs.append(Output("", "constant", value=result))
        elif result in positions:
            outputs.append(Output(inputs[positions[result]].name, "input", positions[result], result.meta.get("val")))
        elif result.name in constants:
            outputs.append(Output(result.name, "constant", value=constants[result.name]))
        elif result in first:
            outputs.append(Output(result.name, "repeat", first[result], result.meta.get("val")))
        else:
            value = result.meta.get("val")
            if not isinstance(value, torch.Tensor) and type(value) not in _OUTPUT_KINDS:
                outputs.append(Output("", "constant", value=value))
                continue
            first[result] = position
            kind: Any = _OUTPUT_KINDS.get(type(value), "tensor")
            outputs.append(Output(result.name, kind, len(computed), value))
            computed.append(result)
    return tuple(outputs), computed


def _argument(node: torch.fx.Node) -> Any:
    value = node.meta.get("val")
    for kind, argument in (
        (torch.Tensor, signatures.TensorArgument), (torch.SymInt, signatures.SymIntArgument),
        (torch.SymFloat, signatures.SymFloatArgument), (torch.SymBool, signatures.SymBoolArgument),
    ):
        if isinstance(value, kind):
            return argument(name=node.name)
    return signatures.ConstantArgument(name=node.name, value=value)


def _complete_metadata(graph: torch.fx.Graph) -> None:
    """The module stack on every node, under paths such as `layers.0`; backward nodes have their forward node's."""
    for node in graph.nodes:
        stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
        node.meta["nn_module_stack"] = {key: (_clean_path(path), kind) for key, (path, kind) in stack.items()}


def _clean_path(path: str) -> str:
    """`L['self']._modules['layers']._modules['0']` or `L['args'][0].layers[0]` as `layers.0`."""
    import re

    path = re.sub(r"^L\['(self|args|fn|mod|model)'\](\[\d+\])?", "", path)
    path = re.sub(r"\._modules\['([^']*)'\]", r".\1", path)
    path = re.sub(r"\['?([^'\]]*)'?\]", r".\1", path)
    return path.lstrip(".")


def module_path(node: torch.fx.Node) -> str:
    """The path of the module whose forward made the node; "" where it is unknown."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    paths = [_clean_path(path) for path, _ in stack.values()]
    return paths[-1] if paths else ""


def source_line(node: torch.fx.Node) -> str:
    """`file.py:12` of the user's line that made the node; "" where it is unknown."""
    import re

    lines = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    return f"{lines[-1][0]}:{lines[-1][1]}" if lines else ""


# --- from program to model ----------------------------------------------------------------------------------------


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
    wrapped: _Wrapped, opset: int, optimize: bool, watch: _Watch, hint: str,
) -> tuple[onnx_ir.Model, str]:
    from torch.fx.experimental import _config as shape_config

    exporter = _exporter()
    if exporter is None:
        return _public_export(wrapped, opset, optimize, hint), "torch.onnx.export"
    graph_module = wrapped.program.graph_module
    registry = _registry(opset)
    watch.lap("registry")
    try:
        with _quiet_logging(), shape_config.patch(backed_size_oblivious=True):
            exporter.promote_types(graph_module)
            exporter.remove_assertions(graph_module)
            watch.lap("prepare")
            program = exporter.translate(wrapped.program, registry=registry)
    except Exception as error:  # the translator raises whatever a translation raises: told with the node it was at
        raise _failed_translation(error, hint) from error
    watch.lap("translate")
    with _quiet_logging():
        model = exporter.convert_version(program.model, opset)
        if optimize:
            _optimize(model)
    watch.lap("optimize")
    return model, "translator"


def _optimize(model: onnx_ir.Model) -> None:
    """The exporter's clean-up without its rewrite rules, which take most of its time; our own patterns come later."""
    from onnx_ir import passes
    from onnx_ir.passes import common
    from onnxscript import optimizer

    common.InlinePass()(model)
    optimizer.fold_constants(model, onnx_shape_inference=True)
    passes.Sequential(
        common.RemoveUnusedNodesPass(), common.RemoveUnusedFunctionsPass(), common.RemoveUnusedOpsetsPass(),
        common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        common.LiftSubgraphInitializersToMainGraphPass(), common.DeduplicateInitializersPass(),
        common.CommonSubexpressionEliminationPass(), common.OutputFixPass(), common.NameFixPass(),
    )(model)


def _public_export(wrapped: _Wrapped, opset: int, optimize: bool, hint: str) -> onnx_ir.Model:
    from ._operators import custom_translations

    try:
        with _quiet_logging():
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
    reason = f"its translation fails: {type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}"
    if node is None:
        return ConversionError(f"the graph cannot be converted to ONNX: {reason.removeprefix('its translation fails: ')}")
    return _refusal([UnsupportedOperator(
        node.name, str(node.target), module_path(node), source_line(node), reason)], hint)


def _refusal(missing: Sequence[UnsupportedOperator], hint: str) -> ConversionError:
    lines = "".join(f"\n  {m}" for m in missing[:5])
    more = f"\n  and {len(missing) - 5} more" if len(missing) > 5 else ""
    return ConversionError(
        f"the graph has {len(missing)} node{'s' if len(missing) > 1 else ''} that cannot be converted to ONNX:"
        f"{lines}{more}\nWith {hint} torch runs them and the rest of the graph is converted.", missing)


def _name_inputs_and_outputs(model: onnx_ir.Model, wrapped: _Wrapped) -> list[str]:
    """Gives the inputs their names by position; returns the names of the outputs in order."""
    expected = [i for i in wrapped.inputs if i.kind != "absent"]
    if len(model.graph.inputs) != len(expected):
        raise ConversionError(f"the converted model has {len(model.graph.inputs)} inputs; the graph has {len(expected)}")
    for value, spec in zip(model.graph.inputs, expected):
        value.name = spec.name
    computed = [o for o in wrapped.outputs if o.kind in ("tensor", "size", "float", "bool")]
    if len(model.graph.outputs) != len(computed):
        raise ConversionError(
            f"the converted model has {len(model.graph.outputs)} outputs; the graph has {len(computed)}")
    return [str(value.name) for value in model.graph.outputs]


def _with_output_names(outputs: Iterable[Output], names: Sequence[str]) -> tuple[Output, ...]:
    """The entries with the names that the model's outputs have after optimization."""
    from dataclasses import replace

    return tuple(
        replace(o, name=names[o.index]) if o.kind in ("tensor", "size", "float", "bool") else o for o in outputs)


def _surviving_values(model: onnx_ir.Model, wrapped: _Wrapped) -> dict[str, str]:
    """The ONNX value of each FX node that the model still has, under the names of the given graph."""
    present = {str(v.name) for v in model.graph.inputs} | set(model.graph.initializers)
    present.update(str(v.name) for node in model.graph for v in node.outputs)
    renamed = {i.placeholder: i.name for i in wrapped.inputs}
    values = {}
    for given, copied in wrapped.names.items():
        name = renamed.get(copied, copied)
        if name in present:
            values[given] = name
    return values

