#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws assets/architecture.svg: the folders of tests/tidy/table.py, and the include lines between them, with Graphviz.

picture.py [ROOT]            writes the picture
picture.py --check [ROOT]    exits 1 where it is not that of the tree, which needs no Graphviz

An arrow stands for includes that are in the sources; those that follow from two other arrows are left out.
"""

import argparse
import hashlib
import re
import subprocess
import sys
from pathlib import Path

import functions
import table
import tidy

PICTURE = "assets/architecture.svg"
STAMP = re.compile(r"<!-- tests/tidy/picture\.py draws this from ([0-9a-f]{16}) -->")

# Boxes around folders: title, color, and the beginnings of paths, in the order in which a folder is looked for.
GROUPS = [
    ("front ends", "#dbe7f6", ("gui", "inspector/cli", "inspector/python", "inspector/executors")),
    ("jobs", "#e4ecdc", ("inspector/workbench", "inspector/transform", "inspector/render")),
    ("comparison and diagnosis", "#f8e6d2", ("inspector/diff",)),
    ("oracle", "#efe1f0", ("reference",)),
    ("fast executors", "#f6dcdc", ("runtime",)),
    ("models, values, events, dumps", "#ececec", ("inspector",)),
]
LEFT_OUT = ("tests", "samples")  # they may include everything


def rows() -> list[str]:
    """The folders that are drawn, in the order of the table."""
    return [row for row in table.INCLUDES if row.split("/")[0] not in LEFT_OUT]


def includes_of(root: Path) -> dict[str, set[str]]:
    """Folder -> the other folders that its sources include, as rows of the table."""
    found: dict[str, set[str]] = {row: set() for row in rows()}
    for name in tidy.files_of(root):
        here = tidy.folder_of(name)
        if here not in found or Path(name).suffix not in tidy.CXX:
            continue
        text = functions.without_comments((root / name).read_text(encoding="utf-8"))
        for match in tidy.INCLUDE.finditer(text):
            target = tidy.folder_of(match.group(1)) if match.group(1) else None
            if target in found and target != here:
                found[here].add(target)
    return found


def reachable(includes: dict[str, set[str]]) -> dict[str, frozenset[str]]:
    """Folder -> every folder that is reached from it by one include or several."""
    reached: dict[str, frozenset[str]] = {}

    def visit(folder: str, above: frozenset[str]) -> frozenset[str]:
        if folder in above:
            raise SystemExit(f"picture: the includes of {folder} lead back to it; tests/tidy/tidy.py says which")
        if folder not in reached:
            reached[folder] = frozenset(includes[folder]).union(
                *(visit(below, above | {folder}) for below in includes[folder]))
        return reached[folder]

    for folder in includes:
        visit(folder, frozenset())
    return reached


def direct(includes: dict[str, set[str]]) -> dict[str, list[str]]:
    """The includes that no others imply (the transitive reduction)."""
    reached = reachable(includes)
    return {folder: sorted(target for target in targets
                           if not any(target in reached[other] for other in targets if other != target))
            for folder, targets in includes.items()}


def group_of(folder: str) -> int:
    """The index in GROUPS of the box that a folder is drawn in."""
    for index, (_, _, beginnings) in enumerate(GROUPS):
        if any(folder == beginning or folder.startswith(beginning + "/") for beginning in beginnings):
            return index
    raise SystemExit(f"picture: '{folder}' belongs to no group; GROUPS in tests/tidy/picture.py must name it")


def dot_of(root: Path) -> str:
    """The picture as dot text; the same text for the same include lines."""
    lines = [
        "digraph parallax {",
        '  graph [rankdir=TB, newrank=true, ranksep=0.42, nodesep=0.18, bgcolor=white, fontname="DejaVu Sans", fontsize=12];',
        '  node [shape=box, style="filled,rounded", fillcolor=white, color="#8a8f98", fontname="DejaVu Sans", fontsize=11,',
        "        height=0.3, margin=\"0.12,0.04\"];",
        '  edge [color="#5b616b", arrowsize=0.6];',
    ]
    for index, (title, color, _) in enumerate(GROUPS):
        members = [folder for folder in rows() if group_of(folder) == index]
        if not members:
            continue
        lines += [f"  subgraph cluster_{index} {{",
                  f'    label="{title}"; labeljust=l; style="filled,rounded"; color="{color}"; fillcolor="{color}";']
        lines += [f'    "{folder}";' for folder in members]
        lines.append("  }")
    for folder, targets in direct(includes_of(root)).items():
        lines += [f'  "{folder}" -> "{target}";' for target in targets]
    return "\n".join(lines) + "\n}\n"


def stamp_of(dot: str) -> str:
    """The source that the picture names: the beginning of the dot text's SHA-256."""
    return hashlib.sha256(dot.encode()).hexdigest()[:16]


def problem_of(root: Path, dot: str) -> str:
    """The defect of the stored picture; empty where it is that of `dot`."""
    path = root / PICTURE
    stored = path.read_text(encoding="utf-8") if path.is_file() else ""
    match = STAMP.search(stored)
    if match is None:
        return f"{PICTURE} is not a picture of tests/tidy/picture.py; run that program to draw it"
    if match.group(1) != stamp_of(dot):
        return f"{PICTURE} shows other includes than the tree has; run tests/tidy/picture.py to draw it anew"
    return ""


def draw(root: Path, dot: str) -> None:
    """Writes the picture. Ends the program where Graphviz is missing or fails."""
    try:
        drawn = subprocess.run(["dot", "-Tsvg"], input=dot.encode(), capture_output=True, check=True).stdout.decode()
    except FileNotFoundError:
        raise SystemExit("picture: Graphviz's program 'dot' is not installed; apt-get install graphviz") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"picture: dot failed: {error.stderr.decode().strip()}") from None
    head, svg = drawn[:drawn.index("<svg")], drawn[drawn.index("<svg"):]
    declaration = head[:head.index("?>") + 2]
    (root / PICTURE).write_text(
        f"{declaration}\n<!-- tests/tidy/picture.py draws this from {stamp_of(dot)} -->\n{svg}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="draws or checks the picture of the folders and their includes")
    parser.add_argument("--check", action="store_true", help="only say whether the picture is that of the tree")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[2])
    options = parser.parse_args()
    root = options.root.resolve()
    dot = dot_of(root)
    if options.check:
        problem = problem_of(root, dot)
        print(f"picture: {problem}" if problem else "picture: it shows the includes of the tree")
        return 1 if problem else 0
    draw(root, dot)
    print(f"wrote {PICTURE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
