# SPDX-License-Identifier: Apache-2.0
"""Sentences of errors: values described, and the program's own with arguments in place of its options."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any

from parallax.errors import Error, UsageError

# Option -> argument, where it is not the same word.
_ARGUMENTS = {
    "input": "inputs", "shape": "shapes", "dim": "dims", "range": "ranges", "feed": "feeds", "policy-file": "policy",
    "from": "from_", "fail-code": "fail_codes", "map": "roles", "prompt-ids": "input_ids", "prompt-file": "input_ids",
    "beams": "num_beams", "return": "num_return_sequences", "no-repeat-ngram": "no_repeat_ngram_size",
    "sample": "do_sample", "eos": "eos_token_id", "pad": "pad_token_id", "start-ids": "decoder_start_token_id",
}  # fmt: skip
# Options with the same word, up to the dashes.
_SAME = (
    "against", "baseline", "repeat", "save-baseline", "capture", "capture-limit", "only", "inputs", "seed", "tf32",
    "accumulate", "rewrite", "observe-all", "fallback", "memory-limit", "time-limit", "keep-casts", "policy", "rtol", "atol", "per",
    "dump", "to", "check", "fail-regex", "patterns", "keep", "keep-file", "keep-io", "verify", "tolerance", "minimise",
    "cache", "temperature", "top-k", "top-p", "min-p", "length-penalty", "early-stopping", "repetition-penalty",
    "max-new-tokens", "min-new-tokens", "expect", "condition", "until-stable", "with", "half-sums", "force",
)  # fmt: skip
_FLAGS = ("observe-all", "keep-casts", "keep-io", "sample", "minimise", "force")
# Jobs that take executors; the others take one executor.
_OF_TWO_SIDES = ("compare", "blame", "reduce", "Comparer")

# A command line that the sentence advises stays as it is.
_OPTION = re.compile(
    r"parallax [a-z0-9-]+ [^;`]*"
    r"|(?<![\w-])--(?P<pair>input|shape|dim|range) (?P<name>[^\s=']+)=(?P<size>[^\s,;)]*[^\s,;.)]|\.\.\.)"
    r"|(?<![\w-])--(?P<option>[a-z][a-z0-9-]*)"
    r"(?P<value>=[a-z]+\b| (?:in-place|copy|none|all|auto)\b| '[^']*'| -?\d[\d.]*(?![\w.,])| N\b)?"
)
_VERBS = re.compile(r"^(audit-fp16|merge-decoders)(?=:)")


def kind_of(value: Any) -> str:
    """The kind of a value, for a sentence: "an int", "a numpy.ndarray", "None"."""
    if value is None:
        return "None"
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def shown(value: Any) -> str:
    """A value that is short as it is, and what it is otherwise."""
    return repr(value) if isinstance(value, (int, float, str)) else kind_of(value)


def whole(name: str, value: Any) -> int:
    """The value as an int. Raises UsageError where it is none."""
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise UsageError(f"{name} is {shown(value)}; it must be a whole number") from None


def size_text(count: int) -> str:
    """A number of bytes with its unit: "812 bytes", "4.1 kB", "1.2 GB"."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"


def translated(sentence: str, job: str = "") -> str:
    """The sentence with arguments in place of options.

    >>> from parallax._sentences import translated
    >>> translated("--return 5 asks for more sequences than there are beams (1); --beams N makes more")
    'num_return_sequences=5 asks for more sequences than there are beams (1); num_beams=N makes more'
    >>> translated("input 'x' has no size: give --dim batch=2")
    "input 'x' has no size: give dims={'batch': 2}"
    """
    sentence = _VERBS.sub(lambda found: found[0].replace("-", "_"), sentence)
    return _OPTION.sub(lambda found: _argument(found, job), sentence)


def _argument(found: re.Match[str], job: str) -> str:
    if found["pair"]:
        return f"{_ARGUMENTS[found['pair']]}={{{found['name']!r}: {_sizes(found['pair'], found['size'])}}}"
    option, value = found["option"], found["value"] or ""
    if option is None or (option not in _ARGUMENTS and option not in _SAME):
        return found[0]
    name = _ARGUMENTS.get(option, option.replace("-", "_"))
    if option == "with":
        name = "executors" if job in _OF_TWO_SIDES else "executor"
    if option in _FLAGS:
        return f"{name}=True{value}"
    if value in ("=on", "=off"):
        return f"{name}={value == '=on'}"
    word = value.lstrip(" =")
    if not word:
        return name
    is_literal = word == "N" or word[0] in "'-0123456789"
    return f"{name}={word if is_literal else repr(word)}"


def _sizes(pair: str, text: str) -> str:
    if pair == "shape" and text != "...":
        return f"({', '.join(text.split('x'))}{',' if 'x' not in text else ''})"
    if pair == "range":
        return f"({', '.join(text.split('..'))})"
    return "array" if pair == "input" else text


class ArgumentNames:
    """A context in which errors of the program name arguments: ``with ArgumentNames("compare"): ...``."""

    __slots__ = ("_job",)

    def __init__(self, job: str) -> None:
        self._job = job

    def __enter__(self) -> None:
        """Nothing is prepared."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, Error):
            error.args = (translated(str(error), self._job), *error.args[1:])
