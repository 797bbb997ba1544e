# SPDX-License-Identifier: Apache-2.0
"""Runs an exported program node by node and shows every value under the name that it has in the ONNX graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree as pytree

from parallax.errors import Unsupported, UsageError
from parallax.torch._onnx_names import Body, GraphNames, escaped

if TYPE_CHECKING:
    from torch.export import ExportedProgram

Show = Callable[[str, torch.Tensor, bool], None]
"""Takes a value path, the value, which must be read before it returns, and whether it is a number of the program."""


def flat_arguments(program: ExportedProgram, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> list[Any]:
    """Returns the leaves of the arguments, in the order of the program's inputs.

    Raises UsageError where they have another structure than those that the program was exported with.
    """
    expected = program.call_spec.in_spec
    given = dict(kwargs or {})
    if expected is None:
        raise Unsupported("the exported program does not say what its arguments look like (call_spec.in_spec is None)")
    order = expected.children()[1].context if expected.type is tuple and len(expected.children()) == 2 else None
    if isinstance(order, list) and set(order) == set(given):
        given = {name: given[name] for name in order}  # keyword arguments may come in any order
    leaves: list[Any]
    leaves, found = pytree.tree_flatten((tuple(args), given))
    if found != expected:
        raise UsageError(f"the arguments have the structure {found}; it must be that of the export, {expected}. "
                         "Give args and kwargs as they were given to torch.onnx.export.")
    return leaves


def as_recorded(value: Any) -> torch.Tensor | None:
    """Returns what the ONNX graph holds for a value of the program; None for what is no tensor and no number.

    Complex numbers are pairs of real ones there, and the program's sizes are int64 scalars.
    """
    if isinstance(value, bool):
        return torch.tensor(value)
    if isinstance(value, int):
        return torch.tensor(value, dtype=torch.int64)
    if isinstance(value, float):
        return torch.tensor(value, dtype=torch.float32)
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.is_quantized:
        return None
    tensor = value.detach().resolve_neg()
    return torch.view_as_real(tensor.resolve_conj()).contiguous() if tensor.is_complex() else tensor


class _Shown(torch.fx.Interpreter):
    """Shows what each node makes, in graph order; values that no node needs any more are freed."""

    def __init__(self, module: torch.nn.Module, show: Show, bodies: Mapping[str, list[Body]]) -> None:
        super().__init__(module)
        self._show = show
        self._bodies = bodies
        self._node: torch.fx.Node | None = None

    def paths(self, fx_name: str) -> list[str]:
        raise NotImplementedError

    def run_node(self, n: torch.fx.Node) -> Any:
        self._node = n
        value = super().run_node(n)
        if n.op == "output":
            return value
        if isinstance(value, (tuple, list)):
            for index, item in enumerate(value):
                self._record(f"{n.name}__{index}", item)
                self._record(f"{n.name}_split_{index}", item)
        else:
            self._record(n.name, value)
        return value

    def _record(self, fx_name: str, value: Any) -> None:
        paths = self.paths(fx_name)
        tensor = as_recorded(value) if paths else None
        if tensor is not None:
            for path in paths:
                self._show(path, tensor, not isinstance(value, torch.Tensor))

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bodies = self._bodies.get(self._node.name, []) if self._node is not None else []
        run = _CONTROL_FLOW.get(str(target)) if isinstance(target, torch._ops.HigherOrderOperator) else None
        if run is None or not bodies:
            return super().call_function(target, args, kwargs)
        return run(self, bodies, *args, **kwargs)

    def run_body(self, body: Body, iteration: int, module: torch.nn.Module, operands: Sequence[Any],
                 entering: Sequence[Any] = ()) -> Any:
        """Runs a graph of a control-flow operation, with its values shown in the frames of the ONNX body.

        ``entering``: the values of the ONNX body's inputs, in their order.
        """
        prefix = self.prefix + body.frame.format(iteration) + "//"
        for name, value in zip(body.inputs, entering):
            tensor = as_recorded(value)
            if tensor is not None:
                self._show(prefix + escaped(name), tensor, not isinstance(value, torch.Tensor))
        return _ShownBody(module, self._show, prefix, body).run(*operands)

    @property
    def prefix(self) -> str:
        return ""


class _ShownGraph(_Shown):
    """The main graph. Values that the ONNX graph does not have are shown, too: what reads one of them may be wrong."""

    def __init__(self, program: ExportedProgram, show: Show, names: GraphNames) -> None:
        super().__init__(program.graph_module, show, names.bodies)
        self._names = names
        self._known = {*names.renamed, *names.mismatched, *names.taken_out}
        self._nodes = {node.name for node in program.graph.nodes}

    def paths(self, fx_name: str) -> list[str]:
        found = self._names.paths(fx_name)
        is_known = fx_name in self._known or fx_name not in self._nodes
        return [escaped(name) for name in found] if found or is_known else [fx_name]


class _ShownBody(_Shown):
    def __init__(self, module: torch.nn.Module, show: Show, prefix: str, body: Body) -> None:
        super().__init__(module, show, body.bodies)
        self._prefix = prefix
        self._values = body.values

    @property
    def prefix(self) -> str:
        return self._prefix

    def paths(self, fx_name: str) -> list[str]:
        found = self._values.get(fx_name)
        return [] if found is None else [self._prefix + escaped(found)]


# ---- control flow, as torch's own dense kernels do it -------------------------------------------------------------

def _run_cond(shown: _Shown, bodies: list[Body], predicate: Any, then: Any, otherwise: Any, operands: Any) -> Any:
    is_then = bool(predicate)
    frame = ".then" if is_then else ".else"
    module = then if is_then else otherwise
    body = next((body for body in bodies if body.frame.endswith(frame)), None)
    return torch.fx.Interpreter(module).run(*operands) if body is None else shown.run_body(body, 0, module, operands)


def _run_while(shown: _Shown, bodies: list[Body], condition: Any, body: Any, carried: Any, others: Any = ()) -> Any:
    """The ONNX body ends with the condition for the next iteration; the first is asked before the loop."""
    carried = tuple(carried)
    goes_on = bool(torch.fx.Interpreter(condition).run(*carried, *others))
    iteration = 0
    while goes_on:
        entering = (iteration, goes_on, *carried)
        carried = tuple(shown.run_body(bodies[0], iteration, body, (*carried, *others), entering))
        goes_on = bool(shown.run_body(bodies[0], iteration, condition, (*carried, *others)))
        iteration += 1
    return carried


def _run_scan(shown: _Shown, bodies: list[Body], combine: Any, init: Any, xs: Any, others: Any = ()) -> Any:
    carried, made = list(init), list[list[Any]]()
    for step in range(xs[0].shape[0]):
        entering = (*carried, *(x[step] for x in xs))
        results = list(shown.run_body(bodies[0], step, combine, (*entering, *others), entering))
        carried = results[:len(init)]
        made.append(results[len(init):])
    return (*carried, *(torch.stack(items) for items in zip(*made)))


_CONTROL_FLOW: dict[str, Callable[..., Any]] = {"cond": _run_cond, "while_loop": _run_while, "scan": _run_scan}


# ---- the whole program --------------------------------------------------------------------------------------------

def run_program(program: ExportedProgram, names: GraphNames, args: Sequence[Any], kwargs: Mapping[str, Any] | None,
                show: Show) -> dict[str, torch.Tensor]:
    """Runs the program without gradients, shows its values and returns the ONNX model's inputs by name.

    Raises UsageError for arguments of another structure, Unsupported for a program that holds other than tensors.
    """
    return run_leaves(program, names, flat_arguments(program, args, kwargs), show)


def leaves_of(program: ExportedProgram, names: GraphNames, feeds: Mapping[str, torch.Tensor]) -> list[Any]:
    """Returns the program's inputs, in their order, from the ONNX model's by name: numbers and complex tensors again."""
    expected = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    given = iter(names.inputs)
    leaves: list[Any] = []
    for spec in program.graph_signature.input_specs:
        if spec.kind != InputKind.USER_INPUT:
            continue
        if isinstance(spec.arg, ConstantArgument):
            leaves.append(spec.arg.value)
            continue
        name = next(given)
        if name not in feeds:
            raise UsageError(f"input '{name}' is not given; the exported program has no default for it")
        tensor, value = feeds[name], expected.get(spec.arg.name)
        if value is not None and not isinstance(value, torch.Tensor):
            leaves.append(tensor.item())
        elif isinstance(value, torch.Tensor) and value.is_complex() and not tensor.is_complex():
            leaves.append(torch.view_as_complex(tensor))
        else:
            leaves.append(tensor)
    return leaves


def run_leaves(program: ExportedProgram, names: GraphNames, leaves: Sequence[Any], show: Show) -> dict[str, torch.Tensor]:
    """run_program() with the arguments flat, in the order of the program's inputs."""
    given = iter(leaves)
    inputs: list[Any] = []
    feeds: dict[str, torch.Tensor] = {}
    position = 0
    for spec in program.graph_signature.input_specs:
        if spec.kind != InputKind.USER_INPUT:
            inputs.append(_held(program, spec))
            continue
        value = next(given)
        inputs.append(value)
        if isinstance(spec.arg, ConstantArgument):
            continue
        tensor = as_recorded(value)
        if tensor is None:
            raise Unsupported(f"argument '{spec.arg.name}' is a {type(value).__name__}; it must be a dense tensor or a "
                              "number, as a model takes them")
        feeds[names.inputs[position]] = tensor.contiguous()
        position += 1
    with torch.no_grad():
        _ShownGraph(program, show, names).run(*inputs)
    return feeds


def _held(program: ExportedProgram, spec: Any) -> Any:
    """Returns a parameter, buffer or constant of the program."""
    held: Mapping[str, Any] = program.state_dict
    if spec.kind == InputKind.CONSTANT_TENSOR or (spec.kind == InputKind.BUFFER and spec.persistent is False):
        held = program.constants
    elif spec.kind not in (InputKind.PARAMETER, InputKind.BUFFER):
        held = program.constants
    if spec.target not in held:
        raise Unsupported(f"the exported program needs '{spec.target}' ({spec.kind.name}), which it does not hold; "
                          "only parameters, buffers and constants can be run")
    return held[spec.target]
