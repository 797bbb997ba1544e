#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts deliberate mistakes into a copy of the reference executor and asks that the operator cases of tests/ops catch each.

Every mistake of mutations.py becomes a choice at run time, so that one build serves all; the environment variable
PARALLAX_MUTATION says which one is made. Exits 1 when a mistake is not caught, or when its text is no longer in the source.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from mutations import MUTATIONS

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHOICE = """// Which deliberate mistake is made, if any: see tests/tools/mutate.py.
#pragma once

#include <cstdlib>

namespace parallax {

inline bool mutated(int number) {
  static const char* const text = std::getenv("PARALLAX_MUTATION");
  static const int chosen = text == nullptr ? -1 : std::atoi(text);
  return chosen == number;
}

}  // namespace parallax
"""


def span_of(text, source, where):
    """(begin, end) of what stands between the marks, in the source."""
    before, old, after = re.fullmatch(r"(.*)«(.*)»(.*)", text, re.S).groups()
    if source.count(before + old + after) != 1:
        sys.exit(f"mutate: {where}: occurs {source.count(before + old + after)} times: {before + old + after}")
    begin = source.index(before + old + after) + len(before)
    return begin, begin + len(old)


def mutate_sources(folder):
    """Writes every mistake as a choice into the copy under `folder`; returns the files touched."""
    by_file = {}
    for number, (operator, name, text, new) in enumerate(MUTATIONS):
        by_file.setdefault(name, []).append((number, operator, text, new))
    for name, mutations in by_file.items():
        path = folder / "reference" / "ops" / name
        source = path.read_text()
        spans = sorted((*span_of(text, source, f"{operator}, {name}"), number, new) for number, operator, text, new in mutations)
        for begin, end, number, new in reversed(spans):
            source = f"{source[:begin]}(parallax::mutated({number}) ? ({new}) : ({source[begin:end]})){source[end:]}"
        path.write_text('#include "reference/mutated.h"\n' + source)
    (folder / "reference" / "mutated.h").write_text(CHOICE)
    return sorted(by_file)


def copy_tree(folder):
    shutil.copytree(ROOT, folder, dirs_exist_ok=True, ignore=lambda directory, names: {"build", "out", ".git"} & set(names)
                    if pathlib.Path(directory) == ROOT else set())
    touched = mutate_sources(folder)
    listing = folder / "reference" / "CMakeLists.txt"
    files = " ".join(f"ops/{name}" for name in touched)
    listing.write_text(f"{listing.read_text()}\nset_source_files_properties({files} PROPERTIES COMPILE_OPTIONS -Wno-error)\n")


def build(folder, jobs):
    build_folder = folder / "build" / "ci"
    for command in (["cmake", "--preset", "ci", "-DPARALLAX_GUI=OFF", "-DPARALLAX_CUDA=OFF"],
                    ["ninja", f"-j{jobs}", "-C", str(build_folder), "ops_test"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"mutate: {' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return build_folder / "bin" / "ops_test"


def operators_of(case):
    """The operators that a case runs."""
    found = {case["op"]} if "op" in case else set()

    def walk(nodes):
        for node in nodes:
            found.add(node["op"])
            for value in node.get("attributes", {}).values():
                if isinstance(value, dict) and "graph" in value:
                    walk(value["graph"]["nodes"])

    walk(case.get("graph", {}).get("nodes", []))
    for function in case.get("functions", []):
        walk(function["nodes"])
    return found


def tests_by_operator():
    tests = {}
    for path in sorted((ROOT / "tests" / "ops" / "cases").glob("*.json")):
        for case in json.loads(path.read_text()):
            for operator in operators_of(case):
                tests.setdefault(operator, []).append(f"reference/{path.stem}.{case['name']}")
    return tests


def failures(program, tests, number=None):
    """The tests that fail, or what became of the program, with the mistake of that number."""
    environment = {k: v for k, v in os.environ.items() if k != "PARALLAX_MUTATION"} | ({} if number is None else {"PARALLAX_MUTATION": str(number)})
    try:
        run = subprocess.run([program, "--gtest_filter=" + ":".join(tests)], env=environment, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return ["no end in a minute"]
    names = re.findall(r"^\[  FAILED  \] (\S+/\S+) \(", run.stdout, re.M)
    return names or ([f"exit {run.returncode}"] if run.returncode != 0 else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=pathlib.Path, help="where the copy is made and built (a temporary folder by default)")
    parser.add_argument("--built", action="store_true", help="the copy in --into is built already")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="operators, separated by commas")
    parser.add_argument("--check", action="store_true", help="only ask whether every mistake still occurs once in the source")
    arguments = parser.parse_args()
    if arguments.check:
        for operator, name, text, _ in MUTATIONS:
            span_of(text, (ROOT / "reference" / "ops" / name).read_text(), f"{operator}, {name}")
        print(f"{len(MUTATIONS)} mistakes occur once each")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.into or pathlib.Path(temporary)).resolve()
        program = folder / "build" / "ci" / "bin" / "ops_test"
        if not arguments.built:
            copy_tree(folder)
            program = build(folder, arguments.jobs)
        tests = tests_by_operator()
        only = arguments.only.split(",") if arguments.only else None
        chosen = [(n, m) for n, m in enumerate(MUTATIONS) if only is None or m[0] in only]
        plain = failures(program, sorted({t for _, (operator, *_) in chosen for t in tests.get(operator, [])}))
        if plain:
            sys.exit(f"mutate: cases fail without any mistake: {plain}")
        missed = 0
        for number, (operator, name, text, new) in chosen:
            caught = failures(program, tests[operator], number) if operator in tests else []
            missed += not caught
            print(f"{'caught' if caught else 'MISSED'}  {operator}: {text} -> {new}  ({len(caught)} of {len(tests.get(operator, []))} cases)")
            if not caught:
                print(f"        again: PARALLAX_MUTATION={number} {program} --gtest_filter='reference/*'")
    operators = len({operator for _, (operator, *_) in chosen})
    print(f"{len(chosen) - missed} of {len(chosen)} mistakes in {operators} operators caught")
    return 1 if missed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
