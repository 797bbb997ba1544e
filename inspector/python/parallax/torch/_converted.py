# SPDX-License-Identifier: Apache-2.0
"""The result of a conversion: the ONNX model and how the graph's inputs and outputs relate to the model's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch

from ._symbols import Symbols, describe

if TYPE_CHECKING:
    import onnx
    import onnx_ir

InputKind = Literal["tensor", "size", "float", "bool", "absent"]
OutputKind = Literal["tensor", "size", "float", "bool", "none", "input", "constant", "repeat"]


@dataclass(frozen=True)
class Input:
    """One placeholder of the FX graph, in its order.

    `name` is the name of the model's input; "" for an absent one (None, or a number fixed while tracing), which the
    model does not have. `shape` has numbers and the text of expressions (`"s77"`); a complex tensor is fed as real
    pairs, so that the model's input has one more dimension, of size 2.
    """

    placeholder: str
    name: str
    kind: InputKind
    dtype: torch.dtype | None = None
    shape: tuple[int | str, ...] = ()


@dataclass(frozen=True)
class Output:
    """One output of the FX graph, in its order.

    The kind says where it comes from:
    - "tensor", "size", "float", "bool": `index` is the position among the model's outputs, `name` its name there;
    - "input": the input at position `index`, as it is;
    - "repeat": the same object as the graph's output at position `index`;
    - "constant": `value`, a number fixed while tracing;
    - "none": None; `name` is `output_NONE_<position>`, which the model does not have.

    `value` of a tensor is the traced one (`meta["val"]`): its shape, dtype and strides are what eager would return;
    with free shapes they are expressions of the graph's symbols.
    """

    name: str
    kind: OutputKind
    index: int = -1
    value: Any = None


@dataclass
class Converted:
    """An FX graph as an ONNX model.

    `inputs` and `outputs` have one entry for each placeholder and each output of the FX graph; the model has fewer
    where some are absent, None, passed through or repeated. `values` maps names of FX nodes to the names of the ONNX
    values that equal them; a node whose value optimization removed is missing. `constants` are the tensors that were
    attributes of the graph module and are initializers now. `operators` counts the model's nodes by domain ("" is
    ONNX's own). `graph_module` is the graph that was translated; it differs from the given one where operators had to
    be decomposed (`decomposed` names them). `route` is "translator", or "torch.onnx.export" where the translator of
    this version of torch could not be used.

    A call is `converted.assemble(session_run(converted.feeds(inputs)), inputs)`.
    """

    model: onnx_ir.Model
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    values: dict[str, str]
    constants: dict[str, torch.Tensor]
    operators: dict[str, int]
    graph_module: torch.fx.GraphModule
    decomposed: tuple[str, ...] = ()
    route: str = "translator"
    seconds: dict[str, float] = field(default_factory=dict)
    _bytes: bytes | None = field(default=None, repr=False)
    _symbols: Symbols | None = field(default=None, repr=False)

    @property
    def input_names(self) -> list[str]:
        """The model's inputs in order."""
        return [i.name for i in self.inputs if i.kind != "absent"]

    @property
    def output_names(self) -> list[str]:
        """The outputs that have to be computed, in order; where there are none, the model need not be run."""
        return [o.name for o in self.outputs if o.kind in ("tensor", "size", "float", "bool")]

    @property
    def symbols(self) -> Symbols:
        """The sizes known only at the call, and the inputs that give them."""
        if self._symbols is None:
            placeholders = [n for n in self.graph_module.graph.nodes if n.op == "placeholder"]
            self._symbols = Symbols([n.meta.get("val") for n in placeholders])
        return self._symbols

    def to_proto(self) -> onnx.ModelProto:
        """The model as a protobuf message."""
        import onnx_ir

        return onnx_ir.to_proto(self.model)

    def to_bytes(self) -> bytes:
        """The model as an ONNX file's bytes; computed once."""
        if self._bytes is None:
            self._bytes = self.to_proto().SerializeToString()
        return self._bytes

    def feeds(self, inputs: Sequence[Any]) -> list[Any]:
        """The values of the model's inputs, as contiguous torch tensors, from the graph's inputs of one call."""
        if len(inputs) != len(self.inputs):
            raise ValueError(f"the graph is called with {len(inputs)} inputs; it must be {len(self.inputs)}")
        return [_feed(value, spec) for value, spec in zip(inputs, self.inputs) if spec.kind != "absent"]

    def assemble(self, results: Sequence[torch.Tensor], inputs: Sequence[Any]) -> list[Any]:
        """The graph's outputs from the model's (torch tensors in the order of `output_names`) and the call's inputs.

        Puts back None, numbers, passed-through inputs and repeated outputs. Tensors are contiguous.
        """
        assembled: list[Any] = []
        for spec in self.outputs:
            if spec.kind == "tensor":
                result = results[spec.index]
                is_pair = spec.value.dtype.is_complex and not result.dtype.is_complex
                assembled.append(torch.view_as_complex(result.contiguous()) if is_pair else result)
            elif spec.kind in ("size", "float", "bool"):
                assembled.append(results[spec.index].item())
            elif spec.kind == "input":
                assembled.append(inputs[spec.index])
            elif spec.kind == "repeat":
                assembled.append(assembled[spec.index])
            else:
                assembled.append(spec.value)
        return assembled


def input_of(node: torch.fx.Node, position: int) -> Input:
    """The entry of a placeholder; its kind follows from the traced value."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return Input(node.name, node.name, "tensor", value.dtype, tuple(describe(s) for s in value.shape))
    if isinstance(value, torch.SymInt):
        return Input(node.name, f"input_dim_{position}", "size", torch.int64)
    if isinstance(value, torch.SymFloat):
        return Input(node.name, f"input_float_{position}", "float", torch.float32)
    if isinstance(value, torch.SymBool):
        return Input(node.name, f"input_bool_{position}", "bool", torch.bool)
    return Input(node.name, "", "absent")


def _feed(value: Any, spec: Input) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        return torch.tensor(value, dtype=spec.dtype)
    value = value.detach()
    if value.dtype.is_complex:
        return torch.view_as_real(value.resolve_conj()).contiguous()
    plain: torch.Tensor = value.resolve_neg().contiguous()
    return plain
