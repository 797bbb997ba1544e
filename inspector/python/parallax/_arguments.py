# SPDX-License-Identifier: Apache-2.0
"""Keyword arguments of jobs as the texts that the program's readers take, and as the command line that says them."""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict, Union

from parallax import _core
from parallax._sentences import ArgumentNames, shown, whole
from parallax.errors import UsageError
from parallax.model import load

Paths = Union[str, "os.PathLike[str]"]
# Arguments that may be a pathlib.Path.
_PATHS = frozenset(("dump", "save_baseline", "baseline", "directory", "output", "keep_file", "verify", "data", "a", "b"))
Inputs = Union[Mapping[str, Any], str, "os.PathLike[str]", None]


class InputOptions(TypedDict, total=False):
    """How inputs are generated that are not given.

    ``seed``: of generated inputs and random operators. ``shapes``: {"image": (1, 3, 224, 224)}. ``dims``: sizes of
    named dimensions, {"batch": 2}. ``ranges``: {"x": (-1.0, 1.0)}, both ends included for integers.
    """

    seed: int
    shapes: Mapping[str, Sequence[int]]
    dims: Mapping[str, int]
    ranges: Mapping[str, tuple[float, float]]


class ModeOptions(TypedDict, total=False):
    """How executors run.

    ``rewrite``: patterns applied before planning ("default", "none", "all", "standard", "-NAME", "+NAME").
    ``observe_all``: nothing is fused or folded away. ``fallback``: "reference" runs nodes without a kernel. ``tf32``:
    matrix products of float32 may use TF32 on cuda. ``accumulate``: "default" or "fp32". ``keep_casts``:
    reference:double honors casts to narrower types. ``memory_limit``: bytes, or "2GiB". ``time_limit``: seconds that
    an executor which is a program of its own may take for one request. ``threads``: of the whole process.
    """

    rewrite: str
    observe_all: bool
    fallback: str | None
    tf32: bool
    accumulate: str
    keep_casts: bool
    memory_limit: int | str | None
    time_limit: float | None
    threads: int | None


class PolicyOptions(TypedDict, total=False):
    """How much values may differ.

    ``policy``: "auto" (limits by operator, type and length of sums), a policy file (.json), or {"rtol": x, "atol": y,
    "per": ...}. ``rtol``, ``atol``: of every value. ``per``: of the values that a glob matches,
    {"decoder*": (1e-3, 1e-5)} or {"decoder*": {"rtol": 1e-3}}; the last that matches counts.
    """

    policy: str | os.PathLike[str] | Mapping[str, Any]
    rtol: float | None
    atol: float | None
    per: Mapping[str, Any] | Sequence[str]


class RunOptions(InputOptions, ModeOptions, total=False):
    """Options of jobs that run a model."""


class JobOptions(RunOptions, PolicyOptions, total=False):
    """Options of jobs that run a model and compare."""


def request_of(verb: str, options: Mapping[str, Any], kinds: Iterable[type]) -> dict[str, Any]:
    """The options as texts. ``kinds``: the TypedDicts whose options the job has. Raises UsageError for others."""
    known = [name for kind in kinds for name in kind.__annotations__]
    request: dict[str, Any] = {}
    for name, value in options.items():
        if name not in known:
            refuse(verb, name, known)
        if value is not None:
            _READERS[name](request, value)
    return request


def refuse(verb: str, name: str, known: Sequence[str]) -> None:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f" (known: {', '.join(sorted(known))})"
    raise UsageError(f"{verb} has no argument {name!r}{hint}")


def run_job(job: str, request: dict[str, Any]) -> Any:
    """The program's answer to a job; errors name arguments."""
    with ArgumentNames(job):
        return _core.run_job(job, request)


def model_of(source: Any) -> Any:
    """A path as text, everything else as the module's Model."""
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else load(source).core


def set_inputs(request: dict[str, Any], inputs: Inputs) -> None:
    """Puts arrays, .npy files (values that are a pathlib.Path) or the path of a data set into the request."""
    if inputs is None:
        return
    if isinstance(inputs, (str, os.PathLike)):
        request["inputs_source"] = _not_empty("inputs", os.fspath(inputs))
    elif isinstance(inputs, Mapping):
        files = {name: value for name, value in inputs.items() if isinstance(value, os.PathLike)}
        request["input_files"] = [f"{name}={os.fspath(path)}" for name, path in files.items()]
        arrays = {name: value for name, value in inputs.items() if name not in files}
        if arrays:
            request["inputs"] = arrays
    else:
        raise UsageError(
            f"inputs is {shown(inputs)}; it must be a mapping of arrays by name, the path of a "
            "test_data_set folder, .npz or .safetensors file, or None for generated ones"
        )


def set_texts(request: dict[str, Any], **texts: Any) -> None:
    """Puts paths and words into the request; None is left out, an empty text and what is no text refused."""
    for name, value in texts.items():
        if value is not None:
            request[name] = _not_empty(name, text_of(name, value))


def text_of(name: str, value: Any) -> str:
    """A path or a word as text, also a number of bytes. Raises UsageError for anything else."""
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if name in ("memory_limit", "capture_limit") and not isinstance(value, str):
        return str(whole(name, value))
    if not isinstance(value, str):
        raise UsageError(f"{name} is {shown(value)}; it must be a str{' or a path' if name in _PATHS else ''}")
    return value


def set_names(request: dict[str, Any], **lists: str | Sequence[str] | None) -> None:
    """Puts lists of names into the request; one text is a list of one, separated by commas for executors."""
    for name, value in lists.items():
        if value is None:
            continue
        if isinstance(value, str):
            value = _core.split_executors(value) if name == "executors" else [value]
        if isinstance(value, Mapping) or not isinstance(value, Iterable):
            raise UsageError(f"{name} is {shown(value)}; it must be a str, or a list of them")
        items = list(value)
        for item in items:
            if not isinstance(item, str):
                raise UsageError(f"{name} has {shown(item)} in it; each must be a str")
        request[name] = [_not_empty(name, item) for item in items]


def _not_empty(name: str, text: str) -> str:
    if not text:
        raise UsageError(f"{name} is an empty text; give it a value, or leave it out")
    return text


def _number(name: str, value: Any) -> str:
    try:
        return repr(float(value))
    except (TypeError, ValueError):
        raise UsageError(f"{name} is {value!r}; it must be a number") from None


def _mapping(name: str, value: Any, example: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    raise UsageError(f"{name} is {value!r}; it must be a mapping: {example}")


def _seed(request: dict[str, Any], value: Any) -> None:
    request["seed"] = whole("seed", value)


def _shapes(request: dict[str, Any], value: Any) -> None:
    example = '{"image": (1, 3, 224, 224)}'
    request["shapes"] = [
        f"{name}=" + "x".join(str(whole(f"shapes[{name!r}]", size)) for size in shape)
        for name, shape in _mapping("shapes", value, example).items()
    ]


def _dims(request: dict[str, Any], value: Any) -> None:
    example = '{"batch": 2}'
    request["dims"] = [
        f"{name}={whole(f'dims[{name!r}]', size)}" for name, size in _mapping("dims", value, example).items()
    ]


def _ranges(request: dict[str, Any], value: Any) -> None:
    request["ranges"] = []
    for name, ends in _mapping("ranges", value, '{"x": (-1.0, 1.0)}').items():
        if not isinstance(ends, Sequence) or len(ends) != 2:
            raise UsageError(f"ranges[{name!r}] is {ends!r}; it must be (low, high)")
        low, high = (_number(f"ranges[{name!r}]", end) for end in ends)
        request["ranges"].append(f"{name}={low}..{high}")


def _tf32(request: dict[str, Any], value: Any) -> None:
    if not isinstance(value, bool):
        raise UsageError(f"tf32 is {value!r}; it must be True or False")
    request["tf32"] = "on" if value else "off"


def _policy(request: dict[str, Any], value: Any) -> None:
    if isinstance(value, Mapping):
        for name, part in value.items():
            if name not in ("rtol", "atol", "per"):
                raise UsageError(f"policy has the key {name!r}; it must be one of rtol, atol, per")
            if part is not None:
                _READERS[name](request, part)
    elif isinstance(value, os.PathLike) or str(value).endswith(".json"):
        request["policy_file"] = os.fspath(value)
    elif value != "auto":
        request["policy"] = str(value)


def _per(request: dict[str, Any], value: Any) -> None:
    if not isinstance(value, Mapping):
        request["per"] = [value] if isinstance(value, str) else [str(rule) for rule in value]
        return
    rules: list[str] = []
    for glob, limits in value.items():
        if not isinstance(limits, Mapping):
            if not isinstance(limits, Sequence) or len(limits) != 2:
                raise UsageError(f"per[{glob!r}] is {limits!r}; it must be (rtol, atol) or {{'rtol': x, 'atol': y}}")
            limits = {"rtol": limits[0], "atol": limits[1]}
        numbers = ",".join(f"{name}={_number(f'per[{glob!r}]', limit)}" for name, limit in limits.items())
        rules.append(f"{glob}@{numbers}")
    request["per"] = rules


def _word(name: str) -> Callable[[dict[str, Any], Any], None]:
    return lambda request, value: set_texts(request, **{name: value})


def _flag(name: str) -> Callable[[dict[str, Any], Any], None]:
    def read(request: dict[str, Any], value: Any) -> None:
        if not isinstance(value, bool):
            raise UsageError(f"{name} is {value!r}; it must be True or False")
        request[name] = value

    return read


def _threads(request: dict[str, Any], value: Any) -> None:
    _core.set_threads(whole("threads", value))


# Option -> what puts it into a request.
_READERS: dict[str, Callable[[dict[str, Any], Any], None]] = {
    "seed": _seed, "shapes": _shapes, "dims": _dims, "ranges": _ranges, "rewrite": _word("rewrite"),
    "observe_all": _flag("observe_all"), "fallback": _word("fallback"), "tf32": _tf32,
    "accumulate": _word("accumulate"), "keep_casts": _flag("keep_casts"), "memory_limit": _word("memory_limit"),
    "time_limit": lambda request, value: None if value is None else _limit(request, "time_limit", value),
    "threads": _threads, "policy": _policy, "rtol": lambda request, value: _limit(request, "rtol", value),
    "atol": lambda request, value: _limit(request, "atol", value), "per": _per,
}  # fmt: skip


def _limit(request: dict[str, Any], name: str, value: Any) -> None:
    request[name] = _number(name, value)


# Field of a request -> option of the program, in the order of its help.
_FLAGS = {
    "against": "--against", "capture": "--capture", "capture_limit": "--capture-limit", "only": "--only",
    "repeat": "--repeat", "baseline": "--baseline", "inputs_source": "--inputs", "input_files": "--input",
    "seed": "--seed", "shapes": "--shape", "dims": "--dim", "ranges": "--range", "tf32": "--tf32",
    "accumulate": "--accumulate", "rewrite": "--rewrite", "observe_all": "--observe-all", "fallback": "--fallback",
    "memory_limit": "--memory-limit", "time_limit": "--time-limit", "keep_casts": "--keep-casts", "rtol": "--rtol", "atol": "--atol",
    "per": "--per", "policy_file": "--policy-file",
}  # fmt: skip


def command_of(verb: str, request: Mapping[str, Any]) -> str:
    """The command line that makes the same document, for a shell; "" where models or inputs are in memory."""
    if "inputs" in request or not all(isinstance(request.get(name, ""), str) for name in ("model", "against")):
        return ""
    words = ["parallax", verb, *(request[name] for name in ("model", "a", "b") if name in request)]
    executors = request.get("executors", [])
    words += ["--with", ",".join(executors)] if executors else []
    for name, flag in _FLAGS.items():
        value = request.get(name)
        if value is None or value is False:
            continue
        for item in value if isinstance(value, list) else [value]:
            words += [flag] if item is True else [flag, str(item)]
    return shlex.join(words)
