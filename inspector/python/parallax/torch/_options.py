# SPDX-License-Identifier: Apache-2.0
"""The options of the torch.compile backends, checked when a backend is made."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from parallax.errors import UsageError

Transform = Callable[[Any], Any]
"""A function from the converted model (`parallax.Model`) to the one that is run."""


@dataclass(frozen=True)
class Options:
    """The options of `parallax.torch.backend`; see there."""

    executor: str = "cpu"
    patterns: str | Sequence[str] = "default"
    storage: MutableMapping[Any, Any] | None = None
    dump_prefix: str | Path | None = None
    opset: int = 20
    decompositions: str | Mapping[Any, Callable[..., Any]] = "default"
    freeze: Literal["auto", "never"] = "auto"
    fallback: Literal["error", "eager"] = "error"
    randomness: Literal["torch", "executor"] = "torch"
    transforms: Sequence[Transform] = ()
    observer: Any = None
    verbose: int = 0
    force: bool = False

    def __post_init__(self) -> None:
        _check_choice("freeze", self.freeze, ("auto", "never"))
        _check_choice("fallback", self.fallback, ("error", "eager"))
        _check_choice("randomness", self.randomness, ("torch", "executor"))
        if isinstance(self.decompositions, str):
            _check_choice("decompositions", self.decompositions, ("default", "core", "none"))
        if self.storage is not None and not isinstance(self.storage, MutableMapping):
            kind = type(self.storage).__name__
            raise UsageError(f"storage is a {kind}; it must be a parallax.torch.Storage or a dict")

    @property
    def rewrite(self) -> str:
        """The patterns as a session's `rewrite` option takes them."""
        names = self.pattern_text.split(",")
        bare = [n for n in names if n[:1] not in "+-" and n not in _SETS]
        base = [n for n in names if n in _SETS] or (["none"] if bare else ["default"])
        return ",".join(base + [f"+{n}" if n in bare else n for n in names if n not in _SETS])

    @property
    def pattern_text(self) -> str:
        """The patterns as `Model.rewrite` takes them."""
        return self.patterns if isinstance(self.patterns, str) else ",".join(self.patterns)


@dataclass(frozen=True)
class DebugOptions(Options):
    """The options of `parallax.torch.debug_backend`; see there."""

    executors: tuple[str, str] = ("reference", "cpu")
    eager: bool = False
    policy: str | Mapping[str, Any] = "auto"
    on_divergence: Literal["warn", "raise"] | Callable[[Any], Any] = "warn"
    every: int = 1
    dump: str | Path | None = None
    fast_transforms: Sequence[Transform] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.on_divergence):
            _check_choice("on_divergence", self.on_divergence, ("warn", "raise"))
        if self.every < 1:
            raise UsageError(f"every is {self.every}; it must be 1 (each call) or more")
        if len(tuple(self.executors)) != 2:
            raise UsageError(f"executors are {self.executors!r}; two are compared, such as ('reference', 'cpu')")


_SETS = ("default", "none", "all", "standard", "standard+microsoft", "standard+microsoft+own")


def _check_choice(name: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise UsageError(f"{name} is {value!r}; it must be {' or '.join(repr(k) for k in known)}")


def make_options(kind: type[Options], given: Mapping[str, Any]) -> Any:
    """The options of that kind. An unknown name is a `UsageError` that lists the known ones."""
    known = [field.name for field in dataclasses.fields(kind)]
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise UsageError(f"there is no option {name!r}{hint} Known: {', '.join(known)}")
    return kind(**given)


def changed_options(options: Any, given: Mapping[str, Any] | None, mode: str | None) -> Any:
    """The options with those of `torch.compile(..., options={...})` put in."""
    if mode is not None:
        raise UsageError(f"mode is {mode!r}; this backend has no modes. Give torch.compile options={{...}} instead")
    if not given:
        return options
    mine = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    return make_options(type(options), {**mine, **given})
