#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Comparisons as the command line prints them: one fault has one figure; different models; several dumps.

comparing_test.py PARALLAX
"""

import json

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


if __name__ == "__main__":
    main()
