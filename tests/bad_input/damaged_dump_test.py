#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares dumps of which one payload is damaged with the real program, and looks for the damage in everything it says.

damaged_dump_test.py PARALLAX

The exit code is that of an unreadable file and stderr names the value, whatever else was found; what is intact is compared, in every
form of the report.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

from dumps import npy, npz

COUNT = 8
FLOATS = f"type {{ tensor_type {{ elem_type: 1 shape {{ dim {{ dim_value: {COUNT} }} }} }} }}"
MODEL = f"""ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g"
  node {{ op_type: "Neg" name: "negate" input: "x" output: "h" }}
  node {{ op_type: "Abs" name: "size" input: "h" output: "s" }}
  node {{ op_type: "Sqrt" name: "root" input: "s" output: "y" }}
  input {{ name: "x" {FLOATS} }} output {{ name: "y" {FLOATS} }} }}"""
X = [1.0 + index * index for index in range(COUNT)]
VALUES = {"x": X, "h": [-x for x in X], "s": [x * 1.0 for x in X], "y": [x ** 0.5 for x in X]}
FILE = 5


def payload(values):
    return struct.pack(f"<{COUNT}f", *values)


class DamagedDump(unittest.TestCase):
    program = ""

    def setUp(self):
        self._temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self._temporary.cleanup)
        self.folder = Path(self._temporary.name)
        (self.folder / "m.textproto").write_text(MODEL)

    def run_program(self, *arguments):
        return subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=120)

    def make(self, name, damaged=None, **changes):
        """A dump of the model's values, `changes` among them (None leaves one out), with a bit of the payload of `damaged` flipped."""
        values = {key: value for key, value in {**VALUES, **changes}.items() if value is not None}
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({COUNT},), }}"
        (self.folder / f"{name}.npz").write_bytes(npz({f"{key}.npy": npy(header, payload(value)) for key, value in values.items()}))
        done = self.run_program("import", f"{name}.npz", "-o", f"{name}.plx", "--model", "m.textproto")
        self.assertEqual(done.returncode, 0, done.stderr)
        if damaged:
            self.damage(f"{name}.plx", values[damaged])
        return f"{name}.plx"

    def damage(self, name, values):
        content = bytearray((self.folder / name).read_bytes())
        at = content.find(payload(values))
        self.assertGreater(at, 0)
        content[at] ^= 1
        (self.folder / name).write_bytes(content)

    def assert_names(self, done, value):
        self.assertEqual(done.returncode, FILE, done.stdout + done.stderr)
        self.assertRegex(done.stderr, f"value '{value}': '[^']+': the payload at offset \\d+ is damaged: its CRC is wrong")

    def test_text(self):
        done = self.run_program("diff", self.make("a"), self.make("b", "h"))
        self.assert_names(done, "h")
        self.assertRegex(done.stdout, "^inconclusive  4 values: 3 compared, 3 passed, 0 diverged, 1 not compared\n"
                                      "  value 'h' is damaged in B\n")
        self.assertIn("not compared: 1 damaged in B\n", done.stdout)
        self.assertRegex(done.stdout, "damaged in B: value 'h': 'b.plx': the payload at offset")

    def test_intact_dumps_say_nothing_of_it(self):
        done = self.run_program("diff", self.make("a"), self.make("b"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("damaged", done.stdout + done.stderr)

    def test_json_is_the_error_and_what_was_compared(self):
        done = self.run_program("diff", self.make("a", "h"), self.make("b"), "--json")
        self.assertEqual(done.returncode, FILE)
        document = json.loads(done.stdout)
        self.assertEqual(sorted(document["error"]), ["code", "message", "node", "op"])
        self.assertEqual(document["error"]["code"], FILE)
        self.assertIn("value 'h'", document["error"]["message"])
        self.assertEqual(document["verdict"], "inconclusive")
        self.assertEqual([(value["path"], value["verdict"], value["reason"]) for value in document["values"]],
                         [("x", "pass", None), ("h", "not_compared", "not captured"), ("s", "pass", None), ("y", "pass", None)])

    def test_report_files(self):
        done = self.run_program("diff", self.make("a"), self.make("b", "h"), "--junit", "r.xml", "--html", "r.html", "--csv", "r.csv",
                                "--netron", "r.json")
        self.assert_names(done, "h")
        suite = ElementTree.parse(self.folder / "r.xml").getroot().find("testsuite")
        self.assertEqual({key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")},
                         {"tests": "5", "failures": "1", "errors": "1", "skipped": "0"})
        cases = {case.get("name"): case for case in suite}
        self.assertEqual(cases["h"].find("error").get("message"), "damaged in B")
        self.assertIn("value 'h' is damaged in B", cases["verdict"].find("failure").get("message"))
        page = (self.folder / "r.html").read_text()
        self.assertIn("<p>value &#39;h&#39; is damaged in B</p>", page.replace("'", "&#39;"))
        self.assertIn('<p class="damage">damaged in B: value ', page)
        rows = (self.folder / "r.csv").read_text().splitlines()
        self.assertEqual(len(rows), 5)
        self.assertEqual([",not_compared," in row and ",damaged in B," in row for row in rows[1:]], [False, True, False, False])
        self.assertIn("not_compared: damaged in B", (self.folder / "r.json").read_text())

    def test_the_cause_of_a_damaged_value_is_found(self):
        """y is wrong in B; what precedes it is computed from x, since h is damaged."""
        wrong = [value + (1 if index == 3 else 0) for index, value in enumerate(VALUES["s"])]
        files = self.make("a", "h"), self.make("b", s=wrong, y=[value ** 0.5 for value in wrong])
        for verb in ("diff", "blame"):
            done = self.run_program(verb, *files)
            self.assert_names(done, "h")
            self.assertTrue(done.stdout.startswith("diverged"), done.stdout)
            self.assertRegex(done.stdout, "cause 1: Abs 'size', side B")
        document = json.loads(self.run_program("blame", *files, "--json").stdout)
        self.assertEqual([cause["node"] for cause in document["causes"]], ["size"])
        self.assertEqual(document["error"]["code"], FILE)

    def test_a_damaged_value_that_one_side_alone_has(self):
        """Nothing compares it, but the search for causes reads it: it ends without causes, the comparison stays."""
        wrong = [value + 1 for value in VALUES["s"]]
        done = self.run_program("diff", self.make("a", "h"), self.make("b", h=None, s=wrong))
        self.assert_names(done, "h")
        self.assertTrue(done.stdout.startswith("diverged  4 values: 3 compared"), done.stdout)
        self.assertIn("damaged: looking for causes: value 'h'", done.stdout)

    def test_a_baseline_that_is_damaged(self):
        done = self.run_program("run", "m.textproto", "--with", "reference", "--dump", "d")
        self.assertEqual(done.returncode, 0, done.stderr)
        file = self.folder / "d" / "reference.plx"
        found = self.run_program("export", "d/reference.plx", "-o", "d.npz")
        self.assertEqual(found.returncode, 0, found.stderr)
        with zipfile.ZipFile(self.folder / "d.npz") as archive:
            values = archive.read("h.npy")[-4 * COUNT:]
        content = bytearray(file.read_bytes())
        content[content.find(values)] ^= 1
        file.write_bytes(content)
        done = self.run_program("run", "m.textproto", "--with", "reference", "--baseline", "d/reference.plx")
        self.assert_names(done, "h")
        self.assertIn("not compared: 1 damaged in A", done.stdout)

    def test_check_names_it(self):
        done = self.run_program("check", self.make("b", "h"))
        self.assertEqual(done.returncode, FILE)
        self.assertTrue(re.search(r"Tensor 'h'.*CRC", done.stdout), done.stdout)


if __name__ == "__main__":
    DamagedDump.program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
