#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the tree against the rules of the house that a compiler does not know: tests/tidy/README.md lists them.

tidy.py [ROOT]    prints one line a problem, 'file:line: rule: sentence', and exits 1 when there is one.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import functions
import table

CXX = {".h", ".cpp", ".cu", ".cuh"}
SKIPPED_FOLDERS = {"build", "out", "bare-out", "__pycache__", ".git"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


class Problem(NamedTuple):
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


def files_of(root):
    """Every file that git knows or would add; without git, every file outside the folders that builds make."""
    listing = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True)
    if listing.returncode == 0 and listing.stdout:
        names = listing.stdout.decode().split("\0")
        return sorted({name for name in names if name and (root / name).is_file()})
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if name not in SKIPPED_FOLDERS]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)


def closure():
    """Folder -> every folder it may include, itself among them."""
    closed = {}

    def visit(folder):
        if folder not in closed:
            closed[folder] = {folder}.union(*(visit(below) for below in table.INCLUDES[folder]))
        return closed[folder]

    for folder in table.INCLUDES:
        visit(folder)
    return closed


ALLOWED = closure()


def folder_of(path):
    """The row of the table that a path belongs to, the longest first; None for a path outside the table."""
    rows = [row for row in table.INCLUDES if path.startswith(row + "/")]
    return max(rows, key=len, default=None)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def check_own_include(path, line, name, known):
    """An #include "..." follows the table, is written from the root, and names a file that is there."""
    if name.endswith(".pb.h"):
        if not path.startswith(("inspector/model/", "tests/inspector/model/")):
            yield Problem(path, line, "include", f'"{name}": protobuf is private to inspector/model')
        return
    target = folder_of(name)
    if target is None or name not in known:
        yield Problem(path, line, "include", f'"{name}" is no file of the tree; write the path from the root')
        return
    here = folder_of(path)
    if here is None:
        yield Problem(path, line, "include", f"{os.path.dirname(path)} has no row in tests/tidy/table.py")
    elif target not in ALLOWED[here]:
        yield Problem(path, line, "include", f'"{name}": {here} may not include {target}')


def check_library_include(path, line, name):
    """An #include <...> is the standard's, the system's, or a library's inside the folder that wraps it."""
    if name in table.ABSENT_HEADERS:
        yield Problem(path, line, "include", f"<{name}> does not exist on GCC 12 and clang 14")
    elif re.fullmatch(r"[a-z_0-9]+", name) or re.fullmatch(table.SYSTEM_HEADERS, name):
        return
    else:
        for pattern, folders in table.LIBRARIES:
            if re.match(pattern, name):
                if not any(path.startswith(folder + "/") for folder in folders):
                    yield Problem(path, line, "library", f"<{name}> belongs to {', '.join(folders)} only")
                return
        yield Problem(path, line, "library", f"<{name}> is a library that tests/tidy/table.py does not know")


def check_includes(path, text, known):
    for match in INCLUDE.finditer(functions.without_comments(text)):
        line = line_of(text, match.start(0))
        if match.group(1):
            yield from check_own_include(path, line, match.group(1), known)
        else:
            yield from check_library_include(path, line, match.group(2))


def check_cxx(path, text, known):
    yield from check_includes(path, text, known)
    if not re.match(rf"// {table.LICENSE}\n//\s*\S.{{15}}", text):
        yield Problem(path, 1, "first comment", f"a file begins with '// {table.LICENSE}' and a comment that says its one reason to exist")
    if path.endswith((".h", ".cuh")) and not re.search(r"^#pragma once$", text, re.MULTILINE):
        yield Problem(path, 1, "pragma once", "a header begins with #pragma once, after its first comment")
    for function in functions.functions(text):
        if function.lines > table.FUNCTION_LINES:
            yield Problem(path, function.line, "function length",
                          f"{function.name} has {function.lines} lines, {table.FUNCTION_LINES} at most")


def check_python(path, text):
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield Problem(path, error.lineno or 1, "python", f"does not parse: {error.msg}")
        return
    if not ast.get_docstring(tree) and not re.match(rf"(#!.*\n)?(# {table.LICENSE}\n)?# (?!SPDX)\S.{{10}}", text):
        yield Problem(path, 1, "first comment", "a program begins with the sentence that says what it is for")
    if not re.match(rf"(#!.*\n)?# {table.LICENSE}\n", text):
        yield Problem(path, 1, "license", f"a program's first line, after its #!, is '# {table.LICENSE}'")
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > table.FUNCTION_LINES:
                yield Problem(path, node.lineno, "function length", f"{node.name} has {lines} lines, {table.FUNCTION_LINES} at most")


def check_words(path, text):
    for pattern in table.BANNED_WORDS:
        for match in re.finditer(pattern, text):
            if path.startswith(table.LIBRARY_WORDS.get(match.group().lower(), ())):
                continue
            yield Problem(path, line_of(text, match.start()), "words", f"'{match.group()}' has no place in this tree")


def check_length(path, text):
    lines = text.count("\n") + (not text.endswith("\n"))
    if os.path.basename(path) == "README.md":
        limit = lines if path in table.LONG_READMES else table.README_LINES
    else:
        limit = lines if path in table.LONG_FILES else table.FILE_LINES
    if lines > limit:
        yield Problem(path, limit, "file length", f"{lines} lines, {limit} at most")


def check_markdown(path, text, known):
    """Prose is wrapped, and a path of the tree in backticks leads to a file or a folder."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and len(line) > table.MARKDOWN_COLUMNS and not line.lstrip().startswith("|"):
            yield Problem(path, number, "line width", f"{len(line)} columns, {table.MARKDOWN_COLUMNS} at most outside tables and code")
        for name in re.findall(r"`([a-z_]+/[\w./-]*)`", line):
            if name.split("/")[0] in table.TOP_LEVEL and not is_known(name.rstrip("/"), known):
                yield Problem(path, number, "path", f"'{name}' is no file or folder of the tree; write the path from the root")


def is_known(name, known):
    """True where a file, a folder, or files that differ in their ending have this path."""
    return name in known or any(other.startswith((name + "/", name + ".")) for other in known)


def is_script(path, text):
    return os.path.splitext(path)[1] in ("", ".sh") and text.startswith("#!")


def check_file(path, text, known):
    extension = os.path.splitext(path)[1]
    yield from check_words(path, text)
    if extension in CXX:
        yield from check_cxx(path, text, known)
    elif extension == ".py":
        yield from check_python(path, text)
    elif extension == ".md":
        yield from check_markdown(path, text, known)
    elif is_script(path, text) and not re.match(rf"#!.*\n# {table.LICENSE}\n# \S.{{10}}", text):
        yield Problem(path, 2, "first comment", f"after its #! a script has '# {table.LICENSE}' and a comment that says what it is for")
    if extension in CXX | {".py", ".md", ".cmake"} or is_script(path, text) or path.endswith("CMakeLists.txt"):
        yield from check_length(path, text)


def check_tree(known):
    """Rules on names alone: the top level, a README in each folder of the table, exemptions that still stand."""
    for top in sorted({path.split("/")[0] for path in known}):
        if top not in table.TOP_LEVEL and not top.startswith("."):
            yield Problem(top, 1, "top level", "the top level of the tree is fixed; this belongs into one of its folders")
    folders = {folder_of(path) for path in known} | {path.split("/")[0] for path in known if "/" in path}
    for folder in sorted(f for f in folders if f and not f.startswith(".")):
        if f"{folder}/README.md" not in known:
            yield Problem(folder, 1, "readme", "a folder has a README.md: purpose, file map, how to add one")
    for path in sorted(set(table.LONG_FILES) - known):
        yield Problem("tests/tidy/table.py", 1, "exemption", f"{path} is exempt from a rule, but not in the tree")


SCOPE = re.compile(r"\bnamespace\s*([\w:]*)\s*\{|\b(?:struct|class|enum class|enum)\s+(?:alignas\([^)]*\)\s*)?(\w+)\s*(?:final\s*)?"
                   r"(?::(?!:)[^;{}()]*)?\{|[{}]")


def types_of(text):
    """(name with its namespaces, position) of each type that a C++ text defines at namespace level, outside anonymous namespaces."""
    scopes = []  # names of namespaces; None for every other brace
    for match in SCOPE.finditer(functions.without_comments(text)):
        token = match.group(0)
        if token == "}":
            scopes = scopes[:-1]
            continue
        if match.group(2) and all(scopes):
            yield "::".join([*scopes, match.group(2)]), match.start()
        scopes.append(match.group(1) or None if token.startswith("namespace") else None)


def check_types(texts):
    """Two files that define a type of one name in one namespace are undefined behavior, which no compiler sees."""
    first = {}
    for path, text in texts.items():
        if path.startswith("tests/") or os.path.splitext(path)[1] not in CXX:
            continue
        for name, position in types_of(text):
            if first.setdefault(name, path) != path:
                yield Problem(path, line_of(text, position), "one definition", f"{name} is also defined in {first[name]}")


def check(root):
    names = files_of(root)
    known = set(names)
    texts = {}
    yield from check_tree(known)
    for name in names:
        try:
            text = (root / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a model, a picture, a dump
        if "\0" not in text:
            texts[name] = text
            yield from check_file(name, text, known)
    yield from check_types(texts)


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    problems = list(check(root))
    for problem in problems:
        print(problem)
    print(f"tidy: {len(problems)} problems" if problems else "tidy: nothing to say")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
