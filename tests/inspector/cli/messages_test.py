#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Messages for command lines that contradict themselves, and the notes of reports on their content.

messages_test.py PARALLAX
"""

import json
import shutil

from program import ProgramTest, main, node


class Messages(ProgramTest):
    def refused(self, line, *sentences):
        """A usage error that says all of `sentences`."""
        ended = self.run_program(*line.split())
        self.assertEqual(ended.returncode, 2, f"{line}: {ended.stdout}")
        for sentence in sentences:
            self.assertIn(sentence, ended.stderr, line)

    def passed(self, line, code=0):
        ended = self.run_program(*line.split())
        self.assertEqual(ended.returncode, code, f"{line}: {ended.stdout} {ended.stderr}")
        return ended

    def write_data_set(self, factor=1):
        """y = x * factor, and a data set made with factor 1: part/model.onnx, part/test_data_set_0."""
        scale = "initializer { name: 'c' data_type: 1 float_data: %s }"
        self.write_model("one.textproto", node("Mul", "x c", "y", 'name: "scale"'), more=scale % 1)
        self.passed("extract one.textproto --to y -o part")
        if factor != 1:
            self.write_model("other.textproto", node("Mul", "x c", "y", 'name: "scale"'), more=scale % factor)
            shutil.copy(self.folder / "other.textproto", self.folder / "part/model.textproto")

    def test_outputs_of_a_data_set_belong_to_its_inputs(self):
        self.write_data_set()
        run = "run part/model.onnx --with reference --inputs part/test_data_set_0"
        self.passed("run part/model.onnx --with reference --dump same --inputs part/test_data_set_0")
        self.passed("tensor same/reference.plx x -o same.npy")
        self.passed("run part/model.onnx --with reference --dump other --seed 5")
        self.passed("tensor other/reference.plx x -o other.npy")
        self.assertIn("1 of 1 outputs as expected", self.passed(f"{run} --input x=same.npy").stdout)
        ended = self.passed(f"{run} --input x=other.npy")
        self.assertNotIn("expected", ended.stdout)
        self.assertIn("the outputs in 'part/test_data_set_0' are not compared: --input gives 'x' other data", ended.stderr)
        self.refused(f"{run} --input x=other.npy --junit r.xml", "reports say how two sides compare")

    def test_reports_say_which_expected_output_was_missed(self):
        self.write_data_set(factor=2)
        run = "run part/model.textproto --inputs part/test_data_set_0 --junit r.xml"
        self.passed(f"{run} --with cpu", code=1)
        report = (self.folder / "r.xml").read_text()
        self.assertRegex(report, r'<failure type="diverged" message="output \'y\' is not as expected: \S+ instead of \S+ at \[\d,\d\], 16 of 16 ')
        self.assertRegex(report, r">node scale, worst at \[\d,\d\]: expected \S+, got \S+</failure>")
        self.assertNotIn("node <", report)
        ended = self.passed(f"{run} --with reference,cpu", code=1)
        self.assertIn("output 'y' of A (reference) is not as expected: ", ended.stdout)
        self.assertIn("output 'y' of A (reference) is not as expected: ", (self.folder / "r.xml").read_text())
        document = json.loads(self.passed(f"{run} --with reference,cpu --json", code=1).stdout)
        self.assertIn("output 'y' of A (reference) is not as expected: ", document["reason"])
        self.assertEqual(document["first_divergence"], {"path": "y", "node": "scale", "op": "Mul"})
        self.assertEqual({value["verdict"] for value in document["values"]}, {"pass"})

    def test_inputs_of_other_shapes_are_what_parts_two_runs(self):
        floats = "type { tensor_type { elem_type: 1 shape { %s } } }"
        x, y = (floats % dims for dims in ("dim { dim_param: 'n' }", ""))
        mean = node("ReduceMean", "x", "y", "attribute { name: 'keepdims' type: INT i: 0 }")
        (self.folder / "mean.textproto").write_text(
            f"ir_version: 8 opset_import {{ version: 17 }} graph {{ name: 'g' {mean} input {{ name: 'x' {x} }} output {{ name: 'y' {y} }} }}")
        message = r"the two runs were given different values of input 'x': shape \[100\] in A and \[101\] in B"
        self.passed("run mean.textproto --with reference --dim n=100 --dump a")
        self.passed("run mean.textproto --with cpu --dim n=101 --range x=1000..2000 --dump b")
        self.assertRegex(self.passed("diff a/reference.plx b/cpu.plx", code=1).stdout, message)
        self.passed("run mean.textproto --with cpu --dim n=100 --save-baseline kept.plx")
        ended = self.passed("run mean.textproto --with cpu --dim n=101 --range x=1000..2000 --baseline kept.plx", code=1)
        self.assertRegex(ended.stdout, message)
        self.refused("run mean.textproto --with cpu --repeat 2 --baseline kept.plx", "--repeat and --baseline exclude each other")

    def test_inputs_of_other_shapes_that_leave_nothing_to_compare_are_named(self):
        floats = "type { tensor_type { elem_type: 1 shape { dim { dim_param: 'n' } } } }"
        (self.folder / "free.textproto").write_text(
            f"ir_version: 8 opset_import {{ version: 17 }} graph {{ name: 'g' {node('Neg', 'x', 'y')} input {{ name: 'x' {floats} }} output {{ name: 'y' {floats} }} }}")
        for size in (2, 3):
            self.passed(f"run free.textproto --with cpu --dim n={size} --dump of{size}")
        ended = self.passed("diff of2/cpu.plx of3/cpu.plx", code=1)
        self.assertIn("the two runs were given input 'x' of shape [2] in A and [3] in B", ended.stdout)

    def test_other_graph_outputs_are_reported(self):
        both, floats = node("Neg", "x", "y") + node("Abs", "x", "z"), "type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } }"
        for name, outputs in (("a", "yz"), ("b", "zy"), ("c", "y")):
            listed = "".join(f"output {{ name: '{output}' {floats} }} " for output in outputs)
            (self.folder / f"{name}.textproto").write_text(
                f"ir_version: 8 opset_import {{ version: 17 }} graph {{ name: 'g' {both} input {{ name: 'x' {floats} }} {listed} }}")
        self.assertIn("B gives its graph outputs in another order: y, z in A, z, y in B", self.passed("run a.textproto --against b.textproto").stderr)
        self.assertIn("'z' is a graph output of A and none of B", self.passed("run a.textproto --against c.textproto").stderr)
        self.assertNotIn("graph output", self.passed("run a.textproto --against a.textproto").stderr)

    def test_what_is_named_as_a_dump_is_read_as_one(self):
        (self.folder / "rubbish.plx").write_bytes(bytes(range(200)))
        for line in ("show rubbish.plx", "dot rubbish.plx", "tensor rubbish.plx", "check rubbish.plx"):
            self.passed(line, code=5)

    def test_numbers_are_not_clamped(self):
        run = "run m.textproto --with cpu"
        self.refused(f"{run} --seed -1", "--seed: -1 is not in the range 0 to")
        self.refused(f"{run} --seed 99999999999999999999", "--seed: 99999999999999999999 is not in the range 0 to")
        self.refused(f"{run} --seed abc", "--seed: 'abc' is not a whole number")
        self.refused(f"{run} --seed 010", "--seed: '010' begins with a 0")
        self.refused(f"{run} --threads x", "--threads: 'x' is not a whole number")
        self.refused(f"{run} --threads 0", "--threads: 0 is not in the range 1 to 256")
        self.refused("show m.textproto --depth -1", "--depth: -1 is not in the range 0 to")
        self.refused("reduce m.textproto --check false --timeout -1", "--timeout: '-1' is no number of 0 or more")
        self.refused("reduce m.textproto --check false --fail-code x", "--fail-code: 'x' is not a whole number")
        self.passed(f"{run} --seed 18446744073709551615 --threads 1")

    def test_unknown_options_are_named_first(self):
        for verb in ("run", "dot", "blame", "diff"):
            self.refused(f"{verb} --nosuch", f"there is no option --nosuch of {verb} (see parallax {verb} --help)")
        self.refused("--nosuch", "there is no option --nosuch of parallax (see parallax --help)")
        self.refused("run", "MODEL is required (see parallax run --help)")
        self.refused("convert m.textproto --to", "(see parallax convert --help)")

    def test_what_excludes_each_other_says_so(self):
        self.passed("run m.textproto --with cpu --save-baseline kept.plx")
        self.refused("run m.textproto --with cpu --baseline kept.plx --save-baseline new.plx", "--save-baseline and --baseline exclude each other")
        self.refused("run m.textproto --with cpu --repeat 2 --save-baseline new.plx", "--save-baseline and --repeat exclude each other")
        self.refused("run m.textproto --against m.textproto --save-baseline new.plx", "--save-baseline and --against exclude each other")
        self.refused("run m.textproto --with cpu,reference --save-baseline new.plx", "give --with one name")

    def test_options_without_effect(self):
        one = "run m.textproto --with cpu"
        for option in ("--rtol 1", "--atol 1", "--per y@rtol=1", "--policy auto"):
            self.refused(f"{one} {option}", "tolerances judge how two sides compare")
        self.refused(f"{one} --top 3", "--top lists the worst values of two sides")
        self.refused(f"{one} --only y", "--only chooses what is captured and compared")
        self.refused(f"{one} --capture-limit 8", "--capture-limit says what a dump keeps")
        for option in ("--only y", "--capture-limit 8"):
            self.passed(f"{one} --dump out {option}")
        self.passed("run m.textproto --with reference,cpu --only y --top 3 --rtol 1 --per y@rtol=1")
        self.passed("extract m.textproto --to y -o part")
        self.passed("run part/model.onnx --with cpu --inputs part/test_data_set_0 --rtol 1 --atol 1")
        (self.folder / "part/test_data_set_0/output_0.pb").unlink()
        self.refused("run part/model.onnx --with cpu --inputs part/test_data_set_0 --rtol 1", "tolerances judge how two sides compare")
        self.refused("rewrite --list m.textproto", "--list names the patterns and rewrites nothing")
        self.refused("rewrite --list -o new.onnx", "--list names the patterns and rewrites nothing")

    def test_what_is_given_twice(self):
        self.write_model("named.textproto", node("Neg", "x", "y"), dims='dim { dim_param: "b" } dim { dim_value: 8 }')
        for option, one, other in (("--dim", "b=2", "b=3"), ("--shape", "x=2x8", "x=3x8"), ("--range", "x=0..1", "x=0..2"), ("--input", "x=a.npy", "x=b.npy")):
            self.refused(f"run named.textproto --with cpu {option} {one} {option} {other}", f"{option} gives two values of '{one[0]}'")
        self.passed("run named.textproto --with cpu --dim b=2 --dim b=2 --range x=0..1 --range x=0..1")
        self.refused("run m.textproto --with reference,cpu --per y@rtol=1,rtol=2", "two values of rtol")

    def test_names_of_dumps(self):
        self.passed("run m.textproto --with cpu --dump out")
        self.passed("export out/cpu.plx -o v.npz")
        for ending in ("npz", "safetensors", "onnx", "npy"):
            self.refused(f"import v.npz -o w.{ending}", f"'w.{ending}'", "is a dump")
        self.refused("repair out/cpu.plx -o w.npz", "'w.npz'")
        self.passed("import v.npz -o w.plx")
        self.refused("export w.plx -o test_data_set_0", "this dump has no graph that says which values are these")
        self.passed("import v.npz -o w.plx --model m.textproto")
        self.passed("export w.plx -o test_data_set_0")

    def test_sequences_need_a_model(self):
        sequence = "type { sequence_type { elem_type { tensor_type { elem_type: 1 } } } }"
        (self.folder / "seq.textproto").write_text(
            f'ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g" {node("SequenceConstruct", "x x", "s")} '
            f'input {{ name: "x" type {{ tensor_type {{ elem_type: 1 shape {{ dim {{ dim_value: 2 }} }} }} }} }} output {{ name: "s" {sequence} }} }}')
        self.passed("run seq.textproto --with reference --dump out")
        self.passed("export out/reference.plx -o test_data_set_0")
        self.refused("import test_data_set_0 -o w.plx", "output_0.pb' holds a sequence, an optional or a map", "--model")
        self.passed("import test_data_set_0 -o w.plx --model seq.textproto")
        damaged = self.folder / "test_data_set_0/input_0.pb"
        damaged.write_bytes(damaged.read_bytes()[:-1])
        self.passed("import test_data_set_0 -o w.plx", code=5)

    def test_versions_of_operators(self):
        self.refused("show --op Add-0", "'Add-0': operator 'Add' exists in ai.onnx from opset 1 on")
        self.refused("show --op Gelu-5", "operator 'Gelu' exists in ai.onnx from opset 20 on")

    def test_one_line_for_each_name(self):
        nodes = node("Neg", "x", "a\\nb", 'name: "two\\nlines"') + node("Neg", "a\\nb", "v//w") + node("Neg", "v//w", "y")
        self.write_model("names.textproto", nodes)
        shown = self.passed("show names.textproto").stdout.splitlines()
        self.assertEqual(shown[4:7], ["  a\\nb = Neg(x)  # two\\nlines", "  v%2F%2Fw = Neg(a\\nb)  # Neg_1", "  y = Neg(v%2F%2Fw)  # Neg_2"])
        ended = self.passed("run names.textproto --with reference,cpu --observe-all --dump out --top -1")
        for text in (ended.stdout, self.passed("tensor out/B-cpu.plx").stdout):
            self.assertEqual(len([line for line in text.splitlines() if "a\\nb" in line]), 1, text)

    def test_messages_do_not_steer_a_terminal(self):
        self.write_model("rude.textproto", node("Neg", "x", "y"))
        text = (self.folder / "rude.textproto").read_text().replace('"x"', '"x\\033[31m\\ny"')
        (self.folder / "rude.textproto").write_text(text)
        message = self.passed("run rude.textproto --with cpu").stderr
        self.assertIn("input 'x\\x1b[31m y' float32[2,8]", message)

    def test_integers_are_written_exactly(self):
        big = 2**62
        for name, last in (("a", big + 1), ("b", big + 2)):
            (self.folder / f"{name}.textproto").write_text(
                f'ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g" initializer {{ name: "v" data_type: 7 dims: 2 int64_data: 1 '
                f"int64_data: {last} }} }}")
            self.passed(f"import {name}.textproto -o {name}.plx")
        text = self.passed("diff a.plx b.plx --csv v.csv", code=1).stdout
        self.assertIn(f"worst at [1]: A {big + 1}, B {big + 2};", text)
        self.assertIn(f",{big + 1},{big + 2}\n", (self.folder / "v.csv").read_text())
        metrics = json.loads(self.passed("diff a.plx b.plx --json", code=1).stdout)["values"][0]["metrics"]
        self.assertEqual((metrics["worst_a"], metrics["worst_b"]), (big + 1, big + 2))

    def test_texts_have_no_statistics(self):
        text = "type { tensor_type { elem_type: 8 shape { dim { dim_value: 2 } } } }"
        (self.folder / "words.textproto").write_text(
            f'ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g" {node("Identity", "x", "y")} input {{ name: "x" {text} }} '
            f'output {{ name: "y" {text} }} }}')
        self.assertNotIn("nan", self.passed("run words.textproto --with reference --dump out").stdout)
        self.assertIn("strings have no minimum", self.passed("tensor out/reference.plx y --stats").stdout)
        self.assertIsNone(json.loads(self.passed("tensor out/reference.plx y --json").stdout)["stats"])
        self.refused("tensor out/reference.plx y --histogram", "--histogram counts numbers, and 'y' of type string[2] holds strings")

    def test_a_damaged_graph_is_reported_on_either_side(self):
        self.passed("run m.textproto --with reference,cpu --dump out")
        a, b = "out/A-reference.plx", "out/B-cpu.plx"
        content = bytearray((self.folder / b).read_bytes())
        content[content.index(b"negate")] ^= 1
        (self.folder / "bad.plx").write_bytes(content)
        for line in (f"diff {a} bad.plx", f"diff bad.plx {b}"):
            self.assertIn("its graph cannot be read: 'bad.plx'", self.passed(line, code=5).stderr)
        self.assertIn("its graph cannot be read: 'bad.plx'", self.passed("run m.textproto --with cpu --baseline bad.plx", code=5).stderr)

    def test_a_baseline_says_what_its_statistics_prove(self):
        """Elements in another order, and elements that were rounded otherwise, whose moments agree nearly as well."""
        order = "initializer { name: 'c' data_type: 7 dims: 8 " + " ".join(f"int64_data: {index}" for index in range(8)) + " }"
        for name, constant, op in (
                ("plain", order, "Gather"), ("transposed", order.replace(": 3", ": 99").replace(": 4", ": 3").replace(": 99", ": 4"), "Gather"),
                ("one", "initializer { name: 'c' data_type: 1 float_data: 1 }", "Mul"),
                ("more", "initializer { name: 'c' data_type: 1 float_data: 1.0000002 }", "Mul")):
            self.write_model(f"{name}.textproto", node(op, "x c", "y"), dims="dim { dim_value: 8 }", more=constant)
        for kept, run, sentence in (("plain", "transposed", "the same elements in another order"),
                                    ("one", "more", r"moments that agree to \de-07, and a signed sum of the elements that is")):
            self.passed(f"run {kept}.textproto --with reference --save-baseline kept.plx")
            ended = self.passed(f"run {run}.textproto --with reference --baseline kept.plx --rtol 0 --atol 0 --only y", code=1)
            self.assertRegex(ended.stdout, sentence)

    def test_a_baseline_tells_texts_and_sequences_apart(self):
        """Whose statistics are those of all elements, and whose texts count by their checksums."""
        def write(name, case, second):
            typed = 'type { tensor_type { elem_type: %d shape { dim { dim_value: 2 } } } }'
            listed = 'type { sequence_type { elem_type { tensor_type { elem_type: 1 } } } }'
            (self.folder / f"{name}.textproto").write_text(
                f'ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g" input {{ name: "t" {typed % 8} }} '
                f'input {{ name: "x" {typed % 1} }} output {{ name: "u" {typed % 8} }} output {{ name: "s" {listed} }} '
                + node("StringNormalizer", "t", "u", f"attribute {{ name: 'case_change_action' type: STRING s: '{case}' }}")
                + node("Neg", "x", "n") + node("SequenceConstruct", f"x {second}", "s") + " }")

        write("kept", "UPPER", "n")
        write("lower", "LOWER", "n")
        write("same", "UPPER", "x")
        self.passed("run kept.textproto --with reference --save-baseline kept.plx")
        self.assertEqual(json.loads(self.passed("check kept.plx --json").stdout)["ok"], True)
        self.assertIn("5 values: 5 compared, 5 passed", self.passed("run kept.textproto --with reference --baseline kept.plx").stdout)
        ended = self.passed("run lower.textproto --with reference --baseline kept.plx", code=1)
        self.assertIn("the first value whose statistics differ: other texts", ended.stdout)
        document = json.loads(self.passed("run same.textproto --with reference --baseline kept.plx --json", code=1).stdout)
        verdicts = {value["path"]: value["verdict"] for value in document["values"]}
        self.assertEqual((verdicts["u"], verdicts["s"]), ("pass", "diverged"))
        self.assertEqual(document["first_divergence"]["path"], "s")

    def test_a_failing_side_says_where_the_two_parted_before(self):
        """B's Gather fails at an index that B's Add made wrong."""
        constants = ("initializer { name: 'one' data_type: 7 int64_data: 1 } initializer { name: 'table' dims: 3 data_type: 1 "
                     "float_data: [1, 2, 3] } ")
        for name, op, known in (("right", "Mul", 1), ("wrong", "Add", 2)):
            (self.folder / f"{name}.textproto").write_text(
                'ir_version: 8 opset_import { version: 17 } graph { name: "g" output { name: "y" type { tensor_type { elem_type: 1 } } } '
                + constants + f"initializer {{ name: 'k' data_type: 7 int64_data: {known} }} "
                + node(op, "k one", "i", 'name: "scale"') + node("Add", "i one", "j") + node("Gather", "table j", "y") + " }")
        failure = "it must be in [-3, 3), the axis has 3 elements; the two sides had parted before, first at "
        for models, maker in (("right.textproto --against wrong.textproto", "Mul"), ("wrong.textproto --against right.textproto", "Add")):
            ended = self.passed(f"run {models}", code=4)
            self.assertIn(f"{failure}'i' (made by {maker} 'scale')", ended.stderr)
            self.assertNotIn("what ran is kept", ended.stderr)
        ended = self.passed("run right.textproto --against wrong.textproto --dump kept", code=4)
        self.assertIn("; what ran is kept: parallax diff 'kept/A-reference.plx' 'kept/B-reference.plx'", ended.stderr)
        self.assertIn("cause 1: Mul 'scale', side B", self.passed("diff kept/A-reference.plx kept/B-reference.plx", code=1).stdout)
        ended = self.passed("run wrong.textproto --with reference,cpu", code=4)
        self.assertNotIn("parted", ended.stderr)

    def test_check_says_what_is_wrong_with_a_file_that_runs(self):
        floats = "type { tensor_type { elem_type: 1 shape { dim { dim_value: %d } } } }"
        exp = node("Exp", "x", "y", 'name: "power"')
        stale = "value_info { name: 'h' type { tensor_type { elem_type: 1 shape { dim { dim_value: 9 } } } } } "
        unsorted = node("Exp", "t", "y", 'name: "second"') + node("Tanh", "x", "t", 'name: "first"')
        after = stale + node("Neg", "x", "h") + node("Exp", "h", "y")
        for nodes, outputs, sentence in (
                (exp, "", "the graph: has no outputs"),
                (exp, f"output {{ name: 'y' {floats % 5} }}", "output 'y': is declared as float32[5], but the graph computes float32[4]"),
                (unsorted, f"output {{ name: 'y' {floats % 4} }}",
                 "node 'second' (Exp): reads 't', which node 'first' computes further down: nodes must be topologically sorted"),
                (after, f"output {{ name: 'y' {floats % 4} }}", "")):
            (self.folder / "odd.textproto").write_text(
                f"ir_version: 8 opset_import {{ version: 17 }} graph {{ name: 'g' {nodes} input {{ name: 'x' {floats % 4} }} {outputs} }}")
            ended = self.passed("check odd.textproto", code=3 if sentence else 0)
            self.assertIn(sentence or "ok, a valid model", ended.stdout)
            self.passed("run odd.textproto --with cpu")

    def test_the_one_unpaired_input_is_paired(self):
        ints = "type { tensor_type { elem_type: 7 shape { dim { dim_value: 2 } } } }"
        for name, first in (("a", "x"), ("b", "onnx::x_0")):
            floats = "type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } }"
            (self.folder / f"{name}.textproto").write_text(
                f'ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g" {node("Gather", f"{first} ids", "y")} '
                f'input {{ name: "{first}" {floats} }} input {{ name: "ids" {ints} }} output {{ name: "y" type {{ tensor_type {{ elem_type: 1 }} }} }} }}')
        ended = self.passed("run a.textproto --against b.textproto")
        self.assertIn("input 'onnx::x_0' of 'b.textproto' takes the data of 'x'", ended.stderr)
        text = (self.folder / "b.textproto").read_text().replace("dim_value: 4", "dim_value: 5")
        (self.folder / "b.textproto").write_text(text)
        self.refused("run a.textproto --against b.textproto", "input 'onnx::x_0' of 'b.textproto' is no input of 'a.textproto'")

    def test_two_models_in_place_of_dumps(self):
        ended = self.passed("blame m.textproto m.textproto --json", code=5)
        self.assertIn("parallax blame 'm.textproto' --against 'm.textproto' runs both", ended.stderr)
        self.assertNotIn("--against", ended.stdout)
        self.assertEqual(json.loads(self.passed("diff m.textproto m.textproto --json").stdout)["verdict"], "same")
        self.refused("diff m.textproto m.textproto --csv v.csv", "parallax run 'm.textproto' --against 'm.textproto' compares their values")
        self.passed("run m.textproto --with cpu --dump out")
        (self.folder / "no.plx").write_text("no dump")
        for line in ("diff out/cpu.plx m.textproto", "diff m.textproto no.plx"):
            self.refused(line, "diff takes two dumps, or two models")
        self.assertNotIn("--against", self.passed("diff m.textproto nofile", code=5).stderr)

    def test_a_damaged_record_is_reported_where_its_index_is_read(self):
        self.passed("run m.textproto --with reference,cpu --dump out")
        a, b = "out/A-reference.plx", "out/B-cpu.plx"
        whole = (self.folder / a).read_bytes()
        for offset in (70, 90, 140):  # the kind, the size and the body of the first record
            content = bytearray(whole)
            content[offset] ^= 0x55
            (self.folder / "bad.plx").write_bytes(content)
            self.passed("check bad.plx", code=5)
            for line, side in ((f"diff bad.plx {b}", "A"), (f"diff {a} bad.plx", "B")):
                self.assertIn(f"{side} (bad.plx): its Execution record at offset 64 is damaged", self.passed(line).stderr, line)
        self.assertNotIn("damaged", self.passed(f"diff {a} {b}").stderr)

    def test_external_data_that_cannot_be_had_is_a_problem(self):
        weight = ("initializer {{ name: 'w' data_type: 1 dims: 8 data_location: EXTERNAL external_data {{ key: 'location' value: '{}' }} }}")
        for location, code in (("../w.bin", 3), ("w.bin", 5)):
            self.write_model("far.textproto", node("Add", "x w", "y"), more=weight.format(location))
            report = json.loads(self.passed("check far.textproto --json", code=code).stdout)
            self.assertEqual((report["ok"], [problem["where"] for problem in report["problems"]]), (False, ["value 'w'"]), location)
            self.assertIn(f"'{location}'", report["problems"][0]["message"])
            self.assertIn("1 problem in this model", self.passed("check far.textproto", code=code).stdout)
            self.passed("run far.textproto --with cpu", code=code)
        self.assertIn("error", json.loads(self.passed("check nofile --json", code=5).stdout))

    def test_what_is_looked_into_is_not_said_to_be_wrong(self):
        self.write_model("one.textproto", node("Mul", "x c", "y"), more="initializer { name: 'c' data_type: 1 float_data: 1 }")
        self.write_model("two.textproto", node("Mul", "x c", "y"), more="initializer { name: 'c' data_type: 1 float_data: 2 }")
        message = self.passed("run one.textproto --against two.textproto", code=1).stderr
        self.assertIn("some values exceed their limits: running both sides again with every tensor captured", message)

    def test_values_without_elements_say_the_reason_and_what_to_do(self):
        self.write_model("fused.textproto", node("MatMul", "x w", "h", 'name: "product"') + node("Relu", "h", "y", 'name: "bend"'),
                         more="initializer { name: 'w' data_type: 1 dims: 8 dims: 8 " + "float_data: 1 " * 64 + "}")
        self.passed("run fused.textproto --with cpu --capture stats --dump few")
        for line in ("tensor few/cpu.plx y", "tensor few/cpu.plx y --slice 0,1", "tensor few/cpu.plx y --histogram"):
            message = self.passed(line).stdout
            self.assertRegex(message, r"min \S+  max", line)
            self.assertIn("the dump holds only its type, shape and statistics: a run with '--dump DIR --capture all' keeps its elements", message)
        document = json.loads(self.passed("tensor few/cpu.plx y --slice 0,1 --json").stdout)
        self.assertEqual((document["values"], document["reason"]), (None, "not captured"))
        self.refused("tensor few/cpu.plx y -o y.npy", "value 'y': the dump holds only its type, shape and statistics: a run with")
        self.passed("run fused.textproto --with cpu --capture shape --dump none")
        self.assertIn("the dump holds only its type and shape: ", self.passed("tensor none/cpu.plx y").stdout)

    def test_values_that_were_fused_say_into_what(self):
        nodes = "".join(node(op, inputs, output) for op, inputs, output in (
            ("Mul", "v v", "a"), ("Mul", "v a", "b"), ("Identity", "b", "w"), ("Identity", "c", "d")))
        floats = "type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 8 } } } }"
        body = (f'attribute {{ name: "body" type: GRAPH g {{ name: "b" {nodes} input {{ name: "i" type {{ tensor_type {{ elem_type: 7 shape {{ }} }} }} }} '
                f'input {{ name: "c" type {{ tensor_type {{ elem_type: 9 shape {{ }} }} }} }} input {{ name: "v" {floats} }} '
                f'output {{ name: "d" type {{ tensor_type {{ elem_type: 9 shape {{ }} }} }} }} output {{ name: "w" {floats} }} }} }} name: "loop"')
        loop = f'node {{ op_type: "Loop" input: "n" input: "" input: "x" output: "y" {body} }}'
        self.write_model("loop.textproto", loop, more="initializer { name: 'n' data_type: 7 int64_data: 2 }")
        self.passed("run loop.textproto --with cpu --rewrite=all --dump out")
        reason = self.passed("tensor out/cpu.plx loop.body[*]//a").stdout
        self.assertRegex(reason, r"it was fused into \S.*, and has no elements of its own: a run with --observe-all has them")
        for iteration in (0, 1):
            self.assertEqual(self.passed(f"tensor out/cpu.plx loop.body[{iteration}]//a").stdout, reason)
            self.assertRegex(json.loads(self.passed(f"tensor out/cpu.plx loop.body[{iteration}]//a --json").stdout)["reason"], "^fused into ")
        self.refused("tensor out/cpu.plx loop.body[2]//a", "holds no value 'loop.body[2]//a'")  # it ran twice
        self.refused("tensor out/cpu.plx loop.body[1]//a -o a.npy", "'loop.body[*]//a': it was fused into ", "--observe-all has them")
        self.passed("run loop.textproto --with cpu --rewrite=all --observe-all --dump all")
        self.passed("tensor all/cpu.plx loop.body[1]//a -o a.npy")

    def test_what_is_empty_has_no_figures(self):
        ends = "".join(f"initializer {{ name: '{name}' data_type: 7 dims: 1 int64_data: 1 }} " for name in ("from", "to"))
        self.write_model("empty.textproto", node("Slice", "x from to", "y"), more=ends)
        text = (self.folder / "empty.textproto").read_text()
        (self.folder / "empty.textproto").write_text(text.replace('output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 }',
                                                                  'output { name: "y" type { tensor_type { elem_type: 1 shape { dim { }'))
        ended = self.passed("run empty.textproto --with reference --dump out")
        self.assertRegex(ended.stdout, r"y +float32 +\[0,8\] +- +- +- +-\n")
        for line in ("tensor out/reference.plx y", "tensor out/reference.plx y --stats"):
            self.assertIn("empty: it has no elements", self.passed(line).stdout)
            self.assertNotIn("nan", self.passed(line).stdout)
        self.assertEqual(json.loads(self.passed("tensor out/reference.plx y --json").stdout)["stats"]["mean"], "nan")

    def test_samples_name_the_element(self):
        self.write_model("two.textproto", node("Neg", "x", "y"), dims="dim { dim_value: 64 } dim { dim_value: 64 }")
        self.passed("run two.textproto --with reference --dump a")
        self.passed("run two.textproto --with reference --seed 1 --capture sample --dump b")
        for a, b in (("a", "b"), ("b", "a")):
            message = self.passed(f"diff {a}/reference.plx {b}/reference.plx", code=1).stdout
            self.assertRegex(message, r"worst at \[\d+,\d+\]: A \S+, B \S+; severity inf .*; 1024 of 1024 sampled elements beyond it")

    def test_what_a_call_repeats_is_listed_once(self):
        """A rewritten model makes by a function what the other makes by nodes."""
        constants = "".join(f"initializer {{ name: '{name}' data_type: 1 {dims} {' '.join(f'float_data: {index % 7 - 3}' for index in range(count))} }} "
                            for name, dims, count in (("w", "dims: 8 dims: 8", 64), ("b", "dims: 8", 8)))
        nodes = node("MatMul", "x w", "p", 'name: "product"') + node("Add", "p b", "s", 'name: "sum"') + node("Relu", "s", "y", 'name: "bent"')
        self.write_model("plain.textproto", nodes, more=constants)
        self.passed("rewrite plain.textproto -o short.onnx")
        self.assertIn("function parallax.fused", self.passed("show short.onnx").stdout)
        for a, b in (("plain.textproto", "short.onnx"), ("short.onnx", "plain.textproto")):
            streamed = json.loads(self.passed(f"run {a} --against {b} --json").stdout)
            self.passed(f"run {a} --with reference --dump a")
            self.passed(f"run {b} --with reference --dump b")
            dumped = json.loads(self.passed("diff a/reference.plx b/reference.plx --json").stdout)
            for document in (streamed, dumped):
                listed = {value["path"].split("//")[-1]: value["verdict"] for value in document["values"]}
                self.assertEqual(listed, {name: "pass" for name in "xwbpsy"})
                self.assertEqual(len(document["values"]), 6)


if __name__ == "__main__":
    main()
