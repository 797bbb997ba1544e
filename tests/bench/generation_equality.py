#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens of Parallax against transformers' own: families, types, greedy, beams, padded batches, merged decoders.

    generation_equality.py [--families llama,phi,gpt2,t5] [--dtypes float32,float16,bfloat16] [--size tiny] [--greedy 60]
                           [--beams 20] [--batches 5] [--models FOLDER]

A row of the table is a model; "near" counts sequences that differ where rounding in the model's type may choose either
(near_ties.py). Below a row: each difference, with the distance of both sides to float64. Models are kept in FOLDER (as
FOLDER/llama-float16) and exported there once.
"""

import argparse
import collections
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "inspector" / "python" / "torch"))
import generation_cases as cases
from near_ties import Judge

import parallax


def tally(verdicts):
    counts = collections.Counter(verdicts)
    near = f" ({counts['near tie']} near)" if counts["near tie"] else ""
    return f"{counts['equal'] + counts['near tie']}/{len(verdicts)}{near}", counts["wrong"]


def check(family, dtype, arguments, folder):
    if (folder / "generation_config.json").exists():
        model = cases.language_models.make_model(family, arguments.size, dtype=getattr(torch, dtype))
    else:
        model = cases.made_model(family, folder, getattr(torch, dtype), arguments.size)
    rows = cases.prompts(arguments.greedy, model.config.vocab_size)
    beams = {"max_new_tokens": 20, **cases.BEAMS}
    batched = rows[: 3 * arguments.batches]
    wrong = 0
    for kind, source in [("", folder), *([("merged", cases.merge(folder))] if family == "t5" else [])]:
        started = time.perf_counter()
        options = {"eos_token_id": 1, "pad_token_id": 0}
        if family == "t5":
            options["decoder_start_token_id"] = 0
        generator = parallax.Generator(source)
        judge = Judge(model, source, generator)
        cells = [
            tally(cases.compare(model, generator, rows, judge, max_new_tokens=20, **options)),
            tally(cases.compare(model, generator, rows[: arguments.beams], judge, **beams, **options)),
            tally(cases.compare_batches(model, generator, batched, judge, max_new_tokens=20, **options)),
        ]
        wrong += sum(cell[1] for cell in cells)
        print(f"{family:<6} {kind:<7} {dtype:<9} " + " ".join(f"{cell[0]:<16}" for cell in cells)
              + f" {time.perf_counter() - started:6.1f} s", flush=True)
        for found in judge.differences:
            print(f"       step {found.step}: to float64 theirs {found.theirs:.4f}, ours {found.ours:.4f}; margin"
                  f" {found.margin:.4f}, bound {found.bound:.4f}{'' if found.is_near_tie else ': wrong'}", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default="llama,phi,gpt2,t5")
    parser.add_argument("--dtypes", default="float32,float16,bfloat16")
    parser.add_argument("--size", default="tiny", choices=["tiny", "small"])
    parser.add_argument("--greedy", type=int, default=60)
    parser.add_argument("--beams", type=int, default=20)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--models", type=Path)
    arguments = parser.parse_args()
    print(f"{'model':<14} {'type':<9} {'greedy':<16} {'4 beams':<16} {'batches of 3':<16}")
    wrong = 0
    for family in arguments.families.split(","):
        for dtype in arguments.dtypes.split(","):
            with tempfile.TemporaryDirectory() as folder:
                made = arguments.models / f"{family}-{dtype}" if arguments.models else Path(folder)
                wrong += check(family, dtype, arguments, made)
    print("pass" if wrong == 0 else f"{wrong} sequences differ beyond rounding")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
