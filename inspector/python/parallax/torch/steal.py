# SPDX-License-Identifier: Apache-2.0
"""The capture of modules under the names and with the printed trace of onnx-diagnostic's scripts."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from parallax import _core
from parallax.errors import UsageError
from parallax.helpers import string_type
from parallax.torch._capture import _active, _Capturing, _Tracer, named_modules
from parallax.torch._captured import Capture, Store

__all__ = ["create_input_tensors_from_onnx_model", "is_stealing", "steal_append", "steal_forward"]

_NO_LIMIT = 2**62


@contextlib.contextmanager
def steal_forward(
    model: Any,
    fprint: Callable[..., str] = string_type,
    dump_file: str | os.PathLike[str] | None = None,
    dump_drop: Iterable[str] | None = None,
    submodules: bool = False,
    verbose: int = 0,
    storage_limit: int = 2**27,
    save_as_external_data: bool = True,
    force: bool = False,
    **kwargs: Any,
) -> Iterator[Capture]:
    """Prints the calls of modules and stores their inputs and outputs in one ONNX file (or a dump, where it ends so).

    ``model``: a module, or a list of modules and (name, module). ``fprint`` with ``kwargs`` describes objects
    (``with_shape``, ``with_min_max``). Results of ``storage_limit`` bytes and more are not stored; ``dump_drop`` leaves
    out keyword arguments. ``submodules`` names each module ``PATH-CLASS-LINE``. ``verbose=1`` says what is stored.
    ``force``: ``dump_file`` may be a file that Parallax did not write.

    >>> import os, tempfile, torch
    >>> from parallax.torch import steal
    >>> file = os.path.join(tempfile.mkdtemp(), "seen.onnx")
    >>> net = torch.nn.ReLU()
    >>> with steal.steal_forward([("net", net)], dump_file=file):
    ...     _ = net(torch.zeros(2, 3))
    +net -- stolen forward for class ReLU -- iteration 0
      <- args=(T1s2x3,) --- kwargs={}
      -> T1s2x3
    -net.
    >>> list(steal.create_input_tensors_from_onnx_model(file))
    [('net', 0, 'I'), ('net', 0, 'O')]
    """
    options = dict(kwargs)
    if fprint is string_type:
        options = {"with_shape": kwargs.get("with_shape", True), "with_min_max": kwargs.get("with_min_max", False)}
    tracer = _Tracer(calls=True, storage=verbose > 0, describe=fprint, options=options)
    modules = _with_submodules(model, tracer) if submodules else named_modules(_named(model), False)
    text = None if dump_file is None else os.fspath(dump_file)
    is_dump = text is not None and text.endswith(".plx")
    store = Store(text if is_dump else None, None if is_dump else text, "all", _NO_LIMIT, keeps=text is not None,
                  external_data=save_as_external_data, force=force)
    drop = frozenset(dump_drop or ())
    with _Capturing(modules, store, drop, tracer, largest_result=storage_limit).run() as got:
        yield got


def steal_append(name: str, obj: Any) -> None:
    """Adds an object to what the innermost ``steal_forward`` stores; outside of one nothing happens."""
    if _active:
        _active[-1].append(name, obj)


def is_stealing() -> bool:
    """True while a capture is under way."""
    return bool(_active)


def create_input_tensors_from_onnx_model(
    proto: Any, device: str = "cpu", engine: str = "parallax", sep: str = "___"
) -> Any:
    """Restores what a file of captured objects holds: a dict of ``steal_forward``'s keys, or its one object.

    ``proto`` is a path or a ModelProto; ``device`` is where torch's tensors go. ``engine`` is accepted and not needed:
    no model is run. Raises UsageError for another ``sep`` and for a file of another form.
    """
    if sep != "___":
        raise UsageError(f"sep is {sep!r}; the names of such files are separated by '___'")
    if isinstance(proto, (str, os.PathLike)):
        found = Capture.restore(proto)
    else:
        found = Capture.of_objects(*_core.read_captured_model(proto.SerializeToString())[:2])
    objects = dict(found)
    restored = objects["value"] if list(objects) == ["value"] else objects
    return restored if device == "cpu" else _moved(restored, device)


def _named(model: Any) -> Any:
    """A module alone is printed without a name, several are told apart by their classes."""
    if isinstance(model, list):
        return model
    return [model if isinstance(model, tuple) else ("", model)]


def _with_submodules(model: Any, tracer: _Tracer) -> list[tuple[str, torch.nn.Module]]:
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"submodules=True takes a module; model is a {type(model).__name__}")
    modules = []
    for path, module in model.named_modules():
        name = f"{path}-{type(module).__name__}-{_first_line(module)}"
        tracer.indents[name] = "  " * (2 * len(path.split(".")))
        modules.append((name, module))
    return modules


def _first_line(module: torch.nn.Module) -> int:
    try:
        return inspect.getsourcelines(module.forward)[1]
    except (OSError, TypeError):  # made without a source file
        return 0


def _moved(obj: Any, device: str) -> Any:
    if isinstance(obj, torch.Tensor):
        return obj.to(device)
    if isinstance(obj, (list, tuple)) and type(obj) in (list, tuple):
        return type(obj)(_moved(item, device) for item in obj)
    if type(obj) is dict:
        return {key: _moved(item, device) for key, item in obj.items()}
    if hasattr(obj, "layers"):
        for layer in obj.layers:
            layer.keys, layer.values = _moved(layer.keys, device), _moved(layer.values, device)
    return obj
