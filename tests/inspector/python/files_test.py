# SPDX-License-Identifier: Apache-2.0
"""Files that the package writes: never over what is read, over foreign files by ``force`` alone, and whole or not at all."""

from __future__ import annotations

import ast
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from small_models import build, value

import parallax
from parallax import _files, testing

FLOAT = TensorProto.FLOAT
LETTER = b"a letter to the editor\n"


def model_bytes() -> bytes:
    weights = {"w": np.eye(4, dtype=np.float32)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Exp", ["m"], ["y"])]
    return build(nodes, [value("x", FLOAT, [2, 4])], [value("y", FLOAT, [2, 4])], weights)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's file that Parallax did not write."""
    path = tmp_path_factory.mktemp("in") / "model.onnx"
    path.write_bytes(model_bytes())
    return path


@pytest.fixture(scope="module")
def decoders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("decoders")
    weight = numpy_helper.from_array(np.arange(8, dtype=np.float32).reshape(2, 4), "w")
    paths = []
    for name, node in (("first", helper.make_node("Neg", ["x"], ["present.0.key"])),
                       ("later", helper.make_node("Add", ["past_key_values.0.key", "x"], ["present.0.key"]))):
        inputs = [value(each, FLOAT, ["batch", 2]) for each in ("x", "past_key_values.0.key")[: 1 if name == "first" else 2]]
        outputs = [value("logits", FLOAT, ["batch", 4]), value("present.0.key", FLOAT, ["batch", 2])]
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["logits"]), node], "g", inputs, outputs, [weight])
        paths.append(folder / f"{name}.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), paths[-1])
    return paths[0], paths[1]


Write = Callable[[Any, Path, bool], Any]


def with_comparison(kind: str) -> Write:
    def write(model: Any, path: Path, force: bool) -> Any:
        comparison = parallax.compare(model, executors=("reference", "cpu"))
        return getattr(comparison, f"save_{kind}")(path, force=force)

    return write


def create_dump(model: Any, path: Path, force: bool) -> None:
    with parallax.Dump.create(path, model=model, force=force) as writer:
        writer.write("m", np.ones(3, np.float32))


WRITERS: dict[str, tuple[str, Write]] = {
    "Model.save": (".onnx", lambda model, path, force: parallax.load(model).save(path, force=force)),
    "Model.save text": (".textproto", lambda model, path, force: parallax.load(model).save(path, force=force)),
    "rewritten": (".onnx", lambda model, path, force: parallax.load(model).rewrite().save(path, force=force)),
    "convert": (".onnx", lambda model, path, force: parallax.convert(model, output=path, force=force)),
    "run dump": (".plx", lambda model, path, force: parallax.run(model, dump=path, force=force)),
    "run baseline": (".plx", lambda model, path, force: parallax.run(model, save_baseline=path, force=force)),
    "save_baseline": (".plx", lambda model, path, force: testing.save_baseline(model, path, force=force)),
    "profile": (".json", lambda model, path, force: parallax.profile(model, iterations=1, trace=path, force=force)),
    "save_trace": (".json", lambda model, path, force: parallax.profile(model, iterations=1).save_trace(path, force=force)),
    "audit html": (".html", lambda model, path, force: parallax.audit_fp16(model).save_html(path, force=force)),
    "audit csv": (".csv", lambda model, path, force: parallax.audit_fp16(model).save_csv(path, force=force)),
    "Dump.create": (".plx", create_dump),
    **{f"comparison {kind}": (f".{kind}", with_comparison(kind))
       for kind in ("html", "csv", "junit", "svg", "dot", "netron", "model_explorer")},
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_foreign_files_need_force(name: str, model: Path, tmp_path: Path) -> None:
    ending, write = WRITERS[name]
    path = tmp_path / f"F{ending}"
    path.write_bytes(LETTER)
    with pytest.raises(parallax.UsageError, match="did not write") as raised:
        write(model, path, False)
    assert "force=True" in str(raised.value) and "--" not in str(raised.value) and str(path) in str(raised.value)
    assert path.read_bytes() == LETTER and os.listdir(tmp_path) == [path.name]
    write(model, path, True)
    assert path.read_bytes()[:8] != LETTER[:8]
    write(model, path, False)  # it is Parallax's own now
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_read_is_never_replaced(name: str, model: Path, tmp_path: Path) -> None:
    _, write = WRITERS[name]
    read = tmp_path / "m.onnx"
    read.write_bytes(model.read_bytes())
    (tmp_path / "soft.onnx").symlink_to("m.onnx")
    os.link(read, tmp_path / "hard.onnx")
    (tmp_path / "folder").mkdir()
    inode = read.stat().st_ino
    for spelled in ("m.onnx", "soft.onnx", "hard.onnx", "folder/../m.onnx"):
        path = os.path.join(tmp_path, spelled)
        if name in ("run dump", "save_baseline"):
            continue  # the name of a dump's file ends with .plx: below
        for source in (read, parallax.load(read)):
            with pytest.raises(parallax.UsageError, match="which is read"):
                write(source, Path(path), True)
    os.rename(tmp_path / "hard.onnx", tmp_path / "hard.plx")
    with pytest.raises(parallax.UsageError, match="which is read"):
        write(read, tmp_path / "hard.plx", True)
    assert read.read_bytes() == model.read_bytes() and read.stat().st_ino == inode
    assert sorted(os.listdir(tmp_path)) == ["folder", "hard.plx", "m.onnx", "soft.onnx"]


def test_merged_decoders_are_written_by_the_same_rules(decoders: tuple[Path, Path], tmp_path: Path) -> None:
    first, later = decoders
    before = later.read_bytes()
    with pytest.raises(parallax.UsageError, match="which is read"):
        parallax.merge_decoders(first, later, later, force=True)
    assert later.read_bytes() == before
    path = tmp_path / "merged.onnx"
    path.write_bytes(LETTER)
    with pytest.raises(parallax.UsageError, match="force=True"):
        parallax.merge_decoders(first, later, path)
    assert parallax.merge_decoders(first, later, path, force=True).output == path
    assert parallax.merge_decoders(first, later, path).output == path


def test_folders_that_hold_an_input_are_refused(model: Path, tmp_path: Path) -> None:
    read = tmp_path / "m.onnx"
    read.write_bytes(model.read_bytes())
    for force in (False, True):
        for source in (read, parallax.load(read)):
            with pytest.raises(parallax.UsageError, match="holds"):
                parallax.extract(source, to="m", directory=tmp_path, force=force)
            with pytest.raises(parallax.UsageError, match="holds"):
                parallax.reduce(source, check=lambda candidate, inputs: True, directory=tmp_path, force=force)
    assert os.listdir(tmp_path) == ["m.onnx"]
    part = tmp_path / "part"
    part.mkdir()
    (part / "model.onnx").write_bytes(LETTER)
    with pytest.raises(parallax.UsageError, match="force=True"):
        parallax.extract(read, to="m", directory=part)
    assert (part / "model.onnx").read_bytes() == LETTER and os.listdir(part) == ["model.onnx"]
    assert parallax.extract(read, to="m", directory=part, force=True).nodes
    assert parallax.extract(read, to="m", directory=part).nodes
    small = tmp_path / "small"
    small.mkdir()
    (small / "model.onnx").write_bytes(LETTER)
    with pytest.raises(parallax.UsageError, match="force=True"):
        parallax.reduce(read, check=lambda candidate, inputs: True, directory=small)
    assert parallax.reduce(read, check=lambda candidate, inputs: True, directory=small, force=True).nodes


def test_weights_next_to_a_renamed_model_stay(tmp_path: Path) -> None:
    proto = onnx.load_from_string(model_bytes())
    onnx.save(proto, tmp_path / "new.onnx", save_as_external_data=True, location="new.onnx.data", size_threshold=0)
    os.rename(tmp_path / "new.onnx", tmp_path / "old.onnx")
    data = (tmp_path / "new.onnx.data").read_bytes()
    model = parallax.load(tmp_path / "old.onnx")
    with pytest.raises(parallax.UsageError, match="new.onnx.data"):
        model.save(tmp_path / "new.onnx", force=True)
    with pytest.raises(parallax.UsageError, match="new.onnx.data"):
        parallax.compare(model, executors=("reference", "cpu")).save_csv(tmp_path / "new.onnx.data", force=True)
    assert (tmp_path / "new.onnx.data").read_bytes() == data


def test_dumps_that_are_compared_stay(model: Path, tmp_path: Path) -> None:
    parallax.compare(model, executors=("reference", "cpu"), dump=tmp_path)
    comparison = parallax.diff(tmp_path / "A-reference.plx", tmp_path / "B-cpu.plx")
    for name in ("A-reference.plx", "B-cpu.plx"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(parallax.UsageError, match="which is read"):
            comparison.save_html(tmp_path / name, force=True)
        assert (tmp_path / name).read_bytes() == before
    baseline = tmp_path / "cpu.plx"
    os.rename(tmp_path / "B-cpu.plx", baseline)
    before = baseline.read_bytes()
    with pytest.raises(parallax.UsageError, match="which is read"):
        parallax.compare(model, executors=("cpu",), baseline=baseline, dump=tmp_path, force=True)
    assert baseline.read_bytes() == before


def test_an_exception_leaves_what_was_there(tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    path = tmp_path / "F.txt"
    for error in (Stop, KeyboardInterrupt):
        with pytest.raises(error):
            with _files.written(path) as file:
                file.write(b"half of ")
                file.flush()
                raise error
        assert os.listdir(tmp_path) == []
    _files.write_text(path, "whole")
    with pytest.raises(Stop):
        with _files.written(path) as file:
            file.write(b"half of ")
            raise Stop
    with pytest.raises(Stop):
        with _files.filled_folder(tmp_path) as folder:
            (folder / "F.txt").write_text("half of ")
            raise Stop
    assert path.read_text() == "whole" and os.listdir(tmp_path) == ["F.txt"]


def test_an_interrupted_run_leaves_an_older_dump(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "F.plx"
    parallax.run(model, dump=path)
    before = path.read_bytes()
    with pytest.raises(parallax.UsageError):
        parallax.run(model, {"x": np.ones((1, 1), np.float32)}, dump=path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["F.plx"]


def test_an_own_file_that_somebody_changed_is_foreign(model: Path, tmp_path: Path) -> None:
    for name in ("run dump", "run baseline", "Dump.create", "Model.save", "comparison csv"):
        ending, write = WRITERS[name]
        path = tmp_path / f"F{ending}"
        write(model, path, False)
        path.write_bytes(LETTER)
        with pytest.raises(parallax.UsageError, match="changed since"):
            write(model, path, False)
        assert path.read_bytes() == LETTER
        path.unlink()


def test_none_of_several_files_is_written_where_one_may_not_be(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes(LETTER)

    def fill(force: bool) -> None:
        with _files.filled_folder(tmp_path, force) as folder:
            for name in ("a.txt", "b.txt", "c.txt"):
                (folder / name).write_text(name)

    with pytest.raises(parallax.UsageError, match="force=True"):
        fill(False)
    assert os.listdir(tmp_path) == ["b.txt"]
    fill(True)
    fill(False)
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt", "c.txt"]


@pytest.mark.parametrize("umask", [0o077, 0o002])
def test_permissions(umask: int, model: Path, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        for name, (ending, write) in WRITERS.items():
            path = tmp_path / f"{name.replace(' ', '-')}{ending}"
            write(model, path, False)
            assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask, name
            path.chmod(0o604)
            write(model, path, False)
            assert stat.S_IMODE(path.stat().st_mode) == 0o604, name
        with _files.filled_folder(tmp_path) as folder:
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            (folder / "F.txt").write_text("x")
        assert stat.S_IMODE((tmp_path / "F.txt").stat().st_mode) == 0o666 & ~umask
    finally:
        os.umask(before)


def test_links_are_followed(model: Path, tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    for ending, write in WRITERS.values():
        link = tmp_path / f"link{ending}"
        link.unlink(missing_ok=True)
        link.symlink_to(f"away/F{ending}")
        write(model, link, True)
        assert link.is_symlink() and (tmp_path / f"away/F{ending}").stat().st_size > 0


def test_a_failed_assertion_is_reported_next_to_foreign_files(tmp_path: Path) -> None:
    (tmp_path / "inputs.npz").write_bytes(LETTER)
    other = onnx.load_from_string(model_bytes())
    other.graph.node[1].op_type = "Neg"
    x = {"x": np.ones((2, 4), np.float32)}
    with pytest.raises(testing.ComparisonFailed, match="inputs-2.npz"):
        testing.assert_close_models(model_bytes(), other, inputs=x, keep=tmp_path)
    assert (tmp_path / "inputs.npz").read_bytes() == LETTER
    with np.load(tmp_path / "inputs-2.npz") as arrays:
        assert arrays["x"].shape == (2, 4)


# Functions whose files are temporary, that only read, and that write into a sweep's own folder or store.
MAY_WRITE = {
    ("model.py", "_load_onnx_ir"), ("model_jobs.py", "convert"), ("torch/conversion.py", "_opened"),
    ("_ort_session.py", "node_milliseconds"), ("sweep/content.py", "companions"), ("sweep/content.py", "_sha256"),
    ("sweep/content.py", "save"), ("sweep/content.py", "add"), ("sweep/execution.py", "_process"),
    ("sweep/records.py", "write_whole"), ("sweep/records.py", "__init__"), ("sweep/records.py", "locked"),
    ("sweep/table.py", "write_rows"),
}  # fmt: skip


def test_an_archive_takes_any_names(tmp_path: Path) -> None:
    arrays = {name: np.arange(3, dtype=np.float32) for name in ("file", "allow_pickle", "a/b", "x")}
    with np.load(_files.write_arrays(tmp_path / "all.npz", arrays)) as archive:
        assert set(archive.files) == set(arrays)
        assert all(archive[name].tolist() == [0, 1, 2] for name in arrays)


def test_no_other_function_of_the_package_writes_files() -> None:
    package = Path(parallax.__file__).resolve().parent
    found = []
    for path in sorted(package.rglob("*.py")):
        name = str(path.relative_to(package))
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef) or name == "_files.py" or (name, function.name) in MAY_WRITE:
                continue
            calls = [ast.unparse(call.func) for call in ast.walk(function) if isinstance(call, ast.Call)]
            found += [f"{name}, {function.name}: {call}" for call in calls if writes(call)]
    assert found == []
    assert writes("open") and writes("Path(path).write_text") and writes("np.savez") and not writes("model.save")


def writes(call: str) -> bool:
    modules = ("np.save", "np.tofile", "onnx.save", "onnx_ir.save", "program.save", "shutil.", "os.replace", "os.rename")
    is_ours = call.startswith("_files.")
    writes_paths = call.endswith((".write_text", ".write_bytes", ".tofile"))
    return call == "open" or writes_paths and not is_ours or call.startswith(modules) and call != "shutil.which"
