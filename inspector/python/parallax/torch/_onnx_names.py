# SPDX-License-Identifier: Apache-2.0
"""Which values of an exported ONNX graph stand for which nodes of the exported program (FX)."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from parallax.errors import UsageError

if TYPE_CHECKING:
    import onnx
    from torch.export import ExportedProgram

_FX_NODE = re.compile(r"%(\S+) :")
_NUMBERED = re.compile(r"_\d+$")
_BODIES = {"then_branch": "then", "else_branch": "else", "body": "body[{}]"}


@dataclass
class Body:
    """A body of a control-flow node: the frame of its values' paths, and the values by FX name.

    ``frame`` is ``node_cond__0.then``, or ``node_scan__1.body[{}]`` with {} for the iteration.
    """

    frame: str
    inputs: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    bodies: dict[str, list[Body]] = field(default_factory=dict)


@dataclass
class GraphNames:
    """The names in the main graph of what the nodes of the exported program make."""

    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    values: set[str] = field(default_factory=set)
    """Results of nodes, and constants that an optimizer made of them."""
    renamed: dict[str, list[str]] = field(default_factory=dict)
    """FX name -> the names of inputs, weights and outputs, which go by position or by the program's signature."""
    mismatched: dict[str, str] = field(default_factory=dict)
    """Name of an output, which is also an FX node's -> the FX node that torch returns there instead."""
    taken_out: dict[str, str] = field(default_factory=dict)
    """FX name of a getitem -> the graph's value of that item, which is named after the operation and a position."""
    bodies: dict[str, list[Body]] = field(default_factory=dict)
    """FX name of a control-flow operation -> the bodies of its ONNX node, in the order of its attributes."""

    def paths(self, fx_name: str) -> list[str]:
        """Returns every name in the main graph of what an FX node made; [] where the graph has no such value."""
        if fx_name in self.renamed:
            return self.renamed[fx_name]
        return [fx_name] if fx_name in self.values and fx_name not in self.mismatched else []


def fx_name_of(node: onnx.NodeProto) -> str:
    """Returns the FX node that an ONNX node is a part of; "" where the exporter wrote none."""
    metadata = {entry.key: entry.value for entry in node.metadata_props}
    found = _FX_NODE.match(metadata.get("pkg.torch.onnx.fx_node", ""))
    if found is not None:
        return found.group(1)
    try:
        scopes = ast.literal_eval(metadata.get("pkg.torch.onnx.name_scopes", "[]"))
    except (SyntaxError, ValueError):
        return ""
    return str(scopes[-1]) if scopes else ""


def names_of(model: onnx.ModelProto, program: ExportedProgram) -> GraphNames:
    """Returns the correspondence of a model and the program that it was exported from.

    Raises UsageError where their inputs or outputs differ in number, so that they cannot belong together.
    """
    from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    signature = program.graph_signature
    names = GraphNames(
        inputs=[value.name for value in graph.input if value.name not in constants],
        outputs=[value.name for value in graph.output], bodies=_bodies_of(graph))
    given = [spec.arg.name for spec in signature.input_specs
             if spec.kind == InputKind.USER_INPUT and not isinstance(spec.arg, ConstantArgument)]
    made = [spec.arg.name for spec in signature.output_specs
            if spec.kind == OutputKind.USER_OUTPUT and not isinstance(spec.arg, ConstantArgument)]
    for what, in_model, in_program in (("inputs", names.inputs, given), ("outputs", names.outputs, made)):
        if len(in_model) != len(in_program):
            raise UsageError(
                f"the model has {len(in_model)} {what} ({', '.join(in_model)}), the exported program {len(in_program)} "
                f"({', '.join(in_program)}); they must be one export. Give the program that the model was made from.")
    # Constants of bodies move into the main graph under numbered names, which may be those of other nodes.
    has_bodies = any(node.op == "get_attr" for node in program.graph.nodes)
    names.values = {name for name in constants if not (has_bodies and _NUMBERED.search(name))}
    names.values.update(name for node in graph.node for name in node.output if name)
    names.taken_out = dict(_items(program, names))
    for spec in signature.input_specs:
        if spec.kind != InputKind.USER_INPUT:
            names.renamed[spec.arg.name] = []  # under a weight's name may be what an optimizer folded into it
    for fx_name, name in zip(given, names.inputs):
        names.renamed[fx_name] = [name]
    _match_outputs(names, {node.name for node in program.graph.nodes}, made)
    return names


def _items(program: ExportedProgram, names: GraphNames) -> Iterator[tuple[str, str]]:
    for node in program.graph.nodes:
        if node.target is operator.getitem and node.name not in names.values:
            source, index = node.args[0].name, node.args[1]
            for name in (f"{source}__{index}", f"{source}_split_{index}"):
                if name in names.values:
                    yield node.name, name


def _match_outputs(names: GraphNames, known: set[str], made: list[str]) -> None:
    """Matches outputs by position, whatever they are called."""
    for fx_name, name in zip(made, names.outputs):
        if name != fx_name and name in known and name not in names.inputs and fx_name not in names.renamed:
            names.mismatched[name] = fx_name
    for fx_name, name in zip(made, names.outputs):
        usual = names.paths(fx_name)
        if name not in usual:
            names.renamed[fx_name] = [*usual, name]


def _bodies_of(graph: onnx.GraphProto) -> dict[str, list[Body]]:
    import onnx

    found: dict[str, list[Body]] = {}
    for node in graph.node:
        bodies = [attribute for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH]
        if bodies and node.name:
            found[fx_name_of(node)] = [_body_of(node.name, attribute) for attribute in bodies]
    return found


def _body_of(node: str, attribute: onnx.AttributeProto) -> Body:
    """Names of bodies are made unique across graphs, by a suffix; the nodes' metadata tell whose values they are."""
    last: dict[str, list[str]] = {}
    for inner in attribute.g.node:
        last[fx_name_of(inner)] = [name for name in inner.output if name]
    values = {fx_name: outputs[0] for fx_name, outputs in last.items()
              if len(outputs) == 1 and (outputs[0] == fx_name or outputs[0].startswith(fx_name + "_"))}
    frame = f"{escaped(node)}.{_BODIES.get(attribute.name, attribute.name)}"
    return Body(frame, [value.name for value in attribute.g.input], values, _bodies_of(attribute.g))


def escaped(name: str) -> str:
    """Returns a name as value paths write it.

    >>> escaped("encoder//out")
    'encoder%2F%2Fout'
    """
    return re.sub(r"%(?=[0-9A-Fa-f]{2})", "%25", name).replace("//", "%2F%2F")
