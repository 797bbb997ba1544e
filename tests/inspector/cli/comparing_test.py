#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Comparisons as the command line prints them: one fault has one figure; different models; several dumps.

comparing_test.py PARALLAX
"""

import csv
import json
import re

from program import ProgramTest, main, node


def weights(name, dims, scale):
    """An initializer whose values follow from their indices, each of its own size and sign."""
    count = 1
    for dim in dims:
        count *= dim
    values = " ".join(f"float_data: {scale * ((37 * index) % 101 - 50) / 50:.6f}" for index in range(count))
    return f'initializer {{ name: "{name}" data_type: 1 {" ".join(f"dims: {dim}" for dim in dims)} {values} }} '


class Comparing(ProgramTest):
    def write_gated(self, name, alpha):
        """A squeeze-and-excitation block, of which the executor `cpu` fuses the second convolution and what follows it."""
        gate = f'attribute {{ name: "alpha" type: FLOAT f: {alpha} }}'
        self.write_model(
            name,
            node("Conv", "x w0", "c0") + node("HardSwish", "c0", "h0") + node("GlobalAveragePool", "h0", "p") +
            node("Conv", "p w1", "c1") + node("Relu", "c1", "r") + node("Conv", "r w2", "c2") +
            node("HardSigmoid", "c2", "gate", f'name: "gated" {gate}') + node("Mul", "h0 gate", "m") +
            node("Conv", "m w3", "c3") + node("HardSwish", "c3", "y"),
            dims="dim { dim_value: 1 } dim { dim_value: 8 } dim { dim_value: 6 } dim { dim_value: 6 }",
            more="".join(weights(f"w{index}", (8, 8, 1, 1), 0.3 + 0.1 * index) for index in range(4)))

    def test_one_fault_has_one_figure(self):
        self.write_gated("a.textproto", 0.1666667)
        self.write_gated("b.textproto", 0.2)
        ran = self.run_program("run", "a.textproto", "--against", "b.textproto", "--with", "cpu", "--dump", "out", "--json")
        self.assertEqual(ran.returncode, 1, ran.stderr)
        dumps = ("out/A-cpu.plx", "out/B-cpu.plx")
        kept = self.run_program("diff", *dumps, "--json")
        [in_run], [in_diff] = (json.loads(ended.stdout)["causes"] for ended in (ran, kept))
        self.assertEqual(in_run["node"], "gated")
        for key in ("node", "path", "introduced", "inherited", "why"):
            self.assertEqual(in_run[key], in_diff[key], key)

    def test_numbers_that_are_not_finite_are_counted_next_to_averages(self):
        self.write_softmaxes()
        text = self.run_program("run", "safe.textproto", "--against", "naive.textproto", "--csv", "values.csv").stdout
        [line] = [line for line in text.splitlines() if line.startswith("diverged     y ")]
        found = re.search(r"NaN: 0 in A, (\d+) in B; averages are over (\d+) of 16 pairs$", line)
        self.assertIsNotNone(found, line)
        with open(self.folder / "values.csv", newline="") as file:
            [row] = [row for row in csv.DictReader(file) if row["path"] == "y"]
        self.assertEqual((row["nan_a"], row["nan_b"], row["finite_pairs"]), ("0", found[1], found[2]))
        self.assertEqual(int(found[1]) + int(found[2]), 16)

    def test_blame_lists_causes_and_values_when_asked(self):
        self.write_dumps()
        dumps = ("base.plx", "far.plx")
        text = self.run_program("blame", *dumps).stdout
        self.assertIn("\ncause 1: HardSigmoid 'gated'", text)
        self.assertNotIn("worst first", text)
        asked = self.run_program("blame", *dumps, "--top", "2").stdout
        self.assertTrue(asked.startswith(text.rstrip()), asked)
        self.assertIn("worst first", asked)

    def write_dumps(self):
        """base.plx, and next to it near.plx (by another executor), far.plx (a fault), other.plx (another model)."""
        self.write_gated("a.textproto", 0.1666667)
        self.write_gated("b.textproto", 0.2)
        for name, model, executor in (("base", "a", "reference"), ("near", "a", "cpu"), ("far", "b", "reference"), ("other", "m", "cpu")):
            self.assertEqual(self.run_program("run", f"{model}.textproto", "--with", executor, "--dump", name).returncode, 0)
            (self.folder / name / f"{executor}.plx").rename(self.folder / f"{name}.plx")

    def test_several_dumps_against_one_baseline(self):
        self.write_dumps()
        ended = self.run_program("diff", "base.plx", "near.plx", "far.plx", "--html", "runs.html", "--top", "3")
        self.assertEqual(ended.returncode, 1, ended.stderr)
        lines = ended.stdout.splitlines()
        self.assertEqual(lines[0], "diverged  2 runs against base.plx: 1 passed, 1 diverged")
        self.assertRegex(ended.stdout, r"\n +1  near.plx +pass +\d+ of \d+ +0 ")
        self.assertRegex(ended.stdout, r"\n +2  far.plx +diverged +\d+ of \d+ +[1-9]\d* .*gate \(made by HardSigmoid 'gated'\)\n +cause: HardSigmoid 'gated'")
        self.assertEqual(len([line for line in lines if line.startswith("gate ")]), 1)
        page = (self.folder / "runs.html").read_text()
        self.assertEqual(page.count("<polyline"), 2)
        self.assertIn("parallax diff base.plx near.plx far.plx", page)
        # The usual documents, pair by pair.
        document = json.loads(self.run_program("diff", "base.plx", "near.plx", "far.plx", "--json").stdout)
        self.assertEqual((document["verdict"], document["baseline"]), ("diverged", "base.plx"))
        for run in document["runs"]:
            alone = json.loads(self.run_program("diff", "base.plx", run["file"], "--json").stdout)
            self.assertEqual(run["comparison"], alone)

    def test_the_exit_code_is_the_worst_of_the_pairs(self):
        self.write_dumps()
        self.assertEqual(self.run_program("diff", "base.plx", "base.plx", "near.plx").returncode, 0)
        (self.folder / "cut.plx").write_bytes(b"no dump")
        for line, message in ((("near.plx", "m.textproto"), "'m.textproto' is no dump"), (("near.plx", "far.plx", "--csv", "f.csv"), "of one pair")):
            ended = self.run_program("diff", "base.plx", *line)
            self.assertEqual(ended.returncode, 2)
            self.assertIn(message, ended.stderr)
        self.assertEqual(self.run_program("diff", "base.plx", "near.plx", "cut.plx").returncode, 5)

    def test_dumps_of_different_models_say_so(self):
        self.write_dumps()
        text = self.run_program("diff", "base.plx", "other.plx", "--html", "page.html", "--top", "-1").stdout
        sentence = "A and B are of different models: 'a.textproto' and 'm.textproto'; values are paired by name and structure, and none of "
        self.assertTrue(text.splitlines()[1].strip().startswith(sentence), text)
        self.assertIn("\nnot compared", text)
        self.assertNotIn("not_compared", text)
        document = json.loads(self.run_program("diff", "base.plx", "other.plx", "--json").stdout)
        self.assertTrue(document["different_models"].startswith(sentence))
        self.assertIn("A and B are of different models", (self.folder / "page.html").read_text())
        self.assertNotIn("different models", self.run_program("diff", "base.plx", "far.plx").stdout)

    def test_pictures_show_the_culprit_and_the_longest_axis(self):
        self.write_dumps()
        dot = self.run_program("dot", "base.plx", "far.plx", "--focus", "gate").stdout
        marked = [line for line in dot.splitlines() if "culprit" in line]
        self.assertEqual(len(marked), 1)
        self.assertIn("HardSigmoid", marked[0])
        self.run_program("diff", "base.plx", "far.plx", "--html", "page.html")
        self.assertIn("1 rows by 8 columns", (self.folder / "page.html").read_text())  # of [1,8,1,1]


if __name__ == "__main__":
    main()
