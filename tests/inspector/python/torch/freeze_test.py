# SPDX-License-Identifier: Apache-2.0
"""Weights of inference graphs as initializers: a change of theirs is noticed."""

import pytest
import torch
from torch_models import Mlp, assert_same, pair

import parallax.torch as pt


@pytest.fixture
def frozen():
    """Eager's model, ours (compiled and run once), and the record of its graph."""
    torch._dynamo.reset()
    eager, copied = pair(Mlp)
    storage = pt.Storage()
    ours = torch.compile(copied, backend=pt.backend(storage=storage))
    x = torch.randn(3, 10)
    with torch.no_grad():
        assert_same(ours(x), eager(x))
    assert storage.graphs[0].frozen == 4
    return eager, copied, ours, x, storage.graphs


def equal_after(frozen, change):
    eager, copied, ours, x, graphs = frozen
    with torch.no_grad():
        for model in (eager, copied):
            change(model)
        assert_same(ours(x), eager(x))
    assert len(graphs) == 1


def test_in_place_changes(frozen):
    equal_after(frozen, lambda model: model.layers[0].weight.mul_(3))
    equal_after(frozen, lambda model: model.layers[2].bias.fill_(1))


def test_load_state_dict(frozen):
    state = {name: torch.randn_like(value) for name, value in frozen[0].state_dict().items()}
    equal_after(frozen, lambda model: model.load_state_dict(state))


def test_step_of_an_optimizer(frozen):
    def step(model):
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        torch.optim.SGD(model.parameters(), lr=0.1).step()

    equal_after(frozen, step)


def test_another_tensor_of_the_parameter(frozen):
    def replace(model):
        model.layers[0].weight.data = torch.full((32, 10), 0.25)

    equal_after(frozen, replace)


def test_weights_that_change_often_become_inputs(frozen):
    graph = frozen[4][0]
    for _ in range(5):
        equal_after(frozen, lambda model: model.layers[0].weight.add_(0.1))
    assert graph.frozen == 0


def test_never_leaves_weights_inputs():
    torch._dynamo.reset()
    storage = pt.Storage()
    model = Mlp()
    ours = torch.compile(model, backend=pt.backend(storage=storage, freeze="never"))
    with torch.no_grad():
        ours(torch.randn(3, 10))
        model.layers[0].weight.data.mul_(2)  # no counter says so
        x = torch.randn(3, 10)
        assert_same(ours(x), model(x))
    assert storage.graphs[0].frozen == 0 and len(storage.graphs[0].model.inputs) == 5


def test_training_freezes_nothing():
    torch._dynamo.reset()
    storage = pt.Storage()
    torch.compile(Mlp(), backend=pt.backend(storage=storage))(torch.randn(3, 10)).sum().backward()
    assert [graph.frozen for graph in storage.graphs] == [0, 0]


def test_buffers_that_the_graph_changes_are_inputs():
    torch._dynamo.reset()
    storage = pt.Storage()
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    ours = torch.compile(model, backend=pt.backend(storage=storage))
    with torch.no_grad():
        for _ in range(3):
            ours(torch.randn(5, 4))
    assert storage.graphs[0].frozen == 4  # weight and bias of both; the running statistics change
    assert int(model[1].num_batches_tracked) == 3


def test_edits_through_data_are_found_by_their_sum():
    from parallax.torch._freeze import FrozenInputs

    weight = torch.randn(64, 64)
    kept = FrozenInputs([0])
    assert kept.freeze([weight]) and not kept.changed([weight]) and not kept.drifted()
    weight.data.add_(1)
    assert not kept.changed([weight]) and kept.drifted()
