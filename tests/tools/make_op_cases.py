#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the cases of tests/ops/cases from the definitions in op_cases/, with expected values that two sources agree on.

A definition gives the expected values with the clause of the specification they follow from, or leaves them to ONNX's
ReferenceEvaluator and onnxruntime, which must then agree. A peer that differs must be named with what it does wrong, and one that
is named must differ. Exits 1, writing nothing, when a case does not stand on that.
"""
import argparse
import importlib
import pathlib
import pkgutil
import sys

import op_cases
from op_cases import json_form, peers
from op_cases.case import ALL

CASES = pathlib.Path(__file__).resolve().parents[1] / "ops" / "cases"
NOT_FAMILIES = {"case", "formulas", "json_form", "peers"}


def load_definitions():
    for module in sorted(m.name for m in pkgutil.iter_modules(op_cases.__path__)):
        if module not in NOT_FAMILIES:
            importlib.import_module(f"op_cases.{module}")


def results_of(case):
    """(peer -> outputs, peer -> why it gave none)"""
    results, failures = {}, {}
    for peer, run in peers.PEERS.items():
        if peer in case.unasked:
            continue
        try:
            raw = run(case.model, case.inputs)
            likes = case.outputs or [None] * len(raw)
            results[peer] = [peers.as_value(r, like) for r, like in zip(raw, likes)]
        except Exception as error:  # whatever a peer raises means that it has no answer
            failures[peer] = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
    results |= {name: outputs for name, outputs in case.also.items()}
    return results, failures


def difference(a, b):
    if len(a) != len(b):
        return f"{len(a)} and {len(b)} outputs"
    return next((f"output {k}: {found}" for k, (x, y) in enumerate(zip(a, b)) if (found := peers.agree(x, y))), None)


def settle(case):
    """(outputs, source, problems)"""
    results, failures = results_of(case)
    trusted = {peer: r for peer, r in results.items() if peer not in case.wrong}
    outputs = case.outputs
    if outputs is None:
        if len(trusted) < 2:
            return None, "", [f"{len(trusted)} implementations ({', '.join(trusted) or 'none'}); {failures}"]
        outputs = next(iter(trusted.values()))
    elif not case.spec:
        return None, "", ["outputs are given without `spec`"]
    problems = [f"{peer} differs: {found}" for peer, r in trusted.items() if (found := difference(outputs, r))]
    problems += [f"{peer} is said to be wrong ({why}), but agrees" for peer, why in case.wrong.items()
                 if peer in results and difference(outputs, results[peer]) is None]
    problems += [f"{peer} is said to be wrong, but fails: {failures[peer]}" for peer in case.wrong if peer in failures]
    source = f"spec: {case.spec}" if case.spec else "agree: " + ", ".join(trusted)
    if case.spec and trusted:
        source += "; agree: " + ", ".join(trusted)
    if case.wrong:
        source += "; " + "; ".join(f"{peer} differs: {why}" for peer, why in case.wrong.items())
    return outputs, source, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="families, separated by commas")
    parser.add_argument("--without", type=pathlib.Path, help="file of names to leave out: faults that are known and not mended")
    parser.add_argument("--names", help="only cases whose name holds this; shows their results and writes nothing")
    arguments = parser.parse_args()
    load_definitions()
    bad = written = 0
    without = arguments.without.read_text().split() if arguments.without else []
    names = [case.name for cases in ALL.values() for case in cases]
    for name in sorted({name for name in names if names.count(name) > 1}):
        bad += 1
        print(f"{name}: two cases have this name")
    families = arguments.only.split(",") if arguments.only else sorted(ALL)
    for family in families:
        lines = []
        for case in ALL[family]:
            if arguments.names and arguments.names not in case.name:
                continue
            outputs, source, problems = settle(case)
            for problem in problems:
                bad += 1
                print(f"{family}.{case.name}: {problem}")
            if arguments.names:
                print(case.name, source, results_of(case))
            if not problems and case.name not in without:
                lines.append(json_form.case(case, outputs, source))
        if arguments.names or bad:
            continue
        CASES.mkdir(exist_ok=True)
        (CASES / f"{family}.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
        written += len(lines)
    print(f"{written} cases written, {bad} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
