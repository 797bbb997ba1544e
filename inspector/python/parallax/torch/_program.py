# SPDX-License-Identifier: Apache-2.0
"""An ATen graph inside a torch.export.ExportedProgram, as the exporter's translator takes it.

The graph is copied as it is, without a trace; tensors that its module holds become constant inputs, outputs that need
no computing (None, numbers, inputs, repeats) are left out, every node gets the path of its module.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import graph_signature as signatures

from ._converted import Input, Output, input_of
from ._private import fake_mode_of, whole_call
from ._simplify import simplify

_OUTPUT_KINDS = {torch.SymInt: "size", torch.SymFloat: "float", torch.SymBool: "bool"}


@dataclass
class Wrapped:
    """The graph inside an ExportedProgram, and what was taken out of it."""

    program: torch.export.ExportedProgram
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    constants: dict[str, torch.Tensor]
    names: dict[str, str]  # node of the given graph -> node of the copy that has its value
    dtypes: dict[str, torch.dtype | None]  # of the copy's nodes before types are promoted


def wrap(gm: torch.fx.GraphModule) -> Wrapped:
    """The graph copied (its module's attributes are not) into an ExportedProgram; tensor attributes become inputs."""
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    results = graph.graph_copy(gm.graph, copies)
    results = tuple(results) if isinstance(results, (tuple, list)) else (results,)
    results, equal = simplify(graph, results)
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
        gm, graph, signature, {}, {}, [whole_call(signature)], constants=dict(constants))
    names = {old.name: equal.get(new.name, new.name) for old, new in copies.items()}
    dtypes = {new.name: dtype_of(new) for new in copies.values()}
    return Wrapped(program, inputs, outputs, constants, names, dtypes)


def dtype_of(node: torch.fx.Node) -> torch.dtype | None:
    return getattr(node.meta.get("val"), "dtype", None)


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
    lines = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    return f"{lines[-1][0]}:{lines[-1][1]}" if lines else ""
