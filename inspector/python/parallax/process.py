# SPDX-License-Identifier: Apache-2.0
"""Settings of the process as a whole: the version, threads and executors."""

from __future__ import annotations

from parallax import _core
from parallax._core import executors, threads, version
from parallax._sentences import whole

__all__ = ["__version__", "executors", "set_threads", "threads"]

__version__ = version()


def set_threads(count: int) -> None:
    """Sets how many threads work on one loop, in the whole process; 0: one per hardware thread. Raises UsageError.

    >>> import parallax
    >>> parallax.set_threads(2)
    """
    _core.set_threads(whole("threads", count))
