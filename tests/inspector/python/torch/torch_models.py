# SPDX-License-Identifier: Apache-2.0
"""Small models, and how a compiled one is compared with eager: what the tests of the torch.compile backends share."""

import copy

import torch

import parallax.torch as pt


class Mlp(torch.nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(10, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))

    def forward(self, x):
        return self.layers(x)


class ConvNet(torch.nn.Module):
    """Strided, grouped and transposed convolutions, pools, batch normalization, a residual."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, stride=2, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
        self.grouped = torch.nn.Conv2d(8, 8, 3, padding=1, groups=4, bias=False)
        self.norm = torch.nn.BatchNorm2d(8)
        self.pool = torch.nn.AvgPool2d(2)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        y = self.stem(x)
        y = torch.relu(self.norm(self.grouped(y)) + y)
        return self.head(self.pool(y).mean((2, 3)))


class Attention(torch.nn.Module):
    """A block of self-attention with scaled_dot_product_attention."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.mix = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)

    def forward(self, x, mask=None):
        batch, length, width = x.shape
        q, k, v = self.mix(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


def llama(implementation="sdpa", layers=2):
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=layers, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=64, max_position_embeddings=64)
    config._attn_implementation = implementation
    return LlamaModel(config)


def gpt2(layers=1):
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(
        vocab_size=64, n_positions=32, n_embd=32, n_layer=layers, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        use_cache=False))


def vit():
    from transformers import ViTConfig, ViTForImageClassification

    return ViTForImageClassification(ViTConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48, image_size=16, patch_size=8,
        num_labels=3))


def tensors_in(value):
    """The tensors of nested results, in order; other values are left out."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [tensor for each in value.values() for tensor in tensors_in(each)]
    if isinstance(value, (list, tuple)):
        return [tensor for each in value for tensor in tensors_in(each)]
    return []


def assert_same(ours, eager, tolerance=2e-5):
    """Types, strides and numbers of nested results are eager's."""
    assert len(tensors_in(ours)) == len(tensors_in(eager))
    for got, want in zip(tensors_in(ours), tensors_in(eager)):
        assert got.dtype == want.dtype and got.shape == want.shape
        assert got.stride() == want.stride()
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)


def pair(make, seed=0):
    """Two models with the same weights."""
    torch.manual_seed(seed)
    model = make()
    return model, copy.deepcopy(model)


def loss_of(result):
    return sum((tensor.float() ** 2).mean() for tensor in tensors_in(result) if tensor.requires_grad)


def check_training(make, *inputs, steps=2, tolerance=2e-5, dynamic=False, compiler=None, **options):
    """Trains a model and its compiled copy side by side; returns the graphs.

    Outputs, gradients, buffers and parameters after each step are compared.
    """
    torch._dynamo.reset()
    eager, copied = pair(make)
    storage = pt.Storage()
    ours = torch.compile(copied, backend=(compiler or pt.backend)(storage=storage, **options), dynamic=dynamic)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (eager, copied)]
    for step in range(steps):
        results = []
        for model, optimizer in zip((eager, ours), optimizers):
            torch.manual_seed(step)
            optimizer.zero_grad()
            result = model(*inputs)
            loss_of(result).backward()
            results.append(result)
        assert_same(results[1], results[0], tolerance)
        for (name, want), (_, got) in zip(eager.named_parameters(), copied.named_parameters()):
            assert (want.grad is None) == (got.grad is None), name
            if want.grad is not None:
                torch.testing.assert_close(got.grad, want.grad, rtol=tolerance, atol=tolerance, msg=lambda text, n=name: f"{n}: {text}")
        for (name, want), (_, got) in zip(eager.named_buffers(), copied.named_buffers()):
            torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance, msg=lambda text, n=name: f"{n}: {text}")
        for optimizer in optimizers:
            optimizer.step()
    return storage.graphs


def check_inference(make, *inputs, tolerance=2e-5, dynamic=False, calls=2, **options):
    """Runs a model and its compiled copy in inference; returns the graphs."""
    torch._dynamo.reset()
    eager, copied = pair(make)
    storage = pt.Storage()
    ours = torch.compile(copied.eval(), backend=pt.backend(storage=storage, **options), dynamic=dynamic)
    with torch.no_grad():
        want = eager.eval()(*inputs)
        for _ in range(calls):
            assert_same(ours(*inputs), want, tolerance)
    return storage.graphs
