"""Parallax: runs ONNX models on two executors, value by value, and says where and why they differ.

>>> import numpy as np, parallax
>>> session = parallax.Session("model.onnx")                              # doctest: +SKIP
>>> session.run({"image": np.zeros((2, 3, 32, 32), np.float32)})          # doctest: +SKIP

Names are loaded when they are first used: importing the package loads neither torch nor pandas.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from parallax import _loading

if TYPE_CHECKING:
    from parallax import compat, helpers, ort, plot, tables, testing, torch
    from parallax._core import Tensor
    from parallax.comparison import Comparison
    from parallax.dump import Dump, DumpWriter, open
    from parallax.errors import (
        Cancelled, CorruptFile, Error, ExecutionError, InvalidModel, IoError, OutOfMemory, Unsupported, UsageError,
    )
    from parallax.jobs import bench, blame, compare, diff, doctor, extract, profile, reduce, run
    from parallax.model import Model, load
    from parallax.process import __version__, executors, set_threads, threads
    from parallax.session import Session

_loading.load_core()  # before anybody imports it without the flags that it needs

# Name -> the module that defines it.
_DEFINED_IN = {
    "load": "model", "Model": "model", "Session": "session", "Tensor": "_core", "__version__": "process",
    "executors": "process", "set_threads": "process", "threads": "process",
    "Error": "errors", "UsageError": "errors", "InvalidModel": "errors", "Unsupported": "errors",
    "ExecutionError": "errors", "OutOfMemory": "errors", "CorruptFile": "errors", "IoError": "errors",
    "Cancelled": "errors",
    "run": "jobs", "compare": "jobs", "diff": "jobs", "blame": "jobs", "reduce": "jobs", "extract": "jobs",
    "profile": "jobs", "bench": "jobs", "doctor": "jobs", "Comparison": "comparison",
    "open": "dump", "Dump": "dump", "DumpWriter": "dump",
}
_SUBMODULES = ("helpers", "torch", "ort", "testing", "plot", "tables", "compat")

__all__ = [
    "Cancelled", "Comparison", "CorruptFile", "Dump", "DumpWriter", "Error", "ExecutionError", "InvalidModel", "IoError",
    "Model", "OutOfMemory", "Session", "Tensor", "Unsupported", "UsageError", "__version__", "bench", "blame", "compare",
    "compat", "diff", "doctor", "executors", "extract", "helpers", "load", "open", "ort", "plot", "profile",
    "reduce", "run", "set_threads", "tables", "testing", "threads", "torch",
]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"parallax.{name}")
    module = _DEFINED_IN.get(name)
    if module is None:
        raise AttributeError(f"module 'parallax' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"parallax.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
