# SPDX-License-Identifier: Apache-2.0
"""A Llama of transformers in torch.compile: inference, training, masks, free lengths."""

import torch
from torch_models import assert_same, check_inference, check_training, llama, pair

import parallax.torch as pt


def ids(batch=2, length=6):
    torch.manual_seed(3)
    return torch.randint(0, 64, (batch, length))


def test_llama_inference():
    graph = check_inference(lambda: llama("sdpa", layers=2), ids())[0]
    assert graph.frozen > 10 and graph.custom_ops["parallax.fused"] > 0


def test_llama_inference_with_a_mask():
    mask = torch.ones(2, 6, dtype=torch.int64)
    mask[0, :2] = 0
    check_inference(lambda: llama("eager", layers=1), ids(), mask)


def test_llama_training_with_a_mask():
    class Last(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = llama("sdpa", layers=1)

        def forward(self, ids, mask):
            return self.model(ids, attention_mask=mask, use_cache=False).last_hidden_state

    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1] * 6])
    graphs = check_training(Last, ids(), mask, steps=1, tolerance=1e-4)
    assert [graph.kind for graph in graphs] == ["forward", "backward"]


def test_llama_with_free_lengths_is_one_graph():
    torch._dynamo.reset()
    eager, copied = pair(lambda: llama("eager", layers=1))
    storage = pt.Storage()
    ours = torch.compile(copied.eval(), backend=pt.backend(storage=storage), dynamic=True)
    with torch.no_grad():
        for length in (5, 7, 9):
            x = ids(2, length)
            assert_same(ours(x, use_cache=False).last_hidden_state, eager.eval()(x, use_cache=False).last_hidden_state)
    assert len(storage.graphs) == 1
