# SPDX-License-Identifier: Apache-2.0
"""capture: every container comes back, copies stay what they were, hooks are gone, limits are reported."""

from __future__ import annotations

import dataclasses
import gc
import warnings
import weakref
from collections import OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_models import run_python

import parallax
import parallax.torch as pt
from parallax.torch._captured import Summary
from parallax.torch._structure import Opaque, Record

Point = namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Result:
    """The kinds of objects that a model may return."""

    logits: torch.Tensor
    extra: dict[str, Any]
    label: str = "a"
    missing: torch.Tensor | None = None


class Echo(torch.nn.Module):
    """Returns what it is given."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return kwargs["result"] if "result" in kwargs else args[0]


class Net(torch.nn.Module):
    """Two layers, the first called twice, in place in between."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.relu = torch.nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return self.linear(self.relu(self.linear(x))) * scale


class Fails(torch.nn.Module):
    """Runs a layer and raises."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.inner(x)
        raise ValueError("not today")


def same(a: Any, b: Any) -> bool:
    """True where two objects are equal with their containers and classes."""
    if isinstance(a, (torch.Tensor, np.ndarray)):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())
    if dataclasses.is_dataclass(a):
        return type(a) is type(b) and same(dict(vars(a)), dict(vars(b)))
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return type(a) is type(b) and bool(a == b or (a != a and b != b))


OBJECTS: list[Any] = [
    None, True, -3, 2.5, float("nan"), float("-inf"), "text", (), [], {}, (1,), [None, (2, [3.0])], {1: "a", "b": None},
    {"a/b": torch.ones(2), "~": [torch.zeros(1)], ("k", 1): 2}, {3, 1}, torch.Size([2, 3]), Point(torch.ones(1), None),
    OrderedDict(b=1, a=torch.ones(2)), Result(torch.ones(2, 3), {"states": (torch.zeros(1), None)}),
    torch.float16, np.arange(3), np.array(["a", "bc"], object), np.array(2.5, np.float32),
    torch.tensor(3), torch.zeros(0, 4), torch.arange(6).reshape(2, 3).t(), torch.tensor([True]),
    torch.ones(3, dtype=torch.bfloat16), torch.ones(3, dtype=torch.float16), torch.ones(2, dtype=torch.uint8),
    torch.complex(torch.ones(2), torch.ones(2)).conj(), torch.ones(2, dtype=torch.float64),
]


@pytest.mark.parametrize("where", ["memory", "plx", "onnx"])
def test_every_object_comes_back(where: str, tmp_path: Path) -> None:
    file = tmp_path / f"a.{where}"
    options: dict[str, Any] = {} if where == "memory" else {"path" if where == "plx" else "onnx": file}
    echo = Echo()
    with pt.capture([("echo", echo)], **options) as got:
        for obj in OBJECTS:
            echo("unused", result=obj)
    for found in [got] if where == "memory" else [got, pt.restore(file)]:
        assert len(found) == 2 * len(OBJECTS)
        for index, obj in enumerate(OBJECTS):
            expected = obj.resolve_conj() if isinstance(obj, torch.Tensor) and obj.is_conj() else obj
            assert same(found[("echo", index, "O")], expected), obj
            args, kwargs = found[("echo", index, "I")]
            assert args == ("unused",) and same(kwargs, {"result": expected})


@pytest.mark.parametrize("where", ["memory", "plx", "onnx"])
def test_caches_come_back_as_such(where: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache, StaticCache
    from transformers.modeling_outputs import BaseModelOutput

    config = transformers.LlamaConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, vocab_size=8)
    dynamic, static = DynamicCache(), StaticCache(config=config, max_cache_len=5)
    for layer in range(2):
        dynamic.update(torch.rand(1, 2, 3, 8), torch.rand(1, 2, 3, 8), layer)
        static.update(torch.rand(1, 2, 3, 8), torch.rand(1, 2, 3, 8), layer, {"cache_position": torch.arange(3)})
    objects = [dynamic, DynamicCache(), static, EncoderDecoderCache(dynamic, DynamicCache()),
               BaseModelOutput(last_hidden_state=torch.ones(2), hidden_states=(torch.ones(1),))]
    echo = Echo()
    options = {} if where == "memory" else {"path" if where == "plx" else "onnx": tmp_path / f"a.{where}"}
    with pt.capture(echo, **options) as got:
        for obj in objects:
            echo(obj)
    back = [got[("", index, "O")] for index in range(len(objects))]
    assert [type(obj) for obj in back] == [type(obj) for obj in objects]
    for expected, found in [(dynamic, back[0]), (static, back[2]), (dynamic, back[3].self_attention_cache)]:
        assert found.get_seq_length() == expected.get_seq_length() == 3
        for theirs, ours in zip(expected.layers, found.layers):
            assert type(theirs) is type(ours) and torch.equal(theirs.keys, ours.keys)
            assert torch.equal(theirs.values, ours.values)
    back[0].update(torch.rand(1, 2, 1, 8), torch.rand(1, 2, 1, 8), 0)
    assert back[0].get_seq_length() == 4 and dynamic.get_seq_length() == 3
    assert len(back[1].layers) == 0 and back[4].hidden_states[0].shape == (1,) and "last_hidden_state" in back[4]


def test_calls_are_counted_and_nested(tmp_path: Path) -> None:
    net = Net()
    path = tmp_path / "a.plx"
    with pt.capture(("net", net), submodules=True, path=path) as got:
        net(torch.ones(2, 4), scale=0.5)
    assert list(got) == [
        ("net", 0, "I"), ("net.linear", 0, "I"), ("net.linear", 0, "O"), ("net.relu", 0, "I"), ("net.relu", 0, "O"),
        ("net.linear", 1, "I"), ("net.linear", 1, "O"), ("net", 0, "O"),
    ]
    args, kwargs = got[("net", 0, "I")]
    assert same(args, (torch.ones(2, 4),)) and kwargs == {"scale": 0.5}
    dump = parallax.open(path)
    assert [event["text"] for event in dump.events if event["kind"] == "enter_body"] == [
        "module(net).call[0]", "module(net.linear).call[0]", "module(net.relu).call[0]", "module(net.linear).call[1]"]
    assert dump.select("module(net.linear).call[*]//out") == [
        "module(net.linear).call[0]//out", "module(net.linear).call[1]//out"]
    assert dump.executions[0]["completed"] and dump.executions[0]["executor"] == "torch"


def test_later_changes_in_place_do_not_reach_the_copies() -> None:
    net = Net()
    x = torch.ones(2, 4)
    with pt.capture(net, submodules=True) as got:
        result = net(x)
        with torch.no_grad():
            result.zero_()
            x.zero_()
    assert bool((got[("linear", 0, "O")] < 0).any() | (got[("relu", 0, "I")][0][0] == got[("linear", 0, "O")]).all())
    assert torch.equal(got[("relu", 0, "I")][0][0], got[("linear", 0, "O")]), "before it was changed in place"
    assert torch.equal(got[("", 0, "I")][0][0], torch.ones(2, 4)) and got[("", 0, "O")].abs().sum() > 0


@pytest.mark.parametrize("gradient", [True, False])
def test_gradients_are_as_without_a_capture(gradient: bool) -> None:
    net = Net()
    x = torch.ones(2, 4)
    with torch.set_grad_enabled(gradient):
        plain = net(x)
        with pt.capture(net, submodules=True) as got:
            seen = net(x)
    assert torch.equal(plain, seen) and seen.requires_grad == gradient
    assert not got[("", 0, "O")].requires_grad
    if gradient:
        seen.sum().backward()
        assert net.linear.weight.grad is not None


def _hooks(net: torch.nn.Module) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in net.modules())


def test_hooks_are_gone_and_forward_is_not_replaced() -> None:
    net = Net()
    with pt.capture(net, submodules=True):
        assert _hooks(net) == 6 and "forward" not in vars(net)
    assert _hooks(net) == 0


def test_what_was_captured_before_an_exception_stays(tmp_path: Path) -> None:
    net = Fails()
    path = tmp_path / "a.plx"
    with pytest.raises(ValueError, match="not today"), pt.capture(("net", net), submodules=True, path=path):
        net(torch.ones(1))
    assert _hooks(net) == 0
    found = pt.restore(path)
    assert list(found) == [("net", 0, "I"), ("net.inner", 0, "I"), ("net.inner", 0, "O")]
    dump = parallax.open(path)
    assert [event["kind"] for event in dump.events] == [
        "enter_body", "enter_body", "leave_body", "leave_body", "end_run"], "the nesting is closed"
    assert not dump.executions[0]["completed"] and dump.is_complete


def test_an_exception_that_the_program_handles_ends_that_call_alone() -> None:
    net, echo = Fails(), Echo()
    with pt.capture([("fails", net), ("echo", echo)]) as got:
        for _ in range(2):
            try:
                net(torch.ones(1))
            except ValueError:
                echo(None)  # while that exception is handled
    assert list(got) == [("fails", 0, "I"), ("echo", 0, "I"), ("echo", 0, "O"), ("fails", 1, "I"), ("echo", 1, "I"),
                         ("echo", 1, "O")]
    assert got[("echo", 0, "O")] is None


def test_a_killed_program_leaves_what_it_captured(tmp_path: Path) -> None:
    path = tmp_path / "a.plx"
    code = (
        "import os, torch, parallax.torch as pt\n"
        "if os.fork() == 0:\n"
        f"    with pt.capture(('net', torch.nn.ReLU()), path={str(path)!r}) as got:\n"
        "        module = torch.nn.ReLU()\n"
        "        from parallax.torch import _capture\n"
        "        [_capture.append(f'step_{n}', torch.full((3,), n)) for n in range(4)]\n"
        "        os.kill(os.getpid(), 9)\n"
        "os.wait()\n"
    )
    run_python(code)
    found = pt.restore(path)
    assert list(found) == ["step_0", "step_1", "step_2", "step_3"] and found["step_3"].tolist() == [3, 3, 3]


def test_large_values_keep_a_sample_and_it_is_said(tmp_path: Path) -> None:
    echo = Echo()
    for options in ({}, {"path": tmp_path / "a.plx"}):
        with pytest.warns(pt.CaptureWarning, match=r"limit=100 bytes") as seen:
            with pt.capture(echo, limit=100, **options) as got:
                echo([torch.arange(2000.0), torch.ones(2)])
        assert len(seen) == 1, "once"
        large, small = got[("", 0, "O")]
        assert isinstance(large, Summary) and large.shape == (2000,) and large.type == "float32"
        assert large.statistics["max"] == 1999 and large.sample is not None and large.sample[:2].tolist() == [0, 1]
        assert small.tolist() == [1, 1]
    pt.save_onnx(got, tmp_path / "a.onnx")
    large, small = pt.restore(tmp_path / "a.onnx")[("", 0, "O")]
    assert isinstance(large, Opaque) and small.tolist() == [1, 1]


def test_statistics_alone(tmp_path: Path) -> None:
    for options in ({}, {"path": tmp_path / "a.plx"}):
        with pt.capture(Net(), level="stats", **options) as got:
            pt.append("x", torch.arange(5.0))
        assert got["x"].statistics["mean"] == 2 and got["x"].sample is None


def test_shared_modules_are_captured_under_each_name() -> None:
    layer = torch.nn.ReLU()
    with pt.capture({"a": layer, "b": layer}) as got:
        layer(torch.ones(1))
        layer(torch.ones(1))
    assert [key for key in got if key[2] == "O"] == [("b", 0, "O"), ("a", 0, "O"), ("b", 1, "O"), ("a", 1, "O")]


def test_dropped_arguments_are_not_captured() -> None:
    echo = Echo()
    with pt.capture(echo, drop=["mask"]) as got:
        echo(torch.ones(1), mask=torch.ones(5), scale=2)
    assert got[("", 0, "I")][1] == {"scale": 2}


def test_appended_objects_get_names_of_their_own() -> None:
    with pt.capture(torch.nn.ReLU()) as got:
        assert [pt.append("q", torch.full((1,), n)) for n in range(3)] == ["q", "q_1", "q_2"]
    assert list(got) == ["q", "q_1", "q_2"] and got["q_2"].tolist() == [2]
    with pytest.raises(parallax.UsageError, match="outside of a capture"):
        pt.append("q", 1)


def test_a_capture_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    echo = Echo()
    with pt.capture(echo, path=tmp_path / "a.plx") as got:
        for number in range(3):
            echo(torch.full((2,), number))
            assert got[("", number, "O")].tolist() == [number, number]


def test_nothing_is_kept_alive(tmp_path: Path) -> None:
    net = Net()
    x = torch.ones(2, 4)
    seen = [weakref.ref(net), weakref.ref(x)]
    with pt.capture(net, submodules=True, path=tmp_path / "a.plx") as got:
        net(x)
    del net, x
    gc.collect()
    assert [ref() for ref in seen] == [None, None] and len(got) == 8


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        ([torch.nn.ReLU(), torch.nn.ReLU()], "two modules are called 'ReLU'.*name"),
        (3, "modules is a int"), ([("a", 3)], "no pair"), ({"a": None}, "no pair"),
    ],
)
def test_modules_need_names(modules: Any, words: str) -> None:
    with pytest.raises(parallax.UsageError, match=words):
        pt.capture(modules)


def test_options_are_checked(tmp_path: Path) -> None:
    relu = torch.nn.ReLU()
    for options in ({"level": "some"}, {"limit": 0}, {"level": "stats", "onnx": tmp_path / "a.onnx"}):
        with pytest.raises(parallax.UsageError):
            pt.capture(relu, **options)
    with pytest.raises(parallax.IoError):
        pt.capture(relu, path=tmp_path / "no" / "a.plx")
    with pytest.raises(parallax.UsageError, match="no captured objects"):
        with parallax.Dump.create(tmp_path / "b.plx") as writer:
            writer.write("x", np.zeros(1))
        pt.restore(tmp_path / "b.plx")


def test_what_no_file_can_hold_is_replaced_by_a_sentence() -> None:
    class Own:
        def __init__(self) -> None:
            self.weight = torch.ones(2)
            self.name = "n"

    loop: list[Any] = [torch.ones(1)]
    loop.append(loop)
    echo = Echo()
    with pt.capture(echo) as got:
        echo([object(), Own(), loop, torch.empty(3, device="meta"), torch.eye(2).to_sparse()])
    unknown, own, cycle, meta, sparse = got[("", 0, "O")]
    assert isinstance(unknown, Opaque) and unknown.class_name == "builtins:object"
    assert isinstance(own, Record) and own.weight.tolist() == [1, 1] and own.class_name.endswith("Own")
    assert cycle[0].tolist() == [1] and isinstance(cycle[1], Opaque)
    assert "without elements" in meta.text and "sparse" in sparse.text


def test_a_compiled_module_is_not_captured_while_it_is_traced() -> None:
    echo = Net()
    with pt.capture(("net", echo)) as got:
        exported = torch.export.export(echo, (torch.ones(2, 4),))
        assert len(got) == 0
    assert exported.module()(torch.ones(2, 4)).shape == (2, 4)


def test_silent_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    net = Fails()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError), pt.capture(net):
            net(torch.ones(1))
    assert capsys.readouterr().out == ""


def test_two_captures_are_diffed_by_path(tmp_path: Path) -> None:
    net = Net()
    for name in ("a", "b"):
        with pt.capture(("net", net), submodules=True, path=tmp_path / f"{name}.plx"):
            net(torch.ones(2, 4))
        with torch.no_grad():
            net.relu.register_forward_hook(lambda module, args, result: result + 1)
    result = parallax.diff(tmp_path / "a.plx", tmp_path / "b.plx")
    first = result.first_divergence
    assert result.verdict == "diverged" and first is not None
    assert "module(net.linear).call[1]//in/args/0" in str(first)
