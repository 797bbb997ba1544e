#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives hundreds of malformed models, dumps, tensor files and command lines to the real program, and judges how it refuses them.

bad_input_test.py PARALLAX [--only TEXT] [--keep FOLDER]

A case passes when the program ends by itself with one of the case's exit codes and says why: one short message on stderr, or with
--json (every fourth case) one JSON document on stdout whose error code is the exit code. --only runs the cases whose name holds TEXT;
--keep leaves each case's files in a folder of its own.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import arguments
import dumps
import models
import wire

REFUSED_AT_LEAST = 300
TIMEOUT_SECONDS = 60
CRASH_WORDS = re.compile(r"terminate called|Sanitizer|runtime error:|Assertion|what\(\):|Segmentation|core dumped|PX_CHECK")


def write_files(folder, case):
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(wire.small_model() if content == "MODEL" else content)
    for name, target in case.links.items():
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(target)


def message_fault(stderr, arguments_length):
    """The defect of a refusal in words, or None. It may repeat an argument, however long."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    if not lines:
        return "nothing on stderr"
    if len(lines) > 3 or len(stderr) > 2000 + arguments_length:
        return f"{len(lines)} lines, {len(stderr)} characters on stderr"
    if not re.search(r"[a-z]{3,}.*\s.*[a-z]{2,}", lines[-1]):
        return "stderr holds no sentence"
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f]", stderr):
        return "control characters on stderr"
    return None


def json_fault(stdout, code):
    """The defect of a refusal in JSON, or None."""
    try:
        document = json.loads(stdout)
    except ValueError as error:
        return f"stdout is no JSON document: {error}"
    if "problems" in document:  # what `check` says
        return None if document.get("ok") is False and document["problems"] else "check says ok"
    error = document.get("error", {})
    if error.get("code") != code or len(error.get("message", "")) < 10:
        return f"JSON error {error} with exit code {code}"
    return None


def fault(case, done, with_json):
    """The defect of the program's answer, or None."""
    stdout, stderr = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if done.returncode < 0:
        return f"killed by signal {-done.returncode}\n{stderr[-2000:]}"
    if CRASH_WORDS.search(stderr):
        return f"crashed\n{stderr[-3000:]}"
    if done.returncode not in case.exit_codes:
        return f"exit code {done.returncode} instead of {' or '.join(map(str, case.exit_codes))}\n{stderr[-1000:]}{stdout[-500:]}"
    if done.returncode == 0 and case.name.startswith("model/") and case.arguments[0] == "show":
        names_problem = json.loads(stdout)["problems"] if with_json else "cannot be executed: " in stdout
        return None if names_problem else f"shown without what is wrong with it\n{stdout[-500:]}"
    if done.returncode < 2:
        return None
    if with_json:
        return json_fault(stdout, done.returncode)
    return message_fault(stdout if case.arguments[0] == "check" and not stderr else stderr, sum(map(len, case.arguments)))


def run_case(program, case, index, keep):
    """Returns (case, fault or None, the command that repeats it)."""
    with_json = index % 4 == 3
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(keep or temporary) / re.sub(r"\W+", "_", case.name)[:100] / "files"
        folder.mkdir(parents=True, exist_ok=True)
        write_files(folder, case)
        command = [program, *case.arguments, *(["--json"] if with_json else [])]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, timeout=TIMEOUT_SECONDS, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return case, f"not done after {TIMEOUT_SECONDS} s"
        return case, fault(case, done, with_json)


def good_dump(program):
    """A dump that the program writes of the small valid model; also shows that the model is one."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "m.onnx").write_bytes(wire.small_model())
        subprocess.run([program, "run", "m.onnx", "--with", "reference", "--dump", "dump"], cwd=folder, check=True, capture_output=True)
        return (Path(folder) / "dump" / "reference.plx").read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    options = parser.parse_args()
    program = os.path.abspath(options.program)

    dump = good_dump(program)
    cases = [*models.cases(), *dumps.cases(dump), *arguments.cases(dump)]
    chosen = [(index, case) for index, case in enumerate(cases) if options.only in case.name]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(lambda entry: run_case(program, entry[1], entry[0], options.keep), chosen))

    failures = [(case, problem) for case, problem in answers if problem]
    for case, problem in failures:
        print(f"FAILED {case.name}: {problem}\n  repeat: {sys.argv[0]} {program} --only '{case.name}' --keep FOLDER\n")
    refused = sum(1 for case in cases if min(case.exit_codes) >= 2)
    print(f"{len(answers)} cases, {len(failures)} failed; {refused} must be refused, {len(cases) - refused} survived")
    if refused < REFUSED_AT_LEAST:
        sys.exit(f"only {refused} cases that must be refused, {REFUSED_AT_LEAST} are wanted")
    return 1 if failures or not answers else 0


if __name__ == "__main__":
    sys.exit(main())
