# SPDX-License-Identifier: Apache-2.0
"""Training through torch.compile: losses, gradients, buffers and parameters are eager's."""

import pytest
import torch
from torch_models import Attention, ConvNet, Mlp, assert_same, check_training, pair

import parallax.torch as pt


@pytest.mark.parametrize("dynamic", [False, True])
def test_mlp(dynamic):
    graphs = check_training(Mlp, torch.randn(5, 10), dynamic=dynamic, steps=3)
    assert [graph.kind for graph in graphs] == ["forward", "backward"]
    assert all(graph.calls == 3 for graph in graphs)
    assert ("input_dim_" in " ".join(graphs[0].inputs)) == dynamic
    assert "output_NONE_" in " ".join(graphs[1].outputs)


@pytest.mark.parametrize("dynamic", [False, True])
def test_convolutions_and_batch_normalization(dynamic):
    """The running statistics are buffers that each step changes."""
    check_training(ConvNet, torch.randn(4, 3, 8, 8), steps=3, tolerance=1e-4, dynamic=dynamic)


@pytest.mark.parametrize("with_mask", [False, True])
def test_attention(with_mask):
    mask = torch.randn(6, 6) if with_mask else None
    check_training(Attention, torch.randn(2, 6, 16), mask)


def test_embedding_and_cross_entropy():
    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(11, 8, padding_idx=0)
            self.head = torch.nn.Linear(8, 4)

        def forward(self, ids, target):
            return torch.nn.functional.cross_entropy(self.head(self.embed(ids).mean(1)), target)

    check_training(Classifier, torch.randint(0, 11, (5, 3)), torch.randint(0, 4, (5,)))


def test_tied_weights():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(7, 6)
            self.head = torch.nn.Linear(6, 7, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            return self.head(torch.tanh(self.embed(ids)))

    check_training(Tied, torch.randint(0, 7, (4, 3)))


@pytest.mark.parametrize("probability", [0.1, 0.5])
def test_dropout_under_a_seed_is_eagers(probability):
    make = lambda: torch.nn.Sequential(  # noqa: E731
        torch.nn.Linear(10, 16), torch.nn.Dropout(probability), torch.nn.ReLU(), torch.nn.Dropout(probability), torch.nn.Linear(16, 2))
    check_training(make, torch.randn(6, 10), steps=3)


def test_random_numbers_are_eagers():
    def noisy(x):
        return x + torch.randn_like(x) * torch.rand(3, 4) + torch.bernoulli(torch.full((3, 4), 0.3))

    ours = torch.compile(noisy, backend="parallax")
    x = torch.ones(3, 4)
    for seed in (0, 7):
        torch.manual_seed(seed)
        want = noisy(x), torch.rand(1)
        torch.manual_seed(seed)
        assert_same((ours(x), torch.rand(1)), want)


def test_buffers_changed_in_place():
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(3))
            self.register_buffer("mean", torch.zeros(3))
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

        def forward(self, x):
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            self.calls += 1
            return (x - self.mean) * self.scale

    check_training(Counting, torch.randn(4, 3), steps=3)


def test_none_gradients_and_frozen_layers():
    def make():
        model = Mlp()
        model.layers[0].weight.requires_grad_(False)
        return model

    check_training(make, torch.randn(5, 10))


def test_gradient_of_the_input_and_of_several_outputs():
    def heads(x, w):
        y = torch.tanh(x @ w)
        return y.sum(0), y.t() * 2, y.detach()

    x, w = torch.randn(4, 3), torch.randn(3, 5)
    gradients = []
    for function in (heads, torch.compile(heads, backend="parallax", fullgraph=True)):
        a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
        one, two, three = function(a, b)
        assert not three.requires_grad
        (one.sum() * 3 + (two * two).sum()).backward()
        gradients.append((one.detach(), two.detach(), three, a.grad, b.grad))
    assert_same(gradients[1], gradients[0])


def test_a_saved_result_that_is_changed_is_an_error_as_in_eager():
    def function(x):
        return torch.sigmoid(x)

    for run in (function, torch.compile(function, backend="parallax")):
        x = torch.randn(3, requires_grad=True)
        y = run(x)
        y.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_adam_follows_eager_for_twenty_steps():
    torch._dynamo.reset()
    eager, copied = pair(Mlp)
    ours = torch.compile(copied, backend=pt.backend(), fullgraph=True)
    torch.manual_seed(1)
    data = [(torch.randn(5, 10), torch.randn(5, 1)) for _ in range(20)]
    losses = []
    for model in (eager, ours):
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        seen = []
        for x, y in data:
            optimizer.zero_grad()
            loss = torch.nn.functional.l1_loss(model(x), y)
            loss.backward()
            optimizer.step()
            seen.append(loss.item())
        losses.append(seen)
    torch.testing.assert_close(torch.tensor(losses[1]), torch.tensor(losses[0]), rtol=1e-5, atol=1e-5)
