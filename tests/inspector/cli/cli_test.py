#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the program's help and its --json against the contract of the command line.

cli_test.py PARALLAX
"""

import contextlib
import json
import os
import pty
import re
import subprocess
import unittest
from pathlib import Path

from program import MODEL, ProgramTest, main, node

VALUE_KEYS = set("path a b matched_by node op dtype shape verdict severity limit reason accepted metrics noise".split())
INPUTS = "--inputs --input --stub --seed --shape --dim --range"
MODE = "--tf32 --accumulate --rewrite --observe-all --fallback --memory-limit --time-limit --keep-casts"
POLICY = "--policy --rtol --atol --per --policy-file"
REPORTS = "--csv --junit --html --dot --svg --netron --model-explorer --top"
COMPUTES = "--json --threads"
OPTIONS = {
    "run": f"--against --with --capture --capture-limit --only --dump --repeat --baseline --save-baseline "
           f"{INPUTS} {MODE} {POLICY} {REPORTS} {COMPUTES} --force",
    "test": f"--with -k --strict --rewrite --fallback {COMPUTES}",
    "bench": f"--with --iterations {INPUTS} {MODE} {COMPUTES}",
    "profile": f"--with --iterations --top --trace {INPUTS} {MODE} {COMPUTES} --force",
    "doctor": "--json",
    "diff": f"{POLICY} {REPORTS} {COMPUTES} --force",
    "blame": f"--against --with {INPUTS} {MODE} {POLICY} {REPORTS} {COMPUTES} --force",
    "show": "--op --shapes --depth --json",
    "dot": f"--depth --focus -o {POLICY} {COMPUTES} --force",
    "tensor": f"--slice --stats --histogram -o {COMPUTES} --force",
    "extract": f"--from --to -o --with {INPUTS} {MODE} {COMPUTES} --force",
    "reduce": f"--check --fail-code --fail-regex --timeout --against --with -o {INPUTS} {MODE} {POLICY} {COMPUTES} --force",
    "rewrite": f"--patterns -o --list {COMPUTES} --force",
    "generate": f"--prompt-ids --prompt-file --max-new-tokens --min-new-tokens --eos --pad --start-ids --beams --length-penalty "
                f"--early-stopping --return --no-repeat-ngram --repetition-penalty --sample --temperature --top-k --top-p --min-p "
                f"--seed --with --against --expect --cache --map --capture --only --dump {MODE} {POLICY} {REPORTS} {COMPUTES} --force",
    "merge-decoders": f"-o --condition --verify {COMPUTES} --force",
    "convert": f"--to -o --keep --keep-file --keep-io --verify --tolerance {COMPUTES} --force",
    "audit-fp16": f"--to --inputs --seeds --until-stable --shape --dim --range --feed --with --tolerance --minimise --kernels "
                  f"--keep-file --html --csv {COMPUTES} --force",
    "sweep": "--json",
    "import": f"-o --model --map {COMPUTES} --force",
    "export": "-o --json --force",
    "check": f"{COMPUTES}",
    "repair": "-o --json --force",
}
# Each works in a folder where those before it have left their files.
CALLS = """
run M --with reference,cpu --dump out
run M --with cpu
bench M --with cpu --iterations 1
profile M --with cpu --iterations 1
doctor
diff out/A-reference.plx out/B-cpu.plx
blame out/A-reference.plx out/B-cpu.plx
show M
show --op Relu
dot M
dot M -o graph.dot
tensor out/B-cpu.plx
tensor out/B-cpu.plx y --stats --threads 1
extract M --to h -o part
rewrite M -o rewritten.onnx
convert M --to float16 -o half.onnx
audit-fp16 M --with reference
rewrite --list
export out/B-cpu.plx -o values.npz
import values.npz -o values.plx --threads 1
check M
check values.plx
repair values.plx -o repaired.plx
"""
SUITE = Path("/usr/share/libonnx-testdata/data/node")


class CommandLine(ProgramTest):
    def described(self, verb):
        """Options in a verb's help, with what is said of them."""
        text = self.run_program(verb, "--help").stdout
        options = {}
        for entry in re.split(r"\n(?=  -)", text.split("\nExample:")[0].split("\nOptions:\n")[1]):
            names, _, sentence = re.sub(r"\n\s+", "  ", entry.strip()).partition("  ")
            for name in names.split()[0].split(","):
                options[name] = sentence.strip()
        return options

    def test_verbs(self):
        listed = re.findall(r"^  ([a-z][a-z0-9-]*) {2,}\S", self.run_program("--help").stdout, re.MULTILINE)
        self.assertEqual(sorted(listed), sorted(OPTIONS))

    def test_options(self):
        for verb, options in OPTIONS.items():
            with self.subTest(verb):
                described = self.described(verb)
                self.assertEqual(sorted(set(described) - {"-h", "--help", "--output"}), sorted(options.split()))
                self.assertEqual([name for name, sentence in described.items() if len(sentence) < 10], [])

    def test_examples(self):
        for verb in OPTIONS:
            text = self.run_program(verb, "--help").stdout
            self.assertRegex(text, rf"\nExample:\n  parallax {verb}\b[^\n]*\n+$")

    def test_examples_run_one_after_another(self):
        """As a reader would try them, in the order of the help, in a folder that has the samples next to it."""
        (self.folder / "samples").symlink_to(Path(__file__).parents[3] / "samples")
        for verb in re.findall(r"^  ([a-z][a-z0-9-]*) {2,}\S", self.run_program("--help").stdout, re.MULTILINE):
            example = self.run_program(verb, "--help").stdout.split("\nExample:\n  parallax ")[1].strip()
            if verb == "sweep":  # foreign_test.py runs it, on a Python of its own
                continue
            with self.subTest(example):
                ended = self.run_program(*example.split())
                self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_what_is_read_is_not_written_over(self):
        self.run_program("run", "m.textproto", "--with", "reference,cpu", "--dump", "out")
        a, b = "out/A-reference.plx", "out/B-cpu.plx"
        for line in (f"diff {a} {b} --html {a}", f"blame {a} {b} --csv ./{b}", f"export {a} -o {a}", f"import {a} -o {a}",
                     "rewrite m.textproto -o m.textproto", "dot m.textproto -o m.textproto",
                     "run m.textproto --with reference,cpu --svg m.textproto"):
            before = {name: (self.folder / name).read_bytes() for name in (a, b, "m.textproto")}
            ended = self.run_program(*line.split())
            self.assertEqual(ended.returncode, 2, line)
            self.assertIn("would be written over", ended.stderr, line)
            for name, content in before.items():
                self.assertEqual((self.folder / name).read_bytes(), content, line)

    def test_empty_texts_are_refused(self):
        """A variable of a script that is not set must not make another run of a line that then passes."""
        self.run_program("run", "m.textproto", "--with", "reference,cpu", "--dump", "out")
        dump = "out/B-cpu.plx"
        paths = ("--against --with --capture --capture-limit --only --dump --baseline --save-baseline --inputs --input --seed --shape "
                 "--dim --range --tf32 --rewrite --fallback --memory-limit --rtol --per --policy-file --csv --html").split()
        lines = [("run", "m.textproto", option, "") for option in paths] + [("run", "m.textproto", option + "=") for option in paths]
        lines += [("run", "m.textproto", "--against=", "m.textproto"), ("run", ""), ("diff", dump, ""), ("diff", "", dump),
                  ("tensor", dump, ""), ("tensor", dump, "y", "--slice", ""), ("tensor", dump, "y", "-o", ""),
                  ("test", ".", "-k", ""), ("import", "x.npz", "-o", "x.plx", "--map", ""), ("export", dump, "-o", ""),
                  ("import", "x.npz", "-o", "x.plx", "--model", ""), ("dot", "m.textproto", "--focus", ""), ("bench", ""),
                  ("extract", "m.textproto", "--to", ""), ("reduce", "m.textproto", "--check", ""), ("show", "--op", "")]
        for line in lines:
            with self.subTest(line):
                ended = self.run_program(*line)
                self.assertEqual(ended.returncode, 2, ended.stdout)
                named = line[-2].rstrip("=") if line[-1] == "" and line[-2].startswith("-") else ""
                self.assertIn(named, ended.stderr)
        self.assertIn("--against is given an empty text", self.run_program("run", "m.textproto", "--against", "").stderr)
        self.assertIn("MODEL is given an empty text", self.run_program("run", "").stderr)
        # A shape without dimensions is a scalar's.
        self.assertNotIn("empty text", self.run_program("run", "m.textproto", "--with", "cpu", "--shape", "x=").stderr)

    def test_messages_that_nobody_takes_change_no_exit_code(self):
        lines = {"run nofile": 5, "bogus": 2, "run m.textproto --with cpu --input x=nofile.npy": 5, "check m.textproto": 0,
                 "run m.textproto --with cpu": 0, "run m.textproto --with reference,cpu --dump out": 0}
        (self.folder / "no.textproto").write_text("ir_version: 8 graph {")
        lines["run no.textproto"] = 3
        for line, code in lines.items():
            for streams in ("2>&-", "2>/dev/full", "2>&- <&-"):
                with self.subTest(f"{line} {streams}"):
                    ended = subprocess.run(f"'{self.program}' {line} {streams}", shell=True, cwd=self.folder, stdout=subprocess.PIPE,
                                           check=False, timeout=120)
                    self.assertEqual(ended.returncode, code)
            for streams in (">&- 2>&-", ">/dev/full 2>/dev/full", ">&- 2>&- <&-"):
                with self.subTest(f"{line} {streams}"):
                    ended = subprocess.run(f"'{self.program}' {line} {streams}", shell=True, cwd=self.folder, check=False, timeout=120)
                    self.assertEqual(ended.returncode, code or 5)  # what was asked for could not be printed
        # No dump has become the file that stdout or stderr are.
        self.assertEqual(self.run_program("check", "out/A-reference.plx").returncode, 0)
        full = subprocess.run(f"'{self.program}' --help >/dev/full", shell=True, cwd=self.folder, stderr=subprocess.PIPE, check=False)
        self.assertEqual(full.returncode, 5)

    def test_names_do_not_steer_a_terminal(self):
        model = MODEL.replace('"h"', '"h\\033[2J"')
        (self.folder / "rude.textproto").write_text(model)
        piped = self.run_program("show", "rude.textproto").stdout
        self.assertIn("h\\x1b[2J", piped)  # where it ends up is not known
        self.assertNotIn("\033", piped)
        try:
            controller, terminal = pty.openpty()
        except OSError as error:  # a root without /dev/pts
            self.skipTest(f"no terminal to look at: {error}")
        subprocess.run([self.program, "show", "rude.textproto"], cwd=self.folder, stdout=terminal, check=True)
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # at the end
            while piece := os.read(controller, 65536):
                shown += piece
        os.close(controller)
        self.assertIn(b"h\\x1b[2J", shown)
        self.assertNotIn(b"\033[2J", shown)

    @unittest.skipUnless(SUITE.is_dir(), "ONNX's test data is not there")
    def test_random_cases_are_no_failures(self):
        ended = self.run_program("test", str(SUITE), "-k", "test_bernoulli*", "--json")
        self.assertEqual(ended.returncode, 0)
        cases = json.loads(ended.stdout)["cases"]
        self.assertEqual({case["status"] for case in cases}, {"unsupported"})
        for case in cases:
            self.assertRegex(case["reason"], r"numbers that (Bernoulli|RandomUniformLike) '[^']+' draws at random")

    def test_a_baseline_of_other_inputs_says_so(self):
        self.run_program("run", "m.textproto", "--with", "cpu", "--save-baseline", "kept.plx")
        ended = self.run_program("run", "m.textproto", "--with", "cpu", "--baseline", "kept.plx", "--seed", "3")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("cause 1: value 'x', side", ended.stdout)
        self.assertIn("the two runs were given different values of input 'x'", ended.stdout)

    def test_a_dump_that_was_cut_off_says_so(self):
        self.run_program("run", "m.textproto", "--with", "reference,cpu", "--dump", "out")
        whole = (self.folder / "out/B-cpu.plx").read_bytes()
        (self.folder / "cut.plx").write_bytes(whole[: len(whole) * 9 // 10])
        ended = self.run_program("diff", "out/A-reference.plx", "cut.plx")
        self.assertIn("B (cut.plx) is unfinished: its run was cut off", ended.stderr)
        self.assertNotIn("A (", ended.stderr)
        self.assertFalse(json.loads(self.run_program("tensor", "cut.plx", "--json").stdout)["complete"])
        (self.folder / "stub.plx").write_bytes(whole[:300])
        for command in (["show", "stub.plx"], ["dot", "stub.plx"], ["export", "stub.plx", "-o", "stub.npz"]):
            ended = self.run_program(*command)
            self.assertEqual(ended.returncode, 5, command)
            self.assertIn("breaks off before its", ended.stderr)
        self.assertTrue(json.loads(self.run_program("tensor", "out/B-cpu.plx", "--json").stdout)["complete"])

    def test_json(self):
        for line in CALLS.split("\n"):
            if not line:
                continue
            with self.subTest(line):
                done = self.run_program(*line.replace(" M", " m.textproto").split(), "--json")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIsInstance(json.loads(done.stdout), dict)

    def test_doctor_tells_a_library_that_is_not_usable(self):
        listed = json.loads(self.run_program("doctor", "--json").stdout)["libraries"]
        names = [library["name"] for library in listed if library["name"].startswith("libcudnn.so.")]
        if not names:
            self.skipTest("this build has no cuDNN")
        empty = self.folder / names[0]
        subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", empty], check=True)
        shown = subprocess.run([self.program, "doctor"], env={**os.environ, "LD_LIBRARY_PATH": str(self.folder)}, text=True,
                               stdout=subprocess.PIPE, check=False, timeout=120).stdout
        (line,) = [line for line in shown.splitlines() if "is not usable" in line]
        self.assertIn(f"{names[0]} is not usable: it has no function cudnnGetVersion", line)
        self.assertNotIn("ok", line.split("cudnn")[0])

    def test_rewrite_as_json(self):
        patterns = json.loads(self.run_program("rewrite", "--list", "--json").stdout)["patterns"]
        rows = [line.split(None, 3) for line in self.run_program("rewrite", "--list").stdout.splitlines()]
        self.assertGreater(len(rows), 10)
        self.assertEqual([[pattern["name"], "on" if pattern["default"] else "off", pattern["target"], pattern["description"]] for pattern in patterns], rows)
        document = json.loads(self.run_program("rewrite", "m.textproto", "-o", "new.onnx", "--json").stdout)
        self.assertEqual((document["written"], document["nodes"]["before"]), ("new.onnx", 2))
        self.assertEqual(sum(document["custom_ops"].values()), document["nodes"]["after"])
        self.assertTrue(all(row["count"] > 0 for row in document["applied"]))
        self.assertTrue((self.folder / "new.onnx").exists())

    def test_rewritten_models_are_valid(self):
        """An operand that is read twice; shapes that only what was fused has read."""
        gated = node("HardSigmoid", "x", "s") + node("Mul", "x s", "y")
        heads = (node("Shape", "x", "dims") + node("ConstantOfShape", "dims", "ones", 'attribute { name: "value" type: TENSOR '
                 't { data_type: 1 dims: 1 float_data: 1 } }') + node("Mul", "x ones", "k") +
                 node("Transpose", "k", "t", 'attribute { name: "perm" type: INTS ints: 1 ints: 0 }') +
                 node("MatMul", "x t", "scores") + node("Softmax", "scores", "weights") + node("MatMul", "weights x", "y"))
        for name, nodes in (("gated.textproto", gated), ("heads.textproto", heads)):
            self.write_model(name, nodes)
            self.assertEqual(self.run_program("rewrite", name, "--patterns", "all", "-o", "new.onnx").returncode, 0)
            checked = self.run_program("check", "new.onnx")
            self.assertEqual(checked.returncode, 0, checked.stdout)
            same = self.run_program("run", name, "--against", "new.onnx", "--with", "reference")
            self.assertEqual(same.returncode, 0, same.stdout)
        samples = Path(__file__).parents[3] / "samples"
        for model in sorted(samples.glob("*/model.onnx")):
            self.assertEqual(self.run_program("rewrite", str(model), "-o", "new.onnx").returncode, 0, model)
            checked = self.run_program("check", "new.onnx")
            self.assertEqual(checked.returncode, 0, f"{model}: {checked.stdout}")

    def test_overflow_is_no_rounding(self):
        """A Softmax that subtracts the largest number against one that does not: right node by node, NaN in the end."""
        self.write_softmaxes()
        ended = self.run_program("run", "safe.textproto", "--against", "naive.textproto", "--json")
        self.assertEqual(ended.returncode, 1, ended.stdout)
        document = json.loads(ended.stdout)
        self.assertEqual(document["verdict"], "diverged")
        self.assertIn("left the range of numbers", document["causes"][0]["why"])

    def test_another_constant_that_has_effects_is_reported(self):
        """Another k of TopK: the results cannot be compared, the constant can."""
        for name, k in (("a.textproto", 5), ("b.textproto", 4)):
            self.write_model(name, node("TopK", "x k", "y i"), dims="",
                             more=f'initializer {{ name: "k" data_type: 7 dims: 1 int64_data: {k} }}')
            text = (self.folder / name).read_text().replace("shape {  }", "", 2)
            (self.folder / name).write_text(text)
        ended = self.run_program("run", "a.textproto", "--against", "b.textproto", "--shape", "x=2x8", "--json")
        values = {value["path"]: value for value in json.loads(ended.stdout)["values"]}
        self.assertEqual(values["k"]["verdict"], "diverged", ended.stdout)

    def test_sets_of_data_are_not_completed(self):
        self.assertEqual(self.run_program("extract", "m.textproto", "--to", "y", "-o", "part").returncode, 0)
        (self.folder / "part/test_data_set_0/input_0.pb").unlink()
        for line in ("run part/model.onnx --inputs part/test_data_set_0", "test part --json"):
            ended = self.run_program(*line.split())
            self.assertNotEqual(ended.returncode, 0)
            self.assertIn("holds outputs, and no input 'x'", ended.stdout + ended.stderr)

    def test_sizes_that_contradict_each_other(self):
        self.write_model("named.textproto", node("Neg", "x", "y"), dims='dim { dim_param: "b" } dim { dim_value: 8 }')
        ended = self.run_program("run", "named.textproto", "--shape", "x=2x8", "--dim", "b=4")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("--dim b=4 contradicts --shape", ended.stderr)

    def test_suites_may_fall_back(self):
        text = "type { tensor_type { elem_type: 8 shape { dim { dim_value: 2 } } } }"
        (self.folder / "words").mkdir()
        (self.folder / "words.textproto").write_text(
            f'ir_version: 8 opset_import {{ version: 20 }} graph {{ name: "g" {node("StringConcat", "x x", "y")} '
            f'input {{ name: "x" {text} }} output {{ name: "y" {text} }} }}')
        self.assertEqual(self.run_program("extract", "words.textproto", "--to", "y", "-o", "words").returncode, 0)
        ended = self.run_program("test", "words", "--with", "cpu")
        self.assertIn("--fallback=reference", ended.stdout)
        ended = self.run_program("test", "words", "--with", "cpu", "--fallback=reference", "--json")
        self.assertEqual([case["status"] for case in json.loads(ended.stdout)["cases"]], ["passed"], ended.stdout)

    def write_failing(self):
        """A Gather whose index is beyond its table: node 'pick' fails on every executor."""
        table = ('initializer { name: "table" data_type: 1 dims: 2 float_data: 1 float_data: 2 } '
                 'initializer { name: "far" data_type: 7 dims: 8 ' + "int64_data: 7 " * 8 + "} ")
        self.write_model("fails.textproto", node("Gather", "table far", "g", 'name: "pick"') + node("Add", "x g", "y"), more=table)

    def test_what_was_chosen_is_printed_before_a_run_fails(self):
        self.write_failing()
        for verb in ("run --with cpu", "run --with reference,cpu", "bench --with cpu", "profile --with cpu", "extract --to y -o part"):
            name, *rest = verb.split()
            ended = self.run_program(name, "fails.textproto", *rest, "--seed", "1")
            self.assertEqual(ended.returncode, 4, ended.stderr)
            self.assertEqual(ended.stderr.count("input 'x' float32[2,8]: normal(0, 1)"), 1, ended.stderr)
        for line in ("run --with reference,cpu", "run --with cpu --repeat 3", "bench --with cpu --iterations 1", "extract --to y -o part"):
            name, *rest = line.split()
            ended = self.run_program(name, "m.textproto", *rest)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(ended.stderr.count("input 'x' float32[8]: normal(0, 1)"), 1, ended.stderr)

    def test_the_error_of_side_a_is_reported(self):
        self.write_failing()
        for executors in ("reference,cpu", "cpu,reference") * 3:
            error = json.loads(self.run_program("run", "fails.textproto", "--with", executors, "--json").stdout)["error"]
            self.assertEqual((error["code"], error["node"], error["op"]), (4, "pick", "Gather"))
            self.assertIn(f"fails.textproto on {executors.split(',', maxsplit=1)[0]}: ", error["message"])

    def test_expected_outputs_say_whose_they_are(self):
        self.assertEqual(self.run_program("extract", "m.textproto", "--to", "y", "-o", "part").returncode, 0)
        sets = ("run", "part/model.onnx", "--inputs", "part/test_data_set_0")
        document = json.loads(self.run_program(*sets, "--with", "reference,cpu", "--junit", "r.xml", "--json").stdout)
        self.assertEqual([(value["path"], value["b"]) for value in document["expected"]], [("y", "A reference: y"), ("y", "B cpu: y")])
        report = (self.folder / "r.xml").read_text()
        for side in "AB":
            self.assertEqual(report.count(f'classname="expected" name="{side}: y"'), 1, report)
        document = json.loads(self.run_program(*sets, "--with", "cpu", "--json").stdout)
        self.assertEqual([value["b"] for value in document["expected"]], ["y"])
        self.assertEqual(set(document["expected"][0]), VALUE_KEYS)

    def test_reports_that_cannot_be_written(self):
        run = ("run", "m.textproto", "--with", "reference,cpu")
        ended = self.run_program(*run, "--csv", "same", "--junit", "./same")
        self.assertEqual(ended.returncode, 2, ended.stdout)
        self.assertIn("--csv and --junit both write './same'", ended.stderr)
        self.assertFalse((self.folder / "same").exists())
        self.assertEqual(self.run_program(*run, "--csv", "/dev/null", "--junit", "/dev/null").returncode, 0)
        ended = self.run_program(*run, "--csv", "no/such/folder", "--json")
        document = json.loads(ended.stdout)
        self.assertEqual((ended.returncode, document["error"]["code"], document["verdict"]), (5, 5, "pass"))
        ended = self.run_program(*run, "--csv", "no/such/folder")
        self.assertEqual(ended.returncode, 5)
        self.assertIn("pass", ended.stdout)
        self.assertEqual(self.run_program("extract", "m.textproto", "--to", "y", "-o", "part").returncode, 0)
        ended = self.run_program("run", "part/model.onnx", "--inputs", "part/test_data_set_0", "--with", "cpu", "--csv", "no/file", "--json")
        document = json.loads(ended.stdout)
        self.assertEqual((ended.returncode, document["error"]["code"], document["outputs"][0]["name"]), (5, 5, "y"))

    def test_a_dump_is_no_model(self):
        self.run_program("run", "m.textproto", "--with", "cpu", "--dump", "out")
        for line in ("run", "bench", "profile", "extract --to y", "reduce", "rewrite -o new.onnx"):
            verb, *rest = line.split()
            ended = self.run_program(verb, "out/cpu.plx", *rest)
            self.assertEqual(ended.returncode, 2)
            self.assertIn("'out/cpu.plx' is a dump, not a model: diff and blame", ended.stderr)

    def test_import_tells_what_the_model_lacks(self):
        self.run_program("run", "m.textproto", "--with", "cpu", "--dump", "out")
        self.run_program("export", "out/cpu.plx", "-o", "v.npz")
        (self.folder / "map.json").write_text('{"y": "elsewhere"}')
        ended = self.run_program("import", "v.npz", "-o", "v.plx", "--model", "m.textproto", "--map", "map.json")
        self.assertEqual(ended.returncode, 0)
        self.assertIn("the model 'm.textproto' has no value of the name 'elsewhere'", ended.stderr)

    def test_texts_that_numpy_cannot_hold(self):
        (self.folder / "words.textproto").write_text(
            'ir_version: 8 opset_import { version: 17 } graph { name: "g" '
            'initializer { name: "bad" data_type: 8 dims: 1 string_data: "\\377" } '
            'initializer { name: "good" data_type: 8 dims: 1 string_data: "a" } }')
        self.assertEqual(self.run_program("import", "words.textproto", "-o", "words.plx").returncode, 0)
        for target in ("words", "words.npz"):
            ended = self.run_program("export", "words.plx", "-o", target)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertIn("'bad' is left out: a string is not UTF-8 text", ended.stderr)
        self.assertEqual([file.name for file in (self.folder / "words").iterdir()], ["good.npy"])

    def test_a_report_on_one_side(self):
        """There is none, unless the side is held against a data set's outputs: never a file that is silently not written."""
        for option in ("--html", "--junit", "--csv"):
            done = self.run_program("run", "m.textproto", "--with", "cpu", option, "report")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("reports say how two sides compare", done.stderr)
        self.assertEqual(self.run_program("extract", "m.textproto", "--to", "y", "-o", "part").returncode, 0)
        done = self.run_program("run", "part/model.onnx", "--with", "cpu", "--inputs", "part/test_data_set_0", "--junit", "r.xml",
                                "--html", "r.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('name="y"', (self.folder / "r.xml").read_text())
        self.assertIn('verdict pass', (self.folder / "r.html").read_text())


if __name__ == "__main__":
    main()
