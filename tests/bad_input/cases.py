# SPDX-License-Identifier: Apache-2.0
"""A case of bad input, and the collection of the cases of one kind."""

from typing import NamedTuple

USAGE, MODEL, FILE = 2, 3, 5


class Case(NamedTuple):
    """Files to write into an empty folder, and the arguments of parallax run there; `exit_codes` are those that are right."""
    name: str
    files: dict
    arguments: list
    exit_codes: tuple
    links: dict = {}


# How a model reaches the program: verbs that must refuse the same file. Those that look at a model need not refuse one
# that can be read: `show` then says what is wrong with it.
MODEL_VERBS = (["check"], ["show"], ["run", "--with", "reference"], ["dot"])
LOOKING_VERBS = ("show", "dot")


def model_case(name, content, index, exit_codes=(MODEL,), files=None, links=None, file_name="m.onnx"):
    """A bad model for one of the verbs, in turn."""
    verb = MODEL_VERBS[index % len(MODEL_VERBS)]
    arguments = [verb[0], file_name, *verb[1:]] + (["-o", "m.dot"] if verb[0] == "dot" else [])
    accepted = (0, *exit_codes) if verb[0] in LOOKING_VERBS else exit_codes
    return Case(f"model/{name}/{verb[0]}", {file_name: content, **(files or {})}, arguments, accepted, links or {})
