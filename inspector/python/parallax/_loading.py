# SPDX-License-Identifier: Apache-2.0
"""Loading of the compiled module, so that its parallel regions are its own and there is one copy in the process."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import sysconfig
from types import ModuleType

# Whoever loads the module leaves "pid:file" here, for a second copy of the package to see.
_MARKER = "PARALLAX_LOADED_CORE"


def _refuse_second_copy(path: str) -> None:
    pid, _, other = os.environ.get(_MARKER, "").partition(":")
    if pid == str(os.getpid()) and other != path:
        raise ImportError(
            f"parallax is loaded from {other} already; a second copy of it ({path}) cannot be loaded into this process. "
            "Remove one of the two from sys.path"
        )
    os.environ[_MARKER] = f"{os.getpid()}:{path}"


def _own_symbols_first() -> int:
    """RTLD_DEEPBIND; nothing under a sanitizer, whose own functions must win and which ends the process otherwise."""
    preloaded = os.environ.get("LD_PRELOAD", "")
    return 0 if "asan" in preloaded or "tsan" in preloaded else getattr(os, "RTLD_DEEPBIND", 0)


def _folder_of_package() -> str:
    """The folder of this package, "" where pip has installed it: a Python that is started finds it there by itself."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return "" if folder in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")) else folder


def child_environment() -> dict[str, str]:
    """The environment of a program that starts runners: in this Python, with this package, where PARALLAX_PYTHON names no other."""
    environment = dict(os.environ)
    if not environment.get("PARALLAX_PYTHON"):
        environment["PARALLAX_PYTHON"] = sys.executable
        folders = [_folder_of_package(), environment.get("PYTHONPATH")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    return environment


def load_core() -> ModuleType:
    """Imports ``parallax._core`` with its own symbols before those of other libraries in the process.

    oneDNN calls OpenMP by name, and torch brings an OpenMP runtime under the same names. RTLD_DEEPBIND makes the
    module's own functions win, whatever was imported before. Raises ImportError.
    """
    name = f"{__package__}._core"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ImportError(f"{name} is missing: the package has not been built; pip install ./inspector/python builds it")
    _refuse_second_copy(os.path.realpath(spec.origin))
    before = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_LOCAL | _own_symbols_first())
    try:
        core = importlib.import_module(name)
    finally:
        sys.setdlopenflags(before)
    if sys.executable:  # empty or None in a program that embeds Python
        core.set_python(sys.executable, _folder_of_package())
    core.set_package_folders([folder for folder in sys.path if os.path.isdir(os.path.join(folder, "nvidia"))])
    return core
