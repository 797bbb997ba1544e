"""Models as users have them: transformers of three kinds in inference and training, control flow, free shapes."""

import torch
from torch_models import ConvNet, assert_same, check_inference, check_training, gpt2, llama, pair, vit

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


def test_gpt2_training():
    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = gpt2()

        def forward(self, ids):
            return self.model(ids, labels=ids).loss

    check_training(Loss, ids(1, 4), steps=1, tolerance=1e-4)


def test_vit_inference():
    check_inference(vit, torch.randn(2, 3, 16, 16))


def test_convolutional_net_in_inference_is_fused():
    graph = check_inference(ConvNet, torch.randn(2, 3, 8, 8), tolerance=1e-4)[0]
    assert {"conv-batchnorm", "conv-activation"} <= set(graph.applied_patterns)


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


def test_control_flow_breaks_graphs():
    class Branching(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(4, 4)
            self.b = torch.nn.Linear(4, 4)

        def forward(self, x):
            y = self.a(x)
            if y.mean().item() > 0:
                y = y * 2
            return self.b(y)

    graphs = check_training(Branching, torch.randn(3, 4))
    assert len(graphs) >= 4 and any(graph.break_reason for graph in graphs)
