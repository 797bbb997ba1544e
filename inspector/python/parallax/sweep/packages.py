# SPDX-License-Identifier: Apache-2.0
"""Optional packages of a sweep, imported on first use with a sentence where they are missing."""

from __future__ import annotations

import importlib
from typing import Any

from parallax.errors import UsageError

__all__ = ["needed"]

_PURPOSES = {
    "pyarrow": "writes and reads the table of a sweep",
    "distributed": "runs a sweep on a Dask cluster",
    "tomli": "reads the TOML file of a sweep before Python 3.11",
}


def needed(*modules: str) -> Any:
    """The first of these modules that is here. Raises UsageError, with the command that installs the last one.

    >>> from parallax.sweep.packages import needed
    >>> needed("json").__name__
    'json'
    """
    for module in modules:
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module.partition(".")[0]:
                raise
    package = modules[-1].partition(".")[0]
    purpose = _PURPOSES.get(package, "is needed by a sweep")
    raise UsageError(f"the Python package {package}, which {purpose}, is missing: pip install 'parallax-onnx[sweep]'")
