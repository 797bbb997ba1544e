#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manual page and the completions that the program makes of its own description.

description_test.py PARALLAX [BUILD]
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from program import ProgramTest, main

BUILD = sys.argv.pop(2) if len(sys.argv) > 2 and not sys.argv[2].startswith("-") else ""
# Programs that print what a shell offers at the end of each line of their arguments, and a mark after each.
OFFERS = {
    "bash": r"""
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
source "$SCRIPTS/parallax.bash"
for line; do
  COMP_LINE=$line COMP_POINT=${#line}
  _parallax 2>&1
  printf '%s\n' "${COMPREPLY[@]}" "<end>"
done
""",
    # The interactive shell has a terminal of its own, in which a tab is typed.
    "zsh": r"""
zmodload zsh/zpty
zpty shell "TERM=dumb zsh -f -i"
zpty -w shell "fpath=($SCRIPTS \$fpath); source $SCRIPTS/setup"
zpty -r -m shell text '*<ready>*'
for line; do
  zpty -w -n shell $'\C-u'"$line"$'\t'
  zpty -r -m shell text '*<end of list>*'
  print -r -- $text | tr -d '\r' | sed -n 's/^.*<=\(.*\)=>$/\1/p'
  print "<end>"
done
""",
    "fish": r"""
source $SCRIPTS/parallax.fish
for line in $argv
  complete -C $line | string replace -r '\t.*' ''
  echo "<end>"
end
""",
}
ZSH_SETUP = r"""
PS1= PROMPT=; stty -echo; unset zle_bracketed_paste
autoload -Uz compinit; compinit -u -D
compadd() {
  [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]] && { builtin compadd "$@"; return }
  local -a hits; local hit
  builtin compadd -A hits "$@"
  for hit in $hits; do print -r -- "<=$IPREFIX$hit=>"; done
  builtin compadd "$@"
}
offer() { _main_complete; print -r -- "<end of list>"; compstate[insert]= compstate[list]= }
zle -C offer complete-word offer
bindkey '^I' offer
print -r -- "<ready>"
"""
LINES = {
    "parallax ru": {"run"},
    "parallax re": {"reduce", "repair", "rewrite"},
    "parallax --": {"--help", "--version", "--manual", "--completion"},
    "parallax --completion ": {"bash", "zsh", "fish"},
    "parallax run --save": {"--save-baseline"},
    "parallax run m.onnx --capture s": {"sample", "shape", "stats"},
    "parallax run m.onnx --capture=al": {"all"},
    "parallax run m.onnx --with ": {"reference", "reference:double", "cpu", "cuda", "cmd:", "onnxruntime", "torch:", "openvino", "tensorrt"},
    "parallax run m.onnx --with reference,cp": {"reference,cpu"},
    "parallax run m.onnx --with=reference:d": {"double"},
    "parallax run m.onnx --baseline ": {"folder", "kept.plx"},
    "parallax run m.onnx --input x=": {"folder", "x.npy"},
    "parallax run m.onnx --dump ": {"folder"},
    "parallax run m.onnx --seed ": set(),
    "parallax run ": {"folder", "m.textproto"},
    "parallax diff run ke": {"kept.plx"},  # a file that is called like a verb is none
    "parallax test ": {"folder"},
}


class Description(ProgramTest):
    def shown(self, *line):
        ended = self.run_program(*line)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), line)
        return ended.stdout

    def offered(self, shell, scripts):
        """The completions that the shell offers at the end of each line."""
        command = {"bash": ["bash", "-c"], "zsh": ["zsh", "-f", "-c"], "fish": ["fish", "--no-config", "-c"]}[shell]
        arguments = LINES if shell == "fish" else [shell, *LINES]  # others take the first for their own name
        ended = subprocess.run([*command, OFFERS[shell], *arguments], timeout=200, cwd=self.folder, capture_output=True,
                               text=True, env={**os.environ, "SCRIPTS": str(scripts)})
        lists = ended.stdout.split("<end>\n")
        self.assertEqual(len(lists), len(LINES) + 1, ended.stderr)
        return zip(LINES, lists)

    def expect_offers(self, shell):
        if shutil.which(shell) is None:
            self.skipTest(f"{shell} is not installed")
        with tempfile.TemporaryDirectory() as name:
            scripts = Path(name)
            (scripts / ("_parallax" if shell == "zsh" else f"parallax.{shell}")).write_text(self.shown("--completion", shell))
            (scripts / "setup").write_text(ZSH_SETUP)
            for file in ("kept.plx", "notes.txt", "x.npy"):
                (self.folder / file).touch()
            (self.folder / "folder").mkdir()
            for line, offered in self.offered(shell, scripts):
                # Some shells complete the part after a sign of equality, and bash that after a colon.
                words = {word.rstrip("/").rsplit("=", 1)[-1] for word in offered.splitlines()} - {""}
                if ":" in line:
                    words = {word.rsplit(":", 1)[-1] for word in words}
                with self.subTest(shell=shell, line=line):
                    self.assertEqual(words, LINES[line])

    def test_bash_offers_verbs_options_and_values(self):
        self.expect_offers("bash")

    def test_zsh_offers_verbs_options_and_values(self):
        self.expect_offers("zsh")

    def test_fish_offers_verbs_options_and_values(self):
        self.expect_offers("fish")

    def test_the_manual_page_has_every_verb_and_option(self):
        page = self.shown("--manual")
        for word in (".SS run", ".SS merge\\-decoders", "\\fB\\-\\-save\\-baseline\\fR \\fIF.plx\\fR", ".SH EXIT STATUS"):
            self.assertIn(word, page)
        self.assertTrue(page.startswith(".TH PARALLAX 1"))

    def test_the_manual_pages_are_without_warnings(self):
        """By each program that is there: the formatter, `man`, and mandoc's reader of pages."""
        gui = subprocess.run([self.program, "--manual-of", "parallax-gui"], capture_output=True, text=True,
                             input="parallax-gui [MODEL]\n\nShows a graph: in color.\n\n  --shot F.png  a picture\n")
        self.assertIn("parallax\\-gui \\- Shows a graph\n", gui.stdout)
        readers = [command for command in (["groff", "-man", "-Tascii", "-ww", "-z"], ["man", "--warnings", "-l"],
                                           ["mandoc", "-Tlint", "-Wwarning"]) if shutil.which(command[0])]
        if not readers:
            self.skipTest("groff, man and mandoc are not installed")
        for name, page in (("parallax", self.shown("--manual")), ("parallax-gui", gui.stdout)):
            path = self.folder / f"{name}.1"
            path.write_text(page)
            for command in readers:
                with self.subTest(page=name, reader=command[0]):
                    ended = subprocess.run([*command, str(path)], capture_output=True, text=True,
                                           env={**os.environ, "MANPAGER": "cat", "MANROFFOPT": "-ww", "LC_ALL": "C.UTF-8"})
                    self.assertEqual((ended.returncode, ended.stderr), (0, ""), ended.stdout[:2000])
                    if command[0] == "man":
                        self.assertIn("EXIT STATUS" if name == "parallax" else "OPTIONS", ended.stdout)

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
