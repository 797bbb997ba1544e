#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decoding of language models: `parallax generate`, the same loop over onnxruntime with caches by IO binding, transformers.

    OMP_WAIT_POLICY=passive generate_bench.py PARALLAX --llama DIR --phi DIR --t5 DIR [--hf] [--rounds 5] [--threads 2]

Folders are those of a model maker that writes `model.onnx` (llama, phi) or `encoder/ decoder/ decoder_with_past/` (t5). All
contestants run in turns, round by round; a row has the median over rounds of each one's median step (of transformers: of the
mean step, the first included), and the ratio to ours.
`--hf` adds transformers (eager) on models of the same configuration and random weights, where torch is installed.
`--genai` adds onnxruntime-genai on the same files, and a row on the models that its own builder makes (which needs
torch and transformers). `--sides` compares the time of `--with reference,cpu` with that of `reference` alone.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import genai_decoders

import numpy as np
import onnxruntime

PROMPT, NEW = 32, 48


def prompt_of(length, vocabulary):
    return [int(i) for i in np.random.default_rng(0).integers(3, vocabulary, length)]


def ours(parallax, model, prompt, new, threads, *more):
    """Median milliseconds of a step after the first, and the tokens."""
    command = [parallax, "generate", str(model), "--prompt-ids", ",".join(map(str, prompt)), "--max-new-tokens", str(new), "--eos",
               "none", "--threads", str(threads), "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    return document["decode_ms"]["median"], document["sequences"][0]


def session_of(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class OrtDecoder:
    """Greedy decoding of a model with caches; caches go from output to input as OrtValues, never through numpy."""

    def __init__(self, model, threads):
        self.session = session_of(Path(model) / "model.onnx", threads)
        self.inputs = {i.name: i for i in self.session.get_inputs()}
        self.past = [n for n in self.inputs if n.startswith("past_key_values")]
        self.outputs = [o.name for o in self.session.get_outputs()]

    def empty(self, name):
        shape = [d if isinstance(d, int) else (1 if axis == 0 else 0) for axis, d in enumerate(self.inputs[name].shape)]
        return onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32))

    def run(self, prompt, new):
        caches = {name: self.empty(name) for name in self.past}
        ids, total, times, tokens = np.array([prompt], np.int64), 0, [], []
        for _ in range(new):
            start = time.perf_counter()
            binding = self.session.io_binding()
            total += ids.shape[1]
            binding.bind_cpu_input("input_ids", ids)
            if "attention_mask" in self.inputs:
                binding.bind_cpu_input("attention_mask", np.ones((1, total), np.int64))
            if "position_ids" in self.inputs:
                binding.bind_cpu_input("position_ids", np.arange(total - ids.shape[1], total, dtype=np.int64)[None])
            for name, value in caches.items():
                binding.bind_ortvalue_input(name, value)
            for name in self.outputs:
                binding.bind_output(name)
            self.session.run_with_iobinding(binding)
            values = dict(zip(self.outputs, binding.get_outputs()))
            caches = {name: values[name.replace("past_key_values", "present")] for name in self.past}
            token = int(values["logits"].numpy()[0, -1].argmax())
            tokens.append(token)
            ids = np.array([[token]], np.int64)
            times.append(1000 * (time.perf_counter() - start))
        return statistics.median(times[1:]), tokens


def transformers_model(kind):
    import transformers

    sizes = dict(hidden_size=512, num_hidden_layers=6, num_attention_heads=8, vocab_size=8000, max_position_embeddings=2048)
    tokens = dict(bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=False)
    if kind == "llama":
        config = transformers.LlamaConfig(intermediate_size=1376, num_key_value_heads=4, **sizes, **tokens)
        return transformers.LlamaForCausalLM(config).eval()
    if kind == "phi":
        return transformers.PhiForCausalLM(transformers.PhiConfig(intermediate_size=2048, **sizes, **tokens)).eval()
    config = transformers.T5Config(d_model=512, d_ff=2048, d_kv=64, num_layers=6, num_heads=8, vocab_size=8000,
                                   decoder_start_token_id=0)
    return transformers.T5ForConditionalGeneration(config).eval()


def transformers_of(kind, threads):
    import torch

    torch.set_num_threads(threads)
    model = transformers_model(kind)

    def run(prompt, new, beams=1):
        ids = torch.tensor([prompt])
        start = time.perf_counter()
        with torch.no_grad():
            model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, min_new_tokens=new, num_beams=beams,
                           do_sample=False, pad_token_id=0, eos_token_id=None)
        return 1000 * (time.perf_counter() - start) / new

    return run


def interleaved(contestants, rounds):
    """Name -> median over rounds; the first round warms up."""
    times = {name: [] for name in contestants}
    for index in range(rounds + 1):
        for name, run in contestants.items():
            value = run()
            if index > 0:
                times[name].append(value)
    return {name: statistics.median(values) for name, values in times.items()}


def show(title, result):
    base = result["parallax"]
    print(f"{title}: " + ", ".join(f"{name} {ms:.2f} ms ({ms / base:.2f})" for name, ms in result.items()), flush=True)


def decoder_rows(kind, folder, options):
    vocabulary = 8000 if "small" in str(folder) else 200
    prompt = prompt_of(PROMPT, vocabulary)
    peer = OrtDecoder(folder, options.threads)
    same = ours(options.parallax, folder, prompt, NEW, options.threads)[1] == peer.run(prompt, NEW)[1]
    contestants = {"parallax": lambda: ours(options.parallax, folder, prompt, NEW, options.threads)[0],
                   "onnxruntime": lambda: peer.run(prompt, NEW)[0]}
    if options.hf:
        run = transformers_of(kind, options.threads)
        contestants["transformers"] = lambda: run(prompt, NEW)
    if options.genai:
        with tempfile.TemporaryDirectory() as made:
            genai_decoders.write_config(kind, folder, Path(made))
            genai = genai_decoders.GenaiDecoder(Path(made), options.threads)
        same = same and genai.run(prompt, NEW)[1] == peer.run(prompt, NEW)[1]
        contestants["onnxruntime-genai"] = lambda: genai.run(prompt, NEW)[0]
    show(f"{kind} {PROMPT}+{NEW}, tokens {'equal' if same else 'DIFFER'}", interleaved(contestants, options.rounds))
    long = prompt_of(options.context - 16, vocabulary)
    show(f"{kind} context {options.context}", interleaved(
        {"parallax": lambda: ours(options.parallax, folder, long, 16, options.threads, "--cache", "in-place")[0],
         "copied": lambda: ours(options.parallax, folder, long, 16, options.threads, "--cache", "copy")[0],
         "onnxruntime": lambda: peer.run(long, 16)[0]}, options.rounds))


def genai_rows(kind, options):
    """The model that genai's builder makes, in its favor: one attention operator a layer and caches in one buffer."""
    with tempfile.TemporaryDirectory() as made:
        folder = genai_decoders.build(transformers_model(kind), Path(made))
        genai = genai_decoders.GenaiDecoder(folder, options.threads)
        prompt = prompt_of(PROMPT, 8000)
        same = ours(options.parallax, folder, prompt, NEW, options.threads)[1] == genai.run(prompt, NEW)[1]
        title = f"{kind} of genai's builder {PROMPT}+{NEW}, tokens {'equal' if same else 'DIFFER'}"
        show(title, interleaved({"parallax": lambda: ours(options.parallax, folder, prompt, NEW, options.threads)[0],
                                 "onnxruntime-genai": lambda: genai.run(prompt, NEW)[0]}, options.rounds))


def side_rows(title, folder, options):
    """Seconds of whole programs: two sides at once, all values or the logits alone compared, against the reference."""
    def seconds(executors, *more):
        command = [options.parallax, "generate", str(folder), "--prompt-ids", prompt, "--max-new-tokens", "16", "--eos",
                   "none", "--with", executors, "--threads", str(options.threads), "--json", *more]
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        return time.perf_counter() - start

    prompt = ",".join(map(str, prompt_of(PROMPT, 200 if "tiny" in str(folder) else 8000)))
    times = interleaved({"reference": lambda: seconds("reference"),
                         "both, logits compared": lambda: seconds("reference,cpu", "--capture", "none"),
                         "both, all values compared": lambda: seconds("reference,cpu")}, options.rounds)
    alone = times["reference"]
    columns = (f"{name} {time:.2f} s ({time / alone:.2f})" for name, time in times.items())
    print(f"{title}: {', '.join(columns)}", flush=True)


def t5_rows(folder, options):
    prompt = prompt_of(PROMPT, 8000 if "small" in str(folder) else 200)
    run = transformers_of("t5", options.threads) if options.hf else None
    for beams in (1, 4):
        contestants = {"parallax": lambda: ours(options.parallax, folder, prompt, NEW, options.threads, "--beams", str(beams))[0]}
        if run is not None:
            contestants["transformers"] = lambda: run(prompt, NEW, beams)
        show(f"t5 {beams} beam{'s' if beams > 1 else ''}", interleaved(contestants, options.rounds))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parallax")
    for kind in ("llama", "phi", "t5"):
        parser.add_argument(f"--{kind}", type=Path)
    parser.add_argument("--hf", action="store_true")
    parser.add_argument("--genai", action="store_true")
    parser.add_argument("--sides", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=1024)
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, {options.threads} threads")
    if options.genai and (sentence := genai_decoders.missing_reason()) is not None:
        print(sentence)
        options.genai = False
    if options.sides:
        for kind in ("llama", "phi", "t5"):
            if getattr(options, kind) is not None:
                side_rows(kind, getattr(options, kind), options)
        return
    for kind in ("llama", "phi"):
        if getattr(options, kind) is not None:
            decoder_rows(kind, getattr(options, kind), options)
            if options.genai:
                genai_rows(kind, options)
    if options.t5 is not None:
        t5_rows(options.t5, options)


if __name__ == "__main__":
    main()
