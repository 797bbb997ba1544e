#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inputs and expected results of other tools: bfloat16 as numpy holds it, results next to inputs, Polygraphy's JSON, and
several samples in one run.

samples_test.py PARALLAX
"""

import json
from pathlib import Path

from program import ProgramTest, main

FILES = Path(__file__).resolve().parent / "files"
SETS = FILES / "datasets"
HALF = FILES / "bf16_io"
A, B = str(SETS / "A.onnx"), str(SETS / "B.onnx")


class Samples(ProgramTest):
    def ended(self, code, *line):
        ended = self.run_program(*(str(word) for word in line))
        self.assertEqual(ended.returncode, code, f"{line}: {ended.stdout} {ended.stderr}")
        return ended

    def outputs(self, *line):
        return json.loads(self.ended(0, *line, "--json").stdout)["outputs"]

    def test_bfloat16_as_numpy_holds_it_gives_what_safetensors_give(self):
        model = HALF / "bf16.onnx"
        wanted = self.outputs("run", model, "--with", "reference", "--inputs", HALF / "x.safetensors")
        self.assertEqual(wanted[0]["dtype"], "bfloat16")
        for name, note in (("ml.npz", ""), ("u16.npz", "the uint16 data is taken as its bits"),
                           ("f32.npz", "input 'x' is bfloat16: the float32 data is converted to it")):
            with self.subTest(name):
                given = self.ended(0, "run", model, "--with", "reference", "--inputs", HALF / name, "--json")
                self.assertEqual(json.loads(given.stdout)["outputs"], wanted)
                self.assertIn(note, given.stderr)

    def test_float32_into_a_float16_model_is_converted_with_a_note(self):
        ended = self.ended(0, "run", HALF / "f16.onnx", "--with", "reference,cpu", "--inputs", HALF / "f32.npz")
        self.assertIn("input 'x' is float16: the float32 data is converted to it", ended.stderr)

    def test_an_import_takes_bits_where_the_model_declares_bfloat16(self):
        self.ended(0, "import", HALF / "u16.npz", "-o", "u.plx", "--model", HALF / "bf16.onnx")
        self.ended(0, "import", HALF / "x.safetensors", "-o", "x.plx", "--model", HALF / "bf16.onnx")
        self.assertIn("1 compared, 1 passed", self.ended(1, "diff", "x.plx", "u.plx").stdout)

    def test_an_output_next_to_the_inputs_is_expected(self):
        ended = self.ended(0, "run", FILES / "qdq_one_step/model.onnx", "--with", "cpu", "--inputs",
                           FILES / "qdq_one_step/xy_ort.npz")
        self.assertIn("1 of 1 outputs as expected", ended.stdout)

    def test_names_that_the_model_lacks_are_ignored_unless_an_input_is_missing(self):
        self.ended(0, "import", SETS / "sample0.npz", "-o", "x.plx")
        self.ended(0, "import", SETS / "sample1.npz", "-o", "z.plx")
        self.ended(0, "export", "x.plx", "-o", "arrays")
        (self.folder / "arrays/x.npy").rename(self.folder / "arrays/X.npy")
        self.ended(0, "import", "arrays", "-o", "misspelt.plx")
        self.ended(0, "export", "misspelt.plx", "-o", "misspelt.npz")
        ended = self.ended(2, "run", A, "--with", "reference", "--inputs", "misspelt.npz")
        self.assertIn("names 'X', which is no input of the model", ended.stderr)
        ended = self.ended(0, "run", A, "--with", "reference", "--inputs", "misspelt.npz", "--input", "x=arrays/X.npy")
        self.assertIn("also holds 'X'", ended.stderr)

    def test_the_worst_of_three_data_sets_comes_first(self):
        ended = self.ended(1, "run", A, "--against", B, "--inputs", SETS / "set")
        lines = ended.stdout.splitlines()
        self.assertEqual(lines[0], "3 samples, worst first")
        self.assertRegex(lines[1], r"^  diverged +test_data_set_2  largest severity")
        self.assertRegex(lines[2], r"^  diverged +test_data_set_1  largest severity 0.0")  # the constant differs
        self.assertIn("test_data_set_2:", lines)
        document = json.loads(self.ended(1, "run", A, "--against", B, "--inputs", SETS / "set", "--json").stdout)
        self.assertEqual((document["verdict"], document["worst"]), ("diverged", "test_data_set_2"))
        self.assertEqual([(sample["name"], sample["result"]["verdict"]) for sample in document["samples"]],
                         [(f"test_data_set_{number}", "diverged") for number in range(3)])
        ended = self.ended(1, "run", B, "--with", "reference", "--inputs", SETS / "set")
        self.assertRegex(ended.stdout, r"  diverged +test_data_set_2 .*\n  pass +test_data_set_")

    def test_several_inputs_are_samples_and_results_belong_to_those_before(self):
        samples = [word for number in range(3) for word in ("--inputs", SETS / f"sample{number}.npz")]
        ended = self.ended(1, "run", A, "--against", B, *samples)
        self.assertRegex(ended.stdout.splitlines()[1], r"^  diverged +sample2.npz")
        self.assertIn("3 samples, worst first", self.ended(0, "run", A, "--with", "cpu", *samples).stdout)
        ended = self.ended(2, "blame", A, "--against", B, *samples)
        self.assertIn("only run takes several samples", ended.stderr)
        ended = self.ended(2, "run", A, "--with", "cpu", *samples, "--save-baseline", "b.plx")
        self.assertIn("--save-baseline takes one sample", ended.stderr)

    def test_polygraphy_gives_inputs_and_results(self):
        both = ("--inputs", SETS / "poly_inputs.json", "--inputs", SETS / "poly_results.json")
        ended = self.ended(0, "run", A, "--with", "reference", *both)
        self.assertIn("1 of 1 outputs as expected", ended.stdout)
        ended = self.ended(1, "run", B, "--with", "reference", *both)
        self.assertIn("0 of 1 outputs as expected", ended.stdout)
        self.ended(0, "import", SETS / "poly_results.json", "-o", "p.plx", "--model", A)
        self.ended(0, "run", A, "--with", "reference", "--inputs", SETS / "sample2.npz", "--dump", "out")
        self.assertIn("1 compared, 1 passed", self.ended(0, "diff", "out/reference.plx", "p.plx").stdout)
        ended = self.ended(2, "run", A, "--with", "reference", "--inputs", SETS / "poly_results.json")
        self.assertIn("holds results alone", ended.stderr)

    def test_broken_polygraphy_files_are_refused(self):
        for text, word in (("{", "it is no JSON that Polygraphy wrote"), ("[]", "no iteration"),
                           ('[{"x": {"array": "?", "polygraphy_class": "ndarray"}}]', "no base64"),
                           ('[{"x": {"array": "AAAA", "polygraphy_class": "ndarray"}}]', "no .npy file"),
                           ('{"lst": [], "polygraphy_class": "RunResults"}', "no list of runners"),
                           ('{"lst": [["a", []], ["b", []]], "polygraphy_class": "RunResults"}', "2 runners")):
            (self.folder / "p.json").write_text(text)
            ended = self.run_program("run", A, "--with", "reference", "--inputs", "p.json")
            self.assertIn(ended.returncode, (3, 5), text)
            self.assertIn(word, ended.stderr)

    def test_results_of_other_programs_are_met(self):
        """onnxruntime's results of a quantized model and one in half precision: one step, one rounding."""
        for case in ("qdq_one_step", "half_expected"):
            for executor in ("reference", "cpu"):
                with self.subTest(f"{case} {executor}"):
                    ended = self.ended(0, "run", FILES / case / "model.onnx", "--with", executor, "--inputs",
                                       FILES / case / "test_data_set_0")
                    self.assertIn("1 of 1 outputs as expected", ended.stdout)

    def test_two_executors_agree_on_models_of_other_libraries(self):
        for model, inputs in (("weight_only/seq.onnx", "weight_only/seq.npz"),
                              ("weight_only/seq_nbits.onnx", "weight_only/seq.npz"),
                              ("weight_only/seq_nbits8.onnx", "weight_only/seq.npz"),
                              ("sklearn/forest.onnx", "sklearn/forest.npz")):
            with self.subTest(model):  # the cpu has no trees
                executors = "reference,reference:double" if "forest" in model else "reference,cpu"
                ended = self.ended(0, "run", FILES / model, "--with", executors, "--inputs", FILES / inputs)
                self.assertTrue(ended.stdout.startswith("pass "))


if __name__ == "__main__":
    main()
