#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Outputs that would destroy what is read, or what Parallax did not write.

outputs_test.py PARALLAX
"""

import hashlib
import os
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

from program import ProgramTest, main, node

CNN = Path(__file__).parents[3] / "samples/cnn"
ENDINGS = ("csv", "junit", "html", "dot", "svg", "netron", "model-explorer")


def raw_data(count):
    return "".join(f"\\{byte:03o}" for byte in b"\x00\x00\x80\x3f" * count)


class Outputs(ProgramTest):
    def setUp(self):
        super().setUp()
        shutil.copytree(CNN, self.folder / "cnn")
        self.model = self.folder / "cnn/model.onnx"

    def hashes(self):
        """Every file of the folder, links not followed: its kind, inode and contents."""
        found = {}
        for path in sorted(self.folder.rglob("*")):
            content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(self.folder))] = (path.lstat().st_ino, hashlib.sha256(content).hexdigest())
        return found

    def refused(self, *line, naming=(), cwd="."):
        """Runs a line that must end with 2 and one sentence, and change nothing."""
        before = self.hashes()
        ended = subprocess.run([self.program, *map(str, line)], cwd=self.folder / cwd, capture_output=True, text=True, timeout=120)
        self.assertEqual(ended.returncode, 2, (line, ended.stderr))
        self.assertEqual(ended.stderr.count("parallax: "), 1, (line, ended.stderr))
        for name in naming:
            self.assertIn(name, ended.stderr, line)
        self.assertEqual(self.hashes(), before, line)
        return ended.stderr

    def passes(self, *line):
        ended = self.run_program(*map(str, line))
        self.assertEqual(ended.returncode, 0, (line, ended.stderr))
        return ended

    def test_all_files_of_a_result_are_new_or_none(self):
        self.passes("run", "cnn/model.onnx", "--with", "cpu", "--dump", "dumps")
        (self.folder / "values/add.npy").mkdir(parents=True)
        before = self.hashes()
        ended = self.run_program("export", "dumps/cpu.plx", "-o", "values")
        self.assertEqual(ended.returncode, 5, ended.stderr)
        self.assertIn("values/add.npy", ended.stderr)
        self.assertEqual(self.hashes(), before)

    def test_a_folder_that_holds_the_model(self):
        for verb in ("extract model.onnx --to add", "reduce model.onnx --with reference,cpu"):
            for force in ([], ["--force"]):
                self.refused(*verb.split(), "-o", ".", *force, cwd="cnn", naming=("'.'", "model.onnx"))
        for spelled in (".", "./", "cnn/..", "cnn", "cnn/test_data_set_0/.."):
            self.refused("extract", "cnn/model.onnx", "--to", "add", "-o", spelled, naming=("cnn/model.onnx",))
        (self.folder / "link").symlink_to("cnn")
        self.refused("extract", "cnn/model.onnx", "--to", "add", "-o", "link")
        self.refused("extract", "link/model.onnx", "--to", "add", "-o", "cnn")

    def test_dumps_may_be_next_to_the_model(self):
        self.passes("run", "cnn/model.onnx", "--with", "cpu", "--dump", "cnn")

    def test_a_folder_that_is_read(self):
        data = "cnn/test_data_set_0"
        self.refused("run", self.model, "--with", "cpu", "--inputs", data, "--dump", f"{data}/out", naming=(data,))
        self.refused("run", self.model, "--with", "reference,cpu", "--inputs", data, "--html", f"{data}/report.html", naming=(data,))
        self.refused("import", data, "-o", f"{data}/values.plx", "--force", naming=(data,))

    def test_an_input_by_every_name(self):
        (self.folder / "link.textproto").symlink_to("m.textproto")
        os.link(self.folder / "m.textproto", self.folder / "hard.textproto")
        names = ("m.textproto", "./m.textproto", "cnn/../m.textproto", str(self.folder / "m.textproto"), "link.textproto", "hard.textproto")
        for name in names:
            for line in ("rewrite", "convert --to float16", "profile --with cpu --trace", "audit-fp16 --csv", "run --with cpu --save-baseline"):
                verb, *more = line.split()
                option = [] if more and more[-1].startswith("--") and verb != "convert" else ["-o"]
                for force in ([], ["--force"]):
                    said = self.refused(verb, "m.textproto", *more, *option, name, *force, naming=(name,))
                    self.assertIn("which is read", said)
            for kind in ENDINGS:
                self.refused("run", "m.textproto", "--with", "reference,cpu", f"--{kind}", name, "--force")

    def test_dumps_that_are_read(self):
        self.passes("run", "m.textproto", "--with", "reference,cpu", "--dump", "out")
        a, b = "out/A-reference.plx", "out/B-cpu.plx"
        os.link(self.folder / a, self.folder / "hard.plx")
        for line in (f"diff {a} {b} --html {b}", f"blame {a} {b} --csv hard.plx", f"repair {a} -o hard.plx", f"export {a} -o {a}",
                     f"export {a} -o out", f"import {a} -o hard.plx", f"tensor {a} y -o out/y.npy", f"dot {a} {b} -o {a}"):
            if line.startswith("tensor"):
                self.passes(*line.split())
            else:
                self.refused(*line.split(), "--force")
        self.passes("run", "m.textproto", "--with", "cpu", "--dump", "out")
        self.refused("run", "m.textproto", "--with", "cpu", "--baseline", "out/cpu.plx", "--dump", "out", "--force",
                     naming=("out/cpu.plx",))

    def external_model(self):
        """orig.onnx, whose weights are in model.onnx.data: a model that was renamed."""
        weights = f'initializer {{ name: "k" data_type: 1 dims: 4096 raw_data: "{raw_data(4096)}" }}'
        self.write_model("inline.textproto", node("Mul", "x k", "y"), dims="dim { dim_value: 4096 }", more=weights)
        self.passes("rewrite", "inline.textproto", "-o", "model.onnx")
        data = self.folder / "model.onnx.data"
        text = (self.folder / "inline.textproto").read_text()
        entry = "external_data { key: 'location' value: 'model.onnx.data' } data_location: EXTERNAL"
        begin, end = text.index("raw_data:"), text.index('" }', text.index("raw_data:"))
        data.write_bytes(b"\x00\x00\x80\x3f" * 4096)
        (self.folder / "orig.textproto").write_text(text[:begin] + entry + text[end + 1:])
        (self.folder / "model.onnx").unlink()
        return data

    def test_external_data_of_a_renamed_model(self):
        self.external_model()
        self.passes("run", "orig.textproto", "--with", "cpu")
        for line in ("rewrite orig.textproto -o model.onnx", "convert orig.textproto --to float16 -o model.onnx",
                     "run orig.textproto --with reference,cpu --csv model.onnx.data"):
            self.refused(*line.split(), "--force", naming=("model.onnx.data",))
        os.link(self.folder / "model.onnx.data", self.folder / "other.onnx.data")
        self.refused("rewrite", "orig.textproto", "-o", "other.onnx", "--force", naming=("other.onnx.data",))
        self.passes("rewrite", "orig.textproto", "-o", "third.onnx")

    def test_foreign_files_need_force(self):
        self.passes("run", "m.textproto", "--with", "reference,cpu", "--dump", "out")
        lines = ["rewrite m.textproto -o F.onnx", "convert m.textproto --to float16 -o F.onnx", "dot m.textproto -o F.svg",
                 "profile m.textproto --with cpu --iterations 1 --trace F.json", "export out/B-cpu.plx -o F.npz",
                 "export out/B-cpu.plx -o F.safetensors", "import out/B-cpu.plx -o F.plx", "repair out/B-cpu.plx -o F.plx",
                 "tensor out/B-cpu.plx y -o F.npy", "audit-fp16 m.textproto --csv F.csv", "run m.textproto --with cpu --save-baseline F.plx"]
        lines += [f"diff out/A-reference.plx out/B-cpu.plx --{kind} F.{kind}" for kind in ENDINGS]
        for line in lines:
            words = line.split()
            output = self.folder / next(word for word in words if word.startswith("F."))
            output.write_text("a letter to the editor\n")
            said = self.refused(*words, naming=(output.name,))
            self.assertIn("--force", said)
            self.passes(*words, "--force")
            self.assertNotEqual(output.read_bytes()[:8], b"a letter", line)
            self.passes(*words)  # it is Parallax's own now
            output.unlink()
            output.touch()
            self.passes(*words)  # an empty file is nobody's
            output.unlink()

    def test_all_names_of_a_folder_are_judged_before_the_first_byte(self):
        self.passes("run", "cnn/model.onnx", "--with", "cpu", "--dump", "dumps")
        for folder in ("values", "test_data_set_0"):
            self.passes("export", "dumps/cpu.plx", "-o", folder)
            foreign = sorted((self.folder / folder).iterdir())[-1]
            foreign.write_text("a letter to the editor")
            touched = (self.folder / folder).stat().st_mtime_ns
            said = self.refused("export", "dumps/cpu.plx", "-o", folder, naming=(foreign.name,))
            self.assertIn("--force", said)
            self.assertEqual((self.folder / folder).stat().st_mtime_ns, touched, "a file was begun in the folder")

    def test_an_own_file_that_somebody_changed(self):
        self.passes("rewrite", "m.textproto", "-o", "own.onnx")
        with open(self.folder / "own.onnx", "ab") as file:
            file.write(b"\n")
        self.refused("rewrite", "m.textproto", "-o", "own.onnx", naming=("--force",))

    def test_foreign_data_sets_are_kept(self):
        shutil.copytree(self.folder / "cnn", self.folder / "mine")
        line = ["extract", "cnn/model.onnx", "--to", "add", "-o", "mine"]
        self.refused(*line, naming=("mine/", "--force"))
        (self.folder / "mine/model.onnx").unlink()
        self.refused(*line, naming=("mine/test_data_set_0", "--force"))
        self.passes(*line, "--force")
        self.passes(*line)
        shutil.copytree(self.folder / "cnn", self.folder / "other")
        self.refused("reduce", "cnn/model.onnx", "--check", "false {model}", "-o", "other", naming=("other/", "--force"))

    def test_force_without_an_output(self):
        for line in ("run m.textproto", "diff a.plx b.plx", "rewrite --list"):
            ended = self.run_program(*line.split(), "--force")
            self.assertEqual(ended.returncode, 2, line)
            self.assertIn("--force", ended.stderr)

    def test_links_are_followed_and_permissions_kept(self):
        (self.folder / "away").mkdir()
        (self.folder / "report.csv").symlink_to("away/report.csv")
        line = ["run", "m.textproto", "--with", "reference,cpu", "--csv", "report.csv"]
        self.passes(*line)
        self.assertTrue((self.folder / "report.csv").is_symlink())
        target = self.folder / "away/report.csv"
        target.chmod(0o600)
        self.passes(*line)
        self.assertEqual(stat.S_IMODE(target.stat().st_mode), 0o600)
        subprocess.run(["sh", "-c", f"umask 077; '{self.program}' dot m.textproto -o private.dot"], cwd=self.folder, check=True,
                       capture_output=True)
        self.assertEqual(stat.S_IMODE((self.folder / "private.dot").stat().st_mode), 0o600)

    def test_an_old_dump_stays_until_there_is_a_record(self):
        self.passes("run", "m.textproto", "--with", "cpu", "--dump", "out")
        before = (self.folder / "out/cpu.plx").read_bytes()
        (self.folder / "bad.npz").write_bytes(b"no archive")
        ended = self.run_program("import", "bad.npz", "-o", "out/cpu.plx")
        self.assertEqual(ended.returncode, 5, ended.stderr)
        self.assertEqual((self.folder / "out/cpu.plx").read_bytes(), before)
        self.passes("run", "m.textproto", "--with", "cpu", "--dump", "out")
        self.passes("check", "out/cpu.plx")

    def test_a_run_that_fails_replaces_no_dump_unless_a_node_failed(self):
        index = "initializer {{ name: 'i' data_type: 7 dims: 1 int64_data: {} }} "
        for name, at in (("good", 0), ("bad", 99)):
            self.write_model(f"{name}.textproto", node("Neg", "x", "n") + node("Gather", "n i", "y"), more=index.format(at))
        self.passes("run", "good.textproto", "--with", "cpu", "--dump", "out")
        before = (self.folder / "out/cpu.plx").read_bytes()
        self.write_model("large.textproto", node("Neg", "x", "y"), dims="dim { dim_value: 2000000 }")
        ended = subprocess.run(["bash", "-c", f"ulimit -f 4096; exec '{self.program}' run large.textproto --with cpu --dump out"],
                               cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(ended.returncode, 5, ended.stderr)
        self.assertIn("out/cpu.unfinished.plx'", ended.stderr)
        self.assertEqual((self.folder / "out/cpu.plx").read_bytes(), before)
        self.passes("tensor", "out/cpu.unfinished.plx")
        ended = self.run_program("run", "bad.textproto", "--with", "cpu", "--dump", "out")
        self.assertEqual(ended.returncode, 4, ended.stderr)
        self.assertIn("(Gather-13) failed", self.run_program("blame", "out/cpu.plx", "out/cpu.plx").stderr)


class Children(ProgramTest):
    """Processes that Parallax started end with it, also where it is killed."""

    def ends(self, line, environment, name):
        started = subprocess.Popen([self.program, *line], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=os.environ | environment)
        pids = self.folder / name
        end = time.monotonic() + 60
        while not (pids.exists() and pids.read_text().endswith("\n")) and started.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        child = int(pids.read_text())
        started.send_signal(signal.SIGKILL)
        started.wait()
        while self.is_alive(child) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertFalse(self.is_alive(child), line)

    def is_alive(self, child):
        try:
            return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):  # the second: it ended between the open and the read
            return False

    def test_a_check(self):
        self.ends(["reduce", "m.textproto", "--check", "sh -c 'echo $$ > pid; sleep 300; true' {model}; true", "-o", "small"], {}, "pid")

    def test_graphviz(self):
        (self.folder / "bin").mkdir()
        fake = self.folder / "bin/dot"
        fake.write_text(f"#!/bin/sh\nsh -c 'echo $$ > {self.folder}/dot.pid; sleep 300; true'\n")
        fake.chmod(0o755)
        self.ends(["dot", "m.textproto", "-o", "m.png"], {"PATH": f"{self.folder}/bin:{os.environ['PATH']}"}, "dot.pid")

    def test_temporary_folders(self):
        self.write_softmaxes()
        (self.folder / "temporary").mkdir()
        seen = set()
        started = subprocess.Popen([self.program, "blame", "safe.textproto", "--against", "naive.textproto"], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=os.environ | {"TMPDIR": str(self.folder / "temporary")})
        while started.poll() is None:
            for path in (self.folder / "temporary").iterdir():
                try:
                    seen.add((path.name, stat.S_IMODE(path.stat().st_mode)))
                except FileNotFoundError:
                    pass
        self.assertEqual(list((self.folder / "temporary").iterdir()), [])
        for name, mode in seen:
            self.assertEqual(mode, 0o700, name)
            self.assertNotIn(str(started.pid), name)


if __name__ == "__main__":
    main()
