#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what this tree wants less of, and fails where a count is above its limit: README.md lists the measures.

counts.py [ROOT]            prints one row a measure; exit 1 where one is above LIMITS
counts.py --list NAME       prints where a measure's or a word's occurrences are, one line each
counts.py --lower           writes today's counts into LIMITS where they are lower
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import functions
import tidy
import words

# The largest count of each measure and word that passes. A limit falls with its count and never rises.
LIMITS: dict[str, int] = {
    "bare openings": 0,
    "crowded folders": 0,
    "long files": 37,
    "verdict writes": 0,
    "cpu dispatch": 2,
    "thresholds": 0,
    "halves": 0,
    "codes": 0,
    "byte_*, nibble_*": 0,
    "turn": 0,
    "place": 0,
    "site": 0,
    "image": 0,
    "outbox, parcel, told": 0,
    "letter, post": 0,
    "leftovers": 0,
    "guilty": 0,
    "trials": 0,
    "withdraw": 0,
    "leaves nothing, made up for": 0,
    "felt": 0,
    "matter": 0,
    "otherwise": 0,
    "hand over": 0,
    "grown rounding": 0,
    "why_*": 0,
    "spread": 0,
    "apart": 0,
    "rounds, looks, patience": 0,
    "laced, strips, tame": 0,
    "ms_*": 0,
    "doings, glass, stage": 0,
    "stage": 0,
    "behind": 0,
    "beside": 0,
    "lies": 0,
    "British spelling": 0,
}

GOALS = {"bare openings": 29, "cpu dispatch": 1}  # of the others: 0

CXX = (".h", ".cpp", ".cu", ".cuh")
DOCUMENTS = (".md", ".html", ".toml", ".script")
FOLDER_FILES = 45
FILE_LINES = 400
OWN_FOLDER = "tests/tidy/"

BARE_OPENING = re.compile(r"(What|Of|Whether|Where|The same)\b")
# Writes of a verdict: of one pair, of the whole from its values, and of the one function that enters a diagnosis.
VERDICT_WRITE = re.compile(r"(?:\.|->)verdict\s*=(?!=)")
VERDICT_FILES = ("inspector/diff/tolerance/value_compare.cpp", "inspector/diff/comparison.cpp",
                 "inspector/diff/compare/apply_diagnosis.cpp")
CPU_DISPATCH = re.compile(r"__builtin_cpu_(?:supports|is)|__get_cpuid|\bcpuid\s*\(|HWY_DYNAMIC_DISPATCH"
                          r"|target_clones|\bifunc\b|get_effective_cpu_isa")
THRESHOLD_TABLE = "inspector/diff/tolerance/thresholds.h"
THRESHOLD = re.compile(r"\bconstexpr\s+(?:double|float)\s+(k\w+\s*=[^;]*);")
THRESHOLD_NAME = re.compile(r"\b(k[A-Z]\w*)\s*=\s*([^,;]*)")


class Found(NamedTuple):
    """One occurrence of a measure: where, and the text that counts."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


class Block(NamedTuple):
    """A comment: whole lines one after the other, or a docstring."""

    line: int
    text: str


def is_cmake(path: str) -> bool:
    return path.endswith((".cmake", "CMakeLists.txt"))


def sources(root: Path) -> dict[str, str]:
    """The text of every source and document of the tree by its path."""
    found: dict[str, str] = {}
    for name in tidy.files_of(root):
        if name.endswith((*CXX, *DOCUMENTS, ".py")) or is_cmake(name) or "." not in name.rsplit("/", 1)[-1]:
            found[name] = (root / name).read_text(encoding="utf-8", errors="replace")
    return found


def line_blocks(text: str, mark: str) -> Iterator[Block]:
    """Runs of lines that hold only a comment, each run once."""
    run: list[str] = []
    first = 0
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        stripped = line.strip()
        if stripped.startswith(mark) and not stripped.startswith(("#!", f"{mark} SPDX-")):
            first = first if run else number
            run.append(stripped.lstrip("/#").strip())
        elif run:
            yield Block(first, " ".join(run))
            run = []


def docstrings(text: str) -> Iterator[Block]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            content = ast.get_docstring(node)
            if content is not None:
                yield Block(node.body[0].lineno, " ".join(content.split()))


def comment_blocks(path: str, text: str) -> Iterator[Block]:
    if path.endswith(CXX):
        yield from line_blocks(text, "//")
    elif path.endswith(".py"):
        yield from line_blocks(text, "#")
        yield from docstrings(text)
    elif is_cmake(path):
        yield from line_blocks(text, "#")


def bare_openings(files: dict[str, str]) -> Iterator[Found]:
    for path, text in files.items():
        for block in comment_blocks(path, text):
            if BARE_OPENING.match(block.text):
                yield Found(path, block.line, block.text)


def crowded_folders(files: dict[str, str]) -> Iterator[Found]:
    """Each file beyond the 45th of its folder, one an occurrence."""
    sizes = Counter(path.rpartition("/")[0] for path in files)
    for folder, size in sorted(sizes.items()):
        for number in range(FOLDER_FILES + 1, size + 1):
            yield Found(folder, number, f"file {number} of one folder; {FOLDER_FILES} at most")


def long_files(files: dict[str, str]) -> Iterator[Found]:
    for path, text in files.items():
        lines = text.count("\n") - text.count(" SPDX-License-Identifier", 0, 200)
        if path.endswith((*CXX, ".py")) and lines > FILE_LINES:
            yield Found(path, lines, f"{lines} lines besides the license; {FILE_LINES} at most")


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def line_text(text: str, position: int) -> str:
    begin = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return text[begin:end if end >= 0 else len(text)].strip()


def matches(path: str, text: str, pattern: re.Pattern[str]) -> Iterator[Found]:
    for match in pattern.finditer(text):
        yield Found(path, line_of(text, match.start()), line_text(text, match.start()))


def verdict_writes(files: dict[str, str]) -> Iterator[Found]:
    for path, text in files.items():
        if path.endswith(CXX) and not path.startswith("tests/") and path not in VERDICT_FILES:
            yield from matches(path, functions.without_comments(text), VERDICT_WRITE)


def dispatching_files(files: dict[str, str]) -> Iterator[Found]:
    """Each file that asks the processor what it can, or has the compiler's resolver ask, once."""
    for path, text in files.items():
        if path.endswith(CXX) and not path.startswith("tests/"):
            first = next(matches(path, functions.without_comments(text), CPU_DISPATCH), None)
            if first is not None:
                yield first


def scattered_thresholds(files: dict[str, str]) -> Iterator[Found]:
    for path, text in files.items():
        if not path.startswith("inspector/diff/") or path == THRESHOLD_TABLE or not path.endswith(CXX):
            continue
        for match in THRESHOLD.finditer(functions.without_comments(text)):
            for name, value in THRESHOLD_NAME.findall(match.group(1)):
                if "numeric_limits" not in value:
                    yield Found(path, line_of(text, match.start()), f"{name} = {value}")


MEASURES = {
    "bare openings": bare_openings,
    "crowded folders": crowded_folders,
    "long files": long_files,
    "verdict writes": verdict_writes,
    "cpu dispatch": dispatching_files,
    "thresholds": scattered_thresholds,
}


def lines_with(text: str, hints: tuple[str, ...]) -> list[tuple[int, int]]:
    """The begin and end of each line of the text that holds one of the hints, whatever its case; in order."""
    lower, found = text.lower(), set()
    for hint in hints:
        at = lower.find(hint)
        while at >= 0:
            begin, end = lower.rfind("\n", 0, at) + 1, lower.find("\n", at)
            end = end if end >= 0 else len(lower)
            found.add((begin, end))
            at = lower.find(hint, end)
    return sorted(found)


def occurrences(path: str, text: str, word: words.Word) -> Iterator[Found]:
    """The uses of a word in a path's text and in the path itself; exceptions are left out."""
    exceptions = [a for a in word.allowed if path.startswith(a.paths or ("",))]
    if any(not a.text for a in exceptions):
        return
    pattern = re.compile(word.pattern)
    expressions = [re.compile(a.text) for a in exceptions]
    for content, is_name in ((path, True), (text, False)):
        for begin, end in lines_with(content, word.hints):
            matched = list(pattern.finditer(content, begin, end))
            spans = [span.span() for e in expressions for span in e.finditer(content, begin, end)] if matched else []
            for match in matched:
                if not any(first <= match.start() and match.end() <= last for first, last in spans):
                    yield Found(path, 0 if is_name else line_of(content, begin), content[begin:end].strip())


def uses(files: dict[str, str], word: words.Word) -> Iterator[Found]:
    for path, text in files.items():
        if not path.startswith(OWN_FOLDER) and path.startswith(word.paths or ("",)) and path != "CHANGELOG.md":
            yield from occurrences(path, text, word)


def listing(files: dict[str, str], name: str) -> list[Found]:
    """Every occurrence of the measure or word of that name; KeyError where there is none."""
    if name in MEASURES:
        return list(MEASURES[name](files))
    rows = {word.name: word for word in words.WORDS}
    return list(uses(files, rows[name]))


def count_all(files: dict[str, str]) -> dict[str, int]:
    return {name: len(listing(files, name)) for name in (*MEASURES, *(word.name for word in words.WORDS))}


def lower(counted: dict[str, int]) -> None:
    """Writes counts that are below their limits into this file; a measure without a limit gets its first one."""
    rows = "".join(f'    "{name}": {min(count, LIMITS.get(name, count))},\n' for name, count in counted.items())
    own = Path(__file__)
    text = own.read_text(encoding="utf-8")
    table = re.compile(r"(LIMITS: dict\[str, int\] = \{\n).*?(\n?\}\n)", re.DOTALL)
    own.write_text(table.sub(lambda m: m.group(1) + rows + "}\n", text, count=1), encoding="utf-8")


def report(counted: dict[str, int]) -> bool:
    """Prints the table; true where no count is above its limit."""
    print(f"{'measure or word':<30}{'count':>7}{'limit':>7}{'goal':>6}")
    is_fine = True
    for name, count in counted.items():
        limit = LIMITS.get(name, 0)
        note = ""
        if count > limit:
            is_fine = False
            note = f"  {name} is {count}; it must be at most {limit}. `counts.py --list '{name}'` shows where."
        print(f"{name:<30}{count:>7}{limit:>7}{GOALS.get(name, 0):>6}{note}")
    return is_fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[2])
    parser.add_argument("--list", metavar="NAME", choices=[*MEASURES, *(word.name for word in words.WORDS)])
    parser.add_argument("--lower", action="store_true")
    options = parser.parse_args()
    files = sources(options.root)
    if options.list:
        for found in listing(files, options.list):
            print(found)
        return 0
    counted = count_all(files)
    if options.lower:
        lower(counted)
        return 0
    return 0 if report(counted) else 1


if __name__ == "__main__":
    sys.exit(main())
