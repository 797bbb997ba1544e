#!/usr/bin/env python3
"""A second compiler's opinion, from a GCC build's compile_commands.json: clang's warnings without code, and clang-tidy.

clang_pass.py BUILD syntax [BASE] [--built CLANG_BUILD]    clang++ -fsyntax-only on every source, or on those that changed since the
                                                           commit BASE; not on those that a build by clang has compiled
clang_pass.py BUILD tidy BASE                              clang-tidy on the sources that changed since BASE
A changed header brings its .cpp twin along.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2].resolve()


def tool(name):
    found = shutil.which(f"{name}-14") or shutil.which(name)
    if found is None:
        sys.exit(f"clang_pass: {name} is not installed")
    return found


def commands_of(build):
    """Source path -> its folder, compile command and object, for the sources of the tree that a C++ compiler sees. Where the build
    compiles several at once, each of them as if it were alone."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = (Path(entry["directory"]) / entry["file"]).resolve()
        arguments = shlex.split(entry["command"])
        made = Path(entry["directory"]) / arguments[arguments.index("-o") + 1]
        together = re.findall(r'#include "(.+)"', path.read_text()) if "/Unity/unity_" in str(path) else [str(path)]
        for source in map(Path, together):
            if source.is_relative_to(ROOT) and not source.is_relative_to(build) and source.suffix == ".cpp":
                commands[source] = (entry["directory"], [str(source) if a == entry["file"] else a for a in arguments], made)
    return commands


def built_by(build):
    """The sources of the tree whose objects lie in another build."""
    return {path for path, (_, _, made) in commands_of(build).items() if made.exists()}


def changed_since(base, commands):
    listing = subprocess.run(["git", "-C", str(ROOT), "diff", "--name-only", "--diff-filter=d", base], capture_output=True, text=True, check=True)
    changed = {ROOT / name for name in listing.stdout.split()}
    twins = {path.with_suffix(".cpp") for path in changed if path.suffix == ".h"}
    return [path for path in commands if path in changed or path in twins]


def for_clang(arguments):
    """The GCC command without its launcher, output and dependency files, as arguments of clang++, which need not know each -Wno-NAME of GCC's."""
    while arguments and not arguments[0].endswith(("++", "g++", "c++")) and "++" not in os.path.basename(arguments[0]):
        arguments = arguments[1:]
    kept, skip = ["-Wno-unknown-warning-option"], False
    for argument in arguments[1:]:
        if skip:
            skip = False
        elif argument in ("-o", "-MF", "-MT", "-MQ"):
            skip = True
        elif argument not in ("-c", "-MD", "-MMD"):
            kept.append(argument)
    return kept


def run_all(jobs):
    """Runs (label, directory, command) on all cores; prints what fails; returns the number of failures."""
    def run(job):
        label, directory, command = job
        done = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return label, done.returncode, done.stdout

    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for label, code, output in pool.map(run, jobs):
            if code != 0 or "Error parsing" in output:  # clang-tidy goes on with a configuration it cannot read
                failures += 1
                print(f"{label}:\n{output}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=lambda text: Path(text).resolve())
    parser.add_argument("mode", choices=("syntax", "tidy"))
    parser.add_argument("base", nargs="?")
    parser.add_argument("--built", type=lambda text: Path(text).resolve())
    options = parser.parse_args()
    commands = commands_of(options.build)
    chosen = set(changed_since(options.base, commands) if options.base else commands)
    if options.built:
        chosen -= built_by(options.built)
    jobs = []
    for path in sorted(chosen):
        directory, arguments, _ = commands[path]
        label = str(path.relative_to(ROOT))
        if options.mode == "syntax":
            jobs.append((label, directory, [tool("clang++"), "-fsyntax-only", *for_clang(arguments)]))
        else:
            jobs.append((label, directory, [tool("clang-tidy"), "--quiet", str(path), "--", *for_clang(arguments)]))
    failures = run_all(jobs)
    print(f"clang {options.mode}: {len(jobs)} sources, {failures} with problems")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
