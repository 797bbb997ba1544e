#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program's advice where something does not work, and that it works; and the meaning of its figures.

advice_test.py PARALLAX
"""

import json
import re
from pathlib import Path

from program import ProgramTest, main, node

ROOT = Path(__file__).resolve().parents[3]
TENSOR = "type {{ tensor_type {{ elem_type: {} shape {{ {} }} }} }}"
WEIGHTS = "initializer { name: 'w' data_type: 1 dims: 8 dims: 8 " + " ".join(f"float_data: {index % 7 - 3}" for index in range(64)) + "} "
BIAS = "initializer { name: 'b' data_type: 1 dims: 8 " + "float_data: 1 " * 8 + "} "


def whole_dims(*sizes):
    return " ".join(f"dim {{ dim_value: {size} }}" for size in sizes)


def integers(name, *values):
    dims = f"dims: {len(values)} " if len(values) != 1 else ""
    return f"initializer {{ name: '{name}' data_type: 7 {dims}" + " ".join(f"int64_data: {value}" for value in values) + " } "


def loop_body(nodes):
    """A body that carries v, 2x8, to w."""
    floats, flag = TENSOR.format(1, whole_dims(2, 8)), TENSOR.format(9, "")
    return (f'attribute {{ name: "body" type: GRAPH g {{ name: "b" {nodes} {node("Identity", "c", "d")} input {{ name: "i" {TENSOR.format(7, "")} }} '
            f'input {{ name: "c" {flag} }} input {{ name: "v" {floats} }} output {{ name: "d" {flag} }} output {{ name: "w" {floats} }} }} }}')


def loop(nodes):
    return f'node {{ op_type: "Loop" name: "loop" input: "n" input: "" input: "x" output: "y" {loop_body(nodes)} }}'


def pick(then_nodes, else_nodes, reads="x"):
    branches = "".join(f'attribute {{ name: "{name}_branch" type: GRAPH g {{ name: "{name}" {nodes} output {{ name: "{output}" '
                       f"{TENSOR.format(1, whole_dims(2, 8))} }} }} }} " for name, nodes, output in
                       (("then", then_nodes, "t"), ("else", else_nodes, "e")))
    return f'node {{ op_type: "If" name: "pick" input: "cond" output: "y" {branches} }}'


class Advice(ProgramTest):
    def ended(self, line, code=0):
        ended = self.run_program(*line.split())
        self.assertEqual(ended.returncode, code, f"{line}: {ended.stdout} {ended.stderr}")
        return ended

    def write_big(self):
        nodes = (node("MatMul", "x w", "m", 'name: "product"') + node("Add", "m b", "s", 'name: "sum"') + node("Relu", "s", "h", 'name: "bend"') +
                 node("Exp", "h", "y", 'name: "power"'))
        self.write_model("big.textproto", nodes, dims=whole_dims(4001, 8), more=WEIGHTS + BIAS)

    def test_memory_limits_that_are_reported_are_enough(self):
        self.write_big()
        for options in ("--with reference", "--with cpu", "--with reference,cpu", "--with cpu,reference", "--with cpu --dump out"):
            line = f"run big.textproto {options}"
            peaks = re.findall(r"peak memory (\d+) KiB", self.ended(line).stdout)
            self.assertEqual(len(peaks), options.count(",") + 1)
            enough = 2 * sum(map(int, peaks))  # two sides wait for each other with values in hand
            self.ended(f"{line} --memory-limit {enough}K")
            message = self.ended(f"{line} --memory-limit {enough // 8}K", code=4).stderr
            needed, held, both, limit = map(int, re.search(r"needs (\d+) bytes besides (\d+) in use, (\d+) in all, and the memory limit is (\d+): "
                                                           r"raise --memory-limit \(a run without it reports the peak", message).groups())
            self.assertEqual((needed + held, limit), (both, enough // 8 * 1024))
            self.assertGreater(both, limit)
        bench = json.loads(self.ended("bench big.textproto --with cpu --iterations 1 --json").stdout)["peak_bytes"]
        self.ended(f"bench big.textproto --with cpu --iterations 1 --memory-limit {2 * bench}")

    def test_memory_limits_below_the_weights(self):
        self.write_big()
        for executor in ("reference", "cpu"):
            message = self.ended(f"run big.textproto --with {executor} --memory-limit 100", code=4).stderr
            self.assertIn("'big.textproto': initializer 'w': its data needs 256 bytes besides 0 in use, 256 in all, and the memory limit is 100: ", message)
            # A limit of just the weights leaves no bytes: that is no limit of 0, which would be none.
            message = self.ended(f"run big.textproto --with {executor} --memory-limit 288", code=4).stderr
            self.assertIn("generated input 'x' float32[4001,8] needs 128032 bytes besides 288 in use", message)
        self.assertIn("nothing runs in 0 bytes", self.ended("run big.textproto --with cpu --memory-limit 0", code=2).stderr)

    def test_a_fused_node_names_what_it_stands_for(self):
        self.write_big()
        message = self.ended("run big.textproto --with cpu --memory-limit 130000", code=4).stderr
        self.assertRegex(message, r"node 'bend' \(\S+\), which stands for MatMul 'product', Add 'sum', Relu 'bend', cpu: ")
        message = self.ended("run big.textproto --with cpu --memory-limit 130000 --observe-all", code=4).stderr
        self.assertNotIn("stands for", message)

    def write_lookup(self, name, nodes, more=""):
        ids = f"input {{ name: 'ids' {TENSOR.format(7, whole_dims(4))} }} input {{ name: 'other' {TENSOR.format(7, whole_dims(2))} }} "
        self.write_model(name, nodes, dims=whole_dims(4), more=ids + integers("five", 5) + more)

    def test_indices_that_were_generated_say_how_to_choose_them(self):
        self.write_lookup("ids.textproto", node("Mul", "ids five", "scaled") + node("Gather", "x scaled", "y", 'name: "look"'))
        for executor in ("reference", "cpu", "reference,cpu"):
            message = self.ended(f"run ids.textproto --with {executor}", code=4).stderr
            self.assertIn("; node 'look' takes indices of 'x' (4 rows), which follow from generated input 'ids': choose its integers by --range ids=LO..HI",
                          message)
        self.assertNotIn("--range", self.ended("run ids.textproto --with cpu --range ids=7..9", code=4).stderr)
        self.ended("run ids.textproto --with cpu --range ids=0..0")

    def test_indices_that_follow_from_no_input(self):
        """The integers of an input are not blamed for indices that it has no part in."""
        self.write_lookup("fixed.textproto", node("Gather", "x five", "g", 'name: "look"') + node("Add", "x g", "y") + node("Neg", "ids", "unused"))
        self.assertNotIn("--range", self.ended("run fixed.textproto --with cpu", code=4).stderr)
        self.write_lookup("shape.textproto", node("Shape", "ids", "size") + node("Gather", "x size", "g") + node("Add", "x g", "y"))
        self.assertNotIn("--range", self.ended("run shape.textproto --with cpu", code=4).stderr)

    def test_indices_in_a_body(self):
        gather = node("Gather", "table far", "t", 'name: "look"')
        ids = f"input {{ name: 'ids' {TENSOR.format(7, whole_dims(2))} }} " + integers("hundred", 100)
        table = "initializer { name: 'table' data_type: 1 dims: 4 dims: 8 " + "float_data: 1 " * 32 + "} "
        cond = "initializer { name: 'cond' data_type: 9 int32_data: 1 } "
        self.write_model("body.textproto", node("Add", "ids hundred", "far") + pick(gather, node("Neg", "x", "e")), more=ids + table + cond)
        for executor in ("reference", "cpu"):
            message = self.ended(f"run body.textproto --with {executor}", code=4).stderr
            self.assertRegex(message, r"; node 'look' takes indices of 'table'.*, which follow from generated input 'ids': .* --range ids=LO\.\.HI")
        self.ended("run body.textproto --with cpu --range ids=-100..-97")

    def test_rewriting_counts_nodes_of_bodies(self):
        nodes = node("MatMul", "v w0", "m") + node("Add", "m b", "s") + node("Relu", "s", "w")
        self.write_model("loop.textproto", loop(nodes), more=WEIGHTS.replace("'w'", "'w0'") + BIAS + integers("n", 2))
        document = json.loads(self.ended("rewrite loop.textproto -o new.onnx --json").stdout)
        self.assertEqual(document["nodes"]["before"], 5)
        self.assertLess(document["nodes"]["after"], 5)
        self.assertGreater(document["nodes"]["after"], 1)

    def test_times_say_what_they_are_of(self):
        one = self.ended("run m.textproto --with cpu").stdout
        self.assertRegex(one, r"^cpu on .*: first run \S+ ms, after \S+ ms of loading and \S+ ms of preparing; peak memory \d+ KiB\n.*parallax bench")
        two = self.ended("run m.textproto --with reference,cpu --dump out").stdout
        self.assertEqual(len(re.findall(r": m\.textproto; \S+ ms to prepare, \S+ ms to run \(with capture\), peak memory \d+ KiB\n", two)), 2)
        kept = self.ended("diff out/A-reference.plx out/B-cpu.plx").stdout
        self.assertEqual(len(re.findall(r": m\.textproto; \S+ ms to run \(with capture\)\n", kept)), 2)
        self.assertRegex(self.ended("bench m.textproto --with cpu --iterations 1").stdout, r"before these, \S+ ms of loading and preparing\n")

    def test_units_in_the_last_place_are_of_the_narrower_type(self):
        self.write_model("wide.textproto", node("MatMul", "x w", "y"), more=WEIGHTS)
        (self.folder / "half.textproto").write_text(
            (self.folder / "wide.textproto").read_text().replace("elem_type: 1 ", "elem_type: 10 ").replace(
                WEIGHTS, WEIGHTS.replace("data_type: 1 ", "data_type: 10 ").replace("float_data: ", "int32_data: ").replace("int32_data: -3", "int32_data: 49664")
                .replace("int32_data: -2", "int32_data: 49152").replace("int32_data: -1", "int32_data: 48128").replace("int32_data: 1", "int32_data: 15360")
                .replace("int32_data: 2", "int32_data: 16384").replace("int32_data: 3 ", "int32_data: 16896 ")))
        document = json.loads(self.ended("run wide.textproto --against half.textproto --json").stdout)
        given = next(value for value in document["values"] if value["path"] == "x")
        self.assertGreater(given["metrics"]["max_ulp"], 0)
        self.assertLessEqual(given["metrics"]["max_ulp"], 0.5)  # it was rounded once
        doubled = json.loads(self.ended("run wide.textproto --with reference:double,reference --json").stdout)
        made = next(value for value in doubled["values"] if value["path"] == "y")
        self.assertLessEqual(made["metrics"]["max_ulp"], 4)

    def test_usage_errors_come_first(self):
        """Before a model is read: there is none."""
        for line, sentence in (
                ("run nofile --with nobody", "there is no executor 'nobody'"),
                ("run nofile --with cpu,nobody", "there is no executor 'nobody'"),
                ("bench nofile --with nobody", "there is no executor 'nobody'"),
                ("profile nofile --with nobody", "there is no executor 'nobody'"),
                ("extract nofile --to y --with nobody", "there is no executor 'nobody'"),
                ("reduce nofile --with cpu,nobody", "there is no executor 'nobody'"),
                ("blame nofile --with cpu,nobody", "there is no executor 'nobody'"),
                ("run nofile --with cpu --rewrite=+nothing", "there is no rewrite pattern 'nothing'"),
                ("rewrite nofile --patterns nothing -o new.onnx", "there is no rewrite pattern 'nothing'"),
                ("run nofile --with cpu --tf32=on", "TF32"),
                ("run nofile --with cpu --capture stats", "--capture with one executor needs --dump"),
                ("run nofile --with cpu --dump d --save-baseline k.plx", "--save-baseline and --dump exclude each other"),
                ("run nofile --with cpu --capture all --save-baseline k.plx", "--save-baseline and --capture exclude each other"),
                ("run nofile --with cpu --capture all --baseline k.plx", "--baseline and --capture exclude each other"),
                ("bench nofile --with reference,cpu", "bench runs one executor, so name one"),
                ("profile nofile --with reference,cpu", "profile runs one executor, so name one"),
                ("reduce nofile --check 'false{model}' --fail-regex [", "--fail-regex '[': "),
                ("dot nofile -o graph.txt", "a picture's file ends in"),
                ("dot nofile --rtol 1", "tolerances judge how two dumps compare"),
                ("blame nofile nofile --seed 3", "two dumps are judged as they are"),
                ("blame nofile nofile --observe-all", "two dumps are judged as they are"),
                ("tensor nofile y -o y.txt", "expected a file ending in .npy"),
                ("tensor nofile --slice 0", "--slice and -o need the PATH of a value")):
            self.assertIn(sentence, self.ended(line, code=2).stderr, line)
        message = self.ended("run m.textproto --with nobody", code=2).stderr
        self.assertNotIn("input 'x'", message)

    def test_iterations_are_told_apart_in_a_trace(self):
        self.write_model("loop.textproto", loop(node("Neg", "v", "w", 'name: "turn"')), more=integers("n", 3))
        self.ended("profile loop.textproto --with cpu --iterations 2 --trace trace.json")
        events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        turns = [event["args"] for event in events if event["name"] == "loop.body[*]//turn"]
        self.assertEqual([(args["iteration"], args["path"]) for args in turns], [(index, f"loop.body[{index}]//turn") for index in range(3)])
        self.assertEqual({args["flops"] for args in turns}, {16})
        outer = next(event["args"] for event in events if event["name"] == "loop")
        self.assertNotIn("iteration", outer)

    def test_shares_add_up(self):
        self.write_model("loop.textproto", loop(node("Neg", "v", "a") + node("Exp", "a", "p") + node("Abs", "p", "w")), more=integers("n", 7))
        for executor in ("cpu", "reference"):
            text = self.ended(f"profile loop.textproto --with {executor}").stdout
            shares = re.findall(r" (\d+)\.(\d)%\n", text)
            self.assertEqual(sum(int(whole) * 10 + int(tenth) for whole, tenth in shares), 1000, text)
            total, within, between = map(float, re.search(r": (\S+) ms a run[\s\S]*node time, (\S+) ms a run; overhead between nodes: (\S+) ms", text).groups())
            self.assertAlmostEqual(total, within + between, delta=0.002)

    def test_a_size_that_one_model_fixes_holds_for_both(self):
        free = 'dim { dim_param: "batch" } dim { dim_value: 8 }'
        self.write_model("free.textproto", node("Neg", "x", "y"), dims=free)
        self.write_model("nameless.textproto", node("Neg", "x", "y"), dims="dim { } dim { dim_value: 8 }")
        self.write_model("fixed.textproto", node("Neg", "x", "y"), dims=whole_dims(4, 8))
        for model, other, agreed in (("free", "--dim batch=2", "--dim batch=4"), ("nameless", "--shape x=2x8", "--shape x=4x8")):
            for line in (f"{model}.textproto --against fixed.textproto", f"fixed.textproto --against {model}.textproto"):
                values = json.loads(self.ended(f"run {line} --json").stdout)["values"]
                self.assertEqual([value["shape"] for value in values], [[4, 8], [4, 8]], line)
            message = self.ended(f"run {model}.textproto --against fixed.textproto").stderr
            self.assertIn("input 'x' has 4 in dimension 0, as 'fixed.textproto' has it", message)
            message = self.ended(f"run {model}.textproto --against fixed.textproto {agreed}").stderr
            self.assertNotIn("has it", message)
            message = self.ended(f"run {model}.textproto --against fixed.textproto {other}", code=2).stderr
            self.assertIn(f"input 'x' of 'fixed.textproto' has 4 in dimension 0, and 2 was generated for '{model}.textproto': give {agreed}\n", message)
        self.assertNotIn("has it", self.ended("run fixed.textproto --against fixed.textproto").stderr)
        message = self.ended("reduce free.textproto --against fixed.textproto -o part", code=1).stderr
        self.assertIn("input 'x' has 4 in dimension 0, as 'fixed.textproto' has it", message)

    def test_sizes_of_two_models_that_no_data_has(self):
        def write(name, first, second):
            mask = f"input {{ name: 'm' {TENSOR.format(1, second)} }} "
            self.write_model(f"{name}.textproto", node("Neg", "x", "n") + node("Add", "n m", "y"), dims=first, more=mask)
        named = 'dim { dim_param: "n" }'
        write("free", named, named)
        write("half", whole_dims(4), named)
        write("separate", named, whole_dims(1))
        write("four", whole_dims(4), whole_dims(4))
        write("five", whole_dims(5), whole_dims(5))
        write("uneven", whole_dims(4), whole_dims(1))
        for pair in ("free four", "half free", "free half", "half four", "four half"):  # names of either model tie inputs together
            a, b = pair.split()
            values = json.loads(self.ended(f"run {a}.textproto --against {b}.textproto --json").stdout)["values"]
            self.assertEqual({tuple(value["shape"]) for value in values}, {(4,)}, pair)
        message = self.ended("run four.textproto --against five.textproto", code=2).stderr
        self.assertIn("dimension 0 of input 'm' is 4 in 'four.textproto' and 5 in 'five.textproto': no data suits both\n", message)
        message = self.ended("run free.textproto --against uneven.textproto", code=2).stderr
        self.assertIn("'n' is one dimension in 'free.textproto', and in 'uneven.textproto' 1 of input 'm' and 4 of input 'x': no data suits both\n", message)
        self.ended("run separate.textproto --against uneven.textproto")

    def test_integers_are_printed_as_integers(self):
        ids = f"input {{ name: 'ids' {TENSOR.format(7, '')} }} "
        for name, value in (("one", 2**63 - 1), ("two", 7)):
            self.write_model(f"{name}.textproto", node("Max", "ids k", "m", 'name: "most"') + node("Cast", "m", "f", 'attribute { name: "to" type: INT i: 1 }') +
                             node("Add", "x f", "y"), more=ids + integers("k", value))
        message = self.ended("run one.textproto --against two.textproto", code=1).stdout
        self.assertIn("it is 7 in B and 9223372036854775807 in A", message)
        self.ended("run one.textproto --with cpu --dump out")
        self.assertIn("min 9223372036854775807  max 9223372036854775807  mean", self.ended("tensor out/cpu.plx k").stdout)
        for dtype, name, given in ((7, "int64", (-2**63, 2**53 + 1)), (13, "uint64", (2**53 + 1, 2**64 - 1)), (7, "int64", (-3, 7))):
            data = " ".join(f"{'uint64' if dtype == 13 else 'int64'}_data: {value}" for value in given)
            self.write_model("big.textproto", node("Identity", "x", "y") + node("Identity", "k", "z"), more=
                             f"initializer {{ name: 'k' data_type: {dtype} dims: 2 {data} }} output {{ name: 'z' {TENSOR.format(dtype, whole_dims(2))} }} ")
            outputs = json.loads(self.ended("run big.textproto --with cpu --json").stdout)["outputs"]
            self.ended("run big.textproto --with cpu --dump big")
            for document in (next(output for output in outputs if output["name"] == "z"), json.loads(self.ended("tensor big/cpu.plx z --json").stdout)):
                self.assertEqual((document["dtype"], document["stats"]["min"], document["stats"]["max"]), (name, *given))
                self.assertIsInstance(document["stats"]["min"], int if max(map(abs, given)) > 2**53 else float)

    def test_branches_that_were_not_taken(self):
        cond = f"input {{ name: 'cond' {TENSOR.format(9, '')} }} "
        self.write_model("if.textproto", pick(node("Neg", "x", "t"), node("Abs", "x", "e")), more=cond)
        for value in (0, 1):
            self.ended(f"run if.textproto --with cpu --range cond={value}..{value} --dump d{value}")
        message = self.ended("diff d0/cpu.plx d1/cpu.plx", code=1).stdout
        self.assertIn("1 absent in A (branch 'pick.then' not taken), 1 absent in B (branch 'pick.else' not taken)", message)
        reasons = {value["path"]: value["reason"] for value in json.loads(self.ended("diff d0/cpu.plx d1/cpu.plx --json", code=1).stdout)["values"]}
        self.assertEqual((reasons["pick.then//t"], reasons["pick.else//e"]), ("absent in A", "absent in B"))
        self.assertIn("branch 'pick.then' was not taken in this run", self.ended("tensor d0/cpu.plx pick.then//t", code=2).stderr)
        self.assertNotIn("not taken", self.ended("tensor d0/cpu.plx pick.else//nothing", code=2).stderr)
        self.assertIn("branch 'pick.else' was not taken in this run",
                      self.ended("extract if.textproto --to pick.else//e --range cond=1..1 -o part", code=2).stderr)

    def test_dumps_without_a_graph_say_how_to_get_one(self):
        self.ended("run m.textproto --with cpu --dump out")
        self.ended("export out/cpu.plx -o v.npz")
        self.ended("import v.npz -o v.plx")
        way = "parallax import ORIGIN --model M.onnx -o F.plx makes a dump that has one"
        for line in ("show v.plx", "dot v.plx", "dot v.plx v.plx", "diff v.plx v.plx --svg v.svg", "diff v.plx v.plx --dot v.dot",
                     "diff v.plx v.plx --netron v.json", "diff v.plx v.plx --model-explorer v.json"):
            self.assertIn(way, self.ended(line, code=2).stderr, line)
        self.ended("import v.npz --model m.textproto -o g.plx")
        for line in ("show g.plx", "dot g.plx", "diff g.plx v.plx --netron v.json"):
            self.ended(line)

    def test_misspelled_names_are_met_with_the_right_ones(self):
        self.assertEqual(self.run_program("run", "m.textproto", "--with", "cpu", "--dump", "out").returncode, 0)
        for line, name in ((("runn",), "run"), (("run", "m.textproto", "--inputz", "x"), "--inputs"),
                           (("run", "m.textproto", "--with", "refrence,cpu"), "reference"),
                           (("tensor", "out/cpu.plx", "Y"), "y"), (("extract", "m.textproto", "--to", "hh"), "h")):
            with self.subTest(line=line):
                ended = self.run_program(*line)
                self.assertEqual(ended.returncode, 2)
                self.assertRegex(ended.stderr, f"did you mean .*'{name}'.*\\?")

    def test_what_is_missing_is_said_with_the_help_of_its_verb(self):
        self.assertIn("MODEL is required (see parallax run --help)", self.run_program("run").stderr)
        for verb, form in (("blame", "A.plx B.plx | MODEL"), ("dot", "MODEL | DUMP | A.plx B.plx"), ("diff", "A.plx|A.onnx B.plx|B.onnx [C.plx ...]")):
            self.assertIn(f"Usage: parallax {verb} [OPTIONS] {form}\n", self.run_program(verb, "--help").stdout)

    def test_the_first_pages_name_every_verb_and_the_graphical_program(self):
        verbs = re.findall(r"^  ([a-z][a-z0-9-]+)  ", self.run_program("--help").stdout.split("Subcommands:")[1], re.MULTILINE)
        self.assertGreater(len(verbs), 20)
        page = (ROOT / "README.md").read_text().split("## What it does")[1].split("\n## ")[0]
        self.assertEqual([verb for verb in verbs if not re.search(rf"`(parallax )?{verb}[` ]", page)], [])
        end = (ROOT / "samples/quickstart").read_text().split("cat <<'END'")[1]
        self.assertIn("build/release/bin/parallax-gui out/fault\n", end)


if __name__ == "__main__":
    main()
