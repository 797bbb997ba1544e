#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of this program side by side on whole models: what a kernel or a fast path gains (runtime/PATHS.md).

    paths_bench.py WITH WITHOUT MODEL.onnx... [--decode DIR...] [--rounds 14] [--seconds 0.3] [--threads N]

WITH and WITHOUT are programs `parallax`, of which the second lacks the path: built from two commits, or with its
condition switched off. In each round both run once, and once more the first as a control. A gain is the least time of
WITHOUT over that of WITH, in percent, and the same of the user's processor time of whole processes; the control shows
what of it is noise. DIR of --decode has a decoder's `model.onnx`, which generates 48 tokens.
"""

import argparse
import json
import pathlib
import resource
import subprocess

PROMPT = ",".join(str(3 + 7 * i % 400) for i in range(32))


def run(command: list[str]) -> tuple[dict[str, dict[str, float]], float]:
    """The document that `command` prints, and the seconds of user time that it took. Fails where the command does."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def run_model(program: str, model: str, threads: int, iterations: int) -> tuple[float, float]:
    """The least milliseconds of a run, and seconds of user time."""
    document, user = run([program, "bench", model, "--with", "cpu", "--threads", str(threads), "--iterations",
                          str(iterations), "--json"])
    return document["latency_ms"]["min"], user


def run_decoder(program: str, folder: str, threads: int, _: int) -> tuple[float, float]:
    """The median milliseconds of a step, and seconds of user time."""
    document, user = run([program, "generate", folder, "--prompt-ids", PROMPT, "--max-new-tokens", "48", "--eos",
                          "none", "--threads", str(threads), "--json"])
    return document["decode_ms"]["median"], user


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("with_path", metavar="WITH")
    parser.add_argument("without", metavar="WITHOUT")
    parser.add_argument("models", metavar="MODEL", nargs="*")
    parser.add_argument("--decode", metavar="DIR", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each process, of models")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    print(f"{'model':<32} {'with ms':>9} {'without':>9} {'gain %':>7} {'user %':>7} {'control %':>10}")
    models, decoders = ((run_model, each) for each in given.models), ((run_decoder, each) for each in given.decode)
    for runs, name in [*models, *decoders]:
        first, _ = runs(given.with_path, name, given.threads, 3)
        iterations = max(3, int(given.seconds * 1e3 / first))
        times: list[list[tuple[float, float]]] = [[], [], []]
        for _ in range(given.rounds):
            for program, of_program in zip((given.with_path, given.without, given.with_path), times):
                of_program.append(runs(program, name, given.threads, iterations))
        (ours, user), (other, other_user), (control, _) = ([min(each) for each in zip(*of)] for of in times)
        path = pathlib.Path(name)
        print(f"{path.stem:<32} {ours:9.3f} {other:9.3f} {100 * (other / ours - 1):7.1f} "
              f"{100 * (other_user / user - 1):7.1f} {100 * (control / ours - 1):10.1f}", flush=True)


if __name__ == "__main__":
    main()
