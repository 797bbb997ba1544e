# SPDX-License-Identifier: Apache-2.0
"""Finds the functions of a C++ file and their lengths, with a scanner of braces: no compiler, no flags, a second for the whole tree."""

import re
from typing import NamedTuple


class Function(NamedTuple):
    name: str
    line: int
    lines: int


_TOKENS = re.compile(
    r'//[^\n]*'
    r'|/\*.*?\*/'
    r'|(?:\b(?:u8|u|U|L))?R"(?P<tag>[^()\\\s]*)\(.*?\)(?P=tag)"'
    r'|(?:\b(?:u8|u|U|L))?"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r'|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*',
    re.DOTALL | re.MULTILINE)

_CONTAINER = re.compile(r'\b(namespace|class|struct|union|enum|extern|concept)\b')
_DATA = re.compile(r'(?<![=!<>+\-*/%&|^])=(?!=)')


_COMMENTS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def without_comments(text):
    """The text with comments blanked, and nothing else; positions and lines stay."""
    return _COMMENTS.sub(lambda m: m.group() if m.group()[0] == '"' else re.sub(r'[^\n]', ' ', m.group()), text)


def blank(text):
    """The text with comments, literals and preprocessor lines replaced by spaces; positions and lines stay."""
    return _TOKENS.sub(lambda m: re.sub(r'[^\n]', ' ', m.group()), text)


def _at_depth_zero(head):
    """`head` without what stands inside parentheses."""
    out, depth = [], 0
    for c in head:
        if c == '(':
            depth += 1
        elif c == ')':
            depth -= 1
        elif depth == 0:
            out.append(c)
    return ''.join(out)


def _kind(head):
    """The kind of block after `head` in a namespace or class: a container, data, or a function's body."""
    outside = re.sub(r'\boperator\s*[^\w\s(]+', 'operator_', _at_depth_zero(head))
    outside = re.sub(r'\btemplate\s*<[^{]*?>(?=\s*[\w\[:~])', '', outside)
    if _CONTAINER.search(outside) and '(' not in re.sub(r'\b(alignas|decltype|__attribute__)\s*\([^)]*\)*', '', head):
        return 'container'
    if '(' not in head:
        return 'data' if not _CONTAINER.search(outside) else 'container'
    equals = _DATA.search(outside)
    if equals and '[' not in outside[equals.end():]:
        return 'data'
    return 'function'


def _name(head):
    match = re.search(r'([~\w:]+|operator\s*\S+?)\s*\(', head)
    name = match.group(1) if match else head.strip()[:40]
    arguments = re.match(r'\s*(TEST\w*)\s*\(([^)]*)\)', head)
    return f'{arguments.group(1)}({arguments.group(2)})' if arguments else name


def _match(text, start):
    """The position of the brace that closes the one at `start`, or the end of the text."""
    depth = 0
    for brace in re.compile(r'[{}]').finditer(text, start):
        depth += 1 if brace.group() == '{' else -1
        if depth == 0:
            return brace.start()
    return len(text) - 1


def functions(source):
    """Every function of the source, outermost only: a lambda or a local class counts to the function it stands in."""
    text = blank(source)
    found, head_start, position = [], 0, 0
    while True:
        mark = re.compile(r'[{};]').search(text, position)
        if not mark:
            return found
        position = mark.end()
        if mark.group() != '{':
            # A ';' inside parentheses is a for loop's: it cannot stand in a head.
            head_start = position
            continue
        head = re.sub(r'^\s*(public|private|protected)\s*:', lambda m: ' ' * len(m.group()), text[head_start:mark.start()])
        kind = _kind(head)
        initializer = kind == 'function' and re.search(r'\)[^()]*:[^:]', head) and re.search(r'[\w>]$', head)
        if kind == 'container':
            head_start = position
            continue
        end = _match(text, mark.start())
        position = end + 1
        if initializer:  # member_{value} in a constructor's list: its head goes on
            text = text[:mark.start()] + re.sub(r'[^\n]', ' ', text[mark.start():position]) + text[position:]
            continue
        if kind == 'function':
            first = head_start + len(head) - len(head.lstrip())
            found.append(Function(_name(head), text.count('\n', 0, first) + 1, text.count('\n', first, end) + 1))
        head_start = position
