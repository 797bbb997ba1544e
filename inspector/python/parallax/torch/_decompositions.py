# SPDX-License-Identifier: Apache-2.0
"""Decompositions of ATen operators under which a traced graph has only operators that convert to ONNX."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from ._gradients import gradient_decompositions
from ._private import core_table, exporter_table

__all__ = ["decompositions", "filter_decomposition_table", "get_decomposition_table"]

aten = torch.ops.aten

_KEPT = frozenset({
    # They meet real constants inside the fake mode of the tracer.
    "aten::alias", "aten::detach", "aten::lift_fresh",
    # Random operators: their numbers are drawn by torch before the graph runs (`_random.py`), or by the executor.
    "aten::bernoulli", "aten::bernoulli.p", "aten::native_dropout", "aten::rand", "aten::rand_like", "aten::randn",
    "aten::randn_like", "aten::randint", "aten::randint.low", "aten::randint_like", "aten::randint_like.low_dtype",
    "aten::uniform", "aten::normal_functional", "aten::exponential", "aten::geometric", "aten::cauchy",
    "aten::log_normal",
})


def decompositions(name: str = "default", drop: Iterable[Any] = ()) -> dict[Any, Callable[..., Any]]:
    """The decompositions with which aot_autograd should trace a graph for conversion.

    - "default": those torch.onnx applies, plus ours, less `alias`, `detach`, `lift_fresh` and random operators;
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
    table = exporter_table() if name == "default" else core_table()
    table.update(gradient_decompositions())
    table.update(_forward_decompositions())
    dropped = _KEPT | {_name(d) for d in drop}
    return {target: function for target, function in table.items() if _name(target) not in dropped}


def get_decomposition_table() -> dict[Any, Callable[..., Any]]:
    """`decompositions("default")`, under the name that example scripts use."""
    return decompositions("default")


def filter_decomposition_table(
    existing_table: Mapping[Any, Callable[..., Any]] | None = None, filter_fct: Callable[[Any], bool] | None = None,
) -> dict[Any, Callable[..., Any]]:
    """The table with those entries alone for whose operator `filter_fct` is true."""
    table = dict(existing_table) if existing_table is not None else decompositions("default")
    return table if filter_fct is None else {op: fn for op, fn in table.items() if filter_fct(op)}


def _name(target: Any) -> str:
    """`aten::add.Tensor` of an overload; `aten::gelu` for the default one."""
    return target if isinstance(target, str) else target.name() if hasattr(target, "name") else str(target)


def _forward_decompositions() -> dict[Any, Callable[..., Any]]:
    return {
        aten._trilinear.default: trilinear,
        aten.hypot.default: hypot,
        aten.median.dim: median,
        aten.median.default: median_of_all,
        aten.kthvalue.default: kth_value,
        aten.diagonal_scatter.default: diagonal_scatter,
        aten.diagonal_backward.default: diagonal_backward,
    }


def trilinear(
    first: Tensor, second: Tensor, third: Tensor, expand1: list[int], expand2: list[int], expand3: list[int],
    sumdim: list[int], unroll_dim: int = 1,
) -> Tensor:
    """The product of three tensors over common dimensions, summed: what `bilinear` is made of."""
    for axis in expand1:
        first = first.unsqueeze(axis)
    for axis in expand2:
        second = second.unsqueeze(axis)
    for axis in expand3:
        third = third.unsqueeze(axis)
    product = first * second * third
    return product.sum(sumdim) if sumdim else product


def hypot(x: Tensor, y: Tensor) -> Tensor:
    """sqrt(x² + y²) without overflow of the squares."""
    x, y = x.abs(), y.abs()
    large, small = torch.maximum(x, y), torch.minimum(x, y)
    ratio = small / torch.where(large == 0, 1.0, large)
    return torch.where(torch.isinf(large), large, large * torch.sqrt(1 + ratio * ratio))


def kth_value(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th smallest element along an axis, and its position."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    values, positions = torch.sort(x, dim=dim, stable=True)
    values, positions = values.narrow(dim, k - 1, 1), positions.narrow(dim, k - 1, 1)
    return (values, positions) if keepdim else (values.squeeze(dim), positions.squeeze(dim))


def median(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower median along an axis; NaN and its position where there is one."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    values, positions = kth_value(x, (x.shape[dim] + 1) // 2, dim, keepdim)
    if not x.dtype.is_floating_point:
        return values, positions
    unordered = torch.isnan(x)
    first = unordered.to(torch.int64).argmax(dim, keepdim=keepdim)
    found = unordered.any(dim, keepdim=keepdim)
    return torch.where(found, torch.nan, values), torch.where(found, first, positions)


def median_of_all(x: Tensor) -> Tensor:
    """The lower median of all elements."""
    return median(x.reshape(-1), 0)[0]


def diagonal_scatter(x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """x with a diagonal of its dimensions dim1, dim2 replaced by the last dimension of `source`."""
    dim1, dim2 = dim1 % x.dim(), dim2 % x.dim()
    rows, columns, length = x.shape[dim1], x.shape[dim2], source.shape[-1]
    row = torch.arange(rows, device=x.device).unsqueeze(1)
    column = torch.arange(columns, device=x.device).unsqueeze(0)
    on_diagonal = (column - row) == offset
    along = (row if offset >= 0 else column).clamp(max=length - 1).reshape(-1)
    placed = source.index_select(-1, along).unsqueeze(-1 if offset >= 0 else -2)  # [.., rows, 1] or [.., 1, columns]
    order = [d for d in range(x.dim()) if d not in (dim1, dim2)] + [dim1, dim2]
    result = torch.where(on_diagonal, placed, x.permute(order))
    return result.permute([order.index(d) for d in range(x.dim())])


def diagonal_backward(grad: Tensor, sizes: list[int], offset: int, dim1: int, dim2: int) -> Tensor:
    """The gradient of `diagonal`: zeros but on the diagonal."""
    zeros = torch.zeros(sizes, dtype=grad.dtype, device=grad.device)
    return diagonal_scatter(zeros, grad, offset, dim1, dim2)
