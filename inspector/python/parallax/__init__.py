# SPDX-License-Identifier: Apache-2.0
"""Parallax: runs ONNX models on two executors, value by value, and says where and why they differ.

>>> import numpy as np, parallax
>>> session = parallax.Session("model.onnx")                              # doctest: +SKIP
>>> session.run({"image": np.zeros((2, 3, 32, 32), np.float32)})          # doctest: +SKIP

Names are loaded when they are first used: importing the package loads neither torch nor pandas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parallax import _loading
from parallax._lazy import lazy_names

if TYPE_CHECKING:
    from parallax import compat, helpers, hf, ort, plot, runners, sweep, tables, testing, torch
    from parallax._core import Tensor
    from parallax.comparison import Comparison
    from parallax.dump import Dump, DumpWriter, open
    from parallax.errors import (
        Cancelled, CorruptFile, Error, ExecutionError, InvalidModel, IoError, OutOfMemory, Unsupported, UsageError,
    )
    from parallax.generation import Generation, Generator, generate
    from parallax.jobs import bench, blame, compare, diff, doctor, extract, profile, reduce, run
    from parallax.model import Model, load
    from parallax.model_jobs import audit_fp16, convert, merge_decoders
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
    "generate": "generation", "Generator": "generation", "Generation": "generation",
    "audit_fp16": "model_jobs", "convert": "model_jobs", "merge_decoders": "model_jobs",
    "open": "dump", "Dump": "dump", "DumpWriter": "dump",
}
_SUBMODULES = ("helpers", "torch", "hf", "ort", "runners", "sweep", "testing", "plot", "tables", "compat")

__all__ = [
    "Cancelled", "Comparison", "CorruptFile", "Dump", "DumpWriter", "Error", "ExecutionError", "Generation",
    "Generator", "InvalidModel", "IoError", "Model", "OutOfMemory", "Session", "Tensor", "Unsupported", "UsageError",
    "__version__", "audit_fp16", "bench", "blame", "compare", "compat", "convert", "diff", "doctor", "executors",
    "extract", "generate", "helpers", "hf", "load", "merge_decoders", "open", "ort", "plot", "profile", "reduce",
    "run", "runners", "set_threads", "sweep", "tables", "testing", "threads", "torch",
]


__getattr__, __dir__ = lazy_names(__name__, _DEFINED_IN, __all__, _SUBMODULES)
