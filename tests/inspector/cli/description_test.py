#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manual page and the completions that the program makes of its own description.

description_test.py PARALLAX [BUILD]
"""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from program import ProgramTest, main

BUILD = sys.argv.pop(2) if len(sys.argv) > 2 and not sys.argv[2].startswith("-") else ""
COMPLETE = r"""
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
source parallax.bash
COMP_LINE=$1 COMP_POINT=${#1}
_parallax 2>&1
printf '%s\n' "${COMPREPLY[@]}"
"""


class Description(ProgramTest):
    def shown(self, *line):
        ended = self.run_program(*line)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), line)
        return ended.stdout

    def completed(self, line):
        if not (self.folder / "parallax.bash").exists():
            (self.folder / "parallax.bash").write_text(self.shown("--completion", "bash"))
        ended = subprocess.run(["bash", "-c", COMPLETE, "bash", line], cwd=self.folder, capture_output=True, text=True)
        return sorted(ended.stdout.split())

    def test_the_manual_page_has_every_verb_and_option(self):
        page = self.shown("--manual")
        for word in (".SS run", ".SS merge\\-decoders", "\\fB\\-\\-save\\-baseline\\fR \\fIF.plx\\fR", ".SH EXIT STATUS"):
            self.assertIn(word, page)
        self.assertTrue(page.startswith(".TH PARALLAX 1"))

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_the_manual_pages_are_without_warnings(self):
        gui = subprocess.run([self.program, "--manual-of", "parallax-gui"], capture_output=True, text=True,
                             input="parallax-gui [MODEL]\n\nShows a graph: in color.\n\n  --shot F.png  a picture\n")
        self.assertIn("parallax\\-gui \\- Shows a graph\n", gui.stdout)
        for page in (self.shown("--manual"), gui.stdout):
            ended = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z"], input=page, capture_output=True, text=True)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_bash_completes_verbs_options_and_values(self):
        (self.folder / "kept.plx").touch()
        (self.folder / "notes.txt").touch()
        (self.folder / "folder").mkdir()
        self.assertEqual(self.completed("parallax re"), ["reduce", "repair", "rewrite"])
        self.assertEqual(self.completed("parallax run --save"), ["--save-baseline"])
        self.assertEqual(self.completed("parallax run m.onnx --capture s"), ["sample", "shape", "stats"])
        self.assertEqual(self.completed("parallax run m.onnx --capture=al"), ["all"])
        self.assertEqual(self.completed("parallax run m.onnx --with reference,cp"), ["reference,cpu"])
        self.assertEqual(self.completed("parallax run m.onnx --with reference:d"), ["double"])
        self.assertEqual(self.completed("parallax run m.onnx --baseline "), ["folder", "kept.plx"])
        self.assertEqual(self.completed("parallax run "), ["folder", "m.textproto"])
        self.assertEqual(self.completed("parallax run m.onnx --dump "), ["folder"])
        self.assertEqual(self.completed("parallax run m.onnx --seed "), [])

    def test_scripts_of_each_shell_parse(self):
        for shell, check in (("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")):
            path = self.folder / shell
            path.write_text(self.shown("--completion", shell))
            self.assertIn("save-baseline", path.read_text())
            if shutil.which(shell):
                ended = subprocess.run([shell, check, str(path)], capture_output=True, text=True)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        ended = self.run_program("--completion", "csh")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("it must be bash, zsh or fish", ended.stderr)

    @unittest.skipUnless(BUILD, "no build folder was named")
    def test_the_files_are_installed(self):
        ended = subprocess.run(["cmake", "--install", BUILD, "--prefix", str(self.folder / "usr"), "--component",
                                "documents"], capture_output=True, text=True, env={**os.environ, "DESTDIR": ""})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        share = self.folder / "usr/share"
        self.assertEqual((share / "man/man1/parallax.1").read_text(), self.shown("--manual"))
        for name in ("bash-completion/completions/parallax", "zsh/vendor-completions/_parallax",
                     "fish/vendor_completions.d/parallax.fish"):
            self.assertGreater((share / name).stat().st_size, 1000)


if __name__ == "__main__":
    main()
