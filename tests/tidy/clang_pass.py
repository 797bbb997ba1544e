#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second compiler's opinion, from a GCC build's compile_commands.json: clang's warnings without code, and clang-tidy.

clang_pass.py BUILD syntax [BASE] [--built CLANG_BUILD]    clang++ -fsyntax-only on all that BUILD compiles, or on the sources that changed
                                                           since the commit BASE; not on what a build by clang has compiled
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


class Unit:
    """The input of one call of a C++ compiler: one source of the tree, or several that the build compiles together."""

    def __init__(self, entry):
        self.file = entry["file"]
        self.directory = entry["directory"]
        self.arguments = shlex.split(entry["command"])
        path = (Path(self.directory) / self.file).resolve()
        together = re.findall(r'#include "(.+)"', path.read_text()) if "/Unity/unity_" in str(path) else [path]
        self.sources = [Path(source) for source in together]
        self.made = Path(self.directory) / self.arguments[self.arguments.index("-o") + 1]

    def alone(self, source):
        """The command for one of its sources."""
        return [str(source) if argument == self.file else argument for argument in self.arguments]


def units_of(build):
    """Those of the tree's own sources, not of what the build writes."""
    units = [Unit(entry) for entry in json.loads((build / "compile_commands.json").read_text())]
    def is_ours(path):
        return path.is_relative_to(ROOT) and not path.is_relative_to(build) and path.suffix == ".cpp"
    return [unit for unit in units if all(is_ours(source) for source in unit.sources)]


def changed_since(base, sources):
    def listed(*arguments):
        listing = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
        return {ROOT / name for name in listing.stdout.split()}
    changed = listed("diff", "--name-only", "--diff-filter=d", base) | listed("ls-files", "--others", "--exclude-standard")
    twins = {path.with_suffix(".cpp") for path in changed if path.suffix == ".h"}
    return {path for path in sources if path in changed or path in twins}


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
    if options.mode == "tidy" and options.base is None:
        parser.error("tidy needs a commit: it takes minutes a source")
    units = units_of(options.build)
    built = {source for unit in units_of(options.built) if unit.made.exists() for source in unit.sources} if options.built else set()
    jobs = []
    if options.base is None:
        for unit in units:
            if not built.issuperset(unit.sources):
                label = " ".join(str(source.relative_to(ROOT)) for source in unit.sources)
                jobs.append((label, unit.directory, [tool("clang++"), "-fsyntax-only", *for_clang(unit.arguments)]))
    else:  # each source alone: the build, which compiles several together, misses no #include
        unit_of = {source: unit for unit in units for source in unit.sources}
        for path in sorted(changed_since(options.base, unit_of) - built):
            unit = unit_of[path]
            arguments = for_clang(unit.alone(path))
            command = [tool("clang++"), "-fsyntax-only", *arguments] if options.mode == "syntax" else [tool("clang-tidy"), "--quiet", str(path), "--", *arguments]
            jobs.append((str(path.relative_to(ROOT)), unit.directory, command))
    failures = run_all(jobs)
    print(f"clang {options.mode}: {len(jobs)} {'sources' if options.base else 'units'}, {failures} with problems")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
