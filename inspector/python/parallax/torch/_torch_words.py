# SPDX-License-Identifier: Apache-2.0
"""Says in torch's words what a comparison with an exported graph found: operator, module, line of the model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from parallax.torch._onnx_names import GraphNames

if TYPE_CHECKING:
    import onnx
    from torch.export import ExportedProgram

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_OTHER_INPUT = re.compile(r"result is what it gives when '(.+?)' holds the value of '(.+?)'")
_EARLIER = re.compile(r"its result is the earlier value '(.+?)'")
_BROKE_OFF = re.compile(r"^B's run broke off here: (.+)$")
_CONSTANT = re.compile(r"the constant '(.+?)' that it reads is not the same on both sides: (.+)$")
_UNCHANGED = re.compile(r"its result is its input '(.+?)' unchanged")
_MEMBER = re.compile(r"by its node '(.+?)' \((\w+)\): the group's (result .+)$")
_HAS = re.compile(r"; the node (has|is) (.+)$")
_MOST_OPS = 9
_TORCH = str(Path(torch.__file__).parent)

@dataclass(frozen=True)
class ConversionCause:
    """A location where the ONNX graph says something else than torch computes; ``text`` is the sentence about it.

    ``operator`` ("aten.softmax.int"), ``module`` and ``line`` ("model.py:13") are "" where nothing tells them.
    ``value``, ``node`` and ``op`` are the ONNX graph's, ``group`` names the nodes of an operator that was exported as
    several, ``introduced`` is a severity (1 is the limit), ``why`` the program's sentence.
    """

    rank: int
    operator: str
    module: str
    line: str
    value: str
    node: str
    op: str
    group: tuple[str, ...]
    introduced: float
    why: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class _Location:
    """The origin of a node of the exported program."""

    operator: str
    module: str
    line: str

    def __str__(self) -> str:
        text = self.operator or "an operator that the exporter does not name"
        text += f", {self.line}" if self.line else ""
        return text + (f" in {self.module}" if self.module else "")


class Words:
    """The torch names of the nodes in a comparison, from the model and the program."""

    def __init__(self, model: onnx.ModelProto, program: ExportedProgram, names: GraphNames) -> None:
        self._program = program
        self._names = names
        self._nodes = {node.name: node for node in _nodes_of(model.graph) if node.name}
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self._opset = {entry.domain: entry.version for entry in model.opset_import}
        self._fx = {node.name: node for node in program.graph.nodes}
        self._fx_of = {path: node.name for node in program.graph.nodes for path in names.paths(node.name)}
        for name, value in names.taken_out.items():
            self._fx_of[value] = self._fx[name].args[0].name

    def cause(self, cause: Mapping[str, Any]) -> ConversionCause:
        """Returns the cause with its sentence in torch's words."""
        source = cause.get("source") or {}
        at = self._locate(cause)
        why = str(cause["why"]).partition("; judged as one group")[0]
        at, said = self._said(cause, at, why)
        weights = self._other_weights(cause)
        return ConversionCause(
            rank=int(cause["rank"]), operator=at.operator, module=at.module or str(source.get("module", "")),
            line=at.line or str(source.get("line", "")), value=str(cause["path"]), node=str(cause["node"]),
            op=str(cause["op"]), group=tuple(cause.get("group", ())), introduced=float(cause["introduced"]),
            why=str(cause["why"]), text=f"{at}: {said}{weights}")

    def _locate(self, cause: Mapping[str, Any]) -> _Location:
        source = cause.get("source") or {}
        name = str(cause["path"])
        fx_name = self._fx_of.get(name)
        known = _origin(self._fx[fx_name]) if fx_name is not None else _Location("", "", "")
        if name in self._constants and fx_name is not None and known.operator:
            return known  # a constant that an optimizer computed: the node that made it, not the one that reads it
        return _Location(str(source.get("operator") or known.operator), str(source.get("module") or known.module),
                      str(source.get("line") or known.line))

    def _said(self, cause: Mapping[str, Any], at: _Location, why: str) -> tuple[_Location, str]:
        exported, value = self._exported(cause, why), str(cause["path"])
        if value in self._names.mismatched:
            return at, (f"the ONNX graph gives '{value}' as output {self._names.outputs.index(value)}, where torch "
                           f"returns '{self._names.mismatched[value]}'")
        if (found := _OTHER_INPUT.search(why)) is not None:
            read, right = found.group(1), found.group(2)
            if right in self._fx and not self._names.paths(right):
                return _origin(self._fx[right]), (f"missing from the ONNX graph: {exported} reads '{read}' where torch "
                                                  f"reads its result '{right}'")
            return at, f"exported as {exported} of '{read}', torch computes it of '{right}'"
        if (found := _BROKE_OFF.search(why)) is not None:
            return at, f"exported as {exported}, which fails: {found.group(1)}"
        if (found := _CONSTANT.search(why)) is not None:
            return at, f"exported as another constant '{found.group(1)}': {_of_sides(found.group(2))}"
        if (found := _EARLIER.search(why)) is not None:
            return at, f"exported as {exported}, torch's result is '{found.group(1)}'"
        if (found := _UNCHANGED.search(why)) is not None:
            return at, f"exported as {exported}, torch passes '{found.group(1)}' on unchanged"
        if (found := _MEMBER.search(why)) is not None:
            has = _HAS.search(why)
            instead = "" if has is None else f", which {has.group(1)} {has.group(2)}"
            said = _computes(_HAS.sub("", found.group(3)))
            return at, f"exported as {exported}, {said} in its node '{found.group(1)}' ({found.group(2)}){instead}"
        return at, f"exported as {exported}, {_computes(_HAS.sub('', why).removeprefix('its '))}"

    def _exported(self, cause: Mapping[str, Any], why: str) -> str:
        """Returns the ONNX nodes in short: ``Softmax(axis=1)``, or ``4 nodes (Mul, Add, Softmax, MatMul)``."""
        ops = [self._nodes[name].op_type for name in cause.get("group", ()) if name in self._nodes]
        if len(ops) > 1:
            more = ", ..." if len(ops) > _MOST_OPS else ""
            return f"{len(ops)} nodes ({', '.join(ops[:_MOST_OPS])}{more})"
        node = self._nodes.get(str(cause["node"]))
        if node is None or str(cause["path"]) in self._constants:
            return f"constant '{cause['path']}'" if str(cause["path"]) in self._constants else str(cause["op"])
        shown = [attribute for attribute in node.attribute
                if attribute.name in why or not self._is_default(node, attribute)]
        attributes = [text for attribute in shown if (text := _text_of(attribute))]
        return f"{node.op_type}({', '.join(attributes)})" if attributes else node.op_type

    def _is_default(self, node: onnx.NodeProto, attribute: onnx.AttributeProto) -> bool:
        import onnx

        try:
            schema = onnx.defs.get_schema(node.op_type, self._opset.get(node.domain, 1), node.domain)
        except onnx.defs.SchemaError:
            return False
        known = schema.attributes.get(attribute.name)
        return known is not None and _text_of(known.default_value) == _text_of(attribute)

    def _other_weights(self, cause: Mapping[str, Any]) -> str:
        """Names weights that the nodes read, and that hold other numbers than the program's of the same name.

        Only where torch's operator reads that very weight: what is folded into a neighbor's constant is another one.
        """
        from onnx import numpy_helper

        nodes = [self._nodes[name] for name in (cause.get("group") or [cause["node"]]) if name in self._nodes]
        fx_name = self._fx_of.get(str(cause["path"]))
        if fx_name is None:
            return ""
        read = {argument.name for argument in self._fx[fx_name].all_input_nodes}
        signature = self._program.graph_signature
        weights = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        targets = {target for name, target in weights.items() if name in read}
        for name in dict.fromkeys(name for node in nodes for name in node.input):
            held = self._program.state_dict.get(name)
            if name not in targets or name not in self._constants or held is None:
                continue
            if self._constants[name].external_data or held.dtype.is_complex:
                continue
            found, right = numpy_helper.to_array(self._constants[name]), held.detach().cpu().double().numpy()
            if found.shape != right.shape:
                return f"; its weight '{name}' has shape {list(found.shape)}, torch's {list(right.shape)}"
            error = float(np.max(np.abs(found.astype(np.float64) - right), initial=0.0))
            if error > 0:
                return f"; its weight '{name}' is not torch's: elements differ by up to {error:.3g}"
        return ""


def _of_sides(said: str) -> str:
    return said.replace(" in A and ", " in torch and ").replace(" in B", " in the ONNX graph")


def _computes(said: str) -> str:
    """Says what torch's result is; the program's sentence calls torch A and takes the ONNX graph for right."""
    said = re.sub(r", where (\S+) is right", r", where the ONNX graph gives \1", said)
    said = _of_sides(said)
    if said.startswith("result is what "):
        return "torch computes " + said.removeprefix("result is ")
    if said.startswith("result "):
        return "torch's " + said
    return "torch computes another result: " + said


def _nodes_of(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    nodes = []
    for node in graph.node:
        nodes.append(node)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                nodes.extend(_nodes_of(attribute.g))
    return nodes


def _origin(node: torch.fx.Node) -> _Location:
    """Returns operator, module and line of a node of the program."""
    operator = str(node.target) if node.op == "call_function" else ""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    module = str(stack[-1][0]).removeprefix("L['self']").lstrip(".") if stack else ""
    frames = [found for found in _FRAME.findall(node.meta.get("stack_trace") or "")
              if "-packages/torch/" not in found[0] and not found[0].startswith("<")]
    line = re.split(r"[/\\]", frames[-1][0])[-1] + ":" + frames[-1][1] if frames else ""
    return _Location(operator, module, line)


def _text_of(attribute: onnx.AttributeProto) -> str:
    """Returns ``axis=1``; "" for tensors and graphs, which are too long for a sentence."""
    from onnx import AttributeProto

    kind = attribute.type
    if kind == AttributeProto.FLOAT:
        return f"{attribute.name}={attribute.f:.6g}"
    if kind == AttributeProto.INT:
        return f"{attribute.name}={attribute.i}"
    if kind == AttributeProto.STRING:
        return f"{attribute.name}={attribute.s.decode(errors='replace')}"
    if kind == AttributeProto.INTS:
        return f"{attribute.name}={list(attribute.ints)}"
    return ""


def summary(verdict: str, causes: Sequence[ConversionCause], document: Mapping[str, Any]) -> str:
    """Returns the whole answer as text: the verdict in a line, then a line a cause, at most ten."""
    counts = document["summary"]
    head = f"{verdict}: {counts['compared']} values of torch compared, {counts['diverged']} beyond their limits"
    if document.get("reason"):
        head += f"; {document['reason']}"
    lines = [head, *(f"{cause.rank}. {cause.text}" for cause in causes[:10])]
    if len(causes) > 10:
        lines.append(f"and {len(causes) - 10} more causes")
    return "\n".join(lines)
