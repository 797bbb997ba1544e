#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate: tokens, two sides, expectations, dumps, seeded faults of caches, and what is refused.

generate_test.py PARALLAX
"""

import json
import unittest

from decoder_model import FAULTS, decoder, encoder, grouped_decoder, seq2seq_decoder
from program import ProgramTest, main

PROMPT = "3,1,4,1,5,9"


def document_of(done):
    return json.loads(done.stdout)


class Generate(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "m.textproto").write_text(decoder())

    def generate(self, *arguments, model="m.textproto", prompt=PROMPT):
        return self.run_program("generate", model, "--prompt-ids", prompt, *arguments)

    def tokens(self, *arguments, **more):
        done = self.generate("--json", *arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return document_of(done)["sequences"]

    def test_document_has_the_keys_of_the_contract(self):
        done = self.generate("--json", "--max-new-tokens", "5")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = document_of(done)
        for key in ["parallax", "model", "executions", "settings", "sequences", "scores", "stopped", "tokens_per_second",
                    "prefill_ms", "decode_ms", "peak_bytes", "steps"]:
            self.assertIn(key, document)
        self.assertEqual(document["model"]["kind"], "decoder")
        self.assertEqual((document["model"]["layers"], document["model"]["cache_bytes_per_token"]), (2, 128))
        self.assertEqual(document["model"]["roles"]["past.0"], "past_key_values.0.key")
        self.assertEqual(set(document["steps"][0]), {"step", "tokens", "ms", "logprob", "margin"})
        self.assertEqual((len(document["sequences"][0]), document["stopped"]), (5, ["length"]))
        self.assertIn("roles: m.textproto (2 layers, 2 caches each)", done.stderr)

    def test_every_way_of_keeping_the_cache_gives_the_same_tokens(self):
        greedy = self.tokens("--cache", "none")
        for cache in ["copy", "in-place"]:
            self.assertEqual(self.tokens("--cache", cache), greedy, cache)
        beams = self.tokens("--cache", "none", "--beams", "3")
        for cache in ["copy", "in-place"]:
            self.assertEqual(self.tokens("--cache", cache, "--beams", "3"), beams, cache)

    def test_rows_of_a_batch_are_as_if_alone(self):
        prompts = ["3,1,4,1,5,9", "7", "2,6,5"]
        for more in [(), ("--beams", "2"), ("--eos", "11")]:
            alone = [self.tokens(*more, prompt=prompt)[0] for prompt in prompts]
            self.assertEqual(self.tokens(*more, prompt=";".join(prompts)), alone, more)

    def test_masks_and_positions_as_exporters_declare_them(self):
        plain, batch = self.tokens(), self.tokens(prompt="3,1,4;2")
        for name, options in {"float": {"mask": "float"}, "bool": {"mask": "bool"}, "cache": {"positions": "cache_position"}}.items():
            (self.folder / f"{name}.textproto").write_text(decoder(**options))
            self.assertEqual(self.tokens(model=f"{name}.textproto"), plain, name)
            if "mask" in options:
                self.assertEqual(self.tokens(model=f"{name}.textproto", prompt="3,1,4;2"), batch, name)

    def test_grouped_attention_with_lengths_of_rows(self):
        (self.folder / "genai").mkdir()
        (self.folder / "genai" / "g.textproto").write_text(grouped_decoder())
        (self.folder / "genai" / "genai_config.json").write_text(
            json.dumps({"model": {"decoder": {"filename": "g.textproto"}, "eos_token_id": 99}, "search": {"max_new_tokens": 9}}))
        copied = self.tokens("--cache", "copy", model="genai")
        self.assertEqual(len(copied[0]), 9)
        for more in [("--cache", "in-place"), ("--cache", "none"), ("--with", "reference")]:
            self.assertEqual(self.tokens(*more, model="genai"), copied, more)

    def test_padded_batches_of_grouped_attention_are_as_if_alone(self):
        prompts = ["3,1,4,1,5,9", "7", "2,6,5"]
        for has_mask in (False, True):
            (self.folder / "g.textproto").write_text(grouped_decoder(has_mask))
            for more in [(), ("--beams", "3"), ("--cache", "copy"), ("--cache", "none"), ("--with", "reference")]:
                with self.subTest(has_mask=has_mask, more=more):
                    alone = [self.tokens(*more, model="g.textproto", prompt=prompt)[0] for prompt in prompts]
                    self.assertEqual(self.tokens(*more, model="g.textproto", prompt=";".join(prompts)), alone)
            done = self.generate("--with", "reference,cpu", "--capture", "all", model="g.textproto", prompt=";".join(prompts))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (self.folder / "p.json").write_text(json.dumps({"input_ids": [[3, 8, 1, 4]], "attention_mask": [[1, 0, 1, 1]]}))
        done = self.run_program("generate", "g.textproto", "--prompt-file", "p.json", "--json")
        self.assertEqual(document_of(done)["sequences"], self.tokens(model="g.textproto", prompt="3,1,4"))

    def test_batches_that_are_padded_on_two_sides_are_not_compared(self):
        (self.folder / "g.textproto").write_text(grouped_decoder(True))
        done = self.generate("--against", "g.textproto", prompt="1,2;3")
        self.assert_refused(done, 3, "'g.textproto' takes padded prompts with the padding after their tokens")

    def write_onnx(self, text, name):
        (self.folder / "one.textproto").write_text(text)
        done = self.run_program("rewrite", "one.textproto", "--patterns", "none", "-o", name)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_folders_as_optimum_writes_them(self):
        folder = self.folder / "optimum"
        folder.mkdir()
        self.write_onnx(encoder(), "optimum/encoder_model.onnx")
        self.write_onnx(seq2seq_decoder(False), "optimum/decoder_model.onnx")
        prompt = "3,1,4;2,5"
        alone = [self.tokens("--cache", "none", model="optimum", prompt=one)[0][:1] for one in prompt.split(";")]
        for opset in (18, 21):  # each model is run with its own operator set
            self.write_onnx(seq2seq_decoder(True, opset), "optimum/decoder_with_past_model.onnx")
            done = self.generate("--json", "--with", "reference,cpu", model="optimum", prompt=prompt)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout[-2000:])
            document = document_of(done)
            self.assertEqual(document["model"]["files"], {
                "encoder": "optimum/encoder_model.onnx", "decoder": "optimum/decoder_model.onnx",
                "decoder_with_past": "optimum/decoder_with_past_model.onnx"})
            self.assertEqual([tokens[:1] for tokens in document["sequences"]], alone)
            if opset == 18:
                of_two_files = document["sequences"]
            self.assertEqual(document["sequences"], of_two_files)
        self.write_onnx(seq2seq_decoder(True), "optimum/decoder_with_past_model.onnx")
        done = self.run_program("merge-decoders", "optimum/decoder_model.onnx", "optimum/decoder_with_past_model.onnx", "-o",
                                "optimum/decoder_model_merged.onnx", "--verify")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.generate("--json", model="optimum", prompt=prompt)
        self.assertEqual(set(document_of(done)["model"]["files"]), {"encoder", "merged"})
        self.assertEqual(document_of(done)["sequences"], of_two_files)

    def test_a_decoder_alone_as_optimum_writes_it(self):
        (self.folder / "optimum").mkdir()
        self.write_onnx(decoder(), "optimum/decoder_with_past_model.onnx")
        self.assertEqual(self.tokens(model="optimum"), self.tokens())

    def test_an_end_token_ends_the_sequence(self):
        plain = self.tokens()[0]
        done = self.generate("--json", "--eos", str(plain[3]))
        document = document_of(done)
        self.assertEqual(document["sequences"][0], plain[:plain.index(plain[3]) + 1])
        self.assertEqual(document["stopped"], ["eos"])
        longer = self.tokens("--eos", str(plain[3]), "--min-new-tokens", "15")[0]
        self.assertGreaterEqual(len(longer), 15)

    def test_sampling_repeats_with_its_seed(self):
        drawn = [self.tokens("--sample", "--temperature", "2", "--seed", seed) for seed in ["1", "1", "2"]]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        self.assertEqual(self.tokens("--sample", "--top-k", "1"), self.tokens())

    def test_defaults_come_from_the_files_next_to_the_model(self):
        folder = self.folder / "model"
        folder.mkdir()
        (folder / "model.textproto").write_text(decoder())
        token = self.tokens()[0][2]
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": token, "max_new_tokens": 7}))
        document = document_of(self.generate("--json", model="model"))
        self.assertEqual((document["settings"]["eos"], document["settings"]["max_new_tokens"]), ([token], 7))
        self.assertEqual(len(self.tokens("--eos", "none", model="model")[0]), 7)

    def test_expectation(self):
        tokens = self.tokens()[0]
        (self.folder / "right.json").write_text(json.dumps(tokens))
        (self.folder / "hf.json").write_text(json.dumps({"sequences": [[3, 1, 4, 1, 5, 9] + tokens]}))
        for file in ["right.json", "hf.json"]:
            done = self.generate("--expect", file)
            self.assertEqual(done.returncode, 0, done.stdout)
        (self.folder / "wrong.json").write_text(json.dumps(tokens[:4] + [(tokens[4] + 1) % 24] + tokens[5:]))
        done = self.generate("--expect", "wrong.json", "--json")
        self.assertEqual(done.returncode, 1)
        first = document_of(done)["first_token_apart"]
        self.assertEqual((first["step"], first["row"], first["b"]), (4, 0, tokens[4]))

    def test_healthy_sides_pass_and_every_value_is_reported_where_all_are_captured(self):
        done = self.generate("--with", "reference,cpu", "--json", "--capture", "all", "--max-new-tokens", "4")
        self.assertEqual(done.returncode, 0, done.stdout[-2000:])
        document = document_of(done)
        self.assertEqual((document["verdict"], document["first_token_apart"], document["causes"]), ("pass", None, []))
        paths = {value["path"] for value in document["values"]}
        self.assertLessEqual({"step[0]//logits", "step[3]//present.1.value", "step[2]//l1.weights"}, paths)
        self.assertEqual(len(document["executions"]), 2)
        self.assertEqual(document["summary"]["diverged"], 0)

    def test_seeded_faults_are_named_at_node_and_step(self):
        for fault, nodes in FAULTS.items():
            (self.folder / "b.textproto").write_text(decoder(fault))
            prompt = "3,1,4;2" if fault in ("mask_is_ignored", "stale_rows") else "3,1,4"
            with self.subTest(fault):
                done = self.generate("--against", "b.textproto", "--json", "--max-new-tokens", "6", prompt=prompt)
                self.assertEqual(done.returncode, 1, done.stderr[-2000:])
                document = document_of(done)
                self.assertEqual(document["verdict"], "diverged")
                self.assertTrue(document["causes"], document["first_divergence"])
                cause = document["causes"][0]
                self.assertRegex(cause["path"], r"^step\[[01]\]//")
                self.assertIn(cause["node"], nodes, cause)

    def test_dump_of_a_generation(self):
        done = self.generate("--dump", "out", "--max-new-tokens", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        listed = self.run_program("tensor", "out/cpu.plx").stdout
        for path in ["step[0]//logits", "step[2]//present.0.key"]:
            self.assertIn(path, listed)

    def test_html_has_a_row_for_each_step(self):
        self.assertEqual(self.generate("--html", "page.html", "--max-new-tokens", "3").returncode, 0)
        self.assertEqual((self.folder / "page.html").read_text().count("<tr><td class=\"n\">"), 3)
        self.assertEqual(self.generate("--html", "two.html", "--max-new-tokens", "2", "--with", "cpu,reference").returncode, 0)
        self.assertIn("<h2>Steps</h2>", (self.folder / "two.html").read_text())

    def assert_refused(self, done, code, *sentences):
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        lines = [line for line in done.stderr.splitlines() if not line.startswith(("roles:", "B: roles:"))]
        self.assertEqual(len(lines), 1, done.stderr)
        for sentence in sentences:
            self.assertIn(sentence, lines[0])

    def test_a_model_without_tokens_is_no_decoder(self):
        done = self.run_program("generate", "plain.textproto", "--prompt-ids", "1")
        self.assertEqual(done.returncode, 5)
        self.write_model("plain.textproto", 'node { op_type: "Neg" input: "x" output: "y" }')
        self.assert_refused(self.generate(model="plain.textproto"), 3, "no input is input_ids; --map names it")

    def test_a_map_gives_roles(self):
        names = {"input_ids": "tokens", "logits": "scores", "attention_mask": "visible", "position_ids": "at"}
        (self.folder / "renamed.textproto").write_text(decoder(rename=lambda name: names[name]))
        self.assert_refused(self.generate(model="renamed.textproto"), 3, "no input is input_ids; --map names it")
        (self.folder / "map.json").write_text(json.dumps(names))
        self.assertEqual(self.tokens("--map", "map.json", model="renamed.textproto"), self.tokens())
        (self.folder / "map.json").write_text(json.dumps(names | {"cache_position": "nowhere"}))
        self.assert_refused(self.generate("--map", "map.json", model="renamed.textproto"), 2, "'nowhere'")

    def test_ids_beyond_the_vocabulary(self):
        self.assert_refused(self.generate(prompt="3,24"), 2, "prompt 0 holds the id 24; the vocabulary has the ids 0 to 23")
        self.assert_refused(self.generate(prompt="3,-1"), 2, "prompt 0 holds the id -1")
        self.assert_refused(self.generate(prompt="3,x"), 2, "no list of token ids")

    def test_a_past_that_does_not_pair(self):
        (self.folder / "b.textproto").write_text(decoder(leave_out=["present.1.value"]))
        self.assert_refused(self.generate(model="b.textproto"), 3, "'past_key_values.1.value'")

    def test_an_opset_without_one_of_the_operators(self):
        (self.folder / "b.textproto").write_text(decoder(opset=10))
        self.assert_refused(self.generate(model="b.textproto"), 3, "Trilu")

    def test_masks_hold_ones_and_zeros(self):
        for mask, sentence in [([[1, 5, 1]], "the mask of prompt 0 holds 5; it must hold 1 where a token counts and 0"),
                               ([[1, -1, 1]], "the mask of prompt 0 holds -1"), ([[0, 0, 0]], "must be 1 for one at least"),
                               ("101", "'attention_mask' of 'p.json' is no list of integers"),
                               ([[True, True, True]], "is no list of integers")]:
            (self.folder / "p.json").write_text(json.dumps({"input_ids": [[3, 1, 4]], "attention_mask": mask}))
            with self.subTest(mask):
                self.assert_refused(self.run_program("generate", "m.textproto", "--prompt-file", "p.json"), 2, sentence)

    def test_special_tokens_beyond_the_vocabulary(self):
        for arguments, sentence in [(("--eos", "24"), "--eos holds the id 24; the vocabulary has the ids 0 to 23"),
                                    (("--eos", "3,-1"), "--eos holds the id -1"), (("--pad", "24"), "--pad holds the id 24"),
                                    (("--start-ids", "1"), "--start-ids is what the decoder of an encoder-decoder begins with")]:
            with self.subTest(arguments):
                self.assert_refused(self.generate(*arguments), 2, sentence)

    def test_padding_of_files_counts_where_it_is_fed(self):
        (self.folder / "model").mkdir()
        (self.folder / "model" / "model.textproto").write_text(decoder())
        (self.folder / "model" / "config.json").write_text(json.dumps({"eos_token_id": 99, "pad_token_id": 98}))
        self.assertEqual(self.tokens(model="model"), self.tokens())
        self.assert_refused(self.generate(model="model", prompt="1,2;3"), 2, "--pad holds the id 98")
        self.assertEqual(self.tokens("--pad", "0", model="model", prompt="1,2;3"), self.tokens(prompt="1,2;3"))

    def test_beams_need_sequences_and_memory(self):
        many = self.tokens("--beams", "100", "--return", "100", "--max-new-tokens", "2")
        self.assertEqual(len({tuple(tokens) for tokens in many}), 100)
        self.assertEqual(self.tokens("--beams", "100", "--max-new-tokens", "2"), many[:1])
        for arguments, sentence in [
            (("--beams", "25", "--max-new-tokens", "1"), "1 tokens of a vocabulary of 24 make fewer sequences"),
            (("--beams", "577", "--max-new-tokens", "2"), "--beams is 577, and 2 tokens of a vocabulary of 24"),
            (("--beams", "1000", "--memory-limit", "1M"), "they must fit in 1024.0 KiB of memory"),
            (("--beams", "1000000000000"), "of memory"), (("--beams", str(2**63 - 1)), "more bytes than can be counted"),
        ]:
            with self.subTest(arguments):
                self.assert_refused(self.generate(*arguments), 2, sentence)

    def test_an_executor_is_not_compared_with_itself(self):
        for arguments in [("generate", "m.textproto", "--prompt-ids", "1"), ("run", "m.textproto"), ("blame", "m.textproto")]:
            done = self.run_program(*arguments, "--with", "cpu,cpu")
            self.assert_refused(done, 2, "--with names cpu twice, and one executor with one model is no comparison")
        (self.folder / "b.textproto").write_text(decoder())
        self.assertEqual(self.generate("--with", "cpu,cpu", "--against", "b.textproto").returncode, 0)

    def test_expected_tokens_that_end_early_or_late(self):
        tokens = self.tokens()[0]
        for expected, sentence in [(tokens[:3], f"step 3 of row 0: token {tokens[3]} and not no token"),
                                   (tokens + [5], "step 20 of row 0: no token and not token 5")]:
            (self.folder / "e.json").write_text(json.dumps(expected))
            done = self.generate("--expect", "e.json")
            self.assertEqual(done.returncode, 1)
            self.assertIn(sentence, done.stdout)
            self.assertNotIn("-1", done.stdout)
        for empty in [[], [[]], {"sequences": [[3, 1, 4, 1, 5, 9]]}]:
            (self.folder / "e.json").write_text(json.dumps(empty))
            self.assert_refused(self.generate("--expect", "e.json"), 2, "the expected sequence 0 of 'e.json' holds no new token")

    def test_a_mask_of_the_wrong_length(self):
        (self.folder / "p.json").write_text(json.dumps({"input_ids": [[3, 1, 4]], "attention_mask": [[1, 1]]}))
        done = self.run_program("generate", "m.textproto", "--prompt-file", "p.json")
        self.assert_refused(done, 2, "the mask of prompt 0 has the length 2; it must be as long as the prompt, 3")
        (self.folder / "p.json").write_text(json.dumps({"input_ids": [[0, 3, 1]], "attention_mask": [[0, 1, 1]]}))
        done = self.run_program("generate", "m.textproto", "--prompt-file", "p.json", "--json")
        self.assertEqual(document_of(done)["sequences"], self.tokens(prompt="3,1"))

    def test_settings_that_exclude_each_other(self):
        for arguments, sentence in [(("--top-k", "3"), "add --sample"), (("--length-penalty", "2"), "add --beams N"),
                                    (("--return", "2"), "--beams N makes more"), (("--temperature", "0", "--sample"), "above 0"),
                                    (("--min-new-tokens", "30"), "--max-new-tokens 20"),
                                    (("--early-stopping", "x", "--beams", "2"), "true, false or never"),
                                    (("--cache", "somewhere"), "in-place, copy or none"), (("--csv", "x.csv"), "two sides")]:
            with self.subTest(arguments):
                self.assert_refused(self.generate(*arguments), 2, sentence)

    def test_a_folder_without_models(self):
        (self.folder / "empty").mkdir()
        self.assert_refused(self.generate(model="empty"), 2, "holds no model")


if __name__ == "__main__":
    main()
