# SPDX-License-Identifier: Apache-2.0
"""Runs the Python of an example page (reStructuredText of Sphinx-Gallery, or a script), with changed import lines and sizes."""

import re
import textwrap


def python_of(text):
    """The code blocks of a page, joined; a text without any is a script already."""
    blocks = re.findall(r"^\.\. code-block:: Python\n\n((?:(?:    .*)?\n)+)", text, re.MULTILINE)
    return "\n".join(textwrap.dedent(block) for block in blocks) if blocks else text


def with_imports_of_parallax(code):
    """The code with the imports of packages that `parallax.compat` stands for led there; no other line is changed."""
    packages = "experimental_experiment|onnx_array_api|onnx_diagnostic"
    return re.sub(rf"^(\s*)from (?:{packages})[\w.]* import ", r"\1from parallax.compat import ", code, flags=re.MULTILINE)


def run_example(text, replaced=(), **names):
    """The names that the script leaves; `replaced` are (text, other text) pairs, each of which must occur."""
    code = with_imports_of_parallax(python_of(text))
    for before, after in replaced:
        assert before in code, f"the example has no {before!r}"
        code = code.replace(before, after)
    space = {"__name__": "__main__", "__doc__": "", **names}
    exec(compile(code, "example", "exec"), space)
    return space
