# SPDX-License-Identifier: Apache-2.0
"""Parts that the tests of the command line share: a folder with a small model in it, and calls of the program."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FLOATS = "type { tensor_type { elem_type: 1 shape { dim { dim_value: 8 } } } }"
MODEL = f"""ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g"
  node {{ op_type: "Neg" name: "negate" input: "x" output: "h" }} node {{ op_type: "Exp" name: "power" input: "h" output: "y" }}
  input {{ name: "x" {FLOATS} }} output {{ name: "y" {FLOATS} }} }}"""


def node(op, inputs, outputs, more=""):
    named = " ".join(f'input: "{name}"' for name in inputs.split()) + " "
    return f'node {{ op_type: "{op}" {named}' + " ".join(f'output: "{name}"' for name in outputs.split()) + f" {more} }} "


class ProgramTest(unittest.TestCase):
    program = ""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        (self.folder / "m.textproto").write_text(MODEL)

    def run_program(self, *arguments):
        return subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=120)

    def write_model(self, name, nodes, opset=17, dims="dim { dim_value: 2 } dim { dim_value: 8 }", more=""):
        floats = f"type {{ tensor_type {{ elem_type: 1 shape {{ {dims} }} }} }}"
        (self.folder / name).write_text(
            f'ir_version: 8 opset_import {{ version: {opset} }} graph {{ name: "g" {nodes} {more} '
            f'input {{ name: "x" {floats} }} output {{ name: "y" {floats} }} }}')

    def write_softmaxes(self):
        """safe.textproto and naive.textproto: equal node by node, the second NaN in the end."""
        large = node("Mul", "x large", "l")
        scale = 'initializer { name: "large" data_type: 1 float_data: 400 }'
        axis = 'initializer { name: "axis" data_type: 7 dims: 1 int64_data: -1 }'
        self.write_model("safe.textproto", large + node("Softmax", "l", "y"), more=scale)
        self.write_model("naive.textproto", large + node("Exp", "l", "e") + node("ReduceSum", "e axis", "s") +
                         node("Div", "e s", "y"), more=scale + axis)

def main():
    """Runs the tests of the calling script on the program that its command line names."""
    ProgramTest.program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
