# SPDX-License-Identifier: Apache-2.0
"""Sweeps by processes of this machine: limits, crashes, what is done again and what is not, specs, the store, baselines."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sweeps

pytest.importorskip("pyarrow", reason="a sweep writes its table with pyarrow")

from parallax.errors import UsageError  # noqa: E402
from parallax.sweep import Limits, Spec, read_spec, save_baselines, sweep  # noqa: E402
from parallax.sweep.command import main  # noqa: E402
from parallax.sweep.content import Hashes, Store, companions  # noqa: E402
from parallax.sweep.identity import check_identity, identity_of  # noqa: E402
from parallax.sweep.plan import Plan  # noqa: E402


def spec_in(folder: Path, text: str) -> Spec:
    (folder / "sweep.toml").write_text(text)
    return read_spec(folder / "sweep.toml")


def verdicts(folder: Path) -> dict[str, str]:
    return {row["model"]: row["verdict"] for row in sweeps.table(folder)}


def test_each_bad_end_is_a_row_with_its_cause(tmp_path: Path) -> None:
    sweeps.small_models(tmp_path / "models", "good", "hang", "crash", "grow", "mute")
    (tmp_path / "models" / "broken.onnx").write_bytes(b"no model")
    program = str(sweeps.faulty_program(tmp_path))
    spec = spec_in(tmp_path, '[[models]]\npath = "models"\n[limits]\ntime = 20\nmemory = "300M"\n').with_changes(jobs=3)
    done = sweep(spec, program=program)
    assert verdicts(spec.out) == {
        "broken": "refused", "crash": "crash", "good": "pass", "grow": "memory", "hang": "timeout", "mute": "error",
    }  # fmt: skip
    rows = {row["model"]: row for row in sweeps.table(spec.out)}
    assert rows["crash"]["signal"] == "SIGSEGV" and rows["crash"]["error"] == "ended by SIGSEGV. last words"
    assert rows["hang"]["error"] == "not finished after 20 s, its limit of time"
    assert rows["grow"]["error"] == "resident memory is beyond 300000000 bytes, its limit"
    assert rows["mute"]["error"].startswith("exit code 4 without a document")
    assert rows["good"]["values_compared"] > 10 and rows["good"]["worst_severity"] < 1
    assert not sweeps.is_alive(int((tmp_path / "hung.pid").read_text()))
    assert (done.cells, done.computed, done.passed) == (6, 6, False)

    count = len(sweeps.runs(tmp_path))
    assert sweep(spec, program=program).computed == 0
    assert len(sweeps.runs(tmp_path)) == count == 6
    # A limit that is higher than the one that a cell met is a reason to do it again, and so is --retry.
    assert sweep(spec.with_changes(limits=Limits(21, 300_000_000)), program=program).computed == 1
    assert sweep(spec, program=program, retry=["crash", "error"]).computed == 2


def test_what_ran_when_the_sweep_was_killed_is_done_again_and_nothing_else(tmp_path: Path) -> None:
    names = [f"model_{at:02}" for at in range(12)]
    sweeps.small_models(tmp_path / "models", *names[:6], "hang", *names[6:])
    program = str(sweeps.faulty_program(tmp_path))
    spec = spec_in(tmp_path, '[[models]]\npath = "models"\n')
    command = [sys.executable, "-m", "parallax.sweep", str(tmp_path / "sweep.toml"), "--jobs", "2", "--program", program]
    killed = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    cells = spec.out / "cells"
    sweeps.wait_until(lambda: (tmp_path / "hung.pid").exists() and len(list(cells.glob("*/*.json"))) >= 5)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    if shutil.which("setpriv"):  # the kernel ends the processes that a killed sweep leaves
        sweeps.wait_until(lambda: not [pid for pid in os.listdir("/proc") if pid.isdigit() and program in _command_line(pid)])
    os.kill(int((tmp_path / "hung.pid").read_text()), signal.SIGKILL)
    before = {path: path.stat().st_mtime_ns for path in cells.glob("*/*.json")}
    first = sweeps.runs(tmp_path)
    os.rename(tmp_path / "models" / "hang.onnx", tmp_path / "models" / "stuck.onnx")
    done = sweep(spec.with_changes(jobs=2), program=program)
    assert done.verdicts == {"pass": 13} and done.computed == 13 - len(before)
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    again = sweeps.runs(tmp_path)[len(first) :]  # a process that had just begun may come to its line after the kill
    assert len(set(again)) == done.computed and len(again) <= done.computed + 2


def _command_line(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_the_id_of_a_cell_is_its_contents_and_not_its_names(tmp_path: Path) -> None:
    sweeps.small_models(tmp_path / "models", "a", "b")
    shutil.copy(tmp_path / "models" / "a.onnx", tmp_path / "models" / "copy.onnx")
    program = str(sweeps.faulty_program(tmp_path))
    spec = spec_in(tmp_path, '[[models]]\npath = "models"\n[[options]]\nname = "plain"\n[[options]]\nname = "unfused"\nrewrite = "none"\n')
    done = sweep(spec, program=program)
    assert (done.cells, done.computed, len(sweeps.runs(tmp_path))) == (6, 4, 4)
    rows = {(row["model"], row["options"]): row["cell"] for row in sweeps.table(spec.out)}
    assert rows["a", "plain"] == rows["copy", "plain"] != rows["b", "plain"] != rows["b", "unfused"]
    sweeps.small_models(tmp_path / "models", "x", "y", "a")  # other bytes under an old name
    assert sweep(spec, program=program).computed == 2


def test_the_hash_covers_external_data_and_the_store_has_it(tmp_path: Path) -> None:
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    weight = numpy_helper.from_array(np.ones(500, np.float32), "w")
    graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["y"])], "g", [helper.make_tensor_value_info("x", 1, [500])],
                              [helper.make_tensor_value_info("y", 1, [500])], [weight])  # fmt: skip
    folder = tmp_path / "models"
    folder.mkdir()
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "big.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    sweeps.small_models(folder, "small")
    plain = Hashes().source(folder / "small.onnx")
    assert plain.sha == hashlib.sha256((folder / "small.onnx").read_bytes()).hexdigest()
    big = Hashes().source(folder / "big.onnx")
    store = Store(tmp_path / "store")
    copied = store.path(store.add(big))
    assert (copied.parent / "weights.bin").read_bytes() == (folder / "weights.bin").read_bytes()
    spec = spec_in(tmp_path, f'store = "store"\n[[models]]\nsha256 = "{big.sha}"\nname = "by hash"\n[[models]]\npath = "models/big.onnx"\n')
    done = sweep(spec)
    assert done.verdicts == {"pass": 2} and done.computed == 1
    (tmp_path / "secret.bin").write_bytes((folder / "weights.bin").read_bytes())
    hostile = onnx.load(folder / "big.onnx", load_external_data=False)
    for location in ("../secret.bin", str(tmp_path / "secret.bin")):
        hostile.graph.initializer[0].external_data[0].value = location
        (folder / "hostile.onnx").write_bytes(hostile.SerializeToString())
        assert companions(folder / "hostile.onnx") == []
    (folder / "weights.bin").write_bytes(np.zeros(500, np.float32).tobytes())
    assert Hashes().source(folder / "big.onnx").sha != big.sha


# A runner whose version is in a file next to it.
RUNNER = '''
import pathlib, sys, parallax
from parallax.runners import Description, serve

class Runner:
    def describe(self):
        return Description("ours", pathlib.Path(sys.argv[1]).read_text())
    def load(self, request):
        self.session = parallax.Session(request.model, "reference")
    def run(self, request):
        return self.session.run(request.read_inputs())

serve(Runner())
'''


def test_a_foreign_executor_of_another_version_computes_cells_again(tmp_path: Path) -> None:
    sweeps.small_models(tmp_path / "models", "one")
    (tmp_path / "runner.py").write_text(RUNNER)
    version = tmp_path / "version"
    runner = f"cmd:{sys.executable} -B {tmp_path / 'runner.py'} {version}"
    spec = spec_in(tmp_path, f'executors = ["cpu", ["cpu", "{runner}"]]\n[[models]]\npath = "models"\n')

    def computed() -> int:
        done = sweep(spec)
        assert done.verdicts == {"pass": 2}
        return done.computed

    version.write_text("1")
    assert (computed(), computed()) == (2, 0)
    version.write_text("2")
    assert (computed(), computed()) == (1, 0)
    version.write_text("")  # nothing says whether it is the one before
    assert (computed(), computed()) == (1, 1)
    version.write_text("3")
    check_identity(runner, identity_of(runner, Hashes()))  # as a worker of a cluster does
    with pytest.raises(UsageError, match="is another one than where the sweep was planned"):
        check_identity(runner, "that of the planner")


def test_runners_of_cells_start_in_the_python_of_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweeps.small_models(tmp_path / "models", "one")
    program, seen = tmp_path / "program", tmp_path / "python"
    program.write_text(f'#!/bin/sh\n[ "$1" = run ] && echo "$PARALLAX_PYTHON" >{seen}\nexec {sweeps.PROGRAM} "$@"\n')
    program.chmod(0o755)
    spec = spec_in(tmp_path, '[[models]]\npath = "models"\n')
    monkeypatch.delenv("PARALLAX_PYTHON", raising=False)
    sweep(spec, program=str(program))
    assert seen.read_text().strip() == sys.executable
    monkeypatch.setenv("PARALLAX_PYTHON", "/another/python3")
    sweep(spec, program=str(program), retry=["all"])
    assert seen.read_text().strip() == "/another/python3"


def test_a_runner_that_was_ended_at_its_memory_limit_is_one(tmp_path: Path) -> None:
    sweeps.small_models(tmp_path / "models", "one")
    program = tmp_path / "program"
    error = {"code": 4, "message": "ours: it holds 2 GB of memory and was ended: the limit is 1 GB (--memory-limit)"}
    program.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && echo parallax 1 && exit\necho '{json.dumps({'error': error})}'\nexit 4\n")
    program.chmod(0o755)
    assert sweep(spec_in(tmp_path, '[[models]]\npath = "models"\n'), program=str(program)).verdicts == {"memory": 1}


def test_commas_within_commands_and_switches_reach_the_program(tmp_path: Path) -> None:
    sweeps.small_models(tmp_path / "models", "one")
    text = 'executors = ["cpu,cmd:./runner \'a,b\'"]\n[[models]]\npath = "models"\n[[options]]\ntf32 = true\ntime_limit = 30\n'
    cells = list(Plan(spec_in(tmp_path, text), "1", Hashes()))
    assert [(cell.executor_a, cell.executor_b) for cell in cells] == [("cpu", "cmd:./runner 'a,b'")]
    words = " ".join(map(str, cells[0].line))
    assert "--tf32 on --time-limit 30" in words


def test_options_that_would_do_nothing_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweeps.small_models(tmp_path / "models", "one")
    finished, models, kept = str(tmp_path / "out"), str(tmp_path / "models"), str(tmp_path / "kept")
    assert main([models, "-o", finished]) == 0
    for option, words in (("--retry", ["all"]), ("-k", ["one"]), ("--with", ["cpu"]), ("--save-baselines", [])):
        assert main([finished, option, *words]) == 2
        assert f"{option} is given, and nothing is run of '{finished}', which is a finished sweep" in capsys.readouterr().err
    baselines = [models, "--baselines", kept, "--save-baselines", "--with", "cpu"]
    assert main([*baselines, "--scheduler", "127.0.0.1:9"]) == 2
    assert "--scheduler is given, and --save-baselines runs cells on this machine" in capsys.readouterr().err
    assert main([*baselines, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"baselines": 1, "folder": kept}
    assert main([models, "--with", "cpu,reference,cpu"]) == 2
    assert "--with has 'cpu,reference,cpu'; each entry must be one executor or a pair" in capsys.readouterr().err


def test_a_moved_intermediate_result_fails_against_its_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("A", "B"):
        (tmp_path / f"{name}.onnx").write_bytes((sweeps.SAMPLES / "fault_pair" / f"{name}.onnx").read_bytes())
    os.rename(tmp_path / "A.onnx", tmp_path / "net.onnx")
    spec = spec_in(tmp_path, 'executors = ["cpu"]\nbaselines = "kept"\n[[models]]\npath = "net.onnx"\n[[options]]\nname = "all values"\nobserve_all = true')
    with pytest.raises(UsageError, match="there is no baseline .*--save-baselines"):
        sweep(spec)
    assert save_baselines(spec) == 1 and (tmp_path / "kept" / "net" / "seed-0--cpu--all-values.plx").exists()
    assert sweep(spec).verdicts == {"pass": 1}
    os.rename(tmp_path / "B.onnx", tmp_path / "net.onnx")  # the model is exported anew, with a fault
    capsys.readouterr()
    assert main([str(tmp_path / "sweep.toml"), "--junit", str(tmp_path / "junit.xml")]) == 1
    assert "first at block1/depthwise_bn (BatchNormalization)" in capsys.readouterr().out
    row = sweeps.table(spec.out)[0]
    assert (row["executor_a"], row["executor_b"], row["verdict"], row["first_node"]) == ("baseline", "cpu", "diverged", "block1/depthwise_bn")
    junit = (tmp_path / "junit.xml").read_text()
    assert 'failures="1"' in junit and "block1/depthwise_bn" in junit


def test_against_answers_what_got_worse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(sweeps.SAMPLES / "fault_pair" / "A.onnx", tmp_path / "net.onnx")
    shutil.copy(sweeps.SAMPLES / "fault_pair" / "A.onnx", tmp_path / "given.onnx")
    text = '[[models]]\npath = "given.onnx"\nagainst = "net.onnx"\n'
    (tmp_path / "sweep.toml").write_text('executors = ["reference"]\n' + text)
    assert main([str(tmp_path / "sweep.toml"), "-o", str(tmp_path / "monday")]) == 0
    shutil.copy(sweeps.SAMPLES / "fault_pair" / "B.onnx", tmp_path / "net.onnx")
    capsys.readouterr()
    assert main([str(tmp_path / "sweep.toml"), "-o", str(tmp_path / "tuesday"), "--against", str(tmp_path / "monday")]) == 1
    printed = capsys.readouterr().out
    assert "1 worse, 0 better, 0 same, 0 new, 0 gone" in printed
    assert "pass -> diverged, severity" in printed and "first at block1/depthwise_bn (BatchNormalization)" in printed
    # Sweeps without a common cell say nothing of each other.
    assert main([str(tmp_path / "net.onnx"), "-o", str(tmp_path / "other"), "--against", str(tmp_path / "monday")]) == 1
    assert "no cell is in both sweeps: nothing was compared" in capsys.readouterr().out
    # A failure that was there before is no reason to stop; a finished sweep is compared without its models.
    assert main([str(tmp_path / "tuesday"), "--against", str(tmp_path / "tuesday"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["against"]["same"] == 1
    report = next(row["report"] for row in sweeps.table(tmp_path / "tuesday"))
    assert (tmp_path / "tuesday" / report).read_text().lower().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no [[models]]"),
        ("models = 3", "models must be tables, each under a line [[models]]"),
        ('[[models]]\npath = "x"\nshape = 3', "shape is 3; it must be a table"),
        ('[[models]]\npaht = "x"', "a row of [[models]] has the key 'paht'; it must be one of path, sha256"),
        ('[[models]]\npath = "x"\nsha256 = "y"', "must have either path or sha256"),
        ('[[models]]\npath = "x"\n[[options]]\nrewrites = "none"', "a row of [[options]] has the key 'rewrites'"),
        ('[[models]]\npath = "x"\n[limits]\nmemory = "much"', "memory of [limits] is 'much'; it must be a number of bytes"),
        ('[[models]]\npath = "x"\n[limits]\ntime = 0', "time of [limits] is 0; it must be seconds above 0"),
        ('[[models]]\npath = "x"\ninputs = ["y"]', "a row of [[models]] asks for inputs 'y'; there is no such [[inputs]]"),
        ('[[models]]\npath = "x"\n[[inputs]]\nseed = 1\npath = "y"', "has path and seed; it must have one of them"),
        ('executors = ["a,b,c"]\n[[models]]\npath = "x"', "executors has 'a,b,c'; each entry must be one executor or a pair"),
        ('[[models]\npath = "x"', "is not a TOML file"),
    ],
)
def test_a_wrong_spec_is_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        spec_in(tmp_path, text)
    assert sentence in str(caught.value)


def test_folders_that_are_not_for_a_sweep_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweeps.small_models(tmp_path / "models", "one")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("sir")
    assert main([str(tmp_path / "models"), "-o", str(tmp_path / "letters")]) == 2
    assert "is not empty and not of a sweep; -o names another folder" in capsys.readouterr().err
    assert main([str(tmp_path / "letters"), "-o", str(tmp_path / "out")]) == 2
    assert "has no model" in capsys.readouterr().err
    from parallax.sweep.records import Records

    with Records(tmp_path / "out").locked():
        assert main([str(tmp_path / "models"), "-o", str(tmp_path / "out")]) == 2
        assert "another sweep is writing to" in capsys.readouterr().err
    assert main([str(tmp_path / "models"), "-o", str(tmp_path / "out"), "-k", "two"]) == 2
    assert "no model is named like 'two'" in capsys.readouterr().err


def test_a_missing_package_is_a_sentence() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None; sys.modules['distributed'] = None\n"
        "from parallax.sweep.command import main\n"
        f"raise SystemExit(main([{str(sweeps.SAMPLES)!r}, '-o', 'unused']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "the Python package pyarrow, which writes and reads the table of a sweep, is missing: pip install 'parallax-onnx[sweep]'" in done.stderr
