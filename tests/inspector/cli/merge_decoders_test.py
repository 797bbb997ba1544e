#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""merge-decoders: what it writes and prints, how it verifies, and what it refuses.

merge_decoders_test.py PARALLAX
"""

import json
import unittest

from program import ProgramTest, main, node

FLOAT = "type { tensor_type { elem_type: 1 shape { dim { dim_param: 'batch' } dim { dim_param: '%s' } } } }"
WEIGHT = "initializer { name: '%s' data_type: 1 dims: 20 float_data: %s } "


def scaled(weight):
    """logits = x times the largest element of the weight."""
    return (node("ReduceMax", weight, f"{weight}_max", "attribute { name: 'keepdims' i: 0 type: INT }") +
            node("Mul", f"x {weight}_max", "logits"))


def graph(nodes, inputs, outputs, weights, opset=17):
    declared = "".join(f"input {{ name: '{name}' {FLOAT % dim} }} " for name, dim in inputs.items())
    declared += "".join(f"output {{ name: '{name}' {FLOAT % dim} }} " for name, dim in outputs.items())
    declared += "".join(WEIGHT % (name, [value] * 20) for name, value in weights.items())
    return f'ir_version: 8 opset_import {{ version: {opset} }} graph {{ name: "g" {nodes} {declared} }}'


def decoder(opset=17, weight=2):
    return graph(scaled("w") + node("Neg", "x", "present.0.key"), {"x": "sequence"},
                 {"logits": "sequence", "present.0.key": "sequence"}, {"w": weight}, opset)


def decoder_with_past(weight=2):
    joined = node("Concat", "past_key_values.0.key x", "present.0.key", "attribute { name: 'axis' i: 1 type: INT }")
    return graph(scaled("v") + joined, {"x": "sequence", "past_key_values.0.key": "past"},
                 {"logits": "sequence", "present.0.key": "total"}, {"v": weight})


class MergeDecoders(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "first.textproto").write_text(decoder())
        (self.folder / "later.textproto").write_text(decoder_with_past())

    def merge(self, *more):
        return self.run_program("merge-decoders", "first.textproto", "later.textproto", "-o", "merged.onnx", *more)

    def test_document_counts_weights_and_says_what_was_verified(self):
        done = self.merge("--json", "--verify")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual((document["output"], document["condition"]), ("merged.onnx", "use_cache_branch"))
        self.assertEqual(document["weights"], {"shared": 1, "only_first": 0, "only_second": 0,
                                               "bytes": {"first": 80, "second": 80, "merged": 80}})
        self.assertEqual(document["passed_through"], [])
        self.assertIn({"kind": "weight", "model": "first.textproto", "from": "w", "to": "v"}, document["renamed"])
        self.assertEqual(document["verification"]["verdict"], "pass")
        checks = {(row["executor"], row["against"]) for row in document["verification"]["checks"]}
        models = ("first.textproto", "later.textproto")
        self.assertEqual(checks, {(executor, model) for executor in ("reference", "cpu") for model in models})
        self.assertEqual(self.run_program("check", "merged.onnx").returncode, 0)

    def test_without_verify_nothing_is_run(self):
        done = self.merge("--json", "--condition", "enable_cache")
        document = json.loads(done.stdout)
        self.assertEqual((document["condition"], document["verification"]), ("enable_cache", None))
        self.assertIn("enable_cache", self.run_program("show", "merged.onnx").stdout)

    def test_data_that_the_merged_model_does_not_give_is_a_difference(self):
        self.assertEqual(self.merge().returncode, 0)
        done = self.run_program("extract", "merged.onnx", "--to", "logits", "present.0.key", "-o", "part")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.merge("--verify", "part").returncode, 0)
        (self.folder / "first.textproto").write_text(decoder(weight=3))
        (self.folder / "later.textproto").write_text(decoder_with_past(3))
        done = self.merge("--verify", "part")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("different: logits", done.stdout)

    def test_text_names_the_file_once_and_small_sizes_exactly(self):
        done = self.merge()
        self.assertEqual(done.stdout.count("merged.onnx"), 1)
        self.assertIn("80 B, 80 B + 80 B before", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_order_and_repetition_are_refused(self):
        (self.folder / "copy.textproto").write_text(decoder())
        for first, later, words in (
            ("later", "first", "'later.textproto' reads the cache 'past_key_values.0.key' and 'first.textproto' reads none"),
            ("later", "first", "Swap the models"),
            ("first", "first", "as one model given twice"),
            ("later", "later", "as one model given twice"),
            ("first", "copy", "as one model given twice"),
            ("first", "m", "'m.textproto' reads no cache that 'first.textproto' does not read, too"),
        ):
            with self.subTest((first, later)):
                done = self.run_program("merge-decoders", f"{first}.textproto", f"{later}.textproto", "-o", "new.onnx", "--verify")
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn(words, done.stderr)
                self.assertFalse((self.folder / "new.onnx").exists())

    def test_data_are_read_before_anything_is_written(self):
        self.assertEqual(self.merge().returncode, 0)
        for source, folder in (("merged.onnx", "part"), ("later.textproto", "of_later")):
            done = self.run_program("extract", source, "--to", "logits", "present.0.key", "-o", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
        (self.folder / "empty").mkdir()
        (self.folder / "merged.onnx").unlink()
        for code, data, words in ((5, "nowhere", "--verify: there is no folder 'nowhere'"), (2, "empty", "--verify takes a test_data_set_N"),
                                  (2, "of_later", "no input 'use_cache_branch'")):
            with self.subTest(data):
                done = self.merge("--verify", data)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertNotIn("--inputs", done.stderr)
                self.assertFalse((self.folder / "merged.onnx").exists())
        self.assertEqual(self.merge("--verify", "part").returncode, 0)

    def test_refusals_are_one_sentence_and_write_nothing(self):
        (self.folder / "plain.textproto").write_text(decoder())
        (self.folder / "first.textproto").write_text(decoder(opset=18))
        for code, words, arguments in (
            (3, "ai.onnx of opset 18 and 'later.textproto' of opset 17", ("first.textproto", "later.textproto")),
            (3, "the decoder of the first step must give all of them", ("m.textproto", "later.textproto")),
            (5, "missing.onnx", ("missing.onnx", "later.textproto")),
            (2, "an input", ("plain.textproto", "later.textproto", "--condition", "x")),
        ):
            done = self.run_program("merge-decoders", *arguments, "-o", "new.onnx")
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertFalse((self.folder / "new.onnx").exists())
        done = self.run_program("merge-decoders", "later.textproto", "later.textproto", "-o", "later.textproto")
        self.assertEqual(done.returncode, 2, done.stderr)


if __name__ == "__main__":
    main()
