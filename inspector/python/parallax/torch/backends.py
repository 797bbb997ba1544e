# SPDX-License-Identifier: Apache-2.0
"""torch.compile backends that run graphs on Parallax."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from ._compile import Boxed, compile_graph, kind_of, table_of
from ._fx import tracing_context
from ._options import Options, Transform, changed_options
from .storage import Kind

GraphFunction = Callable[..., Any]


class Backend:
    """The result of `backend()` and `debug_backend()`: a backend for torch.compile, with options."""

    def __init__(self, options: Options, name: str) -> None:
        self.options = options
        self.__name__ = name

    def __call__(
        self, gm: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None,
        mode: str | None = None, name: str | None = None,
    ) -> GraphFunction:
        """Compiles a graph of Dynamo's."""
        return compile_dynamo_graph(gm, example_inputs, changed_options(self.options, options, mode))

    def __repr__(self) -> str:
        return f"<backend {self.__name__}>"


def backend(
    *, executor: str = "cpu", patterns: str | Sequence[str] = "default",
    storage: MutableMapping[Any, Any] | None = None, dump_prefix: str | Path | None = None, opset: int = 20,
    decompositions: str | Mapping[Any, Callable[..., Any]] = "default", freeze: Literal["auto", "never"] = "auto",
    fallback: Literal["error", "eager"] = "error", randomness: Literal["torch", "executor"] = "torch",
    transforms: Sequence[Transform] = (), observer: Any = None, verbose: int = 0, force: bool = False,
) -> Backend:
    """A backend for `torch.compile(model, backend=...)` that converts each graph to ONNX and runs it on an executor.

    - `executor`: "cpu", "cuda", "reference" or "reference:double";
    - `patterns`: what is fused: a set ("standard", "standard+microsoft", "standard+microsoft+own" = "default"), names
      of patterns, a set less a name ("default,-attention"), or "none";
    - `storage`: a `Storage`, or a dict, that gets a `CompiledGraph` for each graph;
    - `dump_prefix`: for each graph `PREFIX_<index>_<kind>` with the endings `.onnx` (converted, before any pattern),
      `.txt` (the ATen graph) and `.npz` (inputs of the first call) are written;
    - `opset`: of the models, 18 or later;
    - `decompositions`: "default", "core", "none", or a table for aot_autograd;
    - `freeze`: "auto" makes weights of inference graphs initializers, and packs them anew when one changes (edits
      through `.data` are not seen); "never" leaves them inputs;
    - `fallback`: "error" refuses a graph with an operator that has no conversion; "eager" lets torch run it;
    - `randomness`: "torch" draws dropout masks and random numbers as eager does, so that `torch.manual_seed` governs
      them; "executor" leaves the drawing to the model, which draws the same numbers at each call;
    - `transforms`: functions that are applied to each converted model (`parallax.Model`) in order;
    - `observer`: an object with `observe(path, value)`, and `wants(site)` or not, that sees the values of each run, as
      `parallax.Session.run(observe=...)` has it;
    - `verbose`: 1 prints a line for each graph, 2 its nodes, too;
    - `force`: `dump_prefix` may replace files that Parallax did not write.

    The same backend by name takes them as `torch.compile(model, backend="parallax", options={...})`. An unknown option
    is a `UsageError` that names the known ones; a graph that does not convert is a `ConversionError` that names the
    operator, its module and its line.

    >>> import torch, parallax.torch as pt
    >>> net = torch.compile(torch.nn.Linear(4, 2), backend=pt.backend(patterns="standard"))
    >>> net(torch.ones(3, 4)).shape
    torch.Size([3, 2])
    """
    return Backend(Options(
        executor=executor, patterns=patterns, storage=storage, dump_prefix=dump_prefix, opset=opset,
        decompositions=decompositions, freeze=freeze, fallback=fallback, randomness=randomness,
        transforms=tuple(transforms), observer=observer, verbose=verbose, force=force), "parallax")


parallax = Backend(Options(), "parallax")
"""The backend "parallax" of torch.compile."""


def fx_compiler(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], **options: Any) -> GraphFunction:
    """Compiles one graph: a `fw_compiler` for aot_autograd, or a whole backend when Dynamo calls it.

    The options are those of `backend`. A graph of aot_autograd (ATen operators) becomes a boxed function; a graph of
    Dynamo's goes through aot_autograd first.

    >>> import functools, torch, parallax.torch as pt
    >>> from torch._dynamo.backends.common import aot_autograd
    >>> compiler = functools.partial(pt.fx_compiler, patterns="standard")
    >>> aot = aot_autograd(fw_compiler=compiler, decompositions=pt.decompositions())
    >>> torch.compile(torch.nn.Linear(4, 2), backend=aot)(torch.ones(3, 4)).shape
    torch.Size([3, 2])
    """
    from ._options import make_options

    made = make_options(Options, options)
    if is_dynamo_graph(gm):
        return compile_dynamo_graph(gm, example_inputs, made)
    return compile_graph(gm, made, kind_of(gm))


def is_dynamo_graph(gm: torch.fx.GraphModule) -> bool:
    """True where the graph has what Dynamo recorded (functions and modules of Python) and not ATen operators."""
    for node in gm.graph.nodes:
        if node.op in ("call_module", "call_method") or "example_value" in node.meta:
            return True
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            return False
    return False


def compile_dynamo_graph(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], options: Options) -> GraphFunction:
    """A graph of Dynamo's through aot_autograd: functional, decomposed, forward and backward separate."""
    from torch._dynamo.backends.common import aot_autograd

    reason = break_reason_of(gm)

    def compiler(kind: Kind) -> Callable[..., Boxed]:
        return lambda graph, inputs: compile_graph(graph, options, kind, reason)

    compile_with_aot = aot_autograd(
        fw_compiler=compiler("forward"), bw_compiler=compiler("backward"), inference_compiler=compiler("inference"),
        decompositions=table_of(options))
    with tracing_context(torch.is_grad_enabled()):
        function: GraphFunction = compile_with_aot(gm, example_inputs)
    return function


def break_reason_of(gm: torch.fx.GraphModule) -> str:
    """Why Dynamo ended the graph before the function's end, with the line; "" where it did not."""
    found = getattr(gm, "compile_subgraph_reason", None)
    if found is None or not found.graph_break:
        return ""
    frame = found.user_stack[-1] if found.user_stack else None
    where = f" ({frame.filename}:{frame.lineno})" if frame is not None else ""
    return f"{str(found.reason).splitlines()[0]}{where}"
