# SPDX-License-Identifier: Apache-2.0
"""string_type over torch's and transformers' objects, and the same strings as onnx-diagnostic where it is installed."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import parallax
from parallax.helpers import string_type

FLOATS = torch.arange(6).reshape(2, 3).float()
OPTIONS: list[dict[str, Any]] = [
    {}, {"with_shape": True}, {"with_shape": True, "with_min_max": True}, {"with_device": True, "with_min_max": True},
    {"with_shape": True, "limit": 3},
]


@dataclasses.dataclass
class Pair:
    """A dataclass."""

    first: Any
    second: Any = None


def _fake() -> Any:
    with FakeTensorMode():
        return torch.empty(2, 3)


def _sym_int() -> Any:
    class Keep(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + x.shape[0]

    exported = torch.export.export(Keep(), (torch.zeros(3, 2),), dynamic_shapes=({0: torch.export.Dim("n")},))
    return next(node.meta["val"].shape[0] for node in exported.graph.nodes if node.op == "placeholder")


def _caches() -> list[Any]:
    transformers = pytest.importorskip("transformers")
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache, StaticCache

    cache = DynamicCache()
    cache.update(torch.rand(1, 2, 3, 4), torch.rand(1, 2, 3, 4), 0)
    config = transformers.LlamaConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, vocab_size=8)
    static = StaticCache(config=config, max_cache_len=5)
    static.update(torch.rand(1, 2, 3, 8), torch.rand(1, 2, 3, 8), 0, {"cache_position": torch.arange(3)})
    from transformers.modeling_outputs import BaseModelOutput

    output = BaseModelOutput(last_hidden_state=FLOATS, hidden_states=(FLOATS, FLOATS))
    return [
        DynamicCache(), cache, cache.layers[0], static, static.layers[0], EncoderDecoderCache(cache, DynamicCache()),
        output, BaseModelOutput(), transformers.BatchEncoding({"a": FLOATS}), {"cache": cache},
    ]


def _objects() -> list[Any]:
    dim = torch.export.Dim
    complex_numbers = torch.complex(FLOATS, FLOATS)
    return [
        None, True, 3, 2.5, "a", slice(1), (), (1,), (1, 2), [], [1, "r", 6.6], {1, 2}, set(range(30)), {}, {"a": {}},
        list(range(30)), tuple(range(30)), [FLOATS] * 30, {"a": [FLOATS, (3,)]}, {0: FLOATS}, {True: 1},
        FLOATS, FLOATS.int(), FLOATS.bool(), FLOATS.double(), FLOATS.half(), FLOATS.bfloat16(), complex_numbers,
        torch.tensor(3.0), torch.tensor(True), torch.tensor(7), torch.zeros(0, 3), torch.nn.Parameter(FLOATS),
        torch.tensor([1.0, float("nan")]), torch.tensor([float("inf"), -1.0]), FLOATS.t(), FLOATS.to(torch.uint8),
        np.arange(6).reshape(2, 3), np.zeros((0, 2)), np.array(3.0), np.array([1.0, np.nan]), np.array([np.nan]),
        np.arange(3).astype(np.float16), np.arange(3).astype(np.uint64), np.float64(2),
        {0: "batch", 1: dim("n")}, {0: dim.DYNAMIC}, dim("n"), 2 * dim("n"), dim.DYNAMIC, dim.AUTO, dim.STATIC,
        dim.DYNAMIC(min=2), torch.Size([1, 2]), torch.max(FLOATS, 0), Pair(FLOATS), Pair(None), Pair(1, [FLOATS]),
        OrderedDict(a=FLOATS, b=[FLOATS, 3]), OrderedDict(), deque([FLOATS, 1]), defaultdict(list, {"a": [FLOATS]}),
        torch.float32, torch.device("cpu"), torch.strided, torch.contiguous_format, torch.nn.Linear(2, 2), _fake(),
        _sym_int(), onnx.helper.make_tensor_value_info("x", 1, [2]),
    ]


@pytest.mark.parametrize("make", [_objects, _caches])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_strings_are_those_of_onnx_diagnostic(make: Callable[[], list[Any]], options: dict[str, Any]) -> None:
    theirs = pytest.importorskip("onnx_diagnostic.helpers").string_type
    for obj in make():
        assert string_type(obj, **options) == theirs(obj, **options), type(obj)


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (FLOATS, "T1s2x3[0.0,5.0:A2.5]"),
        (FLOATS.bfloat16(), "T16s2x3[0.0,5.0:A2.5]"),
        (FLOATS.to(torch.float8_e4m3fn), "T17s2x3[0.0,5.0:A2.5]"),
        (FLOATS.to(torch.uint16), "T4s2x3[0,5:A2.5]"),
        (torch.tensor(3.0), "T1s=3.0"),
        (_fake(), "F1s2x3"),
        (parallax.Tensor(FLOATS), "P1s2x3[0.0,5.0:A2.5]"),
        (torch.nn.Linear(2, 2), "Linear(...)"),
        (frozenset([1]), "{int=1}"),
        (3j, "complex(...)"),
    ],
)
def test_string_type(obj: Any, text: str) -> None:
    assert string_type(obj, with_shape=True, with_min_max=True) == text


def test_values_that_need_a_gradient_can_be_shown() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    assert string_type((weight * 2,), with_shape=True, with_min_max=True) == "(T1s2[2.0,2.0:A2.0],)"


def test_sliding_layers_show_keys_and_values() -> None:
    pytest.importorskip("transformers")
    from transformers.cache_utils import DynamicCache, DynamicSlidingWindowLayer

    cache = DynamicCache()
    layer = DynamicSlidingWindowLayer(sliding_window=4)
    layer.update(torch.zeros(1, 1, 2, 3), torch.zeros(1, 1, 2, 5))
    cache.layers.append(layer)
    assert string_type(cache, with_shape=True) == "DynamicCache(DynamicSlidingWindowLayer(T1s1x1x2x3, T1s1x1x2x5))"
