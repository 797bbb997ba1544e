# SPDX-License-Identifier: Apache-2.0
"""The backend "parallax_debug": what it compares, and how it names a kernel and a conversion at fault."""

import warnings

import numpy as np
import pytest
import torch
from torch_models import Mlp, assert_same, check_training

import parallax
import parallax.torch as pt


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


class Scores(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Linear(6, 6)

    def forward(self, x):
        return torch.softmax(self.mix(x), -1) * 2


def with_changed(model, op, change):
    """The model with the first node of an operator changed."""
    proto = model.to_onnx()
    change(next(node for node in proto.graph.node if node.op_type == op), proto.graph)
    return parallax.load(proto)


def other_axis(model):
    def change(node, graph):
        next(attribute for attribute in node.attribute if attribute.name == "axis").i = 0

    return with_changed(model, "Softmax", change)


def compiled(module, **options):
    storage = pt.Storage()
    return torch.compile(module, backend=pt.debug_backend(storage=storage, **options)), storage.graphs


def test_training_passes_value_by_value():
    graphs = check_training(Mlp, torch.randn(5, 10), steps=3, compiler=pt.debug_backend, on_divergence="raise")
    assert [graph.kind for graph in graphs] == ["forward", "backward"]
    for graph in graphs:
        assert [comparison.verdict for comparison in graph.comparisons] == ["pass"] * 3
        assert graph.comparisons[0].summary.compared >= 4
    with torch.no_grad():
        pass


def test_is_found_by_name_with_options():
    storage = pt.Storage()
    net = torch.compile(Mlp(), backend="parallax_debug", options={"storage": storage, "every": 2, "on_divergence": "raise"})
    for _ in range(5):
        net(torch.randn(3, 10))
    assert storage.graphs[0].calls == 5 and len(storage.graphs[0].comparisons) == 3


def test_a_seeded_fault_of_a_kernel_is_named_at_its_call_and_node(tmp_path):
    module = Scores()
    seen = []
    ours, graphs = compiled(module, fast_transforms=[other_axis], on_divergence=seen.append, dump=tmp_path / "found")
    with torch.no_grad():
        result = ours(torch.randn(4, 6))
        assert not torch.allclose(result, module(torch.randn(4, 6)))  # the fast side's results go on
    found = seen[0]
    assert (found.fault, found.call, found.graph) == ("kernel", 0, graphs[0])
    assert found.operator == "aten._softmax.default" and found.line.startswith("debug_test.py:")
    assert "call 0 of graph 0 (inference)" in found.text and "Softmax" in found.text and "executor 'cpu'" in found.text
    assert "axis" in found.text
    folder = tmp_path / "found_0_inference_call0"
    assert (folder / "model.onnx").exists() and len(list(folder.glob("*.plx"))) == 2


def test_divergence_warns_or_raises():
    x = torch.randn(4, 6)
    with torch.no_grad():
        ours, _ = compiled(Scores(), fast_transforms=[other_axis])
        with pytest.warns(pt.DivergenceWarning, match=r"call 0 of graph 0 \(inference\): node '.*' \(Softmax\)"):
            ours(x)
        torch._dynamo.reset()
        ours, _ = compiled(Scores(), fast_transforms=[other_axis], on_divergence="raise")
        with pytest.raises(pt.DivergenceError, match="Softmax") as raised:
            ours(x)
    assert raised.value.divergence.comparison.verdict == "diverged"


def test_torchs_opinion_passes_where_all_three_agree():
    ours, graphs = compiled(Scores(), eager=True, on_divergence="raise")
    module = ours._orig_mod
    x = torch.randn(4, 6)
    assert_same(ours(x), module(x))
    ours(x).sum().backward()
    assert {comparison.verdict for graph in graphs for comparison in graph.comparisons} == {"pass"}


def test_torchs_opinion_says_that_a_conversion_is_at_fault():
    """The transform stands for a wrong translation: both executors run it, torch does not."""
    seen = []
    ours, graphs = compiled(Scores(), eager=True, transforms=[other_axis], on_divergence=seen.append)
    with torch.no_grad():
        ours(torch.randn(4, 6))
    assert [found.fault for found in seen] == ["conversion"]
    assert graphs[0].comparisons[0].verdict == "pass"
    assert "Softmax" in seen[0].text and "conversion to ONNX" in seen[0].text


def test_torchs_opinion_leaves_kernel_faults_to_the_kernel():
    seen = []
    ours, _ = compiled(Scores(), eager=True, fast_transforms=[other_axis], on_divergence=seen.append)
    with torch.no_grad():
        ours(torch.randn(4, 6))
    assert [found.fault for found in seen] == ["kernel"]


def test_policy_is_the_users():
    def nudge(model):
        def change(node, graph):
            weight = next(tensor for tensor in graph.initializer if tensor.name == node.input[1])
            weight.raw_data = (np.frombuffer(weight.raw_data, np.float32) * np.float32(1.001)).tobytes()

        return with_changed(model, "MatMul", change)

    class Fixed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.randn(6, 6)

        def forward(self, x):
            return x @ self.weight

    for policy, verdict in (("auto", "diverged"), ({"rtol": 0.01, "atol": 0.01}, "pass")):
        torch._dynamo.reset()
        ours, graphs = compiled(Fixed(), fast_transforms=[lambda model: model], policy=policy)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours(torch.randn(4, 6))
        assert graphs[0].comparisons[0].verdict in ("pass", verdict)


def test_options_are_checked():
    with pytest.raises(parallax.UsageError, match="every is 0"):
        pt.debug_backend(every=0)
    with pytest.raises(parallax.UsageError, match="on_divergence is 'stop'; it must be 'warn' or 'raise'"):
        pt.debug_backend(on_divergence="stop")
    with pytest.raises(parallax.UsageError, match="two are compared"):
        pt.debug_backend(executors=("cpu",))
