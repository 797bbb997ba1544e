#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Half precision on the command line: convert and audit-fp16, their documents, exit codes and what they refuse.

half_test.py PARALLAX
"""

import json
import unittest
from pathlib import Path

from program import ProgramTest, main, node

SAMPLES = Path(__file__).parents[3] / "samples"
CNN = str(SAMPLES / "cnn" / "model.onnx")
CNN_DATA = str(SAMPLES / "cnn" / "test_data_set_0")
WEIGHT = 'initializer { name: "w" data_type: 1 float_data: 1e6 }'


class Half(ProgramTest):
    def document(self, *arguments, code=0):
        done = self.run_program(*arguments, "--json")
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return json.loads(done.stdout)

    def refused(self, code, sentence, *arguments):
        done = self.run_program(*arguments)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        self.assertIn(sentence, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_convert_tells_what_it_did(self):
        document = self.document("convert", CNN, "--to", "float16", "-o", "half.onnx", "--verify", CNN_DATA)
        self.assertEqual(set(document), {"to", "output", "nodes", "casts", "casts_before", "weights_bytes", "kept_weights",
                                         "infinite_weights", "verification"})
        self.assertEqual(set(document["nodes"]), {"converted", "kept", "without_half"})
        self.assertEqual(document["casts"], 0)
        self.assertEqual(document["verification"]["verdict"], "pass")
        self.assertLess(document["verification"]["per_output"]["log_probabilities"]["rel_l2"], 1e-2)
        self.assertEqual(self.run_program("check", "half.onnx").returncode, 0)

    def test_a_failed_verification_ends_with_1_and_the_file_is_there(self):
        document = self.document("convert", CNN, "--to", "bfloat16", "-o", "half.onnx", "--verify", CNN_DATA, "--tolerance",
                                 "1e-9", code=1)
        self.assertEqual(document["verification"]["verdict"], "diverged")
        self.assertTrue((self.folder / "half.onnx").exists())

    def test_every_sample_converts_to_a_valid_model(self):
        for model in sorted(SAMPLES.glob("*/model.onnx")):
            for to in ("float16", "bfloat16"):
                with self.subTest(model=model.parent.name, to=to):
                    done = self.run_program("convert", str(model), "--to", to, "-o", "half.onnx")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(self.run_program("check", "half.onnx").returncode, 0)

    def test_a_model_in_half_precision_has_nothing_to_convert(self):
        first = self.run_program("convert", CNN, "--to", "float16", "-o", "half.onnx")
        self.assertIn("35 nodes in float16", first.stdout)
        self.assertRegex(first.stdout, r"weights [\d.]+ (B|KiB) \([\d.]+ KiB before\)")
        for to in ("float16", "bfloat16"):
            done = self.run_program("convert", "half.onnx", "--to", to, "-o", "again.onnx")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("again.onnx: nothing to convert: no node reads or gives float32", done.stdout)
        self.assertNotIn("nothing to convert", first.stdout)

    def test_kept_nodes_by_name_glob_and_file(self):
        (self.folder / "keep.txt").write_text("negate\n\n")
        for keep in (["--keep", "negate"], ["--keep", "neg*"], ["--keep-file", "keep.txt"]):
            document = self.document("convert", "m.textproto", "--to", "float16", "-o", "half.textproto", *keep)
            self.assertEqual((document["nodes"]["converted"], document["nodes"]["kept"], document["casts"]), (1, 1, 2))

    def test_a_weight_beyond_the_range_keeps_its_reader(self):
        self.write_model("big.textproto", node("Mul", "x w", "y"), more=WEIGHT)
        document = self.document("convert", "big.textproto", "--to", "float16", "-o", "half.textproto")
        self.assertEqual([weight["name"] for weight in document["kept_weights"]], ["w"])
        self.assertEqual(document["nodes"]["kept"], 1)

    def test_convert_refuses(self):
        convert = ("convert", "m.textproto", "--to", "float16", "-o", "half.onnx")
        self.refused(2, "--keep 'nobody' matches no node", *convert, "--keep", "nobody")
        self.assertFalse((self.folder / "half.onnx").exists())
        self.refused(2, "must be float16 or bfloat16", "convert", "m.textproto", "--to", "int8", "-o", "half.onnx")
        self.refused(2, "m.textproto", "convert", "m.textproto", "--to", "float16", "-o", "m.textproto")
        self.refused(2, "--verify", *convert, "--tolerance", "1")
        self.refused(5, "no file 'none.txt'", *convert, "--keep-file", "none.txt")
        (self.folder / "keep.bin").write_bytes(b"negate\n\x00\x01\xff")
        self.refused(2, "--keep-file 'keep.bin' is no text: line 2 holds control characters", *convert, "--keep-file", "keep.bin")
        (self.folder / "keep.txt").write_text("negate\n\nnobody\n")
        self.refused(2, "--keep-file 'keep.txt', line 3: 'nobody' matches no node", *convert, "--keep-file", "keep.txt")
        self.refused(5, "error: --verify: there is no 'nowhere'", *convert, "--verify", "nowhere")
        self.assertFalse((self.folder / "half.onnx").exists())
        self.refused(5, "none.onnx", "convert", "none.onnx", "--to", "float16", "-o", "half.onnx")
        (self.folder / "old.textproto").write_text((self.folder / "m.textproto").read_text().replace("17", "12"))
        self.refused(3, "bfloat16 needs opset 13", "convert", "old.textproto", "--to", "bfloat16", "-o", "half.onnx")

    def test_audit_names_what_convert_needs(self):
        self.write_model("square.textproto", node("Mul", "x x", "s", 'name: "square"') + node("Sqrt", "s", "y", 'name: "root"'))
        files = ("--keep-file", "keep.txt", "--html", "page.html", "--csv", "table.csv")
        document = self.document("audit-fp16", "square.textproto", "--seeds", "2", "--range", "x=300..400", "--minimise", *files)
        self.assertEqual(set(document), {"to", "inputs", "counts", "nodes", "keep", "verification", "stable_after",
                                         "observed_ms", "notes"})
        self.assertEqual(document["counts"]["must"], 2)
        self.assertEqual(document["keep"], ["square", "root"])
        self.assertEqual(document["verification"]["verdict"], "pass")
        self.assertEqual(document["verification"]["nothing_kept"]["rel_l2"], "inf")
        self.assertEqual((self.folder / "keep.txt").read_text(), "square\nroot\n")
        self.assertNotIn("http", (self.folder / "page.html").read_text())
        self.document("convert", "square.textproto", "--to", "float16", "-o", "half.textproto", "--keep-file", "keep.txt")

    def test_another_model_feeds_the_audited_one(self):
        self.write_model("encoder.textproto", node("Mul", "x w", "y"), more=WEIGHT)
        self.write_model("decoder.textproto", node("Neg", "x", "y", 'name: "negate"'))
        document = self.document("audit-fp16", "decoder.textproto", "--feed", "encoder.textproto:y=x", "--until-stable", "2")
        self.assertEqual(document["keep"], ["negate"])
        self.assertEqual((document["inputs"], document["stable_after"]), (3, 1))
        self.assertTrue(document["verification"]["keep_io"])

    def test_audit_refuses(self):
        audit = ("audit-fp16", "m.textproto")
        self.refused(2, "--feed is 'a.onnx'", *audit, "--feed", "a.onnx")
        self.refused(2, "'z' is no output", *audit, "--feed", "m.textproto:z=x")
        self.refused(2, "--with is 'cuda'", *audit, "--with", "cuda")
        self.refused(2, "one input set or more", *audit, "--seeds", "0")
        self.refused(2, "must be half-sums", *audit, "--kernels", "fast")
        self.refused(2, "m.textproto", *audit, "--csv", "m.textproto")

    def test_a_tolerance_that_cannot_be_reached_ends_with_1(self):
        self.assertEqual(self.document("audit-fp16", "m.textproto", "--tolerance", "1e-9", code=1)["verification"]["verdict"],
                         "diverged")


if __name__ == "__main__":
    main()
