#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""T5 in half precision with one decoder model: which nodes stay in float32, what that costs, and how fast it generates.

    t5_half_merged.py [--model NAME] [--text TEXT] [--sets 3] [--new-tokens 12] [--plots DIR]

1. A T5 whose feed-forward layers leave float16's range is exported: encoder, first decoder step, later decoder steps.
2. Each is watched on random inputs; what half precision cannot hold stays in float32; the rest is converted, and verified.
3. Both decoders become one model with an If, every weight once, and both branches are compared with their models.
4. transformers' beam search runs over the sessions, compared with PyTorch's; each setup's time by token is drawn.

Without `--model` the model is a small one with random weights; with it ("t5-small"), one of the Hugging Face hub.
"""

import argparse
import random
import tempfile
import time
from pathlib import Path

import torch
import transformers
from language_models import export_seq2seq, make_model

import parallax


def load(arguments):
    """Model, tokenizer or None, and input [1, positions]."""
    if arguments.model is not None:
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(arguments.model, attn_implementation="eager").eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.model)
        return model, tokenizer, tokenizer(arguments.text, return_tensors="pt").input_ids
    model = make_model("t5")
    for block in [*model.encoder.block, *model.decoder.block]:  # sums of 1e5 next to residuals of order 1e3
        dense = block.layer[-1].DenseReluDense
        with torch.no_grad():
            dense.wi.weight.mul_(1000)
            dense.wo.weight.mul_(20)
    return model, None, torch.randint(2, model.config.vocab_size, (1, 12))


class RandomInputs:
    """Inputs of each model, from a seed: those of the decoders come from the encoder and the first decoder step."""

    def __init__(self, folder, vocabulary):
        self.vocabulary, self.random = vocabulary, random.Random(0)
        self.sessions = {name: parallax.Session(folder / name / "model.onnx") for name in ("encoder", "decoder")}

    def encoder(self):
        length = self.random.randint(2, 32)
        shape = (max(1, 32 // length), length)
        return {"input_ids": self.tokens(shape), "attention_mask": torch.ones(shape, dtype=torch.int64)}

    def decoder(self):
        source = self.encoder()
        states = self.sessions["encoder"].run(source)["last_hidden_state"]
        return {
            "input_ids": self.tokens((len(states), self.random.randint(2, 8))), "encoder_hidden_states": states,
            "encoder_attention_mask": source["attention_mask"],
        }

    def decoder_with_past(self):
        first = self.decoder()
        outputs = self.sessions["decoder"].run(first)
        past = {name.replace("present", "past_key_values"): value for name, value in outputs.items() if name != "logits"}
        return {**first, "input_ids": self.tokens((len(first["input_ids"]), 1)), **past}

    def tokens(self, shape):
        return torch.tensor([[self.random.randrange(2, self.vocabulary) for _ in range(shape[1])] for _ in range(shape[0])])


def to_half(folder, target, vocabulary, sets):
    """Writes encoder, decoder and decoder_with_past in float16, with the nodes in float32 that need it."""
    inputs = RandomInputs(folder, vocabulary)
    for name in ("encoder", "decoder", "decoder_with_past"):
        path = folder / name / "model.onnx"
        get_input = getattr(inputs, name)
        audit = parallax.audit_fp16(path, lambda get=get_input: {**get()}, until_stable=sets)
        (target / name).mkdir(parents=True)
        made = parallax.convert(path, "float16", target / name / "model.onnx", keep=audit.keep, keep_io=True).to_dict()
        print(f"{name:<18} {audit.counts['must']} nodes leave the range; {len(audit.keep)} stay in float32, {made['casts']} casts, "
              f"{'verified' if audit.passed else 'beyond the tolerance'}")


def merge(folder):
    """Both decoders as one; returns its model."""
    paths = [folder / name / "model.onnx" for name in ("decoder", "decoder_with_past")]
    merged = parallax.merge_decoders(*paths, condition="enable_cache", verify=True)
    document = merged.to_dict()
    print(f"merged             {document['weights']['shared']} weights shared, {document['weights']['bytes']}, "
          f"{document['verification']['verdict']}")
    return merged.model


def latencies(model, ids, tokens, **options):
    """Seconds of each step."""
    times, forward = [], model.forward

    def timed(*args, **kwargs):
        started = time.perf_counter()
        result = forward(*args, **kwargs)
        times.append(time.perf_counter() - started)
        return result

    model.forward = timed
    try:
        model.generate(ids, min_new_tokens=tokens, max_new_tokens=tokens, do_sample=False, **options)
    finally:
        del model.forward
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="an encoder-decoder of the hub: t5-small")
    parser.add_argument("--text", default="translate English to French: This model is now very fast!")
    parser.add_argument("--sets", type=int, default=3, help="the audit ends after so many inputs without another node")
    parser.add_argument("--new-tokens", type=int, default=12)
    parser.add_argument("--plots", type=Path, default=Path("."))
    arguments = parser.parse_args()

    model, tokenizer, ids = load(arguments)
    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        folder, half = Path(scratch) / "float32", Path(scratch) / "float16"
        print("exporting ...")
        export_seq2seq(model, folder)
        to_half(folder, half, model.config.vocab_size, arguments.sets)
        merged = merge(half)
        ours = parallax.hf.from_onnx({"encoder": half / "encoder" / "model.onnx", "merged": merged}, model.config)
        ours.generation_config = model.generation_config
        options = {"num_beams": 4, "no_repeat_ngram_size": 2, "min_length": 3, "max_length": arguments.new_tokens}
        answers = {"PyTorch": model.generate(ids, **options), "Parallax": ours.generate(ids, **options)}
        for name, answer in answers.items():
            print(f"{name:<18} {answer[0].tolist() if tokenizer is None else tokenizer.decode(answer[0], skip_special_tokens=True)}")
        runs = {
            f"{name}{' + cache' if cache else ''}": latencies(each, ids, arguments.new_tokens, use_cache=cache)
            for name, each in (("Parallax", ours), ("PyTorch", model)) for cache in (False, True)
        }
        profile = parallax.profile(half / "decoder_with_past" / "model.onnx")
    for cumulative in (False, True):
        title = "sum" if cumulative else "each token"
        parallax.plot.latencies(runs, cumulative=cumulative, title=title).figure.savefig(
            arguments.plots / f"t5_latency_{title.replace(' ', '_')}.png")
    parallax.plot.kernel_shares(profile, leave_out=("If",)).figure.savefig(arguments.plots / "t5_kernels.png")
    for name, times in runs.items():
        print(f"{name:<18} {sum(times):.4f} s in {len(times)} steps")
    same = torch.equal(answers["PyTorch"], answers["Parallax"])
    print(f"{'pass' if same else 'differs in half precision'}: {answers['Parallax'].shape[1]} tokens with 4 beams")


if __name__ == "__main__":
    main()
