#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate: caches whose sizes only the files next to a model tell, and two sides that keep theirs in place.

generate_caches_test.py PARALLAX
"""

import json

from decoder_model import FAULTS, HEADS, SIZE, decoder, grouped_decoder, tensor
from program import ProgramTest, main


class GenerateCaches(ProgramTest):
    def generate(self, *arguments, model="m.textproto", prompt="3,1,4"):
        return self.run_program("generate", model, "--prompt-ids", prompt, "--json", *arguments)

    def document(self, *arguments, **more):
        done = self.generate(*arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout[-2000:])
        return json.loads(done.stdout)

    def tokens(self, *arguments, **more):
        return self.document(*arguments, **more)["sequences"]

    def test_files_next_to_a_model_tell_what_its_caches_leave_open(self):
        text = grouped_decoder()
        for name in ("key", "value"):
            for kind, cache, length in (("input", "past_key_values", "past"), ("output", "present", "total")):
                declared = tensor(kind, f"{cache}.0.{name}", "float", "batch", HEADS, length, SIZE)
                self.assertIn(declared, text)
                named = tensor(kind, f"{cache}.0.{name}", "float", "batch", HEADS, length, "size")
                text = text.replace(declared, named)
        (self.folder / "open").mkdir()
        (self.folder / "open" / "model.textproto").write_text(text)
        (self.folder / "g.textproto").write_text(grouped_decoder())
        done = self.generate(model="open")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("dimension 3 of input 'past_key_values.0.key' of 'open/model.textproto' is not fixed",
                      json.loads(done.stdout)["error"]["message"])
        expected = self.tokens(model="g.textproto")
        decoder_sizes = {"filename": "model.textproto", "head_size": SIZE, "num_key_value_heads": HEADS}
        files = {"genai_config.json": {"model": {"decoder": decoder_sizes}},
                 "config.json": {"hidden_size": HEADS * SIZE, "num_attention_heads": HEADS}}
        for file, document in files.items():
            (self.folder / "open" / file).write_text(json.dumps(document))
            for cache in ("in-place", "copy"):
                self.assertEqual(self.tokens("--cache", cache, model="open"), expected, (file, cache))
            (self.folder / "open" / file).unlink()

    def test_two_sides_that_keep_caches_in_place(self):
        (self.folder / "m.textproto").write_text(decoder())
        for more in ((), ("--beams", "3"), ("--capture", "all")):
            document = self.document("--with", "reference,cpu", "--cache", "in-place", *more)
            self.assertEqual((document["verdict"], document["settings"]["cache"]), ("pass", "in-place"))
            self.assertEqual(document["causes"], [])
            self.assertGreater(document["summary"]["compared"], 0)
            self.assertEqual(document["sequences"], self.tokens(*(more if "--beams" in more else ())))

    def test_the_dumps_of_two_sides_compare_as_the_generation_did(self):
        (self.folder / "m.textproto").write_text(decoder())
        self.document("--with", "reference,cpu", "--dump", "both")
        done = self.run_program("diff", "both/A-reference.plx", "both/B-cpu.plx", "--json")
        self.assertEqual(done.returncode, 0, done.stdout[:2000])
        self.assertEqual(json.loads(done.stdout)["verdict"], "pass")

    def test_a_fault_is_named_where_both_sides_keep_caches_in_place(self):
        (self.folder / "m.textproto").write_text(decoder())
        (self.folder / "b.textproto").write_text(decoder("past_of_another_layer"))
        done = self.generate("--against", "b.textproto", "--cache", "in-place")
        self.assertEqual(done.returncode, 1, done.stderr)
        cause = json.loads(done.stdout)["causes"][0]
        self.assertIn(cause["node"], FAULTS["past_of_another_layer"])
        self.assertRegex(cause["path"], r"^step\[[01]\]//")


if __name__ == "__main__":
    main()
