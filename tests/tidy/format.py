#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the layout of every C++ file with clang-format; format.py --fix lays them out. Exits 77 where clang-format is missing."""

import shutil
import subprocess
import sys
from pathlib import Path

import tidy

SKIPPED = 77  # CTest's SKIP_RETURN_CODE in CMakeLists.txt


def main():
    root = Path(__file__).parents[2]
    program = shutil.which("clang-format-14") or shutil.which("clang-format")
    if program is None:
        print("format: skipped, clang-format is not installed (apt-get install clang-format-14)")
        return SKIPPED
    names = [name for name in tidy.files_of(root) if Path(name).suffix in tidy.CXX]
    mode = ["-i"] if "--fix" in sys.argv[1:] else ["--dry-run", "-Werror", "--ferror-limit=1"]
    done = subprocess.run([program, "--style=file", *mode, *names], cwd=root)
    if done.returncode != 0:
        print("format: lay the files above out with 'tests/tidy/format.py --fix'")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
