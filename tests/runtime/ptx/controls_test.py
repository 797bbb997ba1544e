# SPDX-License-Identifier: Apache-2.0
"""The checks of the stand-ins can fail: PTX with one thing changed, a call that is left out, a free that comes too early.

controls_test.py --ptx FOLDER --ops-test PROGRAM --counts-test PROGRAM --parallax PROGRAM --samples FOLDER

The environment is that of the tests ptx.*.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

OPTIONS = argparse.Namespace()


def run(command, **environment):
    """The exit code and all output of the command."""
    done = subprocess.run(command, env={**os.environ, **environment}, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def cases_of(program, cases):
    return [program, f"--gtest_filter={cases}"]


def mutated(text, kernel, pattern, replacement):
    """The file with the pattern replaced in every kernel whose name has `kernel` in it, and how often it was."""
    count = 0
    parts = re.split(r"(?=^\.visible \.entry )", text, flags=re.MULTILINE)
    for index, part in enumerate(parts):
        if kernel in part.split("(", 1)[0]:
            parts[index], replaced = re.subn(pattern, replacement, part)
            count += replaced
    return "".join(parts), count


class Controls(unittest.TestCase):
    def expect_pass(self, command):
        code, output = run(command)
        self.assertEqual(code, 0, f"{command} fails with nothing changed:\n{output}")

    def expect_failure(self, command, words, **environment):
        code, output = run(command, **environment)
        self.assertNotEqual(code, 0, f"{command} passes with {environment}")
        self.assertRegex(output, words)

    def write_mutated(self, folder, kernel, pattern, replacement):
        total = 0
        for source in sorted(OPTIONS.ptx.glob("*.ptx")):
            text, count = mutated(source.read_text(), kernel, pattern, replacement)
            target = pathlib.Path(folder) / source.name
            if count:
                target.write_text(text)
            else:
                target.symlink_to(source)
            total += count
        self.assertGreater(total, 0, f"no kernel {kernel} has {pattern}")

    def expect_mutation_to_fail(self, kernel, pattern, replacement, cases, words):
        command = cases_of(OPTIONS.ops_test, cases)
        self.expect_pass(command)
        with tempfile.TemporaryDirectory() as folder:
            self.write_mutated(folder, kernel, pattern, replacement)
            self.expect_failure(command, words, PTX_FOLDER=folder)

    def expect_fault_to_fail(self, fault, command, words):
        self.expect_pass(command)
        self.expect_failure(command, words, PTX_ORDER="late", PTX_FAULT=fault)

    def test_removed_barriers_are_races(self):
        self.expect_mutation_to_fail("FoldRowsKernel", r"\tbar\.sync[^;]*;\n", "", "cuda/folds.*",
                                     r"race in shared memory at 0x[0-9a-f]+: .* with no barrier between")

    def test_exchanged_strides_of_two_operands_are_noticed(self):
        # strides of the first operand are 128 bytes before those of the second, where the loop over axes reads both
        self.expect_mutation_to_fail("3AddE", r"\+-128\](; *\n\tmad\.lo\.s32)", r"]\1", "cuda/*.add_*",
                                     "FAILED|illegal address")

    def test_a_sum_without_its_product_is_noticed(self):
        self.expect_mutation_to_fail("MapKernel", r"fma\.rn\.f32(\s+%f\d+), %f\d+, (%f\d+), (%f\d+);",
                                     r"add.rn.f32\1, \2, \3;", "cuda/elementwise.*", "FAILED")

    def test_a_copy_that_does_not_wait_for_the_kernels_is_noticed(self):
        sample = OPTIONS.samples / "cnn"
        self.expect_fault_to_fail("skipped_event", [OPTIONS.parallax, "run", sample / "model.onnx", "--with",
                                                    "reference,cuda", "--inputs", sample / "test_data_set_0",
                                                    "--observe-all"], "diverged")

    def test_a_kernel_that_writes_out_of_its_range_is_named_with_its_node(self):
        nodes = "".join(f'node {{ op_type: "{op}" name: "{name}" input: "{x}" output: "{y}" }} '
                        for op, name, x, y in (("Sinh", "first", "x", "a"), ("Atanh", "second", "a", "b"), ("Cosh", "third", "b", "y")))
        floats = "type { tensor_type { elem_type: 1 shape { dim { dim_value: 8 } } } }"
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "chain.textproto"
            model.write_text(f'ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g" {nodes} '
                             f'input {{ name: "x" {floats} }} output {{ name: "y" {floats} }} }}')
            command = [OPTIONS.parallax, "run", model, "--with", "cuda", "--rewrite=none"]
            self.expect_pass(command)
            self.write_mutated(folder, "5Atanh", r"(st\.global\S*\s+\[%rd\d+)(?:\+\d+)?\]", r"\1+268435456]")
            late = "at or before this point: .*; PARALLAX_WAIT_FOR_EACH_NODE=1 waits for each node"
            self.expect_failure(command, late, PTX_FOLDER=folder)
            self.expect_failure(command, r"node 'second' \(Atanh-9\), cuda: .*illegal address", PTX_FOLDER=folder,
                                PARALLAX_WAIT_FOR_EACH_NODE="1")

    def test_memory_that_is_freed_too_early_is_noticed(self):
        self.expect_fault_to_fail("early_free", cases_of(OPTIONS.ops_test, "cuda/folds.*"),
                                  "are in memory that was freed")

    def test_a_value_that_is_freed_too_early_is_noticed(self):
        self.expect_fault_to_fail("early_value_free", cases_of(OPTIONS.counts_test, "Counts.*"),
                                  "illegal address: .* (past the end of a value|in planned memory)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ptx", type=pathlib.Path, required=True)
    parser.add_argument("--ops-test", required=True)
    parser.add_argument("--counts-test", required=True)
    parser.add_argument("--parallax", required=True)
    parser.add_argument("--samples", type=pathlib.Path, required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest)
