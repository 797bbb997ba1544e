# SPDX-License-Identifier: Apache-2.0
"""Operators without a conversion: refused by name, or run by torch."""

import warnings

import pytest
import torch
from torch_models import assert_same, check_training

import parallax.torch as pt
from parallax.torch import _fallback


class Inverse(torch.nn.Module):
    """linalg.inv has no translation to ONNX."""

    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Linear(3, 3)

    def forward(self, x):
        y = self.mix(x) + torch.eye(3) * 3
        return torch.relu(torch.linalg.inv(y)).sum(-1)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    _fallback._warned.clear()


def test_refusal_names_operator_module_line_and_option():
    with pytest.raises(Exception) as refused:
        torch.compile(Inverse(), backend="parallax")(torch.randn(2, 3, 3))
    text = str(refused.value)
    assert "aten.linalg_inv_ex" in text and "fallback_test.py" in text and 'fallback="eager"' in text


def test_torch_runs_what_does_not_convert():
    storage = pt.Storage()
    model = Inverse()
    x = torch.randn(2, 3, 3)
    ours = torch.compile(model, backend=pt.backend(storage=storage, fallback="eager"))
    with torch.no_grad(), pytest.warns(UserWarning, match=r"aten.linalg_inv_ex.default \(1 node\)"):
        assert_same(ours(x), model(x))
    assert len(storage.graphs) == 2
    assert all(graph.fallback_ops["aten.linalg_inv_ex.default"] == 1 for graph in storage.graphs)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")  # reported once
        assert_same(ours(x), model(x))


def test_weights_of_the_parts_are_frozen():
    storage = pt.Storage()
    model = Inverse()
    ours = torch.compile(model, backend=pt.backend(storage=storage, fallback="eager"))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours(torch.randn(2, 3, 3))
    assert sum(graph.frozen for graph in storage.graphs) == 2


@pytest.mark.filterwarnings("ignore:torch runs operators")
def test_gradients_pass_through_both():
    torch.manual_seed(0)
    graphs = check_training(Inverse, torch.randn(2, 3, 3), fallback="eager", tolerance=1e-4)
    assert {graph.kind for graph in graphs} == {"forward", "backward"}


@pytest.mark.filterwarnings("ignore:torch runs operators")
def test_free_shapes():
    model = Inverse()
    ours = torch.compile(model, backend=pt.backend(fallback="eager"), dynamic=True)
    with torch.no_grad():
        for batch in (2, 3):
            x = torch.randn(batch, 3, 3)
            assert_same(ours(x), model(x))


@pytest.mark.filterwarnings("ignore:torch runs operators")
def test_random_numbers_of_torch_and_of_the_rest_keep_their_order():
    """multinomial depends on computed values: then torch draws all numbers, in the order of the graph."""
    def draws(x):
        return torch.rand(2), torch.multinomial(torch.softmax(x, -1), 1), torch.rand(2)

    x = torch.randn(3, 4)
    torch.manual_seed(0)
    want = draws(x)
    torch.manual_seed(0)
    assert_same(torch.compile(draws, backend=pt.backend(fallback="eager"))(x), want)
    torch._dynamo.reset()
    with pytest.raises(Exception, match="aten.multinomial"):
        torch.compile(draws, backend="parallax")(x)


def test_a_graph_that_converts_is_one_model():
    storage = pt.Storage()
    ours = torch.compile(lambda x: x * 2, backend=pt.backend(storage=storage, fallback="eager"))
    assert ours(torch.ones(2)).tolist() == [2.0, 2.0]
    assert len(storage.graphs) == 1 and storage.graphs[0].fallback_ops == {}
