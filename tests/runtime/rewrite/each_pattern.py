#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Backend-test folders after each rewrite pattern alone, after none, and after all together.

Usage: each_pattern.py PARALLAX DIR... [--strict] [-k GLOB]

No pattern may change what a case comes to: a case that passes with nothing rewritten has to pass after every one of
them. Names the cases that do not, with the command that repeats it, and exits with 1.
"""

import argparse
import json
import subprocess
import sys


def names_of(program):
    answer = subprocess.run([program, "rewrite", "--list"], capture_output=True, text=True, check=True)
    return [line.split()[0] for line in answer.stdout.splitlines() if line.strip()]


def command_for(arguments, choice):
    command = [arguments.program, "test", *arguments.folders, "--with", "cpu", "--rewrite", choice, "--json"]
    if arguments.strict:
        command.append("--strict")
    return command + (["-k", arguments.glob] if arguments.glob else [])


def outcomes(command):
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}\n{answer.stderr}")
    return {case["name"]: (case["status"], case["reason"]) for case in json.loads(answer.stdout)["cases"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PARALLAX")
    parser.add_argument("folders", metavar="DIR", nargs="+")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("-k", dest="glob", default="")
    arguments = parser.parse_args()
    patterns = names_of(arguments.program)
    if len(patterns) < 20:
        raise SystemExit(f"only {len(patterns)} patterns are listed")
    plain = outcomes(command_for(arguments, "none"))
    bad = 0
    for choice in ["all", "default", *(f"none,+{name}" for name in patterns)]:
        command = command_for(arguments, choice)
        for name, (status, reason) in outcomes(command).items():
            if status == plain[name][0]:
                continue
            bad += 1
            print(f"{name}: {plain[name][0]} with nothing rewritten, {status} with {choice}: {reason}\n"
                  f"again: {' '.join(command)} -k '{name}'", flush=True)
    passed = sum(status == "passed" for status, _ in plain.values())
    print(f"{len(plain)} cases, {passed} passed, after {len(patterns)} patterns each alone and together: {bad} differ")
    sys.exit(0 if bad == 0 and passed > 0 else 1)


if __name__ == "__main__":
    main()
