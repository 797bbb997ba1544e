# SPDX-License-Identifier: Apache-2.0
"""Models as users have them: language and vision models of transformers, a convolutional net, control flow."""

import torch
from torch_models import ConvNet, check_inference, check_training, gpt2, vit


def ids(batch=2, length=6):
    torch.manual_seed(3)
    return torch.randint(0, 64, (batch, length))


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
