#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""reduce: commands on paths that a shell could misread, and the journal of a search that was killed.

reduce_test.py PARALLAX
"""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

from program import MODEL, ProgramTest, main

FAULT = Path(__file__).parents[3] / "samples/fault_pair"
HOSTILE = ("with blanks", "it's", 'a "quoted" name', "$(touch gotcha)", "`touch gotcha`", "; touch gotcha;", "new\nline", "-dash",
           "back\\slash", "{inputs}", "*", "~", "&", "end\n")
# Fails as long as there is a Neg in the file that the shell gives the command.
HAS_NEG = "! parallax show {word} | grep -q Neg"


class Quoting(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "bin").mkdir()
        (self.folder / "bin/parallax").symlink_to(self.program)
        self.environment = os.environ | {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "PARALLAX": self.program}

    def folder_of(self, name):
        folder = self.folder / name
        folder.mkdir()
        (folder / "m.textproto").write_text(MODEL)
        return folder

    def reduce(self, folder, check):
        shutil.rmtree(folder / "small", ignore_errors=True)
        ended = subprocess.run([self.program, "reduce", "./m.textproto", "--check", check, "-o", "small"], cwd=folder,
                               env=self.environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(ended.returncode, 0, (folder, check, ended.stderr))
        shown = subprocess.run([self.program, "show", "small/model.onnx"], cwd=folder, capture_output=True, text=True)
        self.assertIn("Neg", shown.stdout, (folder, check))
        self.assertNotIn("Exp", shown.stdout, (folder, check))
        self.assertEqual(list(self.folder.rglob("gotcha")), [], (folder, check))

    def repeats(self, folder):
        """The script finds its files from any folder and by any name, and fails as the command did."""
        script = os.path.relpath(folder / "small/repeat.sh", self.folder)
        for cwd, name in ((self.folder, script), (folder / "small", "repeat.sh"), (folder, "small/repeat.sh")):
            ended = subprocess.run(["sh", "--", name], cwd=cwd, env=self.environment | {"CDPATH": str(self.folder / "bin")},
                                   capture_output=True, text=True, timeout=120)
            self.assertEqual(ended.returncode, 1, (cwd, name, ended.stderr))
            self.assertNotIn("cd:", ended.stderr)
        self.assertEqual(list(self.folder.rglob("gotcha")), [], folder)

    def test_paths_that_a_shell_could_misread(self):
        for name in HOSTILE:
            folder = self.folder_of(name)
            for word in ("{model}", '"{model}"', "'{model}'"):
                self.reduce(folder, HAS_NEG.replace("{word}", word))
            self.repeats(folder)

    def test_a_word_for_a_second_shell(self):
        for name in HOSTILE[:7]:
            folder = self.folder_of(name)
            for check in ('sh -c "! parallax show {model} | grep -q Neg"', "sh -c '! parallax show {model} | grep -q Neg'",
                          "sh -c \"test -d {inputs} && ! parallax show {model} | grep -q 'Neg'\""):
                self.reduce(folder, check)
                self.repeats(folder)

    def test_comments_and_escapes(self):
        self.reduce(self.folder, "true \\' # don't\n! parallax show {model} | grep -q \"Neg\"")


class Journal(ProgramTest):
    def start(self):
        line = ["reduce", str(FAULT / "A.onnx"), "--check", "sleep 0.02; ! grep -q BatchNormalization {model}", "-o", "small"]
        return subprocess.Popen([self.program, *line], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def lines(self):
        path = self.folder / "small/journal.jsonl"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]

    def test_a_kill_at_any_moment_leaves_a_journal_that_is_read_again(self):
        moments = random.Random(5)
        known = []
        for _ in range(6):
            started = self.start()
            while started.poll() is None and len(self.lines()) < len(known) + 2:
                time.sleep(0.005)
            time.sleep(moments.uniform(0, 0.05))
            started.send_signal(signal.SIGKILL)
            started.communicate()
            now = self.lines()
            self.assertEqual(now[:len(known)], known)  # what was known is still
            known = now
        self.assertGreater(len(known), 3)
        started = self.start()
        _, said = started.communicate(timeout=300)
        self.assertEqual(started.returncode, 0, said)
        self.assertEqual(self.lines()[:len(known)], known)

    def test_a_line_that_is_cut_off_is_ignored_with_a_word(self):
        started = self.start()
        started.communicate(timeout=300)
        path = self.folder / "small/journal.jsonl"
        whole = path.read_bytes()
        inode = path.stat().st_ino
        for kept in (whole[:-1], whole[:-7], whole + b'{"candidate": "x"', whole + b"\0\0\0\n", whole + b"nonsense\nmore\n"):
            path.write_bytes(kept)
            started = self.start()
            _, said = started.communicate(timeout=300)
            self.assertEqual(started.returncode, 0, said)
            self.assertIn("is cut off", said)
            self.assertEqual(len(self.lines()), whole.count(b"\n"))
        self.assertEqual(path.stat().st_ino, inode)  # added to, not begun anew

    def test_another_search_begins_anew(self):
        (self.folder / "small").mkdir()
        path = self.folder / "small/journal.jsonl"
        path.write_text('{"subject": "another"}\n{"candidate": "x", "fails": true, "nodes": 1}\n')
        started = self.start()
        _, said = started.communicate(timeout=300)
        self.assertEqual(started.returncode, 0, said)
        self.assertNotIn("x", [line.get("candidate") for line in self.lines()])

    def test_a_foreign_file_of_that_name_is_kept(self):
        (self.folder / "small").mkdir()
        path = self.folder / "small/journal.jsonl"
        path.write_text("a diary\n")
        started = self.start()
        _, said = started.communicate(timeout=300)
        self.assertEqual(started.returncode, 2, said)
        self.assertIn("--force", said)
        self.assertEqual(path.read_text(), "a diary\n")


if __name__ == "__main__":
    main()
