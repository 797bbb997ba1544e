#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that cannot be executed are looked at all the same; what stands before the fault runs, and values stand in for
the rest. Of files that are no models the message says what they are.

looking_test.py PARALLAX
"""

import json
import random
import sys
from pathlib import Path

from program import ProgramTest, main, node

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tests/attack"))

import model_tree as t  # noqa: E402

FILES = HERE / "files"
PLUGIN = str(FILES / "plugin_domain.onnx")
MUTANTS = 200
NOT_EXTERNAL = 8  # the element type of texts, which no external file holds


def models():
    """Every model in the tree that is healthy, in a fixed order."""
    found = [path for folder in ("samples", "tests/diagnosis/cases") for path in sorted((ROOT / folder).rglob("*.onnx"))]
    return [path for path in found if "build" not in path.parts]


def nodes_of(model):
    return [node for graph in model.of(7) for node in graph.of(1)]


def rename_a_node(model, choice):
    """Gives one node of the main graph an unknown operator, in a domain of its own."""
    node = choice.choice(nodes_of(model))
    node.set(t.OP, t.BYTES, b"Mystery")
    node.set(t.DOMAIN, t.BYTES, b"my.plugins")


def make_external(model):
    """Says of all initializers of numbers that their elements are in a file that is not there; how many."""
    count = 0
    for graph in model.of(7):
        for tensor in graph.of(5):
            if tensor.of(2) == [NOT_EXTERNAL]:
                continue
            tensor.fields = [field for field in tensor.fields if field[0] in (1, 2, 8, 12)]
            entry = t.Message("Entry", [[1, t.BYTES, b"location"], [2, t.BYTES, b"lost.data"]])
            tensor.fields += [[13, t.BYTES, entry], [14, t.VARINT, 1]]
            count += 1
    return count


class Looking(ProgramTest):
    def passed(self, *line, code=0):
        ended = self.run_program(*line)
        self.assertEqual(ended.returncode, code, f"{line}: {ended.stdout} {ended.stderr}")
        return ended.stdout

    def look(self, model):
        """Every verb that looks at a model; its text and its JSON."""
        text = self.passed("show", model, "--shapes")
        shown = json.loads(self.passed("show", model, "--json"))
        self.passed("dot", model, "-o", "g.svg", "--force")
        self.passed("dot", model, "-o", "g.dot", "--force")
        self.passed("tensor", model)
        self.passed("rewrite", model, "-o", "rewritten.onnx", "--force")
        return text, shown

    def test_two_hundred_models_with_an_unknown_operator(self):
        choice = random.Random(38)
        paths = models()
        self.assertGreater(len(paths), 50)
        for number in range(MUTANTS):
            path = paths[number % len(paths)]
            model = t.read_message(path.read_bytes())
            rename_a_node(model, choice)
            (self.folder / "mutant.onnx").write_bytes(model.write())
            with self.subTest(model=str(path.relative_to(ROOT)), number=number):
                text, shown = self.look("mutant.onnx")
                self.assertIn("my.plugins.Mystery", text)
                self.assertIn("unknown operator domain 'my.plugins'", text)
                faulty = [node for node in shown["nodes"] if "problem" in node]
                self.assertEqual([node["op"] for node in faulty], ["Mystery"])
                self.assertIn("my.plugins", (self.folder / "g.svg").read_text())
                self.assertIn("Mystery", self.passed("check", "mutant.onnx", code=3))
                self.assertIn("Mystery", self.passed("show", "rewritten.onnx"))

    def test_the_same_models_without_their_weights(self):
        paths = models()
        looked_at = 0
        for number in range(MUTANTS):
            path = paths[number % len(paths)]
            if number >= len(paths):
                break  # the file is the same: only the choice of a node would differ
            model = t.read_message(path.read_bytes())
            absent = make_external(model)
            if not absent:
                continue
            (self.folder / "mutant.onnx").write_bytes(model.write())
            looked_at += 1
            with self.subTest(model=str(path.relative_to(ROOT))):
                text, shown = self.look("mutant.onnx")
                self.assertEqual(text.count("! not here: "), absent)
                self.assertEqual(sum("absence" in stored for stored in shown["initializers"]), absent)
                self.assertIn("lost.data", self.passed("check", "mutant.onnx", code=5))
                self.assertEqual(self.passed("show", "rewritten.onnx").count("lost.data") > 0, True)
                self.assertEqual(self.run_program("run", "mutant.onnx").returncode, 5)
        self.assertGreater(looked_at, 50)

    def test_a_picture_is_called_one(self):
        (self.folder / "graph.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
        ended = self.run_program("show", "graph.png")
        self.assertIn("'graph.png' is a picture (PNG), not a model", ended.stderr)

    def test_names_with_two_slashes_are_found_as_they_are_written(self):
        name = "branch.else//er"
        self.write_model("slashes.textproto", node("Neg", "x", name) + node("Exp", name, "y"))
        self.passed("run", "slashes.textproto", "--with", "cpu", "--dump", "out", "--only", name)
        escaped = name.replace("//", "%2F%2F")
        self.assertIn(escaped, self.passed("tensor", "out/cpu.plx"))
        self.assertEqual(self.passed("tensor", "out/cpu.plx", name), self.passed("tensor", "out/cpu.plx", escaped))
        compared = self.passed("run", "slashes.textproto", "--with", "reference,cpu", "--only", name, "--observe-all")
        self.assertIn("pass  2 values: 2 compared", compared)
        self.passed("extract", "slashes.textproto", "--to", name, "-o", "slashed")
        self.assertIn("Neg", self.passed("show", "slashed/model.onnx"))

    def test_what_stands_before_the_fault_runs(self):
        self.assertIn("pass  1 values", self.passed("run", PLUGIN, "--only", "boxes"))
        self.assertIn("pass  10 values", self.passed("run", PLUGIN, "--only", "*"))
        self.passed("extract", PLUGIN, "--to", "boxes", "-o", "part")
        self.passed("test", "part", "--with", "reference")
        profile = json.loads(self.passed("profile", PLUGIN, "--json"))
        self.assertNotIn("EfficientNMS_TRT", [op["op"] for op in profile["ops"]])
        for line in (["run", PLUGIN], ["run", PLUGIN, "--only", "det_boxes"], ["extract", PLUGIN, "--to", "det_boxes", "-o", "p"]):
            ended = self.run_program(*line)
            self.assertEqual(ended.returncode, 3, line)
            self.assertIn("node 'batched_nms' (TRT.EfficientNMS_TRT): operator 'EfficientNMS_TRT': unknown operator domain", ended.stderr)

    def write_stub(self, **changes):
        outputs = {"num_dets": {"dtype": "int32", "shape": [1, 1], "values": [[3]]},
                   "1": {"shape": [1, 100, 4], "values": 0.5}, "2": {"shape": [1, 100], "values": 1},
                   "det_classes": {"dtype": "int32", "shape": [1, 100], "values": 2}}
        outputs.update(changes)
        (self.folder / "stub.json").write_text(json.dumps(outputs))
        return "TRT::EfficientNMS_TRT=stub.json"

    def test_values_stand_in_for_a_node(self):
        stub = self.write_stub()
        report = json.loads(self.passed("run", PLUGIN, "--stub", stub, "--json"))
        compared = {value["path"] for value in report["values"] if value["verdict"] == "pass"}
        self.assertLessEqual({"boxes", "scores", "s", "det_boxes"}, compared)  # what only the node read runs, too
        self.passed("run", PLUGIN, "--with", "reference", "--stub", stub, "--dump", "d")
        self.assertIn("0.5", self.passed("tensor", "d/reference.plx", "det_boxes", "--slice", "0,0"))
        outputs = ["num_dets", "det_boxes", "det_scores", "det_classes"]
        inputs = [argument for name in outputs for argument in ("--input", f"{name}={name}.npy")]
        for name in outputs:
            self.passed("tensor", "d/reference.plx", name, "-o", f"{name}.npy")
        self.passed("run", PLUGIN, *inputs)
        ended = self.run_program("run", PLUGIN, *inputs[:2])
        self.assertEqual(ended.returncode, 3, ended.stdout)
        self.assertIn("batched_nms", ended.stderr)

    def test_stubs_that_do_not_fit_are_refused(self):
        for stub, sentence in ((self.write_stub().replace("TRT::", "TRT::My"), "has no node of that operator"),
                               (self.write_stub(num_dets={"values": []}).replace("stub.json", "none.json"), "none.json"),
                               ("TRT::EfficientNMS_TRT", "expected DOMAIN::OP=F.json|F.npz")):
            ended = self.run_program("run", PLUGIN, "--stub", stub)
            self.assertNotEqual(ended.returncode, 0, stub)
            self.assertIn(sentence, ended.stderr)
        ended = self.run_program("run", PLUGIN, "--stub", self.write_stub(num_dets={"shape": [2], "values": [1, 2, 3]}))
        self.assertIn("output 'num_dets': 3 values, and shape [2] has 2", ended.stderr)

    def test_mixed_types_are_marked_at_the_node(self):
        shown = json.loads(self.passed("show", str(FILES / "half_dyn.onnx"), "--json"))
        faulty = {node["node"]: node["problem"] for node in shown["nodes"] if "problem" in node}
        self.assertEqual(list(faulty), ["node_layer_norm"])
        self.assertIn("wants one type for both (T)", faulty["node_layer_norm"])

    def test_lists_of_a_wrong_length_say_the_right_one(self):
        said = self.passed("check", str(FILES / "conv_pads.onnx"), code=3)
        self.assertIn("node 'conv7' (Conv-11): pads has 2 numbers; it must have 4, as there are 2 spatial dimensions", said)

    def test_a_model_is_shown_with_its_properties_and_typed_attributes(self):
        shown = json.loads(self.passed("show", str(FILES / "conv_pads.onnx"), "--json"))
        self.assertEqual([node["attributes"]["pads"] for node in shown["nodes"] if node["op"] == "Conv"], [[1, 1]])
        self.assertLessEqual({"doc", "metadata", "domain", "model_version", "producer_version"}, set(shown))

    def test_a_weight_of_a_model_is_looked_into(self):
        weights = str(FILES / "weights.onnx")
        paths = [value["path"] for value in json.loads(self.passed("tensor", weights, "--json"))["values"]]
        self.assertEqual(paths, ["w", "s", "k", "if.else//we", "if.then//wt"])
        self.assertEqual(json.loads(self.passed("tensor", weights, "s", "--json"))["values"], [5, 0, 6])
        self.assertEqual(json.loads(self.passed("tensor", weights, "if.then//wt", "--json"))["values"], [2, 2, 2])
        self.passed("import", weights, "-o", "w.plx", "--model", weights)
        kept = json.loads(self.passed("tensor", "w.plx", "--json"))["values"]
        self.assertEqual({value["path"] for value in kept}, set(paths))
        ended = self.run_program("tensor", str(FILES / "missing.onnx"), "w")
        self.assertEqual(ended.returncode, 5)
        self.assertIn("weight 'w' is not here: cannot open external data 'weights_not_here.bin'", ended.stderr)

    def write_pair(self):
        """A and B: a renamed node, another attribute, another constant, a Relu that B lacks, a Neg that A lacks."""
        scale = "initializer { name: 'c' data_type: 1 float_data: %s }"
        alpha = 'name: "%s" attribute { name: "alpha" type: FLOAT f: %s }'
        self.write_model("a.textproto", node("LeakyRelu", "x", "l", alpha % ("leak", 0.25)) + node("Mul", "l c", "m", 'name: "scale"') +
                         node("Relu", "m", "r", 'name: "relu"') + node("Mystery", "r", "y", 'name: "odd" domain: "my"'), more=scale % 2)
        self.write_model("b.textproto", node("LeakyRelu", "x", "q", alpha % ("other", 0.5)) + node("Mul", "q c", "m", 'name: "scale"') +
                         node("Mystery", "m", "z", 'name: "odd" domain: "my"') + node("Neg", "z", "y", 'name: "neg"'), more=scale % 3)

    def test_two_models_are_compared_as_graphs(self):
        self.write_pair()
        found = json.loads(self.passed("diff", "a.textproto", "b.textproto", "--json", code=1))
        self.assertEqual(found["verdict"], "different")
        changes = {(item["node_a"], change["kind"], change["name"]): change
                   for item in found["nodes"] if item["kind"] == "changed" for change in item["changes"]}
        self.assertEqual(changes[("leak", "attribute", "alpha")]["b"], "0.5")
        constant = changes[("scale", "constant", "B")]
        self.assertEqual((constant["a"], constant["b"], constant["max_abs"]), ("float32[] 2", "float32[] 3", 1))
        self.assertIn(("odd", "input", "0"), changes)
        self.assertEqual([item["node_a"] for item in found["nodes"] if item["kind"] == "only_a"], ["relu"])
        self.assertEqual([item["node_b"] for item in found["nodes"] if item["kind"] == "only_b"], ["neg"])
        text = self.passed("diff", "a.textproto", "b.textproto", "--html", "d.html", "--svg", "d.svg", code=1)
        self.assertIn("changed: LeakyRelu 'leak' (in B 'other')", text)
        self.assertIn("attribute alpha: 0.25 in A, 0.5 in B", text)
        self.assertIn("only in A: Relu 'relu'", text)
        for page in ("d.html", "d.svg"):
            drawn = (self.folder / page).read_text()
            self.assertEqual(drawn.count(">only in A<") > 0 and drawn.count(">only in B<") > 0, True, page)

    def test_another_operator_under_the_same_name_is_a_change(self):
        for name, op in (("a.textproto", "Relu"), ("b.textproto", "Sigmoid")):
            self.write_model(name, node(op, "x", "h", 'name: "act"') + node("Neg", "h", "y", 'name: "neg"'))
        found = json.loads(self.passed("diff", "a.textproto", "b.textproto", "--json", code=1))
        self.assertEqual([(item["kind"], item["node_a"], item["node_b"]) for item in found["nodes"]], [("changed", "act", "act")])
        self.assertEqual(found["nodes"][0]["changes"][0]["kind"], "op")

    def test_a_model_that_cannot_run_is_not_the_same(self):
        scale = 'initializer { dims: 1 data_type: 1 name: "c" float_data: 2 }'
        for name, more in (("a.textproto", scale), ("b.textproto", scale + scale.replace("float_data: 2", "float_data: 3"))):
            self.write_model(name, node("Mul", "x c", "y", 'name: "scale"'), more=more)
        found = json.loads(self.passed("diff", "a.textproto", "b.textproto", "--json", code=1))
        self.assertEqual((found["verdict"], [problem["side"] for problem in found["problems"]]), ("different", ["B"]))
        self.assertIn("problem in B alone: value 'c': is defined twice, by two initializers",
                      self.passed("diff", "a.textproto", "b.textproto", code=1))

    def test_a_model_has_the_structure_of_itself(self):
        for path in models():
            with self.subTest(model=str(path.relative_to(ROOT))):
                found = json.loads(self.passed("diff", str(path), str(path), "--json"))
                self.assertEqual((found["verdict"], found["nodes"]), ("same", []))
        ended = self.run_program("diff", str(models()[0]), str(models()[0]), "--rtol", "1")
        self.assertEqual(ended.returncode, 2)

    def test_negative_numbers_in_wide_entries_of_int4(self):
        weights = json.loads(self.passed("tensor", str(FILES / "int4.onnx"), "w", "--json"))["values"]
        self.assertEqual(weights, [-3, -8, 7, -1, 1, -2, 3, -4])
        self.passed("run", str(FILES / "int4.onnx"), "--with", "reference,cpu")

    def test_numbers_as_names_are_told_from_constants(self):
        text = self.passed("show", str(FILES / "nameless.onnx"))
        self.assertIn('"3" = Mul("2", 2)', text)

    def test_files_that_are_no_models(self):
        for name, sentence in (("lfs.onnx", "is a Git LFS pointer in place of the file of 14201234 bytes: 'git lfs pull'"),
                               ("page.onnx", "is a web page, not a model"), ("zipped.onnx", "is a zip archive: unpack it"),
                               ("ort_format.ort", "is a model in the .ort format of onnxruntime"),
                               ("tensor.onnx", "is one tensor (a TensorProto), not a model")):
            ended = self.run_program("show", str(FILES / name))
            self.assertEqual(ended.returncode, 3, name)
            self.assertIn(sentence, ended.stderr)
        for content, sentence in ((b'{"a": 1}', "is JSON"), (b"\x1f\x8b\x08\x00 more", "is compressed by gzip"),
                                  (b"\x93NUMPY\x01\x00v\x00", "is a NumPy array"), (b"GGUF\x03\x00", "is a GGUF file")):
            (self.folder / "other.onnx").write_bytes(content)
            self.assertIn(sentence, self.run_program("show", "other.onnx").stderr)


if __name__ == "__main__":
    main()
