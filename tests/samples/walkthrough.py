#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of samples/README.md as a reader would, each block in bash, and checks what the page says of them.

A block that begins with ```sh must end with exit code 0, with ```sh exit=N with N (that of its last command; the others must
succeed). The lines of a ```text block after it must occur in its output in this order.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(sh|text)(?: exit=(\d+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIMIT_SECONDS = 300


def blocks(page):
    """[(commands, expected exit code, lines that must be shown)]"""
    found = []
    for kind, code, body in BLOCK.findall(page):
        if kind == "sh":
            found.append((body, int(code or 0), []))
        elif found:
            found[-1][2].extend(body.splitlines())
    return found


def problem_of(commands, expected_code, lines, folder, environment):
    """What is wrong with one block, or None."""
    run = subprocess.run(
        ["bash", "-e", "-u", "-o", "pipefail", "-c", commands], cwd=folder, env=environment, timeout=LIMIT_SECONDS,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )
    if run.returncode != expected_code:
        return f"exit code {run.returncode}, the page says {expected_code}\n{run.stdout[-4000:]}"
    position = 0
    for line in lines:
        position = run.stdout.find(line, position)
        if position < 0:
            return f"its output lacks the line '{line}' (or has it earlier)\n{run.stdout[-4000:]}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallax", required=True, type=pathlib.Path, help="the built program")
    parser.add_argument("--samples", required=True, type=pathlib.Path, help="the folder samples/ of the tree")
    options = parser.parse_args()
    page = (options.samples / "README.md").read_text()
    steps = blocks(page)
    if not steps or page.count("```sh") != len(steps):
        sys.exit("samples/README.md: a block of commands does not have the form that this test reads")
    environment = dict(os.environ, PATH=f"{options.parallax.resolve().parent}:{os.environ['PATH']}", NO_COLOR="1")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(options.samples.resolve(), pathlib.Path(folder) / "samples")
        (pathlib.Path(folder) / "out").mkdir()
        for commands, code, lines in steps:
            problem = problem_of(commands, code, lines, folder, environment)
            print(f"{'FAILED' if problem else 'ok'}:\n{commands}")
            if problem:
                failures += 1
                print(problem)
    print(f"{len(steps)} blocks, {failures} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
