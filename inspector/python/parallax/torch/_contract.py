# SPDX-License-Identifier: Apache-2.0
"""The conversion's expectations of the installed torch, checked on small graphs: names, order, metadata and values.

`check_torch_contract()` takes seconds; `parallax doctor --python` and the tests call it. A version of torch that fails
is identified by the names of what it does differently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ._converted import Converted
from ._decompositions import decompositions
from ._fx import convert, route, tracing_context
from ._private import SUPPORTED_TORCH

__all__ = ["check_torch_contract", "supported_torch"]

Graphs = list[Converted]


def supported_torch() -> str:
    """In words: the installed version, those that passed the contract test, and the way that graphs take."""
    first, last = SUPPORTED_TORCH
    known = first if first == last else f"{first} to {last}"
    return f"torch {torch.__version__} (the conversion to ONNX was tested with {known}), by {route()}"


def check_torch_contract() -> list[str]:
    """The differences of the installed torch from the conversion's expectations; empty where all is well.

    >>> import parallax.torch as pt
    >>> pt.check_torch_contract()
    []
    """
    problems = []
    for check in (_layers, _training_batch_norm, _embedding, _attention, _free_sizes, _outputs, _constants):
        try:
            with torch.random.fork_rng(devices=[]):  # a layer normalization of unlucky numbers magnifies rounding
                torch.manual_seed(0)
                problems += [f"{check.__name__.strip('_')}: {found}" for found in check()]
        except Exception as error:  # whatever a private name of another version raises is what is reported
            problems.append(f"{check.__name__.strip('_')}: {type(error).__name__}: {error}")
    return problems


# --- the graphs ---------------------------------------------------------------------------------------------------


class _Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(6, 8)
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(functional.softmax(functional.gelu(self.first(x)), -1))  # type: ignore[no-any-return]


def _layers() -> list[str]:
    """Linear, gelu, softmax, layer normalization: names, module paths and source lines of both graphs."""
    block = _Block()
    graphs, problems = _train(block, [torch.randn(3, 6)], list(block.parameters()))
    if len(graphs) != 2:
        return [*problems, f"{len(graphs)} graphs are made of a module and its gradient; it must be 2"]
    for graph, kind in zip(graphs, ("forward", "backward")):
        scopes = {part for node in graph.model.graph for part in node.metadata_props.get("namespace", "").split("/")}
        for path in ("first: ", "norm: "):
            if not any(scope.startswith(path) for scope in scopes):
                problems.append(f"no node of the {kind} graph has the module {path.strip(': ')!r} in its namespace")
    lines = [node.metadata_props.get("pkg.torch.onnx.stack_trace", "") for node in graphs[0].model.graph]
    if not any("_contract.py" in line for line in lines):
        problems.append("no node of the forward graph has its source line")
    names = [n.name for n in graphs[0].graph_module.graph.nodes if n.op == "placeholder"]
    if graphs[0].input_names != names:
        problems.append(f"the inputs are {graphs[0].input_names}; they must be the placeholders {names}, in order")
    if graphs[0].decomposed or graphs[1].decomposed:
        problems.append("operators were decomposed in a second trace; the table must decompose them in the first")
    return problems


def _training_batch_norm() -> list[str]:
    """Convolution and batch normalization by the batch's own statistics, which change the running ones."""
    net = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3, stride=2, padding=1, bias=False), torch.nn.BatchNorm2d(3))
    copy = deepcopy(net)
    x = torch.randn(4, 2, 5, 6)
    _, problems = _train(net, [x], list(net.parameters()))  # calls it twice, compiled and not
    copy(x), copy(x)
    for name, running in net.named_buffers():
        if not torch.allclose(running, copy.get_buffer(name), rtol=1e-4, atol=1e-6):
            problems.append(f"the buffer {name} is not what eager makes of it")
    return problems


def _embedding() -> list[str]:
    """Embedding and indexing by tensors."""
    table = torch.randn(7, 4, requires_grad=True)

    def function(indices: Tensor, rows: Tensor, weight: Tensor) -> Tensor:
        return functional.embedding(indices, weight)[rows, :, 1:3]

    arguments = [torch.tensor([[1, 2, 2], [6, 0, 1]]), torch.tensor([1, 0, 1]), table]
    return _train(function, arguments, [table])[1]


def _attention() -> list[str]:
    """Attention with gradients, traced in both ways, and without."""
    tensors = [torch.randn(2, 2, 5, 4, requires_grad=True) for _ in range(3)]

    def function(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    problems = []
    for is_plain in (True, False):
        problems += _train(function, tensors, tensors, plain_attention=is_plain)[1]
    with torch.no_grad():
        return problems + _train(function, [t.detach() for t in tensors], [])[1]


def _free_sizes() -> list[str]:
    """Free shapes: sizes come in as int64 scalars and may be saved as outputs; a second call has other sizes."""
    weight = torch.randn(4, 3, requires_grad=True)

    def function(x: Tensor, factor: Tensor) -> Tensor:
        return (x.reshape(-1, 4) @ factor) * x.shape[0]

    graphs: Graphs = []
    compiled = torch.compile(function, backend=_backend(graphs), dynamic=True)
    problems = []
    for count in (2, 5):
        x = torch.randn(count, 6, 4)
        problems += _compare(function, compiled, [x, weight], [weight])
    if len(graphs) != 2:
        problems.append(f"{len(graphs)} graphs are made of free shapes and a gradient; it must be 2")
    if graphs and not any(name.startswith("input_dim_") for name in graphs[0].input_names):
        problems.append(f"no input among {graphs[0].input_names} is a size")
    return problems


def _outputs() -> list[str]:
    """An output that is an input, a repeated one, and gradients that are None."""
    import torch._functorch.aot_autograd as aot

    graphs: Graphs = []
    x, y = torch.randn(3, requires_grad=True), torch.randn(3)

    def function(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        product = a * b
        return product, product

    compile_graph: Any = _compiler(graphs)
    compiled: Callable[..., Any] = aot.aot_function(
        function, fw_compiler=compile_graph, bw_compiler=compile_graph, decompositions=decompositions())
    problems = _compare(lambda a, b: function(a, b)[0], lambda a, b: compiled(a, b)[1], [x, y], [x])
    kinds = [[output.kind for output in graph.outputs] for graph in graphs]
    if len(kinds) != 2 or kinds[0][:3] != ["tensor", "repeat", "input"] or kinds[1] != ["tensor", "none"]:
        problems.append(f"outputs are {kinds}; they must be [['tensor', 'repeat', 'input', ..], ['tensor', 'none']]")
    return problems


def _constants() -> list[str]:
    """Tensors made of Python numbers in the forward pass become initializers."""
    x = torch.randn(3, requires_grad=True)

    def function(a: Tensor) -> Tensor:
        return a[torch.tensor([2, 0, 0])] * torch.tensor([1.0, 2.0, 3.0]) + 2

    return _train(function, [x], [x])[1]


# --- how they are run ---------------------------------------------------------------------------------------------


def _compiler(graphs: Graphs) -> Callable[[torch.fx.GraphModule, Sequence[Any]], Callable[..., Any]]:
    """A compiler that keeps each conversion and runs it on the reference executor."""
    import parallax

    def compile_graph(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        converted = convert(gm, example_inputs)
        graphs.append(converted)
        session = parallax.Session(converted.to_bytes(), executor="reference") if converted.output_names else None

        def call(boxed: list[Any]) -> list[Any]:
            inputs = list(boxed)
            boxed.clear()
            results = session.run(converted.feeds(inputs), kind="torch") if session else {}
            return converted.assemble([results[name] for name in converted.output_names], inputs)

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    return compile_graph


def _backend(graphs: Graphs) -> Callable[..., Any]:
    from torch._dynamo.backends.common import aot_autograd

    backend: Callable[..., Any] = aot_autograd(fw_compiler=_compiler(graphs), decompositions=decompositions())
    return backend


def _train(
    function: Callable[..., Tensor], arguments: Sequence[Tensor], wanted: Sequence[Tensor], *,
    plain_attention: bool = True,
) -> tuple[Graphs, list[str]]:
    """The graphs of a function or module compiled, and where its result or gradients differ from eager's."""
    torch._dynamo.reset()
    graphs: Graphs = []
    compiled = torch.compile(function, backend=_backend(graphs), dynamic=False)
    with tracing_context(plain_attention and bool(wanted)):
        return graphs, _compare(function, compiled, arguments, wanted)


def _compare(
    function: Callable[..., Tensor], compiled: Callable[..., Any], arguments: Sequence[Tensor],
    wanted: Sequence[Tensor],
) -> list[str]:
    found, expected = compiled(*arguments), function(*arguments)
    weights = torch.linspace(0.5, 1.5, expected.numel()).reshape(expected.shape)
    pairs = [("result", found.detach(), expected.detach())]
    if wanted:
        gradients = torch.autograd.grad((found * weights).sum(), wanted)
        eager = torch.autograd.grad((expected * weights).sum(), wanted)
        pairs += [(f"gradient {number}", a, b) for number, (a, b) in enumerate(zip(gradients, eager))]
    problems = []
    for name, a, b in pairs:
        distance = float((a - b).norm() / b.norm().clamp(min=1e-12)) if a.shape == b.shape else float("inf")
        if not distance < 1e-5:
            problems.append(f"{name} is {distance:.3g} from eager's (relative L2); it must be below 1e-05")
    return problems
