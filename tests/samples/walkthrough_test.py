# SPDX-License-Identifier: Apache-2.0
"""The checks of a page can fail: a wrong exit code, a missing line, another order, a failing command in the middle."""
import os
import pathlib
import sys
import tempfile
import unittest

import walkthrough


class Walkthrough(unittest.TestCase):
    def problem(self, page):
        ((commands, code, lines, _),) = walkthrough.blocks(page)
        with tempfile.TemporaryDirectory() as folder:
            return walkthrough.problem_of(commands, code, lines, folder, dict(os.environ))

    def test_accepts_what_holds(self):
        page = "```sh exit=3\necho one two\necho three\nexit 3\n```\n```text\none\nthree\n```\n"
        self.assertIsNone(self.problem(page))

    def test_refuses_another_exit_code(self):
        self.assertIn("exit code 3, the page says 0", self.problem("```sh\nexit 3\n```\n"))
        self.assertIn("exit code 0, the page says 1", self.problem("```sh exit=1\ntrue\n```\n"))

    def test_a_failing_command_in_the_middle_counts(self):
        self.assertIn("exit code 1", self.problem("```sh\nfalse\ntrue\n```\n"))

    def test_refuses_a_missing_line_and_another_order(self):
        self.assertIn("lacks the line 'two'", self.problem("```sh\necho one\n```\n```text\ntwo\n```\n"))
        self.assertIn("lacks the line 'one'", self.problem("```sh\necho one; echo two\n```\n```text\ntwo\none\n```\n"))

    def test_blocks_that_call_python_say_so(self):
        page = "```sh python exit=1\npython x.py\n```\n```text\none\n```\n```sh\ntrue\n```\n"
        self.assertEqual(walkthrough.blocks(page), [("python x.py\n", 1, ["one"], True), ("true\n", 0, [], False)])

    def test_python_is_the_one_that_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            python = pathlib.Path(sys.executable)
            environment = walkthrough.environment_of(pathlib.Path("parallax"), python, pathlib.Path(folder))
            shown = "```sh\npython -c 'import sys; print(sys.prefix)'\n```\n```text\n" + sys.prefix + "\n```\n"
            ((commands, code, lines, _),) = walkthrough.blocks(shown)
            self.assertIsNone(walkthrough.problem_of(commands, code, lines, folder, environment))


if __name__ == "__main__":
    unittest.main()
