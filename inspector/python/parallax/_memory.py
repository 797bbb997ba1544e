# SPDX-License-Identifier: Apache-2.0
"""Memory of the process, where a limit is kept."""

from __future__ import annotations

import ctypes

__all__ = ["give_back_memory"]


def give_back_memory() -> None:
    """Free memory of the C library goes back to the system, whose count a limit of memory reads."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
