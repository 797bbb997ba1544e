#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The attack finds what it should: planted answers and files of each kind of fault, mutants that keep their format, and
calls that fail under the shim, runs of the fork server.

judge_test.py SHIM SERVER
"""

import errno
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import attack_paths  # noqa: E402
import faults  # noqa: E402
import fork_server  # noqa: E402
import judge  # noqa: E402
import model_tree  # noqa: E402
import mutants  # noqa: E402
import mutate_dumps  # noqa: E402
import mutate_models  # noqa: E402
import mutate_tensor_files  # noqa: E402
import seeds  # noqa: E402
import writers  # noqa: E402

MESSAGE = b"parallax: invalid model: 'm.onnx' is no model\n"


def answer(code=0, stdout=b"", stderr=b"", late=False, deaf=False):
    return judge.Answer(code, stdout, stderr, 0.1, late, deaf)


class Judge(unittest.TestCase):
    shim = server = ""

    def assert_found(self, words, given, line="show m.onnx"):
        found = judge.faults(given, ["parallax", *line.split()])
        self.assertTrue(any(words in problem for problem in found), found)

    def test_right_answers(self):
        for given, line in ((answer(0, b"text\n"), "show m.onnx"), (answer(3, b"", MESSAGE), "show m.onnx"),
                            (answer(1, b"diverged\n"), "diff a b"), (answer(3, b"m.onnx: node 'n': no such operator\n"), "check m.onnx"),
                            (answer(-signal.SIGINT, late=True), "run m.onnx"), (answer(0, b"{}"), "show m.onnx --json")):
            self.assertEqual(judge.faults(given, ["parallax", *line.split()]), [])

    def test_wrong_answers(self):
        for words, given in (
                ("signal SIGABRT", answer(-signal.SIGABRT, stderr=b"internal error: value.h:56\n")), ("exit code 99", answer(99)),
                ("exit code 134", answer(134)), ("does not end", answer(0, late=True)), ("nor at SIGINT", answer(0, late=True, deaf=True)),
                ("without a sentence", answer(3)), ("more than one line", answer(3, stderr=MESSAGE + b"and more of it\n")),
                ("more than 1000", answer(3, stderr=MESSAGE[:-1] + b"x" * 2000 + b"\n")), ("control character", answer(0, b"\x1b[31m")),
                ("control character", answer(3, stderr=MESSAGE[:-1] + "\u0085\n".encode())), ("not UTF-8", answer(0, b"\xff")),
                ("a newline of a name", answer(0, b"a\n" + mutate_models.MARKER.encode())), ("compares nothing", answer(1, b"x"))):
            self.assert_found(words, given)
        self.assert_found("no JSON document", answer(0, b"{} {}"), "show m.onnx --json")
        self.assert_found("no JSON document", answer(0, b'{"a": NaN}'), "show m.onnx --json")
        self.assert_found("no JSON document", answer(0, b'{"a": "\xff"}'), "show m.onnx --json")
        self.assert_found("does not fit", answer(3, b'{"error": {"code": 2, "message": "a long message"}}'), "show m.onnx --json")

    def test_reports(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, content, faulty in (
                    ("a.csv", b"name,value\n=1+1,2\n", True), ("b.csv", b"name,value\nx,-2.5\n", False), ("c.xml", b"<a>&b;</a>", True),
                    ("d.xml", b"<a>x</a>", False), ("e.svg", b"<svg>\x01</svg>", True), ("f.json", b'{"a": inf}', True),
                    ("g.html", b"<p><script>alert(1)</script>", True), ("h.html", b"<p>&lt;script&gt;alert(1)", False)):
                Path(folder, name).write_bytes(content)
                self.assertEqual(bool(judge.artifact_faults(Path(folder, name))), faulty, name)

    def test_a_child_is_ended_and_a_hang_is_seen(self):
        judge.HANG_SECONDS, kept = 0.01, judge.HANG_SECONDS
        try:
            self.assertTrue(judge.run(["sh", "-c", "trap '' INT; exec sleep 3"], ".").late)
        finally:
            judge.HANG_SECONDS = kept

    def test_trees_are_written_as_they_were_read(self):
        sample = dict(list(seeds.operator_models().items())[::20])
        for name, content in {**sample, **dict(seeds.control_flow_models())}.items():
            tree = model_tree.read_message(content).write()
            self.assertEqual(model_tree.read_message(tree).write(), tree, name)
        self.assertGreater(len(seeds.operator_models()), 1000)

    def test_records_are_written_as_they_were_read(self):
        paths = sorted((attack_paths.ROOT / "tests" / "fuzz" / "corpus" / "dump_fuzz").iterdir())
        seen = 0
        for path in paths:
            for record in mutate_dumps.read_records(path.read_bytes()):
                if record.raw[56:64] != bytes(8):  # sealed
                    record.changed = True
                    seen += 1
                    self.assertEqual(record.write(), record.raw, path)
        self.assertGreater(seen, 0)

    def test_mutants_follow_from_their_number(self):
        model = seeds.models()["loop"]
        for number in range(20):
            self.assertEqual(mutate_models.mutant(random.Random(number), model), mutate_models.mutant(random.Random(number), model))
            for ending in mutate_tensor_files.MAKERS:
                mutate_tensor_files.mutant(random.Random(number), ending)
        self.assertGreater(len({mutate_models.mutant(random.Random(number), model)[0] for number in range(20)}), 15)

    def test_equal_results(self):
        self.assertTrue(writers.same({"a.html": b"took 1.25 ms"}, {"a.html": b"took 3 ms"}))
        self.assertFalse(writers.same({"a.html": b"took 1 ms"}, {"a.html": b"took 1"}))
        self.assertFalse(writers.same({"a.npy": b"1"}, {"a.npy": b"2"}))
        self.assertFalse(writers.same({"a.npy": b"1"}, {}))
        self.assertEqual(mutants.kind_of("record at offset 12 'x'"), mutants.kind_of("record at offset 345 'yz'"))

    def test_the_shim_fails_the_call_that_is_named(self):
        program = "import os; f = os.open('a', os.O_WRONLY | os.O_CREAT); print([os.write(f, b'four') for _ in range(3)])"

        def under(fault):
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "counts").write_bytes(bytes(8 * len(faults.CALLS)))
                work = Path(folder, "work")
                work.mkdir()
                done = subprocess.run([sys.executable, "-c", program], cwd=work, capture_output=True, text=True, env={
                    **os.environ, "LD_PRELOAD": self.shim, "ATTACK_FOLDER": str(work), "ATTACK_COUNTS": f"{folder}/counts", "ATTACK_FAULT": fault})
                return done.stdout + done.stderr, struct.unpack(f"<{len(faults.CALLS)}Q", Path(folder, "counts").read_bytes())

        said, counts = under("write 0 2 2")
        self.assertEqual(said, "[4, 2, 4]\n")
        self.assertEqual(counts[faults.CALLS.index("write")], 3)
        self.assertIn(os.strerror(errno.ENOSPC), under(f"write {errno.ENOSPC} 3 3")[0])
        self.assertIn(os.strerror(errno.EIO), under(f"open {errno.EIO} 1 1")[0])

    def test_the_fork_server_runs_as_a_shell_would(self):
        program = "import os, sys; print(os.getcwd(), os.environ['TMPDIR'], *sys.argv[1:]); sys.stderr.write('e'); "
        with tempfile.TemporaryDirectory() as folder, fork_server.ForkServer(sys.executable, self.server) as server:
            for end, code in (("sys.exit(3)", 3), ("os.abort()", -signal.SIGABRT), ("pass", 0)):
                answer = server.run(["unused", "-c", program + "sys.stdout.flush(); " + end, "one", "zwei drei"], folder, "/other")
                self.assertEqual(answer[:3], (code, f"{folder} /other one zwei drei\n".encode(), b"e"))


if __name__ == "__main__":
    Judge.shim, Judge.server = map(os.path.abspath, sys.argv[1:3])
    del sys.argv[1:3]
    unittest.main()
