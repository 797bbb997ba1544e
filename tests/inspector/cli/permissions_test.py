#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Permissions of everything that is written: those of the umask, or of the file that is replaced.

permissions_test.py PARALLAX
"""

import os
import shlex
import stat
import subprocess
from pathlib import Path

from program import ProgramTest, main

SAMPLES = Path(__file__).parents[3] / "samples"
REPORTS = "--html out/r.html --csv out/r.csv --junit out/r.xml --svg out/r.svg --dot out/r.dot --netron out/n.json --model-explorer out/e.json"
# Every verb that writes, into out/; in/ has what they read.
LINES = f"""run m.textproto --with reference,cpu --dump out/dumps {REPORTS}
run m.textproto --with cpu --save-baseline out/kept.plx
diff in/A-reference.plx in/B-cpu.plx --html out/diff.html
blame in/A-reference.plx in/B-cpu.plx --csv out/blame.csv
rewrite m.textproto -o out/new.onnx
convert m.textproto --to float16 -o out/half.onnx
merge-decoders {SAMPLES}/decoder/first_step.textproto {SAMPLES}/decoder/model.textproto -o out/merged.onnx
generate {SAMPLES}/decoder/model.textproto --prompt-ids 5,17,4 --max-new-tokens 2 --dump out/tokens
extract m.textproto --from h --to y -o out/part
reduce {SAMPLES}/fault_pair/A.onnx --against {SAMPLES}/fault_pair/B.onnx -o out/small
reduce m.textproto --check 'false {{model}}' -o out/smaller
export in/B-cpu.plx -o out/t.npz
export in/B-cpu.plx -o out/t.safetensors
export in/B-cpu.plx -o out/t.onnx
export in/B-cpu.plx -o out/arrays
export in/B-cpu.plx -o out/test_data_set_0
import in/B-cpu.plx -o out/imported.plx
repair in/B-cpu.plx -o out/repaired.plx
tensor in/B-cpu.plx y -o out/y.npy
dot m.textproto -o out/m.svg
profile m.textproto --with cpu --iterations 1 --trace out/t.json
audit-fp16 m.textproto --keep-file out/keep.txt --csv out/a.csv --html out/a.html""".splitlines()


class Permissions(ProgramTest):
    def setUp(self):
        super().setUp()
        self.run_program("run", "m.textproto", "--with", "reference,cpu", "--dump", "in")

    def write_all(self, umask):
        for line in LINES:
            ended = subprocess.run([self.program, *shlex.split(line)], cwd=self.folder, capture_output=True, text=True, umask=umask, timeout=300)
            self.assertEqual(ended.returncode, 0, (line, ended.stderr))

    def modes(self):
        return {str(path.relative_to(self.folder)): (path.is_dir(), stat.S_IMODE(path.lstat().st_mode))
                for path in sorted((self.folder / "out").rglob("*"))}

    def check_umask(self, umask):
        (self.folder / "out").mkdir()
        self.write_all(umask)
        written = self.modes()
        self.assertGreater(len(written), 45)
        for name, (is_folder, mode) in written.items():
            if name.endswith("repeat.sh"):
                self.assertEqual(mode, 0o777 & ~umask, name)  # whoever may read it may run it
            else:
                self.assertEqual(mode, (0o777 if is_folder else 0o666) & ~umask, name)

    def test_umask_of_a_person_alone(self):
        self.check_umask(0o077)

    def test_umask_of_a_group(self):
        self.check_umask(0o002)

    def test_a_replaced_file_keeps_its_mode(self):
        (self.folder / "out").mkdir()
        self.write_all(0o022)
        for name, (is_folder, _) in self.modes().items():
            os.chmod(self.folder / name, 0o710 if is_folder else 0o750 if name.endswith(".sh") else 0o640)
        before = self.modes()
        self.write_all(0o022)
        self.assertEqual(self.modes(), before)

    def test_a_folder_of_candidates_is_ones_own(self):
        check = "stat -c '%a %n' small/.reduce-* >> modes; false {model}"
        ended = subprocess.run([self.program, "reduce", "m.textproto", "--check", check, "-o", "small"], cwd=self.folder,
                               capture_output=True, text=True, umask=0, timeout=120)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        lines = (self.folder / "modes").read_text().splitlines()
        self.assertTrue(lines)
        for line in lines:
            self.assertTrue(line.startswith("700 "), line)
        self.assertEqual(list((self.folder / "small").glob(".*")), [])


if __name__ == "__main__":
    main()
