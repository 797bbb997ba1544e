#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reduces the faults of the diagnosis benchmark, and repeats each finding by the script that is left.

    reduce_faults.py --parallax build/release/bin/parallax [--share 1/10] [--few 0.9] [--failing 1] [--show]

Prints how many faults were reduced to at most three nodes, how many of these parts still fail, and the mean number of nodes. Ends with 1
below the levels asked for.
"""
import argparse
import fractions
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from diagnose import HERE, pairs_of

FEW = 3


def reduce(parallax, pair, folder):
    """Nodes left (None where nothing was), whether they still fail, and the command."""
    pair.write(folder)
    command = [parallax, "reduce", f"{folder}/A.onnx", "--against", f"{folder}/B.onnx", "--inputs", f"{folder}/test_data_set_0",
               "-o", f"{folder}/small", "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        return None, False, command
    repeated = subprocess.run([f"{folder}/small/repeat.sh"], env={**os.environ, "PARALLAX": parallax}, capture_output=True, check=False)
    return json.loads(answer.stdout)["nodes"], repeated.returncode == 1, command


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallax", required=True, type=os.path.abspath)
    parser.add_argument("--share", type=fractions.Fraction, default=fractions.Fraction(1))
    parser.add_argument("--few", type=float, default=0.0, help="share of faults that must end at three nodes or fewer")
    parser.add_argument("--failing", type=float, default=0.0, help="share of faults whose part must still fail")
    parser.add_argument("--show", action="store_true", help="print what is wrong, pair by pair")
    options = parser.parse_args()
    manifest = json.loads((HERE / "manifest.json").read_text())
    manifest["healthy"] = []
    pairs = list(pairs_of(manifest, options.share))
    with tempfile.TemporaryDirectory(prefix="parallax-reduce-") as work, ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda pair: reduce(options.parallax, pair, pathlib.Path(work) / pair.name), pairs))
    few = sum(nodes is not None and nodes <= FEW for nodes, _, _ in answers)
    failing = sum(fails for _, fails, _ in answers)
    left = [nodes for nodes, _, _ in answers if nodes is not None]
    for pair, (nodes, fails, command) in zip(pairs, answers):
        if options.show and (nodes is None or nodes > FEW or not fails):
            print(f"{pair.name}: {nodes} nodes, {'still fails' if fails else 'does not fail'}\n    {' '.join(map(str, command))}")
    print(f"{len(pairs)} faults: {few} end at {FEW} nodes or fewer, {failing} still fail, {sum(left) / max(len(left), 1):.2f} nodes on average")
    sys.exit(0 if few >= options.few * len(pairs) and failing >= options.failing * len(pairs) else 1)


if __name__ == "__main__":
    main()
