#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scores Parallax on what real tools make of real architectures: healthy pairs must stay silent, mistakes must be named.

    tools_pairs.py --parallax build/release/bin/parallax [--seed 1] [--count 200,300] [--forms a,b] [--kinds a,b]
      [--architectures a,b] [--keep DIR] [--keep-all] [--work DIR] [-o scores.json]

A is an export of torch, B what a tool made of it (tools/forms.py); a faulty pair has one or two mistakes on B
(tools/mistakes.py). onnxruntime proves each: A's and B's outputs of a faulty pair differ at least four times as much as
those of the healthy pair. Everything follows from the seed. Needs torch, transformers, onnx, onnxruntime, onnxscript;
forms of packages that are not there are left out with a sentence.
"""
from __future__ import annotations

import argparse
import logging
import os
import pathlib
import sys
import tempfile
import warnings
from concurrent.futures import Future, ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
try:
    import onnxruntime
    from tools.architectures import ARCHITECTURES, Exports
    from tools.forms import ABSENT, FORMS
    from tools.mistakes import MISTAKES
    from tools.pairs import Maker, Pair
    from tools.score import Report, judge, run
except ImportError as missing:
    print(f"skipped: {missing}; pip install torch transformers onnx onnxruntime onnxscript")
    sys.exit(77)


def chosen(given: str, known: list[str], what: str) -> list[str]:
    """The names that were asked for. Ends the program where one is unknown."""
    names = given.split(",") if given else known
    for name in names:
        if name not in known:
            sys.exit(f"{what} '{name}' is unknown; it must be one of {', '.join(known)}")
    return names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallax", required=True, type=os.path.abspath)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", default="200,300", help="healthy and faulty pairs; a seventh of the faulty have two mistakes")
    parser.add_argument("--forms", default="")
    parser.add_argument("--kinds", default="")
    parser.add_argument("--architectures", default="")
    parser.add_argument("--jobs", type=int, default=2, choices=range(1, 33))
    parser.add_argument("--timeout", type=float, default=180, help="seconds for one run")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="make no more pairs after this time")
    parser.add_argument("--work", help="keep exports here, for the next run with the same seed")
    parser.add_argument("--keep", help="keep the pairs that are wrong in this folder")
    parser.add_argument("--keep-all", action="store_true", help="keep the others, too")
    parser.add_argument("--strict", action="store_true", help="end with 1 where a pair is wrong")
    parser.add_argument("-o", dest="output", help="write the scores and every pair as JSON")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    onnxruntime.set_default_logger_severity(4)
    healthy, faulty = (int(number) for number in options.count.split(","))
    for name, reason in ABSENT.items():
        print(f"form {name} is left out: {reason}")
    architectures = chosen(options.architectures, list(ARCHITECTURES), "architecture")
    forms, kinds = chosen(options.forms, list(FORMS), "form"), chosen(options.kinds, list(MISTAKES), "kind")
    with tempfile.TemporaryDirectory(prefix="parallax-tools-") as scratch, ThreadPoolExecutor(options.jobs) as pool:
        folder = pathlib.Path(options.keep or scratch).resolve()
        maker = Maker(Exports(pathlib.Path(options.work or scratch), options.seed), pathlib.Path(scratch), architectures, forms, kinds)
        report = Report(options.seed)

        def judged(pair: Pair, path: pathlib.Path) -> None:
            result = judge(pair, *run(options.parallax, path, options.timeout))
            report.add(result, path, keep=bool(options.keep) and (options.keep_all or bool(result.wrong)))

        waiting: list[Future[None]] = []
        for pair in maker.pairs(healthy, faulty):
            if report.minutes() > options.minutes:
                break
            pair.write(folder / pair.name)
            waiting.append(pool.submit(judged, pair, folder / pair.name))
            while len(waiting) > 8:  # what is generated ahead
                waiting.pop(0).result()
        for job in waiting:
            job.result()
    report.made(maker)
    report.print()
    if options.output:
        report.write(options.output)
    return 1 if options.strict and report.is_wrong() else 0


if __name__ == "__main__":
    sys.exit(main())
