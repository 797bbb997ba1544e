#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files after a signal in the middle of a verb's work.

interrupt_test.py PARALLAX
"""

import os
import re
import signal
import subprocess
import time

from program import ProgramTest, main, node

LONG = 100_000_000  # iterations
FLOATS = "type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 8 } } } }"


def loop(iterations, factor):
    """y = x times `factor`, after a loop of so many iterations."""
    body = (f'attribute {{ name: "body" type: GRAPH g {{ name: "b" {node("Neg", "v", "w")} {node("Identity", "c", "d")} '
            f'input {{ name: "i" type {{ tensor_type {{ elem_type: 7 shape {{ }} }} }} }} '
            f'input {{ name: "c" type {{ tensor_type {{ elem_type: 9 shape {{ }} }} }} }} input {{ name: "v" {FLOATS} }} '
            f'output {{ name: "d" type {{ tensor_type {{ elem_type: 9 shape {{ }} }} }} }} output {{ name: "w" {FLOATS} }} }} }}')
    return {"nodes": node("Mul", "x k", "p") + f'node {{ op_type: "Loop" input: "n" input: "" input: "p" output: "y" {body} }}',
            "more": f"initializer {{ name: 'n' data_type: 7 int64_data: {iterations} }} "
                    f"initializer {{ name: 'k' data_type: 1 float_data: {factor} }}"}


class Interrupts(ProgramTest):
    def setUp(self):
        super().setUp()
        self.temporary = self.folder / "temporary"
        self.temporary.mkdir()
        self.write_model("long.textproto", **loop(LONG, 1))

    def interrupted(self, line, is_ready, number=signal.SIGINT):
        """Runs a line until `is_ready` of a line on stderr (None: none yet), interrupts it; what it said."""
        with open(self.folder / "said", "wb") as said:
            started = subprocess.Popen([self.program, *line.split()], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=said,
                                       env=os.environ | {"TMPDIR": str(self.temporary)})
        end = time.monotonic() + 60
        while not is_ready((self.folder / "said").read_text()) and started.poll() is None and time.monotonic() < end:
            pass
        started.send_signal(number)
        started.wait(timeout=60)
        said = (self.folder / "said").read_text()
        self.assertEqual(started.returncode, -number, said)
        self.assertEqual(list(self.temporary.iterdir()), [])
        found = re.search(r"^parallax: interrupted by (\S+): (.*)$", said, re.MULTILINE)
        self.assertIsNotNone(found, said)
        self.assertEqual(found[1], number.name)
        return found[2]

    def is_there(self, path):
        return lambda said: any(self.folder.glob(path))

    def test_the_second_pass_of_blame(self):
        self.write_model("one.textproto", **loop(20_000, 1))
        self.write_model("two.textproto", **loop(20_000, 2))
        line = "run one.textproto --against two.textproto"
        self.assertEqual(self.interrupted(line, lambda said: "running both sides again" in said and any(self.temporary.iterdir())), "nothing was written")
        kept = self.interrupted(f"{line} --dump out", lambda said: "running both sides again" in said, signal.SIGTERM)
        self.assertEqual(kept, "kept 'out/A-reference.plx', 'out/B-reference.plx'")

    def test_a_baseline_that_is_compared(self):
        self.write_model("short.textproto", **loop(2, 1))
        self.run_program("run", "short.textproto", "--with", "cpu", "--save-baseline", "kept.plx")
        self.assertEqual(self.interrupted("run long.textproto --with cpu --baseline kept.plx", lambda said: any(self.temporary.iterdir())),
                         "nothing was written")

    def test_a_run_whose_dump_stays(self):
        kept = self.interrupted("run long.textproto --with cpu --only p --dump out", self.is_there("out/cpu.plx"))
        self.assertEqual(kept, "kept 'out/cpu.plx', unfinished: what had been written can be read")

    def test_an_older_dump_keeps_its_name_until_the_new_one_is_whole(self):
        self.write_model("short.textproto", **loop(2, 1))
        older, next_to_it = self.folder / "out/cpu.plx", "out/cpu.unfinished.plx"
        for line in ("run {}.textproto --with cpu --only p --dump out", "run {}.textproto --with cpu --only p --save-baseline out/cpu.plx"):
            self.assertEqual(self.run_program(*line.format("short").split()).returncode, 0)
            before = older.read_bytes()
            kept = self.interrupted(line.format("long"), self.is_there(next_to_it), signal.SIGTERM)
            self.assertEqual(kept, f"kept '{next_to_it}', unfinished: what had been written can be read")
            self.assertEqual(older.read_bytes(), before)
            ended = self.run_program("repair", next_to_it, "-o", "out/cpu.plx")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertNotEqual(older.read_bytes(), before)
            self.assertEqual({path.name for path in (self.folder / "out").iterdir()}, {"cpu.plx", "cpu.unfinished.plx"})
            (self.folder / next_to_it).unlink()

    def test_extract(self):
        for folder, begins in (("part", "part"), ("some/new/part", "some")):
            outcome = self.interrupted(f"extract long.textproto --to y -o {folder}",
                                       self.is_there(f"{folder}/.values-*"))
            self.assertEqual(outcome, "nothing was written")
            self.assertFalse((self.folder / begins).exists())
        (self.folder / "there").mkdir()
        self.interrupted("extract long.textproto --to y -o there", self.is_there("there/.values-*"), signal.SIGHUP)
        self.assertEqual(list((self.folder / "there").iterdir()), [])

    def test_reduce_and_its_command(self):
        line = ["reduce", "m.textproto", "--check", "echo $$ > started; exec sleep 100 # {model}", "-o", "out"]
        started = subprocess.Popen([self.program, *line], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 60
        while not (self.folder / "started").exists() or not (self.folder / "started").read_text():
            self.assertLess(time.monotonic(), end)
        child = int((self.folder / "started").read_text())
        started.send_signal(signal.SIGINT)
        said = started.communicate(timeout=60)[1]
        self.assertIn("interrupted by SIGINT: kept 'out/journal.jsonl'", said)
        self.assertEqual([path.name for path in (self.folder / "out").iterdir()], ["journal.jsonl"])
        while (state := self.state_of(child)) not in ("", "Z"):
            self.assertLess(time.monotonic(), end, state)

    @staticmethod
    def state_of(process):
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                return file.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            return ""


if __name__ == "__main__":
    main()
