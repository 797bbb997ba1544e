#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real failures as tests: each fault's node is cause 1, each healthy form of the same raises no alarm.

    run_cases.py --parallax build/release/bin/parallax [--only NAME]

A folder of cases/ has A.onnx, the same model with a fault (B.onnx), in a healthy other form (H.onnx), or both, and the
inputs: inputs.npz or test_data_set_0. B.npz and H.npz are values of A.onnx that another runtime computed. cases.json
says of each what it is, which nodes may be named first, and, for some, what cause 1 says and its node in B. Ends with 1
where one is not right.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

CASES = pathlib.Path(__file__).resolve().parent / "cases"


def run(parallax, folder, other):
    """Exit code and JSON document of `run A.onnx --against OTHER`."""
    inputs = folder / "inputs.npz" if (folder / "inputs.npz").exists() else folder / "test_data_set_0"
    answer = subprocess.run([parallax, "run", str(folder / "A.onnx"), "--against", str(folder / other), "--inputs",
                             str(inputs), "--json"], capture_output=True, text=True, check=False)
    return answer.returncode, json.loads(answer.stdout) if answer.stdout else {"causes": [], "error": answer.stderr}


def run_foreign(parallax, folder, values):
    """Exit code and JSON document of `blame`: a run of A.onnx on the reference against another runtime's values."""
    with tempfile.TemporaryDirectory() as dumps:
        model, foreign = str(folder / "A.onnx"), str(pathlib.Path(dumps) / "foreign.plx")
        for call in (["run", model, "--with", "reference", "--inputs", str(folder / "inputs.npz"), "--dump", dumps],
                     ["import", str(folder / values), "--model", model, "-o", foreign]):
            subprocess.run([parallax, *call], capture_output=True, text=True, check=True)
        answer = subprocess.run([parallax, "blame", str(pathlib.Path(dumps) / "reference.plx"), foreign, "--json"],
                                capture_output=True, text=True, check=False)
        return answer.returncode, json.loads(answer.stdout) if answer.stdout else {"causes": [], "error": answer.stderr}


def mistakes_of_fault(code, document, case):
    """The sentences that say what is wrong with the answer for the faulty form."""
    nodes, causes = case["nodes"], document["causes"]
    first = causes[0]["node"] if causes else "no node"
    if code != 1 or first not in nodes:
        yield f"exit code {code}, cause 1 is {first}; it must be 1 and one of {', '.join(nodes)}"
        return
    if document["verdict"] != "diverged" or document["first_divergence"] is None:
        yield f"the verdict is {document['verdict']}; it must be diverged, with a first divergence"
    if case.get("says", "") not in causes[0]["why"]:
        yield f"cause 1 says '{causes[0]['why']}'; it must say '{case['says']}'"
    if causes[0]["node_b"] != case.get("node_b", causes[0]["node_b"]):
        yield f"cause 1 has B's node {causes[0]['node_b']}; it must be {case['node_b']}"


def mistakes_of(parallax, folder, case):
    for suffix, answer_of in (("onnx", run), ("npz", run_foreign)):
        if (folder / f"B.{suffix}").exists():
            yield from mistakes_of_fault(*answer_of(parallax, folder, f"B.{suffix}"), case)
        if (folder / f"H.{suffix}").exists():
            code, document = answer_of(parallax, folder, f"H.{suffix}")
            if code != 0:
                named = [cause["node"] for cause in document["causes"]]
                yield f"healthy: exit code {code}, causes {named}; it must be 0 without any"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallax", required=True)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    cases = json.loads((CASES / "cases.json").read_text(encoding="utf-8"))
    failed = 0
    for name, case in cases.items():
        if arguments.only not in name:
            continue
        for mistake in mistakes_of(arguments.parallax, CASES / name, case):
            failed += 1
            print(f"{name} ({case['about']}): {mistake}")
    print(f"{len(cases)} cases, {failed} mistakes")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
