#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sets of rewrite patterns by target: the operators of the written model, and that it still computes the same.

rewrite_test.py PARALLAX
"""

import json
import unittest
from pathlib import Path

from program import ProgramTest, main, node

SAMPLES = Path(__file__).parents[3] / "samples"
SETS = {"standard": set(), "standard+microsoft": {"com.microsoft"},
        "standard+microsoft+own": {"com.microsoft", "parallax.fused"}}


class RewriteSets(ProgramTest):
    def rewritten(self, model, patterns):
        done = self.run_program("rewrite", str(model), "--patterns", patterns, "-o", "new.onnx", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_sets_keep_to_their_operators(self):
        for model in sorted(SAMPLES.glob("*/model.onnx")):
            counts = []
            for name, domains in SETS.items():
                with self.subTest(model=model.parent.name, set=name):
                    document = self.rewritten(model, name)
                    self.assertLessEqual(set(document["custom_ops"]), domains)
                    self.assertLessEqual(document["nodes"]["after"], document["nodes"]["before"])
                    counts.append(document["nodes"]["after"])
                    self.assertEqual(self.run_program("check", "new.onnx").returncode, 0)
            self.assertEqual(counts, sorted(counts, reverse=True), model)

    def test_llama_layer_gains_fused_operators_set_by_set(self):
        model = SAMPLES / "llama_layer" / "model.onnx"
        documents = [self.rewritten(model, name) for name in SETS]
        custom = [sum(document["custom_ops"].values()) for document in documents]
        self.assertEqual(custom[0], 0)
        self.assertGreater(custom[1], 0)
        self.assertGreaterEqual(custom[2], custom[1])
        self.assertIn("attention", [row["pattern"] for row in documents[2]["applied"]])

    def test_written_models_compute_the_same(self):
        for folder in ("llama_layer", "resnet"):
            for name in SETS:
                with self.subTest(model=folder, set=name):
                    self.rewritten(SAMPLES / folder / "model.onnx", name)
                    same = self.run_program("run", str(SAMPLES / folder / "model.onnx"), "--against", "new.onnx", "--with",
                                            "reference,cpu", "--inputs", str(SAMPLES / folder / "test_data_set_0"))
                    self.assertEqual(same.returncode, 0, same.stdout)

    def test_executor_takes_a_set(self):
        for name in SETS:
            done = self.run_program("run", "m.textproto", "--with", "reference,cpu", f"--rewrite={name}")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_gelu_is_the_standard_operator_where_the_opset_has_it(self):
        constants = "".join(f"initializer {{ name: '{name}' data_type: 1 float_data: {value} }} "
                            for name, value in (("root", 1.41421356), ("one", 1), ("half", 0.5)))
        gelu = (node("Div", "x root", "a") + node("Erf", "a", "b") + node("Add", "b one", "c") + node("Mul", "x c", "d") +
                node("Mul", "d half", "y"))
        for opset, nodes in ((20, 1), (17, 5)):
            self.write_model("gelu.textproto", gelu, opset=opset, more=constants)
            document = self.rewritten("gelu.textproto", "standard")
            self.assertEqual((document["nodes"]["after"], document["custom_ops"]), (nodes, {}))
            self.assertEqual(self.run_program("run", "gelu.textproto", "--against", "new.onnx").returncode, 0)
        self.assertEqual(self.rewritten("gelu.textproto", "gelu")["custom_ops"], {"com.microsoft": 1})

    def test_unknown_sets_and_two_sets_are_refused(self):
        for patterns, words in (("standart", "there is no rewrite pattern 'standart'"), ("standard,default", "is a second set")):
            done = self.run_program("rewrite", "m.textproto", "--patterns", patterns, "-o", "new.onnx")
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    main()
