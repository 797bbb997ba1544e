#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From a prompt to an answer: transformers, a loop of one's own, and the exported model in Parallax.

    generate_with_cache.py [--model NAME] [--prompt TEXT] [--family llama|phi|gpt2] [--new-tokens 20] [--plot F.png]

Without `--model` the model is a small one with random weights, and the prompt is token ids; with it, a model of the Hugging
Face hub is loaded with its tokenizer. Three ways give the same tokens; the table says what each takes.
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch
import transformers
from language_models import export_decoder, make_model

import parallax
from parallax.helpers import string_type


def load(arguments):
    """Model, tokenizer or None, and prompt [1, positions]."""
    if arguments.model is None:
        model = make_model(arguments.family)
        return model, None, torch.randint(2, model.config.vocab_size, (1, 12))
    model = transformers.AutoModelForCausalLM.from_pretrained(arguments.model, dtype="auto").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.model)
    return model, tokenizer, tokenizer(arguments.prompt, return_tensors="pt").input_ids


def simple_generate_with_cache(model, input_ids, eos_token_id, max_new_tokens):
    """The most likely token each time; after the prompt a step computes one position."""
    outputs = model(input_ids, use_cache=True)
    for _ in range(max_new_tokens):
        token = outputs.logits[:, -1, :].argmax(dim=-1, keepdim=True)
        input_ids = torch.cat([input_ids, token], dim=-1)
        if token.item() == eos_token_id:
            break
        outputs = model(token, use_cache=True, past_key_values=outputs.past_key_values)
    return input_ids


def timed(function):
    started = time.perf_counter()
    result = function()
    return result, time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a model of the hub, microsoft/phi-1_5 for example")
    parser.add_argument("--prompt", default="def print_prime(n):\n   ")
    parser.add_argument("--family", default="llama", choices=["llama", "phi", "gpt2"])
    parser.add_argument("--new-tokens", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="where the exported model is kept, and found again")
    parser.add_argument("--plot", type=Path, default=Path("generate_with_cache.png"))
    arguments = parser.parse_args()

    model, tokenizer, ids = load(arguments)
    eos = model.generation_config.eos_token_id
    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        folder = arguments.folder or Path(scratch)
        if not (folder / "model.onnx").exists():
            print("exporting ...")
            export_decoder(model, folder)
        generator = parallax.Generator(folder)
        print(generator)
        ways = {
            "transformers": lambda: model.generate(ids, max_new_tokens=arguments.new_tokens, do_sample=False),
            "own loop": lambda: simple_generate_with_cache(model, ids, eos, arguments.new_tokens),
            "parallax": lambda: generator.generate(ids, max_new_tokens=arguments.new_tokens, eos_token_id=eos).sequences,
        }
        times, answers = {}, {}
        for name, way in ways.items():
            way()  # warm-up
            answers[name], times[name] = timed(way)
            print(f"{name:<14} {times[name]:8.4f} s  {string_type(answers[name], with_shape=True, with_min_max=True)}")
    tokens = {name: [int(token) for token in answer[0]] for name, answer in answers.items()}
    if tokenizer is not None:
        print(tokenizer.decode(tokens["parallax"]))
    parallax.plot.bars(times, baseline="transformers", title="time to generate").figure.savefig(arguments.plot)
    same = all(answer == tokens["transformers"] for answer in tokens.values())
    print(f"{'pass' if same else 'diverged'}: {len(tokens['parallax']) - ids.shape[1]} new tokens, {len(tokens)} ways")
    raise SystemExit(0 if same else 1)


if __name__ == "__main__":
    main()
