# SPDX-License-Identifier: Apache-2.0
"""Values in groups that fit into a limit of memory, and what was not found of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from parallax._memory import in_groups

__all__ = ["absent_note", "bytes_of", "groups_within"]


def groups_within(sizes: Mapping[str, int], limit_bytes: int) -> list[list[str]]:
    """Names in groups whose values take at most a quarter of the limit together; one group without a limit (0).

    The rest is for what lives within a run. A value above that is a group of its own.

    >>> groups_within({"a": 1, "b": 2, "c": 9}, 12)
    [['a', 'b'], ['c']]
    """
    return in_groups(sizes.items(), limit_bytes // 4 if limit_bytes > 0 else None)


def bytes_of(shape: Iterable[int], item_bytes: int) -> int:
    """Bytes of a value of that shape.

    >>> bytes_of((2, 3), 4)
    24
    """
    return math.prod(shape) * item_bytes


def absent_note(absent: Sequence[str], runtime: str) -> list[str]:
    """A sentence about values that the runtime does not have; none where it has all.

    >>> absent_note(["a"], "OpenVINO")
    ["OpenVINO's network has no value 'a'; it was folded or fused away"]
    """
    if not absent:
        return []
    if len(absent) == 1:
        return [f"{runtime}'s network has no value {absent[0]!r}; it was folded or fused away"]
    return [f"{runtime}'s network has no value {absent[0]!r} and {len(absent) - 1} others; they were folded or fused away"]
