#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of a page of samples/ as a reader would, each block in bash, and checks what the page says of them.

A block that begins with ```sh must end with exit code 0, with ```sh exit=N with N (that of its last command; the others
must succeed). The lines of a ```text block after it must occur in its output in this order. A block that begins with
```sh python calls a Python that has the package, torch and onnxruntime: it is left out unless --python names one.
"""
import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(sh|text)( python)?(?: exit=(\d+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIMIT_SECONDS = 300


def blocks(page):
    """[(commands, expected exit code, lines that must be shown, whether it calls Python)]"""
    found = []
    for kind, python, code, body in BLOCK.findall(page):
        if kind == "sh":
            found.append((body, int(code or 0), [], bool(python)))
        elif found:
            found[-1][2].extend(body.splitlines())
    return found


def environment_of(parallax, python, folder):
    """The program and `python` on the path; `folder` holds what stands for that Python."""
    environment = dict(os.environ, PATH=f"{parallax.resolve().parent}:{os.environ['PATH']}", NO_COLOR="1")
    if python is None:
        return environment
    stand_in = folder / "python"  # a link would lose the packages of a virtual environment
    stand_in.write_text(f'#!/bin/sh\nexec {shlex.quote(str(python.absolute()))} "$@"\n')
    stand_in.chmod(0o755)
    environment["PATH"] = f"{folder}:{environment['PATH']}"
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment["PYTEST_ADDOPTS"] = "-p no:cacheprovider -p parallax.pytest_plugin"  # what `pip install` registers
    return environment


def problem_of(commands, expected_code, lines, folder, environment):
    """The defect of one block, or None."""
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
    parser.add_argument("--page", default="README.md", help="the page of that folder (default: README.md)")
    parser.add_argument("--python", type=pathlib.Path, help="a Python with the package, torch and onnxruntime")
    options = parser.parse_args()
    page = (options.samples / options.page).read_text()
    steps = blocks(page)
    if not steps or page.count("```sh") != len(steps):
        sys.exit(f"samples/{options.page}: a block of commands does not have the form that this test reads")
    failures = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(options.samples.resolve(), pathlib.Path(folder) / "samples")
        (pathlib.Path(folder) / "out").mkdir()
        (pathlib.Path(folder) / "bin").mkdir()
        environment = environment_of(options.parallax, options.python, pathlib.Path(folder) / "bin")
        for commands, code, lines, calls_python in steps:
            if calls_python and options.python is None:
                skipped += 1
                print(f"left out, for it calls Python:\n{commands}")
                continue
            problem = problem_of(commands, code, lines, folder, environment)
            print(f"{'FAILED' if problem else 'ok'}:\n{commands}")
            if problem:
                failures += 1
                print(problem)
    print(f"{len(steps)} blocks, {failures} failed, {skipped} left out")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
