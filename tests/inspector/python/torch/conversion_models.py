# SPDX-License-Identifier: Apache-2.0
"""Small models, exported once each, for tests of conversions."""

import functools
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import onnx
import torch
import torch.nn.functional as F
from torch import nn

DIM, HEADS = 16, 2


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(DIM), nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        hidden = F.gelu(self.up(self.norm(x)), approximate="tanh")
        return x + self.drop(self.down(hidden))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.bn = nn.BatchNorm2d(3), nn.BatchNorm2d(8)
        self.conv, self.deep = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.pool, self.head = nn.MaxPool2d(2), nn.Linear(8, 5)
        with torch.no_grad():
            for norm in (self.first, self.bn):
                norm.running_mean.normal_(0, 0.3)
                norm.running_var.uniform_(0.01, 0.5)

    def forward(self, x):
        x = self.pool(self.bn(self.conv(self.first(x))).relu())
        return F.log_softmax(self.head(self.deep(x).mean((2, 3))), dim=-1)


def rotated(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


class Attention(nn.Module):
    """Heads, rotary positions, a causal mask and a softmax, written out."""

    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)
        self.value, self.out = nn.Linear(DIM, DIM, bias=False), nn.Linear(DIM, DIM)
        angles = torch.outer(torch.arange(8.0), 1 / 100 ** (torch.arange(0, DIM // HEADS, 2) / 8))
        self.register_buffer("cos", torch.cat((angles, angles), -1).cos())
        self.register_buffer("sin", torch.cat((angles, angles), -1).sin())

    def heads(self, x):
        return x.view(x.shape[0], x.shape[1], HEADS, -1).transpose(1, 2)

    def forward(self, x):
        length = x.shape[1]
        cos, sin = self.cos[:length], self.sin[:length]
        query, key, value = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        query, key = query * cos + rotated(query) * sin, key * cos + rotated(key) * sin
        scores = torch.matmul(query, key.transpose(-1, -2)) / 2.8284271
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool, device=x.device), 1)
        scores = scores.masked_fill(mask, float("-inf"))
        mixed = torch.matmul(torch.softmax(scores, dim=-1), value)
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.mlp = Attention(), Mlp()
        self.norm = nn.LayerNorm(DIM)

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return self.mlp(x)


class Fused(nn.Module):
    """Operators that the exporter writes as several nodes."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)

    def forward(self, x):
        query, key, value = (part.view(*x.shape[:2], HEADS, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        deviation = torch.std(mixed, dim=-1)
        return mixed, deviation, torch.rsqrt(deviation + 0.1), F.logsigmoid(mixed)


class RmsNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(DIM) + 0.5)

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-3) * self.weight


class Embedded(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions, self.norm = nn.Embedding(20, DIM), nn.Embedding(8, DIM), nn.LayerNorm(DIM)

    def forward(self, ids):
        return self.norm(self.words(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.stay = nn.Linear(4, DIM), nn.Linear(DIM, DIM)

    def forward(self, x):
        state = torch.zeros(x.shape[0], DIM, dtype=x.dtype, device=x.device)
        states = []
        for step in range(3):
            state = torch.tanh(self.enter(x[:, step]) + self.stay(state))
            states.append(state)
        return torch.stack(states, 1)


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, DIM, 4, stride=4)
        self.token, self.positions = nn.Parameter(torch.randn(1, 1, DIM)), nn.Parameter(torch.randn(1, 5, DIM))
        self.layer = nn.TransformerEncoderLayer(DIM, HEADS, 32, activation="gelu", batch_first=True, norm_first=True)
        self.head = nn.Linear(DIM, 3)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1) + self.positions
        return self.head(self.layer(x)[:, 0])


class Mixed(nn.Module):
    """Indices, integers, several outputs."""

    def forward(self, x, ids):
        low, high = torch.split(x, 3, dim=1)
        values, indices = torch.topk(x, 2, dim=-1)
        picked = torch.index_select(x, 1, ids)
        rounded = torch.round(x * 4)
        quotient = (low - high) / (high.abs() + 1.5)
        clipped = torch.clamp(x, -0.5, 0.75)
        return values, indices, picked, rounded.to(torch.int64), quotient, clipped.sum(1), x.cumsum(1)


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda a: self.fc(a).relu() * 2, lambda a: self.fc(a).sin(), (x,))


@dataclass
class Exported:
    """A model of torch, its export, and arguments."""

    module: nn.Module
    args: tuple[Any, ...]
    program: Any
    kwargs: dict[str, Any] = field(default_factory=dict)

    def edited(self, path, edit: Callable[[onnx.ModelProto], None]):
        """Writes the exported model as changed by ``edit``; gives what explain_conversion takes."""
        model = onnx.ModelProto()
        model.CopyFrom(_proto(self))
        edit(model)
        del model.graph.value_info[:]  # shapes may be others now
        onnx.save(model, path)
        return path, self.program.exported_program


_protos: dict[int, onnx.ModelProto] = {}


def _proto(exported: Exported) -> onnx.ModelProto:
    return _protos.setdefault(id(exported), exported.program.model_proto)


def export(module: nn.Module, args: tuple[Any, ...], **options: Any) -> Exported:
    module = module.eval()
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Exported(module, args, torch.onnx.export(module, args, dynamo=True, verbose=False, **options))


def llama():
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

    config = LlamaConfig(hidden_size=DIM, intermediate_size=24, num_attention_heads=HEADS, num_key_value_heads=1,
                         num_hidden_layers=1, max_position_embeddings=16, attn_implementation="eager")

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.rotary, self.layer = LlamaRotaryEmbedding(config), LlamaDecoderLayer(config, 0)

        def forward(self, x, positions, mask):
            out = self.layer(x, attention_mask=mask, position_ids=positions,
                             position_embeddings=self.rotary(x, positions))
            return out[0] if isinstance(out, tuple) else out

    return Layer()


def gpt2():
    from transformers import GPT2Config
    from transformers.models.gpt2.modeling_gpt2 import GPT2Block

    config = GPT2Config(n_embd=DIM, n_head=HEADS, n_layer=1, n_positions=16, attn_implementation="eager")

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.block, self.norm, self.head = GPT2Block(config, 0), nn.LayerNorm(DIM), nn.Linear(DIM, 20, bias=False)

        def forward(self, x):
            out = self.block(x)
            return self.head(self.norm(out[0] if isinstance(out, tuple) else out))

    return Layer()


def _states(dtype=torch.float32):
    return (torch.randn(2, 5, DIM, dtype=dtype),)


def _causal():
    return torch.full((5, 5), torch.finfo(torch.float32).min).triu(1)[None, None]


MAKERS: dict[str, Callable[[], Exported]] = {
    "mlp": lambda: export(Mlp(), _states()),
    "cnn": lambda: export(Cnn(), (torch.randn(2, 3, 8, 8),)),
    "attention": lambda: export(Attention(), _states()),
    "block": lambda: export(Block(), _states()),
    "fused": lambda: export(Fused(), _states()),
    "rms": lambda: export(RmsNorm(), (torch.randn(2, 5, DIM) * 0.2,)),
    "embedded": lambda: export(Embedded(), (torch.randint(0, 20, (2, 5)),)),
    "recurrent": lambda: export(Recurrent(), (torch.randn(2, 3, 4),)),
    "vit": lambda: export(Vit(), (torch.randn(2, 3, 8, 8),)),
    "mixed": lambda: export(Mixed(), (torch.randn(3, 6, 4), torch.tensor([2, 0, 1]))),
    "branching": lambda: export(Branching(), (torch.ones(2, 4),)),
    "llama": lambda: export(llama(), (*_states(), torch.arange(5)[None], _causal())),
    "gpt2": lambda: export(gpt2(), _states()),
    "dynamic": lambda: export(Block(), _states(), dynamic_shapes=({0: torch.export.Dim("batch"),
                                                                   1: torch.export.Dim("length", max=8)},)),
    "float16": lambda: export(Block().half(), _states(torch.float16)),
    "bfloat16": lambda: export(Block().bfloat16(), _states(torch.bfloat16)),
    "float64": lambda: export(Mlp().double(), _states(torch.float64)),
}


@functools.cache
def exported(name: str) -> Exported:
    torch.manual_seed(0)
    return MAKERS[name]()
