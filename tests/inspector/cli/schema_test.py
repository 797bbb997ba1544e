#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds real output of every verb against report.schema.json, and CLI.md against the program's help.

schema_test.py PARALLAX

Needs Debian's python3-jsonschema; without it the tests of the schema are skipped and say so.
"""

import json
import re
import unittest
from pathlib import Path

from decoder_model import decoder
from program import ProgramTest, main, node

try:
    import jsonschema
except ImportError:
    jsonschema = None

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "inspector/cli/report.schema.json").read_text())
PAGE = (ROOT / "inspector/cli/CLI.md").read_text()
DOCUMENTS = {choice["$ref"].rpartition("/")[2] for choice in SCHEMA["anyOf"]}

# Kind of document, exit code, line. Each line works in a folder where those before it have left their files.
CALLS = """
comparison     0 run llama_layer/model.onnx --with reference,cpu --inputs llama_layer/test_data_set_0 --dump out
comparison     1 run fault_pair/A.onnx --against fault_pair/B.onnx --dump out/pair
comparison     1 run safe.textproto --against naive.textproto
comparison     0 run resnet/model.onnx --with cpu --repeat 2
single_run     0 run cnn/model.onnx --with cpu --save-baseline out/kept.plx
comparison     0 run cnn/model.onnx --with cpu --baseline out/kept.plx
comparison     1 run cnn/model.onnx --with cpu --baseline out/kept.plx --seed 1
single_run     0 run cnn/model.onnx --with cpu --inputs cnn/test_data_set_0 --junit out/j.xml
single_run     5 run cnn/model.onnx --with cpu --inputs cnn/test_data_set_0 --junit no/folder/j.xml
single_run     0 run texts.textproto --with reference --dump out/texts
single_run     0 run resnet/model.onnx --with cpu --dump out/part --capture-limit 2000
single_run     0 run resnet/model.onnx --with cpu --dump out/stats --capture stats
samples        1 run sets/A.onnx --against sets/B.onnx --inputs sets/set
samples        0 run sets/A.onnx --with cpu --inputs sets/sample0.npz --inputs sets/sample1.npz
backend_tests  0 test samples --with cpu
backend_tests  1 test wrong --with cpu
bench          0 bench cnn/model.onnx --with cpu --iterations 2
bench          0 bench cnn/model.onnx --with reference --iterations 1
profile        0 profile greedy_decoder/model.onnx --with cpu --iterations 1
profile        0 profile cnn/model.onnx --with reference --iterations 1
generation     0 generate decoder/model.textproto --prompt-ids 3,1,4 --max-new-tokens 3 --beams 2
generation     0 generate decoder/model.textproto --prompt-ids 3,1,4;2 --max-new-tokens 3 --sample --seed 2
generation     0 generate decoder/model.textproto --prompt-ids 3,1,4 --max-new-tokens 3 --with reference,cpu
generation     1 generate decoder/model.textproto --prompt-ids 3,1,4 --max-new-tokens 3 --against faulty.textproto
generation     1 generate decoder/model.textproto --prompt-ids 3,1,4 --max-new-tokens 3 --expect tokens.json
comparison     0 diff out/A-reference.plx out/B-cpu.plx
compared_runs  0 diff out/A-reference.plx out/B-cpu.plx out/A-reference.plx
structure      1 diff fault_pair/A.onnx fault_pair/B.onnx
structure      0 diff cnn/model.onnx cnn/model.onnx
comparison     5 diff out/A-reference.plx out/B-cpu.plx --html no/folder/report.html
comparison     5 diff out/A-reference.plx damaged.plx
comparison     1 blame out/pair/A-reference.plx out/pair/B-reference.plx
comparison     0 blame cnn/model.onnx --with reference,cpu
graph          0 show scan_filter/model.textproto --shapes
graph          0 show llama_layer/model.onnx
graph          0 show out/B-cpu.plx
operator       0 show --op Conv
operator       0 show --op Split-13
dot            0 dot cnn/model.onnx
dot            0 dot out/A-reference.plx out/B-cpu.plx -o out/graph.dot
value_list     0 tensor out/B-cpu.plx
value_list     0 tensor out/stats/cpu.plx
value          0 tensor out/B-cpu.plx last_hidden_state --histogram
value          0 tensor out/B-cpu.plx last_hidden_state --stats
value          0 tensor out/part/cpu.plx conv1.weight
value          0 tensor out/stats/cpu.plx conv1.weight
value          0 tensor out/texts/reference.plx s
value          0 tensor out/texts/reference.plx y
extraction     0 extract cnn/model.onnx --from max_pool2d --to add -o out/cut
reduction      0 reduce fault_pair/A.onnx --against fault_pair/B.onnx -o out/small
failure        1 reduce cnn/model.onnx --with reference,cpu -o out/none
rewriting      0 rewrite llama_layer/model.onnx -o out/rewritten.onnx
pattern_list   0 rewrite --list
audit          0 audit-fp16 cnn/model.onnx --seeds 2
audit          0 audit-fp16 large.textproto --until-stable 2 --minimise
conversion     0 convert cnn/model.onnx --to float16 -o out/half.onnx
conversion     0 convert cnn/model.onnx --to bfloat16 -o out/b.onnx --keep node_linear --verify cnn/test_data_set_0
conversion     1 convert large.textproto --to float16 -o out/large.onnx --verify out/large
merge          0 merge-decoders decoder/first_step.textproto decoder/model.textproto -o out/merged.onnx
merge          0 merge-decoders decoder/first_step.textproto decoder/model.textproto -o out/merged.onnx --verify
transfer       0 export out/B-cpu.plx -o out/values.npz
transfer       0 import out/values.npz -o out/values.plx
check          0 check resnet/model.onnx
check          5 check damaged.plx
check          3 check invalid.textproto
repair         0 repair damaged.plx -o repaired.plx
doctor         0 doctor
failure        2 run cnn/model.onnx --with nobody
failure        2 sweep
failure        2 nothing
failure        3 run invalid.textproto --with cpu
failure        4 run cnn/model.onnx --with cpu --memory-limit 1000
failure        5 run nothing.onnx --with cpu
"""


class Schema(ProgramTest):
    def write_models(self):
        (self.folder / "samples").symlink_to(ROOT / "samples")
        (self.folder / "sets").symlink_to(Path(__file__).parent / "files/datasets")
        for sample in (ROOT / "samples").glob("*/test_data_set_0"):
            (self.folder / sample.parent.name).symlink_to(sample.parent)
        self.write_softmaxes()
        self.write_texts()
        self.write_model("large.textproto", node("Mul", "x far", "h") + node("Div", "h far", "y"),
                         more='initializer { name: "far" data_type: 1 float_data: 60000 }')
        self.write_model("invalid.textproto", node("Relu", "nowhere", "y"))
        (self.folder / "faulty.textproto").write_text(decoder("wrong_scale"))
        (self.folder / "tokens.json").write_text("[0, 0, 0]")
        self.run_program("extract", "large.textproto", "--to", "y", "-o", "part")
        (self.folder / "out").mkdir()
        (self.folder / "part/test_data_set_0").rename(self.folder / "out/large")
        self.write_wrong_case()

    def write_texts(self):
        """A sequence of tensors, and strings."""
        text = "type { tensor_type { elem_type: 8 shape { dim { dim_value: 2 } } } }"
        words = 'initializer { name: "words" data_type: 8 dims: 2 string_data: "a" string_data: "b" }'
        (self.folder / "texts.textproto").write_text(
            f'ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g" {words} '
            f'{node("SequenceConstruct", "words words", "s")} {node("Identity", "words", "y")} '
            f'output {{ name: "y" {text} }} output {{ name: "s" type {{ '
            f'sequence_type {{ elem_type {{ tensor_type {{ elem_type: 8 }} }} }} }} }} }}')

    def write_wrong_case(self):
        """A backend test whose expected output is another model's."""
        for name in ("right", "other"):
            self.write_model(f"{name}.textproto", node("Neg" if name == "right" else "Exp", "x", "y"))
            self.run_program("extract", f"{name}.textproto", "--to", "y", "-o", name)
        (self.folder / "wrong/case").mkdir(parents=True)
        (self.folder / "right/model.onnx").rename(self.folder / "wrong/case/model.onnx")
        (self.folder / "other/test_data_set_0").rename(self.folder / "wrong/case/test_data_set_0")

    def damage(self):
        """A dump with one wrong byte in the middle of a payload."""
        content = bytearray((self.folder / "out/B-cpu.plx").read_bytes())
        content[len(content) // 2] ^= 0xFF
        (self.folder / "damaged.plx").write_bytes(content)

    @unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed: samples/install test installs it")
    def test_every_document_follows_its_schema(self):
        self.write_models()
        seen = set()
        for line in CALLS.strip().splitlines():
            kind, code, command = line.split(None, 2)
            with self.subTest(command):
                ended = self.run_program(*command.split(), "--json")
                self.assertEqual(ended.returncode, int(code), ended.stderr + ended.stdout[-2000:])
                document = json.loads(ended.stdout)
                self.assertEqual(problems_of(kind, document), [])
                self.assertFalse(validator_of(kind).is_valid({**document, "surprise": 1}))
                if "error" in document:
                    self.assertEqual(document["error"]["code"], int(code))
            seen.add(kind)
            if not (self.folder / "damaged.plx").exists():
                self.damage()
        self.assertEqual(seen, DOCUMENTS)

    def test_every_verb_is_held_against_the_schema(self):
        self.assertLessEqual(set(verbs_of(self)), {line.split()[2] for line in CALLS.strip().splitlines()})

    @unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed: samples/install test installs it")
    def test_schema_is_a_schema(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)
        used = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(SCHEMA)))
        self.assertEqual(used, set(SCHEMA["$defs"]))

    def test_keys_are_closed_and_documented(self):
        for where, fragment in objects_of(SCHEMA["$defs"]):
            self.assertIn("additionalProperties", fragment, f"{where} does not say whether its keys are closed")
            for key in fragment.get("properties", {}):
                self.assertTrue(re.search(rf"\b{key}\b", PAGE), f"CLI.md does not name the key '{key}' of {where}")


class Page(ProgramTest):
    """CLI.md and the program's help name the same verbs, options and arguments of options."""

    def test_verbs(self):
        self.assertEqual(re.findall(r"^### `([a-z0-9-]+)`$", PAGE, re.MULTILINE), verbs_of(self))

    def test_options(self):
        shared = sections("### (Inputs|Mode|Tolerances|Reports|Files|Threads)")
        groups = {title.lower(): options_in(section) for title, section in shared}
        self.assertEqual(len(groups), 6)
        for verb, section in sections("### `([a-z0-9-]+)`"):
            with self.subTest(verb):
                documented = options_in(section)
                further = "".join(re.findall(r"^Also: .*$", section, re.MULTILINE))
                for group in re.findall(r"\[(\w+)\]\(#\w+\)", further):
                    self.assertFalse(documented & groups[group])
                    documented |= groups[group]
                self.assertEqual(documented, options_of_help(self.run_program(verb, "--help").stdout))

    def test_exit_codes(self):
        self.assertEqual(re.findall(r"^\| (\d) \|", PAGE, re.MULTILINE), list("012345"))

    def test_documents_are_named(self):
        named = set(re.findall(r"`#/\$defs/(\w+)`", PAGE))
        self.assertEqual(named, DOCUMENTS)


def verbs_of(test):
    return re.findall(r"^  ([a-z][a-z0-9-]*) {2,}\S", test.run_program("--help").stdout, re.MULTILINE)


def validator_of(kind):
    return jsonschema.Draft202012Validator({**SCHEMA, "anyOf": [{"$ref": f"#/$defs/{kind}"}]})


def problems_of(kind, document):
    """The rules that a document of this kind breaks, as sentences."""
    problems = []
    for error in validator_of(kind).iter_errors(document):
        deepest = jsonschema.exceptions.best_match([error])
        problems.append(f"{deepest.json_path}: {deepest.message[:300]}")
    return problems


def objects_of(fragment, where="$defs"):
    """Every part of the schema that describes an object."""
    if isinstance(fragment, dict):
        if fragment.get("type") == "object" and ("properties" in fragment or "required" in fragment):
            yield where, fragment
        for key, part in fragment.items():
            yield from objects_of(part, f"{where}.{key}")
    elif isinstance(fragment, list):
        for index, part in enumerate(fragment):
            yield from objects_of(part, f"{where}[{index}]")


def sections(heading):
    """(title, text up to the next heading) of each heading of the page that matches."""
    found = re.finditer(rf"^{heading}$\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return [(match.group(1), match.group(2)) for match in found]


def options_in(section):
    """The options that a section of the page lists, one or several a line: '--with EXEC[,EXEC]'."""
    listed = re.findall(r"^- (`-[^`]+`(?:, `-[^`]+`)*):", section, re.MULTILINE)
    return {option for line in listed for option in re.findall(r"`([^`]+)`", line)}


def options_of_help(text):
    """The options of a verb's help; --help and --json, which every verb has, are left out."""
    options = set()
    for entry in re.split(r"\n(?=  -)", text.split("\nExample:")[0].split("\nOptions:\n")[1]):
        written = re.split(r"\s{2,}|\n", entry.strip())[0]
        written = re.sub(r"( REQUIRED| \.\.\.)*$", "", written)
        options.add(re.sub(r":-?\d+\.\.\d+$", "", written))
    return options - {"-h,--help", "--json"}


if __name__ == "__main__":
    main()
