# SPDX-License-Identifier: Apache-2.0
"""Memory of the process, where a limit is kept."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import TypeVar

__all__ = ["give_back_memory", "in_groups"]

_Item = TypeVar("_Item")


def in_groups(sized: Iterable[tuple[_Item, int]], most_bytes: int | None) -> list[list[_Item]]:
    """Items in groups of so many bytes together, in their order; None: one group. A larger item is a group of its own.

    >>> from parallax._memory import in_groups
    >>> in_groups([("a", 1), ("b", 2), ("c", 9)], 3)
    [['a', 'b'], ['c']]
    """
    groups: list[list[_Item]] = []
    used = 0
    for item, size in sized:
        if not groups or (most_bytes is not None and used + size > most_bytes):
            groups.append([])
            used = 0
        groups[-1].append(item)
        used += size
    return groups or [[]]


def give_back_memory() -> None:
    """Free memory of the C library goes back to the system, whose count a limit of memory reads."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
