#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executors that are programs of their own, and `sweep`: every verb that takes them, and what ends with Parallax.

foreign_test.py PARALLAX RUNNER
"""

import itertools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from decoder_model import decoder
from program import ProgramTest, main, node

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "samples"


class Foreign(ProgramTest):
    runner = ""

    def exec(self, options=""):
        return f"cmd:{shlex.quote(self.runner)} {options}".strip()

    def json_of(self, *arguments, code=0):
        ended = self.run_program(*arguments, "--json")
        self.assertEqual(ended.returncode, code, ended.stderr + ended.stdout[-2000:])
        return json.loads(ended.stdout)

    def test_a_program_is_a_side(self):
        for options in ("", "--observes"):
            found = self.json_of("run", str(SAMPLES / "cnn/model.onnx"), "--with", f"reference,{self.exec(options)}",
                                 "--dump", "out", "--force")
            self.assertEqual(found["verdict"], "pass")
            self.assertGreater(found["summary"]["compared"], 10)
            side = found["executions"][1]
            self.assertEqual(side["device"], "a device of the test")
            self.assertEqual(side["settings"], {"kind": "test", "program": "runner 1", "optimize": "on"})
            self.assertEqual(side["wall_ms"], 0.25)  # what the program says that its run took
        names = sorted(path.name for path in (self.folder / "out").iterdir())
        self.assertEqual(names[0], "A-reference.plx")
        self.assertTrue(names[1].startswith("B-cmd:") and "/" not in names[1] and " " not in names[1], names)

    def test_the_limits_are_those_of_kernels_of_another_runtime(self):
        """A Resize that computes its coordinates in float32 passes, as a program's, and a tenfold error does not."""
        floats = "type {{ tensor_type {{ elem_type: 1 shape {{ dim {{ dim_value: 1 }} dim {{ dim_value: {} }} }} }} }}"
        (self.folder / "resize.textproto").write_text(
            'ir_version: 8 opset_import { version: 17 } graph { name: "g" '
            'node { op_type: "Resize" input: "x" input: "" input: "scales" output: "y" '
            'attribute { name: "mode" type: STRING s: "linear" } } '
            'initializer { name: "scales" data_type: 1 dims: 2 float_data: [1, 2] } '
            f'input {{ name: "x" {floats.format(1000)} }} output {{ name: "y" {floats.format(2000)} }} }}')
        for offset, code in (("2e-5", 0), ("2e-3", 1)):
            program = self.exec(f"--offset {offset}")
            run = self.json_of("run", "resize.textproto", "--with", f"reference,{program}", code=code)
            self.assertEqual(run["verdict"], "diverged" if code else "pass")
            self.json_of("blame", "resize.textproto", "--with", f"reference,{program}", code=code)
            for side, executor in (("a", "reference"), ("b", program)):
                self.json_of("run", "resize.textproto", "--with", executor, "--dump", f"{side}{offset}")
            dumps = [str(next((self.folder / f"{side}{offset}").iterdir())) for side in "ab"]
            self.json_of("diff", *dumps, code=code)

    def test_two_models_and_the_node_that_is_to_blame(self):
        a, b = (str(SAMPLES / f"fault_pair/{name}.onnx") for name in "AB")
        ours = self.json_of("run", a, "--against", b, "--with", "cpu", code=1)
        theirs = self.json_of("run", a, "--against", b, "--with", self.exec("--observes"), code=1)
        self.assertEqual([cause["node"] for cause in theirs["causes"]], [cause["node"] for cause in ours["causes"]])
        blamed = self.json_of("blame", a, "--against", b, "--with", self.exec(), code=1)
        self.assertEqual(blamed["causes"][0]["node"], ours["causes"][0]["node"])

    def test_one_program_serves_all_parts_that_reduce_tries(self):
        a, b = (str(SAMPLES / f"fault_pair/{name}.onnx") for name in "AB")
        log = self.folder / "log"
        reduced = self.json_of("reduce", a, "--against", b, "--with", self.exec(f"--log {log}"), "-o", "small")
        self.assertLessEqual(reduced["nodes"], 3)
        words = log.read_text().split()
        self.assertLessEqual(words.count("describe"), 4)
        self.assertGreater(words.count("load"), 4)

    def test_backend_tests_bench_and_profile(self):
        self.assertEqual(self.json_of("test", str(SAMPLES / "cnn"), "--with", self.exec())["passed"], 1)
        bench = self.json_of("bench", str(SAMPLES / "cnn/model.onnx"), "--with", self.exec(), "--iterations", "2")
        self.assertEqual(bench["latency_ms"]["median"], 0.25)
        profile = self.json_of("profile", str(SAMPLES / "cnn/model.onnx"), "--with", self.exec(), "--iterations", "1",
                               "--trace", "trace.json")
        self.assertIn("Conv", json.dumps(profile["ops"]))
        events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        self.assertGreater(len(events), 5)
        for before, after in itertools.pairwise(events):
            self.assertAlmostEqual(before["ts"] + before["dur"], after["ts"], delta=1e-6)

    def test_notes_and_times_are_the_programs(self):
        ended = self.run_program("bench", "m.textproto", "--with", self.exec("--note"), "--iterations", "3")
        self.assertEqual(ended.stderr.count("the runner has run"), 1, ended.stderr)
        compared = self.run_program("run", "m.textproto", "--with", f"reference,{self.exec()}").stdout
        self.assertEqual(compared.count("ms to run (with capture)"), 1, compared)
        self.assertIn("0.2 ms to run", compared)

    def test_tokens(self):
        (self.folder / "d.textproto").write_text(decoder())
        words = ("generate", "d.textproto", "--prompt-ids", "3,1,4", "--max-new-tokens", "3", "--with")
        ours = self.json_of(*words, "cpu")
        self.assertEqual(self.json_of(*words, self.exec())["sequences"], ours["sequences"])
        self.assertEqual(self.json_of(*words, f"reference,{self.exec()}")["verdict"], "pass")

    def test_a_crash_names_the_node_and_keeps_what_came_before(self):
        ended = self.run_program("run", "m.textproto", "--with", self.exec("--crash-at power"), "--dump", "out")
        self.assertEqual(ended.returncode, 4)
        self.assertIn("node 'power' (Exp-13)", ended.stderr)
        self.assertIn("signal 11 (Segmentation fault)", ended.stderr)
        self.assertIn("about to fall", ended.stderr)
        dump = next((self.folder / "out").iterdir())
        listed = {value["path"]: value["level"] for value in self.json_of("tensor", str(dump))["values"]}
        self.assertEqual(listed["h"], "all")
        self.assertNotIn("y", listed)

    def test_limits_and_options(self):
        absent = """cmd:read request; echo '{"error": "no library", "code": "unsupported"}'"""
        started = time.monotonic()
        hung = self.run_program("run", "m.textproto", "--with", self.exec("--hang-at power"), "--time-limit", "0.5")
        self.assertEqual(hung.returncode, 4)
        self.assertIn("did not answer within 0.5 s", hung.stderr)
        self.assertLess(time.monotonic() - started, 60)
        for words, sentence in (
            (["--with", "cpu", "--time-limit", "1"], "--time-limit is an option of executors that are programs"),
            (["--with", self.exec(), "--time-limit", "0"], "it must be a number of seconds above 0"),
            (["--with", self.exec(), "--tf32", "on"], "--tf32"), (["--with", self.exec(), "--keep-casts"], "--keep-casts"),
            (["--with", self.exec(), "--fallback", "reference"], "--fallback"),
            (["--with", self.exec(), "--rewrite=-fuse_gelu"], "--rewrite"),
            (["--with", "onxruntime"], "did you mean 'onnxruntime'?"), (["--with", "torch"], "write torch:FILE.pt2"),
            (["--with", absent], "no library"),
        ):
            ended = self.run_program("run", "m.textproto", *words)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn(sentence, ended.stderr)
        for more in (["--rewrite", "none"], ["--observe-all"]):
            one = self.json_of("run", "m.textproto", "--with", self.exec("--observes"), *more)
            self.assertEqual(one["execution"]["settings"]["optimize"], "off")

    def test_the_program_ends_with_parallax(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            pid = self.folder / "pid"
            pid.unlink(missing_ok=True)
            command = f"cmd:echo $$ > pid; exec {shlex.quote(self.runner)} --hang-at power --log log"
            with subprocess.Popen([self.program, "run", "m.textproto", "--with", command], cwd=self.folder,
                                  stderr=subprocess.DEVNULL) as parallax:
                self.wait_for(lambda: (self.folder / "log").exists() and "run" in (self.folder / "log").read_text())
                parallax.send_signal(number)
                parallax.wait(60)
            (self.folder / "log").unlink()
            self.wait_for(lambda: not is_running(int(pid.read_text())))

    def wait_for(self, condition):
        for _ in range(600):
            if condition():
                return
            time.sleep(0.1)
        self.fail("it did not come within a minute")

    # ---- Python ----

    def with_python(self, script, *arguments):
        python = self.folder / "python"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        return subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PARALLAX_PYTHON": str(python)})

    def test_a_python_without_the_package(self):
        for words in ("parallax.runners", "'parallax'"):  # without the module, without the package
            missing = self.with_python(f'echo "No module named {words}" >&2; exit 1', "run", "m.textproto", "--with",
                                       "onnxruntime")
            self.assertEqual(missing.returncode, 2, missing.stderr)
            self.assertIn(f"No module named {words}", missing.stderr)
            self.assertIn("-m pip install parallax-onnx", missing.stderr)
        swept = self.with_python("exit 0", "sweep", "model.onnx")
        self.assertEqual(swept.returncode, 2)
        self.assertIn("has no module parallax.sweep, or does not start", swept.stderr)
        nowhere = subprocess.run([self.program, "run", "m.textproto", "--with", "openvino"], cwd=self.folder, text=True,
                                 capture_output=True, env={**os.environ, "PARALLAX_PYTHON": "/nowhere/python"})
        self.assertEqual(nowhere.returncode, 2)
        self.assertIn("PARALLAX_PYTHON is '/nowhere/python'", nowhere.stderr)

    def test_sweep_becomes_the_python_module(self):
        script = '[ "$1" = -c ] && echo parallax.sweep && exit 0\necho "$@"\nexit 7'
        swept = self.with_python(script, "sweep", "m.onnx", "--axis", "a b", "--help")
        self.assertEqual((swept.returncode, swept.stdout), (7, "-m parallax.sweep m.onnx --axis a b --help\n"))
        self.assertIn("parallax sweep", self.run_program("sweep", "--help").stdout)

    def test_a_program_within_site_packages_finds_the_python_of_its_environment(self):
        folder, python = self.folder / "env/lib/python3.12/site-packages/parallax_onnx.scripts", self.folder / "env/bin/python3"
        folder.mkdir(parents=True)
        shutil.copy(self.program, folder / "parallax")
        python.parent.mkdir()
        python.write_text('#!/bin/sh\n[ "$1" = -c ] && echo parallax.sweep && exit\necho of the environment\n')
        python.chmod(0o755)
        without = {name: value for name, value in os.environ.items() if name not in ("PARALLAX_PYTHON", "PATH")}
        swept = subprocess.run([folder / "parallax", "sweep", "m.onnx", "--help"], capture_output=True, text=True, env=without)
        self.assertEqual((swept.returncode, swept.stdout), (0, "of the environment\n"), swept.stderr)

    def test_doctor_says_what_is_missing(self):
        items = json.loads(self.with_python('[ "$1" = -c ] && echo parallax.runners && echo torch', "doctor",
                                            "--json").stdout)["items"]
        rows = {item["topic"]: item for item in items}
        self.assertTrue(rows["executor torch"]["available"])
        self.assertFalse(rows["executor openvino"]["available"])
        self.assertIn("pip install openvino", rows["executor openvino"]["advice"])


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    Foreign.runner = os.path.abspath(sys.argv.pop(2))
    main()
