# SPDX-License-Identifier: Apache-2.0
"""The picture of the folders: arrows follow the include lines, and a picture of other lines is called out of date."""

import sys
import tempfile
import unittest
from pathlib import Path

import picture

BASE = "// A header of a small tree, good in every respect.\n#pragma once\n"
TREE = {
    "inspector/base/result.h": BASE,
    "inspector/tensor/tensor.h": BASE + '#include "inspector/base/result.h"\n',
    "inspector/exec/executor.h": BASE + '#include "inspector/tensor/tensor.h"\n#include "inspector/base/result.h"\n',
}


def arrows(dot):
    return [line.strip().rstrip(";") for line in dot.splitlines() if "->" in line]


class Picture(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        (self.root / "assets").mkdir()
        for name, text in TREE.items():
            self.write(name, text)

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def store(self, dot):
        stamp = f"<!-- tests/tidy/picture.py draws this from {picture.stamp_of(dot)} -->"
        self.write(picture.PICTURE, f'<?xml version="1.0"?>\n{stamp}\n<svg></svg>\n')

    def test_arrows_are_the_includes_that_no_others_imply(self):
        self.assertEqual(arrows(picture.dot_of(self.root)), [
            '"inspector/tensor" -> "inspector/base"', '"inspector/exec" -> "inspector/tensor"'])

    def test_include_in_a_comment_draws_no_arrow(self):
        before = picture.dot_of(self.root)
        self.write("inspector/dump/dump.h", BASE + '// #include "inspector/exec/executor.h"\n')
        self.assertEqual(picture.dot_of(self.root), before)

    def test_picture_of_the_same_includes_is_current(self):
        self.store(picture.dot_of(self.root))
        self.assertEqual(picture.problem_of(self.root, picture.dot_of(self.root)), "")

    def test_new_include_makes_the_picture_out_of_date(self):
        self.store(picture.dot_of(self.root))
        self.write("inspector/dump/dump.h", BASE + '#include "inspector/exec/executor.h"\n')
        self.assertIn("shows other includes", picture.problem_of(self.root, picture.dot_of(self.root)))

    def test_missing_picture_is_named_with_the_command_that_draws_it(self):
        self.assertIn("run that program", picture.problem_of(self.root, picture.dot_of(self.root)))

    def test_cycle_ends_the_program(self):
        self.write("inspector/base/bad.h", BASE + '#include "inspector/exec/executor.h"\n')
        with self.assertRaises(SystemExit):
            picture.dot_of(self.root)

    def test_each_folder_of_the_table_belongs_to_a_group(self):
        for row in picture.rows():
            self.assertLess(picture.group_of(row), len(picture.GROUPS))
        self.assertNotIn("tests", picture.rows())


if __name__ == "__main__":
    sys.exit(unittest.main())
