#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PARALLAX_ISA lowers the vector instructions of every kernel, and no value of a sample depends on them.

instruction_sets_test.py PARALLAX
"""

import json
import os
from pathlib import Path

from program import ProgramTest, main

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
LEVELS = ("portable", "avx2", "avx512")


class InstructionSets(ProgramTest):
    def at_level(self, level, *arguments):
        os.environ["PARALLAX_ISA"] = level
        self.addCleanup(os.environ.pop, "PARALLAX_ISA", None)
        return self.run_program(*arguments)

    def test_doctor_tells_the_lowered_level(self):
        self.assertIn("portable code only", self.at_level("portable", "doctor").stdout)
        self.assertNotIn("avx512", self.at_level("avx2", "doctor").stdout)

    def test_the_reference_gives_the_same_bits_at_every_level(self):
        for sample in ("cnn", "greedy_decoder"):
            for level in LEVELS:
                made = self.at_level(level, "run", SAMPLES / sample / "model.onnx", "--with", "reference", "--inputs",
                                     SAMPLES / sample / "test_data_set_0", "--dump", f"{sample}-{level}")
                self.assertEqual(made.returncode, 0, made.stderr)
            for level in LEVELS[1:]:
                (a,), (b,) = ((self.folder / f"{sample}-{name}").glob("*.plx") for name in (LEVELS[0], level))
                compared = self.run_program("diff", a, b, "--rtol", "0", "--atol", "0", "--json")
                self.assertEqual(compared.returncode, 0, f"{sample} at {level}: {compared.stdout[:2000]}")
                self.assertEqual(json.loads(compared.stdout)["summary"]["diverged"], 0)

    def test_cpu_agrees_with_the_reference_at_every_level(self):
        for level in LEVELS:
            run = self.at_level(level, "run", SAMPLES / "cnn" / "model.onnx", "--with", "reference,cpu", "--inputs",
                                SAMPLES / "cnn" / "test_data_set_0")
            self.assertEqual(run.returncode, 0, f"{level}: {run.stdout}{run.stderr}")


if __name__ == "__main__":
    main()
