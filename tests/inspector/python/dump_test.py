# SPDX-License-Identifier: Apache-2.0
"""Dumps from Python: reading as a mapping, writing value by value, what is wrong with a request."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper
from small_models import build, run_python, value

import parallax
from parallax.dump import NoSuchValue


@pytest.fixture()
def dump(tmp_path: Path) -> str:
    """Two executions: values of each element type, frames, a list; statistics of a large one."""
    path = str(tmp_path / "a.plx")
    with parallax.Dump.create(path, executor="first", settings={"threads": 2}, limit=4096) as writer:
        writer.write("x", np.arange(6, dtype=np.float32).reshape(2, 3), role="input")
        writer.write("half", np.arange(3).astype(ml_dtypes.bfloat16))
        writer.write("loop.body[1]//y", np.array([True, False]))
        writer.write("loop.body[2]//y", np.array(["a", "bc"], object))
        writer.write("list", [np.zeros(2), np.ones(3)])
        writer.write("large", np.arange(10_000.0))
        writer.write("summed", np.arange(4.0), level="stats")
        writer.end_run()
        writer.begin_run("second")
        writer.write("x", np.full(2, 7))
    return path


def test_a_dump_is_a_mapping(dump: str) -> None:
    with parallax.open(dump) as opened:
        assert list(opened) == ["x", "half", "loop.body[1]//y", "loop.body[2]//y", "list", "large", "summed"]
        assert len(opened) == 7 and "x" in opened and "nothing" not in opened
        assert opened["x"].numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
        assert opened["half"].dtype == "bfloat16" and opened["half"].numpy().astype(float).tolist() == [0, 1, 2]
        assert opened["loop.body[2]//y"].numpy().tolist() == ["a", "bc"]
        assert [each.shape for each in opened["list"]] == [(2,), (3,)]
        assert opened.get("nothing") is None
        assert opened.is_complete and "7 values" in repr(opened)


UNDECODABLE = b"\xff\xfe\xc3(".decode(errors="surrogateescape")


def test_names_are_escaped_as_in_paths() -> None:
    assert parallax._core.escape_name("a//b") == "a%2F%2Fb"
    assert parallax._core.escape_name(UNDECODABLE) == UNDECODABLE


def test_names_that_are_no_utf8_come_back_as_they_were(tmp_path: Path) -> None:
    path = str(tmp_path / "a.plx")
    with parallax.Dump.create(path) as writer:
        writer.write(UNDECODABLE, np.arange(3.0))
        writer.write("plain", np.arange(2.0))
    assert b"\xff\xfe\xc3(" in Path(path).read_bytes()
    opened = parallax.open(path)
    assert list(opened) == [UNDECODABLE, "plain"] and UNDECODABLE in opened
    assert opened[UNDECODABLE].numpy().tolist() == [0, 1, 2]
    assert opened.entry(UNDECODABLE).name == UNDECODABLE and opened.select("*")[0] == UNDECODABLE
    assert "\ufffd\ufffd\ufffd(" in repr(opened.entry(UNDECODABLE))
    compared = parallax.diff(path, path)
    assert "\ufffd\ufffd\ufffd(" in compared.text(top=-1) and compared.values[0].path == "\ufffd\ufffd\ufffd("
    compared._repr_html_().encode()
    with pytest.raises(NoSuchValue):
        opened["\udcff"]
    with pytest.raises(TypeError):
        parallax.Dump.create(tmp_path / "b.plx").write("\ud800", np.zeros(1))  # it stands for no byte


def test_tensors_are_views_that_outlive_the_dump(dump: str) -> None:
    opened = parallax.open(dump)
    tensor, copy = opened["x"], opened.load("x")
    opened.close()
    del opened
    gc.collect()
    assert tensor.numpy().sum() == 15 and not tensor.numpy().flags.writeable
    copy.numpy()[0, 0] = 5
    assert copy.numpy()[0, 0] == 5 and tensor.numpy()[0, 0] == 0


def test_a_closed_dump_says_so(dump: str) -> None:
    opened = parallax.open(dump)
    opened.close()
    with pytest.raises(parallax.UsageError, match="closed"):
        opened["x"]


def test_levels_and_statistics(dump: str) -> None:
    opened = parallax.open(dump)
    large, summed = opened.entry("large"), opened.entry("summed")
    assert (large.level, summed.level, opened.entry("x").level) == ("sample", "stats", "all")
    assert large.shape == (10_000,) and large.statistics is not None and large.statistics["max"] == 9999
    assert opened["large"].shape == (1024,), "a sample"
    assert summed.statistics is not None and summed.statistics["mean"] == 1.5
    with pytest.raises(parallax.UsageError, match="without its elements"):
        opened["summed"]


def test_executions_are_separate(dump: str) -> None:
    opened = parallax.open(dump)
    assert [row["executor"] for row in opened.executions] == ["first", "second"]
    assert opened.executions[0]["settings"] == {"threads": "2"} and opened.executions[1]["completed"]
    second = opened.of_execution(1)
    assert list(second) == ["x"] and second["x"].numpy().tolist() == [7, 7]
    with pytest.raises(parallax.UsageError, match="execution is 2"):
        opened.of_execution(2)


def test_globs_select_paths(dump: str) -> None:
    opened = parallax.open(dump)
    assert opened.select("loop.body[*]//y") == ["loop.body[1]//y", "loop.body[2]//y"]
    assert opened.select("*") == ["x", "half", "list", "large", "summed"]
    assert opened.select("zz*") == []


def test_an_unknown_path_names_its_neighbors(dump: str) -> None:
    with pytest.raises(KeyError, match="no value 'larg'.*large"):
        parallax.open(dump)["larg"]
    with pytest.raises(NoSuchValue):
        parallax.open(dump).entry("y")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(parallax.IoError):
        parallax.open(tmp_path / "missing.plx")
    (tmp_path / "text.plx").write_text("no dump " * 20)
    with pytest.raises(parallax.CorruptFile):
        parallax.open(tmp_path / "text.plx")
    with pytest.raises(parallax.IoError):
        parallax.Dump.create(tmp_path / "no" / "folder.plx")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("step[x]//y", 1.0), "value path"), (("y", object()), "value 'y'|object")],
)
def test_what_cannot_be_written(tmp_path: Path, arguments: tuple[str, Any], words: str) -> None:
    with parallax.Dump.create(tmp_path / "a.plx") as writer, pytest.raises(parallax.Error, match=words):
        writer.write(*arguments)


def test_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(parallax.UsageError, match="level is 'some'.*stats"):
        parallax.Dump.create(tmp_path / "a.plx", level="some")
    writer = parallax.Dump.create(tmp_path / "a.plx")
    with pytest.raises(parallax.UsageError, match="role is 'weight'"):
        writer.write("x", np.zeros(1), role="weight")
    with pytest.raises(parallax.UsageError, match="JSON"):
        writer.structure("x", "{")
    writer.finish()
    with pytest.raises(parallax.UsageError, match="finished"):
        writer.write("x", np.zeros(1))


def test_only_keeps_what_the_globs_name(tmp_path: Path) -> None:
    with parallax.Dump.create(tmp_path / "a.plx", only=["keep*"]) as writer:
        writer.write("keep_1", np.zeros(1))
        writer.write("other", np.zeros(1))
    assert list(parallax.open(tmp_path / "a.plx")) == ["keep_1"]


def test_a_model_gives_the_dump_its_graph(tmp_path: Path) -> None:
    model = build(
        [helper.make_node("Relu", ["x"], ["y"], name="the_relu")],
        [value("x", TensorProto.FLOAT, [2])], [value("y", TensorProto.FLOAT, [2])],
    )
    with parallax.Dump.create(tmp_path / "a.plx", model=model) as writer:
        with writer.call():
            assert writer.write("x", np.zeros(2, np.float32))
            assert writer.write("y", np.zeros(2, np.float32))
            assert not writer.write("z", np.zeros(2, np.float32))
    opened = parallax.open(tmp_path / "a.plx")
    assert opened.entry("y").node == "the_relu" and opened.entry("y").op == "Relu"
    assert opened.entry("x").role == "input" and opened.entry("y").is_graph_output
    assert [node.op for node in opened.model().nodes] == ["Relu"]
    assert opened.calls[0]["graph"] == 0 and opened.entry("x").call == 0


def test_a_dump_without_graph_says_what_to_do(dump: str) -> None:
    with pytest.raises(parallax.UsageError, match="no graph.*--model"):
        parallax.open(dump).model()


def test_modules_are_entered_and_left(tmp_path: Path) -> None:
    with parallax.Dump.create(tmp_path / "a.plx") as writer:
        with writer.module("net.f(x)", 0, "Net") as frames:
            writer.write(frames + "out", np.ones(1))
            writer.structure(frames + "out", '{"kind": "tensor", "name": "out"}')
    opened = parallax.open(tmp_path / "a.plx")
    assert list(opened) == ["module(net.f(x)).call[0]//out"]
    assert [(event["kind"], event["text"], event["op"]) for event in opened.events[:2]] == [
        ("enter_body", "module(net.f(x)).call[0]", "Net"), ("leave_body", "module(net.f(x)).call[0]", "Net")]
    assert opened.structures[0]["path"] == "module(net.f(x)).call[0]//out"


def test_a_killed_program_leaves_what_it_wrote(tmp_path: Path) -> None:
    path = tmp_path / "a.plx"
    run_python(
        "import numpy as np, os, parallax\n"
        f"writer = parallax.Dump.create({str(path)!r})\n"
        "for step in range(3): writer.write(f'step[{step}]//x', np.full(100, step))\n"
        "if os.fork() == 0: os.kill(os.getpid(), 9)\n"
        "os.wait()\n"
        "opened = parallax.open(writer.path)\n"
        "assert not opened.is_complete and opened['step[2]//x'].numpy()[0] == 2\n"
        "os._exit(0)\n"
    )
    opened = parallax.open(path)
    assert len(opened) == 3 and not opened.is_complete


def test_a_table_of_the_entries(dump: str) -> None:
    pytest.importorskip("pandas")
    table = parallax.open(dump).to_pandas()
    assert len(table) == 8 and table.set_index("path").loc["large", "max"] == 9999
