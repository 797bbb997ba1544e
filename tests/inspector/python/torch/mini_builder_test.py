# SPDX-License-Identifier: Apache-2.0
"""The dialect of onnx-diagnostic's mini builder: we read what it writes, it reads what we write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from capture_test import Echo, same

import parallax.torch as pt
from parallax.torch.steal import create_input_tensors_from_onnx_model

theirs = pytest.importorskip("onnx_diagnostic.helpers.mini_onnx_builder")

OBJECTS: list[Any] = [
    (torch.ones(2, 3), [torch.zeros(1), (torch.arange(3),)]),
    {"a": torch.ones(2), "b": {"c": [torch.zeros(1)], "d": ()}},
    [(), [], {}, torch.ones(1)],
    (1, 2.5, True, False, -3, float("inf")),
    [np.arange(3), np.ones((2, 2), np.float16), np.zeros(0)],
    (torch.ones(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.float16), torch.ones(2, dtype=torch.float64)),
    [torch.ones(2, dtype=getattr(torch, name)) for name in ("int8", "uint8", "int16", "int32", "int64", "bool")],
    {("m.n", 0, "I"): ((torch.ones(1),), {}), ("m.n", 0, "O"): torch.ones(2), "more": [torch.ones(3)]},
    {("m", 1, "I"): ((), {"x": torch.ones(1), "flag": True}), ("m", 1, "O"): (torch.ones(2), 3)},
    {"a": ((torch.ones(1), ((torch.ones(2),),)),)},
    torch.tensor(3.0),
]


def dynamic_cache() -> Any:
    """A cache with two layers."""
    pytest.importorskip("transformers")
    from transformers.cache_utils import DynamicCache

    cache = DynamicCache()
    for layer in range(2):
        cache.update(torch.rand(1, 2, 3, 4), torch.rand(1, 2, 3, 4), layer)
    return cache


@pytest.mark.parametrize("obj", OBJECTS, ids=range(len(OBJECTS)))
def test_we_read_what_it_writes(obj: Any, tmp_path: Path) -> None:
    proto = theirs.create_onnx_model_from_input_tensors(obj)
    assert same(create_input_tensors_from_onnx_model(proto), obj)
    onnx.save(proto, tmp_path / "a.onnx", save_as_external_data=True, location="a.data", size_threshold=0)
    assert same(create_input_tensors_from_onnx_model(tmp_path / "a.onnx"), obj)


def test_we_read_its_caches(tmp_path: Path) -> None:
    cache = dynamic_cache()
    proto = theirs.create_onnx_model_from_input_tensors(({"cache": cache, "n": 1}, torch.ones(1)))
    back = create_input_tensors_from_onnx_model(proto)[0]["cache"]
    assert type(back) is type(cache) and back.get_seq_length() == 3
    for a, b in zip(cache.layers, back.layers):
        assert torch.equal(a.keys, b.keys) and torch.equal(a.values, b.values)


def test_missing_items_read_as_none() -> None:
    objects = {("m", 0, "O"): (None, torch.ones(1)), ("n", 0, "O"): torch.ones(2)}
    proto = theirs.create_onnx_model_from_input_tensors(objects)
    back = create_input_tensors_from_onnx_model(proto)
    assert same(back[("m", 0, "O")], (None, torch.ones(1))) and same(back[("n", 0, "O")], torch.ones(2))


def _write(objects: list[Any], path: Path, **options: Any) -> None:
    echo = Echo()
    with pt.capture(("m", echo)) as got:
        for obj in objects:
            echo("x", result=obj)
    pt.save_onnx(got, path, **options)


@pytest.mark.parametrize("external", [False, True])
def test_it_reads_what_we_write(tmp_path: Path, external: bool) -> None:
    objects = [obj for obj in OBJECTS[:7]] + [[torch.ones(2000)]]
    _write(objects, tmp_path / "a.onnx", external_data=external)
    assert (tmp_path / "a.onnx.data").exists() == external
    back = theirs.create_input_tensors_from_onnx_model(str(tmp_path / "a.onnx"))
    for index, obj in enumerate(objects):
        assert same(back[("m", index, "O")], obj), obj
        assert same(back[("m", index, "I")][1]["result"], obj)
    onnx.checker.check_model(str(tmp_path / "a.onnx"))


def test_it_reads_our_caches_and_what_it_has_no_name_for(tmp_path: Path) -> None:
    cache = dynamic_cache()
    _write([cache, [None, torch.ones(1)], "text", {1, 2}], tmp_path / "a.onnx")
    back = theirs.create_input_tensors_from_onnx_model(str(tmp_path / "a.onnx"))
    found = back[("m", 0, "O")]
    assert type(found) is type(cache) and torch.equal(found.layers[1].values, cache.layers[1].values)
    assert back[("m", 1, "O")][0] is None and np.asarray(back[("m", 2, "O")]).tolist() == ["text"]
    assert back[("m", 3, "O")] == [1, 2]
    ours = pt.restore(tmp_path / "a.onnx")
    assert ours[("m", 2, "O")] == "text" and ours[("m", 3, "O")] == {1, 2} and ours[("m", 1, "O")][0] is None


def test_ort_runs_what_we_write(tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime")
    _write([torch.ones(3), 2], tmp_path / "a.onnx")
    session = ort.InferenceSession(str(tmp_path / "a.onnx"), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    assert "dict_((m,0,O))___tensor" in names and "dict._((m,1,O))___int" in names
    values = dict(zip(names, session.run(None, {})))
    assert values["dict_((m,0,O))___tensor"].tolist() == [1, 1, 1]
