"""Decompositions of ATen operators under which a traced graph has only operators that convert to ONNX."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from ._fx import exporter_table

__all__ = ["decompositions", "filter_decomposition_table", "get_decomposition_table"]

_KEPT = ("aten::alias", "aten::detach", "aten::lift_fresh")
"""Not decomposed: they meet real constants inside the fake mode of the tracer."""


def decompositions(name: str = "default", drop: Iterable[Any] = ()) -> dict[Any, Callable[..., Any]]:
    """The decompositions with which aot_autograd should trace a graph for conversion.

    - "default": those torch.onnx applies, plus ours, less `alias`, `detach` and `lift_fresh`;
    - "core": torch's core ATen table plus ours (some operators are left without a translation);
    - "none": no table; `convert` decomposes what has no translation in a second trace.

    `drop` leaves out operators: overloads (`torch.ops.aten.gelu.default`) or names (`"aten::gelu"`).

    >>> import torch, parallax.torch as pt
    >>> torch.ops.aten.convolution_backward.default in pt.decompositions()
    True
    """
    if name == "none":
        return {}
    if name not in ("default", "core"):
        raise ValueError(f"decompositions is {name!r}; it must be 'default', 'core' or 'none'")
    table = exporter_table() if name == "default" else dict(torch._decomp.core_aten_decompositions().items())
    dropped = set(_KEPT) | {_name(d) for d in drop}
    return {target: function for target, function in table.items() if _name(target) not in dropped}


def _name(target: Any) -> str:
    """`aten::add.Tensor` of an overload; `aten::gelu` for the default one."""
    return target if isinstance(target, str) else target.name() if hasattr(target, "name") else str(target)


def get_decomposition_table() -> dict[Any, Callable[..., Any]]:
    """`decompositions("default")`, under the name that example scripts use."""
    return decompositions("default")


def filter_decomposition_table(
    existing_table: Mapping[Any, Callable[..., Any]] | None = None, filter_fct: Callable[[Any], bool] | None = None,
) -> dict[Any, Callable[..., Any]]:
    """The table with those entries alone for whose operator `filter_fct` is true."""
    table = dict(existing_table) if existing_table is not None else decompositions("default")
    return table if filter_fct is None else {op: fn for op, fn in table.items() if filter_fct(op)}
