# SPDX-License-Identifier: Apache-2.0
"""capture: the inputs and outputs of modules, in their containers, while a program runs."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from parallax._core import Tensor
from parallax.errors import UsageError
from parallax.helpers import string_type
from parallax.torch._captured import Capture, CaptureWarning, Key, Store
from parallax.torch._structure import Tree, flatten

__all__ = ["Capture", "CaptureWarning", "append", "capture", "restore", "save_onnx"]

Modules = torch.nn.Module | tuple[str, torch.nn.Module] | Iterable[Any] | Mapping[str, torch.nn.Module]

restore = Capture.restore
_active: list[_Capturing] = []


def capture(
    modules: Modules,
    *,
    path: str | os.PathLike[str] | None = None,
    onnx: str | os.PathLike[str] | None = None,
    submodules: bool = False,
    limit: int = 2**27,
    drop: Iterable[str] = (),
    level: str = "all",
    verbose: int = 0,
    force: bool = False,
) -> contextlib.AbstractContextManager[Capture]:
    """Captures what goes into modules and what comes out of them, in every call inside the context.

    ``modules``: a module, (name, module), a list of both, or a mapping; ``submodules`` adds all modules within them.
    The values are copies: in memory, or in the dump ``path`` (.plx), where each is written when it is seen; ``onnx`` writes
    them at the end as one ONNX file of constants. Of a value above ``limit`` bytes a sample and statistics are kept (a
    CaptureWarning says so), with ``level="stats"`` statistics alone. ``drop``: keyword arguments that are not captured.
    ``verbose=1`` prints every call. The modules are as before afterwards, whatever happens; where one raises, what was
    captured until then stays. A module's method that is called around ``__call__`` is not seen.

    ``force``: the files may be ones that Parallax did not write.

    Gives a Capture: ``got[(name, call, "I")]`` is (args, kwargs), ``got[(name, call, "O")]`` the result. Raises
    UsageError for two modules of one name and for a file that may not be written, and IoError.

    >>> import torch, parallax.torch as pt
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU())
    >>> with pt.capture(net, submodules=True) as got:
    ...     _ = net(torch.ones(3, 4))
    >>> list(got)[:3]
    [('', 0, 'I'), ('0', 0, 'I'), ('0', 0, 'O')]
    >>> got[("1", 0, "O")].shape
    torch.Size([3, 2])
    """
    tracer = _Tracer(calls=verbose > 0, storage=verbose > 0)
    return _Capturing(
        named_modules(modules, submodules), Store(path, onnx, level, limit, force=force), frozenset(drop), tracer
    ).run()


def append(name: str, obj: Any) -> str:
    """Adds an object to the innermost capture under a name of its own, ``got[name]``; a taken name becomes ``name_1``.

    Returns the name that it got. Raises UsageError outside of a capture.

    >>> import torch, parallax.torch as pt
    >>> with pt.capture(torch.nn.ReLU()) as got:
    ...     _ = pt.append("mask", [torch.zeros(2), None])
    >>> got["mask"]
    [tensor([0., 0.]), None]
    """
    if not _active:
        raise UsageError(f"append({name!r}) is called outside of a capture; it must be inside `with capture(...)`")
    return _active[-1].append(name, obj)


def save_onnx(
    captured: Capture, path: str | os.PathLike[str], external_data: bool = False, *, force: bool = False
) -> None:
    """Writes captured objects as one ONNX file of constants, in the form of onnx-diagnostic's mini builder.

    Tensors above 1 kB go to ``path + ".data"`` with ``external_data``, and where the file would pass 2 GB. Raises
    UsageError when nothing was captured and, without ``force``, for a file that Parallax did not write, Unsupported for
    names and keys with "___", IoError.
    """
    captured.save_onnx(path, external_data, force=force)


def named_modules(modules: Modules, submodules: bool) -> list[tuple[str, torch.nn.Module]]:
    """(name, module) of everything that is to be captured; a module alone is called "". Raises UsageError."""
    pairs = _pairs(modules)
    if submodules:
        pairs = [
            (".".join(filter(None, (prefix, name))), module)
            for prefix, root in pairs
            for name, module in root.named_modules()
        ]
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"two modules are called {twice[0]!r}; give each a name of its own: (name, module)")
    return pairs


def _pairs(modules: Modules) -> list[tuple[str, torch.nn.Module]]:
    if isinstance(modules, torch.nn.Module):
        return [("", modules)]
    if isinstance(modules, tuple) and len(modules) == 2 and isinstance(modules[0], str):
        return [_checked(modules[0], modules[1])]
    if isinstance(modules, Mapping):
        return [_checked(name, module) for name, module in modules.items()]
    if not isinstance(modules, Iterable):
        kind = type(modules).__name__
        raise UsageError(f"modules is a {kind}; it must be a module, (name, module), or a list of both")
    given = list(modules)
    pairs = []
    for item in given:
        pair = item if isinstance(item, tuple) and len(item) == 2 else ("" if len(given) == 1 else None, item)
        pairs.append(_checked(type(pair[1]).__name__ if pair[0] is None else pair[0], pair[1]))
    return pairs


def _checked(name: Any, module: Any) -> tuple[str, torch.nn.Module]:
    if not isinstance(name, str) or not isinstance(module, torch.nn.Module):
        raise UsageError(f"({name!r}, {type(module).__name__}) is no pair of a name and a torch.nn.Module")
    return name, module


@dataclass
class _Tracer:
    """Prints calls as they happen."""

    calls: bool = False
    storage: bool = False
    describe: Any = string_type
    options: dict[str, Any] = field(default_factory=lambda: {"with_shape": True})
    indents: dict[str, str] = field(default_factory=dict)

    def of(self, obj: Any) -> str:
        return str(self.describe(obj, **self.options))

    def enter(self, name: str, kind: str, call: int, args: Any, kwargs: Any) -> None:
        if self.calls:
            indent = self.indents.get(name, "")
            print(f"{indent}+{name} -- stolen forward for class {kind} -- iteration {call}")
            print(f"{indent}  <- args={self.of(args)} --- kwargs={self.of(kwargs)}")

    def leave(self, name: str, result: Any) -> None:
        if self.calls:
            indent = self.indents.get(name, "")
            print(f"{indent}  -> {self.of(result)}")
            print(f"{indent}-{name}.")

    def raised(self, name: str, error: BaseException) -> None:
        if self.calls:
            indent = self.indents.get(name, "")
            print(f"{indent}  !! {type(error).__name__}: {error}")
            print(f"{indent}-{name}.")

    def stored(self, key: Key, size: int, result: Any, kept: bool) -> None:
        if self.storage:
            verb = "stores" if kept else "skips"
            print(f"-- {verb} key={key[:2]}, size {size // 2**10}Kb -- {string_type(result, with_shape=True)}")


@dataclass
class _Call:
    """A call of a module that has begun."""

    name: str
    number: int
    before: BaseException | None  # the exception that was being handled when it began


class _Capturing:
    """One capture from its first hook to its end."""

    def __init__(
        self, modules: list[tuple[str, torch.nn.Module]], store: Store, drop: frozenset[str], tracer: _Tracer,
        largest_result: int | None = None,
    ) -> None:
        self._modules = modules
        self._store = store
        self._drop = drop
        self._tracer = tracer
        self._largest_result = largest_result  # results of that many bytes and more are not stored at all
        self._counts = dict.fromkeys((name for name, _ in modules), 0)
        self._open = threading.local()
        self._lock = threading.RLock()
        self._warned = False

    @contextlib.contextmanager
    def run(self) -> Iterator[Capture]:
        handles: list[Any] = []
        _active.append(self)
        completed = False
        try:
            for name, module in self._modules:
                before, after = self._hooks(name)
                handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
                handles.append(module.register_forward_hook(after, with_kwargs=True, prepend=True, always_call=True))
            yield self._store.capture
            completed = True
        finally:
            for handle in handles:
                handle.remove()
            _active.remove(self)
            self._modules = []
            self._store.close(completed, self._tracer.storage)

    def append(self, name: str, obj: Any) -> str:
        with self._lock:
            unique = self._store.capture.unique_name(name)
            renamed = f" renamed in {unique!r}" if unique != name else ""
            if self._tracer.calls:
                print(f"-- stolen {name!r}{renamed}: {string_type(obj, with_shape=True)}")
            self._keep(unique, unique, -1, "value", "output", obj)
            return unique

    def _hooks(self, name: str) -> tuple[Any, Any]:
        def before(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if not torch.compiler.is_compiling():
                with torch.no_grad(), self._lock:
                    self._enter(name, type(module).__name__, args, kwargs)

        def after(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            if not torch.compiler.is_compiling():
                with torch.no_grad(), self._lock:
                    self._leave(name, type(module).__name__, result)

        return before, after

    def _enter(self, name: str, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        number = self._counts[name]
        self._counts[name] += 1
        self._calls().append(_Call(name, number, sys.exc_info()[1]))
        self._tracer.enter(name, kind, number, args, kwargs)
        self._store.enter(name, number, kind)
        kept = {key: value for key, value in kwargs.items() if key not in self._drop}
        self._keep((name, number, "I"), name, number, "in", "input", (args, kept))

    def _leave(self, name: str, kind: str, result: Any) -> None:
        calls = self._calls()
        if not calls or calls[-1].name != name:
            return  # raised before its call had begun
        call = calls.pop()
        error = sys.exc_info()[1]
        if error is not None and error is not call.before:  # torch shows None where the module raised
            self._tracer.raised(name, error)
        else:
            self._tracer.leave(name, result)
            self._keep((name, call.number, "O"), name, call.number, "out", "output", result)
        self._store.leave(name, call.number, kind)

    def _calls(self) -> list[_Call]:
        if not hasattr(self._open, "calls"):
            self._open.calls = []
        calls: list[_Call] = self._open.calls
        return calls

    def _keep(self, key: Key, name: str, number: int, root: str, role: str, obj: Any) -> None:
        is_result = root == "out" and (self._tracer.storage or self._largest_result is not None)
        size = bytes_of(obj) if is_result else 0
        is_kept = not is_result or self._largest_result is None or size < self._largest_result
        if is_result and self._store.keeps:
            self._tracer.stored(key, size, obj, is_kept)
        if not self._store.keeps or not is_kept:
            return
        frames = self._store.frames(name, number)
        self._store.add(key, frames, root, self._tree(obj, frames, root, role))

    def _tree(self, obj: Any, frames: str, root: str, role: str) -> Tree:
        def keep(name: str, array: Any) -> str:
            reason, is_cut = self._store.write(frames, name, array, role)
            if is_cut and not self._warned:
                self._warned = True
                warnings.warn(CaptureWarning(
                    f"{frames}{name} ({string_type(array, with_shape=True)}) is larger than limit={self._store.limit} "
                    "bytes; of it and others like it a sample and statistics are kept"), stacklevel=2)
            return reason

        if root != "in":
            return flatten(obj, root, keep)
        args, kwargs = obj
        return {"kind": "tuple", "items": [flatten(args, "in/args", keep), flatten(kwargs, "in/kwargs", keep)]}


def bytes_of(obj: Any) -> int:
    """Bytes of all tensors in an object, those in caches and dataclasses included."""
    total = 0

    def add(name: str, array: Any) -> str:
        nonlocal total
        total += array.nbytes if isinstance(array, Tensor) or hasattr(array, "nbytes") else 0
        return ""

    flatten(obj, "value", add)
    return total
