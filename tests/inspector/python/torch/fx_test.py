# SPDX-License-Identifier: Apache-2.0
"""The conversion of ATen graphs: names, values, metadata, random inputs, and the ways that it may take."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from functorch.compile import aot_function, make_boxed_func
from torch._dynamo.backends.common import aot_autograd

import parallax
from parallax.torch import _fx, _private
from parallax.torch._converted import Converted
from parallax.torch._decompositions import decompositions, filter_decomposition_table
from parallax.torch._fx import ConversionError, convert, tracing_context, unsupported_operators
from parallax.torch._random import lift_randomness


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 6), torch.nn.Linear(6, 4)])
        self.norm = torch.nn.LayerNorm(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layers[1](torch.relu(self.layers[0](x)))
        return self.norm(x + y)


def graphs_of(
    function: Callable[..., Any], arguments: Sequence[Any], *, table: dict[Any, Any] | None = None,
    dynamic: bool = False, backward: bool = True,
) -> list[torch.fx.GraphModule]:
    """The ATen graphs that aot_autograd makes of a call (and of its gradient)."""
    kept: list[torch.fx.GraphModule] = []

    def keep(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        kept.append(gm)
        return make_boxed_func(gm.forward)

    torch._dynamo.reset()
    backend = aot_autograd(fw_compiler=keep, decompositions=decompositions() if table is None else table)
    with tracing_context(backward):
        result = torch.compile(function, backend=backend, dynamic=dynamic)(*arguments)
    if backward:
        result.sum().backward()
    return kept


def concrete_inputs(gm: torch.fx.GraphModule) -> list[Any]:
    """Numbers for each placeholder of a graph with fixed shapes."""
    torch.manual_seed(3)
    return [torch.randn(n.meta["val"].shape) for n in gm.graph.nodes if n.op == "placeholder"]


class Recorder(torch.fx.Interpreter):
    """Torch's own value of each node."""

    def __init__(self, gm: torch.fx.GraphModule) -> None:
        super().__init__(gm)
        self.seen: dict[str, Any] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        self.seen[n.name] = super().run_node(n)
        return self.seen[n.name]


def values_of(converted: Converted, inputs: Sequence[Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Every value of the model by the reference."""

    class Observer:
        def __init__(self) -> None:
            self.values: dict[str, np.ndarray[Any, Any]] = {}

        def wants(self, site: Any) -> bool:
            return True

        def observe(self, path: str, value: Any) -> None:
            self.values[path] = value.numpy().copy()

    observer = Observer()
    session = parallax.Session(converted.to_bytes(), executor="reference", rewrite="none", observe_all=True)
    session.run(converted.feeds(inputs), observe=observer)
    return observer.values


def test_named_values_equal_torchs_own() -> None:
    block = Block()
    for gm in graphs_of(block, [torch.randn(3, 4)]):
        converted = convert(gm)
        inputs = concrete_inputs(gm)
        recorder = Recorder(converted.graph_module)
        recorder.run(*inputs)
        values = values_of(converted, inputs)
        compared = 0
        for node, name in converted.values.items():
            if name in values and isinstance(recorder.seen[node], torch.Tensor):
                np.testing.assert_allclose(values[name], recorder.seen[node].detach().numpy(), rtol=1e-4, atol=1e-5)
                compared += 1
        assert compared >= 8


def test_nodes_know_module_and_line_in_both_graphs() -> None:
    for gm in graphs_of(Block(), [torch.randn(3, 4)]):
        nodes = list(convert(gm).model.graph)
        scopes = {part.split(":")[0] for node in nodes for part in node.metadata_props["namespace"].split("/")}
        assert {"layers.0", "layers.1", "norm"} <= scopes
        assert any("fx_test.py" in node.metadata_props["pkg.torch.onnx.stack_trace"] for node in nodes)


def test_sizes_are_scalars_named_by_position() -> None:
    weight = torch.randn(4, 5, requires_grad=True)
    forward, backward = (convert(gm) for gm in graphs_of(
        lambda x, w: (x @ w) * x.shape[0], [torch.randn(3, 4), weight], dynamic=True))
    sizes = [(position, i) for position, i in enumerate(forward.inputs) if i.kind == "size"]
    assert sizes and all(i.name == f"input_dim_{position}" and i.dtype == torch.int64 for position, i in sizes)
    tensors = [i for i in forward.inputs if i.kind == "tensor"]
    assert all(i.name == i.placeholder for i in tensors)
    assert any(isinstance(size, str) for i in tensors for size in i.shape)
    assert [value.name for value in forward.model.graph.inputs] == forward.input_names
    nones = [(position, o) for position, o in enumerate(backward.outputs) if o.kind == "none"]
    assert nones and all(o.name == f"output_NONE_{position}" for position, o in nones)


def test_the_given_graph_is_not_changed() -> None:
    for gm in graphs_of(Block(), [torch.randn(3, 4)]):
        before = gm.print_readable(print_output=False)
        convert(gm)
        assert gm.print_readable(print_output=False) == before


def test_without_a_table_decomposes_in_a_second_trace() -> None:
    inputs = [torch.randn(3, 4)]
    block = Block()
    plain = graphs_of(block, inputs, table={})
    assert unsupported_operators(plain[1])
    converted = convert(plain[1])
    assert "aten.native_layer_norm_backward.default" in converted.decomposed
    arguments = concrete_inputs(plain[1])
    session = parallax.Session(converted.to_bytes(), executor="reference")
    found = converted.assemble(list(session.run(converted.feeds(arguments), kind="torch").values()), arguments)
    for a, b in zip(found, plain[1](*arguments), strict=True):
        assert (a is None and b is None) or torch.allclose(a, b, atol=1e-5)


def test_public_route_gives_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    gm = graphs_of(Block(), [torch.randn(3, 4)])[0]
    monkeypatch.setattr(_fx, "exporter", lambda: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converted = convert(gm)
    assert converted.route == _fx.route() == "torch.onnx.export"
    arguments = concrete_inputs(gm)
    session = parallax.Session(converted.to_bytes(), executor="reference")
    found = converted.assemble(list(session.run(converted.feeds(arguments), kind="torch").values()), arguments)
    for a, b in zip(found, gm(*arguments), strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_a_missing_private_name_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.onnx._internal.exporter import _core

    monkeypatch.delattr(_core, "_exported_program_to_onnx_program")
    _private.exporter.cache_clear()
    try:
        with pytest.warns(UserWarning, match=r"torch\.onnx\.export is used"):
            assert _private.exporter() is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert _private.exporter() is None
    finally:
        _private.exporter.cache_clear()


def test_opset_before_18_is_refused() -> None:
    gm = graphs_of(lambda x: x + 1, [torch.randn(3)], backward=False)[0]
    with pytest.raises(ValueError, match="must be 18 or later"):
        convert(gm, opset=17)
    assert convert(gm, opset=21).model.opset_imports[""] == 21


def test_two_masks_drawn_by_the_executor_stay_two() -> None:
    gm = graphs_of(lambda x: F.dropout(x, 0.5) - F.dropout(x, 0.5), [torch.ones(400)], backward=False)[0]
    converted = convert(gm)
    for executor in ("reference", "cpu"):
        (found,) = parallax.Session(converted.to_bytes(), executor).run([torch.ones(400)]).values()
        assert 0 < int((found != 0).sum()) < 400


def test_names_what_does_not_convert() -> None:
    class Inverse(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.inv_ex(x)[0]

    net = torch.nn.Sequential(torch.nn.Identity(), Inverse())
    gm = graphs_of(net, [torch.eye(3)], backward=False)[0]
    (found,) = unsupported_operators(gm)
    assert (found.operator, found.module) == ("aten.linalg_inv_ex.default", "1")
    assert "fx_test.py:" in found.line
    with pytest.raises(ConversionError, match=r"linalg_inv_ex.default in 1 \(.*fx_test.py:\d+\)"):
        convert(gm)


def test_tables_leave_out_what_is_dropped() -> None:
    gelu = torch.ops.aten.gelu_backward.default
    assert gelu in decompositions() and gelu in decompositions("core")
    assert gelu not in decompositions(drop=[gelu]) and gelu not in decompositions(drop=["aten::gelu_backward"])
    assert decompositions("none") == {}
    assert filter_decomposition_table(filter_fct=lambda op: op == gelu).keys() == {gelu}
    with pytest.raises(ValueError, match="must be 'default', 'core' or 'none'"):
        decompositions("all")


@pytest.mark.parametrize("function", [
    lambda x: F.dropout(x, 0.25), lambda x: torch.rand_like(x) + torch.randn(4, 5),
    lambda x: torch.bernoulli(x.sigmoid()), lambda x: torch.normal(x, 0.5),
    lambda x: torch.randint(0, 9, (4, 5)) + torch.randperm(5) + x,
    lambda x: torch.empty_like(x).uniform_(-1, 2) + torch.empty_like(x).exponential_(),
], ids=["dropout", "rand", "bernoulli", "normal", "integers", "in_place"])
def test_lifted_numbers_equal_eagers(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.linspace(-1, 1, 20).reshape(4, 5)
    torch.manual_seed(5)
    expected = function(x)
    found = []

    def keep(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        lifted = lift_randomness(gm)
        assert lifted.draws
        found.append(lifted)
        return make_boxed_func(lambda *inputs: lifted.graph_module(*inputs, *lifted.draw(inputs)))

    with torch.no_grad():
        compiled = aot_function(function, fw_compiler=keep, bw_compiler=keep, decompositions=decompositions())
        torch.manual_seed(5)
        assert torch.allclose(compiled(x), expected, rtol=1e-6)
        torch.manual_seed(5)
        assert torch.allclose(compiled(x), expected, rtol=1e-6)
        assert not torch.equal(compiled(x), expected)
    assert len(found) == 1


def test_lifted_numbers_follow_free_sizes() -> None:
    gm = graphs_of(lambda x: F.dropout(x, 0.5) + torch.rand(x.shape[0] * 2)[: x.shape[0], None], [torch.randn(3, 4)],
                   dynamic=True, backward=False)[0]
    lifted = lift_randomness(gm)
    x = torch.randn(7, 6)
    traced = [n.meta["val"] for n in gm.graph.nodes if n.op == "placeholder"]
    sizes = {str(s): n for t in traced if isinstance(t, torch.Tensor) for s, n in zip(t.shape, x.shape)}
    inputs = [x if isinstance(t, torch.Tensor) else sizes[str(t)] for t in traced]
    assert [tuple(t.shape) for t in lifted.draw(inputs)] == [(7, 6), (14,)]


def test_numbers_that_depend_on_values_are_refused() -> None:
    gm = graphs_of(lambda x: torch.multinomial(x.softmax(-1), 2), [torch.randn(5)], backward=False)[0]
    with pytest.raises(ConversionError, match="multinomial.*depend on values(?s:.*)randomness=\"executor\""):
        lift_randomness(gm)
