#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real failures as tests: each fault's node is cause 1, each healthy form of the same raises no alarm.

    run_cases.py --parallax build/release/bin/parallax [--only NAME]

A folder of cases/ has A.onnx, the same model with a fault (B.onnx), in a healthy other form (H.onnx), or both, and the
inputs: inputs.npz or test_data_set_0. cases.json says of each what it is, and which nodes may be named first. Ends with
1 where one is not right.
"""
import argparse
import json
import pathlib
import subprocess
import sys

CASES = pathlib.Path(__file__).resolve().parent / "cases"


def run(parallax, folder, other):
    """Exit code and JSON document of `run A.onnx --against OTHER`."""
    inputs = folder / "inputs.npz" if (folder / "inputs.npz").exists() else folder / "test_data_set_0"
    answer = subprocess.run([parallax, "run", str(folder / "A.onnx"), "--against", str(folder / other), "--inputs",
                             str(inputs), "--json"], capture_output=True, text=True, check=False)
    return answer.returncode, json.loads(answer.stdout) if answer.stdout else {"causes": [], "error": answer.stderr}


def mistakes_of(parallax, folder, nodes):
    if (folder / "B.onnx").exists():
        code, document = run(parallax, folder, "B.onnx")
        first = document["causes"][0]["node"] if document["causes"] else "no node"
        if code != 1 or first not in nodes:
            yield f"exit code {code}, cause 1 is {first}; it must be 1 and one of {', '.join(nodes)}"
    if (folder / "H.onnx").exists():
        code, document = run(parallax, folder, "H.onnx")
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
        for mistake in mistakes_of(arguments.parallax, CASES / name, case["nodes"]):
            failed += 1
            print(f"{name} ({case['about']}): {mistake}")
    print(f"{len(cases)} cases, {failed} mistakes")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
