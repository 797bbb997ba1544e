#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scores Parallax on the diagnosis benchmark: every fault of the manifest, and every pair of sound models.

    diagnose.py --parallax build/release/bin/parallax [--share 1/3] [--work DIR] [--show]

Prints how many faults are seen (exit code 1), for how many the node to be blamed stands first and among the first three causes, by group;
for two roots, how many pairs have both among the first three; and how many sound pairs raise an alarm. Ends with 1 below the level
that is asked for by --detection, --rank1, --rank3, --group, --two-roots and --alarms.
"""
import argparse
import collections
import fractions
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

try:
    from make_pairs import fault_pair, healthy_pair
except ImportError as missing:
    print(f"not run: {missing} (packages python3-onnx and python3-numpy)")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent


def pairs_of(manifest, share):
    """The pairs, or an evenly spread part of them."""
    def part(rows):
        return [row for index, row in enumerate(rows) if int(index * share) != int((index + 1) * share)]

    for row in part(manifest["faults"]):
        pair = fault_pair(row["number"], row["base"], row["kinds"], row["renamed"], row["reordered"], row["restructured"])
        if row["effect"] < 1e-3:
            pair.groups.add("weak")
        yield pair
    for row in part(manifest["healthy"]):
        yield healthy_pair(row["number"], row["base"], row["change"])


def blame(parallax, pair, folder, executors):
    pair.write(folder)
    command = [parallax, "blame", f"{folder}/A.onnx", "--against", f"{folder}/B.onnx", "--with", executors, "--inputs", f"{folder}/test_data_set_0", "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return answer.returncode, json.loads(answer.stdout), command
    except json.JSONDecodeError:
        return answer.returncode, {"error": answer.stdout[-300:] + answer.stderr[-300:]}, command


class Score:
    def __init__(self):
        self.counts = collections.defaultdict(collections.Counter)

    def add(self, group, **facts):
        self.counts[group].update({key: int(value) for key, value in facts.items()})
        self.counts[group]["all"] += 1

    def rate(self, group, fact):
        counts = self.counts[group]
        return counts[fact] / counts["all"] if counts["all"] else 1.0

    def line(self, group, facts):
        counts = self.counts[group]
        return f"{group:14} {counts['all']:4d}  " + "  ".join(f"{fact} {100 * self.rate(group, fact):5.1f} %" for fact in facts)


def judge(pair, code, document, score):
    """Counts one pair; a line of text when something is wrong with it."""
    nodes = [cause["node"] for cause in document.get("causes", [])]
    if "healthy" in pair.groups:
        score.add("healthy", alarms=code != 0)
        return f"{pair.name}: alarm {code}, {document.get('first_divergence') or document.get('error') or document.get('verdict')}" if code else ""
    found = [next((rank for rank, node in enumerate(nodes) if node in root), 99) for root in pair.roots]
    facts = {"seen": code == 1, "rank1": min(found) == 0, "rank3": min(found) < 3}
    score.add("all", **facts)
    for group in pair.groups - {"two roots"}:
        score.add(group, **facts)
    if len(found) > 1:
        score.add("two roots", both=max(found) < 3)
    if facts["seen"] and facts["rank1"] and max(found) < 3:
        return ""
    said = [f"{cause['node']} ({cause['op']}): {cause['why']}" for cause in document.get("causes", [])[:3]]
    return f"{pair.name} {sorted(pair.groups)}: exit code {code}, roots {[sorted(root) for root in pair.roots]}, said {said or document.get('error') or document.get('first_divergence')}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallax", required=True)
    parser.add_argument("--with", dest="executors", default="reference")
    parser.add_argument("--share", type=fractions.Fraction, default=fractions.Fraction(1))
    parser.add_argument("--manifest", default=str(HERE / "manifest.json"))
    parser.add_argument("--work", help="keep the pairs here")
    parser.add_argument("--show", action="store_true", help="print what is wrong, pair by pair")
    parser.add_argument("--only", default="", help="pairs whose name holds this")
    for level, default in (("detection", 0.0), ("rank1", 0.0), ("rank3", 0.0), ("group", 0.0), ("two-roots", 0.0), ("alarms", 1.0)):
        parser.add_argument(f"--{level}", type=float, default=default)
    options = parser.parse_args()
    work = pathlib.Path(options.work or tempfile.mkdtemp(prefix="parallax-diagnosis-"))
    pairs = [pair for pair in pairs_of(json.loads(pathlib.Path(options.manifest).read_text()), options.share) if options.only in pair.name]
    score = Score()
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda pair: blame(options.parallax, pair, work / pair.name, options.executors), pairs))
    for pair, (code, document, command) in zip(pairs, answers):
        wrong = judge(pair, code, document, score)
        if wrong and (options.show or options.only):
            print(f"{wrong}\n    {' '.join(command)}")
    if not options.work:
        shutil.rmtree(work)
    groups = [group for group in ("renamed", "reordered", "restructured", "in bodies", "weak") if score.counts[group]["all"]]
    for group in ("all", *groups):
        print(score.line(group, ("seen", "rank1", "rank3")))
    for group, fact in (("two roots", "both"), ("healthy", "alarms")):
        if score.counts[group]["all"]:
            print(score.line(group, (fact,)))
    reached = [score.rate("all", "seen") >= options.detection, score.rate("all", "rank1") >= options.rank1, score.rate("all", "rank3") >= options.rank3,
               all(score.rate(group, "rank1") >= options.group for group in groups), score.rate("two roots", "both") >= options.two_roots,
               score.rate("healthy", "alarms") <= options.alarms or not score.counts["healthy"]["all"]]
    sys.exit(0 if all(reached) else 1)


if __name__ == "__main__":
    main()
